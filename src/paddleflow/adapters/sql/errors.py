"""The door: what SQLite, PostgreSQL and the pool raise, in the words of ``domain.errors``.

Drivers are told apart by what their errors carry (``sqlite_errorcode``, ``sqlstate``), so that neither driver has to
be installed for the other to be translated.
"""

from __future__ import annotations

import errno
import sqlite3

from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from paddleflow.domain.errors import Conflict, DiskFull, Duplicate, Invalid, PaddleFlowError, Unavailable

_PRIMARY_CODE = 0xFF
"""SQLite's extended codes carry the primary one in their lowest byte."""

_SQLITE: dict[int, tuple[type[PaddleFlowError], str]] = {
    sqlite3.SQLITE_BUSY: (Unavailable, "the database is locked by another process"),
    sqlite3.SQLITE_LOCKED: (Unavailable, "the database is locked"),
    sqlite3.SQLITE_FULL: (DiskFull, "the disk that holds the database is full"),
    sqlite3.SQLITE_IOERR: (Unavailable, "the database file cannot be read or written"),
    sqlite3.SQLITE_CANTOPEN: (Unavailable, "the database file cannot be opened"),
    sqlite3.SQLITE_READONLY: (Unavailable, "the database file is read-only"),
    sqlite3.SQLITE_PERM: (Unavailable, "the database file may not be opened"),
    sqlite3.SQLITE_CORRUPT: (Unavailable, "the database file is damaged"),
    sqlite3.SQLITE_NOTADB: (Unavailable, "the database file is not a SQLite database"),
    sqlite3.SQLITE_NOMEM: (Unavailable, "the database ran out of memory"),
    sqlite3.SQLITE_CONSTRAINT: (Conflict, "the database refuses the row"),
    sqlite3.SQLITE_TOOBIG: (Invalid, "a value is too large for the database"),
}
_SQLITE_UNIQUE = frozenset({sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY})

_POSTGRES: dict[str, tuple[type[PaddleFlowError], str]] = {
    "53100": (DiskFull, "the database server's disk is full"),
    "23505": (Duplicate, "a row with that key exists"),
    "55P03": (Unavailable, "the database is locked by another transaction"),
    "25006": (Unavailable, "the database server is read-only"),
}
_POSTGRES_CLASS: dict[str, tuple[type[PaddleFlowError], str]] = {
    "08": (Unavailable, "the connection to the database server failed"),
    "22": (Invalid, "the database refuses a value"),
    "23": (Conflict, "the database refuses the row"),
    "28": (Unavailable, "the database server refuses the user or password"),
    "3D": (Unavailable, "the database does not exist"),
    "40": (Unavailable, "the database gave up a transaction"),
    "53": (Unavailable, "the database server is out of resources"),
    "57": (Unavailable, "the database server interrupted the transaction"),
    "58": (Unavailable, "the database server failed"),
}
_UNREACHABLE = (Unavailable, "the database server cannot be reached")
_UNFORESEEN = (PaddleFlowError, "the database refused a statement")


def translate(error: BaseException) -> PaddleFlowError:
    """The error of ours that ``error`` means. The caller chains: ``raise translate(error) from error``."""
    if isinstance(error, PaddleFlowError):
        return error
    if isinstance(error, DBAPIError) and error.orig is not None:
        return translate(error.orig)
    if isinstance(error, PoolTimeout):
        return Unavailable("every connection to the database is in use")
    kind, sentence = _meaning(error)
    return kind(f"{sentence}: {error}".rstrip())


def _meaning(error: BaseException) -> tuple[type[PaddleFlowError], str]:
    if isinstance(error, UnicodeEncodeError | OverflowError):
        return Invalid, "the database cannot hold a value"
    if isinstance(error, OSError):
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return DiskFull, "the disk that is to hold the database is full"
        return Unavailable, "the database file cannot be opened"
    if isinstance(error, sqlite3.Error):
        code: int | None = getattr(error, "sqlite_errorcode", None)
        if code in _SQLITE_UNIQUE:
            return Duplicate, "a row with that key exists"
        return _UNFORESEEN if code is None else _SQLITE.get(code & _PRIMARY_CODE, _UNFORESEEN)
    state: str | None = getattr(error, "sqlstate", None)
    if state is not None:
        return _POSTGRES.get(state) or _POSTGRES_CLASS.get(state[:2], _UNFORESEEN)
    if type(error).__name__ == "DataError":
        return Invalid, "the database cannot hold a value"
    # A psycopg error without a state never reached the server: the connection is broken or was never made.
    return _UNREACHABLE
