"""Storage plans become open stores and cache directories: for workers of mounts, for the SDK, for the server itself."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from paddleflow.adapters.objects import open_store, store_identity
from paddleflow.adapters.objects.snapshot_store import SnapshotStore
from paddleflow.domain.storages import Storage
from paddleflow.pfs.cache import Level
from paddleflow.pfs.routes import Routes
from paddleflow.ports.objects import ObjectStore

GIB = 1 << 30
_DISK_LIMIT = 64 * GIB
"""Of the cache on disk, unless told otherwise; the floor of free space holds besides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StorePlan:
    """One store of a filesystem: its root's, or a link's."""

    path: str = ""
    """Where it lies in the filesystem; empty: it is the root."""
    type: str
    address: str = ""
    root: str = ""
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    manifest: str = ""
    """Of a snapshot: the key of its manifest; the content is read from ``content``."""
    content: str = ""

    @classmethod
    def of(cls, storage: Storage, path: str = "") -> StorePlan:
        return cls(
            path=path,
            type=storage.type,
            address=storage.server_address,
            root=storage.sub_path,
            properties=storage.properties,
        )

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "properties": dict(self.properties)}

    def open(self) -> ObjectStore:
        store = open_store(self.type, self.address, self.root, self.properties)
        return SnapshotStore(store, manifest=self.manifest, content=self.content) if self.manifest else store

    @property
    def identity(self) -> str:
        """What the cache keeps its content under. A snapshot's key and version mean what they mean in its storage only
        where the content lies in the same place, so a snapshot has a name of its own."""
        storage = store_identity(self.type, self.address, self.root, self.properties)
        return f"{storage}-{PurePosixPath(self.manifest).name}" if self.manifest else storage


def open_storage(storage: Storage) -> ObjectStore:
    """For the server's own needs: no cache in between."""
    return StorePlan.of(storage).open()


def open_routes(plans: Sequence[StorePlan]) -> Routes:
    root = next(plan for plan in plans if not plan.path)
    links = {plan.path: (plan.open(), plan.identity) for plan in plans if plan.path}
    return Routes(root.open(), root.identity, links)


def default_cache_dir(environ: Mapping[str, str] = os.environ) -> Path:
    base = environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if base.startswith("/") else Path.home() / ".cache") / "paddleflow" / "fs"


def cache_levels(
    cache_dir: str = "", cache_size: int = 0, memory_size: int = 0, memory_dir: str = ""
) -> tuple[Level, ...]:
    """Memory first, where some is given, then the disk."""
    disk = Level(directory=cache_dir or str(default_cache_dir()), limit=cache_size or _DISK_LIMIT)
    if not memory_size:
        return (disk,)
    directory = memory_dir or f"/dev/shm/paddleflow-{os.getuid()}"  # noqa: S108 - made with mode 0700 by the cache
    return (Level(directory=directory, limit=memory_size, free_floor=0.0, is_memory=True), disk)
