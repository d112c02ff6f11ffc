"""Room kept for a job that has to wait, so that those who may pass it do not delay it.

Where the ends of what runs are bounded, the job is promised the first moment at which enough will have ended, and only
the part of its room that is free today is kept. Where they are not, it is promised the nodes that have the most free
now: as they empty, they empty for this job alone. In both cases what others may still use is what the job will not
need, and a job that is certain to end before the promised start may use even that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from paddleflow.domain.ids import NodeName
from paddleflow.domain.jobs import Spot
from paddleflow.domain.resources import CPU, GPU
from paddleflow.scheduling.decisions import Promise
from paddleflow.scheduling.entries import Held, Holding, TaskGroup, Waiting
from paddleflow.scheduling.ledger import Ledger, held_at
from paddleflow.scheduling.placement import Shortage
from paddleflow.scheduling.quota import Quota, sides
from paddleflow.scheduling.rooms import NodeRoom
from paddleflow.scheduling.trial import Trial

Needs = dict[NodeName, dict[str, int]]
KeptRooms = list[tuple[NodeName, Mapping[str, int]]]
KeptAmounts = list[tuple[Quota, Mapping[str, int]]]
Freed = list[tuple[Quota | None, tuple[Held, ...]]]


@dataclass(slots=True, kw_only=True)
class Kept:
    """A promise, and what is set aside for it."""

    promise: Promise
    job: Waiting
    quota: Quota
    rooms: KeptRooms
    amounts: KeptAmounts
    owed_rooms: KeptRooms
    """What it needs beyond that, and gets when others have ended."""
    owed_amounts: KeptAmounts

    def set_aside(self, trial: Trial) -> None:
        for node, amounts in self.rooms:
            trial.rooms.take(node, amounts)
        for quota, amounts in self.amounts:
            trial.keep(quota, amounts, 1)

    def lend(self, trial: Trial) -> None:
        for node, amounts in self.rooms:
            trial.rooms.give(node, amounts)
        for quota, amounts in self.amounts:
            trial.keep(quota, amounts, -1)

    def book_owed(self, trial: Trial) -> None:
        """As if it were there already: a second promise is made of what the first leaves."""
        for node, amounts in self.owed_rooms:
            trial.rooms.take(node, amounts)
        for quota, amounts in self.owed_amounts:
            trial.keep(quota, amounts, 1)

    def is_over_by(self, moment: float) -> bool:
        """Whether a job that ends by then is out of the way."""
        return self.promise.starts_by is not None and moment <= self.promise.starts_by

    def yields_to(self, quota: Quota, asked: Mapping[str, int]) -> bool:
        """Whether that is guaranteed to the other side, and this is not to its own."""
        parted = sides(quota, self.quota)
        if parted is None:
            return False
        mine, theirs, _ = parted
        return mine.is_within_minimum(asked) and not theirs.is_within_minimum(self.job.request.amounts)

    def withdraw(self) -> None:
        """Somebody with a better right has taken part of it: by when the job starts is not known any more."""
        self.promise = replace(self.promise, starts_by=None)


def keep_quota(job: Waiting, quota: Quota) -> Kept:
    """For a job that waits for its queue and not for nodes: what is left of the quota is not nibbled away."""
    promise = Promise(job_id=job.job_id, spots=(), starts_by=None)
    amounts = _rest_of_quota(job, quota)
    owed = [(level, _beyond(job.request.amounts, need)) for level, need in amounts]
    return Kept(promise=promise, job=job, quota=quota, rooms=[], amounts=amounts, owed_rooms=[], owed_amounts=owed)


def keep_until(
    job: Waiting, quota: Quota, *, ledger: Ledger, trial: Trial, others: Sequence[Kept], now: float
) -> Kept | None:
    """For a job that can start when those on their way out have gone, or when some of what runs has reached its time
    limit; None when neither tells. ``others`` have their promises already."""
    search = _Search(job, quota, ledger=ledger, trial=trial, now=now)
    if not search.freed:
        return None
    mark = trial.mark()
    for other in others:
        other.book_owed(trial)
    found = search.first_fit()
    trial.rollback(mark)
    if found is None:
        return None
    position, spots = found
    starts_by = search.moments[position - 1] if position else None
    promise = Promise(job_id=job.job_id, spots=spots, starts_by=starts_by)
    return _kept(job, quota, promise, search.freed[: position + 1], others)


class _Search:
    """The earliest of the moments at which something ends where the job fits.

    More room never hurts, so the moments are not tried one by one: in steps that double, then halved back.
    """

    def __init__(self, job: Waiting, quota: Quota, *, ledger: Ledger, trial: Trial, now: float) -> None:
        self._job = job
        self._quota = quota
        self._trial = trial
        self.moments: list[float] = []
        going: Freed = []
        for job_id in ledger.departing:
            each = ledger.holding[job_id]
            if each.cluster == job.cluster:
                going.append((ledger.quotas.find(each.queue), each.departing))
        self.freed: list[Freed] = [going]
        """What is free first, and then from each of the moments on. Who is on the way out is taken to be gone by the
        first of them."""
        ends: dict[float, list[Holding]] = {}
        for job_id in ledger.limited:
            each = ledger.holding[job_id]
            if each.cluster == job.cluster and not each.is_leaving and each.limit_s is not None:
                ends.setdefault(max(now, each.started_at + each.limit_s), []).append(each)
        for moment, ending in sorted(ends.items()):
            self.moments.append(moment)
            self.freed.append([(ledger.quotas.find(each.queue), each.held) for each in ending])
        if not going and not ends:
            self.freed = []

    def first_fit(self) -> tuple[int, tuple[Spot, ...]] | None:
        """How many of the moments must have passed, and where the job then fits."""
        too_few, step, last = -1, 1, len(self.freed) - 1
        found = self._place_after(0)
        at = 0
        while found is None and at < last:
            too_few, at, step = at, min(last, at + step), step * 2
            found = self._place_after(at)
        if found is None:
            return None
        while at - too_few > 1:
            middle = (at + too_few) // 2
            earlier = self._place_after(middle)
            if earlier is None:
                too_few = middle
            else:
                at, found = middle, earlier
        return at, found

    def _place_after(self, position: int) -> tuple[Spot, ...] | None:
        job, trial = self._job, self._trial
        mark = trial.mark()
        for freed in self.freed[: position + 1]:
            for owner, parts in freed:
                trial.release(owner, parts)
        spots: tuple[Spot, ...] | Shortage | None = None
        if self._quota.over_maximum(job.request.amounts) is None and trial.rooms.could_fit(job.cluster, job.request):
            spots = trial.place(job.groups, self._quota, job.prefers)
        trial.rollback(mark)
        return None if isinstance(spots, Shortage) else spots


def _kept(job: Waiting, quota: Quota, promise: Promise, freed: Iterable[Freed], others: Sequence[Kept]) -> Kept:
    """Of what it needs, the part that will not be freed for it is set aside today."""
    needs: Needs = {}
    for part in held_at(job.groups, promise.spots):
        _add(needs.setdefault(part.node, {}), part.each.amounts, 1)
    freeing: Needs = {node: {} for node in needs}
    freeing_quota: dict[Quota, dict[str, int]] = {level: {} for level in quota.path}
    for owner, parts in (each for moment in freed for each in moment):
        levels = [level for level in owner.path if level in freeing_quota] if owner is not None else []
        for part in parts:
            if part.node in freeing:
                _add(freeing[part.node], part.each.amounts, 1)
            for level in levels:
                _add(freeing_quota[level], part.each.amounts, 1)
    for other in others:
        for node, amounts in other.owed_rooms:
            if node in freeing:
                _add(freeing[node], amounts, -1)
        for level, amounts in other.owed_amounts:
            if level in freeing_quota:
                _add(freeing_quota[level], amounts, -1)
    asked = job.request.amounts
    rooms: KeptRooms = [(node, _uncovered(need, freeing[node])) for node, need in needs.items()]
    levels_kept: KeptAmounts = [(level, _uncovered(asked, freed_here)) for level, freed_here in freeing_quota.items()]
    return Kept(
        promise=promise,
        job=job,
        quota=quota,
        rooms=rooms,
        amounts=levels_kept,
        owed_rooms=[(node, _beyond(needs[node], kept)) for node, kept in rooms],
        owed_amounts=[(level, _beyond(asked, kept)) for level, kept in levels_kept],
    )


def _uncovered(need: Mapping[str, int], freeing: Mapping[str, int]) -> Mapping[str, int]:
    """The part of a need that what is being freed does not cover."""
    left = {name: min(units, units - freeing.get(name, 0)) for name, units in need.items()}
    return {name: units for name, units in left.items() if units > 0}


def _beyond(need: Mapping[str, int], kept: Mapping[str, int]) -> Mapping[str, int]:
    left = {name: units - kept.get(name, 0) for name, units in need.items()}
    return {name: units for name, units in left.items() if units > 0}


def keep_nodes(job: Waiting, quota: Quota, trial: Trial) -> Kept | None:
    """The nodes that have the most free now; None when all of them, empty, would not do."""
    needs: Needs = {}
    spots: list[Spot] = []
    for group in job.groups:
        pool = trial.rooms.pool(quota.queue, group.selector)
        found = _on_empty(group, _freest_first(pool, group.each.amounts, group.count), needs)
        if found is None:
            return None
        spots += found
    rooms: KeptRooms = []
    for node, need in needs.items():
        at = trial.rooms.find(node)
        free = {} if at is None else at.free
        kept = {name: min(units, free.get(name, 0)) for name, units in need.items()}
        rooms.append((node, {name: units for name, units in kept.items() if units > 0}))
    amounts = _rest_of_quota(job, quota)
    return Kept(
        promise=Promise(job_id=job.job_id, spots=tuple(spots), starts_by=None),
        job=job,
        quota=quota,
        rooms=rooms,
        amounts=amounts,
        owed_rooms=[(node, _beyond(needs[node], kept)) for node, kept in rooms],
        owed_amounts=[(level, _beyond(job.request.amounts, kept)) for level, kept in amounts],
    )


def fits_when_empty(job: Waiting, quota: Quota, trial: Trial) -> bool:
    """Whether the nodes there are would do if nothing ran on them, and every maximum allows it."""
    if any(job.request.get(name) > most for level in quota.path for name, most in level.maximum.items()):
        return False
    needs: Needs = {}
    return all(
        _on_empty(group, trial.rooms.pool(quota.queue, group.selector), needs) is not None for group in job.groups
    )


def _on_empty(group: TaskGroup, rooms: Iterable[NodeRoom], needs: Needs) -> list[Spot] | None:
    """The tasks of a group on the first of these nodes that would hold them empty; ``needs`` is what is given there."""
    each, left, index = group.each.amounts, group.count, group.first
    spots: list[Spot] = []
    for room in rooms:
        if not left:
            break
        taken = needs.get(room.name, {})
        fitting = min(
            ((room.capacity.get(name) - taken.get(name, 0)) // units for name, units in each.items() if units > 0),
            default=left,
        )
        count = min(left, max(0, fitting))
        if count:
            _add(needs.setdefault(room.name, {}), each, count)
            spots += [Spot(role=group.role, index=index + n, node=room.name) for n in range(count)]
            index, left = index + count, left - count
    return None if left else spots


def _rest_of_quota(job: Waiting, quota: Quota) -> KeptAmounts:
    """Of every quota on the way up: what is left of it, up to what the job asks for.

    What is missing further down is freed there, and with that further up: only the rest must be kept up there.
    """
    kept: KeptAmounts = []
    need = dict(job.request.amounts)
    for level in quota.path:
        for name, units in need.items():
            if name in level.maximum:
                left = level.maximum[name] - level.used.get(name, 0) - level.kept.get(name, 0)
                need[name] = max(0, min(units, left))
        kept.append((level, {name: units for name, units in need.items() if units > 0}))
    return kept


def _freest_first(pool: Sequence[NodeRoom], each: Mapping[str, int], wanted: int) -> Iterator[NodeRoom]:
    """Those with something free, the freest first; then the full ones, which are all alike and mostly many."""
    scarce = GPU if each.get(GPU, 0) > 0 else CPU
    open_ones = [room for room in pool if room.free.get(scarce, 0) > 0]

    def freest(room: NodeRoom) -> tuple[int, int, int, str]:
        free = room.free
        return (-room.count_fitting(each, wanted), -free.get(GPU, 0), -free.get(CPU, 0), room.name)

    yield from sorted(open_ones, key=freest)
    yield from (room for room in pool if room.free.get(scarce, 0) <= 0)


def _add(total: dict[str, int], amounts: Mapping[str, int], times: int) -> None:
    for name, units in amounts.items():
        total[name] = total.get(name, 0) + units * times
