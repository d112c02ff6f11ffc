"""How many workers each elastic job has: the EDL rule, fair and settled.

Elastic jobs share what the other pods of the cluster leave. Each has its least; what remains goes, worker by worker,
to the job that has least of what it could use: ``(workers - least) / (most - least)``. The shares depend on what
there is and who asks, not on who has how much now, so the rule comes to rest: applied to its own outcome it changes
nothing. Of CPU, memory and disk a part stays free (``max_load``), for growing and for shrinking alike; GPUs and other
devices may be filled to the last.

A job above its share shrinks at once. One below grows only by workers for which a node has room now, and not while
earlier ones still wait for theirs: others are shrinking in its favour, and it is its turn when they have.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from paddleflow.domain.resources import CPU, MEMORY, Resources
from paddleflow.paddlejob.gangs import task_resources
from paddleflow.paddlejob.jobs import PaddleJob, Phase
from paddleflow.paddlejob.names import ANNOTATION_AUTOSCALE, WORKER
from paddleflow.paddlejob.records import read_record

MAX_LOAD = 0.97
_DIVISIBLE = (CPU, MEMORY, "ephemeral-storage")
_DEFAULT_QUEUE = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """An elastic job's."""

    key: str
    """Unique in the cluster: namespace and name."""
    each: Resources
    """What one worker takes."""
    size: int
    """``worker.replicas`` now."""
    pending: int = 0
    """How many of them have no node yet."""
    least: int
    most: int
    stuck: int = 0
    """How many of the pending have waited so long that they are given back."""
    is_held: bool = False
    """Some were given back lately: no more for now."""
    wishes: Mapping[str, Any] = field(default_factory=dict)
    """``nodeSelector`` and ``tolerations`` of the workers."""
    queue: str = ""

    def fulfilment(self, workers: int) -> float:
        return (workers - self.least) / (self.most - self.least) if self.most > self.least else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The number of workers a job is to have now. Only those that differ from what it has are given."""

    key: str
    workers: int
    reason: str


def claim_of(job: PaddleJob, pending: int) -> Claim | None:
    """None: the rule leaves the job alone."""
    worker = job.roles.get(WORKER)
    if not job.is_elastic or worker is None or worker.most is None or job.is_suspended or job.is_deleted:
        return None
    if job.annotations.get(ANNOTATION_AUTOSCALE) == "off":
        return None
    if job.status.get("phase") in (Phase.COMPLETED, Phase.FAILED) or read_record(job.status).succeeded[WORKER]:
        return None  # Over, or about to be: a new worker would find nobody to work with.
    spec = worker.template["spec"]
    return Claim(
        key=f"{job.namespace}/{job.name}",
        each=task_resources(worker),
        size=worker.replicas,
        pending=pending,
        least=max(worker.least or 1, 1),
        most=worker.most,
        wishes={name: spec[name] for name in ("nodeSelector", "tolerations") if spec.get(name)},
        queue=job.scheduling.queue or _DEFAULT_QUEUE,
    )


def targets(
    claims: Sequence[Claim],
    capacity: Resources,
    others: Resources,
    rooms: Sequence[Resources],
    max_load: float = MAX_LOAD,
) -> tuple[Target, ...]:
    """``capacity``: of all nodes that take pods. ``others``: what pods ask for that are no workers of these jobs, those
    that wait included. ``rooms``: what is free on each node now."""
    shares = fair_shares(claims, capacity, others, max_load)
    grown = dict(_grow(claims, shares, rooms))
    found = []
    for claim in claims:
        share = shares[claim.key]
        workers = share if share <= claim.size else grown[claim.key]
        why = f"its fair share of the cluster is {share}"
        placed = max(claim.size - claim.stuck, claim.least)
        if placed < min(workers, claim.size):
            workers, why = placed, "no node takes the others"
        if workers != claim.size:
            way = "grown" if workers > claim.size else "shrunk"
            reason = f"{way} from {claim.size} to {workers}: {why}"
            found.append(Target(key=claim.key, workers=workers, reason=reason))
    return tuple(found)


def fair_shares(
    claims: Sequence[Claim], capacity: Resources, others: Resources, max_load: float = MAX_LOAD
) -> dict[str, int]:
    """By key. Never below least, even where there is not enough: a job that has started is not taken apart."""
    free = _free(capacity, others, max_load)
    shares = {claim.key: claim.least for claim in claims}
    for claim in claims:
        _take(free, claim.each, claim.least)
    line = [(claim.fulfilment(claim.least), _weight(claim), claim.key, claim) for claim in claims]
    heapq.heapify(line)
    while line:
        _, weight, key, claim = heapq.heappop(line)
        # What does not fit now does not fit later: room only gets less.
        if shares[key] < claim.most and _fits(free, claim.each):
            _take(free, claim.each, 1)
            shares[key] += 1
            heapq.heappush(line, (claim.fulfilment(shares[key]), weight, key, claim))
    return shares


def _grow(claims: Sequence[Claim], shares: Mapping[str, int], rooms: Sequence[Resources]) -> Iterator[tuple[str, int]]:
    """What each that is below its share can have at once, neediest first, one worker at a time."""
    free = [dict(room.amounts) for room in rooms]
    sizes = {claim.key: max(claim.size, claim.least) for claim in claims}
    first_room = dict.fromkeys(sizes, 0)
    growing = [claim for claim in claims if sizes[claim.key] < shares[claim.key] and not _waits(claim)]
    line = [(claim.fulfilment(sizes[claim.key]), _weight(claim), claim.key, claim) for claim in growing]
    heapq.heapify(line)
    while line:
        _, weight, key, claim = heapq.heappop(line)
        while first_room[key] < len(free) and not _fits(free[first_room[key]], claim.each):
            first_room[key] += 1
        if first_room[key] < len(free):
            _take(free[first_room[key]], claim.each, 1)
            sizes[key] += 1
            if sizes[key] < shares[key]:
                heapq.heappush(line, (claim.fulfilment(sizes[key]), weight, key, claim))
    yield from sizes.items()


def _waits(claim: Claim) -> bool:
    return bool(claim.pending) or claim.is_held


def _free(capacity: Resources, others: Resources, max_load: float) -> dict[str, int]:
    usable = {name: int(amount * max_load) if name in _DIVISIBLE else amount for name, amount in capacity}
    return {name: amount - others.get(name) for name, amount in usable.items()}


def _fits(free: Mapping[str, int], each: Resources) -> bool:
    return all(free.get(name, 0) >= amount for name, amount in each if amount)


def _take(free: dict[str, int], each: Resources, times: int) -> None:
    for name, amount in each:
        free[name] = free.get(name, 0) - amount * times


def _weight(claim: Claim) -> tuple[int, int, int]:
    """Among equals the smaller worker first."""
    return (claim.each.gpus, claim.each.cpu_milli, claim.each.memory_bytes)
