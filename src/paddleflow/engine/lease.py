"""A named lease in the store: of several servers on one database, one does the work.

Renewed when a third of its time has passed, so that a holder that stalls notices before another takes over.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from paddleflow.ports.clock import Clock
from paddleflow.ports.store import Store


class Lease:
    """Used by one thread. Two threads of one server may hold the same name: the holder is the server."""

    def __init__(self, *, store: Store, clock: Clock, name: str, holder: str, ttl_s: float = 15.0) -> None:
        self._store = store
        self._clock = clock
        self._name = name
        self._holder = holder
        self._ttl = timedelta(seconds=ttl_s)
        self._renew_at: datetime | None = None

    def hold(self) -> bool:
        """True while this server holds the lease, taking or renewing it as needed."""
        now = self._clock.now()
        if self._renew_at is not None and now < self._renew_at:
            return True
        with self._store.write() as uow:
            held = uow.leases.acquire(self._name, self._holder, now, self._ttl.total_seconds())
        self._renew_at = now + self._ttl / 3 if held else None
        return held

    def release(self) -> None:
        if self._renew_at is not None:
            self._renew_at = None
            with self._store.write() as uow:
                uow.leases.release(self._name, self._holder)
