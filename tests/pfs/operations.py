"""Random file operations, and what came of them: the same for a plain directory, for the vfs, and for a real mount.

An operation is a value. ``apply`` does it on anything that looks like ``os`` and gives back an outcome that can be
compared: a value or an errno. Open files are kept in numbered places, so that one operation can open and another, much
later, read. Links always point nowhere: where they lead is the kernel's business, not the filesystem's.
"""

from __future__ import annotations

import errno
import os
import stat
from dataclasses import dataclass, fields
from typing import Any, Protocol

from hypothesis import strategies as st

PLACES = 3
"""Files that can be open at a time."""


@dataclass(frozen=True)
class Look:
    """What is compared of a file's attributes. Times and sizes of directories are everybody's own."""

    kind: int
    mode: int
    size: int


class OsLike(Protocol):
    holds_links: bool
    holds_modes: bool

    def open(self, path: str, flags: int, mode: int) -> int: ...
    def close(self, fd: int) -> None: ...
    def pread(self, fd: int, size: int, start: int) -> bytes: ...
    def pwrite(self, fd: int, data: bytes, start: int) -> int: ...
    def write(self, fd: int, data: bytes) -> int: ...
    def ftruncate(self, fd: int, size: int) -> None: ...
    def fsync(self, fd: int) -> None: ...
    def fstat(self, fd: int) -> Look: ...
    def stat(self, path: str) -> Look: ...
    def truncate(self, path: str, size: int) -> None: ...
    def listdir(self, path: str) -> list[str]: ...
    def mkdir(self, path: str, mode: int) -> None: ...
    def rmdir(self, path: str) -> None: ...
    def unlink(self, path: str) -> None: ...
    def rename(self, old: str, new: str) -> None: ...
    def symlink(self, target: str, path: str) -> None: ...
    def readlink(self, path: str) -> str: ...
    def chmod(self, path: str, mode: int) -> None: ...
    def utime(self, path: str, modified_ns: int) -> None: ...
    def modified(self, path: str) -> int: ...


class RealDirectory:
    """A plain directory, through real system calls."""

    holds_links = True
    holds_modes = True

    def __init__(self, root: str) -> None:
        self._root = root

    def _at(self, path: str) -> str:
        return f"{self._root}/{path}" if path else self._root

    def open(self, path: str, flags: int, mode: int) -> int:
        return os.open(self._at(path), flags | os.O_NOFOLLOW | os.O_CLOEXEC, mode)

    def close(self, fd: int) -> None:
        os.close(fd)

    def pread(self, fd: int, size: int, start: int) -> bytes:
        return os.pread(fd, size, start)

    def pwrite(self, fd: int, data: bytes, start: int) -> int:
        return os.pwrite(fd, data, start)

    def write(self, fd: int, data: bytes) -> int:
        return os.write(fd, data)

    def ftruncate(self, fd: int, size: int) -> None:
        os.ftruncate(fd, size)

    def fsync(self, fd: int) -> None:
        os.fsync(fd)

    def fstat(self, fd: int) -> Look:
        return look(os.fstat(fd))

    def stat(self, path: str) -> Look:
        return look(os.lstat(self._at(path)))

    def truncate(self, path: str, size: int) -> None:
        os.truncate(self._at(path), size)

    def listdir(self, path: str) -> list[str]:
        return sorted(os.listdir(self._at(path)))

    def mkdir(self, path: str, mode: int) -> None:
        os.mkdir(self._at(path), mode)

    def rmdir(self, path: str) -> None:
        os.rmdir(self._at(path))

    def unlink(self, path: str) -> None:
        os.unlink(self._at(path))

    def rename(self, old: str, new: str) -> None:
        os.rename(self._at(old), self._at(new))

    def symlink(self, target: str, path: str) -> None:
        os.symlink(target, self._at(path))

    def readlink(self, path: str) -> str:
        return os.readlink(self._at(path))

    def chmod(self, path: str, mode: int) -> None:
        os.chmod(self._at(path), mode)

    def utime(self, path: str, modified_ns: int) -> None:
        os.utime(self._at(path), ns=(modified_ns, modified_ns))

    def modified(self, path: str) -> int:
        return os.lstat(self._at(path)).st_mtime_ns


def look(status: os.stat_result) -> Look:
    size = 0 if stat.S_ISDIR(status.st_mode) else status.st_size
    mode = 0 if stat.S_ISLNK(status.st_mode) else stat.S_IMODE(status.st_mode)
    return Look(stat.S_IFMT(status.st_mode), mode, size)


class Op:
    """What is done; ``run`` does it and returns what is compared."""

    def run(self, on: OsLike, places: dict[int, int]) -> Any:
        raise NotImplementedError


@dataclass(frozen=True)
class Open(Op):
    place: int
    path: str
    flags: int
    mode: int = 0o644

    def run(self, on: OsLike, places: dict[int, int]) -> Any:
        if self.place in places:
            on.close(places.pop(self.place))
        places[self.place] = on.open(self.path, self.flags, self.mode)


@dataclass(frozen=True)
class OnPlace(Op):
    place: int

    def run(self, on: OsLike, places: dict[int, int]) -> Any:
        if self.place not in places:
            return "nothing open"
        return self.on_fd(on, places)

    def on_fd(self, on: OsLike, places: dict[int, int]) -> Any:
        raise NotImplementedError


@dataclass(frozen=True)
class Close(OnPlace):
    def on_fd(self, on: OsLike, places: dict[int, int]) -> Any:
        on.close(places.pop(self.place))


@dataclass(frozen=True)
class Read(OnPlace):
    start: int
    size: int

    def on_fd(self, on: OsLike, places: dict[int, int]) -> Any:
        return on.pread(places[self.place], self.size, self.start)


@dataclass(frozen=True)
class Write(OnPlace):
    start: int
    data: bytes

    def on_fd(self, on: OsLike, places: dict[int, int]) -> Any:
        return on.pwrite(places[self.place], self.data, self.start)


@dataclass(frozen=True)
class Append(OnPlace):
    """To a file opened for appending only: elsewhere the outcome depends on where the file pointer is."""

    data: bytes

    def on_fd(self, on: OsLike, places: dict[int, int]) -> Any:
        return on.write(places[self.place], self.data)


@dataclass(frozen=True)
class FTruncate(OnPlace):
    size: int

    def on_fd(self, on: OsLike, places: dict[int, int]) -> Any:
        return on.ftruncate(places[self.place], self.size)


@dataclass(frozen=True)
class FSync(OnPlace):
    def on_fd(self, on: OsLike, places: dict[int, int]) -> Any:
        return on.fsync(places[self.place])


@dataclass(frozen=True)
class FStat(OnPlace):
    def on_fd(self, on: OsLike, places: dict[int, int]) -> Any:
        return _shown(on, on.fstat(places[self.place]))


@dataclass(frozen=True)
class Stat(Op):
    path: str

    def run(self, on: OsLike, places: dict[int, int]) -> Any:
        return _shown(on, on.stat(self.path))


@dataclass(frozen=True)
class Truncate(Op):
    path: str
    size: int

    def run(self, on: OsLike, places: dict[int, int]) -> Any:
        on.truncate(self.path, self.size)


@dataclass(frozen=True)
class ListDir(Op):
    path: str

    def run(self, on: OsLike, places: dict[int, int]) -> Any:
        return on.listdir(self.path)


@dataclass(frozen=True)
class MkDir(Op):
    path: str
    mode: int = 0o755

    def run(self, on: OsLike, places: dict[int, int]) -> Any:
        on.mkdir(self.path, self.mode)


@dataclass(frozen=True)
class RmDir(Op):
    path: str

    def run(self, on: OsLike, places: dict[int, int]) -> Any:
        on.rmdir(self.path)


@dataclass(frozen=True)
class Unlink(Op):
    path: str

    def run(self, on: OsLike, places: dict[int, int]) -> Any:
        on.unlink(self.path)


@dataclass(frozen=True)
class Rename(Op):
    old: str
    new: str

    def run(self, on: OsLike, places: dict[int, int]) -> Any:
        on.rename(self.old, self.new)


@dataclass(frozen=True)
class Symlink(Op):
    path: str

    def run(self, on: OsLike, places: dict[int, int]) -> Any:
        on.symlink("nowhere/at all", self.path)


@dataclass(frozen=True)
class ReadLink(Op):
    path: str

    def run(self, on: OsLike, places: dict[int, int]) -> Any:
        return on.readlink(self.path)


@dataclass(frozen=True)
class ChMod(Op):
    path: str
    mode: int

    def run(self, on: OsLike, places: dict[int, int]) -> Any:
        on.chmod(self.path, self.mode)


@dataclass(frozen=True)
class UTime(Op):
    """Set the time of a file and see it."""

    path: str
    modified_ns: int

    def run(self, on: OsLike, places: dict[int, int]) -> Any:
        on.utime(self.path, self.modified_ns)
        return on.modified(self.path)


def _shown(on: OsLike, seen: Look) -> Look:
    return seen if on.holds_modes else Look(seen.kind, 0, seen.size)


def apply(on: OsLike, op: Op, places: dict[int, int]) -> tuple[str, Any]:
    try:
        return "ok", op.run(on, places)
    except OSError as error:
        return "error", errno.errorcode.get(error.errno or 0, str(error))


def close_all(on: OsLike, places: dict[int, int]) -> None:
    for place in list(places):
        on.close(places.pop(place))


def tree_of(on: OsLike, path: str = "") -> dict[str, Any]:
    """Everything below a path, with content: what two filesystems are compared by in the end."""
    found: dict[str, Any] = {}
    for name in on.listdir(path):
        below = f"{path}/{name}" if path else name
        seen = on.stat(below)
        if stat.S_ISDIR(seen.kind):
            found[below] = "directory"
            found.update(tree_of(on, below))
        elif stat.S_ISLNK(seen.kind):
            found[below] = ("link", on.readlink(below))
        else:
            fd = on.open(below, os.O_RDONLY, 0)
            try:
                content = on.pread(fd, seen.size + 1, 0)
            finally:
                on.close(fd)
            found[below] = (content, seen.mode if on.holds_modes else None)
    return found


FILES = ("a", "b", "d/a")
"""Mostly files, few of them: what is interesting happens when two operations meet."""
PATHS = (*FILES, "d", "e", "d/b", "d/e", "e/a", "d/e/a")
paths = st.one_of(st.sampled_from(FILES), st.sampled_from(PATHS))
directories = st.sampled_from(["", "d", "e", "d/e", "a"])
places = st.integers(0, PLACES - 1)
starts = st.integers(0, 40)
contents = st.binary(min_size=1, max_size=30)
ways = st.sampled_from(
    [
        os.O_RDONLY,
        os.O_WRONLY,
        os.O_RDWR,
        os.O_RDWR | os.O_CREAT,
        os.O_WRONLY | os.O_CREAT | os.O_TRUNC,
        os.O_RDWR | os.O_CREAT | os.O_EXCL,
        os.O_RDWR | os.O_TRUNC,
    ]
)


_BUILT: dict[type[Op], tuple[int, st.SearchStrategy[Op]]] = {
    # Mostly files that are opened, written and read; sometimes everything else.
    Open: (24, st.builds(Open, places, paths, ways)),
    Write: (16, st.builds(Write, places, starts, contents)),
    Read: (12, st.builds(Read, places, starts, st.integers(1, 60))),
    Close: (6, st.builds(Close, places)),
    MkDir: (8, st.builds(MkDir, st.sampled_from(["d", "e", "d/e", "a"]))),
    Rename: (8, st.builds(Rename, paths, paths)),
    Unlink: (5, st.builds(Unlink, paths)),
    RmDir: (2, st.builds(RmDir, paths)),
    Stat: (4, st.builds(Stat, paths)),
    ListDir: (3, st.builds(ListDir, directories)),
    FStat: (3, st.builds(FStat, places)),
    FTruncate: (3, st.builds(FTruncate, places, st.integers(0, 50))),
    Truncate: (3, st.builds(Truncate, paths, st.integers(0, 50))),
    FSync: (2, st.builds(FSync, places)),
    ChMod: (2, st.builds(ChMod, paths, st.sampled_from([0o600, 0o644, 0o755]))),
    UTime: (2, st.builds(UTime, paths, st.integers(1_000_000_000, 1_500_000_000).map(lambda at: at * 10**9))),
    ReadLink: (1, st.builds(ReadLink, paths)),
    Symlink: (1, st.builds(Symlink, paths)),
}
_WEIGHTED = [kind for kind, (weight, _) in _BUILT.items() for _ in range(weight)]


@st.composite
def operations(draw: st.DrawFn) -> Op:
    return draw(_BUILT[draw(st.sampled_from(_WEIGHTED))][1])


def described(op: Op) -> str:
    """For the log of a failing test."""
    values = ", ".join(f"{field.name}={getattr(op, field.name)!r}" for field in fields(op))  # type: ignore[arg-type]
    return f"{type(op).__name__}({values})"
