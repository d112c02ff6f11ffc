"""The way out: everything that happened, in order, for whoever follows. It wakes; it never decides."""

from __future__ import annotations

import threading
from collections.abc import Callable

from paddleflow.domain.events import Event, EventKind
from paddleflow.ports.store import Store

Listener = Callable[[], None]


class Feed:
    """Listeners are called after a commit that appended events, by whichever thread committed; they only set a flag."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._listeners: dict[int, tuple[Listener, frozenset[EventKind] | None]] = {}
        self._next_token = 0
        store.on_commit(self._wake)

    def read(self, after: int, limit: int = 500) -> tuple[Event, ...]:
        with self._store.read() as view:
            return view.events.after(after, limit)

    def last_seq(self) -> int:
        with self._store.read() as view:
            return view.events.last_seq()

    def subscribe(self, listener: Listener, kinds: frozenset[EventKind] | None = None) -> Callable[[], None]:
        """Be woken for events of these kinds, or of any. Returns the way to unsubscribe."""
        with self._lock:
            token = self._next_token
            self._next_token += 1
            self._listeners[token] = (listener, kinds)
        return lambda: self._unsubscribe(token)

    def _unsubscribe(self, token: int) -> None:
        with self._lock:
            self._listeners.pop(token, None)

    def _wake(self, happened: frozenset[EventKind] | None) -> None:
        """Waking a thread for nothing costs more than most of what threads here do when woken."""
        with self._lock:
            listeners = tuple(self._listeners.values())
        for listener, kinds in listeners:
            if happened is None or kinds is None or not happened.isdisjoint(kinds):
                listener()
