"""How much one cache directory may hold, shared by every process that fills it.

The count lies in a small file of two numbers, bytes added and bytes freed, changed under a lock that the kernel takes
back from a process that dies. Bytes are counted before they are written and taken off after they are deleted, and a
chunk that two processes store is counted twice: the count errs upwards, so the limit holds. When it says full,
``shelf`` counts what is really there and corrects it before it evicts anything; what others are about to write at that
moment is missed, so the limit may be exceeded by as much as is under way, until the next count.

Beside the limit a part of the disk stays free for others: who shares the disk with a cache must not notice it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from paddleflow.pfs.cache.layout import checksum

_COUNT = struct.Struct("<QQQ")
"""added, freed, checksum."""
PATIENCE_S = 2.0
"""For the account, which is held for microseconds."""
SHORT_PATIENCE_S = 0.02
"""Where nothing is lost by giving up: the account then errs upwards."""
_LOOK_AGAIN_S = 0.001


@dataclass(frozen=True, slots=True)
class Level:
    """A directory to cache in, and how much of it."""

    directory: str
    limit: int
    """Bytes."""
    free_floor: float = 0.1
    """The part of the disk that is left free; what is cached shrinks when others fill it."""
    is_memory: bool = False
    """It lies in memory (tmpfs): small files go here while it has room."""


@dataclass(frozen=True, slots=True)
class Count:
    added: int
    freed: int

    @property
    def used(self) -> int:
        return max(0, self.added - self.freed)


@contextmanager
def locked(path: str, patience_s: float) -> Iterator[int]:
    """Hold a file's lock across processes, and threads and forks of one: each holder opens it anew. The kernel takes it
    from a process that dies, but not from one that is stopped; nobody waits longer than this for such a one, and gets
    TimeoutError."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        deadline = time.monotonic() + patience_s
        while not _is_locked(fd):
            if time.monotonic() > deadline:
                raise TimeoutError(errno.ETIMEDOUT, "another process holds the lock and does not go on", path)
            time.sleep(_LOOK_AGAIN_S)
        yield fd
    finally:
        os.close(fd)


def _is_locked(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


class Space:
    """OSErrors leave it: ``shelf`` knows what they mean."""

    def __init__(self, level: Level, account: str) -> None:
        self._level = level
        self._account = account

    def count(self) -> Count | None:
        """None when the account is new or damaged: then nothing may be added before somebody has counted."""
        with locked(self._account, PATIENCE_S) as fd:
            return _read(fd)

    def take(self, size: int) -> bool:
        """Count so many bytes in, unless that would break the limit or the floor."""
        with locked(self._account, PATIENCE_S) as fd:
            count = _read(fd)
            if count is None or count.used + size > self._level.limit or self._below_floor(size) > 0:
                return False
            _write(fd, Count(count.added + size, count.freed))
            return True

    def give_back(self, size: int) -> None:
        with locked(self._account, SHORT_PATIENCE_S) as fd:
            count = _read(fd)
            if count is not None:
                _write(fd, Count(count.added, min(count.added, count.freed + size)))

    def correct(self, found: int, before: Count | None) -> None:
        """What is really there, as counted since ``before``. What was added meanwhile may be among it or not: it is
        counted again, rather too much than too little. One at a time may do this (``trim.lock``)."""
        with locked(self._account, PATIENCE_S) as fd:
            count = _read(fd)
            meanwhile = count.added - before.added if count is not None and before is not None else 0
            _write(fd, Count(found + meanwhile, 0))

    def excess(self, size: int) -> int:
        """How many bytes must go before so many more have room."""
        count = self.count()
        used = count.used if count is not None else 0
        return max(used + size - self._level.limit, self._below_floor(size), 0)

    def _below_floor(self, size: int) -> int:
        disk = os.statvfs(self._level.directory)
        floor = int(disk.f_blocks * disk.f_frsize * self._level.free_floor)
        return floor + size - disk.f_bavail * disk.f_frsize


def _read(fd: int) -> Count | None:
    raw = os.pread(fd, _COUNT.size, 0)
    if len(raw) != _COUNT.size:
        return None
    added, freed, sealed = _COUNT.unpack(raw)
    return Count(added, freed) if checksum(raw[:16]) == sealed else None


def _write(fd: int, count: Count) -> None:
    bare = _COUNT.pack(count.added, count.freed, 0)[:16]
    os.pwrite(fd, bare + checksum(bare).to_bytes(8, "little"), 0)
