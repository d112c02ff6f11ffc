"""What a file looks like to the kernel and to people: no FUSE structure, no object store."""

from __future__ import annotations

import stat
from dataclasses import dataclass
from enum import Enum, auto

ROOT_NODE = 1


@dataclass(frozen=True, slots=True)
class Attr:
    ino: int
    mode: int
    """Kind and permission bits, as in ``st_mode``."""
    size: int
    mtime_ns: int
    ctime_ns: int
    atime_ns: int
    uid: int
    gid: int
    nlink: int = 1
    blocks: int = 0
    """Of 512 bytes."""

    @property
    def is_directory(self) -> bool:
        return stat.S_ISDIR(self.mode)


@dataclass(frozen=True, slots=True)
class Entry:
    """The answer to looking a name up. ``node`` 0 with a time to live is a remembered absence."""

    node: int
    attr: Attr
    entry_ttl: float
    attr_ttl: float


class OpenMode(Enum):
    """How the kernel reads an open file. One inode has one mode at a time."""

    PASSTHROUGH = auto()
    """The kernel reads and writes the backing file itself."""
    DIRECT = auto()
    """Every read comes to us and no page is kept: files that are not whole yet, so that they may become passthrough."""
    CACHED = auto()
    """Ordinary: reads come to us once and pages are kept. Where there is no passthrough."""


@dataclass(frozen=True, slots=True)
class Opened:
    handle: int
    mode: OpenMode
    backing: str = ""
    """Path of the backing file (PASSTHROUGH)."""
    keep_pages: bool = False
    """The content is what it was when the kernel last had it open (CACHED)."""
    needs_flush: bool = True
    """False: nothing can be dirty, the kernel may spare us the FLUSH at close."""


@dataclass(frozen=True, slots=True)
class Caller:
    uid: int
    gid: int
    pid: int
    umask: int = 0


@dataclass(frozen=True, slots=True)
class FileRange:
    """Bytes to answer with, still in a file: ``fd`` stays open until the answer is written."""

    fd: int
    start: int
    size: int


@dataclass(frozen=True, slots=True)
class DirectoryItem:
    name: str
    attr: Attr
    node: int = 0
    """Set when the kernel is to know the entry at once (readdirplus); counted as a lookup."""


@dataclass(frozen=True, slots=True)
class Wish:
    """Attributes to set; None leaves as it is."""

    mode: int | None = None
    uid: int | None = None
    gid: int | None = None
    size: int | None = None
    atime_ns: int | None = None
    mtime_ns: int | None = None
