"""Queues: rows and repository."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from sqlalchemy import bindparam, select

from paddleflow.adapters.sql.session import Session, page_of
from paddleflow.adapters.sql.statements import Row, Statement, delete_by, insert_row, select_by, update_version
from paddleflow.adapters.sql.tables import queues
from paddleflow.adapters.sql.values import (
    from_micros,
    mapping_from_json,
    mapping_to_json,
    resources_from_json,
    resources_to_json,
    strings_from_json,
    strings_to_json,
    to_micros,
)
from paddleflow.domain.ids import QueueName
from paddleflow.domain.queries import Page, PageRequest, QueueFilter
from paddleflow.domain.queues import Queue, QueueStatus, QuotaType

_BY_NAME = select_by(queues, "name")
_ADD = insert_row(queues)
_SAVE = update_version(queues, "name")
_DELETE = delete_by(queues, "name")
_ALL = Statement(select(queues).order_by(queues.c.seq))


@lru_cache(maxsize=64)
def _page(names: int | None) -> Statement:
    query = select(queues).where(queues.c.seq > bindparam("after"))
    if names is not None:
        query = query.where(queues.c.name.in_([bindparam(f"name_{n}") for n in range(names)]))
    return Statement(query.order_by(queues.c.seq).limit(bindparam("limit")))


def _queue(row: Row) -> Queue:
    (
        seq,
        id,
        name,
        namespace,
        cluster,
        quota_type,
        max_resources,
        min_resources,
        location,
        policies,
        status,
        created_at,
        updated_at,
        version,
        weight,
    ) = row
    return Queue(
        id=id,
        name=name,
        namespace=namespace,
        cluster=cluster,
        quota_type=QuotaType(quota_type),
        max_resources=resources_from_json(max_resources),
        min_resources=resources_from_json(min_resources),
        location=mapping_from_json(location),
        policies=strings_from_json(policies),
        weight=1 if weight is None else weight,
        status=QueueStatus(status),
        created_at=from_micros(created_at),
        updated_at=from_micros(updated_at),
        seq=seq,
        version=version,
    )


def _row(queue: Queue, version: int) -> dict[str, object]:
    return {
        "id": queue.id,
        "name": queue.name,
        "namespace": queue.namespace,
        "cluster": queue.cluster,
        "quota_type": queue.quota_type.value,
        "max_resources": resources_to_json(queue.max_resources),
        "min_resources": resources_to_json(queue.min_resources),
        "location": mapping_to_json(queue.location),
        "policies": strings_to_json(queue.policies),
        "weight": queue.weight,
        "status": queue.status.value,
        "created_at": to_micros(queue.created_at),
        "updated_at": to_micros(queue.updated_at),
        "version": version,
    }


class SqlQueues:
    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    def find(self, name: QueueName) -> Queue | None:
        row = self._session.row(_BY_NAME, {"name": name})
        return None if row is None else _queue(row)

    def add(self, queue: Queue) -> Queue:
        seq = self._session.insert(_ADD, _row(queue, 1), kind="queue", name=queue.name)
        return replace(queue, seq=seq, version=1)

    def save(self, queue: Queue) -> Queue:
        version = queue.version + 1
        self._session.save(_SAVE, _row(queue, version), kind="queue", name=queue.name, seen=queue.version)
        return replace(queue, version=version)

    def delete(self, name: QueueName) -> None:
        self._session.change(_DELETE, {"name": name})

    def all(self) -> tuple[Queue, ...]:
        return tuple(_queue(row) for row in self._session.rows(_ALL))

    def page(self, where: QueueFilter, request: PageRequest) -> Page[Queue]:
        names = where.among
        if where.name is not None:
            names = frozenset({where.name}) if names is None else names & {where.name}
        if names is not None and not names:
            return Page(rows=(), next_after=None)
        parameters: dict[str, object] = {"after": request.after, "limit": request.limit + 1}
        parameters.update({f"name_{n}": name for n, name in enumerate(sorted(names or ()))})
        statement = _page(None if names is None else len(names))
        return page_of([_queue(row) for row in self._session.rows(statement, parameters)], request)
