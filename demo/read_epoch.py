"""One epoch of a training that only reads: every file once, in random order, each compared with its checksum.

``python read_epoch.py DIRECTORY MANIFEST SEED`` prints ``half`` when half of the files are read, and at the end what it
saw as JSON. The clock counts opening, reading and closing alone; comparing is not the filesystem's work.
"""

from __future__ import annotations

import json
import random
import sys
import time
import zlib
from pathlib import Path

PIECE = 1 << 20


class Clock:
    """The time spent in the filesystem, and the longest single wait for it."""

    def __init__(self) -> None:
        self.seconds = self.longest_s = 0.0

    def add(self, began: float) -> None:
        took = time.perf_counter() - began
        self.seconds += took
        self.longest_s = max(self.longest_s, took)


def read(path: Path, clock: Clock) -> tuple[int, int]:
    """Size and checksum."""
    size = checksum = 0
    began = time.perf_counter()
    with path.open("rb", buffering=0) as file:
        while piece := file.read(PIECE):
            clock.add(began)
            size += len(piece)
            checksum = zlib.crc32(piece, checksum)
            began = time.perf_counter()
    clock.add(began)
    return size, checksum


def main() -> None:
    directory, manifest, seed = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    files = list(json.loads(manifest.read_text()).items())
    random.Random(seed).shuffle(files)
    errors: list[str] = []
    clock = Clock()
    total = 0
    for index, (name, wanted) in enumerate(files):
        if index == len(files) // 2:
            print("half", flush=True)
        try:
            size, checksum = read(directory / name, clock)
        except OSError as error:
            errors.append(f"{name}: {error}")
            continue
        total += size
        if checksum != wanted:
            errors.append(f"{name}: wrong bytes")
    told = {"seconds": clock.seconds, "longest_s": clock.longest_s, "errors": errors}
    print(json.dumps({"files": len(files), "bytes": total, **told}), flush=True)


if __name__ == "__main__":
    main()
