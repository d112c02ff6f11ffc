"""Filesystems and what belongs to them: links, cache configuration, mounts, cache reports, snapshots. The repositories
in dictionaries."""

from __future__ import annotations

from datetime import datetime

from paddleflow.adapters.memory.tables import Rows, Transaction, in_utc
from paddleflow.domain.errors import Conflict
from paddleflow.domain.filesystems import CacheConfig, Filesystem, Link
from paddleflow.domain.ids import FilesystemId, MountId, SnapshotId, UserName
from paddleflow.domain.mounts import CacheReport, Mount
from paddleflow.domain.queries import Page, PageRequest
from paddleflow.domain.snapshots import Snapshot, SnapshotState

_REPORTS = "cache report"
_BELONGINGS = ("link", "cache config", "mount", _REPORTS, "snapshot")


def _must_exist(transaction: Transaction, fs_id: FilesystemId) -> None:
    if fs_id not in transaction.table("filesystem"):
        raise Conflict(f"there is no filesystem [{fs_id}] that it could belong to")


class MemoryFilesystems:
    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self._rows: Rows[Filesystem] = Rows(transaction, "filesystem", lambda filesystem: filesystem.id)

    def find(self, id: FilesystemId) -> Filesystem | None:
        return self._rows.find(id)

    def add(self, filesystem: Filesystem) -> Filesystem:
        return self._rows.add(filesystem)

    def save(self, filesystem: Filesystem) -> Filesystem:
        return self._rows.save(filesystem)

    def delete(self, id: FilesystemId) -> None:
        self._rows.delete(id)
        for kind in _BELONGINGS:
            rows = self._transaction.change(kind)
            for key in [key for key, row in rows.items() if row.fs_id == id]:
                del rows[key]

    def page(self, owner: UserName | None, name: str, request: PageRequest) -> Page[Filesystem]:
        return self._rows.page(
            request, lambda filesystem: owner in (None, filesystem.owner) and name in ("", filesystem.name)
        )


class MemoryLinks:
    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self._rows: Rows[Link] = Rows(transaction, "link", lambda link: (link.fs_id, link.fs_path))

    def find(self, fs_id: FilesystemId, fs_path: str) -> Link | None:
        return self._rows.find((fs_id, fs_path))

    def add(self, link: Link) -> Link:
        _must_exist(self._transaction, link.fs_id)
        return self._rows.add(link)

    def delete(self, fs_id: FilesystemId, fs_path: str) -> None:
        self._rows.delete((fs_id, fs_path))

    def of_filesystem(self, fs_id: FilesystemId) -> tuple[Link, ...]:
        return tuple(link for link in self._rows.all() if link.fs_id == fs_id)

    def page(self, fs_id: FilesystemId, request: PageRequest) -> Page[Link]:
        return self._rows.page(request, lambda link: link.fs_id == fs_id)


class MemoryCacheConfigs:
    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self._rows: Rows[CacheConfig] = Rows(transaction, "cache config", lambda config: config.fs_id)

    def find(self, fs_id: FilesystemId) -> CacheConfig | None:
        return self._rows.find(fs_id)

    def add(self, config: CacheConfig) -> CacheConfig:
        _must_exist(self._transaction, config.fs_id)
        return self._rows.add(config)

    def save(self, config: CacheConfig) -> CacheConfig:
        return self._rows.save(config)

    def delete(self, fs_id: FilesystemId) -> None:
        self._rows.delete(fs_id)


class MemoryMounts:
    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self._rows: Rows[Mount] = Rows(transaction, "mount", lambda mount: mount.id)

    def find(self, id: MountId) -> Mount | None:
        return self._rows.find(id)

    def add(self, mount: Mount) -> Mount:
        _must_exist(self._transaction, mount.fs_id)
        return self._rows.add(mount)

    def save(self, mount: Mount) -> Mount:
        return self._rows.save(mount)

    def delete(self, id: MountId) -> None:
        self._rows.delete(id)

    def of_filesystem(self, fs_id: FilesystemId, seen_since: datetime) -> tuple[Mount, ...]:
        return tuple(mount for mount in self._rows.all() if mount.fs_id == fs_id and mount.seen_at >= seen_since)

    def delete_unseen(self, since: datetime) -> int:
        return self._rows.delete_where(lambda mount: mount.seen_at < since)


class MemoryCacheReports:
    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def put(self, report: CacheReport) -> None:
        _must_exist(self._transaction, report.fs_id)
        key = (report.fs_id, report.node, report.mount_id)
        self._transaction.change(_REPORTS)[key] = in_utc(report)

    def of_filesystem(self, fs_id: FilesystemId) -> tuple[CacheReport, ...]:
        return tuple(report for report in self._all() if report.fs_id == fs_id)

    def since(self, at: datetime) -> tuple[CacheReport, ...]:
        return tuple(report for report in self._all() if report.reported_at >= at)

    def delete_before(self, at: datetime) -> int:
        old = [report for report in self._all() if report.reported_at < at]
        table = self._transaction.change(_REPORTS)
        for report in old:
            del table[(report.fs_id, report.node, report.mount_id)]
        return len(old)

    def _all(self) -> list[CacheReport]:
        return [report for _, report in sorted(self._transaction.table(_REPORTS).items())]


class MemorySnapshots:
    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self._rows: Rows[Snapshot] = Rows(transaction, "snapshot", lambda snapshot: snapshot.id)

    def find(self, id: SnapshotId) -> Snapshot | None:
        return self._rows.find(id)

    def add(self, snapshot: Snapshot) -> Snapshot:
        _must_exist(self._transaction, snapshot.fs_id)
        return self._rows.add(snapshot)

    def save(self, snapshot: Snapshot) -> Snapshot:
        return self._rows.save(snapshot)

    def delete(self, id: SnapshotId) -> None:
        self._rows.delete(id)

    def page(self, fs_id: FilesystemId, request: PageRequest) -> Page[Snapshot]:
        return self._rows.page(request, lambda snapshot: snapshot.fs_id == fs_id)

    def in_state(self, states: frozenset[SnapshotState]) -> tuple[Snapshot, ...]:
        return tuple(snapshot for snapshot in self._rows.all() if snapshot.state in states)
