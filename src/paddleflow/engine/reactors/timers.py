"""The only clock watcher: what must be done because time has passed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from paddleflow.domain.events import Event, EventKind
from paddleflow.ports.clock import Clock
from paddleflow.ports.store import Store

_RECEIPT_LIFE = timedelta(hours=24)
_EVERY = timedelta(minutes=10)


class Timers:
    """Forgets receipts after a day: a client that retries later than that means it."""

    name = "timers"
    kinds: frozenset[EventKind] = frozenset()

    def __init__(self, *, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._next: datetime | None = None

    def resync(self) -> None:
        self._next = self._clock.now()

    def react(self, events: Sequence[Event]) -> None:
        """Time, not events, makes this one act."""

    def tick(self) -> None:
        now = self._clock.now()
        if self._next is None or now < self._next:
            return
        self._next = now + _EVERY
        with self._store.write() as uow:
            uow.receipts.delete_before(now - _RECEIPT_LIFE)
