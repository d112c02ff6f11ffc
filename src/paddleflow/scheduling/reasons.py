"""Why a job waits, shrinks or goes, as data first and a sentence second: people and machines read the same thing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from paddleflow.domain.ids import JobId
from paddleflow.domain.resources import format_units
from paddleflow.scheduling.placement import Shortage


class WaitKind(StrEnum):
    QUEUE_GONE = "QueueGone"
    QUEUE_NOT_OPEN = "QueueNotOpen"
    QUEUE_AT_MAXIMUM = "QueueAtMaximum"
    NO_NODES = "NoNodes"
    NO_ROOM = "NoRoom"
    WOULD_DELAY = "WouldDelay"
    ROOM_BEING_FREED = "RoomBeingFreed"
    CLAIM_GIVEN_UP = "ClaimGivenUp"
    BACKING_OFF = "BackingOff"
    BEHIND = "Behind"
    GUARANTEED_TO_ANOTHER = "GuaranteedToAnother"
    STARTS_NOW = "StartsNow"
    RECLAIMED = "Reclaimed"
    PREEMPTED = "Preempted"
    YIELDED = "Yielded"
    GROWN = "Grown"


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


def queue_at_maximum(queue: str, quota: str, resource: str, used: int, maximum: int, asked: int) -> Reason:
    """``quota`` is the queue itself or one above it."""
    shown = {
        name: format_units(resource, units) for name, units in (("used", used), ("maximum", maximum), ("asked", asked))
    }
    who = f"queue {queue}" if quota == queue else f"quota {quota}, above queue {queue},"
    return Reason(
        kind=WaitKind.QUEUE_AT_MAXIMUM,
        sentence=(
            f"{who} may use {shown['maximum']} of {resource}; {shown['used']} is in use "
            f"and the job asks for {shown['asked']}"
        ),
        numbers={"queue": queue, "quota": quota, "resource": resource, **shown},
    )


def no_nodes(cluster: str, queue: str) -> Reason:
    return Reason(
        kind=WaitKind.NO_NODES,
        sentence=f"cluster {cluster} has no node that accepts work of queue {queue} now",
        numbers={"cluster": cluster, "queue": queue},
    )


def too_little_in_all(cluster: str, resource: str, asked: int, free: int) -> Reason:
    asked_text, free_text = format_units(resource, asked), format_units(resource, free)
    return Reason(
        kind=WaitKind.NO_ROOM,
        sentence=f"the job asks for {asked_text} of {resource} and cluster {cluster} has {free_text} free in all",
        numbers={"cluster": cluster, "resource": resource, "asked": asked_text, "free": free_text},
    )


def no_room(cluster: str, short: Shortage) -> Reason:
    asked, free = format_units(short.resource, short.asked), format_units(short.resource, short.most_free)
    numbers: dict[str, object] = {"cluster": cluster, "role": short.role, "tasks": short.wanted, "fit": short.fitting}
    numbers["nodes"] = short.nodes
    if short.node is None or not short.resource:
        nearest = ""
    else:
        numbers |= {"resource": short.resource, "asked": asked, "mostFree": free, "node": short.node}
        nearest = f"; {short.node} comes nearest with {free}"
    if short.wanted == 1:
        what = f"{asked} of {short.resource} free together with the rest of the request" if short.resource else "room"
        sentence = f"no node of cluster {cluster} has {what}{nearest}"
    else:
        sentence = (
            f"{short.wanted} tasks ({short.role}) must start together and cluster {cluster} has room for "
            f"{short.fitting} of them now{nearest}"
        )
    return Reason(kind=WaitKind.NO_ROOM, sentence=sentence, numbers=numbers)


def would_delay(ahead: JobId, cause: Reason) -> Reason:
    return Reason(
        kind=WaitKind.WOULD_DELAY,
        sentence=f"there is room, but it is kept for {ahead}, which has waited longer: {cause.sentence}",
        numbers={"ahead": ahead, "cause": cause.kind, **cause.numbers},
    )


def room_being_freed(stopping: tuple[JobId, ...]) -> Reason:
    shown = ", ".join(stopping[:3]) + (f" and {len(stopping) - 3} more" if len(stopping) > 3 else "")
    return Reason(
        kind=WaitKind.ROOM_BEING_FREED,
        sentence=f"room is being freed for it by {shown or 'others'}",
        numbers={"stopping": list(stopping)},
    )


def claim_given_up(nodes: tuple[str, ...]) -> Reason:
    return Reason(
        kind=WaitKind.CLAIM_GIVEN_UP,
        sentence=f"the room that was being freed for it on {', '.join(nodes)} cannot come any more",
        numbers={"nodes": list(nodes)},
    )


def backing_off(until: float, now: float) -> Reason:
    return Reason(
        kind=WaitKind.BACKING_OFF,
        sentence=f"it failed and is tried again in {max(0.0, until - now):.0f} s",
        numbers={"seconds": round(max(0.0, until - now))},
    )


def behind(ahead: JobId, queue: str, cause: Reason) -> Reason:
    return Reason(
        kind=WaitKind.BEHIND,
        sentence=f"{ahead} is ahead in queue {queue} and waits itself: {cause.sentence}",
        numbers={"ahead": ahead, "queue": queue, "cause": cause.kind},
    )


def guaranteed_to_another(queue: str, job: JobId) -> Reason:
    return Reason(
        kind=WaitKind.GUARANTEED_TO_ANOTHER,
        sentence=f"the room it would have had is guaranteed to queue {queue}, which takes it now for {job}",
        numbers={"queue": queue, "ahead": job},
    )


def starts_now(nodes: tuple[str, ...]) -> Reason:
    return Reason(
        kind=WaitKind.STARTS_NOW, sentence=f"it starts now on {', '.join(nodes)}", numbers={"nodes": list(nodes)}
    )


def reclaimed(holder_queue: str, asking_queue: str, job: JobId) -> Reason:
    return Reason(
        kind=WaitKind.RECLAIMED,
        sentence=(
            f"queue {asking_queue} takes back its guarantee for {job}; queue {holder_queue} was using more than its own"
        ),
        numbers={"inFavourOf": job, "queue": asking_queue, "from": holder_queue},
    )


def preempted(queue: str, job: JobId) -> Reason:
    return Reason(
        kind=WaitKind.PREEMPTED,
        sentence=f"{job} of the same queue {queue} is more urgent",
        numbers={"inFavourOf": job, "queue": queue},
    )


def yielded(job: JobId, size: int, smaller: int) -> Reason:
    return Reason(
        kind=WaitKind.YIELDED,
        sentence=f"shrunk from {size} to {smaller} so that {job} can start",
        numbers={"inFavourOf": job, "from": size, "to": smaller},
    )


def grown(size: int, larger: int) -> Reason:
    return Reason(
        kind=WaitKind.GROWN,
        sentence=f"grown from {size} to {larger} into idle room",
        numbers={"from": size, "to": larger},
    )


def near_data(node: str, share: float) -> str:
    """Why this node and not another that has room."""
    return f"{node} has about {share:.0%} of its data in its cache"
