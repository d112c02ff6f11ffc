"""Why a job waits, as data first and a sentence second, so that people and machines read the same thing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from paddleflow.domain.ids import JobId
from paddleflow.domain.resources import format_units


class WaitKind(StrEnum):
    QUEUE_GONE = "QueueGone"
    QUEUE_NOT_OPEN = "QueueNotOpen"
    QUEUE_AT_MAXIMUM = "QueueAtMaximum"
    NO_NODES = "NoNodes"
    NO_ROOM = "NoRoom"
    BEHIND = "Behind"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    kind: WaitKind
    sentence: str
    numbers: Mapping[str, object] = field(default_factory=dict)


def queue_gone(queue: str) -> Reason:
    return Reason(kind=WaitKind.QUEUE_GONE, sentence=f"queue {queue} does not exist any more", numbers={"queue": queue})


def queue_not_open(queue: str, status: str) -> Reason:
    return Reason(
        kind=WaitKind.QUEUE_NOT_OPEN,
        sentence=f"queue {queue} is {status} and starts nothing until it is open",
        numbers={"queue": queue, "status": status},
    )


def queue_at_maximum(queue: str, resource: str, used: int, maximum: int, asked: int) -> Reason:
    shown = {
        name: format_units(resource, units) for name, units in (("used", used), ("maximum", maximum), ("asked", asked))
    }
    return Reason(
        kind=WaitKind.QUEUE_AT_MAXIMUM,
        sentence=(
            f"queue {queue} may use {shown['maximum']} of {resource}; {shown['used']} is in use "
            f"and the job asks for {shown['asked']}"
        ),
        numbers={"queue": queue, "resource": resource, **shown},
    )


def no_nodes(cluster: str) -> Reason:
    return Reason(
        kind=WaitKind.NO_NODES,
        sentence=f"cluster {cluster} has no node that accepts work now",
        numbers={"cluster": cluster},
    )


def no_room(cluster: str, resource: str, asked: int, most_free: int, node: str) -> Reason:
    asked_text, free_text = format_units(resource, asked), format_units(resource, most_free)
    return Reason(
        kind=WaitKind.NO_ROOM,
        sentence=(
            f"no node of cluster {cluster} has {asked_text} of {resource} free together with the rest of the request; "
            f"{node} comes nearest with {free_text}"
        ),
        numbers={"cluster": cluster, "resource": resource, "asked": asked_text, "mostFree": free_text, "node": node},
    )


def behind(ahead: JobId, queue: str, cause: Reason) -> Reason:
    return Reason(
        kind=WaitKind.BEHIND,
        sentence=f"{ahead} is ahead in queue {queue} and waits itself: {cause.sentence}",
        numbers={"ahead": ahead, "queue": queue, "cause": cause.kind},
    )
