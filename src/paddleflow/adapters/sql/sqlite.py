"""SQLite: one file in write-ahead mode, one writing connection, a stack of reading ones.

The driver's own idea of when a transaction begins is switched off; every BEGIN and COMMIT is written here. Readers
never wait for the writer: each sees the database as it was at its first question. A commit is on its way to the disk
when it returns, and survives the end of the process; after a power cut the last moments may be missing, but never
half a transaction (``synchronous=NORMAL``).
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sqlalchemy import create_engine
from sqlalchemy.dialects.sqlite import pysqlite
from sqlalchemy.engine import URL, Engine
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from paddleflow.adapters.sql.errors import translate
from paddleflow.adapters.sql.session import Driver
from paddleflow.domain.errors import Invalid, Unavailable

_STATEMENTS = 512
"""Compiled statements a connection keeps: more than the store has."""

_WAL_KEPT_BYTES = 64 * 1024 * 1024
_CACHE_KIB = 16 * 1024


class SqliteDatabase:
    schema_lock = "BEGIN EXCLUSIVE"

    def __init__(self, url: URL, *, busy_timeout_s: float) -> None:
        if not url.database or url.database == ":memory:":
            raise Invalid("a SQLite url names a file, such as sqlite:////var/lib/paddleflow/paddleflow.db")
        self._path = Path(url.database).absolute()
        self._busy_timeout_s = busy_timeout_s
        self.driver = Driver(
            dialect=pysqlite.dialect(paramstyle="named"),
            errors=(sqlite3.Error, SQLAlchemyError, UnicodeEncodeError, OverflowError),
        )
        self._idle_readers: deque[sqlite3.Connection] = deque()
        self._closed = False
        try:
            self._create_file()
            self._writer = self._connect()
            self._use_write_ahead_log()
        except (sqlite3.Error, OSError) as error:
            raise translate(error) from error

    def _create_file(self) -> None:
        """Nobody but its owner may read the database; SQLite gives its side files the same mode."""
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not self._path.exists():
            # Never for an existing file: closing a second descriptor would drop the locks of this process on it.
            os.close(os.open(self._path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._path,
            timeout=self._busy_timeout_s,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=_STATEMENTS,
        )
        try:
            connection.execute("PRAGMA synchronous=NORMAL")
            connection.execute("PRAGMA foreign_keys=ON")
            connection.execute(f"PRAGMA cache_size=-{_CACHE_KIB}")
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def _use_write_ahead_log(self) -> None:
        """Switching needs the file for itself, and SQLite does not wait for that; so this does."""
        deadline = time.monotonic() + self._busy_timeout_s
        while True:
            try:
                self._writer.execute("PRAGMA journal_mode=WAL")
                self._writer.execute(f"PRAGMA journal_size_limit={_WAL_KEPT_BYTES}")
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)

    def engine(self) -> Engine:
        return create_engine("sqlite://", creator=self._connect, poolclass=NullPool)

    def begin_read(self) -> sqlite3.Connection:
        self._must_be_open()
        try:
            reader = self._idle_readers.pop()
        except IndexError:
            reader = self._connect()
        try:
            reader.execute("BEGIN")
        except sqlite3.Error:
            reader.close()
            raise
        return reader

    def end_read(self, connection: Any) -> None:
        connection.rollback()
        if self._closed:
            connection.close()
        else:
            self._idle_readers.append(connection)

    def begin_write(self) -> sqlite3.Connection:
        self._must_be_open()
        self._writer.execute("BEGIN IMMEDIATE")
        return self._writer

    def commit(self, connection: Any, *, appended_events: bool) -> None:
        connection.execute("COMMIT")

    def rollback(self, connection: Any) -> None:
        # Does nothing when SQLite has already given up the transaction, as it may when the disk is full.
        connection.rollback()

    def on_foreign_commit(self, wake: Callable[[], None]) -> None:
        """Embedded: the one server is the only process that appends events."""

    def _must_be_open(self) -> None:
        if self._closed:
            raise Unavailable("the store is closed")

    def close(self) -> None:
        """The last connection to close folds the write-ahead log into the file, so the writer goes last."""
        self._closed = True
        while self._idle_readers:
            self._idle_readers.pop().close()
        self._writer.close()
