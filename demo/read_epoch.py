"""One epoch of a training that only reads: every file once, in random order, each compared with its checksum.

``python read_epoch.py DIRECTORY MANIFEST SEED`` prints ``half`` when half of the files are read, and at the end what it
saw as JSON. The clocks count opening, reading and closing alone; comparing is not the filesystem's work.
"""

from __future__ import annotations

import json
import random
import sys
import time
import zlib
from pathlib import Path

PIECE = 1 << 20
LARGE = 4 << 20


class Clock:
    """What one kind of files cost: the time spent in the filesystem, and the longest single wait for it."""

    def __init__(self) -> None:
        self.files = self.bytes = 0
        self.seconds = self.longest_s = 0.0

    def add(self, began: float) -> None:
        took = time.perf_counter() - began
        self.seconds += took
        self.longest_s = max(self.longest_s, took)


def read(path: Path, clock: Clock) -> int:
    """Its checksum."""
    checksum = 0
    began = time.perf_counter()
    with path.open("rb", buffering=0) as file:
        while piece := file.read(PIECE):
            clock.add(began)
            clock.bytes += len(piece)
            checksum = zlib.crc32(piece, checksum)
            began = time.perf_counter()
    clock.add(began)
    clock.files += 1
    return checksum


def main() -> None:
    directory, manifest, seed = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    files = list(json.loads(manifest.read_text()).items())
    random.Random(seed).shuffle(files)
    errors: list[str] = []
    small, large = Clock(), Clock()
    for index, (name, (size, wanted)) in enumerate(files):
        if index == len(files) // 2:
            print("half", flush=True)
        try:
            checksum = read(directory / name, large if size > LARGE else small)
        except OSError as error:
            errors.append(f"{name}: {error}")
            continue
        if checksum != wanted:
            errors.append(f"{name}: wrong bytes")
    print(json.dumps({"small": vars(small), "large": vars(large), "errors": errors}), flush=True)


if __name__ == "__main__":
    main()
