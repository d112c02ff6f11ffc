"""Filesystems: rows and repository."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from sqlalchemy import bindparam, select

from paddleflow.adapters.sql.session import Session, page_of
from paddleflow.adapters.sql.statements import Row, Statement, delete_by, insert_row, select_by, update_version
from paddleflow.adapters.sql.tables import filesystems
from paddleflow.adapters.sql.values import from_micros, mapping_from_json, mapping_to_json, to_micros
from paddleflow.domain.filesystems import Filesystem
from paddleflow.domain.ids import FilesystemId, UserName
from paddleflow.domain.queries import Page, PageRequest

_BY_ID = select_by(filesystems, "id")
_ADD = insert_row(filesystems)
_SAVE = update_version(filesystems, "id")
_DELETE = delete_by(filesystems, "id")


@cache
def _page(*, with_owner: bool, with_name: bool) -> Statement:
    query = select(filesystems).where(filesystems.c.seq > bindparam("after"))
    if with_owner:
        query = query.where(filesystems.c.owner == bindparam("owner"))
    if with_name:
        query = query.where(filesystems.c.name == bindparam("name"))
    return Statement(query.order_by(filesystems.c.seq).limit(bindparam("limit")))


def _filesystem(row: Row) -> Filesystem:
    (
        seq,
        id,
        name,
        owner,
        type,
        server_address,
        sub_path,
        properties,
        independent_mount_process,
        created_at,
        updated_at,
        version,
    ) = row
    return Filesystem(
        id=id,
        name=name,
        owner=owner,
        type=type,
        server_address=server_address,
        sub_path=sub_path,
        properties=mapping_from_json(properties),
        # SQLite has no booleans, only zero and one.
        independent_mount_process=bool(independent_mount_process),
        created_at=from_micros(created_at),
        updated_at=from_micros(updated_at),
        seq=seq,
        version=version,
    )


def _row(filesystem: Filesystem, version: int) -> dict[str, object]:
    return {
        "id": filesystem.id,
        "name": filesystem.name,
        "owner": filesystem.owner,
        "type": filesystem.type,
        "server_address": filesystem.server_address,
        "sub_path": filesystem.sub_path,
        "properties": mapping_to_json(filesystem.properties),
        "independent_mount_process": filesystem.independent_mount_process,
        "created_at": to_micros(filesystem.created_at),
        "updated_at": to_micros(filesystem.updated_at),
        "version": version,
    }


class SqlFilesystems:
    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    def find(self, id: FilesystemId) -> Filesystem | None:
        row = self._session.row(_BY_ID, {"id": id})
        return None if row is None else _filesystem(row)

    def add(self, filesystem: Filesystem) -> Filesystem:
        seq = self._session.insert(_ADD, _row(filesystem, 1), kind="filesystem", name=filesystem.id)
        return replace(filesystem, seq=seq, version=1)

    def save(self, filesystem: Filesystem) -> Filesystem:
        version, seen = filesystem.version + 1, filesystem.version
        self._session.save(_SAVE, _row(filesystem, version), kind="filesystem", name=filesystem.id, seen=seen)
        return replace(filesystem, version=version)

    def delete(self, id: FilesystemId) -> None:
        self._session.change(_DELETE, {"id": id})

    def page(self, owner: UserName | None, name: str, request: PageRequest) -> Page[Filesystem]:
        parameters: dict[str, object] = {"after": request.after, "limit": request.limit + 1}
        if owner is not None:
            parameters["owner"] = owner
        if name:
            parameters["name"] = name
        statement = _page(with_owner=owner is not None, with_name=bool(name))
        return page_of([_filesystem(row) for row in self._session.rows(statement, parameters)], request)
