"""Lists whose filters are sets: a row passes when each given set holds its value.

The text of a statement depends on which sets are given and how large they are. A set is filled up to the next power of
two with a value it has already, so that a table has few statements, and each is compiled once.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import Column, Table, bindparam, select

from paddleflow.adapters.sql.session import Session
from paddleflow.adapters.sql.statements import Row, Statement
from paddleflow.domain.queries import PageRequest


class Pages:
    """The lists of one table, in the order of its row numbers."""

    __slots__ = ("_statements", "_table")

    def __init__(self, table: Table) -> None:
        self._table = table
        self._statements: dict[tuple[tuple[str, int], ...], Statement] = {}

    def rows(self, session: Session, request: PageRequest, **among: Collection[str]) -> list[Row]:
        """Up to ``limit + 1`` rows behind the marker; an empty set lets every row pass."""
        wanted = {name: _filled_up(sorted(values)) for name, values in among.items() if values}
        shape = tuple((name, len(values)) for name, values in wanted.items())
        statement = self._statements.get(shape)
        if statement is None:
            statement = self._statements[shape] = self._build(shape)
        parameters: dict[str, object] = {"after": request.after, "limit": request.limit + 1}
        for name, values in wanted.items():
            parameters.update({f"{name}_{n}": value for n, value in enumerate(values)})
        return session.rows(statement, parameters)

    def _build(self, shape: tuple[tuple[str, int], ...]) -> Statement:
        seq: Column[Any] = self._table.c.seq
        query = select(self._table).where(seq > bindparam("after"))
        for name, size in shape:
            query = query.where(self._table.c[name].in_([bindparam(f"{name}_{n}") for n in range(size)]))
        return Statement(query.order_by(seq).limit(bindparam("limit")))


def _filled_up(values: Sequence[str]) -> list[str]:
    size = 1 << (len(values) - 1).bit_length()
    return [*values, *[values[-1]] * (size - len(values))]
