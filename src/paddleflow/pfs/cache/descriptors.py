"""The open files of one entry: opened when first needed, closed when the last use after ``close`` has ended.

A descriptor is a number that the kernel gives to the next file once it is closed. A thread that still read, or worse
wrote, through it then would do so in somebody else's file; so whoever uses one says so for as long as it does.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from paddleflow.domain.errors import DiskFull, Stale
from paddleflow.pfs.cache.layout import Header, read_header


class Descriptors:
    """To be called inside ``use``. Stale when a file that must be opened is not this entry's any more."""

    __slots__ = (
        "_data_path",
        "_header",
        "_is_closed",
        "_lock",
        "_reading",
        "_sidecar",
        "_sidecar_path",
        "_uses",
        "_writing",
    )

    def __init__(self, header: Header, places: tuple[str, str], sidecar: int) -> None:
        self._header = header
        self._sidecar_path, self._data_path = places
        self._lock = threading.Lock()
        self._uses = 0
        self._is_closed = False
        self._sidecar = sidecar
        self._reading = -1
        self._writing = -1

    @property
    def is_open(self) -> bool:
        return self._sidecar >= 0 or self._reading >= 0

    @contextmanager
    def use(self) -> Iterator[None]:
        with self._lock:
            if self._is_closed:
                raise Stale(f"the cached copy of {self._header.version.key!r} is closed")
            self._uses += 1
        try:
            yield
        finally:
            self._end_use()

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            if not self._uses:
                self._close_all()

    def reading(self) -> int:
        """Of the data file. OSError when the disk does not give it."""
        if self._reading < 0:
            with self._lock:
                if self._reading < 0:
                    self._reading = self._open_data(os.O_RDONLY)
        return self._reading

    def writing(self) -> int:
        """Of the data file. DiskFull when it cannot be written."""
        if self._writing < 0:
            with self._lock:
                if self._writing < 0:
                    self._writing = self._open_for_writing()
        return self._writing

    def sidecar(self) -> int:
        """An entry found verified is not kept open; when its records are wanted after all, the sidecar that is there
        now must name the same data file."""
        if self._sidecar < 0:
            with self._lock:
                if self._sidecar < 0:
                    self._sidecar = self._open_sidecar()
        return self._sidecar

    def _open_data(self, flags: int) -> int:
        try:
            return os.open(self._data_path, flags | os.O_CLOEXEC)
        except FileNotFoundError as error:
            raise self._evicted() from error

    def _open_for_writing(self) -> int:
        try:
            return self._open_data(os.O_RDWR)
        except OSError as error:
            raise DiskFull(f"the cache at {self._data_path} cannot be written: {error.strerror}") from error

    def _open_sidecar(self) -> int:
        fd = open_sidecar(self._sidecar_path)
        if fd < 0:
            raise self._evicted()
        try:
            is_mine = read_header(fd)[1] == self._header
        except OSError:
            is_mine = False  # what the disk does not give back is as good as gone
        if not is_mine:
            os.close(fd)
            raise self._evicted()
        return fd

    def _evicted(self) -> Stale:
        return Stale(f"the cached copy of {self._header.version.key!r} was evicted")

    def _end_use(self) -> None:
        with self._lock:
            self._uses -= 1
            if self._is_closed and not self._uses:
                self._close_all()

    def _close_all(self) -> None:
        for fd in (self._sidecar, self._reading, self._writing):
            if fd >= 0:
                os.close(fd)
        self._sidecar = self._reading = self._writing = -1

    def __del__(self) -> None:
        self._close_all()


def open_sidecar(path: str) -> int:
    """Its descriptor, -1 when there is none. Read-only where the directory is."""
    try:
        return os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return -1
    except OSError:
        pass  # not ours to write: reading may still do
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return -1  # what cannot be read is as good as absent
