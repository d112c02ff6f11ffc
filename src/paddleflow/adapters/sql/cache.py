"""Results that may be used again: rows and repository."""

from __future__ import annotations

from dataclasses import replace

from sqlalchemy import bindparam, select

from paddleflow.adapters.sql.fingerprints import parts_from_json, parts_to_json
from paddleflow.adapters.sql.pages import Pages
from paddleflow.adapters.sql.pipeline_tables import cache_entries
from paddleflow.adapters.sql.session import Session, page_of
from paddleflow.adapters.sql.statements import Row, Statement, delete_by, insert_row, select_by
from paddleflow.adapters.sql.values import from_micros, mapping_from_json, mapping_to_json, to_micros
from paddleflow.domain.ids import CacheId, FilesystemId, UserName
from paddleflow.domain.queries import CacheFilter, Page, PageRequest
from paddleflow.domain.runs import CacheEntry, Fingerprint

_MOST_MATCHING = 100

_BY_ID = select_by(cache_entries, "id")
_ADD = insert_row(cache_entries)
_DELETE = delete_by(cache_entries, "id")
_PAGES = Pages(cache_entries)


def _newest_of_scope(column: str, *, on_filesystem: bool) -> Statement:
    """Entries with that value of ``column``. No filesystem is a scope of its own, and null equals nothing in SQL."""
    fs_id = cache_entries.c.fs_id
    return Statement(
        select(cache_entries)
        .where(
            cache_entries.c.owner == bindparam("owner"),
            fs_id == bindparam("fs_id") if on_filesystem else fs_id.is_(None),
            cache_entries.c[column] == bindparam("wanted"),
        )
        .order_by(cache_entries.c.seq.desc())
        .limit(bindparam("limit"))
    )


_MATCHING = {given: _newest_of_scope("first", on_filesystem=given) for given in (True, False)}
_OF_STEP = {given: _newest_of_scope("node", on_filesystem=given) for given in (True, False)}


def _entry(row: Row) -> CacheEntry:
    (
        seq,
        id,
        first,
        second,
        parts,
        run_id,
        job_id,
        node,
        source,
        owner,
        fs_id,
        fs_name,
        outputs,
        expires_after_s,
        created_at,
        updated_at,
    ) = row
    return CacheEntry(
        id=id,
        fingerprint=Fingerprint(first=first, second=second, parts=parts_from_json(parts)),
        run_id=run_id,
        job_id=job_id,
        node=node,
        source=source,
        owner=owner,
        fs_id=fs_id,
        fs_name=fs_name,
        outputs=mapping_from_json(outputs),
        expires_after_s=expires_after_s,
        created_at=from_micros(created_at),
        updated_at=from_micros(updated_at),
        seq=seq,
    )


def _row(entry: CacheEntry) -> dict[str, object]:
    return {
        "id": entry.id,
        "first": entry.fingerprint.first,
        "second": entry.fingerprint.second,
        "parts": parts_to_json(entry.fingerprint.parts),
        "run_id": entry.run_id,
        "job_id": entry.job_id,
        "node": entry.node,
        "source": entry.source,
        "owner": entry.owner,
        "fs_id": entry.fs_id,
        "fs_name": entry.fs_name,
        "outputs": mapping_to_json(entry.outputs),
        "expires_after_s": entry.expires_after_s,
        "created_at": to_micros(entry.created_at),
        "updated_at": to_micros(entry.updated_at),
    }


class SqlCacheEntries:
    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    def find(self, id: CacheId) -> CacheEntry | None:
        row = self._session.row(_BY_ID, {"id": id})
        return None if row is None else _entry(row)

    def add(self, entry: CacheEntry) -> CacheEntry:
        return replace(entry, seq=self._session.insert(_ADD, _row(entry), kind="cache entry", name=entry.id))

    def delete(self, id: CacheId) -> None:
        self._session.change(_DELETE, {"id": id})

    def page(self, where: CacheFilter, request: PageRequest) -> Page[CacheEntry]:
        rows = _PAGES.rows(self._session, request, owner=where.owners, fs_name=where.fs_names, run_id=where.run_ids)
        return page_of([_entry(row) for row in rows], request)

    def matching(self, owner: UserName, fs_id: FilesystemId | None, first: str) -> tuple[CacheEntry, ...]:
        return self._newest(_MATCHING, owner, fs_id, first, _MOST_MATCHING)

    def latest_of_step(
        self, owner: UserName, fs_id: FilesystemId | None, node: str, limit: int
    ) -> tuple[CacheEntry, ...]:
        return self._newest(_OF_STEP, owner, fs_id, node, limit)

    def _newest(
        self,
        statements: dict[bool, Statement],
        owner: UserName,
        fs_id: FilesystemId | None,
        wanted: str,
        limit: int,
    ) -> tuple[CacheEntry, ...]:
        parameters: dict[str, object] = {"owner": owner, "wanted": wanted, "limit": limit}
        if fs_id is not None:
            parameters["fs_id"] = fs_id
        return tuple(_entry(row) for row in self._session.rows(statements[fs_id is not None], parameters))
