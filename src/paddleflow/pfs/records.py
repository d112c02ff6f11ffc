"""Record logs: what a process of a mount writes down for its successor.

Records are text and end with NUL. They go out with one ``write`` each, without ``fsync``: they must outlive the
process, not the machine, for what the kernel remembers of a mount does not outlive the machine either.

A full disk damages nothing. Half a record is taken back, so that the next one does not run into it; a log that cannot
be written anew goes on as it is; and a record of what has happened already waits in memory until there is room.
"""

from __future__ import annotations

import errno
import logging
import os
from contextlib import suppress

_log = logging.getLogger(__name__)


def read_records(path: str) -> list[str]:
    """All whole records. One that death cut off was never acted upon: the act comes after the write."""
    try:
        with open(path, "rb") as file:
            content = file.read()
    except FileNotFoundError:
        return []  # the predecessor died before its first record
    return content.decode("utf-8", "surrogateescape").split("\0")[:-1]


class RecordLog:
    """``is_continued``: records of a predecessor may stand there already, and count."""

    def __init__(self, path: str, records: list[str], *, is_continued: bool) -> None:
        """Begin with these records alone; where there is no room for that, go on with a predecessor's."""
        self._path = path
        self._waiting: list[str] = []
        self._is_full = False
        try:
            self._fd = _write_file(path, records)
        except OSError as error:
            if not is_continued:
                raise
            _log.warning("%s is not written anew: %s", path, error)
            self._fd = _open_to_continue(path)

    def append(self, record: str) -> None:
        """Write it, with all that waits; an error means that it is not written and does not wait."""
        self._waiting.append(record)
        try:
            self._write()
        except OSError:
            self._waiting.pop()
            raise

    def append_or_wait(self, record: str) -> None:
        """For what has happened and cannot be refused any more: without room it waits for the next record."""
        self._waiting.append(record)
        try:
            self._write()
        except OSError as error:
            if not self._is_full:
                _log.warning("records wait until %s can be written: %s", self._path, error)
            self._is_full = True

    def add_to_next(self, record: str) -> None:
        """For what a successor can do without, at the cost of some memory."""
        self._waiting.append(record)

    def write_anew(self, records: list[str]) -> None:
        """Put these in the place of all there is, at once; where there is no room for that, the log stays as it is."""
        try:
            fd = _write_file(self._path, records)
        except OSError as error:
            _log.warning("%s is not written anew: %s", self._path, error)
            return
        os.close(self._fd)
        self._fd = fd
        self._waiting.clear()  # the caller's records say it all

    def close(self) -> None:
        with suppress(OSError):
            self._write()
        os.close(self._fd)

    def _write(self) -> None:
        data = _encoded(self._waiting)
        written = os.write(self._fd, data)
        if written != len(data):
            os.ftruncate(self._fd, os.lseek(self._fd, 0, os.SEEK_CUR) - written)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._waiting.clear()
        self._is_full = False


def _write_file(path: str, records: list[str]) -> int:
    """Beside the old one, and into its place when it is whole."""
    fresh = f"{path}.new"
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        data = memoryview(_encoded(records))
        while data:
            data = data[os.write(fd, data) :]
        os.replace(fresh, path)
    except BaseException:
        os.close(fd)
        with suppress(OSError):
            os.unlink(fresh)
        raise
    return fd


def _open_to_continue(path: str) -> int:
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    size = os.lseek(fd, 0, os.SEEK_END)
    while size and os.pread(fd, 1, size - 1) != b"\0":
        size -= 1
    os.ftruncate(fd, size)
    return fd


def _encoded(records: list[str]) -> bytes:
    return "\0".join([*records, ""]).encode("utf-8", "surrogateescape")
