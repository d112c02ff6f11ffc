"""The log of a task: written under a cap by its supervisor. Host side: light.

A log is a row of segments: ``log`` takes the first half of the cap, ``log.<offset>`` what follows. When the cap is
reached the oldest segment but the first is deleted, so that the first and the last part of a log are kept. Offsets
count what the task has written, not what is kept: they mean the same before and after a deletion.

A segment is *sealed* when output after it was lost because the disk was full: its file loses the write permission.
That bit is stored in the inode, so it can be set on a full disk, where no marker file could be created.
"""

from __future__ import annotations

import os

_OPEN = 0o600
SEALED = 0o400
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW


class LogSink:
    """Appends to the log, deletes from its middle to stay under the cap, and drops what the disk cannot take, so that
    the task keeps running."""

    __slots__ = ("_fd", "_path", "_position", "_room", "_segment_bytes", "_tail", "_tail_bytes")

    def __init__(self, path: str, cap_bytes: int) -> None:
        self._path = path
        self._fd = os.open(path, _WRITE, _OPEN)
        self._position = os.fstat(self._fd).st_size
        self._room = max(0, cap_bytes // 2 - self._position)
        self._tail: list[int] = []
        """Offsets of the segments after the first."""
        self._tail_bytes = cap_bytes - cap_bytes // 2
        self._segment_bytes = max(1, self._tail_bytes // 2)

    def write(self, content: bytes) -> None:
        while content:
            try:
                written = os.write(self._fd, content[: self._room]) if self._room else self._begin_segment(content)
            except OSError:
                # A full disk or quota, or a failing device. Later output begins a new segment, if there is room again.
                os.fchmod(self._fd, SEALED)
                self._position += len(content)
                self._room = 0
                return
            self._position += written
            self._room -= written
            content = content[written:]

    def _begin_segment(self, content: bytes) -> int:
        """Write the beginning of the content to a new segment, and return how many bytes were written."""
        while self._tail and self._position - self._tail[0] + self._segment_bytes > self._tail_bytes:
            os.unlink(segment_path(self._path, self._tail.pop(0)))
        path = segment_path(self._path, self._position)
        # A task that has put something there itself, such as a named pipe, must not make its supervisor wait.
        fd = os.open(path, _WRITE | os.O_EXCL, _OPEN)
        try:
            written = os.write(fd, content[: self._segment_bytes])
        except OSError:
            os.close(fd)
            os.unlink(path)
            raise
        os.close(self._fd)
        self._fd, self._room = fd, self._segment_bytes
        self._tail.append(self._position)
        return written

    def close(self) -> None:
        os.close(self._fd)


def segment_path(path: str, offset: int) -> str:
    return f"{path}.{offset}"
