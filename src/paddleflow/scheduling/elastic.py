"""Elastic jobs grow into room that nobody who waits can use, the least fulfilled first, one allowed size at a time.

It ends because every step takes room that is there, and settles because a job keeps its size for a while after a
change, and shrinks only for somebody who then starts. Who waits loses nothing by it: what it cannot start on now it
gets back, by a shrink, with the rest of what it needs.

How long a job keeps its size depends on what it could gain now: a change stops every worker for its cost, and the added
workers have to make up for that. Much idle room is taken as soon as the job has settled, one worker more only after the
time that one worker needs to make up for the stop.

Jobs that may not grow yet take part all the same and what falls to them is left idle until they may: otherwise whoever
settles first would take everything, and nobody gives back to be fair.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush

from paddleflow.domain.ids import JobId
from paddleflow.domain.jobs import Elasticity, Spot
from paddleflow.scheduling import reasons
from paddleflow.scheduling.decisions import Admission, PendingGrowth, Resize
from paddleflow.scheduling.entries import Holding, TaskGroup, Waiting
from paddleflow.scheduling.ledger import Ledger
from paddleflow.scheduling.placement import Shortage
from paddleflow.scheduling.quota import Quota
from paddleflow.scheduling.trial import Trial


@dataclass(slots=True, kw_only=True)
class _Growing:
    job: Holding | Waiting
    elastic: Elasticity
    quota: Quota
    size: int
    indices: set[int]
    added: list[Spot]

    @property
    def size_before(self) -> int:
        return self.size - len(self.added)

    @property
    def key(self) -> tuple[float, float, int, str]:
        fulfilment = (self.size - self.elastic.least) / max(1, self.elastic.most - self.elastic.least)
        return (self.quota.share(), fulfilment, self.job.seq, self.job.job_id)


class Grower:
    def __init__(self, *, ledger: Ledger, trial: Trial, now: float, settle_s: float, going: Collection[JobId]) -> None:
        self._ledger = ledger
        self._trial = trial
        self._now = now
        self._settle_s = settle_s
        self._going = going
        self.pending: list[PendingGrowth] = []
        """Jobs with room to grow into that have to keep their size for a while."""

    def grow(self, admissions: Iterable[Admission]) -> tuple[list[Admission], list[Resize]]:
        """Jobs that start now may start larger: nothing of theirs has to be told of a change."""
        starting = {each.job_id: each for each in admissions}
        growing = [
            each
            for each in (*map(self._starting, starting.values()), *map(self._running, self._ledger.elastic))
            if each is not None
        ]
        larger: list[Admission] = []
        resizes: list[Resize] = []
        for each in self._fill(growing):
            job_id, added = each.job.job_id, tuple(each.added)
            ready_at = self._ready_at(each)
            if job_id in starting:
                larger.append(Admission(job_id=job_id, spots=starting[job_id].spots + added))
            elif ready_at <= self._now:
                reason = reasons.grown(each.size_before, each.size)
                resizes.append(Resize(job_id=job_id, add=added, reason=reason))
            elif math.isfinite(ready_at):
                self.pending.append(PendingGrowth(job_id=job_id, size=each.size_before, larger=each.size, at=ready_at))
        return larger, resizes

    def _starting(self, admission: Admission) -> _Growing | None:
        job = self._ledger.waiting_of(admission.job_id)
        quota = None if job is None else self._ledger.quotas.find(job.queue)
        if job is None or quota is None or job.elastic is None or job.claim:
            return None
        indices = {spot.index for spot in admission.spots if spot.role == job.elastic.role}
        return _Growing(job=job, elastic=job.elastic, quota=quota, size=len(indices), indices=indices, added=[])

    def _running(self, job_id: JobId) -> _Growing | None:
        job = self._ledger.holding[job_id]
        quota = self._ledger.quotas.find(job.queue)
        elastic = job.elastic
        if elastic is None or quota is None or job.is_leaving or job.parting or job_id in self._going:
            return None
        if _next_size(elastic, job.size) is None:
            return None
        indices = {part.index for part in job.held if part.role == elastic.role}
        return _Growing(job=job, elastic=elastic, quota=quota, size=job.size, indices=indices, added=[])

    def _ready_at(self, each: _Growing) -> float:
        """When it may take all of what was added to it; infinite: not before it runs."""
        if isinstance(each.job, Waiting):
            return self._now
        if not each.job.is_resizable:
            return math.inf
        # Every worker there is now stands still for the cost of the change; the added ones win it back.
        pays_back_s = each.elastic.rescale_cost_s * each.size_before / len(each.added)
        return each.job.resized_at + max(self._settle_s, pays_back_s)

    def _fill(self, growing: Iterable[_Growing]) -> list[_Growing]:
        """One step at a time, always the one that has least, until none can take another."""
        everyone = {each.job.job_id: each for each in growing}
        heap = [(each.key, each.job.job_id) for each in everyone.values()]
        heapify(heap)
        while heap:
            key, job_id = heappop(heap)
            each = everyone[job_id]
            if key != each.key:
                heappush(heap, (each.key, job_id))  # its queue has got more meanwhile
            elif self._step_up(each):
                heappush(heap, (each.key, job_id))
        return [each for each in everyone.values() if each.added]

    def _step_up(self, each: _Growing) -> bool:
        larger = _next_size(each.elastic, each.size)
        if larger is None:
            return False
        template = next(group for group in each.job.groups if group.role == each.elastic.role)
        group = TaskGroup(role=template.role, count=larger - each.size, each=template.each, selector=template.selector)
        asked = (group.each * group.count).amounts
        if each.quota.over_maximum(asked) is not None:
            return False
        if not self._trial.rooms.could_fit(each.job.cluster, group.each * group.count):
            return False
        prefers = each.job.prefers if isinstance(each.job, Waiting) else {}
        found = self._trial.place((group,), each.quota, prefers)
        if isinstance(found, Shortage):
            return False
        self._trial.use(each.quota, asked)
        unused = (index for index in range(each.elastic.most) if index not in each.indices)
        added = [replace(spot, index=next(unused)) for spot in found]
        each.indices |= {spot.index for spot in added}
        each.added += added
        each.size = larger
        return True


def _next_size(elastic: Elasticity, size: int) -> int | None:
    return min((allowed for allowed in elastic.allowed if allowed > size), default=None)
