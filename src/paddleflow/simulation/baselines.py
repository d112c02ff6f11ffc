"""What to compare with: strict first come first served, and EASY backfilling with perfect knowledge.

Both see one line of jobs, whatever their queues and priorities, and give an elastic job the number of tasks it was
submitted with. They have no quotas, evict nobody and resize nothing.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from heapq import merge

from paddleflow.domain.errors import Conflict
from paddleflow.domain.ids import JobId
from paddleflow.domain.jobs import Spot
from paddleflow.domain.resources import Resources
from paddleflow.scheduling.decisions import Admission, Decisions
from paddleflow.simulation.cluster import Capacity
from paddleflow.simulation.floor import Floor, fitting
from paddleflow.simulation.line import Line, by_seq
from paddleflow.simulation.workload import Submission


@dataclass(frozen=True, slots=True)
class _Started:
    submission: Submission
    spots: tuple[Spot, ...]
    ends_at: float


def _run_time(submission: Submission) -> float:
    limit_s = submission.entry.limit_s
    return submission.duration_s if limit_s is None else min(submission.duration_s, limit_s)


class _Rigid:
    """What both share: the floor, who is on it, and that nobody is ever disturbed."""

    def __init__(self, capacity: Capacity) -> None:
        self._floor = Floor(capacity.nodes)
        self._running: dict[JobId, _Started] = {}

    def end(self, job_id: JobId) -> None:
        started = self._running.pop(job_id)
        self._floor.give(started.spots, started.submission.each)

    def requeue(self, submission: Submission, now: float) -> None:
        raise Conflict(f"job {submission.entry.job_id} was evicted by a policy that evicts nobody")

    def release(self, job_id: JobId) -> None:
        raise Conflict(f"job {job_id} was resized by a policy that resizes nothing")

    def _admit(self, submission: Submission, plan: list[tuple[int, int]], now: float) -> Admission:
        spots = self._floor.take(plan, submission.each)
        job_id = submission.entry.job_id
        self._running[job_id] = _Started(submission, spots, now + _run_time(submission))
        return Admission(job_id=job_id, spots=spots)


class Fifo(_Rigid):
    """One line; nobody starts before everybody ahead has started."""

    name = "fifo"

    def __init__(self, capacity: Capacity) -> None:
        super().__init__(capacity)
        self._line: deque[Submission] = deque()

    def submit(self, submission: Submission, now: float) -> None:
        self._line.append(submission)

    def decide(self, now: float) -> Decisions:
        admissions = []
        while self._line:
            head = self._line[0]
            plan = self._floor.find(head.tasks, head.each)
            if plan is None:
                break
            admissions.append(self._admit(self._line.popleft(), plan, now))
        return Decisions(admissions=tuple(admissions))


@dataclass(slots=True)
class _Reservation:
    """For the head of the line: when it will start, and what others may use beyond then without delaying it."""

    starts_at: float
    spare: list[dict[str, int]]


class Backfill(_Rigid):
    """EASY: the head of the line gets a reservation, others pass it if they do not delay it.

    An oracle: it knows how long every job will run, to the second, which no real scheduler does. So the reservation,
    once made, stays right: jobs end when foretold, and those that pass were checked against it.
    """

    name = "backfill"

    def __init__(self, capacity: Capacity) -> None:
        super().__init__(capacity)
        self._line = Line()
        self._run_s: dict[JobId, float] = {}
        self._reservation: _Reservation | None = None

    def submit(self, submission: Submission, now: float) -> None:
        self._line.add(submission)
        self._run_s[submission.entry.job_id] = _run_time(submission)

    def decide(self, now: float) -> Decisions:
        admissions = []
        while (head := self._line.head()) is not None:
            plan = self._floor.find(head.tasks, head.each)
            if plan is None:
                break
            self._line.remove(head)
            admissions.append(self._admit(head, plan, now))
            self._reservation = None
        if head is not None:
            admissions += self._pass(head, now)
        return Decisions(admissions=tuple(admissions))

    def _pass(self, head: Submission, now: float) -> list[Admission]:
        """Start those behind the head that do not delay it."""
        floor, line = self._floor, self._line
        kinds = [one.kind for one in line.firsts() if floor.find(one.tasks, one.each) is not None]
        if not kinds:
            return []
        reservation = self._reservation or self._reserve(head)
        spare, slack = reservation.spare, reservation.starts_at - now
        lasting = {one.kind for one in line.firsts() if floor.find(one.tasks, one.each, within=spare) is not None}
        run_s = self._run_s
        candidates = [
            [one for one in line.of_kind(kind) if kind in lasting or run_s[one.entry.job_id] <= slack] for kind in kinds
        ]
        admissions = []
        full: set[tuple[int, bool]] = set()
        for submission in merge(*candidates, key=by_seq):
            outlasts = run_s[submission.entry.job_id] > slack
            if (submission.kind, outlasts) in full or (submission.kind, False) in full:
                continue
            plan = floor.find(submission.tasks, submission.each, within=spare if outlasts else None)
            if plan is None:
                full.add((submission.kind, outlasts))
                continue
            if outlasts:
                for number, tasks in plan:
                    _use(spare[number], submission.each, tasks)
            line.remove(submission)
            admissions.append(self._admit(submission, plan, now))
        return admissions

    def _reserve(self, head: Submission) -> _Reservation:
        """Let the running jobs end one after the other until the head fits, and keep its place."""
        spare = [dict(free) for free in self._floor.free]
        amounts, wanted = head.each.amounts, head.tasks
        room = [fitting(free, amounts, wanted) for free in spare]
        total = sum(room)
        starts_at = 0.0
        for started in sorted(self._running.values(), key=lambda one: (one.ends_at, one.submission.entry.seq)):
            for spot in started.spots:
                number = self._floor.number_of(spot.node)
                _use(spare[number], started.submission.each, -1)
                total -= room[number]
                room[number] = fitting(spare[number], amounts, wanted)
                total += room[number]
            starts_at = started.ends_at
            if total >= wanted:
                break
        left = wanted
        # The nodes with the least room for it first: that leaves whole nodes to those who pass.
        for number in sorted(
            (number for number, fit in enumerate(room) if fit), key=lambda number: (room[number], number)
        ):
            tasks = min(left, room[number])
            _use(spare[number], head.each, tasks)
            left -= tasks
        self._reservation = _Reservation(starts_at, spare)
        return self._reservation


def _use(free: dict[str, int], each: Resources, tasks: int) -> None:
    for name, units in each:
        free[name] = free.get(name, 0) - units * tasks
