"""The log of a task, read from its segments while the supervisor writes and deletes them. ``logs.py`` explains them."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from itertools import pairwise

from paddleflow.adapters.local.logs import SEALED, segment_path
from paddleflow.ports.runtime import LogChunk

# A task can replace its log by a named pipe: opening it must not block the reader.
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


def read_log(path: str, start: int, limit: int) -> LogChunk:
    """As ``Runtime.read_log``. A log that does not exist yet is empty."""
    while True:
        try:
            return _read(path, start, limit)
        except FileNotFoundError:
            # A segment was deleted between the listing and the opening: the next listing no longer has it.
            if not os.path.lexists(path):
                return LogChunk(content=b"", start=0, size=0)


def _read(path: str, start: int, limit: int) -> LogChunk:
    segments = list(_segments(path))
    size = segments[-1].end
    gaps = tuple((one.end, other.start) for one, other in pairwise(segments) if one.end < other.start)
    position = max(0, size + start) if start < 0 else min(start, size)
    position = next((end for begin, end in gaps if begin <= position < end), position)
    content = b""
    for segment in segments:
        at = position + len(content)
        if segment.start <= at < segment.end and len(content) < limit:
            content += segment.read(at, limit - len(content))
    return LogChunk(content=content, start=position, size=size, gaps=gaps, is_cut_off=segments[-1].is_sealed)


class _Segment:
    __slots__ = ("_path", "end", "is_sealed", "start")

    def __init__(self, path: str, start: int) -> None:
        status = os.lstat(path)
        self._path = path
        self.start = start
        self.end = start + (status.st_size if stat.S_ISREG(status.st_mode) else 0)
        self.is_sealed = stat.S_IMODE(status.st_mode) == SEALED

    def read(self, position: int, limit: int) -> bytes:
        fd = os.open(self._path, _READ)
        try:
            return os.pread(fd, min(limit, self.end - position), position - self.start)
        finally:
            os.close(fd)


def _segments(path: str) -> Iterator[_Segment]:
    """The segments there are now, in order. Listed before they are measured: one that is not the last is then complete,
    and what its supervisor writes meanwhile is not taken for a gap."""
    directory, name = os.path.split(path)
    suffixes = [entry[len(name) + 1 :] for entry in os.listdir(directory) if entry.startswith(f"{name}.")]
    yield _Segment(path, 0)
    for offset in sorted(int(suffix) for suffix in suffixes if suffix.isascii() and suffix.isdigit()):
        yield _Segment(segment_path(path, offset), offset)
