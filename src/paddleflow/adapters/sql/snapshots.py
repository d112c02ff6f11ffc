"""Snapshots of filesystems: rows and repository."""

from __future__ import annotations

from dataclasses import replace

from sqlalchemy import bindparam, select

from paddleflow.adapters.sql.session import Session, page_of
from paddleflow.adapters.sql.statements import Row, Statement, delete_by, insert_row, select_by, update_version
from paddleflow.adapters.sql.storage_tables import snapshots
from paddleflow.adapters.sql.values import from_micros, to_micros
from paddleflow.domain.ids import FilesystemId, SnapshotId
from paddleflow.domain.queries import Page, PageRequest
from paddleflow.domain.snapshots import Snapshot, SnapshotKind, SnapshotState

_BY_ID = select_by(snapshots, "id")
_ADD = insert_row(snapshots)
_SAVE = update_version(snapshots, "id")
_DELETE = delete_by(snapshots, "id")
_IN_STATE = Statement(select(snapshots).where(snapshots.c.state == bindparam("state")))
_PAGE = Statement(
    select(snapshots)
    .where(snapshots.c.fs_id == bindparam("fs_id"), snapshots.c.seq > bindparam("after"))
    .order_by(snapshots.c.seq)
    .limit(bindparam("limit"))
)


def _snapshot(row: Row) -> Snapshot:
    seq, id, fs_id, owner, name, sub_path, kind, state, files, size, message, created_at, updated_at, version = row
    return Snapshot(
        id=id,
        fs_id=fs_id,
        owner=owner,
        name=name,
        sub_path=sub_path,
        kind=SnapshotKind(kind),
        state=SnapshotState(state),
        files=files,
        bytes=size,
        message=message,
        created_at=from_micros(created_at),
        updated_at=from_micros(updated_at),
        seq=seq,
        version=version,
    )


def _row(snapshot: Snapshot, version: int) -> dict[str, object]:
    return {
        "id": snapshot.id,
        "fs_id": snapshot.fs_id,
        "owner": snapshot.owner,
        "name": snapshot.name,
        "sub_path": snapshot.sub_path,
        "kind": snapshot.kind.value,
        "state": snapshot.state.value,
        "files": snapshot.files,
        "bytes": snapshot.bytes,
        "message": snapshot.message,
        "created_at": to_micros(snapshot.created_at),
        "updated_at": to_micros(snapshot.updated_at),
        "version": version,
    }


class SqlSnapshots:
    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    def find(self, id: SnapshotId) -> Snapshot | None:
        row = self._session.row(_BY_ID, {"id": id})
        return None if row is None else _snapshot(row)

    def add(self, snapshot: Snapshot) -> Snapshot:
        seq = self._session.insert(_ADD, _row(snapshot, 1), kind="snapshot", name=snapshot.id)
        return replace(snapshot, seq=seq, version=1)

    def save(self, snapshot: Snapshot) -> Snapshot:
        version, seen = snapshot.version + 1, snapshot.version
        self._session.save(_SAVE, _row(snapshot, version), kind="snapshot", name=snapshot.id, seen=seen)
        return replace(snapshot, version=version)

    def delete(self, id: SnapshotId) -> None:
        self._session.change(_DELETE, {"id": id})

    def page(self, fs_id: FilesystemId, request: PageRequest) -> Page[Snapshot]:
        parameters = {"fs_id": fs_id, "after": request.after, "limit": request.limit + 1}
        return page_of([_snapshot(row) for row in self._session.rows(_PAGE, parameters)], request)

    def in_state(self, states: frozenset[SnapshotState]) -> tuple[Snapshot, ...]:
        rows = [row for state in states for row in self._session.rows(_IN_STATE, {"state": state.value})]
        return tuple(_snapshot(row) for row in sorted(rows, key=lambda row: int(row[0])))
