"""``client.fs``: files of a filesystem without a mount. What it looks like from outside, and how it is loaded.

The work is done by ``paddleflow.files``, which needs the libraries of the object stores and is imported when ``fs`` is
first asked for; the client itself stays light.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import IO, Any, Protocol, TypeAlias

from paddleflow.sdk.errors import UnavailableError
from paddleflow.sdk.session import Session

LocalPath: TypeAlias = str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One name in a filesystem."""

    path: str
    """From the root of the filesystem, with a slash in front."""
    is_directory: bool = False
    size: int = 0
    modified: float = 0.0
    """Seconds since 1970; 0 where the storage does not know (directories of object storage)."""
    mode: int | None = None
    """Permission bits where the storage holds them."""
    version: str = ""
    """Changes whenever the content does; empty for a directory."""
    link_target: str | None = None
    """Set for a symbolic link; it is not followed."""

    @property
    def name(self) -> str:
        return self.path.rsplit("/", 1)[-1]

    @property
    def kind(self) -> str:
        return "directory" if self.is_directory else "link" if self.link_target is not None else "file"

    @property
    def shown_mode(self) -> str:
        """As ``ls -l`` shows it, with what a mount would give where the storage holds no bits."""
        kind = stat.S_IFDIR if self.is_directory else stat.S_IFLNK if self.link_target is not None else stat.S_IFREG
        bits = self.mode if self.mode is not None else 0o755 if self.is_directory else 0o644
        return stat.filemode(kind | bits)


@dataclass(frozen=True, slots=True)
class Transferred:
    """How far a copy or a warm-up has come."""

    files: int = 0
    bytes: int = 0
    total_files: int = 0
    total_bytes: int = 0
    """What is known of by now: a tree is still being listed while its first files are under way."""
    path: str = ""
    """The file that was moved on last."""


Progress: TypeAlias = Callable[[Transferred], None]


def no_progress(_: Transferred) -> None:
    """Nobody watches."""


class FileAccess(Protocol):
    """Paths start at the root of the filesystem. In ``cp`` and ``mv`` a place is ``FSNAME:/path``; anything else is a
    path on this machine. Errors are of the client's tree and of Python's: NotFound is FileNotFoundError too."""

    def of(self, username: str | None = None, snapshot: str | None = None) -> FileAccess:
        """The same, for the filesystems of another user, or as they were in a snapshot, which can only be read."""
        ...

    def open(
        self,
        fsname: str,
        path: str,
        mode: str = "rb",
        *,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
    ) -> IO[Any]:
        """A file object. What is written appears at the path when it is closed, whole; not at all if the ``with`` block
        ends in an error."""
        ...

    def ls(self, fsname: str, path: str = "/") -> list[FileEntry]:
        """What a directory holds, by name; of a file, itself."""
        ...

    def walk(self, fsname: str, path: str = "/") -> Iterator[tuple[str, list[FileEntry], list[FileEntry]]]:
        """As ``os.walk``: a path, its directories, its files."""
        ...

    def stat(self, fsname: str, path: str) -> FileEntry: ...

    def exists(self, fsname: str, path: str) -> bool: ...

    def mkdir(self, fsname: str, path: str, *, parents: bool = False) -> None:
        """``parents`` makes those that are missing, and does not mind that the directory is there."""
        ...

    def rm(self, fsname: str, path: str, *, recursive: bool = False) -> None: ...

    def cat(self, fsname: str, path: str, start: int = 0, size: int = -1) -> bytes: ...

    def cp(
        self,
        source: LocalPath,
        target: LocalPath,
        *,
        recursive: bool = False,
        parallel: int = 8,
        progress: Progress = no_progress,
    ) -> Transferred:
        """Copy between this machine and a filesystem, or between filesystems. Each file appears whole or not at all."""
        ...

    def mv(self, source: str, target: str) -> None:
        """Within one filesystem it is a rename; between two a copy, and then the source goes."""
        ...

    def warm(
        self, fsname: str, paths: Sequence[str] = ("/",), *, parallel: int = 8, progress: Progress = no_progress
    ) -> Transferred:
        """Bring files, and all below directories, into the cache of this machine."""
        ...

    def evict(self, fsname: str, path: str = "/") -> int:
        """Take a file, or all below a directory, out of the cache of this machine; the bytes that were freed."""
        ...

    def mount(self, fsname: str, path: LocalPath, options: Mapping[str, str] | None = None) -> Any:
        """Mount on this machine; how it was done, a MountReport."""
        ...

    def unmount(self, path: LocalPath, *, force: bool = False) -> None: ...

    def close(self) -> None:
        """Give back what is open. It may be used again afterwards."""
        ...


class FileCalls(Session):
    """The way to ``client.fs``."""

    _files: FileAccess | None = None

    @property
    def fs(self) -> FileAccess:
        """Files of filesystems, without a mount."""
        if self._files is None:
            try:
                made: FileAccess = import_module("paddleflow.files").Files(self)
            except ModuleNotFoundError as error:
                if error.name is not None and error.name.startswith("paddleflow"):
                    raise
                raise UnavailableError(
                    "FilesNotInstalled",
                    f"files need {error.name}, which is not installed; install it with: pip install 'paddleflow[fs]'",
                ) from error
            self._files = made
        return self._files

    def mount(
        self,
        fsname: str,
        path: LocalPath,
        mountOptions: Mapping[str, str] | None = None,  # noqa: N803
        username: str | None = None,
    ) -> tuple[bool, None]:
        """Mount a filesystem on this machine. Options are those of ``paddleflow fs mount -o``."""
        (self.fs.of(username) if username else self.fs).mount(fsname, path, mountOptions)
        return True, None

    def close(self) -> None:
        if self._files is not None:
            self._files.close()
        super().close()

    def __getstate__(self) -> dict[str, Any]:
        # What is open stays in its process; whoever gets the copy opens its own.
        return {**super().__getstate__(), "_files": None}
