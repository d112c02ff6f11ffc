"""What the server says of itself: errors, its version, its health, what happened."""

from __future__ import annotations

from typing import Any, NotRequired

from typing_extensions import TypedDict

from paddleflow.api.wire import rfc3339
from paddleflow.domain.events import Event


class ErrorAnswer(TypedDict):
    requestID: str
    code: str
    message: str


class VersionAnswer(TypedDict):
    gitVersion: str
    gitCommit: str
    gitBranch: str
    buildDate: str
    goVersion: str
    """Kept for clients that print it; this server has none."""
    compiler: str
    platform: str


class HealthAnswer(TypedDict):
    status: str
    message: NotRequired[str]


class EventAnswer(TypedDict):
    seq: int
    kind: str
    subject: str
    owner: str | None
    at: str
    data: dict[str, Any]


class EventListAnswer(TypedDict):
    eventList: list[EventAnswer]
    lastSeq: int
    """Where to go on: the ``after`` of the next question."""
    isTruncated: bool


def event_answer(event: Event) -> EventAnswer:
    return {
        "seq": event.seq,
        "kind": event.kind,
        "subject": event.subject,
        "owner": event.owner,
        "at": rfc3339(event.at),
        "data": dict(event.data),
    }
