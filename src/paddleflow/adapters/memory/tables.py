"""Tables in dictionaries, and transactions over them.

A committed state is never changed. A write transaction copies the tables it touches and, when it ends well, its state
takes the place of the old one; so a reader keeps a consistent view for as long as it likes, and a transaction that
fails leaves nothing behind.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar, cast

from paddleflow.domain.catalog import Pipeline, PipelineVersion
from paddleflow.domain.clusters import Cluster
from paddleflow.domain.errors import Conflict, Duplicate, Invalid, Stale
from paddleflow.domain.events import Event, EventKind
from paddleflow.domain.filesystems import CacheConfig, Filesystem, Link
from paddleflow.domain.flavours import Flavour
from paddleflow.domain.jobs import Job
from paddleflow.domain.mounts import Mount
from paddleflow.domain.queries import Page, PageRequest
from paddleflow.domain.queues import Queue
from paddleflow.domain.runs import ArtifactEvent, CacheEntry, Run
from paddleflow.domain.schedules import Schedule
from paddleflow.domain.snapshots import Snapshot
from paddleflow.domain.users import Grant, User

Versioned = (
    User | Flavour | Cluster | Queue | Filesystem | CacheConfig | Mount | Snapshot | Job | Run | Pipeline | Schedule
)
Unversioned = Grant | Link | CacheEntry | ArtifactEvent | PipelineVersion
"""Rows that are added and deleted, and never saved again by somebody who had read them."""

Row = TypeVar("Row", bound=Versioned | Unversioned)
Timed = TypeVar("Timed")


@dataclass(frozen=True, slots=True)
class State:
    """Everything that is committed. ``events`` is shared and only grows; ``event_count`` says how much of it counts."""

    tables: Mapping[str, Mapping[Any, Any]] = field(default_factory=dict)
    last_seq: Mapping[str, int] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    event_count: int = 0


class Transaction:
    """A state one may change, and the tables it has copied so far."""

    def __init__(self, state: State, *, writable: bool) -> None:
        self._tables = dict(state.tables)
        self._last_seq = dict(state.last_seq)
        self._events = state.events
        self._own: dict[str, dict[Any, Any]] = {}
        self._writable = writable
        self._began_with = state.event_count
        self.event_count = state.event_count

    def table(self, name: str) -> Mapping[Any, Any]:
        return self._tables.get(name, {})

    def change(self, name: str) -> dict[Any, Any]:
        """The table, as this transaction's own."""
        self._must_be_writable()
        if name not in self._own:
            self._own[name] = dict(self.table(name))
            self._tables[name] = self._own[name]
        return self._own[name]

    def next_seq(self, name: str) -> int:
        self._last_seq[name] = self._last_seq.get(name, 0) + 1
        return self._last_seq[name]

    def append(self, event: Event) -> Event:
        self._must_be_writable()
        numbered = replace(event, data=through_json(event.data), seq=self.event_count + 1)
        self._events.append(numbered)
        self.event_count += 1
        return numbered

    def events(self, after: int = 0, limit: int | None = None) -> list[Event]:
        end = self.event_count if limit is None else min(self.event_count, after + limit)
        return self._events[max(after, 0) : end]

    @property
    def appended(self) -> frozenset[EventKind]:
        """The kinds of the events it appended."""
        return frozenset(event.kind for event in self._events[self._began_with : self.event_count])

    def result(self) -> State:
        return State(self._tables, self._last_seq, self._events, self.event_count)

    def undo(self) -> None:
        """The log of events is the one thing that was changed in place."""
        del self._events[self._began_with :]

    def _must_be_writable(self) -> None:
        if not self._writable:
            raise Conflict("a read view cannot be written to; open a write transaction")


def through_json(mapping: Mapping[str, object]) -> dict[str, object]:
    """What a database would give back; what it could not hold fails here too."""
    decoded: dict[str, object] = json.loads(json.dumps(dict(mapping), allow_nan=False))
    return decoded


def in_utc(row: Timed) -> Timed:
    """With its times in UTC, as a database gives them back; a time without a timezone is refused."""
    moved: dict[str, Any] = {}
    for each in fields(cast(Any, row)):
        value = getattr(row, each.name)
        if isinstance(value, datetime) and value.tzinfo is not UTC:
            if value.tzinfo is None:
                raise Invalid(f"the time [{value.isoformat()}] has no timezone; give it in UTC")
            moved[each.name] = value.astimezone(UTC)
    return cast(Timed, replace(cast(Any, row), **moved)) if moved else row


def duplicate(kind: str, name: str) -> Duplicate:
    return Duplicate(f"{kind} [{name}] exists already", details={"kind": kind, "name": name})


class Rows(Generic[Row]):
    """One table of numbered rows: what every aggregate has in common."""

    def __init__(
        self,
        transaction: Transaction,
        kind: str,
        key: Callable[[Row], Any],
        *,
        also_unique: Callable[[Row], Any] | None = None,
        called: Callable[[Row], str] | None = None,
    ) -> None:
        """``also_unique``: what no two rows may share beside the key; ``called``: the name that errors give a row."""
        self._transaction = transaction
        self._kind = kind
        self._key = key
        self._also_unique = also_unique
        self._called = called

    def find(self, key: Any) -> Row | None:
        return self._transaction.table(self._kind).get(key)

    def all(self) -> tuple[Row, ...]:
        rows: list[Row] = list(self._transaction.table(self._kind).values())
        return tuple(sorted(rows, key=lambda row: row.seq))

    def add(self, row: Row) -> Row:
        table, key = self._transaction.change(self._kind), self._key(row)
        if key in table or self._is_taken(row, key):
            raise duplicate(self._kind, self._name(row))
        numbers = {"seq": self._transaction.next_seq(self._kind)}
        if not isinstance(row, Unversioned):
            numbers["version"] = 1
        table[key] = replace(cast(Any, in_utc(row)), **numbers)
        return cast(Row, table[key])

    def put(self, row: Row) -> None:
        """Add, or replace the row of that key, which keeps its number."""
        table, key = self._transaction.change(self._kind), self._key(row)
        held = table.get(key)
        seq = self._transaction.next_seq(self._kind) if held is None else held.seq
        table[key] = replace(cast(Any, in_utc(row)), seq=seq)

    def save(self, row: Row) -> Row:
        table, key = self._transaction.change(self._kind), self._key(row)
        held = table.get(key)
        if held is None or isinstance(row, Unversioned) or held.version != row.version:
            message = f"{self._kind} [{key}] was changed or deleted by somebody else; read it again"
            raise Stale(message, details={"kind": self._kind, "name": key})
        if self._is_taken(row, key):
            raise duplicate(self._kind, self._name(row))
        table[key] = replace(in_utc(row), seq=held.seq, version=row.version + 1)
        return cast(Row, table[key])

    def _is_taken(self, row: Row, key: Any) -> bool:
        """Does a row of another key have what must be unique beside the key?"""
        unique = self._also_unique
        if unique is None:
            return False
        wanted = unique(row)
        table = self._transaction.table(self._kind)
        return any(unique(other) == wanted for other_key, other in table.items() if other_key != key)

    def _name(self, row: Row) -> str:
        if self._called is not None:
            return self._called(row)
        key = self._key(row)
        return key if isinstance(key, str) else "/".join(key)

    def delete(self, key: Any) -> None:
        self._transaction.change(self._kind).pop(key, None)

    def delete_where(self, matches: Callable[[Row], bool]) -> int:
        table = self._transaction.change(self._kind)
        old = [key for key, row in table.items() if matches(row)]
        for key in old:
            del table[key]
        return len(old)

    def page(self, request: PageRequest, matches: Callable[[Row], bool]) -> Page[Row]:
        rows = self.all()
        if request.newest_first:
            behind = [row for row in reversed(rows) if not request.after or row.seq < request.after]
        else:
            behind = [row for row in rows if row.seq > request.after]
        found = [row for row in behind if matches(row)]
        if len(found) <= request.limit:
            return Page(rows=tuple(found), next_after=None)
        return Page(rows=tuple(found[: request.limit]), next_after=found[request.limit - 1].seq)
