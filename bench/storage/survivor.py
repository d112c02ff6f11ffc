"""A program that must not notice: ``python -m bench.storage.survivor read|write ROOT COUNT SIZE FILLER``.

Reads the small files again and again, or writes files and reads them back, and compares every byte, until its input is
closed. Then it prints what it saw as JSON; a dot after each operation says that it goes on.
"""

from __future__ import annotations

import json
import random
import select
import sys
import time
from collections.abc import Callable
from pathlib import Path

from bench.storage import content


def reading(root: Path, count: int, size: int, block: bytes) -> Callable[[int], None]:
    dice = random.Random(1)

    def once(_turn: int) -> None:
        number = dice.randrange(count)
        content.compare(root / f"small/{number // 100:03}/f{number:06}", number, size, block)

    return once


def writing(root: Path, count: int, size: int, block: bytes) -> Callable[[int], None]:
    folder = root / "written-while-killed"
    folder.mkdir()

    def once(turn: int) -> None:
        path = folder / f"f{turn % count}"
        content.write(path, turn, size, block)
        content.compare(path, turn, size, block)
        if turn % 3 == 0:
            path.rename(folder / f"moved-{turn % count}")
        elif turn % 3 == 1:
            path.unlink()

    return once


def main() -> None:
    kind, root, count, size, filler = sys.argv[1:]
    make = {"read": reading, "write": writing}[kind]
    once = make(Path(root), int(count), int(size), Path(filler).read_bytes())
    operations, longest = 0, 0.0
    errors: list[str] = []
    while not select.select([sys.stdin], [], [], 0)[0]:
        began = time.perf_counter()
        try:
            once(operations)
        except (OSError, content.WrongBytes) as error:
            errors.append(f"{type(error).__name__}: {error}")
        longest = max(longest, time.perf_counter() - began)
        operations += 1
        print(".", flush=True)
    print(json.dumps({"operations": operations, "longest_s": longest, "errors": errors}), flush=True)


if __name__ == "__main__":
    main()
