"""The files of users' filesystems as the server itself reads and clears them: ``ports.files.Files`` for every type.

A plain directory of the host is used as it is; everything else, and a directory with links in it, through its stores.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from paddleflow.adapters.directories import DirectoryFiles
from paddleflow.adapters.objects.files import StoredFiles
from paddleflow.domain.filesystems import Filesystem, Link
from paddleflow.domain.storages import LOCAL, opened
from paddleflow.pfs.routed import RoutedStore
from paddleflow.pfs.routes import Routes
from paddleflow.ports.files import FileEntry, Files, Wanted, always
from paddleflow.ports.identity import Identity
from paddleflow.ports.objects import ObjectStore
from paddleflow.ports.store import Store
from paddleflow.wiring.stores import StorePlan


class EveryonesFiles:
    def __init__(self, store: Store, identity: Identity) -> None:
        self._store = store
        self._identity = identity
        self._directories = DirectoryFiles()
        self._stored = StoredFiles(self._open)

    def _of(self, fs: Filesystem) -> tuple[Files, Filesystem]:
        """Who has its files, and the filesystem with a version that also changes when links come or go."""
        links = self._links(fs)
        if fs.type == LOCAL and not links:
            return self._directories, fs
        return self._stored, replace(fs, version=hash((fs.version, *(link.seq for link in links))))

    def _links(self, fs: Filesystem) -> tuple[Link, ...]:
        with self._store.read() as view:
            return view.links.of_filesystem(fs.id)

    def _open(self, fs: Filesystem) -> ObjectStore:
        root = StorePlan.of(opened(fs.storage, self._identity.unseal))
        links = [
            StorePlan.of(opened(link.storage, self._identity.unseal), link.fs_path.strip("/"))
            for link in self._links(fs)
        ]
        if not links:
            return root.open()
        stores = {plan.path: (plan.open(), plan.identity) for plan in links}
        base = root.open()
        routes = Routes(base, root.identity, stores)
        return RoutedStore(routes, [base, *(store for store, _ in stores.values())])

    def read(self, fs: Filesystem, path: str, limit: int) -> bytes:
        files, fs = self._of(fs)
        return files.read(fs, path, limit)

    def read_range(self, fs: Filesystem, path: str, start: int, limit: int) -> bytes:
        files, fs = self._of(fs)
        return files.read_range(fs, path, start, limit)

    def entry(self, fs: Filesystem, path: str) -> FileEntry:
        files, fs = self._of(fs)
        return files.entry(fs, path)

    def walk(self, fs: Filesystem, path: str) -> Iterator[FileEntry]:
        files, fs = self._of(fs)
        return files.walk(fs, path)

    def digest(self, fs: Filesystem, path: str, is_wanted: Wanted = always) -> str:
        files, fs = self._of(fs)
        return files.digest(fs, path, is_wanted)

    def make_way(self, fs: Filesystem, path: str) -> None:
        files, fs = self._of(fs)
        files.make_way(fs, path)

    def remove(self, fs: Filesystem, path: str, is_wanted: Wanted = always) -> None:
        files, fs = self._of(fs)
        files.remove(fs, path, is_wanted)

    def close(self) -> None:
        self._stored.close()
