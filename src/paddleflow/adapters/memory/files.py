"""Filesystems in dictionaries: for stories, where nobody but the test writes files.

Keeps the promises of the port that make sense without a disk. There are no links. A directory is there because it was
made, or because something is in it.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from paddleflow.domain.errors import Invalid, TooLarge, Unavailable, invalid_field, not_found
from paddleflow.domain.filesystems import Filesystem
from paddleflow.domain.ids import FilesystemId
from paddleflow.domain.runs import RUNS_DIRECTORY
from paddleflow.ports.clock import Clock
from paddleflow.ports.files import FileEntry, Wanted, always

_Parts = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Node:
    modified_at: datetime
    content: bytes | None = None
    """None: a directory."""


class MemoryFiles:
    """``ports.files.Files`` that forgets everything when it goes."""

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock
        self._trees: dict[FilesystemId, dict[_Parts, _Node]] = {}
        self._lock = threading.RLock()

    # What the story makes happen.

    def write(self, fs: Filesystem, path: str, content: bytes) -> None:
        """A file, with the directories it is in."""
        parts = _inner_parts(path)
        with self._lock:
            nodes = self._nodes(fs)
            self._make_directories(fs, parts[:-1])
            if parts in nodes and nodes[parts].content is None:
                raise Invalid(f"[{path}] on filesystem [{fs.name}] is a directory")
            nodes[parts] = _Node(self._clock.now(), content)

    def make_directory(self, fs: Filesystem, path: str) -> None:
        with self._lock:
            self._make_directories(fs, _parts(path))

    # The port.

    def read(self, fs: Filesystem, path: str, limit: int) -> bytes:
        content = self._content(fs, path)
        if len(content) > limit:
            message = f"[{path}] on filesystem [{fs.name}] has more than {limit} bytes"
            raise TooLarge(message, details={"limit": limit})
        return content

    def read_range(self, fs: Filesystem, path: str, start: int, limit: int) -> bytes:
        for name, number in (("start", start), ("limit", limit)):
            if number < 0:
                raise invalid_field(name, f"[{number}] must not be negative")
        return self._content(fs, path)[start : start + limit]

    def entry(self, fs: Filesystem, path: str) -> FileEntry:
        parts = _parts(path)
        with self._lock:
            return _entry(parts, self._find(fs, parts))

    def walk(self, fs: Filesystem, path: str) -> Iterator[FileEntry]:
        for parts, node in self._at_and_below(fs, _parts(path)):
            yield _entry(parts, node)

    def digest(self, fs: Filesystem, path: str, is_wanted: Wanted = always) -> str:
        if not is_wanted():
            raise Unavailable("nobody wants the digest any more")
        top = _parts(path)
        found = self._at_and_below(fs, top)
        if found[0][1].content is not None:
            return hashlib.sha256(found[0][1].content).hexdigest()
        whole = hashlib.sha256(b"directory\0")
        for parts, node in found[1:]:
            if RUNS_DIRECTORY in parts[len(top) :]:
                continue
            name = "/".join(parts[len(top) :])
            kind = "d" if node.content is None else "f" + hashlib.sha256(node.content).hexdigest()
            whole.update(f"{len(name)}:{name}{kind}".encode(errors="surrogateescape"))
        return whole.hexdigest()

    def make_way(self, fs: Filesystem, path: str) -> None:
        parts = _inner_parts(path)
        with self._lock:
            self._make_directories(fs, parts[:-1])
            self._remove(fs, parts)

    def remove(self, fs: Filesystem, path: str, is_wanted: Wanted = always) -> None:
        if not is_wanted():
            raise Unavailable("nobody wants it removed any more")
        parts = _inner_parts(path)
        with self._lock:
            self._remove(fs, parts)

    def _remove(self, fs: Filesystem, parts: _Parts) -> None:
        self._must_lead_through_directories(fs, parts)
        nodes = self._nodes(fs)
        for each in [each for each in nodes if each[: len(parts)] == parts]:
            del nodes[each]

    def _nodes(self, fs: Filesystem) -> dict[_Parts, _Node]:
        if fs.type != "local":
            raise Invalid(f"filesystem [{fs.name}] is of type [{fs.type}]; only files of type [local] can be used here")
        if fs.id not in self._trees:
            self._trees[fs.id] = {(): _Node(self._clock.now())}
        return self._trees[fs.id]

    def _make_directories(self, fs: Filesystem, parts: _Parts) -> None:
        nodes = self._nodes(fs)
        self._must_lead_through_directories(fs, (*parts, ""))
        for depth in range(1, len(parts) + 1):
            nodes.setdefault(parts[:depth], _Node(self._clock.now()))

    def _must_lead_through_directories(self, fs: Filesystem, parts: _Parts) -> None:
        nodes = self._nodes(fs)
        for depth in range(1, len(parts)):
            above = nodes.get(parts[:depth])
            if above is not None and above.content is not None:
                path = "/".join(parts)
                raise Invalid(f"[{path}] on filesystem [{fs.name}] leads through something that is not a directory")

    def _find(self, fs: Filesystem, parts: _Parts) -> _Node:
        self._must_lead_through_directories(fs, parts)
        node = self._nodes(fs).get(parts)
        if node is None:
            raise not_found("file", "/".join(parts))
        return node

    def _content(self, fs: Filesystem, path: str) -> bytes:
        parts = _parts(path)
        with self._lock:
            content = self._find(fs, parts).content
        if content is None:
            raise Invalid(f"[{path}] on filesystem [{fs.name}] is a directory, not a file")
        return content

    def _at_and_below(self, fs: Filesystem, parts: _Parts) -> list[tuple[_Parts, _Node]]:
        """Parents before what they hold, sorted by name: as their components sort."""
        with self._lock:
            self._find(fs, parts)
            return sorted(
                ((each, node) for each, node in self._nodes(fs).items() if each[: len(parts)] == parts),
                key=lambda found: found[0],
            )


def _parts(path: str) -> _Parts:
    """The components of a path; empty for the root itself."""
    if "\0" in path:
        raise invalid_field("path", "it has a NUL character in it")
    if path.startswith("/"):
        raise invalid_field("path", f"[{path}] begins with '/': give it relative to the root of the filesystem")
    parts = tuple(part for part in path.split("/") if part not in ("", "."))
    if ".." in parts:
        raise invalid_field("path", f"[{path}] has '..' in it")
    return parts


def _inner_parts(path: str) -> _Parts:
    parts = _parts(path)
    if not parts:
        raise invalid_field("path", "it is the root of the filesystem, which stays")
    return parts


def _entry(parts: _Parts, node: _Node) -> FileEntry:
    return FileEntry(
        path="/".join(parts),
        is_directory=node.content is None,
        size=0 if node.content is None else len(node.content),
        modified_at=node.modified_at,
    )
