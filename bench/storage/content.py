"""What is in the files of the bench: pages that know which file they belong to and where.

Every file is made of one block of random bytes, repeated; the first eight bytes of each page are replaced by a number
made of the file's number and the page's. A page from another file, another place or another version is noticed at
once, by a comparison that costs nothing beside reading it. ``client.c`` does the same arithmetic.
"""

from __future__ import annotations

import os
import random
import struct
from collections.abc import Iterator
from pathlib import Path

PAGE = 4096
BLOCK = 1 << 20
STAMP = struct.Struct("<Q")
_MASK = (1 << 64) - 1


class WrongBytes(Exception):
    """A file does not hold what was written to it."""


def stamp(number: int, page: int) -> int:
    """The first eight bytes of a page: the finish of splitmix64, over the file's number and the page's."""
    value = ((number << 32) + page + 0x9E3779B97F4A7C15) & _MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)


def filler() -> bytes:
    """The block that all files repeat; the same in every run."""
    return random.Random(20).randbytes(BLOCK)


def blocks(number: int, size: int, block: bytes) -> Iterator[bytes]:
    """The content of a file, a block at a time."""
    buffer = bytearray(block)
    for start in range(0, size, BLOCK):
        here = min(BLOCK, size - start)
        for at in range(0, here - STAMP.size + 1, PAGE):
            STAMP.pack_into(buffer, at, stamp(number, (start + at) // PAGE))
        yield bytes(buffer[:here])


def write(path: Path, number: int, size: int, block: bytes) -> None:
    with path.open("wb") as out:
        out.writelines(blocks(number, size, block))


def compare(path: Path, number: int, size: int, block: bytes) -> None:
    """Every byte of a file with what it was made of."""
    with path.open("rb", buffering=0) as file:
        for index, wanted in enumerate(blocks(number, size, block)):
            got = _read_exactly(file.fileno(), len(wanted), index * BLOCK)
            if got != wanted:
                raise WrongBytes(f"{path} differs from what was written, in the MiB at {index * BLOCK}")
        if _read_exactly(file.fileno(), 1, size):
            raise WrongBytes(f"{path} is longer than the {size} bytes that were written")


def _read_exactly(fd: int, size: int, start: int) -> bytes:
    parts = []
    while size and (part := os.pread(fd, size, start)):
        parts.append(part)
        size -= len(part)
        start += len(part)
    return b"".join(parts)
