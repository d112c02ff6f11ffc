"""A replay: a workload from its first submission to the end of its last job, under one policy.

Owns what is written down of it. The loop says what happens, the policy who runs, ``metrics`` what it amounts to.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field

from paddleflow.domain.errors import Conflict
from paddleflow.domain.ids import JobId, QueueName
from paddleflow.domain.resources import CPU
from paddleflow.scheduling.decisions import Decisions
from paddleflow.simulation.loop import Loop, Policy, Run, State
from paddleflow.simulation.shares import ShareMeter
from paddleflow.simulation.workload import Submission, Workload

_STEPS_FOR_EACH_JOB = 2_000
"""A policy that decides more often than this does not come to an end."""
_STEPS_AT_LEAST = 100_000
_TOLD_EVERY = 256
_LOOKS = 2_000
"""Shares are looked at so often, evenly over the time of submission, or at every change if there are fewer jobs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one job."""

    job_id: JobId
    queue: QueueName
    submitted_s: float
    started_s: float | None
    """The first time."""
    ended_s: float | None
    """None: it never got the room to finish."""
    waited_s: float
    """All the time it spent in line, also after evictions."""
    done: float
    """Task-seconds of work that counted, in units of the measured resource."""
    evictions: int
    resizes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """The measured resource over time: from each moment on, so much was held and so much was wanted beyond it."""

    times: array[float]
    held: array[float]
    waiting: array[float]
    available: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    policy: str
    outcomes: tuple[Outcome, ...]
    refused: int
    unit: int
    """How many of the measured resource make one that people count: CPU is measured in thousandths of a core."""
    usage: Usage
    share_deviation: dict[QueueName, float]
    mean_share_deviation: float
    decisions: int
    decision_s: float
    """Processor time of all decisions, by the caller's timer; zero without one."""
    longest_decision_s: float


class _Journal:
    """The books of a replay."""

    def __init__(self, workload: Workload) -> None:
        self.meter = ShareMeter(workload.capacity.queues, workload.measured, workload.available)
        self.times, self.held_then, self.waiting_then = array("d"), array("d"), array("d")
        names = [queue.name for queue in workload.capacity.queues]
        self._held: dict[QueueName, int] = dict.fromkeys(names, 0)
        self._waiting: dict[QueueName, int] = dict.fromkeys(names, 0)
        self._total_held = self._total_waiting = 0
        submissions = workload.submissions
        self._look_every_s = submissions[-1].at_s / _LOOKS if len(submissions) > _LOOKS else 0.0
        self._looked_at = -math.inf
        self._now = 0.0
        self._changed = self._look_due = False

    def pass_time(self, now: float) -> None:
        if now > self._now:
            if self._look_due and now - self._looked_at >= self._look_every_s:
                self.meter.look(self._held, self._waiting)
                self._look_due, self._looked_at = False, self._now
            self.meter.pass_time(now - self._now)
            self._now = now

    def change(self, queue: QueueName, held: int, waiting: int) -> None:
        self._held[queue] += held
        self._waiting[queue] += waiting
        self._total_held += held
        self._total_waiting += waiting
        self._changed = True

    def settle(self) -> None:
        if not self._changed:
            return
        self._changed, self._look_due = False, True
        self.times.append(self._now)
        self.held_then.append(self._total_held)
        self.waiting_then.append(self._total_waiting)


@dataclass(slots=True)
class _Timed:
    """A policy with its deciding timed."""

    policy: Policy
    timer: Callable[[], float]
    total_s: float = field(default=0.0)
    longest_s: float = field(default=0.0)

    @property
    def name(self) -> str:
        return self.policy.name

    def submit(self, submission: Submission, now: float) -> None:
        self.policy.submit(submission, now)

    def end(self, job_id: JobId) -> None:
        self.policy.end(job_id)

    def requeue(self, submission: Submission, now: float) -> None:
        self.policy.requeue(submission, now)

    def release(self, job_id: JobId) -> None:
        self.policy.release(job_id)

    def decide(self, now: float) -> Decisions:
        begun = self.timer()
        decisions = self.policy.decide(now)
        took = self.timer() - begun
        self.total_s += took
        self.longest_s = max(self.longest_s, took)
        return decisions


def simulate(
    workload: Workload,
    policy: Policy,
    *,
    timer: Callable[[], float] | None = None,
    progress: Callable[[int], None] | None = None,
) -> Replay:
    """Replay the workload; ``progress`` hears from time to time how many jobs have ended."""
    timed = _Timed(policy, timer if timer is not None else lambda: 0.0)
    journal = _Journal(workload)
    loop = Loop(timed, workload.capacity.costs, journal)
    loop.expect(workload.submissions)
    most_steps = max(_STEPS_AT_LEAST, _STEPS_FOR_EACH_JOB * len(workload.submissions))
    told = 0
    total = len(workload.submissions)
    while loop.ended < total and loop.step() is not None:
        if progress is not None and loop.ended >= told + _TOLD_EVERY:
            told = loop.ended
            progress(told)
        if loop.steps > most_steps:
            raise Conflict(
                f"policy {policy.name} decided {loop.steps} times for {total} jobs and {total - loop.ended} have not "
                "ended; it goes round in circles"
            )
    if progress is not None:
        progress(loop.ended)
    return Replay(
        policy=policy.name,
        outcomes=tuple(_outcome(run) for run in loop.runs.values()),
        refused=len(workload.refused),
        unit=1000 if workload.measured == CPU else 1,
        usage=Usage(
            times=journal.times, held=journal.held_then, waiting=journal.waiting_then, available=workload.available
        ),
        share_deviation=journal.meter.deviation(),
        mean_share_deviation=journal.meter.mean_deviation(),
        decisions=loop.steps,
        decision_s=timed.total_s,
        longest_decision_s=timed.longest_s,
    )


def _outcome(run: Run) -> Outcome:
    submission = run.submission
    return Outcome(
        job_id=submission.entry.job_id,
        queue=submission.entry.queue,
        submitted_s=submission.at_s,
        started_s=run.first_start,
        ended_s=run.ended_at if run.state is State.ENDED else None,
        waited_s=run.waited_s,
        done=run.done * submission.units,
        evictions=run.evictions,
        resizes=run.resizes,
    )
