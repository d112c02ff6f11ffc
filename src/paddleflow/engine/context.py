"""What a handler is given: who asks, when, and the one transaction it may write to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from paddleflow.domain.events import Event, EventKind
from paddleflow.domain.ids import UserName
from paddleflow.domain.users import Actor
from paddleflow.engine.capabilities import Capabilities
from paddleflow.ports.store import UnitOfWork

Answer = Mapping[str, object]
"""What a command answers: plain values that survive JSON, so that a repeated request can be given the same answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    uow: UnitOfWork
    actor: Actor
    now: datetime
    request_id: str
    new_id: Callable[[str, int], str]
    """``new_id("job", 16)`` is ``job-`` and 16 random hexadecimal digits."""
    seal: Callable[[str], str]
    unseal: Callable[[str], str]
    capabilities: Capabilities
    password_hash: str = ""
    """Of the password the command carries; made before the transaction began, because it is slow by design."""

    def emit(self, kind: EventKind, subject: str, owner: UserName | None = None, **data: object) -> None:
        self.record([Event(kind=kind, subject=subject, owner=owner, data=data, at=self.now)])

    def record(self, events: Iterable[Event]) -> None:
        for event in events:
            self.uow.events.append(replace(event, cause=self.request_id))
