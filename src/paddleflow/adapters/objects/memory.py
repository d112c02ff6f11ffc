"""A store in the memory of this process: for trying things out and for tests. It can do everything and forgets all.

One lock, taken by every call; a listing is a picture of one moment.
"""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from paddleflow.adapters.objects.keys import check_key, check_object_key, check_range, is_below, parent_of
from paddleflow.adapters.objects.source import read_exactly
from paddleflow.domain.errors import Duplicate, InUse, Invalid, NotFound, Stale
from paddleflow.ports.objects import ObjectEntry, Traits, Usage

_PAGE = 1000


@dataclass(slots=True, kw_only=True)
class _Kept:
    is_directory: bool = False
    content: bytes = b""
    link_target: str | None = None
    version: str = ""
    modified_ns: int = 0
    mode: int = 0o644
    uid: int = 0
    gid: int = 0
    xattrs: dict[str, bytes] = field(default_factory=dict)


class MemoryStore:
    traits = Traits(
        real_directories=True,
        atomic_rename=True,
        holds_modes=True,
        holds_links=True,
        holds_xattrs=True,
        checked_reads=True,
    )

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._kept: dict[str, _Kept] = {"": _Kept(is_directory=True, mode=0o755, modified_ns=time.time_ns())}
        self._versions = itertools.count(1)

    def check(self) -> None:
        """There is nothing to reach."""

    def stat(self, key: str) -> ObjectEntry:
        with self._lock:
            return _entry(key, self._get(check_key(key)))

    def list(self, key: str) -> Iterator[Sequence[ObjectEntry]]:
        yield from _pages([entry for entry in self._below(key) if parent_of(entry.key) == key])

    def walk(self, key: str) -> Iterator[Sequence[ObjectEntry]]:
        yield from _pages(self._below(key))

    def read(self, key: str, start: int, size: int, *, version: str = "") -> bytes:
        check_range(start, size)
        with self._lock:
            kept = self._get_file(check_key(key))
            if version and version != kept.version:
                raise Stale(f"{key} is another version by now")
            return kept.content[start : start + size]

    def write(self, key: str, source: int, size: int, *, mode: int | None = None) -> ObjectEntry:
        check_object_key(key)
        content = read_exactly(source, 0, size)
        with self._lock:
            self._check_parent(key)
            old = self._kept.get(key)
            if old is not None and old.is_directory:
                raise Invalid(f"{key} is a directory")
            kept = _Kept(content=content, version=str(next(self._versions)), modified_ns=time.time_ns())
            if old is not None:
                kept.mode, kept.uid, kept.gid, kept.xattrs = old.mode, old.uid, old.gid, old.xattrs
            if mode is not None:
                kept.mode = mode
            self._kept[key] = kept
            return _entry(key, kept)

    def delete(self, key: str) -> None:
        with self._lock:
            if self._get(check_object_key(key)).is_directory:
                raise Invalid(f"{key} is a directory")
            del self._kept[key]

    def make_directory(self, key: str, *, mode: int | None = None) -> None:
        with self._lock:
            if check_key(key) in self._kept:
                raise Duplicate(f"{key} is there already")
            self._check_parent(key)
            self._kept[key] = _Kept(is_directory=True, mode=0o755 if mode is None else mode, modified_ns=time.time_ns())

    def remove_directory(self, key: str) -> None:
        with self._lock:
            if not self._get(check_object_key(key)).is_directory:
                raise Invalid(f"{key} is not a directory")
            if self._has_children(key):
                raise InUse(f"{key} is not empty")
            del self._kept[key]

    def rename(self, source: str, target: str) -> None:
        with self._lock:
            moved = self._get(check_object_key(source))
            if check_object_key(target) == source:
                return
            if is_below(target, source):
                raise Invalid(f"{source} cannot be moved into itself")
            self._check_parent(target)
            replaced = self._kept.get(target)
            if replaced is not None:
                if replaced.is_directory != moved.is_directory:
                    raise Invalid(f"{target} is there, and only one of the two is a directory")
                if self._has_children(target):
                    raise InUse(f"{target} is not empty")
            for key in [key for key in self._kept if key == source or is_below(key, source)]:
                self._kept[target + key[len(source) :]] = self._kept.pop(key)

    def copy(self, source: str, target: str) -> ObjectEntry:
        with self._lock:
            content = self._get_file(check_object_key(source)).content
            self._check_parent(check_object_key(target))
            old = self._kept.get(target)
            if old is not None and old.is_directory:
                raise Invalid(f"{target} is a directory")
            kept = _Kept(content=content, version=str(next(self._versions)), modified_ns=time.time_ns())
            self._kept[target] = kept
            return _entry(target, kept)

    def set_modes(
        self,
        key: str,
        *,
        mode: int | None = None,
        uid: int | None = None,
        gid: int | None = None,
        modified_ns: int | None = None,
    ) -> None:
        with self._lock:
            kept = self._get(check_key(key))
            kept.mode = kept.mode if mode is None else mode
            kept.uid = kept.uid if uid is None else uid
            kept.gid = kept.gid if gid is None else gid
            kept.modified_ns = kept.modified_ns if modified_ns is None else modified_ns

    def make_link(self, key: str, target: str) -> None:
        with self._lock:
            if check_key(key) in self._kept:
                raise Duplicate(f"{key} is there already")
            self._check_parent(key)
            self._kept[key] = _Kept(link_target=target, mode=0o777, modified_ns=time.time_ns())

    def xattrs(self, key: str) -> Mapping[str, bytes]:
        with self._lock:
            return dict(self._get(check_key(key)).xattrs)

    def set_xattr(self, key: str, name: str, value: bytes) -> None:
        with self._lock:
            self._get(check_key(key)).xattrs[name] = bytes(value)

    def remove_xattr(self, key: str, name: str) -> None:
        with self._lock:
            if self._get(check_key(key)).xattrs.pop(name, None) is None:
                raise NotFound(f"{key} has no attribute {name}")

    def usage(self) -> Usage | None:
        return None

    def close(self) -> None:
        """Nothing is held but memory."""

    def _get(self, key: str) -> _Kept:
        kept = self._kept.get(key)
        if kept is None:
            raise NotFound(f"{key} is not there")
        return kept

    def _get_file(self, key: str) -> _Kept:
        kept = self._get(key)
        if kept.is_directory or kept.link_target is not None:
            raise Invalid(f"{key} is not a file")
        return kept

    def _check_parent(self, key: str) -> None:
        if not self._get(parent_of(key)).is_directory:
            raise Invalid(f"{parent_of(key)} is not a directory")

    def _has_children(self, key: str) -> bool:
        return any(is_below(other, key) for other in self._kept)

    def _below(self, key: str) -> Sequence[ObjectEntry]:
        with self._lock:
            if not self._get(check_key(key)).is_directory:
                raise Invalid(f"{key} is not a directory")
            return [_entry(other, kept) for other, kept in self._kept.items() if other and is_below(other, key)]


def _entry(key: str, kept: _Kept) -> ObjectEntry:
    return ObjectEntry(
        key=key,
        is_directory=kept.is_directory,
        size=len(kept.content if kept.link_target is None else os.fsencode(kept.link_target)),
        modified_ns=kept.modified_ns,
        version=kept.version,
        mode=kept.mode,
        uid=kept.uid,
        gid=kept.gid,
        link_target=kept.link_target,
    )


def _pages(entries: Sequence[ObjectEntry]) -> Iterator[Sequence[ObjectEntry]]:
    for start in range(0, len(entries), _PAGE):
        yield entries[start : start + _PAGE]
