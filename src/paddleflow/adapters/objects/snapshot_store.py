"""A snapshot as an object store that nobody can write: what the manifest says, read from where it says.

A file that is no longer the version of the manifest is Stale when it is read: never other content under an old name.
"""

from __future__ import annotations

import gzip
import io
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NoReturn

from paddleflow.adapters.objects.keys import check_object_key
from paddleflow.domain.errors import Denied, Invalid, NotFound, Stale
from paddleflow.ports.objects import ObjectEntry, ObjectStore, Traits, Usage

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_PAGE = 1_000
_READ_AT_ONCE = 8 << 20
MOST_ENTRIES = 10_000_000
"""In one snapshot: all of them are held in memory by whoever reads it."""
_LONGEST_LINE = 64 << 10
_DEEPEST = 500
"""Directories above an entry."""


class SnapshotStore:
    """Implements ``ObjectStore`` on another one and a manifest."""

    def __init__(self, store: ObjectStore, *, manifest: str, content: str) -> None:
        """``content`` is the key below which the files lie: the snapshot's sub-path, or where its copies are."""
        self._store = store
        self._content = content.strip("/")
        self._entries: dict[str, ObjectEntry] = {"": ObjectEntry(key="", is_directory=True)}
        self._children: dict[str, list[str]] = {"": []}
        try:
            for line in _lines(store, manifest):
                self._add(line)
        except (OSError, EOFError, ValueError, KeyError, TypeError, AttributeError, Invalid, zlib.error) as error:
            raise Invalid(f"the snapshot's manifest [{manifest}] is damaged; delete the snapshot") from error

    def _add(self, line: Mapping[str, object]) -> None:
        key = check_object_key(str(line["path"]))
        if key.count("/") > _DEEPEST:
            raise ValueError("no path is that deep")
        is_directory = "version" not in line and "link" not in line
        self._make_parents(key)
        if key not in self._entries:
            self._children[_parent(key)].append(key)
        if is_directory:
            self._children.setdefault(key, [])
        self._entries[key] = ObjectEntry(
            key=key,
            is_directory=is_directory,
            size=_number(line, "size"),
            modified_ns=_number(line, "modified_ns"),
            version=str(line.get("version", "")),
            mode=_number(line, "mode") & 0o7777 if "mode" in line else None,
            link_target=str(line["link"]) if "link" in line else None,
        )

    def _make_parents(self, key: str) -> None:
        parent = _parent(key)
        if parent not in self._entries:
            self._make_parents(parent)
            self._entries[parent] = ObjectEntry(key=parent, is_directory=True)
            self._children[parent] = []
            self._children[_parent(parent)].append(parent)

    @property
    def traits(self) -> Traits:
        base = self._store.traits
        return Traits(
            real_directories=True,
            atomic_rename=False,
            holds_modes=base.holds_modes,
            holds_links=base.holds_links,
            holds_xattrs=False,
            checked_reads=base.checked_reads,
        )

    def check(self) -> None:
        self._store.check()

    def stat(self, key: str) -> ObjectEntry:
        entry = self._entries.get(key)
        if entry is None:
            raise NotFound(f"[{key}] is not in the snapshot")
        return entry

    def list(self, key: str) -> Iterator[Sequence[ObjectEntry]]:
        if not self.stat(key).is_directory:
            raise Invalid(f"[{key}] is not a directory")
        children = self._children[key]
        for start in range(0, len(children), _PAGE):
            yield [self._entries[child] for child in children[start : start + _PAGE]]

    def walk(self, key: str) -> Iterator[Sequence[ObjectEntry]]:
        waiting = [key]
        while waiting:
            for page in self.list(waiting.pop()):
                waiting += [entry.key for entry in page if entry.is_directory]
                yield page

    def read(self, key: str, start: int, size: int, *, version: str = "") -> bytes:
        entry = self.stat(key)
        if entry.is_directory:
            raise Invalid(f"[{key}] is a directory")
        if version and version != entry.version:
            raise Stale(f"[{key}] has another version in the snapshot")
        try:
            return self._store.read(f"{self._content}/{key}".lstrip("/"), start, size, version=entry.version)
        except (NotFound, Stale) as error:
            raise Stale(f"[{key}] was changed or deleted since the snapshot was made") from error

    def usage(self) -> Usage | None:
        total = sum(entry.size for entry in self._entries.values())
        return Usage(total=total, free=0)

    def xattrs(self, key: str) -> Mapping[str, bytes]:
        self.stat(key)
        return {}

    def close(self) -> None:
        self._store.close()

    def write(self, key: str, source: int, size: int, *, mode: int | None = None) -> ObjectEntry:
        _refuse()

    def delete(self, key: str) -> None:
        _refuse()

    def make_directory(self, key: str, *, mode: int | None = None) -> None:
        _refuse()

    def remove_directory(self, key: str) -> None:
        _refuse()

    def rename(self, source: str, target: str) -> None:
        _refuse()

    def copy(self, source: str, target: str) -> ObjectEntry:
        _refuse()

    def set_modes(
        self,
        key: str,
        *,
        mode: int | None = None,
        uid: int | None = None,
        gid: int | None = None,
        modified_ns: int | None = None,
    ) -> None:
        _refuse()

    def make_link(self, key: str, target: str) -> None:
        _refuse()

    def set_xattr(self, key: str, name: str, value: bytes) -> None:
        _refuse()

    def remove_xattr(self, key: str, name: str) -> None:
        _refuse()


def _refuse() -> NoReturn:
    raise Denied("a snapshot cannot be changed")


def _parent(key: str) -> str:
    return key.rpartition("/")[0]


def _number(line: Mapping[str, object], name: str) -> int:
    number = line.get(name, 0)
    if not isinstance(number, int) or abs(number) >= 1 << 63:
        raise ValueError(f"{name} is no number of an entry")
    return number


class _Stored(io.RawIOBase):
    """An object as a file that is read from its beginning to its end: no more of it is held than is being read."""

    def __init__(self, store: ObjectStore, key: str) -> None:
        self._store, self._entry, self._at = store, store.stat(key), 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        room = memoryview(buffer).cast("B")
        size = min(len(room), self._entry.size - self._at)
        if size <= 0:
            return 0
        data = self._store.read(self._entry.key, self._at, size, version=self._entry.version)
        room[: len(data)] = data
        self._at += len(data)
        return len(data)


def _lines(store: ObjectStore, manifest: str) -> Iterator[Mapping[str, object]]:
    """A storage may be anybody's: what is unpacked is looked at line by line, and no line may be endless."""
    with io.BufferedReader(_Stored(store, manifest), _READ_AT_ONCE) as packed, gzip.open(packed) as lines:
        count = 0
        while line := lines.readline(_LONGEST_LINE):
            count += 1
            if not line.endswith(b"\n") or count > MOST_ENTRIES:
                raise ValueError("it has no end")
            try:
                yield json.loads(line.decode("utf-8", "surrogateescape"))
            except RecursionError as error:
                raise ValueError("it is nested without end") from error
