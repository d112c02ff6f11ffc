"""Room that was freed for somebody: given to it when all of it is there, kept for it until then.

All claims are judged together. Who fits now, on the very spots it claims and within every maximum, takes them, the most
urgent first. Who does not keeps its claim as long as it fits once those on their way out have gone. A claim that cannot
come true any more (a node is gone, a quota was lowered, the queue was closed) is given up, and its job is considered
like any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from paddleflow.domain.ids import JobId, NodeName
from paddleflow.domain.jobs import Spot
from paddleflow.domain.queues import QueueStatus
from paddleflow.scheduling.entries import Waiting
from paddleflow.scheduling.ledger import Ledger, held_at
from paddleflow.scheduling.quota import Quota
from paddleflow.scheduling.trial import Trial


@dataclass(slots=True, kw_only=True)
class Claims:
    """How the claims stand. The trial holds the room of those that are taken and of those that are kept."""

    taken: list[Waiting] = field(default_factory=list)
    kept: dict[JobId, tuple[JobId, ...]] = field(default_factory=dict)
    """And who must go first."""
    given_up: list[Waiting] = field(default_factory=list)


def settle_claims(ledger: Ledger, trial: Trial) -> Claims:
    claimants = sorted(ledger.claimants.values(), key=lambda job: job.rank)
    quotas = {job.job_id: ledger.quotas.find(job.queue) for job in claimants}
    for job in claimants:
        trial.release(quotas[job.job_id], held_at(job.groups, job.claim))
    settled = Claims()
    later: list[tuple[Waiting, Quota]] = []
    for job in claimants:
        quota = quotas[job.job_id]
        if quota is None or quota.queue.status is not QueueStatus.OPEN:
            settled.given_up.append(job)
        elif fits_on(job, job.claim, quota, trial):
            trial.retake(quota, held_at(job.groups, job.claim))
            settled.taken.append(job)
        else:
            later.append((job, quota))
    if later:
        _keep(later, ledger, trial, settled)
    return settled


def _keep(later: list[tuple[Waiting, Quota]], ledger: Ledger, trial: Trial, settled: Claims) -> None:
    departing = [ledger.holding[job_id] for job_id in sorted(ledger.departing)]
    for each in departing:
        trial.see_off(ledger.quotas.find(each.queue), each.departing)
    for job, quota in later:
        if fits_on(job, job.claim, quota, trial):
            trial.retake(quota, held_at(job.groups, job.claim))
            nodes = {spot.node for spot in job.claim}
            settled.kept[job.job_id] = tuple(
                each.job_id for each in departing if any(part.node in nodes for part in each.departing)
            )
        else:
            settled.given_up.append(job)
    for each in departing:
        trial.call_back(ledger.quotas.find(each.queue), each.departing)


def fits_on(job: Waiting, spots: Sequence[Spot], quota: Quota, trial: Trial) -> bool:
    """Whether these spots are free for it, and its queue may use so much."""
    if quota.over_maximum(job.request.amounts) is not None:
        return False
    needs: dict[NodeName, dict[str, int]] = {}
    for part in held_at(job.groups, spots):
        room = trial.rooms.find(part.node)
        if room is None or any(index >= len(room.busy) or room.busy[index] for index in part.gpus):
            return False
        need = needs.setdefault(part.node, {})
        for name, units in part.each:
            need[name] = need.get(name, 0) + units
    for node, need in needs.items():
        room = trial.rooms.find(node)
        if room is None or any(units > room.free.get(name, 0) for name, units in need.items() if units > 0):
            return False
    return True
