"""What the platform itself does with users' filesystems, over any object store.

The answers, and the digests above all, are those that a local directory of the same content gives. Links are never
followed, neither at the end of a path nor on the way. What changes while it is gone through is looked at again, or the
call ends with Unavailable.

Directories are gone through one listing at a time; where the store is flat, and a listing of everything costs a
thousandth of that, the whole tree is listed at once and sorted in memory.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from paddleflow.adapters.objects.keys import name_of, parent_of
from paddleflow.adapters.objects.open_stores import OpenStore, OpenStores
from paddleflow.domain.errors import (
    Conflict,
    Denied,
    Duplicate,
    InUse,
    Invalid,
    NotFound,
    Stale,
    TooLarge,
    Unavailable,
    invalid_field,
    not_found,
)
from paddleflow.domain.filesystems import Filesystem
from paddleflow.domain.runs import RUNS_DIRECTORY
from paddleflow.ports.files import FileEntry, Wanted, always, shown
from paddleflow.ports.objects import ObjectEntry, ObjectStore

_CHUNK = 4 * 1024 * 1024
_TRIES = 5
_REMEMBERED = 65_536
_YOUNG_NS = 2_000_000_000
"""Some stores tell times in seconds: a version so young may be given to the next content as well."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class StoredFiles:
    """``ports.files.Files``. One object for all filesystems; any thread may use it."""

    def __init__(self, open: OpenStore, *, most_stores: int = 16, now_ns: Callable[[], int] = time.time_ns) -> None:
        self._stores = OpenStores(open, most=most_stores)
        self._digests = _Digests(now_ns)

    def close(self) -> None:
        self._stores.close()

    def read(self, fs: Filesystem, path: str, limit: int) -> bytes:
        def act(store: ObjectStore, key: str) -> bytes:
            found = _file(store, key)
            if found.size > limit:
                raise TooLarge(f"{_named(fs, path)} has more than {limit} bytes", details={"limit": limit})
            return store.read(key, 0, found.size, version=found.version)

        return self._settled(fs, path, act)

    def read_range(self, fs: Filesystem, path: str, start: int, limit: int) -> bytes:
        for field, number in (("start", start), ("limit", limit)):
            if number < 0:
                raise invalid_field(field, f"[{number}] must not be negative")

        def act(store: ObjectStore, key: str) -> bytes:
            found = _file(store, key)
            size = min(limit, found.size - start)
            return store.read(key, start, size, version=found.version) if size > 0 else b""

        return self._settled(fs, path, act)

    def entry(self, fs: Filesystem, path: str) -> FileEntry:
        with self._using(fs, path) as (store, key):
            return _entry(_look(store, key))

    def walk(self, fs: Filesystem, path: str) -> Iterator[FileEntry]:
        with self._using(fs, path) as (store, key):
            found = _look(store, key)
            yield _entry(found)
            if found.is_directory:
                for visit in _visits(store, key):
                    if not visit.is_left:
                        yield _entry(visit.entry)

    def digest(self, fs: Filesystem, path: str, is_wanted: Wanted = always) -> str:
        with self._using(fs, path) as (store, key):
            found = _look(store, key)
            if found.is_directory:
                return self._digest_tree(fs, store, key, is_wanted).hex()
            return self._digest_leaf(fs, store, found, is_wanted)[1].hex()

    def make_way(self, fs: Filesystem, path: str) -> None:
        _must_not_be_the_root(path)
        with self._using(fs, path) as (store, key):
            for above in _above(key):
                _make_directory(store, above)
            _remove(store, key, always)

    def remove(self, fs: Filesystem, path: str, is_wanted: Wanted = always) -> None:
        _must_not_be_the_root(path)
        with self._using(fs, path) as (store, key):
            _remove(store, key, is_wanted)

    # Digests.

    def _digest_tree(self, fs: Filesystem, store: ObjectStore, key: str, is_wanted: Wanted) -> bytes:
        """Each directory is summed up while it is gone through: children come sorted, whole before the next."""
        sums = [hashlib.sha256(b"directory\0")]
        for visit in _visits(store, key, without=RUNS_DIRECTORY):
            if visit.entry.is_directory and not visit.is_left:
                sums.append(hashlib.sha256(b"directory\0"))
                continue
            if visit.is_left:
                kind, digest = b"d", sums.pop().digest()
            else:
                kind, digest = self._digest_leaf(fs, store, visit.entry, is_wanted)
            child = os.fsencode(name_of(visit.entry.key))
            sums[-1].update(b"%b%d:%b%b" % (kind, len(child), child, digest))
        return sums[0].digest()

    def _digest_leaf(
        self, fs: Filesystem, store: ObjectStore, found: ObjectEntry, is_wanted: Wanted
    ) -> tuple[bytes, bytes]:
        """What it is, in a letter, and its digest."""
        if found.link_target is not None:
            return b"l", hashlib.sha256(b"link\0" + os.fsencode(found.link_target)).digest()
        for _ in range(_TRIES):
            known = self._digests.find(fs, found)
            if known is not None:
                return b"f", known
            try:
                digest = _digest_file(store, found, is_wanted)
            except Stale:
                found = _file(store, found.key)
                continue
            self._digests.remember(fs, found, digest)
            return b"f", digest
        raise Unavailable(f"{_named(fs, found.key)} is changed all the time while it is read")

    # Stores and errors.

    @contextmanager
    def _using(self, fs: Filesystem, path: str) -> Iterator[tuple[ObjectStore, str]]:
        key = _key(path)
        try:
            with self._stores.use(fs) as store:
                yield store, key
        except NotFound as error:
            raise not_found("file", shown(path)) from error
        except Denied as error:
            raise Invalid(
                f"the filesystem's account has no right to use {_named(fs, path)}: {error.message}"
            ) from error
        except Conflict as error:
            raise Unavailable(f"{_named(fs, path)} was changed while it was gone through; try again") from error

    def _settled(self, fs: Filesystem, path: str, act: Callable[[ObjectStore, str], bytes]) -> bytes:
        """Again, when the file became another one between looking and reading; but not for ever."""
        with self._using(fs, path) as (store, key):
            for _ in range(_TRIES - 1):
                try:
                    return act(store, key)
                except Stale:
                    continue
            return act(store, key)


class _Digests:
    """Of versions of objects, the least recently used forgotten first."""

    def __init__(self, now_ns: Callable[[], int]) -> None:
        self._now_ns = now_ns
        self._known: OrderedDict[tuple[str, int, str, str], bytes] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, fs: Filesystem, found: ObjectEntry) -> bytes | None:
        key = (fs.id, fs.version, found.key, found.version)
        with self._lock:
            digest = self._known.get(key)
            if digest is not None:
                self._known.move_to_end(key)
            return digest

    def remember(self, fs: Filesystem, found: ObjectEntry, digest: bytes) -> None:
        if self._now_ns() - found.modified_ns < _YOUNG_NS or not found.version:
            return
        with self._lock:
            self._known[fs.id, fs.version, found.key, found.version] = digest
            while len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)


def _digest_file(store: ObjectStore, found: ObjectEntry, is_wanted: Wanted) -> bytes:
    whole = hashlib.sha256()
    for start in range(0, found.size, _CHUNK):
        whole.update(store.read(found.key, start, _CHUNK, version=found.version))
        if not is_wanted():
            raise Unavailable("nobody wants the digest any more")
    return whole.digest()


# Paths.


def _key(path: str) -> str:
    if "\0" in path:
        raise invalid_field("path", "it has a NUL character in it")
    if path.startswith("/"):
        raise invalid_field("path", f"[{path}] begins with '/': give it relative to the root of the filesystem")
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise invalid_field("path", f"[{path}] has '..' in it")
    try:
        os.fsencode(path)
    except UnicodeEncodeError as error:
        raise invalid_field("path", f"{path!r} cannot be the name of a file") from error
    return "/".join(parts)


def _must_not_be_the_root(path: str) -> None:
    if not _key(path):
        raise invalid_field("path", "it is the root of the filesystem, which stays")


def _named(fs: Filesystem, path: str) -> str:
    return f"[{shown(path) or '/'}] on filesystem [{fs.name}]"


def _above(key: str) -> list[str]:
    """The directories on the way, from the top."""
    parts = key.split("/")
    return ["/".join(parts[:depth]) for depth in range(1, len(parts))]


# Looking.


def _look(store: ObjectStore, key: str) -> ObjectEntry:
    try:
        return store.stat(key)
    except NotFound:
        _check_way(store, key)
        raise


def _check_way(store: ObjectStore, key: str) -> None:
    """Is it not there because something on the way is no directory?"""
    for above in _above(key):
        if not store.stat(above).is_directory:
            raise Invalid(f"[{shown(key)}] leads through something that is not a directory; links are not followed")


def _file(store: ObjectStore, key: str) -> ObjectEntry:
    found = _look(store, key)
    if found.is_directory:
        raise Invalid(f"[{shown(key)}] is a directory, not a file")
    if found.link_target is not None:
        raise Invalid(f"[{shown(key)}] is a symbolic link, which is not followed")
    return found


def _entry(found: ObjectEntry) -> FileEntry:
    is_link = found.link_target is not None
    return FileEntry(
        path=found.key,
        is_directory=found.is_directory,
        is_link=is_link,
        size=0 if is_link or found.is_directory else found.size,
        modified_at=_moment(found.modified_ns),
    )


def _moment(ns: int) -> datetime:
    """A file may claim a time that no calendar has."""
    try:
        return _EPOCH + timedelta(microseconds=ns // 1000)
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC) if ns > 0 else datetime.min.replace(tzinfo=UTC)


# Trees.


@dataclass(frozen=True, slots=True)
class _Visit:
    entry: ObjectEntry
    is_left: bool = False
    """A directory is met twice: before what it holds, and after."""


def _visits(store: ObjectStore, key: str, *, without: str = "") -> Iterator[_Visit]:
    """Everything below a directory, sorted by name, but for directories of the name ``without``."""
    children_of = _by_listing(store) if store.traits.real_directories else _by_walking(store, key)
    levels: list[tuple[ObjectEntry | None, Iterator[ObjectEntry]]] = [(None, children_of(key))]
    while levels:
        directory, children = levels[-1]
        child = next(children, None)
        if child is None:
            levels.pop()
            if directory is not None:
                yield _Visit(directory, is_left=True)
        elif not child.is_directory:
            yield _Visit(child)
        elif name_of(child.key) != without:
            yield _Visit(child)
            levels.append((child, children_of(child.key)))


def _by_listing(store: ObjectStore) -> Callable[[str], Iterator[ObjectEntry]]:
    def children_of(directory: str) -> Iterator[ObjectEntry]:
        try:
            return iter(sorted((entry for page in store.list(directory) for entry in page), key=_name))
        except (NotFound, Invalid) as error:
            raise Unavailable(f"[{shown(directory)}] was changed while it was gone through; try again") from error

    return children_of


def _by_walking(store: ObjectStore, top: str) -> Callable[[str], Iterator[ObjectEntry]]:
    held: dict[str, list[ObjectEntry]] = defaultdict(list)
    for page in store.walk(top):
        for entry in page:
            held[parent_of(entry.key)].append(entry)
    return lambda directory: iter(sorted(held.pop(directory, []), key=_name))


def _name(entry: ObjectEntry) -> str:
    return name_of(entry.key)


# Changing.


def _make_directory(store: ObjectStore, key: str) -> None:
    try:
        found = store.stat(key)
    except NotFound:
        # Somebody else may make it just now, which is as good; if it is not a directory, the next step says so.
        with suppress(Duplicate):
            store.make_directory(key)
        return
    if not found.is_directory:
        raise Invalid(f"[{shown(key)}] is not a directory; links are not followed")


def _remove(store: ObjectStore, key: str, is_wanted: Wanted) -> None:
    """Again, when somebody still writes into what is being removed; but not for ever."""
    for _ in range(_TRIES):
        if _remove_once(store, key, is_wanted):
            return
    raise Unavailable(f"[{shown(key)}] cannot be removed: something keeps writing into it")


def _remove_once(store: ObjectStore, key: str, is_wanted: Wanted) -> bool:
    """Is it gone?"""
    try:
        found = _look(store, key)
    except NotFound:
        return True
    if found.is_directory:
        for visit in _visits(store, key):
            if not is_wanted():
                raise Unavailable(f"[{shown(key)}] was removed in part: nobody waits for the rest")
            if visit.is_left or not visit.entry.is_directory:
                _take_out(store, visit.entry)
    return _take_out(store, found)


def _take_out(store: ObjectStore, found: ObjectEntry) -> bool:
    """Is it gone? A directory that has got something new to hold is not; then neither are those above it."""
    try:
        if found.is_directory:
            store.remove_directory(found.key)
        else:
            store.delete(found.key)
    except NotFound:
        return True
    except InUse:
        return False
    return True
