"""Snapshots on the storage itself: a manifest of versions, and, for a copy, the files.

The manifest is gzip of JSON lines. It is written last and at once, so a snapshot that was cut off has none.
"""

from __future__ import annotations

import gzip
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace

from paddleflow.adapters.objects.snapshot_store import MOST_ENTRIES
from paddleflow.domain.errors import Duplicate, Invalid, NotFound, Unavailable
from paddleflow.domain.filesystems import RESERVED
from paddleflow.domain.snapshots import Snapshot, SnapshotKind
from paddleflow.domain.storages import Storage
from paddleflow.ports.objects import ObjectEntry, ObjectStore
from paddleflow.ports.storages import Progress, SnapshotSize

_COPIES_AT_ONCE = 8
_TOLD_EVERY = 1_000


class StoredSnapshots:
    """Implements the port ``Snapshots`` on whatever store ``open_store`` opens."""

    def __init__(self, open_store: Callable[[Storage], ObjectStore]) -> None:
        self._open = open_store

    def make(self, storage: Storage, snapshot: Snapshot, progress: Progress) -> SnapshotSize:
        store = self._open(storage)
        try:
            return _make(store, snapshot, progress)
        finally:
            store.close()

    def remove(self, storage: Storage, snapshot: Snapshot) -> None:
        store = self._open(storage)
        try:
            remove_tree(store, snapshot.content_path)
            with suppress(NotFound):  # it was never finished
                store.delete(snapshot.manifest_path)
        finally:
            store.close()


def _make(store: ObjectStore, snapshot: Snapshot, progress: Progress) -> SnapshotSize:
    size = SnapshotSize(files=0, bytes=0)
    is_copy = snapshot.kind is SnapshotKind.COPY
    make_directories(store, snapshot.content_path if is_copy else os.path.dirname(snapshot.manifest_path))
    told = entries = 0
    with tempfile.TemporaryFile() as manifest, ThreadPoolExecutor(_COPIES_AT_ONCE) as pool:
        with gzip.open(manifest, "wt", encoding="utf-8", errors="surrogateescape") as lines:
            for page in entries_of(store, snapshot.sub_path):
                if is_copy:
                    _make_parents(store, snapshot, page)
                kept = pool.map(lambda entry: _copied(store, snapshot, entry), page) if is_copy else page
                for entry in kept:
                    lines.write(json.dumps(_line(entry), ensure_ascii=False) + "\n")
                    if not entry.is_directory:
                        size = SnapshotSize(files=size.files + 1, bytes=size.bytes + entry.size)
                entries += len(page)
                if entries > MOST_ENTRIES:
                    raise Invalid(
                        f"a snapshot holds at most {MOST_ENTRIES} entries; take one of each of its directories"
                    )
                if size.files - told >= _TOLD_EVERY:
                    told = size.files
                    _tell(progress, size)
        _tell(progress, size)
        manifest.flush()  # the end of it: the store reads the file, not our buffer
        store.write(snapshot.manifest_path, manifest.fileno(), os.fstat(manifest.fileno()).st_size)
    return size


def _tell(progress: Progress, size: SnapshotSize) -> None:
    if not progress(size):
        raise Unavailable("nobody wants this snapshot any more")


def entries_of(store: ObjectStore, sub_path: str) -> Iterator[list[ObjectEntry]]:
    """Everything below, with keys relative to it; what we keep for ourselves is left out."""
    below = sub_path.strip("/")
    start = len(below) + 1 if below else 0
    for page in store.walk(below):
        relative = [replace(entry, key=entry.key[start:]) for entry in page]
        yield [entry for entry in relative if below or not _is_reserved(entry.key)]


def _is_reserved(key: str) -> bool:
    return key == RESERVED or key.startswith(RESERVED + "/")


def _make_parents(store: ObjectStore, snapshot: Snapshot, page: list[ObjectEntry]) -> None:
    if not store.traits.real_directories:
        return
    wanted = {entry.key if entry.is_directory else os.path.dirname(entry.key) for entry in page}
    for directory in sorted(wanted - {""}):
        make_directories(store, f"{snapshot.content_path}/{directory}")


def _copied(store: ObjectStore, snapshot: Snapshot, entry: ObjectEntry) -> ObjectEntry:
    if entry.is_directory or entry.link_target is not None:
        return entry
    source = f"{snapshot.sub_path.strip('/')}/{entry.key}".lstrip("/")
    copy = store.copy(source, f"{snapshot.content_path}/{entry.key}")
    return replace(entry, size=copy.size, version=copy.version)


def _line(entry: ObjectEntry) -> dict[str, object]:
    line: dict[str, object] = {"path": entry.key, "modified_ns": entry.modified_ns}
    if entry.mode is not None:
        line["mode"] = entry.mode
    if entry.link_target is not None:
        line["link"] = entry.link_target
    elif not entry.is_directory:
        line |= {"size": entry.size, "version": entry.version}
    return line


def make_directories(store: ObjectStore, key: str) -> None:
    """A directory and its parents, as far as they are missing."""
    if not store.traits.real_directories:
        return
    parts = key.split("/")
    for depth in range(1, len(parts) + 1):
        with suppress(Duplicate):  # it was there before
            store.make_directory("/".join(parts[:depth]))


def remove_tree(store: ObjectStore, key: str) -> None:
    """A directory and all below it; nothing there is no error."""
    directories = [key]
    try:
        for page in store.walk(key):
            for entry in page:
                if entry.is_directory:
                    directories.append(entry.key)
                else:
                    _gone(store.delete, entry.key)
    except NotFound:
        return
    for directory in sorted(directories, key=len, reverse=True):
        _gone(store.remove_directory, directory)


def _gone(remove: Callable[[str], None], key: str) -> None:
    # A flat store has no directory left once its last object went; another remover may have been faster.
    with suppress(NotFound):
        remove(key)
