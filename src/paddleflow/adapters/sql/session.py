"""One transaction: runs statements on its connection and keeps what its end must know.

Refuses to write in a read view, and lets no driver's error pass untranslated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from sqlalchemy.engine import Dialect

from paddleflow.adapters.sql.errors import translate
from paddleflow.adapters.sql.statements import Parameters, Row, Statement
from paddleflow.domain.errors import Conflict, Duplicate, PaddleFlowError, Stale
from paddleflow.domain.events import EventKind
from paddleflow.domain.queries import Page, PageRequest

NONE: Mapping[str, object] = {}


class Numbered(Protocol):
    @property
    def seq(self) -> int: ...


Stored = TypeVar("Stored", bound=Numbered)


class Cursor(Protocol):
    @property
    def rowcount(self) -> int: ...
    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...
    def executemany(self, sql: Any, parameters: Any, /) -> Any: ...


class Connection(Protocol):
    """What the drivers of both engines offer."""

    def execute(self, sql: Any, parameters: Any = ..., /) -> Any: ...
    def cursor(self) -> Any: ...


@dataclass(frozen=True, slots=True)
class Driver:
    """How to speak to an engine, and what it may raise."""

    dialect: Dialect
    errors: tuple[type[Exception], ...]


class Session:
    """``appended`` are the kinds of the events it appended; ``failure`` is the engine's error, if there was one:
    PostgreSQL then only pretends to commit, so nobody may."""

    __slots__ = ("_connection", "_dialect", "_errors", "_writable", "appended", "failure")

    def __init__(self, connection: Connection, driver: Driver, *, writable: bool) -> None:
        self._connection = connection
        self._dialect = driver.dialect
        self._errors = driver.errors
        self._writable = writable
        self.appended: set[EventKind] = set()
        self.failure: PaddleFlowError | None = None

    def row(self, statement: Statement, parameters: Parameters = NONE) -> Row | None:
        try:
            found: Row | None = self._run(statement, parameters).fetchone()
        except self._errors as error:
            raise self._ended_by(error) from error
        return found

    def rows(self, statement: Statement, parameters: Parameters = NONE) -> list[Row]:
        try:
            return self._run(statement, parameters).fetchall()
        except self._errors as error:
            raise self._ended_by(error) from error

    def change(self, statement: Statement, parameters: Parameters) -> int:
        """How many rows were written."""
        self._must_be_writable()
        try:
            return self._run(statement, parameters).rowcount
        except self._errors as error:
            raise self._ended_by(error) from error

    def change_many(self, statement: Statement, parameters: Sequence[Parameters]) -> None:
        self._must_be_writable()
        sql, constants = statement.compiled(self._dialect)
        rows = [{**constants, **each} for each in parameters] if constants else parameters
        try:
            self._connection.cursor().executemany(sql, rows)
        except self._errors as error:
            raise self._ended_by(error) from error

    def insert(self, statement: Statement, parameters: Parameters, *, kind: str, name: str) -> int:
        """The new row's number; Duplicate when a unique column is taken."""
        self._must_be_writable()
        found = self.row(statement, parameters)
        if found is None:
            raise duplicate(kind, name)
        number: int = found[0]
        return number

    def update(self, statement: Statement, parameters: Parameters, *, key: str, seen: int) -> int | None:
        """The number of the row of that key and version ``seen``, now updated; None when there is no such row."""
        self._must_be_writable()
        found = self.row(statement, {**parameters, "row_key": key, "seen": seen})
        return None if found is None else found[0]

    def save(self, statement: Statement, parameters: Parameters, *, kind: str, name: str, seen: int) -> int:
        """Update the row of key ``name``; Stale unless it is there with version ``seen``."""
        number = self.update(statement, parameters, key=name, seen=seen)
        if number is None:
            raise stale(kind, name)
        return number

    def _run(self, statement: Statement, parameters: Parameters) -> Cursor:
        sql, constants = statement.compiled(self._dialect)
        if constants:
            parameters = {**constants, **parameters}
        cursor: Cursor = self._connection.execute(sql, parameters)
        return cursor

    def _ended_by(self, error: Exception) -> PaddleFlowError:
        self.failure = translate(error)
        return self.failure

    def _must_be_writable(self) -> None:
        if not self._writable:
            raise Conflict("a read view cannot be written to; open a write transaction")


def duplicate(kind: str, name: str) -> Duplicate:
    return Duplicate(f"{kind} [{name}] exists already", details={"kind": kind, "name": name})


def stale(kind: str, name: str) -> Stale:
    return Stale(
        f"{kind} [{name}] was changed or deleted by somebody else; read it again", details={"kind": kind, "name": name}
    )


def page_of(rows: Sequence[Stored], request: PageRequest) -> Page[Stored]:
    """A page from ``limit + 1`` rows: the extra one only says that more follow."""
    if len(rows) <= request.limit:
        return Page(rows=tuple(rows), next_after=None)
    return Page(rows=tuple(rows[: request.limit]), next_after=rows[request.limit - 1].seq)
