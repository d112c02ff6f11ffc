"""A flat store: keys and bytes, directories only as common beginnings, or markers. What object storage is like.

It is a real ``ObjectStore`` with few abilities, so what the vfs does for such stores can be tested without a server.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterator, Mapping, Sequence

from paddleflow.domain.errors import Duplicate, InUse, Invalid, NotFound, Stale
from paddleflow.ports.objects import ObjectEntry, Traits, Usage


class FlatStore:
    traits = Traits(
        real_directories=False,
        atomic_rename=False,
        holds_modes=False,
        holds_links=False,
        holds_xattrs=False,
        checked_reads=True,
    )

    def __init__(self, page: int = 1000) -> None:
        self.objects: dict[str, tuple[bytes, str, int]] = {}
        self._versions = itertools.count(1)
        self._page = page

    def check(self) -> None:
        """There is nothing to reach."""

    def put(self, key: str, content: bytes) -> None:
        """As another machine would."""
        self.objects[key] = (content, f"v{next(self._versions)}", time.time_ns())

    def stat(self, key: str) -> ObjectEntry:
        if not key:
            return ObjectEntry(key="", is_directory=True)
        held = self.objects.get(key)
        if held is not None:
            return ObjectEntry(key=key, size=len(held[0]), modified_ns=held[2], version=held[1])
        marker = self.objects.get(f"{key}/")
        if marker is not None or self._below(key):
            return ObjectEntry(key=key, is_directory=True, modified_ns=0 if marker is None else marker[2])
        raise NotFound(f"{key} is not there")

    def list(self, key: str) -> Iterator[Sequence[ObjectEntry]]:
        if key and not self.stat(key).is_directory:
            raise Invalid(f"{key} is a file")
        prefix = f"{key}/" if key else ""
        names = {other[len(prefix) :].partition("/")[0] for other in self.objects if other.startswith(prefix)}
        entries = [self.stat(prefix + name) for name in sorted(names) if name]
        for begin in range(0, max(len(entries), 1), self._page):
            yield entries[begin : begin + self._page]

    def walk(self, key: str) -> Iterator[Sequence[ObjectEntry]]:
        prefix = f"{key}/" if key else ""
        yield [self.stat(other.rstrip("/")) for other in self.objects if other.startswith(prefix)]

    def read(self, key: str, start: int, size: int, *, version: str = "") -> bytes:
        if key not in self.objects:
            raise NotFound(f"{key} is not there")
        content, held, _ = self.objects[key]
        if version and version != held:
            raise Stale(f"{key} is another version by now")
        return content[start : start + size]

    def write(self, key: str, source: int, size: int, *, mode: int | None = None) -> ObjectEntry:
        self.put(key, os.pread(source, size, 0))
        return self.stat(key)

    def delete(self, key: str) -> None:
        if self.objects.pop(key, None) is None:
            raise NotFound(f"{key} is not there")

    def make_directory(self, key: str, *, mode: int | None = None) -> None:
        if key in self.objects or f"{key}/" in self.objects or self._below(key):
            raise Duplicate(f"{key} is there")
        self.put(f"{key}/", b"")

    def remove_directory(self, key: str) -> None:
        if not self.stat(key).is_directory:
            raise Invalid(f"{key} is a file")
        if any(other != f"{key}/" for other in self._below(key)):
            raise InUse(f"{key} is not empty")
        self.objects.pop(f"{key}/", None)

    def rename(self, source: str, target: str) -> None:
        if self.stat(source).is_directory:
            self.objects.pop(f"{target}/", None)
            for key in self._below(source):
                self.put(target + key[len(source) :], self.objects.pop(key)[0])
        else:
            self.put(target, self.objects.pop(source)[0])

    def copy(self, source: str, target: str) -> ObjectEntry:
        self.put(target, self.objects[source][0])
        return self.stat(target)

    def set_modes(
        self,
        key: str,
        *,
        mode: int | None = None,
        uid: int | None = None,
        gid: int | None = None,
        modified_ns: int | None = None,
    ) -> None:
        raise Invalid("no modes here")

    def make_link(self, key: str, target: str) -> None:
        raise Invalid("no links here")

    def xattrs(self, key: str) -> Mapping[str, bytes]:
        raise Invalid("no attributes here")

    def set_xattr(self, key: str, name: str, value: bytes) -> None:
        raise Invalid("no attributes here")

    def remove_xattr(self, key: str, name: str) -> None:
        raise Invalid("no attributes here")

    def usage(self) -> Usage | None:
        return None

    def close(self) -> None:
        """Nothing is open."""

    def _below(self, key: str) -> list[str]:
        return [other for other in self.objects if other.startswith(f"{key}/")]
