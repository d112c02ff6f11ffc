"""The discrete-event loop: what jobs do between decisions. Replays and forecasts run on it alike.

Jobs are submitted, run at a speed in proportion to their tasks, are resized, evicted and end; everything that happens
at one instant is told to the policy before it is asked to decide. The loop has no rule of who runs: that is the policy.
It keeps no metrics either: whoever wants some passes ``Books`` that are told of every change.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from heapq import heappop, heappush
from typing import Protocol

from paddleflow.domain.errors import Conflict
from paddleflow.domain.ids import JobId, QueueName
from paddleflow.scheduling.decisions import Decisions
from paddleflow.simulation.cluster import Costs
from paddleflow.simulation.workload import Submission


class Policy(Protocol):
    """Who runs, where, at what size. A policy is told what happened, and takes what it decides as done."""

    @property
    def name(self) -> str: ...

    def submit(self, submission: Submission, now: float) -> None: ...

    def end(self, job_id: JobId) -> None:
        """The job has ended and its room is free."""

    def requeue(self, submission: Submission, now: float) -> None:
        """The tasks of an evicted job have ended; it waits again in its old place."""

    def release(self, job_id: JobId) -> None:
        """The tasks that were taken out of the job have ended."""

    def decide(self, now: float) -> Decisions: ...


class Books(Protocol):
    """Told of every change, in the units of the measured resource."""

    def pass_time(self, now: float) -> None:
        """Nothing has changed since the last time until now."""

    def change(self, queue: QueueName, held: int, waiting: int) -> None: ...

    def settle(self) -> None:
        """All changes of this instant are told."""


class State(IntEnum):
    WAITING = 0
    RUNNING = 1
    LEAVING = 2
    ENDED = 3


class _Kind(IntEnum):
    """The order in which events of one instant are told: room is freed before it is given out."""

    END = 0
    RELEASE = 1
    VACATE = 2
    WAKE = 3


class Run:
    """One job on its way through the loop."""

    __slots__ = (
        "attempt_at", "done", "ended_at", "evictions", "first_start", "parting", "progress_from", "releases", "resizes",
        "state", "submission", "tasks", "turn", "waited_s", "waiting_since", "work",
    )  # fmt: skip

    def __init__(self, submission: Submission, work: float | None = None) -> None:
        self.submission = submission
        self.state = State.WAITING
        self.work = submission.work if work is None else work
        """Task-seconds it takes in all."""
        self.done = 0.0
        self.tasks = 0
        self.parting = 0
        """Tasks taken out that still hold their room."""
        self.progress_from = 0.0
        """``done`` is as of then; before, it makes no progress."""
        self.attempt_at = 0.0
        self.turn = 0
        """Rises when events that were planned for it no longer count."""
        self.releases = 0
        self.waiting_since = submission.at_s
        self.waited_s = 0.0
        self.first_start: float | None = None
        self.ended_at: float | None = None
        self.evictions = 0
        self.resizes = 0

    def advance(self, now: float) -> None:
        """Count what was done until now."""
        if now > self.progress_from:
            self.done = min(self.work, self.done + (now - self.progress_from) * self.tasks)
            self.progress_from = now

    def end_time(self) -> float:
        """When it ends if nothing disturbs it: its work is done, or its limit is reached."""
        end = self.progress_from + (self.work - self.done) / self.tasks
        limit_s = self.submission.entry.limit_s
        return end if limit_s is None else min(end, max(self.progress_from, self.attempt_at + limit_s))


class _NoBooks:
    """For those who only want to know what happens."""

    def pass_time(self, now: float) -> None: ...

    def change(self, queue: QueueName, held: int, waiting: int) -> None: ...

    def settle(self) -> None: ...


class Loop:
    """Time, and everything that is going to happen in it."""

    def __init__(self, policy: Policy, costs: Costs, books: Books | None = None, *, now: float = 0.0) -> None:
        self.now = now
        self.runs: dict[JobId, Run] = {}
        self.steps = 0
        self.ended = 0
        self._policy = policy
        self._costs = costs
        self._books: Books = books if books is not None else _NoBooks()
        self._events: list[tuple[float, int, int, int, Run | None]] = []
        self._planned = 0
        self._wake_at: float | None = None
        self._arrivals: list[Submission] = []

    def expect(self, submissions: Iterable[Submission]) -> None:
        """Jobs to come, in order of time."""
        self._arrivals = list(submissions)
        self._arrivals.reverse()

    def adopt_waiting(self, run: Run) -> None:
        """A job that the policy already has in line."""
        self.runs[run.submission.entry.job_id] = run

    def adopt_running(self, run: Run, tasks: int, started_at: float, *, is_leaving: bool = False) -> None:
        """A job that the policy already knows to hold its room. One that is leaving is gone after the grace; whether it
        comes back is not known here."""
        self.runs[run.submission.entry.job_id] = run
        run.tasks, run.progress_from, run.attempt_at = tasks, self.now, started_at
        run.state = State.LEAVING if is_leaving else State.RUNNING
        if is_leaving:
            self._plan(self.now + self._costs.grace_s, _Kind.END, run)
        else:
            self._plan(run.end_time(), _Kind.END, run)

    def expect_release(self, run: Run, parting: int) -> None:
        """Of an adopted job: so many of its tasks are on their way out."""
        run.parting += parting
        self._plan_release(run)

    def step(self, grain_s: float = 0.0) -> Decisions | None:
        """Go to the next instant at which something happens and let the policy decide; None when nothing is left.

        With a grain, everything that happens within so long of that instant happens first, each at its own time, and
        the policy is asked once. Coarser, and much quicker where only the course of things is wanted.
        """
        now = self._next_time()
        if now is None:
            return None
        until = now + grain_s
        while now is not None and now <= until:
            self._pass(now)
            now = self._next_time()
        return self.decide()

    def _pass(self, now: float) -> None:
        """What happens at this instant."""
        self._books.pass_time(now)
        self.now = now
        events, arrivals = self._events, self._arrivals
        while events and events[0][0] <= now:
            _, kind, _, turn, run = heappop(events)
            if run is not None:
                self._happen(kind, turn, run)
        if self._wake_at is not None and self._wake_at <= now:
            self._wake_at = None
        while arrivals and arrivals[-1].at_s <= now:
            self._submit(arrivals.pop())

    def decide(self) -> Decisions:
        """Let the policy decide now, and do as it says."""
        self.steps += 1
        decisions = self._policy.decide(self.now)
        for eviction in decisions.evictions:
            self._evict(self.runs[eviction.job_id])
        for resize in decisions.resizes:
            self._resize(self.runs[resize.job_id], len(resize.add), len(resize.drop))
        for admission in decisions.admissions:
            self._start(self.runs[admission.job_id], len(admission.spots))
        wake_at = decisions.wake_at
        if wake_at is not None and wake_at > self.now and (self._wake_at is None or wake_at < self._wake_at):
            self._wake_at = wake_at
            self._plan(wake_at, _Kind.WAKE, None)
        self._books.settle()
        return decisions

    def _next_time(self) -> float | None:
        events, arrivals = self._events, self._arrivals
        while events and events[0][4] is not None and self._is_stale(events[0]):
            heappop(events)
        if arrivals and (not events or arrivals[-1].at_s < events[0][0]):
            return max(self.now, arrivals[-1].at_s)
        return max(self.now, events[0][0]) if events else None

    @staticmethod
    def _is_stale(event: tuple[float, int, int, int, Run | None]) -> bool:
        _, kind, _, turn, run = event
        return run is not None and turn != (run.releases if kind == _Kind.RELEASE else run.turn)

    def _plan(self, at: float, kind: _Kind, run: Run | None) -> None:
        self._planned += 1
        turn = 0 if run is None else run.releases if kind is _Kind.RELEASE else run.turn
        heappush(self._events, (at, int(kind), self._planned, turn, run))

    def _happen(self, kind: int, turn: int, run: Run) -> None:
        if turn != (run.releases if kind == _Kind.RELEASE else run.turn):
            return  # planned before something else came in between
        if kind == _Kind.END:
            self._end(run)
        elif kind == _Kind.RELEASE:
            self._release(run)
        else:
            self._vacate(run)

    def _submit(self, submission: Submission) -> None:
        run = Run(submission)
        if self.runs.setdefault(submission.entry.job_id, run) is not run:
            raise Conflict(f"job {submission.entry.job_id} is submitted twice")
        run.waiting_since = self.now
        self._policy.submit(submission, self.now)
        self._books.change(submission.entry.queue, 0, submission.units * submission.tasks)

    def _start(self, run: Run, tasks: int) -> None:
        submission, now = run.submission, self.now
        if run.state is not State.WAITING:
            raise Conflict(f"the policy starts job {submission.entry.job_id}, which does not wait")
        run.state, run.tasks = State.RUNNING, tasks
        run.attempt_at = run.progress_from = now
        run.waited_s += now - run.waiting_since
        if run.first_start is None:
            run.first_start = now
        self._books.change(submission.entry.queue, submission.units * tasks, -submission.units * submission.tasks)
        self._plan(run.end_time(), _Kind.END, run)

    def _end(self, run: Run) -> None:
        run.advance(self.now)
        submission = run.submission
        self._books.change(submission.entry.queue, -submission.units * (run.tasks + run.parting), 0)
        run.state, run.ended_at = State.ENDED, self.now
        run.tasks = run.parting = 0
        run.turn += 1
        run.releases += 1
        self.ended += 1
        self._policy.end(submission.entry.job_id)

    def _evict(self, run: Run) -> None:
        if run.state is not State.RUNNING:
            raise Conflict(f"the policy evicts job {run.submission.entry.job_id}, which does not run")
        run.advance(self.now)
        run.state = State.LEAVING
        run.evictions += 1
        run.turn += 1
        self._plan(self.now + self._costs.grace_s, _Kind.VACATE, run)

    def _vacate(self, run: Run) -> None:
        """The last task of an evicted job has ended: what it did since its last checkpoint is lost."""
        submission = run.submission
        units = submission.units
        self._books.change(submission.entry.queue, -units * (run.tasks + run.parting), units * submission.tasks)
        step = (self._costs.checkpoint_s or 0.0) * submission.tasks
        run.done = run.done // step * step if step else 0.0
        run.state, run.waiting_since = State.WAITING, self.now
        run.tasks = run.parting = 0
        run.releases += 1
        self._policy.requeue(submission, self.now)

    def _resize(self, run: Run, added: int, dropped: int) -> None:
        if run.state is not State.RUNNING or run.tasks + added - dropped < 1:
            raise Conflict(f"the policy resizes job {run.submission.entry.job_id}, which cannot be so")
        now = self.now
        run.advance(now)
        run.tasks += added - dropped
        run.progress_from = now + self._costs.rescale_s
        run.resizes += 1
        run.turn += 1
        self._books.change(run.submission.entry.queue, run.submission.units * added, 0)
        self._plan(run.end_time(), _Kind.END, run)
        if dropped:
            run.parting += dropped
            self._plan_release(run)

    def _plan_release(self, run: Run) -> None:
        run.releases += 1
        self._plan(self.now + self._costs.grace_s, _Kind.RELEASE, run)

    def _release(self, run: Run) -> None:
        self._books.change(run.submission.entry.queue, -run.submission.units * run.parting, 0)
        run.parting = 0
        self._policy.release(run.submission.entry.job_id)
