"""Lists and details of what belongs to a filesystem. Every method takes the actor and answers only what that actor may
see: all of this is the owner's and root's."""

from __future__ import annotations

from dataclasses import dataclass

from paddleflow.domain.errors import Denied, Invalid, NotFound
from paddleflow.domain.filesystems import CacheConfig, Filesystem, Link, check_link_path
from paddleflow.domain.ids import SnapshotId, UserName, filesystem_id
from paddleflow.domain.mounts import SEEN_WITHIN, Mount, NodeCache, by_node
from paddleflow.domain.queries import Page, PageRequest
from paddleflow.domain.snapshots import Snapshot
from paddleflow.domain.users import Actor
from paddleflow.ports.clock import Clock
from paddleflow.ports.store import ReadView, Store


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveMount:
    mount: Mount
    cache: NodeCache | None
    """What it last said of its node's cache; None: nothing yet."""


class StorageReads:
    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def links(self, actor: Actor, owner: str, name: str, request: PageRequest) -> tuple[Filesystem, Page[Link]]:
        with self._store.read() as view:
            filesystem = _filesystem(view, actor, owner, name)
            return filesystem, view.links.page(filesystem.id, request)

    def link(self, actor: Actor, owner: str, name: str, path: str) -> tuple[Filesystem, Link]:
        with self._store.read() as view:
            filesystem = _filesystem(view, actor, owner, name)
            found = view.links.find(filesystem.id, check_link_path(path))
        if found is None:
            raise Invalid(f"Link not exist: fs[{name}] has none at [{path[:80]}]", code="LinkNotExist")
        return filesystem, found

    def cache_config(self, actor: Actor, owner: str, name: str) -> tuple[Filesystem, CacheConfig]:
        with self._store.read() as view:
            filesystem = _filesystem(view, actor, owner, name)
            found = view.cache_configs.find(filesystem.id)
        if found is None:
            raise NotFound(f"fs[{name}] has no cache configuration", code="RecordNotFound")
        return filesystem, found

    def caches(self, actor: Actor, owner: str, name: str) -> tuple[Filesystem, tuple[NodeCache, ...]]:
        """The cache of every node that has reported within a day."""
        with self._store.read() as view:
            filesystem = _filesystem(view, actor, owner, name)
            return filesystem, by_node(view.cache_reports.of_filesystem(filesystem.id))

    def mounts(self, actor: Actor, owner: str, name: str) -> tuple[Filesystem, tuple[LiveMount, ...]]:
        with self._store.read() as view:
            filesystem = _filesystem(view, actor, owner, name)
            mounts = view.mounts.of_filesystem(filesystem.id, self._clock.now() - SEEN_WITHIN)
            reports = {report.mount_id: report for report in view.cache_reports.of_filesystem(filesystem.id)}
        live = []
        for mount in mounts:
            report = reports.get(mount.id)
            live.append(LiveMount(mount=mount, cache=None if report is None else by_node((report,))[0]))
        return filesystem, tuple(live)

    def snapshots(self, actor: Actor, owner: str, name: str, request: PageRequest) -> tuple[Filesystem, Page[Snapshot]]:
        with self._store.read() as view:
            filesystem = _filesystem(view, actor, owner, name)
            return filesystem, view.snapshots.page(filesystem.id, request)

    def snapshot(self, actor: Actor, owner: str, name: str, snapshot_id: SnapshotId) -> tuple[Filesystem, Snapshot]:
        with self._store.read() as view:
            filesystem = _filesystem(view, actor, owner, name)
            found = view.snapshots.find(snapshot_id)
        if found is None or found.fs_id != filesystem.id:
            raise NotFound(f"fs[{name}] has no snapshot[{snapshot_id[:80]}]", code="RecordNotFound")
        return filesystem, found


def _filesystem(view: ReadView, actor: Actor, owner: str, name: str) -> Filesystem:
    whose = UserName(owner or actor.name)
    if whose != actor.name and not actor.is_root:
        raise Denied("Access denied", code="AccessDenied")
    found = view.filesystems.find(filesystem_id(whose, name))
    if found is None:
        raise NotFound(f"username[{whose}] not create fsName[{name[:80]}]", code="RecordNotFound")
    return found
