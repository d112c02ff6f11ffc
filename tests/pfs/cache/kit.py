"""What the tests of the cache share: content one can predict, and ways to damage files."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

from paddleflow.pfs.backstage import ObjectVersion
from paddleflow.pfs.cache import Cache, Level
from tests.waiting import wait_for

CHUNK = 4096
PLENTY = 1 << 30


def version(key: str = "a/b", name: str = "v1", size: int = 3 * CHUNK + 100, store: str = "s" * 16) -> ObjectVersion:
    return ObjectVersion(store, key, name, size)


def content(of: ObjectVersion) -> bytes:
    """Always the same for a version, and different for any two."""
    return random.Random(f"{of.store} {of.key} {of.version}").randbytes(of.size)


def chunk(of: ObjectVersion, index: int) -> bytes:
    return content(of)[index * CHUNK : (index + 1) * CHUNK]


def cache(directory: Path | str, limit: int = PLENTY) -> Cache:
    return Cache([Level(str(directory), limit, free_floor=0.0)], chunk_size=CHUNK)


def data_files(directory: Path | str) -> list[Path]:
    return sorted(path for path in Path(directory).glob("pfcache1/data/*/*") if path.is_file())


def sidecars(directory: Path | str) -> list[Path]:
    return sorted(path for path in Path(directory).glob("pfcache1/entries/*/*") if path.is_file())


def damage(path: Path, act: Callable[[int], object]) -> None:
    """Change a file through the filesystem, as often as it takes for its times to change: clocks have ticks."""
    before = path.stat().st_ctime_ns
    fd = os.open(path, os.O_RDWR)

    def is_changed() -> bool:
        os.fchmod(fd, 0o600)
        return os.fstat(fd).st_ctime_ns != before

    try:
        act(fd)
        wait_for(is_changed)
    finally:
        os.close(fd)


def flip(path: Path, at: int) -> None:
    def act(fd: int) -> None:
        os.pwrite(fd, bytes([os.pread(fd, 1, at)[0] ^ 0x10]), at)

    damage(path, act)
