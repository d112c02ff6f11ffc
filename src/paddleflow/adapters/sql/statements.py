"""Statements: built with SQLAlchemy Core, compiled once for each engine, run as text by the driver.

A statement is a value made when its module is imported; it is compiled when a store first uses it. Its parameters are
named, and go to the driver as they are: every column is of a type the drivers know (text, integer, float, boolean), so
nothing needs converting on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from sqlalchemy import ColumnElement, Table, bindparam, delete, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Dialect
from sqlalchemy.sql.dml import Insert
from sqlalchemy.sql.expression import ClauseElement

Parameters = Mapping[str, object]
Row = tuple[Any, ...]


class UpsertingInsert(Protocol):
    """What the two engines' ``INSERT`` have in common beyond the standard."""

    @property
    def excluded(self) -> Any: ...
    def on_conflict_do_nothing(self) -> Insert: ...
    def on_conflict_do_update(self, *, index_elements: Any, set_: Any, where: Any = None) -> Insert: ...


class Statement:
    """One statement in the SQL of every engine that has asked for it."""

    __slots__ = ("_build", "_compiled")

    def __init__(self, build: ClauseElement | Callable[[str], ClauseElement]) -> None:
        """``build`` is the statement, or makes it for the engine of that name."""
        self._build = build
        self._compiled: dict[str, tuple[str, Parameters]] = {}

    def compiled(self, dialect: Dialect) -> tuple[str, Parameters]:
        """The text, and the values of the parameters that are constants of the statement."""
        try:
            return self._compiled[dialect.name]
        except KeyError:
            clause = self._build if isinstance(self._build, ClauseElement) else self._build(dialect.name)
            compiled = clause.compile(dialect=dialect)
            constants = {name: value for name, value in compiled.params.items() if value is not None}
            self._compiled[dialect.name] = (str(compiled), constants)
            return self._compiled[dialect.name]


def _insert(engine: str, table: Table, columns: Iterable[str]) -> Any:
    insert: Any = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}[engine](table)
    return insert.values({name: bindparam(name, type_=table.c[name].type) for name in columns})


def column_names(table: Table, *, without: Iterable[str] = ()) -> tuple[str, ...]:
    return tuple(column.name for column in table.columns if column.name not in set(without))


def insert_row(table: Table) -> Statement:
    """Insert and answer the row number; no row comes back when a unique column is taken.

    Not a constraint error: that would end PostgreSQL's transaction, and the caller may want to go on.
    """
    columns = column_names(table, without=("seq",))

    def build(engine: str) -> ClauseElement:
        insert: UpsertingInsert = _insert(engine, table, columns)
        return insert.on_conflict_do_nothing().returning(table.c.seq)

    return Statement(build)


def insert_plain(table: Table) -> Statement:
    """Insert unless the key is taken; the row count says which."""

    def build(engine: str) -> ClauseElement:
        insert: UpsertingInsert = _insert(engine, table, column_names(table))
        return insert.on_conflict_do_nothing()

    return Statement(build)


def upsert(table: Table, *key: str, where: Callable[[Any], ColumnElement[bool]] | None = None) -> Statement:
    """Insert, or replace the row of that key (only if ``where``, given the new values, holds of the old row).

    A row number is the database's to give: a new row gets one, a replaced row keeps its own.
    """
    columns = column_names(table, without=("seq",))

    def build(engine: str) -> ClauseElement:
        insert: UpsertingInsert = _insert(engine, table, columns)
        return insert.on_conflict_do_update(
            index_elements=list(key),
            set_={name: insert.excluded[name] for name in columns if name not in key},
            where=None if where is None else where(insert.excluded),
        )

    return Statement(build)


def count_up(table: Table, key: str, counter: str) -> Statement:
    """Add one to the counter of that key, or begin it with the value given; answers what it is now."""

    def build(engine: str) -> ClauseElement:
        insert: UpsertingInsert = _insert(engine, table, (key, counter))
        more = table.c[counter] + insert.excluded[counter]
        return insert.on_conflict_do_update(index_elements=[key], set_={counter: more}).returning(table.c[counter])

    return Statement(build)


def select_by(table: Table, *names: str) -> Statement:
    """All columns of the rows whose named columns equal the parameters of those names."""
    return Statement(select(table).where(*(table.c[name] == bindparam(name) for name in names)))


def delete_by(table: Table, *names: str) -> Statement:
    return Statement(delete(table).where(*(table.c[name] == bindparam(name) for name in names)))


def update_version(table: Table, key: str, *, unchanged: Iterable[str] = ()) -> Statement:
    """Update every column but ``seq`` and the key if the row still has the version ``seen``; answers its row number.

    Columns named in ``unchanged`` are compared instead of written: the update finds no row if one of them differs.
    """
    columns = column_names(table, without=("seq", key, *unchanged))
    same = [table.c[name] == bindparam(name, type_=table.c[name].type) for name in unchanged]
    return Statement(
        update(table)
        .values({name: bindparam(name, type_=table.c[name].type) for name in columns})
        .where(table.c[key] == bindparam("row_key"), table.c.version == bindparam("seen"), *same)
        .returning(table.c.seq)
    )
