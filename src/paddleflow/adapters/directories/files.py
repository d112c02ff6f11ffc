"""Files on filesystems of type ``local``: directories of this host, reached by descriptors.

Users write into these directories while the platform works in them, so no path is ever checked as text and then used:
each component is opened by itself, relative to the descriptor of the one before, and never through a link. What is
swapped for a link in between is refused by the kernel. A tree is gone through with one descriptor at a time, down by
name and up by ``..``, and going up must lead to the directory it came from; so depth costs neither descriptors nor
stack, and a directory that was moved elsewhere ends the call.

Refuses ``..``, absolute paths and links on the way, and anything that is neither file nor directory (a pipe or a
device is not even opened).
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum, auto
from pathlib import Path

from paddleflow.adapters.directories.digests import RememberedDigests, digest_file
from paddleflow.domain.errors import (
    DiskFull,
    Invalid,
    PaddleFlowError,
    TooLarge,
    Unavailable,
    invalid_field,
    not_found,
)
from paddleflow.domain.filesystems import Filesystem
from paddleflow.domain.runs import RUNS_DIRECTORY
from paddleflow.ports.files import FileEntry, Wanted, always, shown

_PASS = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
"""To go through a directory: not even the right to list it is needed."""
_LIST = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_CHUNK = 1024 * 1024
_REMOVE_TRIES = 5
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class DirectoryFiles:
    """``ports.files.Files``. One object for all filesystems; any thread may use it."""

    def __init__(self, *, now_ns: Callable[[], int] = time.time_ns) -> None:
        self._digests = RememberedDigests(now_ns)

    def read(self, fs: Filesystem, path: str, limit: int) -> bytes:
        with _opened(fs, path) as fd:
            size = os.fstat(fd).st_size
            content = b"" if size > limit else _read_up_to(fd, limit + 1)
            if size > limit or len(content) > limit:
                raise TooLarge(f"{_named(fs, path)} has more than {limit} bytes", details={"limit": limit})
            return content

    def read_range(self, fs: Filesystem, path: str, start: int, limit: int) -> bytes:
        for field, number in (("start", start), ("limit", limit)):
            if number < 0:
                raise invalid_field(field, f"[{number}] must not be negative")
        with _opened(fs, path) as fd:
            if start >= os.fstat(fd).st_size:
                return b""
            os.lseek(fd, start, os.SEEK_SET)
            return _read_up_to(fd, limit)

    def entry(self, fs: Filesystem, path: str) -> FileEntry:
        parts = _parts(path)
        with _in_our_words(fs, path), _parent(fs, parts) as (parent, name):
            return _entry(parts, _look_at(parent, name))

    def walk(self, fs: Filesystem, path: str) -> Iterator[FileEntry]:
        parts = _parts(path)
        with _in_our_words(fs, path), _parent(fs, parts) as (parent, name):
            found = _look_at(parent, name)
            yield _entry(parts, found)
            if stat.S_ISDIR(found.st_mode):
                for visit in _visits(fs, parent, name, parts):
                    if visit.step is not _Step.LEFT:
                        yield _entry(visit.parts, visit.found)

    def digest(self, fs: Filesystem, path: str, is_wanted: Wanted = always) -> str:
        parts = _parts(path)
        with _in_our_words(fs, path), _parent(fs, parts) as (parent, name):
            found = _look_at(parent, name)
            if stat.S_ISDIR(found.st_mode):
                return self._digest_tree(fs, parent, name, parts, is_wanted).hex()
            return self._digest_leaf(fs, parent, parts, found, is_wanted)[1].hex()

    def _digest_tree(self, fs: Filesystem, parent: int, name: str, parts: tuple[str, ...], is_wanted: Wanted) -> bytes:
        """Each directory is summed up while it is gone through: children come sorted, whole before the next."""
        sums = [hashlib.sha256(b"directory\0")]
        for visit in _visits(fs, parent, name, parts, without=RUNS_DIRECTORY):
            if visit.step is _Step.ENTERED:
                sums.append(hashlib.sha256(b"directory\0"))
                continue
            if visit.step is _Step.LEFT:
                kind, digest = b"d", sums.pop().digest()
            else:
                with _in_our_words(fs, "/".join(visit.parts)):
                    kind, digest = self._digest_leaf(fs, visit.parent, visit.parts, visit.found, is_wanted)
            child = os.fsencode(visit.parts[-1])
            sums[-1].update(b"%b%d:%b%b" % (kind, len(child), child, digest))
        return sums[0].digest()

    def _digest_leaf(
        self, fs: Filesystem, parent: int, parts: tuple[str, ...], found: os.stat_result, is_wanted: Wanted
    ) -> tuple[bytes, bytes]:
        """What it is, in a letter, and its digest."""
        if stat.S_ISLNK(found.st_mode):
            return b"l", hashlib.sha256(b"link\0" + os.fsencode(os.readlink(parts[-1], dir_fd=parent))).digest()
        known = self._digests.find(found)
        if known is None:
            fd = _open_file(fs, parent, parts, found)
            try:
                began = os.fstat(fd)
                known = digest_file(fd, is_wanted)
                self._digests.remember(began, os.fstat(fd), known)
            finally:
                os.close(fd)
        return b"f", known

    def make_way(self, fs: Filesystem, path: str) -> None:
        parts = _inner_parts(path)
        with _in_our_words(fs, path), _parent(fs, parts, make=True) as (parent, name):
            _remove(fs, parent, name, parts, always)

    def remove(self, fs: Filesystem, path: str, is_wanted: Wanted = always) -> None:
        parts = _inner_parts(path)
        with _in_our_words(fs, path):
            try:
                with _parent(fs, parts) as (parent, name):
                    _remove(fs, parent, name, parts, is_wanted)
            except FileNotFoundError:
                # Not even its parent is there: so much the better.
                return


# Paths and errors.


def _parts(path: str) -> tuple[str, ...]:
    """The components of a path; empty for the root itself."""
    if "\0" in path:
        raise invalid_field("path", "it has a NUL character in it")
    if path.startswith("/"):
        raise invalid_field("path", f"[{path}] begins with '/': give it relative to the root of the filesystem")
    parts = tuple(part for part in path.split("/") if part not in ("", "."))
    if ".." in parts:
        raise invalid_field("path", f"[{path}] has '..' in it")
    try:
        os.fsencode(path)
    except UnicodeEncodeError as error:
        raise invalid_field("path", f"{path!r} cannot be the name of a file") from error
    return parts


def _inner_parts(path: str) -> tuple[str, ...]:
    parts = _parts(path)
    if not parts:
        raise invalid_field("path", "it is the root of the filesystem, which stays")
    return parts


def _named(fs: Filesystem, path: str) -> str:
    return f"[{shown(path) or '/'}] on filesystem [{fs.name}]"


@contextmanager
def _in_our_words(fs: Filesystem, path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _translated(error, fs, path) from error


def _translated(error: OSError, fs: Filesystem, path: str) -> PaddleFlowError:
    where = _named(fs, path)
    match error.errno:
        case errno.ENOENT:
            return not_found("file", shown(path))
        case errno.ENOTDIR | errno.ELOOP:
            return Invalid(f"{where} leads through something that is not a directory; links are not followed")
        case errno.ENAMETOOLONG:
            return Invalid(f"{where} is too long a name for its filesystem")
        case errno.EACCES | errno.EPERM:
            return Invalid(f"the server has no right to use {where}: give the user it runs as access to it")
        case errno.EROFS:
            return Invalid(f"{where} is read-only")
        case errno.ENOSPC | errno.EDQUOT:
            return DiskFull(f"there is no room for {where}")
        case _:
            return Unavailable(f"{where} cannot be used: {error.strerror}")


def _changed(fs: Filesystem, parts: tuple[str, ...]) -> Unavailable:
    return Unavailable(f"{_named(fs, '/'.join(parts))} was changed while it was gone through; try again")


# Descriptors.


def _open_root(fs: Filesystem) -> int:
    if fs.type != "local":
        raise Invalid(f"filesystem [{fs.name}] is of type [{fs.type}]; only files of type [local] can be used here")
    if not Path(fs.sub_path).is_absolute() or "\0" in fs.sub_path:
        raise Invalid(f"filesystem [{fs.name}] has the root [{fs.sub_path}], which is not an absolute path")
    try:
        # The root was chosen by whoever made the filesystem, and may itself be a link.
        return os.open(fs.sub_path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise Unavailable(
            f"the root [{fs.sub_path}] of filesystem [{fs.name}] cannot be opened ({error.strerror}): "
            "make or mount that directory on the server, then try again"
        ) from error


@contextmanager
def _parent(fs: Filesystem, parts: tuple[str, ...], *, make: bool = False) -> Iterator[tuple[int, str]]:
    """The directory that holds the last component, and that component; for the root: itself and ``.``."""
    fd = _open_root(fs)
    try:
        for part in parts[:-1]:
            below = _open_below(fd, part, make=make)
            os.close(fd)
            fd = below
        yield fd, parts[-1] if parts else "."
    finally:
        os.close(fd)


def _open_below(fd: int, part: str, *, make: bool) -> int:
    try:
        return os.open(part, _PASS, dir_fd=fd)
    except FileNotFoundError:
        if not make:
            raise
    # Somebody else may make it just now, which is as good; if it is not a directory, opening it says so.
    with suppress(FileExistsError):
        os.mkdir(part, dir_fd=fd)
    return os.open(part, _PASS, dir_fd=fd)


def _look_at(parent: int, name: str) -> os.stat_result:
    return os.stat(name, dir_fd=parent, follow_symlinks=False)


@contextmanager
def _opened(fs: Filesystem, path: str) -> Iterator[int]:
    """A regular file, open for reading."""
    parts = _parts(path)
    with _in_our_words(fs, path), _parent(fs, parts) as (parent, name):
        fd = _open_file(fs, parent, parts, _look_at(parent, name))
        try:
            yield fd
        finally:
            os.close(fd)


def _open_file(fs: Filesystem, parent: int, parts: tuple[str, ...], found: os.stat_result) -> int:
    """Looked at first, because opening a device may do something; and again, because it may be another one by now."""
    where = _named(fs, "/".join(parts))
    _must_be_a_file(where, found)
    fd = os.open(parts[-1], _READ, dir_fd=parent)
    try:
        _must_be_a_file(where, os.fstat(fd))
    except BaseException:
        os.close(fd)
        raise
    return fd


def _must_be_a_file(where: str, found: os.stat_result) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise Invalid(f"{where} is a directory, not a file")
    if stat.S_ISLNK(found.st_mode):
        raise Invalid(f"{where} is a symbolic link, which is not followed")
    if not stat.S_ISREG(found.st_mode):
        raise Invalid(f"{where} is neither a file nor a directory")


def _read_up_to(fd: int, limit: int) -> bytes:
    content = bytearray()
    while len(content) < limit:
        chunk = os.read(fd, min(_CHUNK, limit - len(content)))
        if not chunk:
            break
        content += chunk
    return bytes(content)


def _entry(parts: tuple[str, ...], found: os.stat_result) -> FileEntry:
    return FileEntry(
        path="/".join(parts),
        is_directory=stat.S_ISDIR(found.st_mode),
        is_link=stat.S_ISLNK(found.st_mode),
        is_special=not any(is_kind(found.st_mode) for is_kind in (stat.S_ISREG, stat.S_ISDIR, stat.S_ISLNK)),
        size=found.st_size if stat.S_ISREG(found.st_mode) else 0,
        modified_at=_moment(found.st_mtime_ns),
    )


def _moment(ns: int) -> datetime:
    """A file may claim a time that no calendar has."""
    try:
        return _EPOCH + timedelta(microseconds=ns // 1000)
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC) if ns > 0 else datetime.min.replace(tzinfo=UTC)


# Trees.


class _Step(Enum):
    LEAF = auto()
    """Anything but a directory."""
    ENTERED = auto()
    """A directory, before what it holds."""
    LEFT = auto()
    """A directory, after what it holds."""


@dataclass(frozen=True, slots=True)
class _Visit:
    step: _Step
    parent: int
    """Open on the directory that holds it, until the next visit."""
    parts: tuple[str, ...]
    found: os.stat_result


@dataclass(frozen=True, slots=True)
class _Level:
    parts: tuple[str, ...]
    found: os.stat_result
    names: Iterator[str]


def _visits(
    fs: Filesystem, parent: int, name: str, parts: tuple[str, ...], *, without: str = "", unlock: bool = False
) -> Iterator[_Visit]:
    """Everything below a directory, sorted by name, but for directories of the name ``without``. What has vanished
    since its directory was listed is passed over. ``unlock``: it is to be emptied, so take the right to do so."""
    fd = os.open(name, _LIST, dir_fd=parent)
    try:
        levels = [_level(fd, parts)]
        while True:
            level = levels[-1]
            child = next(level.names, None)
            if child is not None:
                below = (*level.parts, child)
                with _in_our_words(fs, "/".join(below)):
                    try:
                        found = _look_at(fd, child)
                    except FileNotFoundError:
                        continue
                if not stat.S_ISDIR(found.st_mode):
                    yield _Visit(_Step.LEAF, fd, below, found)
                    continue
                if child == without:
                    continue
                yield _Visit(_Step.ENTERED, fd, below, found)
                if unlock:
                    _unlock(fd, child, found)
                fd = _moved(fd, _go_down(fs, fd, below))
                levels.append(_level(fd, below))
                continue
            levels.pop()
            if not levels:
                return
            fd = _moved(fd, _go_up(fs, fd, levels[-1]))
            yield _Visit(_Step.LEFT, fd, level.parts, level.found)
    finally:
        os.close(fd)


def _unlock(parent: int, name: str, found: os.stat_result) -> None:
    """Programs leave directories behind that they have made read-only, which their owner may change. What is somebody
    else's, or has vanished, is left alone: opening it says so. By descriptor: the name may be a link by now."""
    if found.st_mode & stat.S_IRWXU == stat.S_IRWXU:
        return
    with suppress(OSError):
        fd = os.open(name, _PASS, dir_fd=parent)
        try:
            if os.path.samestat(os.fstat(fd), found):
                Path(f"/proc/self/fd/{fd}").chmod(stat.S_IRWXU)
        finally:
            os.close(fd)


def _level(fd: int, parts: tuple[str, ...]) -> _Level:
    return _Level(parts, os.fstat(fd), iter(sorted(os.listdir(fd))))


def _moved(old: int, new: int) -> int:
    os.close(old)
    return new


def _go_down(fs: Filesystem, fd: int, parts: tuple[str, ...]) -> int:
    with _in_our_words(fs, "/".join(parts)):
        try:
            return os.open(parts[-1], _LIST, dir_fd=fd)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise _changed(fs, parts) from error


def _go_up(fs: Filesystem, fd: int, level: _Level) -> int:
    """To the directory it came from, and to no other: this one may have been moved meanwhile."""
    with _in_our_words(fs, "/".join(level.parts)):
        above = os.open("..", _LIST, dir_fd=fd)
        if not os.path.samestat(os.fstat(above), level.found):
            os.close(above)
            raise _changed(fs, level.parts)
        return above


def _remove(fs: Filesystem, parent: int, name: str, parts: tuple[str, ...], is_wanted: Wanted) -> None:
    """Again, when somebody still writes into what is being removed; but not for ever."""
    for _ in range(_REMOVE_TRIES):
        if _remove_once(fs, parent, name, parts, is_wanted):
            return
    raise Unavailable(f"{_named(fs, '/'.join(parts))} cannot be removed: something keeps writing into it")


def _remove_once(fs: Filesystem, parent: int, name: str, parts: tuple[str, ...], is_wanted: Wanted) -> bool:
    """Is it gone?"""
    try:
        found = _look_at(parent, name)
    except FileNotFoundError:
        return True
    is_directory = stat.S_ISDIR(found.st_mode)
    if is_directory:
        _unlock(parent, name, found)
        for visit in _visits(fs, parent, name, parts, unlock=True):
            if not is_wanted():
                raise Unavailable(f"{_named(fs, '/'.join(parts))} was removed in part: nobody waits for the rest")
            if visit.step is not _Step.ENTERED:
                with _in_our_words(fs, "/".join(visit.parts)):
                    _take_out(visit.parent, visit.parts[-1], is_directory=visit.step is _Step.LEFT)
    return _take_out(parent, name, is_directory=is_directory)


def _take_out(parent: int, name: str, *, is_directory: bool) -> bool:
    """Is it gone? A directory that has got something new to hold is not; then neither are those above it."""
    try:
        if is_directory:
            os.rmdir(name, dir_fd=parent)
        else:
            os.unlink(name, dir_fd=parent)
    except FileNotFoundError:
        return True
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        return False
    return True
