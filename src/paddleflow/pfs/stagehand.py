"""Backstage's work itself: stores, cache and links put together, done on the spot, safe from any number of threads.

Uploading: the cache takes a private copy of the staged file first and the copy is uploaded, so what the cache keeps
under the new version is what the store got, however busily somebody goes on writing to the staged file. Large files
on filesystems that cannot share blocks are not copied; reading them later fetches them.

A listing in progress is kept until its next page is asked for, the least recently used ones are let go; one that was
let go begins anew and skips what was given already.
"""

from __future__ import annotations

import builtins
import os
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from paddleflow.domain.errors import DiskFull, Duplicate, InUse, Invalid, NotFound, Unavailable
from paddleflow.pfs.backstage import Cached, Found, ObjectVersion, Page
from paddleflow.pfs.cache import Cache, Snapshot
from paddleflow.pfs.fetch import LARGEST_REQUEST, Fetcher
from paddleflow.pfs.memory import MemoryPool, pool_limit
from paddleflow.pfs.routes import Place, Routes
from paddleflow.ports.objects import ObjectEntry, Usage

MIB = 1 << 20
COPY_UP_TO = 64 * MIB
"""Larger uploads are kept in the cache only where a copy costs nothing."""
POOL = 64 * MIB
"""Bytes on their way at once, unless told otherwise: enough for eight requests of the largest kind."""
_LISTINGS = 64
_FULL_PAGE = 1000
_NO_NAMES = frozenset({"", ".", ".."})
_LONGEST_NAME = 1024
"""Bytes: for one longer name the kernel gives up the whole directory."""
_SHORT_NAME = _LONGEST_NAME // 4
"""Letters: no need to count bytes."""
"""A page shorter than this is probably the last: it is worth looking at once."""


class Stagehand:
    def __init__(self, routes: Routes, cache: Cache, *, pool: MemoryPool | None = None, threads: int = 16) -> None:
        self._routes = routes
        self._cache = cache
        self.pool = pool or MemoryPool(max(pool_limit(POOL), 2 * LARGEST_REQUEST))
        self.fetcher = Fetcher(cache, self.pool, threads=threads)
        self._lock = threading.Lock()
        self._listings: OrderedDict[tuple[str, int], Iterator[Sequence[Found]]] = OrderedDict()

    @property
    def routes(self) -> Routes:
        return self._routes

    def use_routes(self, routes: Routes) -> None:
        """From now on these: links came or went, credentials were renewed."""
        with self._lock:
            self._routes = routes
            self._listings.clear()

    def close(self) -> None:
        self.fetcher.close()

    def stat(self, path: str) -> Found:
        place = self._routes.where(path)
        try:
            return _found(place, place.store.stat(place.key))
        except NotFound:
            if not path or self._routes.leads_to_link(path):
                return _found(place, ObjectEntry(key=place.key, is_directory=True))
            raise

    def list(self, path: str, cursor: int = 0) -> Page:
        """``cursor``: how many entries of this listing were given already."""
        with self._lock:
            listing = self._listings.pop((path, cursor), None) if cursor else None
        if listing is None:
            listing = _skip(self._listing(path), cursor)
        page = _next_page(listing)
        if page is None:
            return Page((), is_last=True)
        if len(page) < _FULL_PAGE:
            further = _next_page(listing)
            if further is None:
                return Page(page, is_last=True)
            page = [*page, *further]
        with self._lock:
            self._listings[path, cursor + len(page)] = listing
            while len(self._listings) > _LISTINGS:
                self._listings.popitem(last=False)
        return Page(page, is_last=False)

    def fetch(self, version: ObjectVersion, start: int, size: int) -> Cached:
        cached = self.fetcher.ensure(self._routes.store_of(version.store), version, start, size)
        pressure = self.pool.pressure
        return replace(cached, pressure=pressure) if pressure else cached

    def read(self, version: ObjectVersion, start: int, size: int) -> bytes:
        size = max(0, min(size, version.size - start))
        if not size:
            return b""
        store = self._routes.store_of(version.store)
        with self.pool.borrow(min(size, self.pool.limit)):
            return store.read(version.key, start, size, version=version.version)

    def put(self, path: str, staged: str, *, mode: int | None = None) -> Found:
        self._routes.refuse_link(path)
        place = self._routes.where(path)
        try:
            source = os.open(staged, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise Unavailable(f"the staged content of {path!r} cannot be read: {error.strerror}") from error
        try:
            size = os.fstat(source).st_size
            snapshot = self._snapshot(source, size)
            try:
                entry = place.store.write(place.key, snapshot.fd if snapshot else source, size, mode=mode)
                found = _found(place, entry)
                if snapshot is not None and found.version is not None:
                    self._keep(snapshot, found.version)
                return found
            finally:
                if snapshot is not None:
                    snapshot.discard()
        finally:
            os.close(source)

    def delete(self, path: str) -> None:
        place = self._changeable(path)
        place.store.delete(place.key)

    def make_directory(self, path: str, *, mode: int | None = None) -> None:
        if self._routes.leads_to_link(path):
            raise Duplicate(f"{path!r} is there already: it is a link, or leads to one")
        place = self._routes.where(path)
        place.store.make_directory(place.key, mode=mode)

    def remove_directory(self, path: str) -> None:
        place = self._changeable(path)
        place.store.remove_directory(place.key)

    def rename(self, source: str, target: str) -> None:
        old, new = self._changeable(source), self._changeable(target)
        if old.above != new.above:
            raise Invalid(f"{source!r} and {target!r} lie in different stores", code="CrossStore")
        old.store.rename(old.key, new.key)

    def set_modes(
        self,
        path: str,
        *,
        mode: int | None = None,
        uid: int | None = None,
        gid: int | None = None,
        modified_ns: int | None = None,
    ) -> None:
        place = self._routes.where(path)
        place.store.set_modes(place.key, mode=mode, uid=uid, gid=gid, modified_ns=modified_ns)

    def make_link(self, path: str, target: str) -> None:
        place = self._changeable(path)
        place.store.make_link(place.key, target)

    def xattrs(self, path: str) -> Mapping[str, bytes]:
        place = self._routes.where(path)
        return place.store.xattrs(place.key)

    def set_xattr(self, path: str, name: str, value: bytes) -> None:
        place = self._routes.where(path)
        place.store.set_xattr(place.key, name, value)

    def remove_xattr(self, path: str, name: str) -> None:
        place = self._routes.where(path)
        place.store.remove_xattr(place.key, name)

    def usage(self, path: str) -> Usage | None:
        return self._routes.where(path).store.usage()

    def _changeable(self, path: str) -> Place:
        if not path:
            raise InUse("the root of a filesystem cannot be changed")
        self._routes.refuse_link(path)
        return self._routes.where(path)

    def _snapshot(self, source: int, size: int) -> Snapshot | None:
        try:
            return self._cache.snapshot(source, size, copy_up_to=COPY_UP_TO)
        except DiskFull:
            return None  # the upload matters, the copy does not

    def _keep(self, snapshot: Snapshot, version: ObjectVersion) -> None:
        # A full cache; or the store holds another size than it was sent, which the next stat shows.
        with suppress(DiskFull, Invalid):
            snapshot.publish(version).close()

    def _listing(self, path: str) -> Iterator[Sequence[Found]]:
        place = self._routes.where(path)
        shown = self._routes.names_in(path)
        if shown:
            prefix = f"{path}/" if path else ""
            yield [self.stat(prefix + name) for name in sorted(shown)]
        try:
            for page in place.store.list(place.key):
                yield [
                    _found(place, entry)
                    for entry in page
                    if _name_in(place.key, entry.key) and not (shown and entry.key.rpartition("/")[2] in shown)
                ]
        except NotFound:
            if path and not self._routes.leads_to_link(path):
                raise


def _name_in(directory: str, key: str) -> bool:
    """Whether a key is something directly in a directory, with a name that a path can have. Stores see to it; but what
    a storage answers may be anybody's, and here names become names on this machine."""
    above, _, name = key.rpartition("/")
    is_short = len(name) <= _SHORT_NAME or len(name.encode("utf-8", "surrogateescape")) <= _LONGEST_NAME
    return above == directory and is_short and name not in _NO_NAMES and "\0" not in name


def _next_page(listing: Iterator[Sequence[Found]]) -> builtins.list[Found] | None:
    """None at the end; pages that came empty are passed over."""
    for page in listing:
        if page:
            return builtins.list(page)
    return None


def _skip(listing: Iterator[Sequence[Found]], count: int) -> Iterator[Sequence[Found]]:
    for page in listing:
        if count >= len(page):
            count -= len(page)
            continue
        yield page[count:]
        count = 0


def _found(place: Place, entry: ObjectEntry) -> Found:
    version = None
    if not entry.is_directory and entry.link_target is None:
        version = ObjectVersion(place.identity, entry.key, entry.version, entry.size)
    if place.above:
        entry = replace(entry, key=place.path_of(entry.key))
    return Found(entry, version, place.store.traits)


class DirectBackstage:
    """Backstage done on the spot, in the thread that asks: for tests and programs that have no loop to keep running."""

    def __init__(self, stagehand: Stagehand) -> None:
        self._stagehand = stagehand

    async def stat(self, path: str) -> Found:
        return self._stagehand.stat(path)

    async def list(self, path: str, cursor: int = 0) -> Page:
        return self._stagehand.list(path, cursor)

    async def fetch(self, version: ObjectVersion, start: int, size: int) -> Cached:
        return self._stagehand.fetch(version, start, size)

    async def read(self, version: ObjectVersion, start: int, size: int) -> bytes:
        return self._stagehand.read(version, start, size)

    async def put(self, path: str, staged: str, *, mode: int | None = None) -> Found:
        return self._stagehand.put(path, staged, mode=mode)

    async def delete(self, path: str) -> None:
        self._stagehand.delete(path)

    async def make_directory(self, path: str, *, mode: int | None = None) -> None:
        self._stagehand.make_directory(path, mode=mode)

    async def remove_directory(self, path: str) -> None:
        self._stagehand.remove_directory(path)

    async def rename(self, source: str, target: str) -> None:
        self._stagehand.rename(source, target)

    async def set_modes(
        self,
        path: str,
        *,
        mode: int | None = None,
        uid: int | None = None,
        gid: int | None = None,
        modified_ns: int | None = None,
    ) -> None:
        self._stagehand.set_modes(path, mode=mode, uid=uid, gid=gid, modified_ns=modified_ns)

    async def make_link(self, path: str, target: str) -> None:
        self._stagehand.make_link(path, target)

    async def xattrs(self, path: str) -> Mapping[str, bytes]:
        return self._stagehand.xattrs(path)

    async def set_xattr(self, path: str, name: str, value: bytes) -> None:
        self._stagehand.set_xattr(path, name, value)

    async def remove_xattr(self, path: str, name: str) -> None:
        self._stagehand.remove_xattr(path, name)

    async def usage(self, path: str) -> Usage | None:
        return self._stagehand.usage(path)
