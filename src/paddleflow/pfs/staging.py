"""Staged files: content that was written here and is not, or may not be, in the store yet.

A file that is opened for writing gets a whole local copy of its own, and a small JSON beside it that says whose content
it is and on which version it is based, in one line for each time that changed: the last whole one holds. The JSON comes
after the content and goes before it, so a data file without one is nobody's. With both, another process goes on where
this one died, and the next mount after a reboot uploads what a machine took down with it, or sets it aside under
``conflicts/`` when the store has moved on.

Whether a file changed since it was uploaded is read off its size and modification time. The clock that stamps files may
be coarse (milliseconds), so two writes can leave the same time; therefore a fresh time is *sealed* before an upload:
set one nanosecond back, to a value no later write can give it again.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from secrets import token_hex
from typing import Any, Final
from urllib.parse import quote

from paddleflow.domain.errors import Stale
from paddleflow.pfs.backstage import ObjectVersion

_FICLONE: Final = 0x40049409
_SEAL_YOUNGER_THAN_NS: Final = 50_000_000
_COPY_AT_ONCE: Final = 64 << 20
_TOLD: Final = ("node", "path", "base", "is_stored", "uploaded", "is_orphan", "mode", "uid", "gid", "is_time_set")
_LONGEST_HISTORY: Final = 64 << 10
"""Bytes of lines that are no longer true, before the last is put in place of all."""


@dataclass(slots=True, kw_only=True)
class Staged:
    """One staged file. What another process must know of it is in its JSON."""

    data: str
    """Where the content is."""
    node: int
    path: str
    """Where in the mount it belongs."""
    base: ObjectVersion | None = None
    """What the store had when this content was begun or last uploaded."""
    is_stored: bool = False
    """The store has something under this path. A new file is not stored before its first upload."""
    uploaded: tuple[int, int] | None = None
    """Time and size of what was uploaded; None: nothing was, or it is known to differ."""
    is_orphan: bool = False
    """Deleted while open: it is never uploaded and goes with its last handle."""
    mode: int | None = None
    """Permission bits and owner to go with the next upload; None leaves them to the store."""
    uid: int | None = None
    gid: int | None = None
    is_time_set: bool = False
    """Somebody set its times (``cp -p``, ``tar``): a store that holds times is to have these."""
    is_entered: bool = field(default=False, compare=False)
    """Its names in the folder are known to survive the machine."""
    fd: int = field(default=-1, compare=False)

    def descriptor(self) -> int:
        if self.fd < 0:
            self.fd = os.open(self.data, os.O_RDWR | os.O_CLOEXEC)
        return self.fd

    def stat(self) -> os.stat_result:
        return os.fstat(self.descriptor())

    def is_dirty(self) -> bool:
        if self.uploaded is None:
            return True
        now = self.stat()
        return (now.st_mtime_ns, now.st_size) != self.uploaded

    def seal(self) -> tuple[int, int]:
        """Time and size as they are now, such that any write from now on changes them."""
        now = self.stat()
        modified = now.st_mtime_ns
        if time.time_ns() - modified < _SEAL_YOUNGER_THAN_NS:
            modified -= 1
            os.utime(self.descriptor(), ns=(now.st_atime_ns, modified))
        return modified, now.st_size

    def set_times(self, accessed_ns: int | None, modified_ns: int | None) -> None:
        """Without making a clean file look written, or a written one clean."""
        was_dirty = self.is_dirty()
        now = self.stat()
        modified = now.st_mtime_ns if modified_ns is None else modified_ns
        os.utime(self.descriptor(), ns=(now.st_atime_ns if accessed_ns is None else accessed_ns, modified))
        self.uploaded = None if was_dirty else (modified, now.st_size)
        self.is_time_set = self.is_time_set or modified_ns is not None


class Staging:
    """The folder of staged files of one mount."""

    def __init__(self, state_dir: str) -> None:
        self._folder = f"{state_dir}/staging"
        self.conflicts = f"{state_dir}/conflicts"
        os.makedirs(self._folder, mode=0o700, exist_ok=True)

    def room(self) -> str:
        """A new empty data file, nobody's until it is taken."""
        path = f"{self._folder}/{token_hex(8)}.data"
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        return path

    def save(self, staged: Staged, *, is_lasting: bool = False) -> None:
        """From here on a successor knows it so. ``is_lasting``: it and its content survive the machine as well, which
        waits for the disk."""
        path, line = _json_of(staged.data), _line_of(staged)
        # Appended, never replaced: a new file and a rename for each of them would cost more than all else. A lasting
        # save runs beside the loop, which may save the same file meanwhile: each line goes in whole.
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            _write_line(fd, line)
            length = os.lseek(fd, 0, os.SEEK_CUR)
            if is_lasting:
                self._make_last(staged, fd)
        finally:
            os.close(fd)
        if length > _LONGEST_HISTORY:
            self._begin_anew(path, line, is_lasting=is_lasting)

    def _make_last(self, staged: Staged, note: int) -> None:
        # Both are under way before either is waited for, so that the disk often takes them in one go.
        os.posix_fadvise(note, 0, 0, os.POSIX_FADV_DONTNEED)
        os.fdatasync(staged.descriptor())
        os.fsync(note)
        if not staged.is_entered:
            self._sync_folder()
            staged.is_entered = True

    def _begin_anew(self, path: str, line: bytes, *, is_lasting: bool) -> None:
        """The last line alone, in the place of a long history."""
        fresh = f"{path}.{token_hex(4)}.new"
        fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            _write_line(fd, line)
            if is_lasting:
                os.fsync(fd)
        finally:
            os.close(fd)
        os.replace(fresh, path)
        if is_lasting:
            self._sync_folder()

    def discard(self, staged: Staged) -> None:
        _unlink(_json_of(staged.data))
        _unlink(staged.data)
        if staged.fd >= 0:
            os.close(staged.fd)
            staged.fd = -1

    def set_aside(self, staged: Staged) -> str:
        """Out of the way, for its owner to look at: the store has something newer under this path."""
        os.makedirs(self.conflicts, mode=0o700, exist_ok=True)
        # A name has 255 bytes at most; the path's end says most about it.
        name = quote(os.fsencode(staged.path), safe="")[-200:]
        target = f"{self.conflicts}/{name}.{token_hex(4)}"
        os.replace(staged.data, target)
        self.discard(staged)
        return target

    def load(self) -> Iterator[Staged]:
        """What earlier processes left here. Data files that nobody speaks for are removed."""
        names = set(os.listdir(self._folder))
        for name in sorted(names):
            path = f"{self._folder}/{name}"
            if name.endswith(".new") or (name.endswith(".data") and _json_of(name) not in names):
                _unlink(path)
            elif name.endswith(".json"):
                data = f"{path.removesuffix('.json')}.data"
                if f"{name.removesuffix('.json')}.data" not in names:
                    _unlink(path)  # its content was removed first, or set aside
                    continue
                with open(path, "rb") as file:
                    record = _last_of(file.read())
                if record is not None:
                    yield _parse(record, data)
                else:
                    self._set_aside_nameless(path, data)

    def _set_aside_nameless(self, path: str, data: str) -> None:
        """A machine went down before its disk had the name. What was never closed was never promised, but it may be
        all there is."""
        nameless = Staged(data=data, node=0, path="nameless")
        if os.path.getsize(data):
            self.set_aside(nameless)
        else:
            self.discard(nameless)

    def _sync_folder(self) -> None:
        fd = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def copy_content(source: str, target: str, size: int) -> None:
    """The first ``size`` bytes of one file into another, shared on disk where the filesystem can. Stale when the source
    is gone or too short: a cached file was evicted meanwhile."""
    try:
        reading = os.open(source, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise Stale(f"{source} is gone from the cache") from error
    try:
        writing = os.open(target, os.O_WRONLY | os.O_CLOEXEC)
        try:
            if _is_cloned(reading, writing):
                os.ftruncate(writing, min(size, os.fstat(writing).st_size))
                copied = os.fstat(writing).st_size
            else:
                copied = _copy(reading, writing, size)
        finally:
            os.close(writing)
    finally:
        os.close(reading)
    if copied != size:
        raise Stale(f"{source} has only {copied} of {size} bytes")


def _is_cloned(reading: int, writing: int) -> bool:
    try:
        fcntl.ioctl(writing, _FICLONE, reading)
    except OSError:
        return False  # most filesystems cannot; then it is copied
    return True


def _copy(reading: int, writing: int, size: int) -> int:
    copied = 0
    while copied < size:
        # Unlike copy_file_range this also goes from one kind of filesystem (memory) to another (disk).
        got = os.sendfile(writing, reading, copied, min(size - copied, _COPY_AT_ONCE))
        if not got:
            break
        copied += got
    return copied


def _line_of(staged: Staged) -> bytes:
    record = {name: getattr(staged, name) for name in _TOLD}
    record["base"] = None if staged.base is None else asdict(staged.base)
    return b"\n" + json.dumps(record).encode("ascii")


def _write_line(fd: int, line: bytes) -> None:
    if os.write(fd, line) != len(line):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))  # half a line: the one before it holds


def _last_of(content: bytes) -> dict[str, Any] | None:
    """The last whole record. Each begins a line of its own, so that one cut off by a full disk spoils no other."""
    for line in reversed(content.splitlines()):
        with suppress(ValueError):
            record = json.loads(line)
            if isinstance(record, dict):
                return record
    return None


def _json_of(data: str) -> str:
    return f"{data.removesuffix('.data')}.json"


def _unlink(path: str) -> None:
    with suppress(FileNotFoundError):  # a predecessor may have died in between
        os.unlink(path)


def _parse(record: dict[str, Any], data: str) -> Staged:
    base = record.pop("base")
    uploaded = record.pop("uploaded")
    return Staged(
        data=data,
        base=None if base is None else ObjectVersion(**base),
        uploaded=None if uploaded is None else (uploaded[0], uploaded[1]),
        **record,
    )
