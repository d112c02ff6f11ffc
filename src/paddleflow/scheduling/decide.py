"""One cycle: the ledger as it is and the time in, decisions with reasons out. The ledger is left as it was.

In this order: jobs for which room was freed take it; then everybody who waits is considered, the best right first, and
starts if there is room, or has room freed if its right allows that, or has room kept; last, elastic jobs grow into what
nobody who waits can use. What a cycle frees is claimed in the same cycle by the one it is freed for, so that it can go
to no other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from paddleflow.domain.ids import ClusterName, JobId, QueueName
from paddleflow.domain.jobs import Spot
from paddleflow.domain.queues import QueuePolicy, QueueStatus
from paddleflow.scheduling import reasons
from paddleflow.scheduling.backfill import Kept, fits_when_empty, keep_nodes, keep_quota, keep_until
from paddleflow.scheduling.claims import fits_on, settle_claims
from paddleflow.scheduling.decisions import (
    Admission,
    Because,
    Blocked,
    Decisions,
    Eviction,
    PendingGrowth,
    Reservation,
    Resize,
)
from paddleflow.scheduling.elastic import Grower
from paddleflow.scheduling.entries import Held, Holding, Waiting, starting_of
from paddleflow.scheduling.ledger import Ledger, held_at
from paddleflow.scheduling.order import Line, Order
from paddleflow.scheduling.placement import Shortage
from paddleflow.scheduling.quota import Quota
from paddleflow.scheduling.reclaim import Plan, Reclaim, Shrink
from paddleflow.scheduling.trial import Trial


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What may be turned."""

    depth: int = 100
    """So many jobs behind one that has to wait are tried in its stead, in each queue and cycle."""
    patience_s: float = 604800.0
    """So long a job lets others pass before nodes are emptied for it, where nobody knows when what runs will end."""
    settle_s: float = 60.0
    """An elastic job keeps its size for so long after a change before it grows again; longer where the workers that it
    could add need longer to make up for the cost of the change."""


DEFAULT_RULES = Rules()


def decide(ledger: Ledger, now: float, rules: Rules = DEFAULT_RULES, focus: JobId | None = None) -> Decisions:
    """Costs what can be started and how many queues there are, not how many jobs wait.

    ``focus`` names a job whose reason is wanted exactly: it is looked at however far behind it waits.
    """
    cycle = _Cycle(ledger, now, rules, focus)
    start = cycle.trial.mark()
    try:
        cycle.take_claims()
        cycle.consider_all()
        cycle.grow()
        return cycle.decisions()
    finally:
        cycle.trial.rollback(start)


class _Cycle:
    def __init__(self, ledger: Ledger, now: float, rules: Rules, focus: JobId | None) -> None:
        self._ledger = ledger
        self._now = now
        self._rules = rules
        self._focus = focus
        self.trial = Trial(ledger.rooms)
        self._admissions: dict[JobId, Admission] = {}
        self._reservations: dict[JobId, Reservation] = {}
        self._evictions: list[Eviction] = []
        self._resizes: list[Resize] = []
        self._pending_growths: tuple[PendingGrowth, ...] = ()
        self._going: set[JobId] = set()
        """Chosen in this cycle to go or to shrink: not to be asked again."""
        self._kept: dict[ClusterName, list[Kept]] = {}
        self._blocked: dict[QueueName, Blocked] = {}
        self._causes: dict[JobId, Because] = {}
        self._hopeless: dict[tuple[object, ...], Because] = {}
        """Shapes that did not fit a pool; during a cycle room only gets less."""
        self._helpless: set[str] = set()
        """Shapes for which no room can be freed; during a cycle nobody's right to it grows."""
        self._refused: dict[str, Because] = {}
        self._claimed: set[JobId] = set()
        """For whom room is being freed by this cycle."""
        self._leaving: list[tuple[JobId, Quota, tuple[Held, ...]]] = []
        """What was told to go in this cycle."""
        self._order = Order((), ())
        self._just_admitted: list[Waiting] = []
        self._unstarted: dict[ClusterName, dict[JobId, Holding]] = {}
        """Chosen to start in this cycle, but for those that take what was freed for them."""
        self._protected: set[JobId] = set()
        """Those for whom nodes may be emptied."""
        self._wake_at: float | None = None

    def decisions(self) -> Decisions:
        return Decisions(
            admissions=tuple(self._admissions.values()),
            reservations=tuple(self._reservations.values()),
            evictions=tuple(self._evictions),
            resizes=tuple(self._resizes),
            promises=tuple(kept.promise for each in self._kept.values() for kept in each),
            pending_growths=self._pending_growths,
            blocked=self._blocked,
            causes=self._causes,
            refused=self._refused,
            wake_at=self._wake_at,
        )

    # Room that was freed for somebody.

    def take_claims(self) -> None:
        if not self._ledger.claimants:
            return
        claims = settle_claims(self._ledger, self.trial)
        for job in claims.taken:
            self._admissions[job.job_id] = Admission(job_id=job.job_id, spots=job.claim)
        for job_id, stopping in claims.kept.items():
            self._causes[job_id] = partial(reasons.room_being_freed, stopping)
        for job in claims.given_up:
            self._give_up_claim(job)

    def _give_up_claim(self, job: Waiting) -> None:
        reason = reasons.claim_given_up(tuple({spot.node: None for spot in job.claim}))
        self._reservations[job.job_id] = Reservation(job_id=job.job_id, spots=(), reason=reason)

    # Everybody who waits.

    def consider_all(self) -> None:
        lines = []
        for name, jobs in self._ledger.waiting.items():
            quota = self._ledger.quotas.find(name)
            if quota is None:
                self._block(jobs[0], partial(reasons.queue_gone, name))
            elif quota.queue.status is not QueueStatus.OPEN:
                self._block(jobs[0], partial(reasons.queue_not_open, name, quota.queue.status))
            else:
                lines.append(Line(quota, jobs))
        self._protected = self._out_of_turn(lines)
        self._order = Order(lines, self._protected)
        while (line := self._order.next_line()) is not None:
            self._consider(line)
            self._order.changed(line.quota)

    def _out_of_turn(self, lines: Sequence[Line]) -> set[JobId]:
        """In every cluster the one that has stood at the head of its queue for too long, if any. It stays the one until
        it starts, so that nodes are emptied for one job at a time."""
        patient: list[tuple[float, int, Waiting, Quota]] = []
        for line in lines:
            job = line.head
            if job is None or job.claim or job.not_before > self._now:
                continue
            patient_until = job.since + self._rules.patience_s
            if patient_until > self._now:
                self._wake(patient_until)
            else:
                patient.append((job.since, job.seq, job, line.quota))
        chosen: dict[ClusterName, JobId] = {}
        for _, _, job, quota in sorted(patient, key=lambda each: each[:2]):
            # One that can never start would otherwise be the one for ever.
            if job.cluster not in chosen and fits_when_empty(job, quota, self.trial):
                chosen[job.cluster] = job.job_id
        return set(chosen.values())

    def _consider(self, line: Line) -> None:
        job = line.head
        assert job is not None
        line.position += 1
        if job.job_id in self._admissions or job.job_id in self._causes:
            return  # it takes, or waits for, what was freed for it
        if job.not_before > self._now:
            self._causes[job.job_id] = partial(reasons.backing_off, job.not_before, self._now)
            self._wake(job.not_before)
            return
        because = self._try(job, line.quota)
        if because is None:
            return
        self._causes[job.job_id] = because
        line.failures += 1
        if line.failures == 1:
            self._blocked[job.queue] = Blocked(job=job, because=because)
        if job.job_id not in self._claimed:
            self._refused[job.kin] = because
            self._pass_over(line)
        if QueuePolicy.STRICT in line.quota.queue.policies or line.failures > self._rules.depth:
            self._skip_to_focus(line)

    def _pass_over(self, line: Line) -> None:
        """Those whose like has been refused are refused with it: during a cycle room and rights only get less."""
        jobs, refused, depth = line.jobs, self._refused, self._rules.depth
        while line.position < len(jobs) and line.failures <= depth:
            job = jobs[line.position]
            because = refused.get(job.kin)
            if because is None or job.claim or job.limit_s is not None or job.not_before > self._now:
                return
            if job.job_id == self._focus:
                return
            line.position += 1
            line.failures += 1

    def _skip_to_focus(self, line: Line) -> None:
        """Nobody else of this line is tried, but for the one somebody asks about."""
        focus = self._focus
        line.jobs = (
            [job for job in line.jobs[line.position :] if job.job_id == focus]
            if focus is not None and QueuePolicy.STRICT not in line.quota.queue.policies
            else []
        )
        line.position = 0

    def _try(self, job: Waiting, quota: Quota) -> Because | None:
        """Start the job, or have room freed for it, or say why neither."""
        over = quota.over_maximum(job.request.amounts)
        spots: tuple[Spot, ...] | None = None
        if over is None:
            found = self._place(job, quota)
            if isinstance(found, tuple):
                spots = found
            because = None if isinstance(found, tuple) else found
        else:
            because = self._at_maximum(job, quota, *over)
        if spots is not None:
            self.trial.use(quota, job.request.amounts)
            self._admit(job, spots)
            return None
        assert because is not None
        plan = self._plan(job, quota)
        if plan is not None:
            return self._carry_out(job, quota, plan)
        if job.queue not in self._blocked:
            self._keep(job, quota, waits_for_room=over is None)
        return because

    def _admit(self, job: Waiting, spots: tuple[Spot, ...]) -> None:
        self._admissions[job.job_id] = Admission(job_id=job.job_id, spots=spots)
        self._just_admitted.append(job)
        self._reservations.pop(job.job_id, None)

    def _at_maximum(self, job: Waiting, quota: Quota, over: Quota, resource: str) -> Because:
        used, most, asked = over.used.get(resource, 0), over.maximum[resource], job.request.get(resource)
        if used + asked <= most:
            # It would be within the maximum if nothing of that were kept for somebody ahead.
            kept = self._kept[job.cluster]
            ahead = next(each.promise.job_id for each in kept if any(at is over for at, _ in each.amounts))
            return self._would_delay(ahead)
        return partial(reasons.queue_at_maximum, quota.name, over.name, resource, used, most, asked)

    def _would_delay(self, ahead: JobId) -> Because:
        cause = self._causes[ahead]
        return lambda: reasons.would_delay(ahead, cause())

    def _place(self, job: Waiting, quota: Quota) -> tuple[Spot, ...] | Because:
        queue = quota.queue
        pool_key = (queue.cluster, queue.name if queue.location or queue.policies else "")
        key = (pool_key, job.shape)
        known = self._hopeless.get(key)
        if known is None:
            found = self._place_now(job, quota)
            if isinstance(found, tuple):
                return found
            known = self._hopeless[key] = found
        kept = self._kept.get(job.cluster, ())
        if not kept:
            return known
        ends_by = None if job.limit_s is None else self._now + job.limit_s
        asked = job.request.amounts
        in_the_way = [
            each
            for each in kept
            if (ends_by is None or not each.is_over_by(ends_by)) and not each.yields_to(quota, asked)
        ]
        is_asked_about = job.job_id == self._focus
        if len(in_the_way) == len(kept) and not is_asked_about:
            return known
        return self._place_in_kept(job, quota, kept, in_the_way, known)

    def _place_in_kept(
        self, job: Waiting, quota: Quota, kept: Sequence[Kept], in_the_way: Sequence[Kept], known: Because
    ) -> tuple[Spot, ...] | Because:
        """In room that is kept for others, if the job will be gone before they need it, or has the better right."""
        lent = [each for each in kept if each not in in_the_way]
        for each in lent:
            each.lend(self.trial)
        found = self._place_now(job, quota) if lent else known
        for each in lent:
            each.set_aside(self.trial)
        if isinstance(found, tuple):
            self._withdraw(lent, job, quota)
            return found
        if not in_the_way:
            return found
        mark = self.trial.mark()
        for each in kept:
            each.lend(self.trial)
        would_fit = isinstance(self._place_now(job, quota), tuple)
        self.trial.rollback(mark)
        return self._would_delay(in_the_way[0].promise.job_id) if would_fit else known

    @staticmethod
    def _withdraw(kept: Sequence[Kept], job: Waiting, quota: Quota) -> None:
        for each in kept:
            if each.yields_to(quota, job.request.amounts):
                each.withdraw()

    def _place_now(self, job: Waiting, quota: Quota) -> tuple[Spot, ...] | Because:
        if not self.trial.rooms.could_fit(job.cluster, job.request):
            free = self.trial.rooms.total_free.get(job.cluster)
            if not free:
                return partial(reasons.no_nodes, job.cluster, job.queue)
            name, units = next((n, u) for n, u in job.request if u > free.get(n, 0))
            return partial(reasons.too_little_in_all, job.cluster, name, units, free.get(name, 0))
        found = self.trial.place(job.groups, quota, job.prefers)
        if isinstance(found, Shortage):
            if not found.nodes:
                return partial(reasons.no_nodes, job.cluster, job.queue)
            return partial(reasons.no_room, job.cluster, found)
        return found

    # Freeing room, and keeping it.

    def _askable(self, cluster: ClusterName) -> list[Holding]:
        return [
            each
            for each in self._ledger.holding.values()
            if each.cluster == cluster and not each.is_leaving and each.job_id not in self._going
        ]

    def _starting(self, cluster: ClusterName) -> dict[JobId, Holding]:
        """Those that were to start in this cycle, as if they held their room. Who turns out to be guaranteed it only
        after that (it stands behind others in its queue) takes it from them now, and not by evicting them later."""
        for job in self._just_admitted:
            admission = self._admissions.get(job.job_id)
            if admission is not None:
                held = held_at(job.groups, admission.spots)
                self._unstarted.setdefault(job.cluster, {})[job.job_id] = starting_of(job, held, self._now)
        self._just_admitted.clear()
        return self._unstarted.get(cluster, {})

    def _plan(self, job: Waiting, quota: Quota) -> Plan | None:
        key = job.kin
        if key in self._helpless:
            return None
        unstarted = self._unstarted.setdefault(job.cluster, {})
        search = Reclaim(
            job,
            quota,
            ledger=self._ledger,
            trial=self.trial,
            now=self._now,
            going=self._leaving,
            unstarted=unstarted,
        )
        kept = self._kept.get(job.cluster, ())
        plan: Plan | None = None
        if search.may_ask_anybody():
            plan = search.plan([*self._askable(job.cluster), *self._starting(job.cluster).values()], kept)
        if plan is not None:
            self._withdraw(kept, job, quota)
        elif not search.waits_for_departing:
            self._helpless.add(key)
        return plan

    def _carry_out(self, job: Waiting, quota: Quota, plan: Plan) -> Because | None:
        """None when it can start now after all."""
        evictions = [victim for victim in plan.evictions if victim.job_id not in self._admissions]
        for victim in plan.evictions:
            if victim.job_id in self._admissions:
                self._put_back(victim, job)
        starts_now = not evictions and not plan.shrinks and fits_on(job, plan.spots, quota, self.trial)
        self.trial.retake(quota, held_at(job.groups, plan.spots))
        if starts_now:
            self._admit(job, plan.spots)
            return None
        for victim in evictions:
            self._evict(victim, job)
        going = [victim.job_id for victim in evictions]
        for steps in _by_job(plan.shrinks):
            self._shrink(steps, job)
            going.append(steps[0].holding.job_id)
        self._claimed.add(job.job_id)
        reason = reasons.room_being_freed((*going, *plan.departing))
        self._reservations[job.job_id] = Reservation(job_id=job.job_id, spots=plan.spots, reason=reason)
        return lambda: reason

    def _put_back(self, starting: Holding, ahead: Waiting) -> None:
        """It was to start in this cycle, and goes on waiting instead."""
        quota, job = self._ledger.quotas.find(starting.queue), self._ledger.waiting_of(starting.job_id)
        assert quota is not None
        assert job is not None
        self.trial.release(quota, starting.held)
        self._order.changed(quota)
        del self._admissions[starting.job_id]
        del self._unstarted[starting.cluster][starting.job_id]
        if job.claim:
            self._give_up_claim(job)
        because = partial(reasons.guaranteed_to_another, ahead.queue, ahead.job_id)
        self._causes[starting.job_id] = because
        if starting.queue not in self._blocked:
            self._block(job, because)

    def _evict(self, victim: Holding, job: Waiting) -> None:
        self._going.add(victim.job_id)
        theirs = self._ledger.quotas.find(victim.queue)
        assert theirs is not None
        self.trial.depart(theirs, victim.held)
        self._leaving.append((victim.job_id, theirs, victim.held))
        same = victim.queue == job.queue
        reason = (
            reasons.preempted(job.queue, job.job_id) if same else reasons.reclaimed(victim.queue, job.queue, job.job_id)
        )
        self._evictions.append(Eviction(job_id=victim.job_id, in_favour_of=job.job_id, reason=reason))

    def _shrink(self, steps: Sequence[Shrink], job: Waiting) -> None:
        first, last = steps[0], steps[-1]
        self._going.add(first.holding.job_id)
        dropped = tuple(part for step in steps for part in step.dropped)
        self.trial.depart(first.quota, dropped)
        self._leaving.append((first.holding.job_id, first.quota, dropped))
        self._resizes.append(
            Resize(
                job_id=first.holding.job_id,
                drop=tuple(part.spot for part in dropped),
                reason=reasons.yielded(job.job_id, first.holding.size, last.smaller),
                in_favour_of=job.job_id,
            )
        )

    def _keep(self, job: Waiting, quota: Quota, *, waits_for_room: bool) -> None:
        """For the first of a queue that has to wait. Room is kept for one job of a cluster at a time: kept for many, it
        would stand empty most of the time."""
        if not fits_when_empty(job, quota, self.trial):
            return  # nodes went or a maximum was lowered since it came: what is kept for it would help nobody
        others = self._kept.get(job.cluster, ())
        if not waits_for_room:
            kept = keep_until(job, quota, ledger=self._ledger, trial=self.trial, others=others, now=self._now)
            self._set_aside(job, kept or keep_quota(job, quota))
            return
        kept = None
        if not any(each.rooms for each in others):
            kept = keep_until(job, quota, ledger=self._ledger, trial=self.trial, others=others, now=self._now)
            if kept is None and job.job_id in self._protected:
                kept = keep_nodes(job, quota, self.trial)
        if kept is not None:
            self._set_aside(job, kept)

    def _set_aside(self, job: Waiting, kept: Kept) -> None:
        kept.set_aside(self.trial)
        self._kept.setdefault(job.cluster, []).append(kept)

    # Growing.

    def grow(self) -> None:
        grower = Grower(
            ledger=self._ledger, trial=self.trial, now=self._now, settle_s=self._rules.settle_s, going=self._going
        )
        larger, resizes = grower.grow(self._admissions.values())
        self._admissions |= {admission.job_id: admission for admission in larger}
        self._resizes += resizes
        self._pending_growths = tuple(grower.pending)
        for each in grower.pending:
            self._wake(each.at)

    def _block(self, job: Waiting, because: Because) -> None:
        self._blocked[job.queue] = Blocked(job=job, because=because)

    def _wake(self, moment: float) -> None:
        self._wake_at = moment if self._wake_at is None else min(self._wake_at, moment)


def _by_job(steps: Sequence[Shrink]) -> list[list[Shrink]]:
    found: dict[JobId, list[Shrink]] = {}
    for step in steps:
        found.setdefault(step.holding.job_id, []).append(step)
    return [sorted(each, key=lambda step: -step.smaller) for each in found.values()]
