"""Mounts and what they report of their caches: rows and repositories."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from sqlalchemy import bindparam, delete, select

from paddleflow.adapters.sql.session import Session
from paddleflow.adapters.sql.statements import Row, Statement, delete_by, insert_row, select_by, update_version, upsert
from paddleflow.adapters.sql.storage_tables import cache_reports, mounts
from paddleflow.adapters.sql.values import from_micros, mapping_from_json, mapping_to_json, to_micros
from paddleflow.domain.ids import FilesystemId, MountId
from paddleflow.domain.mounts import CacheReport, Mount

_BY_ID = select_by(mounts, "id")
_ADD = insert_row(mounts)
_SAVE = update_version(mounts, "id")
_DELETE = delete_by(mounts, "id")
_OF = Statement(
    select(mounts)
    .where(mounts.c.fs_id == bindparam("fs_id"), mounts.c.seen_at >= bindparam("since"))
    .order_by(mounts.c.seq)
)
_DELETE_UNSEEN = Statement(delete(mounts).where(mounts.c.seen_at < bindparam("since")))


def _mount(row: Row) -> Mount:
    seq, id, fs_id, user, node, mountpoint, read_only, snapshot, created_at, seen_at, version = row
    return Mount(
        id=id,
        fs_id=fs_id,
        user=user,
        node=node,
        mountpoint=mountpoint,
        # SQLite has no booleans, only zero and one.
        read_only=bool(read_only),
        snapshot=snapshot,
        created_at=from_micros(created_at),
        seen_at=from_micros(seen_at),
        seq=seq,
        version=version,
    )


def _row(mount: Mount, version: int) -> dict[str, object]:
    return {
        "id": mount.id,
        "fs_id": mount.fs_id,
        "user_name": mount.user,
        "node": mount.node,
        "mountpoint": mount.mountpoint,
        "read_only": mount.read_only,
        "snapshot": mount.snapshot,
        "created_at": to_micros(mount.created_at),
        "seen_at": to_micros(mount.seen_at),
        "version": version,
    }


class SqlMounts:
    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    def find(self, id: MountId) -> Mount | None:
        row = self._session.row(_BY_ID, {"id": id})
        return None if row is None else _mount(row)

    def add(self, mount: Mount) -> Mount:
        seq = self._session.insert(_ADD, _row(mount, 1), kind="mount", name=mount.id)
        return replace(mount, seq=seq, version=1)

    def save(self, mount: Mount) -> Mount:
        version, seen = mount.version + 1, mount.version
        self._session.save(_SAVE, _row(mount, version), kind="mount", name=mount.id, seen=seen)
        return replace(mount, version=version)

    def delete(self, id: MountId) -> None:
        self._session.change(_DELETE, {"id": id})

    def of_filesystem(self, fs_id: FilesystemId, seen_since: datetime) -> tuple[Mount, ...]:
        rows = self._session.rows(_OF, {"fs_id": fs_id, "since": to_micros(seen_since)})
        return tuple(_mount(row) for row in rows)

    def delete_unseen(self, since: datetime) -> int:
        return self._session.change(_DELETE_UNSEEN, {"since": to_micros(since)})


_PUT = upsert(cache_reports, "fs_id", "node", "mount_id")
_IN_ORDER = (cache_reports.c.fs_id, cache_reports.c.node, cache_reports.c.mount_id)
_REPORTS_OF = Statement(select(cache_reports).where(cache_reports.c.fs_id == bindparam("fs_id")).order_by(*_IN_ORDER))
_SINCE = Statement(select(cache_reports).where(cache_reports.c.reported_at >= bindparam("at")).order_by(*_IN_ORDER))
_DELETE_BEFORE = Statement(delete(cache_reports).where(cache_reports.c.reported_at < bindparam("at")))
_COUNTS = ("cached_bytes", "cached_files", "total_bytes", "hits", "misses", "hit_bytes", "miss_bytes")


def _report(row: Row) -> CacheReport:
    fs_id, node, mount_id, *counts, prefixes, reported_at = row
    return CacheReport(
        fs_id=fs_id,
        node=node,
        mount_id=mount_id,
        **dict(zip(_COUNTS, counts, strict=True)),
        prefixes=mapping_from_json(prefixes),
        reported_at=from_micros(reported_at),
    )


class SqlCacheReports:
    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    def put(self, report: CacheReport) -> None:
        row: dict[str, object] = {name: getattr(report, name) for name in _COUNTS}
        row |= {"fs_id": report.fs_id, "node": report.node, "mount_id": report.mount_id}
        row |= {"prefixes": mapping_to_json(report.prefixes), "reported_at": to_micros(report.reported_at)}
        self._session.change(_PUT, row)

    def of_filesystem(self, fs_id: FilesystemId) -> tuple[CacheReport, ...]:
        return tuple(_report(row) for row in self._session.rows(_REPORTS_OF, {"fs_id": fs_id}))

    def since(self, at: datetime) -> tuple[CacheReport, ...]:
        return tuple(_report(row) for row in self._session.rows(_SINCE, {"at": to_micros(at)}))

    def delete_before(self, at: datetime) -> int:
        return self._session.change(_DELETE_BEFORE, {"at": to_micros(at)})
