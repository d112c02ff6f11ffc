"""S3 and whatever speaks it (BOS, MinIO, …) as an object store with directories.

A directory is a common prefix. One that is empty is kept by a marker, the object ``key/`` of no bytes, which other
tools know too; a server that cannot hold such a key gets a hidden file in the directory instead. When the last file of
a directory goes, the directory stays, as everywhere else: a marker is put there first.

Renaming copies and deletes, object by object, several at a time. A hidden note in the target says what is being moved
there, so that a rename that was cut off can be asked for again and goes on.

Modes, owners, links and extended attributes are refused. So are names that are no UTF-8 and keys beyond 1024 bytes.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import NoReturn

from paddleflow.adapters.objects.bucket import Bucket, Head, ListedObject, ListedPage
from paddleflow.adapters.objects.keys import (
    HIDDEN,
    check_key,
    check_object_key,
    check_range,
    hidden_name,
    is_below,
    parent_of,
)
from paddleflow.adapters.objects.source import read_exactly
from paddleflow.adapters.objects.uploads import PART, THREADS, copy_large, upload_file
from paddleflow.domain.errors import Duplicate, InUse, Invalid, NotFound, Unavailable
from paddleflow.ports.objects import ObjectEntry, Traits, Usage

_COPY_LIMIT = 5 << 30
"""Larger objects are copied in parts; a limit of S3."""
_HIDDEN_MARKER = "/" + HIDDEN + "directory"
_NOTE = "/" + HIDDEN + "rename-"
_REMEMBERED_MARKERS = 10_000
_IDLE_PAGES = 100
"""Pages in a row that bring nothing new. Some come empty where much was deleted; without end they do not."""


class S3Store:
    traits = Traits(
        real_directories=False,
        atomic_rename=False,
        holds_modes=False,
        holds_links=False,
        holds_xattrs=False,
        checked_reads=True,
    )

    def __init__(self, bucket: Bucket, root: str) -> None:
        self._bucket = bucket
        self._prefix = f"{root}/" if root else ""
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="s3")
        self._lock = threading.Lock()
        self._marker = ""
        self._marked: set[str] = set()

    def check(self) -> None:
        self._bucket.list(self._prefix, limit=1)

    def stat(self, key: str) -> ObjectEntry:
        found = self._find(check_key(key))
        if found is None:
            raise NotFound(f"{key} is not there")
        return found

    def list(self, key: str) -> Iterator[Sequence[ObjectEntry]]:
        is_there = not check_key(key)
        directories: set[str] = set()
        for page in self._pages(key, delimiter="/"):
            is_there = is_there or bool(page.objects or page.prefixes)
            files = [self._entry(found) for found in page.objects if self._is_shown(found.key, key)]
            names = {entry.key for entry in files}
            for prefix in page.prefixes:
                directory = self._key(prefix.removesuffix("/"))
                # An object may have the name of a directory; the file is the one that is seen. Its name comes shortly
                # before, so that a page is as far as one has to look.
                is_known = directory in directories or directory in names
                if not is_known and self._is_shown(prefix.removesuffix("/"), key):
                    directories.add(directory)
                    files.append(ObjectEntry(key=directory, is_directory=True))
            if files:
                yield files
        if not is_there:
            self._raise_no_directory(key)

    def walk(self, key: str) -> Iterator[Sequence[ObjectEntry]]:
        is_there = not check_key(key)
        seen: set[str] = set()
        for page in self._pages(key):
            is_there = is_there or bool(page.objects)
            entries: list[ObjectEntry] = []
            names = {self._key(found.key) for found in page.objects}
            for found in page.objects:
                for directory in _directories_between(self._key(found.key), key):
                    if directory not in seen and directory not in names and _is_legal(directory):
                        seen.add(directory)
                        entries.append(ObjectEntry(key=directory, is_directory=True))
                if not found.key.endswith("/") and _is_legal(self._key(found.key)):
                    entries.append(self._entry(found))
            for start in range(0, len(entries), 1000):
                yield entries[start : start + 1000]
        if not is_there:
            self._raise_no_directory(key)

    def read(self, key: str, start: int, size: int, *, version: str = "") -> bytes:
        check_range(start, size)
        if not check_key(key):
            raise Invalid("the root is a directory")
        try:
            if size:
                return self._bucket.read(self._prefix + key, start, size, version)
            return self._bucket.read(self._prefix + key, start, 1, version)[:0]
        except NotFound:
            self._raise_no_file(key)

    def write(self, key: str, source: int, size: int, *, mode: int | None = None) -> ObjectEntry:
        target = self._prefix + check_object_key(key)
        if size <= PART:
            head = self._bucket.put(target, read_exactly(source, 0, size))
        else:
            head = upload_file(self._bucket, self._pool, target, source, size)
        return _file(key, head)

    def delete(self, key: str) -> None:
        if self._bucket.find(self._prefix + check_object_key(key)) is None:
            self._raise_no_file(key)
        self._keep_directory(parent_of(key))
        self._bucket.delete(self._prefix + key)

    def make_directory(self, key: str, *, mode: int | None = None) -> None:
        if self._find(check_key(key)) is not None:
            raise Duplicate(f"{key} is there already")
        parent = parent_of(key)
        if parent and not self._is_directory(parent):
            self._raise_no_directory(parent)
        self._put_marker(key)

    def remove_directory(self, key: str) -> None:
        prefix = f"{self._prefix}{check_object_key(key)}/"
        page = self._bucket.list(prefix, limit=100)
        if not page.objects:
            self._raise_no_directory(key)
        if any(not _is_ours(found.key, prefix) for found in page.objects):
            raise InUse(f"{key} is not empty")
        self._keep_directory(parent_of(key))
        self._forget_markers(key)
        for found in page.objects:
            self._bucket.delete(found.key)

    def rename(self, source: str, target: str) -> None:
        moved = self._find(check_object_key(source))
        check_object_key(target)
        note = self._note(source, target)
        if moved is None:
            if self._bucket.find(note) is None:
                raise NotFound(f"{source} is not there")
            self._end_move(target, note)
            return
        if source == target:
            return
        if is_below(target, source):
            raise Invalid(f"{source} cannot be moved into itself")
        if moved.is_directory:
            self._check_target_directory(target, note)
            self._move_directory(source, target, note)
        else:
            self._check_target_file(target)
            self._keep_directory(parent_of(source))
            self._move(ListedObject(key=self._prefix + source, head=_head(moved)), self._prefix + target)

    def copy(self, source: str, target: str) -> ObjectEntry:
        head = self._bucket.find(self._prefix + check_object_key(source))
        check_object_key(target)
        if head is None:
            self._raise_no_file(source)
        if source == target:
            return _file(source, head)
        return _file(target, self._copy(self._prefix + source, self._prefix + target, head.size))

    def set_modes(
        self,
        key: str,
        *,
        mode: int | None = None,
        uid: int | None = None,
        gid: int | None = None,
        modified_ns: int | None = None,
    ) -> None:
        check_key(key)
        raise Invalid("object storage keeps no permissions, owners or times of its own")

    def make_link(self, key: str, target: str) -> None:
        check_key(key)
        raise Invalid("object storage keeps no symbolic links")

    def xattrs(self, key: str) -> Mapping[str, bytes]:
        check_key(key)
        raise Invalid("object storage keeps no extended attributes")

    def set_xattr(self, key: str, name: str, value: bytes) -> None:
        check_key(key)
        raise Invalid("object storage keeps no extended attributes")

    def remove_xattr(self, key: str, name: str) -> None:
        check_key(key)
        raise Invalid("object storage keeps no extended attributes")

    def usage(self) -> Usage | None:
        return None

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)
        self._bucket.close()

    # Looking

    def _find(self, key: str) -> ObjectEntry | None:
        if not key:
            return ObjectEntry(key="", is_directory=True)
        head = self._bucket.find(self._prefix + key)
        if head is not None:
            return _file(key, head)
        return ObjectEntry(key=key, is_directory=True) if self._is_directory(key) else None

    def _is_directory(self, key: str) -> bool:
        return bool(self._bucket.list(f"{self._prefix}{key}/", limit=1).objects)

    def _raise_no_directory(self, key: str) -> NoReturn:
        if self._bucket.find(self._prefix + key) is not None:
            raise Invalid(f"{key} is a file")
        raise NotFound(f"{key} is not there")

    def _raise_no_file(self, key: str) -> NoReturn:
        if self._is_directory(key):
            raise Invalid(f"{key} is a directory")
        raise NotFound(f"{key} is not there")

    def _pages(self, key: str, delimiter: str = "") -> Iterator[ListedPage]:
        prefix = f"{self._prefix}{key}/" if key else self._prefix
        page = self._bucket.list(prefix, delimiter=delimiter)
        yield page
        idle = 0
        while page.next_token:
            before, page = page, self._bucket.list(prefix, delimiter=delimiter, token=page.next_token)
            idle = idle + 1 if (page.objects, page.prefixes) == (before.objects, before.prefixes) else 0
            if page.next_token == before.next_token or idle >= _IDLE_PAGES:
                raise Unavailable("the server's listing does not come to an end: it goes round in a circle")
            yield page

    def _key(self, object_key: str) -> str:
        return object_key[len(self._prefix) :]

    def _is_shown(self, object_key: str, directory: str) -> bool:
        """Not the directory's own marker, nothing of ours, and nothing with a name that no path can have."""
        key = self._key(object_key)
        return key.rstrip("/") != directory and _is_legal(key)

    def _entry(self, found: ListedObject) -> ObjectEntry:
        return _file(self._key(found.key), found.head)

    # Directories

    def _put_marker(self, key: str) -> None:
        self._bucket.mark(f"{self._prefix}{key}{self._marker_suffix()}")
        with self._lock:
            if len(self._marked) >= _REMEMBERED_MARKERS:
                self._marked.clear()
            self._marked.add(key)

    def _keep_directory(self, key: str) -> None:
        """Before something goes from it. That it has a marker is remembered, so that emptying it costs one PUT."""
        with self._lock:
            is_marked = not key or key in self._marked
        if not is_marked:
            self._put_marker(key)

    def _forget_markers(self, key: str) -> None:
        with self._lock:
            self._marked = {other for other in self._marked if other != key and not is_below(other, key)}

    def _marker_suffix(self) -> str:
        """Found out once: some servers that keep files in directories make of ``name/`` a file ``name``."""
        if not self._marker:
            probe = self._prefix + hidden_name()
            self._bucket.mark(probe + "/")
            is_kept = any(found.key == probe + "/" for found in self._bucket.list(probe + "/", limit=1).objects)
            self._bucket.delete(probe + "/")
            if not is_kept:
                self._bucket.delete(probe)
            self._marker = "/" if is_kept else _HIDDEN_MARKER
        return self._marker

    # Moving

    def _note(self, source: str, target: str) -> str:
        return f"{self._prefix}{target}{_NOTE}{hashlib.blake2b(source.encode(), digest_size=12).hexdigest()}"

    def _check_target_file(self, target: str) -> None:
        if self._is_directory(target):
            raise Invalid(f"{target} is a directory")

    def _check_target_directory(self, target: str, note: str) -> None:
        if self._bucket.find(self._prefix + target) is not None:
            raise Invalid(f"{target} is a file")
        prefix = f"{self._prefix}{target}/"
        found = self._bucket.list(prefix, limit=100).objects
        if any(not _is_ours(item.key, prefix) for item in found) and self._bucket.find(note) is None:
            raise InUse(f"{target} is not empty")

    def _move_directory(self, source: str, target: str, note: str) -> None:
        self._bucket.mark(note)
        self._keep_directory(parent_of(source))
        self._forget_markers(source)
        start, goal = f"{self._prefix}{source}/", f"{self._prefix}{target}/"
        rounds, seen = 0, start
        while objects := self._bucket.list(start).objects:
            rounds, seen = (rounds + 1 if objects[0].key == seen else 0), objects[0].key
            if rounds >= _IDLE_PAGES:
                raise Unavailable(f"{source} does not become empty: the server goes on listing what was moved")
            self._move_all(objects, start, goal)
        self._end_move(target, note)

    def _move_all(self, objects: Sequence[ListedObject], start: str, goal: str) -> None:
        """Side by side, but for the very large, whose parts need the threads themselves."""
        pairs = [(found, goal + found.key[len(start) :]) for found in objects]
        moves = [self._pool.submit(self._move, *pair) for pair in pairs if pair[0].head.size <= _COPY_LIMIT]
        try:
            for found, target in pairs:
                if found.head.size > _COPY_LIMIT:
                    self._move(found, target)
            for move in moves:
                move.result()
        finally:
            for move in moves:
                move.cancel()
            wait(moves)

    def _end_move(self, target: str, note: str) -> None:
        self._put_marker(target)
        self._bucket.delete(note)

    def _move(self, found: ListedObject, target: str) -> None:
        try:
            self._copy(found.key, target, found.head.size)
        except NotFound:
            # A listing may show for a while what was moved a moment ago; then it is at the target.
            if self._bucket.find(target) is None:
                raise
        self._bucket.delete(found.key)

    def _copy(self, source: str, target: str, size: int) -> Head:
        if size > _COPY_LIMIT:
            return copy_large(self._bucket, self._pool, source, target, size)
        return self._bucket.copy(source, target, size)


def _head(entry: ObjectEntry) -> Head:
    return Head(size=entry.size, version=entry.version, modified_ns=entry.modified_ns)


def _file(key: str, head: Head) -> ObjectEntry:
    return ObjectEntry(key=key, size=head.size, version=head.version, modified_ns=head.modified_ns)


def _is_ours(object_key: str, prefix: str) -> bool:
    """The marker of a directory, or something hidden directly in it."""
    name = object_key[len(prefix) :]
    return not name or (name.startswith(HIDDEN) and "/" not in name)


def _is_legal(key: str) -> bool:
    return "\0" not in key and all(
        part and part not in {".", ".."} and not part.startswith(HIDDEN) for part in key.split("/")
    )


def _directories_between(key: str, directory: str) -> Iterator[str]:
    """Every directory below ``directory`` that holds this key; a marker's key ends in a slash."""
    end = key.find("/", len(directory) + 1 if directory else 0)
    while end >= 0:
        yield key[:end]
        end = key.find("/", end + 1)
