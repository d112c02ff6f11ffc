"""The thread under every reactor: hold the lease, resync from rows, follow the feed, back off when the world fails.

Several servers may share one database; a named lease lets exactly one of them run each reactor. Losing the lease or
meeting an error means starting again from rows, so nothing depends on having heard every event.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from typing import Protocol

from paddleflow.domain.errors import PaddleFlowError
from paddleflow.domain.events import Event, EventKind
from paddleflow.engine.feed import Feed
from paddleflow.engine.lease import Lease

log = logging.getLogger(__name__)

_BATCH = 1000
_BREATH_S = 0.05


class Reactor(Protocol):
    name: str
    kinds: frozenset[EventKind]
    """The events it wants to hear of; none: it lives by ticks alone and is not woken."""

    def resync(self) -> None:
        """Forget what was believed; read rows; act on them."""
        ...

    def react(self, events: Sequence[Event]) -> None: ...

    def tick(self) -> float | None:
        """Called at least every few seconds: do what time brings, retry what could not be done before. The seconds
        until something is to be done, if that is known: the next tick comes no later."""
        ...


class ReactorThread:
    """Runs one reactor until stopped."""

    def __init__(self, reactor: Reactor, *, feed: Feed, lease: Lease, idle_s: float = 2.0) -> None:
        self._reactor = reactor
        self._feed = feed
        self._lease = lease
        self._idle_s = idle_s
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._unsubscribe: Callable[[], None] | None = None
        self._thread = threading.Thread(target=self._run, name=f"reactor-{reactor.name}", daemon=True)

    def start(self) -> None:
        if self._reactor.kinds:
            self._unsubscribe = self._feed.subscribe(self._wake.set, self._reactor.kinds)
        self._thread.start()

    def wake(self) -> None:
        """Something the reactor waits for outside the feed has come."""
        self._wake.set()

    def stop(self, timeout_s: float = 10.0) -> None:
        self._stopping.set()
        self._wake.set()
        self._thread.join(timeout_s)
        if self._unsubscribe is not None:
            self._unsubscribe()

    def _run(self) -> None:
        failures = 0
        while not self._stopping.is_set():
            try:
                if self._lease.hold():
                    self._follow()
                failures = 0
            except PaddleFlowError as error:
                failures += 1
                log.warning("reactor %s starts again: %s", self._reactor.name, error)
            except Exception:
                failures += 1
                log.exception("reactor %s met an unexpected error and starts again", self._reactor.name)
            self._stopping.wait(min(30.0, self._idle_s * 2 ** min(failures, 4)))
        release_quietly(self._lease)

    def _follow(self) -> None:
        """Resync once, then react for as long as the lease is ours."""
        after = self._feed.last_seq()
        self._reactor.resync()
        while not self._stopping.is_set() and self._lease.hold():
            self._wake.clear()
            events = self._feed.read(after, _BATCH) if self._reactor.kinds else ()
            if events:
                after = events[-1].seq
                heard = [event for event in events if event.kind in self._reactor.kinds]
                if heard:
                    self._reactor.react(heard)
            else:
                self._wake.wait(self._rest_s(self._reactor.tick()))

    def _rest_s(self, due_in_s: float | None) -> float:
        """What is overdue is tried again soon, but not in a busy loop: it may be overdue because it cannot be done."""
        return self._idle_s if due_in_s is None else min(self._idle_s, max(_BREATH_S, due_in_s))


def release_quietly(lease: Lease) -> None:
    """At shutdown: a lease that cannot be given back expires by itself."""
    try:
        lease.release()
    except PaddleFlowError as error:
        log.warning("a lease was not given back and will expire: %s", error)
