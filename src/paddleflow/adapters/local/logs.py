"""The log of a task: written under a cap by its supervisor, read by anyone. Host side: light.

A log that had to drop something is *sealed*: its file loses the write permission. That one bit is stored in the
inode, so it can be set on a full disk, where no marker file could be created.
"""

from __future__ import annotations

import os

_OPEN = 0o600
_SEALED = 0o400


class LogSink:
    """Appends to the log until the cap or the disk is reached, and then drops, so that the task keeps running."""

    __slots__ = ("_fd", "_room")

    def __init__(self, path: str, cap_bytes: int) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, _OPEN)
        self._room = max(0, cap_bytes - os.fstat(self._fd).st_size)

    def write(self, content: bytes) -> None:
        kept = content[: self._room]
        dropped = len(content) - len(kept)
        while kept:
            try:
                written = os.write(self._fd, kept)
            except OSError:
                # A full disk or quota, or a failing device: the task must not suffer for its log. The seal tells it.
                dropped += len(kept)
                break
            kept = kept[written:]
            self._room -= written
        if dropped:
            self._room = 0
            os.fchmod(self._fd, _SEALED)

    def close(self) -> None:
        os.close(self._fd)


def read_part(path: str, start: int, limit: int) -> tuple[bytes, int, int, bool]:
    """Content, its offset, the size of the log and whether it is sealed. A log that does not exist yet is empty."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return b"", 0, 0, False
    try:
        status = os.fstat(fd)
        size = status.st_size
        offset = max(0, size + start) if start < 0 else min(start, size)
        content = os.pread(fd, min(max(0, limit), size - offset), offset)
        return content, offset, size, status.st_mode & 0o777 == _SEALED
    finally:
        os.close(fd)
