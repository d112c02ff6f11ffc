"""Lists whose filters are sets: a row passes when each given set holds its value.

The text of a statement depends on which sets are given and how large they are. A set is filled up to the next power of
two with a value it has already, so that a table has few statements, and each is compiled once.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, TypeAlias

from sqlalchemy import BigInteger, Column, ColumnElement, Table, bindparam, select

from paddleflow.adapters.sql.session import Session
from paddleflow.adapters.sql.statements import Row, Statement
from paddleflow.domain.queries import PageRequest

_Sizes: TypeAlias = tuple[tuple[str, int], ...]
"""Of each set that is given."""
_BEHIND_THE_NEWEST = 2**63 - 1


class Pages:
    """The lists of one table, in the order of its row numbers or against it."""

    __slots__ = ("_statements", "_table")

    def __init__(self, table: Table) -> None:
        self._table = table
        self._statements: dict[tuple[_Sizes, bool], Statement] = {}

    def rows(self, session: Session, request: PageRequest, **among: Collection[str]) -> list[Row]:
        """Up to ``limit + 1`` rows behind the marker; an empty set lets every row pass."""
        wanted = {name: _filled_up(sorted(values)) for name, values in among.items() if values}
        shape = tuple((name, len(values)) for name, values in wanted.items())
        statement = self._statements.get((shape, request.newest_first))
        if statement is None:
            statement = self._statements[shape, request.newest_first] = self._build(shape, request.newest_first)
        parameters: dict[str, object] = {"after": edge_of(request), "limit": request.limit + 1}
        for name, values in wanted.items():
            parameters.update({f"{name}_{n}": value for n, value in enumerate(values)})
        return session.rows(statement, parameters)

    def _build(self, shape: _Sizes, newest_first: bool) -> Statement:
        seq: Column[Any] = self._table.c.seq
        query = select(self._table).where(behind(seq, newest_first))
        for name, size in shape:
            query = query.where(self._table.c[name].in_([bindparam(f"{name}_{n}") for n in range(size)]))
        return Statement(query.order_by(seq.desc() if newest_first else seq).limit(bindparam("limit")))


def behind(seq: Column[Any], newest_first: bool) -> ColumnElement[bool]:
    """The rows that come after the marker, whichever way the list goes."""
    after = bindparam("after", type_=BigInteger)
    return seq < after if newest_first else seq > after


def edge_of(request: PageRequest) -> int:
    """Every row of a first page lies behind this number."""
    return request.after or (_BEHIND_THE_NEWEST if request.newest_first else 0)


def _filled_up(values: Sequence[str]) -> list[str]:
    size = 1 << (len(values) - 1).bit_length()
    return [*values, *[values[-1]] * (size - len(values))]
