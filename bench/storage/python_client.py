"""The client of the storage bench in Python: ``python -m bench.storage.python_client COMMAND …``, as ``client.c``.

It measures what a Python program gets, with ``open(path, "rb").read()``, and stands in for the C client where there is
no compiler. It checks the first page of every read, which costs it little beside the read itself.
"""

# ruff: noqa: PTH116, PTH123, PTH208  what is measured is what people write: open() and os.stat() of a string
from __future__ import annotations

import json
import os
import random
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path

from bench.storage.content import BLOCK, PAGE, STAMP, blocks, stamp

Work = Callable[[int], int]
"""What one reader does: given its number, it returns how many operations it did."""


def sequential(path: str, number: str, size: str, readers: str) -> int:
    def work(_reader: int) -> int:
        with open(path, "rb", buffering=0) as file:
            for start in range(0, int(size), BLOCK):
                check(path, int(number), start, file.read(BLOCK))
        return int(size) // BLOCK

    return run(work, int(readers))


def at_random(path: str, number: str, size: str, readers: str, seconds: str) -> int:
    def work(reader: int) -> int:
        dice, done, pages = random.Random(reader), 0, int(size) // PAGE
        until = time.monotonic() + float(seconds)
        with open(path, "rb", buffering=0) as file:
            while done % 16 or time.monotonic() < until:
                page = dice.randrange(pages)
                check(path, int(number), page * PAGE, os.pread(file.fileno(), PAGE, page * PAGE))
                done += 1
        return done

    return run(work, int(readers))


def small(listed: str, size: str, readers: str) -> int:
    files = read_list(listed)

    def work(reader: int) -> int:
        mine = files[reader :: int(readers)]
        for number, path in mine:
            with open(path, "rb") as file:
                data = file.read()
            check(path, number, 0, data)
            if len(data) != int(size):
                sys.exit(f"WRONG BYTES: {path} has {len(data)} bytes, not {size}")
        return len(mine)

    return run(work, int(readers))


def stats(listed: str, readers: str, passes: str) -> int:
    files = read_list(listed)

    def work(reader: int) -> int:
        mine = files[reader :: int(readers)] * int(passes)
        for _, path in mine:
            os.stat(path)
        return len(mine)

    return run(work, int(readers))


def names(directory: str, count: str, passes: str) -> int:
    return run(lambda _: sum(counted(os.listdir(directory), count) for _ in range(int(passes))), 1)


def long_list(directory: str, count: str, passes: str) -> int:
    def once() -> int:
        with os.scandir(directory) as entries:
            return counted([entry.stat(follow_symlinks=False) for entry in entries], count)

    return run(lambda _: sum(once() for _ in range(int(passes))), 1)


def write_one(path: str, number: str, size: str, filler: str) -> int:
    block = Path(filler).read_bytes()

    def work(_reader: int) -> int:
        with open(path, "wb", buffering=0) as out:
            for part in blocks(int(number), int(size), block):
                out.write(part)
        return int(size) // BLOCK

    return run(work, 1)


def write_many(directory: str, count: str, size: str, filler: str) -> int:
    block = Path(filler).read_bytes()

    def work(_reader: int) -> int:
        for number in range(int(count)):
            with open(f"{directory}/f{number:06}", "wb", buffering=0) as out:
                for part in blocks(number, int(size), block):
                    out.write(part)
        return int(count)

    return run(work, 1)


def check(path: str, number: int, start: int, data: bytes) -> None:
    if len(data) < STAMP.size or STAMP.unpack_from(data)[0] != stamp(number, start // PAGE):
        sys.exit(f"WRONG BYTES: {path}, page {start // PAGE}")


def counted(entries: list[str] | list[os.stat_result], wanted: str) -> int:
    if len(entries) != int(wanted):
        sys.exit(f"WRONG BYTES: {len(entries)} entries, not {wanted}")
    return len(entries)


def read_list(path: str) -> list[tuple[int, str]]:
    lines = (line.split(" ", 1) for line in Path(path).read_text().splitlines())
    return [(int(number), name) for number, name in lines]


def run(work: Work, readers: int) -> int:
    """All readers wait behind one pipe, so that starting them is not timed; nor is the end of an interpreter."""
    (ready, is_ready), (gate, opening), (told, telling) = os.pipe(), os.pipe(), os.pipe()
    for reader in range(readers):
        if os.fork() == 0:
            os.close(opening)
            os.write(is_ready, b".")
            os.read(gate, 1)
            os.write(telling, f"{work(reader)}\n".encode())
            os._exit(0)
    os.close(telling)
    for _ in range(readers):
        os.read(ready, 1)
    began = time.perf_counter()
    os.close(opening)
    with os.fdopen(told) as answers:
        operations = sum(map(int, answers))
    seconds = time.perf_counter() - began
    ended = [os.wait()[1] for _ in range(readers)]
    if any(ended):
        return 1
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(json.dumps({"seconds": seconds, "operations": operations, "cpu_s": used.ru_utime + used.ru_stime}))
    return 0


COMMANDS: dict[str, Callable[..., int]] = {
    "sequential": sequential,
    "random": at_random,
    "small": small,
    "stat": stats,
    "readdir": names,
    "list": long_list,
    "write": write_one,
    "writes": write_many,
}


if __name__ == "__main__":
    sys.exit(COMMANDS[sys.argv[1]](*sys.argv[2:]))
