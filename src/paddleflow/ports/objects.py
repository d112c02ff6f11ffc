"""Object stores: where the bytes of a filesystem live. One port for S3 and its likes, HDFS, SFTP, a directory, memory.

A key is a path relative to the store's root: no slash at either end, no empty part, no ``.`` or ``..``; the root itself
is ``""``. A byte that is no UTF-8 is a surrogate, as everywhere in Python; a store that cannot hold such a key says so.

Errors are those of the domain: NotFound, Duplicate, Denied, Invalid (with what the store cannot do), Stale (the object
is no longer the version that was asked for), InUse (a directory that is not empty), Unavailable (retryable: it did not
answer), DiskFull. A call that failed changed nothing, or says that it may have: never half an object under its key.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectEntry:
    key: str
    is_directory: bool = False
    size: int = 0
    modified_ns: int = 0
    """Nanoseconds since 1970; 0 where the store has no such thing (a directory that is only a common prefix)."""
    version: str = ""
    """Changes whenever the content does: an ETag where there is one, else made of time and size. Empty: a directory."""
    mode: int | None = None
    """Permission bits, where the store holds them; None where it does not. The same for the next two."""
    uid: int | None = None
    gid: int | None = None
    link_target: str | None = None
    """Set for a symbolic link; it is not followed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """What a store can do by itself. What it cannot, the filesystem does another way or refuses, and says so."""

    real_directories: bool
    """A directory exists by itself. Otherwise it is a common prefix, and an empty one is kept by a marker object."""
    atomic_rename: bool
    """Of files and directories. Otherwise a rename copies and deletes, object by object."""
    holds_modes: bool
    """Permission bits, owner and group, and times that can be set."""
    holds_links: bool
    holds_xattrs: bool
    checked_reads: bool
    """A read of a given version is refused by the store itself when the object is another by now. Otherwise the
    adapter looks before and after."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    total: int
    free: int


class ObjectStore(Protocol):
    """Safe to call from several threads. Calls that may be repeated safely are repeated inside, a few times, with
    growing pauses; Unavailable means that this did not help."""

    @property
    def traits(self) -> Traits: ...

    def check(self) -> None:
        """Reach the store with these credentials, and find its root; the error says which of the three failed."""
        ...

    def stat(self, key: str) -> ObjectEntry: ...

    def list(self, key: str) -> Iterator[Sequence[ObjectEntry]]:
        """What a directory holds directly, in pages, in any order, each as soon as the store has sent it. Keys are
        whole keys. NotFound where there is no such directory, Invalid where it is a file."""
        ...

    def walk(self, key: str) -> Iterator[Sequence[ObjectEntry]]:
        """Everything below a directory, in pages, in any order; cheaper than listing each where the store is flat."""
        ...

    def read(self, key: str, start: int, size: int, *, version: str = "") -> bytes:
        """Exactly these bytes; fewer only at the end of the object. Stale when a version is given and it is another
        by now. Never bytes of two versions."""
        ...

    def write(self, key: str, source: int, size: int, *, mode: int | None = None) -> ObjectEntry:
        """Replace the object by ``size`` bytes of the open file ``source`` (read with pread from 0), at once: readers
        see the old or the new one. Large ones go in parts, side by side. The answer has the new version."""
        ...

    def delete(self, key: str) -> None:
        """A file or a link. NotFound when it is not there."""
        ...

    def make_directory(self, key: str, *, mode: int | None = None) -> None:
        """Duplicate when something is there. Its parent must exist."""
        ...

    def remove_directory(self, key: str) -> None:
        """NotFound, InUse when it is not empty, Invalid when it is a file."""
        ...

    def rename(self, source: str, target: str) -> None:
        """A file or a directory with all below it; replaces a file, or an empty directory, at the target. Where it is
        not atomic it can be called again after it was cut off, and goes on where it was."""
        ...

    def copy(self, source: str, target: str) -> ObjectEntry:
        """One object, inside the store where it can."""
        ...

    def set_modes(
        self,
        key: str,
        *,
        mode: int | None = None,
        uid: int | None = None,
        gid: int | None = None,
        modified_ns: int | None = None,
    ) -> None:
        """Invalid where the store does not hold them."""
        ...

    def make_link(self, key: str, target: str) -> None: ...

    def xattrs(self, key: str) -> Mapping[str, bytes]: ...

    def set_xattr(self, key: str, name: str, value: bytes) -> None: ...

    def remove_xattr(self, key: str, name: str) -> None:
        """NotFound when it is not there."""
        ...

    def usage(self) -> Usage | None:
        """None where the store has no end (object storage)."""
        ...

    def close(self) -> None: ...
