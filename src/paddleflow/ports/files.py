"""Files: what the platform itself does with the filesystems of its users.

A path is relative to the filesystem's root and can never lead out of it: not by ``..``, not by a symbolic link, not by
one that appears while the call runs. Raises NotFound for what is not there, Invalid for what is there and is not what
was asked for (a directory where a file is read, a link), TooLarge over a limit, Unavailable or DiskFull for storage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, TypeAlias

from paddleflow.domain.filesystems import Filesystem

Wanted: TypeAlias = Callable[[], bool]
"""Asked now and then during long work: does anybody still wait for it?"""


def always() -> bool:
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEntry:
    path: str
    """Relative to the filesystem's root. Bytes that are no UTF-8 are surrogates, as everywhere in Python; before people
    or the wire see it, ``shown`` spells them out."""
    is_directory: bool
    is_link: bool = False
    is_special: bool = False
    """Neither file nor directory nor link: a pipe, a socket, a device. It is never opened."""
    size: int = 0
    modified_at: datetime


def shown(path: str) -> str:
    """A path that can be printed and sent: a byte that is no UTF-8 is written as ``\\xff``."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


class Files(Protocol):
    def read(self, fs: Filesystem, path: str, limit: int) -> bytes:
        """A whole file; TooLarge when it has more than ``limit`` bytes."""
        ...

    def read_range(self, fs: Filesystem, path: str, start: int, limit: int) -> bytes: ...

    def entry(self, fs: Filesystem, path: str) -> FileEntry: ...

    def walk(self, fs: Filesystem, path: str) -> Iterator[FileEntry]:
        """Everything at and below a path, parents before what they hold, sorted by name; links are not followed."""
        ...

    def digest(self, fs: Filesystem, path: str, is_wanted: Wanted = always) -> str:
        """Of the content: equal for equal files, or for directories of equal names and contents, whenever they were
        written. A link counts as the text it holds. Directories of runs (``.pipeline``) inside do not count: else
        a fingerprint of a filesystem would change with every run on it. Unavailable when it is not wanted any more."""
        ...

    def make_way(self, fs: Filesystem, path: str) -> None:
        """Remove what is at the path, if anything, and make its parent directories."""
        ...

    def remove(self, fs: Filesystem, path: str, is_wanted: Wanted = always) -> None:
        """A file or a whole tree; nothing there is no error. Unavailable when it is not wanted any more."""
        ...
