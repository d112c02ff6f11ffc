"""PostgreSQL: for more than one server on one database.

Every write transaction begins by taking one advisory lock and holds it until it has committed. This makes writers
take turns, which does three things. The number of an event is given, and becomes visible, in the same order, so that
a reader that asks for what comes after the last number it saw never misses an event that commits late. A handler that
reads and then writes cannot be overtaken by another server, just as on SQLite. And two transactions that touch the
same rows in different orders cannot deadlock. Reads take no part in this: each is a snapshot of its own.

A commit that appended events notifies the other servers, in the same round trip. A connection that stays silent in
the middle of a transaction is ended by the server, so that a server that vanished does not hold the lock for ever.
"""

from __future__ import annotations

import logging
import os
import select
import threading
import uuid
from collections.abc import Callable
from typing import Any

import psycopg
from sqlalchemy import create_engine, event
from sqlalchemy.engine import URL, Engine
from sqlalchemy.exc import SQLAlchemyError

from paddleflow.adapters.sql.session import Driver
from paddleflow.domain.errors import Unavailable

_log = logging.getLogger(__name__)

_WRITE_LOCK = 0x7061_6464_6C65
_SCHEMA_LOCK = 0x7061_6464_6C66
_CHANNEL = "paddleflow_events"
_BEGIN_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_BEGIN_WRITE = f"BEGIN; SELECT pg_advisory_xact_lock({_WRITE_LOCK})"
_SILENCE_LIMIT_S = 60
_POOL_SIZE = 10
_POOL_OVERFLOW = 40
_RECONNECT_AFTER_S = 1.0
_PROBE_AFTER_S = 30.0


class PostgresDatabase:
    schema_lock = f"BEGIN; SELECT pg_advisory_xact_lock({_SCHEMA_LOCK})"

    def __init__(self, url: URL, *, busy_timeout_s: float) -> None:
        self._engine = create_engine(
            url.set(drivername="postgresql+psycopg"),
            pool_pre_ping=True,
            pool_size=_POOL_SIZE,
            max_overflow=_POOL_OVERFLOW,
            pool_timeout=busy_timeout_s,
            connect_args={"autocommit": True, "connect_timeout": max(2, round(busy_timeout_s))},
        )
        settings = (
            f"SET lock_timeout = {round(busy_timeout_s * 1000)};"
            f"SET idle_in_transaction_session_timeout = {_SILENCE_LIMIT_S * 1000}"
        )

        @event.listens_for(self._engine, "connect")
        def _set_up(connection: Any, _record: object) -> None:
            connection.execute(settings)

        self.driver = Driver(
            dialect=self._engine.dialect, errors=(psycopg.Error, SQLAlchemyError, UnicodeEncodeError, OverflowError)
        )
        self._name = uuid.uuid4().hex
        self._commit_loudly = f"NOTIFY {_CHANNEL}, '{self._name}'; COMMIT"
        self._listener: _Listener | None = None
        self._closed = False

    def engine(self) -> Engine:
        return self._engine

    def begin_read(self) -> _Pooled:
        return self._begin(_BEGIN_READ)

    def end_read(self, connection: Any) -> None:
        connection.give_back()

    def begin_write(self) -> _Pooled:
        return self._begin(_BEGIN_WRITE)

    def commit(self, connection: Any, *, appended_events: bool) -> None:
        connection.end(self._commit_loudly if appended_events else "COMMIT")

    def rollback(self, connection: Any) -> None:
        connection.give_back()

    def _begin(self, statement: str) -> _Pooled:
        if self._closed:
            raise Unavailable("the store is closed")
        connection = _Pooled(self._engine.raw_connection())
        try:
            connection.execute(statement)
        except BaseException:
            connection.give_back()
            raise
        return connection

    def on_foreign_commit(self, wake: Callable[[], None]) -> None:
        self._listener = _Listener(self._engine, own_name=self._name, wake=wake)

    def close(self) -> None:
        self._closed = True
        if self._listener is not None:
            self._listener.stop()
        self._engine.dispose()


class _Pooled:
    """A pooled connection while one transaction has it."""

    __slots__ = ("_lent", "cursor", "execute")

    def __init__(self, lent: Any) -> None:
        self._lent = lent
        driver: psycopg.Connection = lent.driver_connection
        self.execute: Callable[..., Any] = driver.execute
        self.cursor: Callable[..., Any] = driver.cursor

    def end(self, statement: str) -> None:
        self.execute(statement)
        self.give_back()

    def give_back(self) -> None:
        """The pool rolls back what is still open, and drops a connection that broke."""
        lent, self._lent = self._lent, None
        if lent is not None:
            lent.close()


class _Listener:
    """A thread that hears the commits of other processes.

    What was notified while it was not connected is lost, so it wakes everybody whenever it has (re)connected; a reader
    that finds nothing new has lost nothing.
    """

    def __init__(self, engine: Engine, *, own_name: str, wake: Callable[[], None]) -> None:
        self._engine = engine
        self._own_name = own_name
        self._wake = wake
        self._stopping = threading.Event()
        self._stop_fd = os.eventfd(0, os.EFD_CLOEXEC)
        self._thread = threading.Thread(target=self._run, name="store-listener", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._listen()
            except (psycopg.Error, SQLAlchemyError) as error:
                _log.warning("lost the database's notifications, reconnecting: %s", error)
                self._stopping.wait(_RECONNECT_AFTER_S)

    def _listen(self) -> None:
        lent = self._engine.raw_connection()
        connection: Any = lent.driver_connection
        lent.detach()
        readable = select.poll()
        readable.register(connection.fileno(), select.POLLIN)
        readable.register(self._stop_fd, select.POLLIN)
        try:
            connection.execute(f"LISTEN {_CHANNEL}")
            self._wake()
            while not self._stopping.is_set():
                if not readable.poll(_PROBE_AFTER_S * 1000):
                    # A half-open connection is silent too; asking tells.
                    connection.execute("SELECT 1")
                foreign = [each for each in connection.notifies(timeout=0) if each.payload != self._own_name]
                if foreign:
                    self._wake()
        finally:
            connection.close()

    def stop(self) -> None:
        self._stopping.set()
        os.eventfd_write(self._stop_fd, 1)
        self._thread.join()
        os.close(self._stop_fd)
