"""Whose room is freed so that another may start: first workers that elastic jobs can do without, then whole jobs.

Who may be asked: a job of a queue below its guarantee may ask those above theirs (``quota.may_reclaim``); in a queue
that says ``preempt``, a more urgent job may ask the less urgent. Spare workers of elastic jobs are asked more easily:
they also yield to their own queue and to a queue that has had no more than its fair share.

What is on its way out already is counted on first, so nobody is asked for room that comes anyway. Nothing is chosen
unless the job then fits, and nothing is chosen that it could do without: every choice is tried without, the most
precious first, and let go if the job fits all the same. A victim whose going gave the job its right to another stays
chosen as long as that other is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from paddleflow.domain.ids import JobId, NodeName, QueueName
from paddleflow.domain.jobs import Spot
from paddleflow.domain.queues import QueuePolicy
from paddleflow.scheduling.backfill import Kept
from paddleflow.scheduling.entries import Held, Holding, TaskGroup, Waiting
from paddleflow.scheduling.ledger import Ledger
from paddleflow.scheduling.placement import Shortage
from paddleflow.scheduling.quota import Quota, is_entitled, is_fairer, may_reclaim, sides
from paddleflow.scheduling.rooms import NodeRoom
from paddleflow.scheduling.trial import Trial

_STARTING_AGAIN_S = 1800.0
"""What an eviction costs beside the work it loses: waiting once more, starting, reading the data again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shrink:
    """One step down of an elastic job."""

    holding: Holding
    quota: Quota
    dropped: tuple[Held, ...]
    smaller: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    spots: tuple[Spot, ...]
    shrinks: tuple[Shrink, ...]
    """Steps of one job follow each other."""
    evictions: tuple[Holding, ...]
    departing: tuple[JobId, ...] = ()
    """Who is on the way out of these spots anyway."""


class Reclaim:
    """The search for one job. Works on the trial and leaves it as it was."""

    def __init__(
        self,
        job: Waiting,
        quota: Quota,
        *,
        ledger: Ledger,
        trial: Trial,
        now: float,
        going: Sequence[tuple[JobId, Quota, tuple[Held, ...]]] = (),
        unstarted: Collection[JobId] = (),
    ) -> None:
        """``going``: what this cycle has told to go already, for others. ``unstarted``: those of the holders that were
        only chosen in this cycle, and lose nothing by waiting on."""
        self._job = job
        self._quota = quota
        self._asked = job.request.amounts
        self._ledger = ledger
        self._quotas = ledger.quotas
        self._trial = trial
        self._holding: Sequence[Holding] = ()
        self._now = now
        self._going = going
        self._unstarted = unstarted
        self._sizes: dict[JobId, int] = {}
        """Of elastic jobs that were shrunk in the trial: how many workers they have left."""
        self._costs: dict[JobId, tuple[int, float, int]] = {}
        self.waits_for_departing = False
        """Found while planning: it fits when those on their way out have gone."""

    def may_ask_anybody(self) -> bool:
        """False when neither its rights nor anybody's spare workers could help: the cheap answer for most."""
        return bool(self._ledger.elastic) or self._may_evict_somebody()

    def _may_evict_somebody(self) -> bool:
        if QueuePolicy.PREEMPT in self._quota.queue.policies:
            return True
        return is_entitled(self._quota, self._asked) and any(
            other.tree is self._quota.tree and may_reclaim(self._quota, self._asked, other)
            for other in self._quotas.all()
        )

    def plan(self, holding: Sequence[Holding], kept: Sequence[Kept]) -> Plan | None:
        """``holding``: those that may be asked at all, of this cluster and not on their way out.

        ``kept``: room promised to others; what they wait for is not taken from those who are to free it.
        """
        self._holding = holding
        mark = self._trial.mark()
        try:
            self._see_off_departing()
            self._respect(kept)
            if (self._ledger.departing or self._going) and self._fits():
                self.waits_for_departing = True
                # With a right to more it takes what comes anyway; without, it waits for its turn like any.
                return self._planned([], []) if self._has_victims() else None
            unshrunk = self._trial.mark()
            shrinks = self._shrink()
            evicted: list[Holding] = []
            if not self._fits():
                evicted = self._evict()
                if not evicted and shrinks:
                    # What shrinking frees counts as given back, and may be all that could be asked for.
                    self._trial.rollback(unshrunk)
                    self._sizes.clear()
                    shrinks, evicted = [], self._evict()
                if not evicted:
                    return None
                evicted = self._spare_evictions(evicted, shrinks)
                gone = {each.job_id for each in evicted}
                shrinks = [step for step in shrinks if step.holding.job_id not in gone]
            return self._planned(self._spare_shrinks(shrinks, evicted), evicted)
        finally:
            self._trial.rollback(mark)

    def _planned(self, shrinks: list[Shrink], evicted: list[Holding]) -> Plan | None:
        spots = self._trial.place(self._job.groups, self._quota, self._job.prefers)
        if isinstance(spots, Shortage):
            return None
        nodes = {spot.node for spot in spots}
        departing = tuple(
            job_id
            for job_id in sorted(self._ledger.departing)
            if any(part.node in nodes for part in self._ledger.holding[job_id].departing)
        )
        return Plan(spots=spots, shrinks=tuple(shrinks), evictions=tuple(evicted), departing=departing)

    def _respect(self, kept: Sequence[Kept]) -> None:
        for each in kept:
            if each.yields_to(self._quota, self._asked):
                each.lend(self._trial)
            else:
                each.book_owed(self._trial)

    def _see_off_departing(self) -> None:
        for job_id in self._ledger.departing:
            each = self._ledger.holding[job_id]
            self._trial.see_off(self._quotas.find(each.queue), each.departing)
        for _, quota, parts in self._going:
            self._trial.see_off(quota, parts)

    def _fits(self) -> bool:
        if self._quota.over_maximum(self._asked) is not None:
            return False
        if not self._trial.rooms.could_fit(self._job.cluster, self._job.request):
            return False
        mark = self._trial.mark()
        found = self._trial.place(self._job.groups, self._quota, self._job.prefers)
        self._trial.rollback(mark)
        return not isinstance(found, Shortage)

    # Spare workers.

    def _shrink(self) -> list[Shrink]:
        """Steps down, from the most fulfilled job each time, until the job fits or nobody has any to spare."""
        heap = [
            self._spare_key(holding, holding.size)
            for holding in self._holding
            if holding.elastic is not None and holding.is_resizable and not holding.parting
        ]
        heapify(heap)
        steps: list[Shrink] = []
        while heap:
            *_, holding, size = heappop(heap)
            step = self._step_down(holding, size)
            if step is None or not self._may_shrink(step):
                continue
            self._trial.release(step.quota, step.dropped)
            self._sizes[holding.job_id] = step.smaller
            steps.append(step)
            if self._fits():
                break
            heappush(heap, self._spare_key(holding, step.smaller))
        return steps

    def _spare_key(self, holding: Holding, size: int) -> tuple[int, float, int, JobId, Holding, int]:
        assert holding.elastic is not None
        room = max(1, holding.elastic.most - holding.elastic.least)
        fulfilment = (size - holding.elastic.least) / room
        return (int(holding.priority), -fulfilment, -holding.seq, holding.job_id, holding, size)

    def _step_down(self, holding: Holding, size: int) -> Shrink | None:
        assert holding.elastic is not None
        smaller = max((allowed for allowed in holding.elastic.allowed if allowed < size), default=None)
        quota = self._quotas.find(holding.queue)
        if smaller is None or quota is None:
            return None
        role = holding.elastic.role
        workers = sorted((part for part in holding.held if part.role == role), key=lambda part: part.index)
        return Shrink(holding=holding, quota=quota, dropped=tuple(workers[smaller:size]), smaller=smaller)

    def _may_shrink(self, step: Shrink) -> bool:
        if step.quota is self._quota:
            return self._job.priority >= step.holding.priority
        if may_reclaim(self._quota, self._asked, step.quota):
            return True
        released: dict[str, int] = {}
        for part in step.dropped:
            for name, units in part.each:
                released[name] = released.get(name, 0) + units
        return is_fairer(self._quota, self._asked, step.quota, released)

    def _spare_shrinks(self, steps: list[Shrink], evicted: Sequence[Holding]) -> list[Shrink]:
        """Give back every step the job can do without; of one job the last step first."""
        kept = list(steps)
        for job_id in reversed(list(dict.fromkeys(step.holding.job_id for step in steps))):
            for step in reversed([step for step in steps if step.holding.job_id == job_id]):
                self._trial.retake(step.quota, step.dropped)
                rest = [other for other in kept if other is not step]
                if not (self._fits() and self._is_still_right(evicted, rest)):
                    self._trial.release(step.quota, step.dropped)
                    break
                kept = rest
        return kept

    # Whole jobs.

    def _evict(self) -> list[Holding]:
        """Release jobs, node by node where it costs least, until the job fits. Nothing when it cannot be helped."""
        if not self._may_evict_somebody():
            return []
        released: dict[JobId, Holding] = {}
        on_node = self._rank_holders()
        while not self._fits():
            chosen = self._cheapest(on_node, released)
            if not chosen:
                return []
            for holding in chosen:
                if self._may_evict(holding):
                    released[holding.job_id] = holding
                    self._release_all(holding)
                elif holding is chosen[0]:
                    return []
        return list(released.values())

    def _release_all(self, holding: Holding) -> None:
        quota = self._quotas.find(holding.queue)
        assert quota is not None
        self._trial.release(quota, self._remaining(holding))

    def _remaining(self, holding: Holding) -> tuple[Held, ...]:
        """What it still holds in the trial: all, or what its steps down have left."""
        size = self._sizes.get(holding.job_id)
        if size is None or holding.elastic is None:
            return holding.held
        role = holding.elastic.role
        workers = sorted((part for part in holding.held if part.role == role), key=lambda part: part.index)
        gone = set(workers[size:])
        return tuple(part for part in holding.held if part not in gone)

    def _may_evict(self, holding: Holding) -> bool:
        if holding.queue == self._job.queue:
            return QueuePolicy.PREEMPT in self._quota.queue.policies and holding.priority < self._job.priority
        quota = self._quotas.find(holding.queue)
        return quota is not None and may_reclaim(self._quota, self._asked, quota)

    def _cost(self, holding: Holding) -> tuple[int, float, int]:
        """Less urgent first, then least lost, then last come."""
        found = self._costs.get(holding.job_id)
        if found is None:
            size = sum(part.each.gpus or part.each.cpu_milli / 1000 for part in holding.held)
            lost = size * (_STARTING_AGAIN_S + max(0.0, self._now - holding.started_at))
            found = (int(holding.priority), lost, -holding.seq)
            if holding.job_id in self._unstarted:
                found = (0, 0.0, -holding.seq)
            self._costs[holding.job_id] = found
        return found

    def _has_victims(self) -> bool:
        allowed = _Allowed(self._may_evict)
        return any(allowed(holding) for holding in self._holding)

    def _rank_holders(self) -> dict[NodeName, list[Holding]]:
        """Who is on every node, the cheapest first."""
        on_node: dict[NodeName, list[Holding]] = {}
        for holding in sorted(self._holding, key=self._cost):
            for node in {part.node for part in holding.held}:
                on_node.setdefault(node, []).append(holding)
        return on_node

    def _cheapest(self, on_node: Mapping[NodeName, Sequence[Holding]], released: Collection[JobId]) -> list[Holding]:
        """The jobs whose end brings the next task in at the least cost."""
        allowed = _Allowed(self._may_evict)
        over = self._quota.over_maximum(self._asked)
        if over is not None:
            within, resource = over
            found = [
                holding
                for holding in self._holding
                if holding.job_id not in released
                and holding.uses.get(resource) > 0
                and (quota := self._quotas.find(holding.queue)) is not None
                and within in quota.path
                and allowed(holding)
            ]
            return [min(found, key=self._cost)] if found else []
        mark = self._trial.mark()
        # What fits stands where it would, while room is sought for what does not.
        short = self._trial.place_some(self._job.groups, self._quota, self._job.prefers)
        assert isinstance(short, Shortage)
        best: tuple[tuple[float, ...], NodeName, list[Holding]] | None = None
        for room in self._trial.rooms.pool(self._quota.queue, short.group.selector):
            holders = [
                holding for holding in on_node.get(room.name, ()) if holding.job_id not in released and allowed(holding)
            ]
            chosen = self._clear_one(room, holders, short.group)
            if chosen:
                costs = [self._cost(holding) for holding in chosen]
                key = (max(cost[0] for cost in costs), sum(cost[1] for cost in costs), len(chosen), costs[0][2])
                if best is None or (key, room.name) < best[:2]:
                    best = (key, room.name, chosen)
        self._trial.rollback(mark)
        return [] if best is None else best[2]

    def _clear_one(self, room: NodeRoom, holders: Sequence[Holding], group: TaskGroup) -> list[Holding]:
        """Who must leave this node so that one more task of the group fits here."""
        each = group.each.amounts
        count = room.count_fitting(each, group.count) + 1
        lacking = {name: units * count - room.free.get(name, 0) for name, units in each.items() if units > 0}
        lacking = {name: units for name, units in lacking.items() if units > 0}
        chosen: list[Holding] = []
        for holding in holders:
            if not lacking:
                break
            here = [part.each for part in self._remaining(holding) if part.node == room.name]
            if any(part.get(name) > 0 for part in here for name in lacking):
                chosen.append(holding)
                for part in here:
                    for name in list(lacking):
                        lacking[name] -= part.get(name)
                        if lacking[name] <= 0:
                            del lacking[name]
        return [] if lacking else chosen

    def _spare_evictions(self, chosen: list[Holding], shrinks: Sequence[Shrink]) -> list[Holding]:
        kept = list(chosen)
        for holding in sorted(chosen, key=self._cost, reverse=True):
            quota = self._quotas.find(holding.queue)
            self._trial.retake(quota, self._remaining(holding))
            rest = [other for other in kept if other.job_id != holding.job_id]
            if self._fits() and self._is_still_right(rest, shrinks):
                kept = rest
            else:
                self._trial.release(quota, self._remaining(holding))
        return kept

    def _is_still_right(self, evicted: Iterable[Holding], shrinks: Iterable[Shrink]) -> bool:
        """Whether the job has its right to these with what was given back: its own queue's room counts against it."""
        victims = {each.queue for each in evicted}
        for name in (victims | {step.holding.queue for step in shrinks}) - {self._job.queue}:
            holder = self._quotas.find(name)
            parted = None if holder is None else sides(self._quota, holder)
            if parted is None:
                return False
            mine, theirs, _ = parted
            if not mine.is_within_minimum(self._asked) and (
                name in victims or mine.share(self._asked) > theirs.share()
            ):
                return False
        return True


class _Allowed:
    """Who may be evicted now, asked once for each queue and urgency: jobs alike in both have the same answer."""

    def __init__(self, may_evict: Callable[[Holding], bool]) -> None:
        self._may_evict = may_evict
        self._known: dict[tuple[QueueName, int], bool] = {}

    def __call__(self, holding: Holding) -> bool:
        key = (holding.queue, int(holding.priority))
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._may_evict(holding)
        return found
