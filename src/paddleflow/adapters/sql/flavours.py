"""Flavours: rows and repository."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from sqlalchemy import bindparam, func, or_, select

from paddleflow.adapters.sql.columns import TEXT
from paddleflow.adapters.sql.session import Session, page_of
from paddleflow.adapters.sql.statements import Row, Statement, delete_by, insert_row, select_by, update_version
from paddleflow.adapters.sql.tables import flavours
from paddleflow.adapters.sql.values import from_micros, mapping_from_json, mapping_to_json, to_micros
from paddleflow.domain.flavours import Flavour
from paddleflow.domain.ids import FlavourName
from paddleflow.domain.queries import FlavourFilter, Page, PageRequest

_BY_NAME = select_by(flavours, "name")
_ADD = insert_row(flavours)
_SAVE = update_version(flavours, "name")
_DELETE = delete_by(flavours, "name")


@cache
def _page(*, with_name: bool, with_cluster: bool) -> Statement:
    columns = flavours.c
    query = select(flavours).where(columns.seq > bindparam("after"))
    if with_name:
        # The one spelling of "contains" that both engines compare letter by letter, capitals included.
        query = query.where(func.replace(columns.name, bindparam("part", type_=TEXT), "") != columns.name)
    if with_cluster:
        query = query.where(or_(columns.cluster.is_(None), columns.cluster == bindparam("cluster")))
    else:
        query = query.where(columns.cluster.is_(None))
    return Statement(query.order_by(columns.seq).limit(bindparam("limit")))


def _flavour(row: Row) -> Flavour:
    seq, id, name, cpu, memory, scalars, cluster, owner, created_at, updated_at, version = row
    return Flavour(
        id=id,
        name=name,
        cpu=cpu,
        memory=memory,
        scalars=mapping_from_json(scalars),
        cluster=cluster,
        owner=owner,
        created_at=from_micros(created_at),
        updated_at=from_micros(updated_at),
        seq=seq,
        version=version,
    )


def _row(flavour: Flavour, version: int) -> dict[str, object]:
    return {
        "id": flavour.id,
        "name": flavour.name,
        "cpu": flavour.cpu,
        "memory": flavour.memory,
        "scalars": mapping_to_json(flavour.scalars),
        "cluster": flavour.cluster,
        "owner": flavour.owner,
        "created_at": to_micros(flavour.created_at),
        "updated_at": to_micros(flavour.updated_at),
        "version": version,
    }


class SqlFlavours:
    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    def find(self, name: FlavourName) -> Flavour | None:
        row = self._session.row(_BY_NAME, {"name": name})
        return None if row is None else _flavour(row)

    def add(self, flavour: Flavour) -> Flavour:
        seq = self._session.insert(_ADD, _row(flavour, 1), kind="flavour", name=flavour.name)
        return replace(flavour, seq=seq, version=1)

    def save(self, flavour: Flavour) -> Flavour:
        version = flavour.version + 1
        self._session.save(_SAVE, _row(flavour, version), kind="flavour", name=flavour.name, seen=flavour.version)
        return replace(flavour, version=version)

    def delete(self, name: FlavourName) -> None:
        self._session.change(_DELETE, {"name": name})

    def page(self, where: FlavourFilter, request: PageRequest) -> Page[Flavour]:
        statement = _page(with_name=bool(where.name_contains), with_cluster=where.cluster is not None)
        parameters: dict[str, object] = {"after": request.after, "limit": request.limit + 1}
        if where.name_contains:
            parameters["part"] = where.name_contains
        if where.cluster is not None:
            parameters["cluster"] = where.cluster
        return page_of([_flavour(row) for row in self._session.rows(statement, parameters)], request)
