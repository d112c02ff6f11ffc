"""What the scheduler believes, folded from rows as they change, so that a cycle costs what changed.

The ledger keeps the books (who waits, who holds what, what is free, what each quota uses) and refuses to know a rule:
rules live in ``decide``. Given the same entries in any order it holds the same.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter

from paddleflow.domain.clusters import Node
from paddleflow.domain.ids import JobId, QueueName
from paddleflow.domain.jobs import HOLDING, Job, JobStatus, Spot
from paddleflow.domain.queues import Queue
from paddleflow.domain.resources import Resources
from paddleflow.scheduling.decisions import Decisions, Resize
from paddleflow.scheduling.entries import Held, Holding, TaskGroup, Waiting, holding_of, starting_of, waiting_of
from paddleflow.scheduling.locality import Cached, preferred
from paddleflow.scheduling.quota import QuotaTree
from paddleflow.scheduling.rooms import Rooms

_rank = attrgetter("rank")


class Ledger:
    def __init__(self) -> None:
        self.queues: dict[QueueName, Queue] = {}
        self.nodes: tuple[Node, ...] = ()
        self.waiting: dict[QueueName, list[Waiting]] = {}
        """Of each queue, in the order in which they are considered."""
        self.holding: dict[JobId, Holding] = {}
        self.claimants: dict[JobId, Waiting] = {}
        self.elastic: dict[JobId, None] = {}
        """Those holding room that can be resized, in the order they came."""
        self.departing: dict[JobId, None] = {}
        """Those of which something is on its way out."""
        self.limited: dict[JobId, None] = {}
        """Those holding room that end at a known moment at the latest."""
        self.rooms = Rooms(())
        self.quotas = QuotaTree((), ())
        self._cached: Cached = {}
        self._with_data = 0
        self._waiting_by_id: dict[JobId, Waiting] = {}

    def set_capacity(self, queues: Iterable[Queue], nodes: Iterable[Node]) -> None:
        self.queues = {queue.name: queue for queue in queues}
        self.nodes = tuple(nodes)
        self.rooms = Rooms(self.nodes)
        self.quotas = QuotaTree(self.queues.values(), self.nodes)
        for holding in self.holding.values():
            self._book(holding, 1)
        for waiting in self.claimants.values():
            self._book_claim(waiting, 1)
        self.rooms.forget_log()

    def copy(self) -> Ledger:
        """Another ledger that holds the same, to try things on."""
        twin = Ledger()
        twin.set_capacity(self.queues.values(), self.nodes)
        twin.set_cached(self._cached)
        for holding in self.holding.values():
            twin.hold(holding)
        for waiting in self._waiting_by_id.values():
            twin.wait(waiting)
        return twin

    def set_cached(self, cached: Cached) -> None:
        """Where data is at hand now; those that wait for room are told."""
        if cached == self._cached:
            return
        self._cached = cached
        for entry in [entry for entry in self._waiting_by_id.values() if entry.data]:
            prefers = preferred(entry, cached)
            if prefers != entry.prefers:
                self.wait(replace(entry, prefers=prefers))

    def entry_of(self, job: Job) -> Waiting:
        """The job as one that waits, with the nodes that have its data."""
        entry = waiting_of(job)
        return replace(entry, prefers=preferred(entry, self._cached)) if entry.data else entry

    def put(self, job: Job) -> None:
        """The job is now as given; a job that has ended is forgotten."""
        if job.status is JobStatus.INIT:
            self.wait(self.entry_of(job))
        elif job.status in HOLDING:
            self.hold(holding_of(job))
        else:
            self.drop(job.id)

    def wait(self, entry: Waiting) -> None:
        self.drop(entry.job_id)
        insort(self.waiting.setdefault(entry.queue, []), entry, key=_rank)
        self._waiting_by_id[entry.job_id] = entry
        self._with_data += bool(entry.data)
        if entry.claim:
            self.claimants[entry.job_id] = entry
            self._book_claim(entry, 1)
            self.rooms.forget_log()

    def hold(self, entry: Holding) -> None:
        self.drop(entry.job_id)
        self.holding[entry.job_id] = entry
        if entry.elastic is not None:
            self.elastic[entry.job_id] = None
        if entry.limit_s is not None:
            self.limited[entry.job_id] = None
        if entry.is_leaving or entry.parting:
            self.departing[entry.job_id] = None
        self._book(entry, 1)
        self.rooms.forget_log()

    def drop(self, job_id: JobId) -> None:
        held = self.holding.pop(job_id, None)
        if held is not None:
            self.elastic.pop(job_id, None)
            self.limited.pop(job_id, None)
            self.departing.pop(job_id, None)
            self._book(held, -1)
        entry = self._waiting_by_id.pop(job_id, None)
        if entry is not None:
            self._with_data -= bool(entry.data)
            line = self.waiting[entry.queue]
            del line[bisect_left(line, entry.rank, key=_rank)]
            if not line:
                del self.waiting[entry.queue]
            if self.claimants.pop(job_id, None) is not None:
                self._book_claim(entry, -1)
        self.rooms.forget_log()

    def waiting_of(self, job_id: JobId) -> Waiting | None:
        return self._waiting_by_id.get(job_id)

    def holding_of(self, job_id: JobId) -> Holding | None:
        return self.holding.get(job_id)

    @property
    def waits_for_data(self) -> bool:
        """Does anybody wait who would rather be where its data is?"""
        return self._with_data > 0

    @property
    def waiting_count(self) -> int:
        return len(self._waiting_by_id)

    def apply(self, decisions: Decisions, now: float) -> None:
        """All of it has been carried out. Said at once and not only by the events: until those are heard the room
        would look free, and somebody else could be given it a second time."""
        for eviction in decisions.evictions:
            self.leave(eviction.job_id)
        for resize in decisions.resizes:
            self.resize(resize, now)
        for reservation in decisions.reservations:
            self.reserve(reservation.job_id, reservation.spots)
        for admission in decisions.admissions:
            self.admit(admission.job_id, admission.spots, now)

    def admit(self, job_id: JobId, spots: Sequence[Spot], now: float) -> None:
        entry = self._waiting_by_id.get(job_id)
        if entry is None:
            return
        self.hold(starting_of(entry, held_at(entry.groups, spots), now))

    def reserve(self, job_id: JobId, spots: tuple[Spot, ...]) -> None:
        entry = self._waiting_by_id.get(job_id)
        if entry is not None:
            self.wait(replace(entry, claim=spots))

    def leave(self, job_id: JobId) -> None:
        entry = self.holding.get(job_id)
        if entry is not None:
            self.hold(replace(entry, is_leaving=True))

    def resize(self, resize: Resize, now: float) -> None:
        entry = self.holding.get(resize.job_id)
        if entry is None:
            return
        gone = {(spot.role, spot.index) for spot in resize.drop}
        kept = tuple(part for part in entry.held if (part.role, part.index) not in gone)
        parting = tuple(part for part in entry.held if (part.role, part.index) in gone)
        self.hold(
            replace(
                entry,
                held=kept + held_at(entry.groups, resize.add),
                parting=entry.parting + parting,
                resized_at=now,
            )
        )

    def release_leaving(self, job_id: JobId) -> None:
        """The tasks on the way out of a resized job have ended."""
        entry = self.holding.get(job_id)
        if entry is not None and entry.parting:
            self.hold(replace(entry, parting=()))

    def _book(self, entry: Holding, sign: int) -> None:
        quota = self.quotas.find(entry.queue)
        for part in (*entry.held, *entry.parting):
            (self.rooms.take if sign > 0 else self.rooms.give)(part.node, part.each.amounts, part.gpus)
            if quota is not None:
                quota.change(part.each.amounts, sign)
        if quota is not None:
            for part in entry.departing:
                quota.change_leaving(part.each.amounts, sign)

    def _book_claim(self, entry: Waiting, sign: int) -> None:
        quota = self.quotas.find(entry.queue)
        for part in held_at(entry.groups, entry.claim):
            (self.rooms.take if sign > 0 else self.rooms.give)(part.node, part.each.amounts, part.gpus)
            if quota is not None:
                quota.change(part.each.amounts, sign)


def held_at(groups: Sequence[TaskGroup], spots: Iterable[Spot]) -> tuple[Held, ...]:
    """The tasks on these spots, with what each takes."""
    by_role: dict[str, list[TaskGroup]] = {}
    for group in groups:
        by_role.setdefault(group.role, []).append(group)
    return tuple(
        Held(role=spot.role, index=spot.index, node=spot.node, each=_each(by_role, spot), gpus=spot.gpus)
        for spot in spots
    )


def _each(by_role: Mapping[str, list[TaskGroup]], spot: Spot) -> Resources:
    among = by_role[spot.role]
    return next((group.each for group in among if spot.index < group.first + group.count), among[-1].each)
