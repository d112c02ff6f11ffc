"""A filesystem with its links as one object store: for whoever reads paths of it without a mount or a cache."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from paddleflow.domain.errors import InUse, Invalid, NotFound
from paddleflow.pfs.routes import Place, Routes
from paddleflow.ports.objects import ObjectEntry, ObjectStore, Traits, Usage


class RoutedStore:
    """Implements ``ObjectStore``; keys are paths of the filesystem."""

    def __init__(self, routes: Routes, stores: Sequence[ObjectStore]) -> None:
        """``stores``: all of the routes' own, to be closed with this one."""
        self._routes = routes
        self._stores = stores

    @property
    def traits(self) -> Traits:
        """What holds in all of it."""
        each = [store.traits for store in self._stores]
        return Traits(
            # Walking must stop at links, so nothing may take this for one flat store.
            real_directories=True,
            atomic_rename=all(traits.atomic_rename for traits in each),
            holds_modes=all(traits.holds_modes for traits in each),
            holds_links=all(traits.holds_links for traits in each),
            holds_xattrs=all(traits.holds_xattrs for traits in each),
            checked_reads=all(traits.checked_reads for traits in each),
        )

    def check(self) -> None:
        for store in self._stores:
            store.check()

    def close(self) -> None:
        for store in self._stores:
            store.close()

    def stat(self, key: str) -> ObjectEntry:
        place = self._routes.where(key)
        try:
            return _shown(place, place.store.stat(place.key))
        except NotFound:
            if not self._routes.leads_to_link(key):
                raise
            return ObjectEntry(key=key, is_directory=True)

    def list(self, key: str) -> Iterator[Sequence[ObjectEntry]]:
        place, links = self._routes.where(key), self._routes.names_in(key)
        if links:
            above = f"{key}/" if key else ""
            yield [self.stat(above + name) for name in sorted(links)]
        try:
            for page in place.store.list(place.key):
                entries = [_shown(place, entry) for entry in page]
                yield [entry for entry in entries if entry.key.rpartition("/")[2] not in links]
        except NotFound:
            if not self._routes.leads_to_link(key):
                raise

    def walk(self, key: str) -> Iterator[Sequence[ObjectEntry]]:
        waiting = [key]
        while waiting:
            for page in self.list(waiting.pop()):
                yield page
                waiting += [entry.key for entry in page if entry.is_directory]

    def read(self, key: str, start: int, size: int, *, version: str = "") -> bytes:
        place = self._routes.where(key)
        return place.store.read(place.key, start, size, version=version)

    def write(self, key: str, source: int, size: int, *, mode: int | None = None) -> ObjectEntry:
        place = self._changeable(key)
        return _shown(place, place.store.write(place.key, source, size, mode=mode))

    def delete(self, key: str) -> None:
        place = self._changeable(key)
        place.store.delete(place.key)

    def make_directory(self, key: str, *, mode: int | None = None) -> None:
        place = self._routes.where(key)
        place.store.make_directory(place.key, mode=mode)

    def remove_directory(self, key: str) -> None:
        place = self._changeable(key)
        place.store.remove_directory(place.key)

    def rename(self, source: str, target: str) -> None:
        old, new = self._pair(source, target)
        old.store.rename(old.key, new.key)

    def copy(self, source: str, target: str) -> ObjectEntry:
        old, new = self._pair(source, target)
        return _shown(new, old.store.copy(old.key, new.key))

    def set_modes(
        self,
        key: str,
        *,
        mode: int | None = None,
        uid: int | None = None,
        gid: int | None = None,
        modified_ns: int | None = None,
    ) -> None:
        place = self._routes.where(key)
        place.store.set_modes(place.key, mode=mode, uid=uid, gid=gid, modified_ns=modified_ns)

    def make_link(self, key: str, target: str) -> None:
        place = self._changeable(key)
        place.store.make_link(place.key, target)

    def xattrs(self, key: str) -> Mapping[str, bytes]:
        place = self._routes.where(key)
        return place.store.xattrs(place.key)

    def set_xattr(self, key: str, name: str, value: bytes) -> None:
        place = self._routes.where(key)
        place.store.set_xattr(place.key, name, value)

    def remove_xattr(self, key: str, name: str) -> None:
        place = self._routes.where(key)
        place.store.remove_xattr(place.key, name)

    def usage(self) -> Usage | None:
        return self._routes.where("").store.usage()

    def _changeable(self, key: str) -> Place:
        if not key:
            raise InUse("the root of a filesystem cannot be changed")
        self._routes.refuse_link(key)
        return self._routes.where(key)

    def _pair(self, source: str, target: str) -> tuple[Place, Place]:
        old, new = self._changeable(source), self._changeable(target)
        if old.above != new.above:
            raise Invalid(f"{source!r} and {target!r} lie in different stores", code="CrossStore")
        return old, new


def _shown(place: Place, entry: ObjectEntry) -> ObjectEntry:
    return replace(entry, key=place.path_of(entry.key)) if place.above else entry
