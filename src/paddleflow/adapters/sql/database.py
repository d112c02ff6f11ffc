"""What a store needs of an engine: connections in a transaction, and a way to end it.

One writer at a time holds for both engines, so a handler that reads and then writes is right without thinking about
what another server does meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from sqlalchemy.engine import Engine

from paddleflow.adapters.sql.session import Connection, Driver


class Database(Protocol):
    @property
    def driver(self) -> Driver: ...

    @property
    def schema_lock(self) -> str:
        """Begins a transaction in which nobody else can change the tables."""
        ...

    def engine(self) -> Engine:
        """For declaring and migrating tables, outside the stream of transactions."""
        ...

    def begin_read(self) -> Connection: ...
    def end_read(self, connection: Connection) -> None: ...
    def begin_write(self) -> Connection:
        """Waits for other processes that write, not for other threads: the store lets one thread in at a time."""
        ...

    def commit(self, connection: Connection, *, appended_events: bool) -> None: ...
    def rollback(self, connection: Connection) -> None: ...
    def on_foreign_commit(self, wake: Callable[[], None]) -> None:
        """Call ``wake`` when another process may have appended events."""
        ...

    def close(self) -> None: ...
