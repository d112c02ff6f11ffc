"""Backstage: everything a file operation needs done that may take long: the store, checksums, uploads.

The vfs awaits these calls. In a mount they are messages to worker processes; in tests and in the SDK they are done on
the spot. Paths are those of the mount (keys of the filesystem's root); which store holds one, a link's or the root's,
is backstage's business, and so is everything that retries. All of them may be asked twice with the same outcome: a
front that died asks its successor's workers again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from paddleflow.ports.objects import ObjectEntry, Traits, Usage


@dataclass(frozen=True, slots=True)
class ObjectVersion:
    """Names bytes that never change: this version of this object. What the cache keeps, it keeps under this."""

    store: str
    """Which store, made of type, address and root: the same for every mount of it on this machine."""
    key: str
    version: str
    size: int


@dataclass(frozen=True, slots=True)
class Found:
    """A path as the store has it now."""

    entry: ObjectEntry
    """Its key is the path in the mount."""
    version: ObjectVersion | None
    """None for what has no content (directories, links)."""
    traits: Traits


@dataclass(frozen=True, slots=True)
class Cached:
    """Where the content of a version is: the front opens this file itself."""

    path: str
    """Of the data file; empty when the cache could not take it (full): then ``read`` it."""
    is_complete: bool
    """Every byte is there and was verified: it may be handed to the kernel."""
    pressure: float = 0.0
    """How much of the memory for bytes on their way was taken where this was done; 1: all of it."""


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a listing; the last one has ``is_last``."""

    entries: Sequence[Found]
    is_last: bool


class Backstage(Protocol):
    async def stat(self, path: str) -> Found: ...

    async def list(self, path: str, cursor: int = 0) -> Page:
        """The next page of a listing: cursor 0 begins one, page by page until ``is_last``."""
        ...

    async def fetch(self, version: ObjectVersion, start: int, size: int) -> Cached:
        """Bring these bytes into the cache (whole chunks around them), unless they are there. ``size`` -1: all of it,
        verified, so that the answer is complete. Stale when the store has another version by now and the cache lacks
        some of this one."""
        ...

    async def read(self, version: ObjectVersion, start: int, size: int) -> bytes:
        """Straight from the store, past a cache that cannot take it."""
        ...

    async def put(self, path: str, staged: str, *, mode: int | None = None) -> Found:
        """Upload the file ``staged``; afterwards its content is in the cache under the new version."""
        ...

    async def delete(self, path: str) -> None: ...

    async def make_directory(self, path: str, *, mode: int | None = None) -> None: ...

    async def remove_directory(self, path: str) -> None: ...

    async def rename(self, source: str, target: str) -> None:
        """Invalid (code CrossStore) when they lie in different stores."""
        ...

    async def set_modes(
        self,
        path: str,
        *,
        mode: int | None = None,
        uid: int | None = None,
        gid: int | None = None,
        modified_ns: int | None = None,
    ) -> None: ...

    async def make_link(self, path: str, target: str) -> None: ...

    async def xattrs(self, path: str) -> Mapping[str, bytes]: ...

    async def set_xattr(self, path: str, name: str, value: bytes) -> None: ...

    async def remove_xattr(self, path: str, name: str) -> None: ...

    async def usage(self, path: str) -> Usage | None: ...
