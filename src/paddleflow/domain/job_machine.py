"""The life of a job, as a table.

::

    init ──admit──► pending ──runs──► running ──ends──► succeeded | failed
     ▲ │               │                 │  └─resize─┘
     │ └─stop─► terminated        evict, stop, deadline, a task's end
     │                 └────────┬────────┘
     └──requeue── preempting | terminating ──last task ended──► the outcome

Each function takes a job as it is, what is asked or was observed, and the time; it returns the job as it becomes and
the events that tell of it, or raises Conflict for a move the table does not know. Reports are levels, so one that
tells nothing new changes nothing. A job holds its room until its last task has ended, so whatever ends it first stops
what still runs and remembers in ``outcome`` what it is to become.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from paddleflow.domain.errors import Conflict
from paddleflow.domain.events import Event, EventKind
from paddleflow.domain.ids import JobId, TaskId, task_id
from paddleflow.domain.jobs import (
    TERMINAL,
    Job,
    JobStatus,
    Placement,
    Priority,
    Spot,
    Task,
    TaskReport,
    TaskStatus,
)

_ENDINGS = frozenset({JobStatus.SUCCEEDED, JobStatus.FAILED, JobStatus.TERMINATING, JobStatus.TERMINATED})
MOVES: Mapping[JobStatus, frozenset[JobStatus]] = {
    JobStatus.INIT: frozenset({JobStatus.PENDING, JobStatus.FAILED, JobStatus.TERMINATED}),
    JobStatus.PENDING: _ENDINGS | {JobStatus.RUNNING, JobStatus.PREEMPTING, JobStatus.INIT},
    JobStatus.RUNNING: _ENDINGS | {JobStatus.PREEMPTING, JobStatus.INIT},
    JobStatus.PREEMPTING: frozenset(
        {JobStatus.PREEMPTED, JobStatus.INIT, JobStatus.TERMINATING, JobStatus.TERMINATED, JobStatus.FAILED}
    ),
    JobStatus.TERMINATING: frozenset(
        {JobStatus.TERMINATED, JobStatus.SUCCEEDED, JobStatus.FAILED, JobStatus.INIT, JobStatus.TERMINATING}
    ),
    **{terminal: frozenset() for terminal in sorted(TERMINAL)},
}
"""Every legal move. What is not here is a defect and raises with the job's story."""

_ENDED = (TaskStatus.SUCCEEDED, TaskStatus.FAILED)
_STOPPING = (JobStatus.TERMINATING, JobStatus.PREEMPTING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    job: Job
    tasks: tuple[Task, ...] = ()
    """Only those that changed."""
    events: tuple[Event, ...] = ()


def job_event(kind: EventKind, job: Job, now: datetime, **more: object) -> Event:
    return Event(
        kind=kind,
        subject=job.id,
        owner=job.owner,
        data={"status": job.status, "message": job.message, "queue": job.queue, **more},
        at=now,
    )


def _move(job: Job, status: JobStatus, message: str, now: datetime) -> Job:
    if status not in MOVES[job.status]:
        raise Conflict(
            f"job {job.id} is {job.status} and cannot become {status}",
            details={"status": job.status, "message": job.message},
        )
    return replace(
        job,
        status=status,
        message=message,
        updated_at=now,
        activated_at=now if status is JobStatus.RUNNING and job.activated_at is None else job.activated_at,
        started_at=now if status is JobStatus.RUNNING else job.started_at,
        finished_at=now if status in TERMINAL else job.finished_at,
    )


def submitted(job: Job, now: datetime) -> Change:
    return Change(job=job, events=(job_event(EventKind.JOB_SUBMITTED, job, now),))


def reserve(job: Job, spots: Sequence[Spot], message: str, now: datetime) -> Change:
    """Room is being freed for this job. It goes on waiting, but what it waits for is its own."""
    if job.status is not JobStatus.INIT:
        raise Conflict(f"job {job.id} is {job.status} and waits for no room", details={"status": job.status})
    changed = replace(job, claim=tuple(spots), message=message, updated_at=now)
    return Change(job=changed, events=(job_event(EventKind.JOB_RESERVED, changed, now),))


def admit(job: Job, spots: Sequence[Spot], message: str, now: datetime) -> Change:
    """The scheduler has chosen nodes: every task gets one, and the job waits for its runtime."""
    placements, tasks = _placed(job, spots)
    moved = replace(
        _move(job, JobStatus.PENDING, message, now),
        placements=placements,
        claim=(),
        generation=job.generation + 1,
        not_before=None,
        resized_at=now if job.spec.elastic is not None else None,
    )
    return Change(job=moved, tasks=tasks, events=(job_event(EventKind.JOB_ADMITTED, moved, now),))


def _placed(job: Job, spots: Sequence[Spot]) -> tuple[tuple[Placement, ...], tuple[Task, ...]]:
    placements = tuple(
        Placement(
            task_id=task_id(job.id, spot.role, spot.index, job.generation),
            role=spot.role,
            index=spot.index,
            node=spot.node,
            gpus=spot.gpus,
        )
        for spot in spots
    )
    tasks = tuple(
        Task(id=at.task_id, job_id=job.id, role=at.role, index=at.index, node=at.node, gpus=at.gpus)
        for at in placements
    )
    return placements, tasks


def resize(
    job: Job,
    add: Sequence[Spot],
    drop: Collection[tuple[str, int]],
    message: str,
    now: datetime,
    tasks: Sequence[Task] = (),
) -> Change:
    """An elastic job gets more tasks, or loses some while the rest goes on.

    ``tasks`` are those it has: one that has ended already is gone at once, for nobody will report its end again.
    """
    if job.status is not JobStatus.RUNNING or job.spec.elastic is None:
        raise Conflict(f"job {job.id} is {job.status} and cannot be resized", details={"status": job.status})
    added, new_tasks = _placed(job, add)
    ended = {task.id for task in tasks if task.status in _ENDED}
    kept = tuple(placement for placement in job.placements if (placement.role, placement.index) not in drop)
    dropped = tuple(placement for placement in job.placements if (placement.role, placement.index) in drop)
    changed = replace(
        job,
        placements=kept + added,
        leaving=job.leaving + tuple(placement for placement in dropped if placement.task_id not in ended),
        generation=job.generation + 1,
        resized_at=now,
        message=message,
        updated_at=now,
    )
    return Change(job=changed, tasks=new_tasks, events=(_resized(changed, now),))


def _resized(job: Job, now: datetime) -> Event:
    return job_event(EventKind.JOB_RESIZED, job, now, tasks=len(job.placements))


def evict(job: Job, in_favour_of: JobId, message: str, now: datetime) -> Change:
    """Its room is needed by somebody with a better right. It waits again, unless its policy says it ends."""
    outcome = JobStatus.INIT if job.spec.policy.requeue else JobStatus.PREEMPTED
    moved = replace(_move(job, JobStatus.PREEMPTING, message, now), outcome=outcome)
    return Change(job=moved, events=(job_event(EventKind.JOB_EVICTING, moved, now, inFavourOf=in_favour_of),))


def expire(job: Job, now: datetime) -> Change:
    """It has run as long as it may. Trying again would run into the same wall."""
    if job.status not in (JobStatus.PENDING, JobStatus.RUNNING):
        return Change(job=job)
    return _wind_down(job, JobStatus.FAILED, f"ran longer than its deadline of {job.spec.policy.deadline_s:g} s", now)


def stop(job: Job, now: datetime) -> Change:
    """A user wants it gone. What never reached a runtime ends at once; asking twice is asking once."""
    if job.status is JobStatus.TERMINATING and job.outcome is JobStatus.TERMINATED:
        return Change(job=job)
    if job.is_terminal:
        raise Conflict(f"job {job.id} has already {job.status}, it cannot be stopped", details={"status": job.status})
    if job.status is JobStatus.INIT:
        return finish(job, JobStatus.TERMINATED, "stopped before it started", now)
    if job.status is JobStatus.TERMINATING and job.outcome in (JobStatus.SUCCEEDED, JobStatus.FAILED):
        return Change(job=job)  # it is ending by itself, and how is known
    return _wind_down(job, JobStatus.TERMINATED, "stopping", now)


def _wind_down(job: Job, outcome: JobStatus, message: str, now: datetime) -> Change:
    moved = replace(_move(job, JobStatus.TERMINATING, message, now), outcome=outcome)
    return Change(job=moved, events=(job_event(EventKind.JOB_STOPPING, moved, now),))


def finish(job: Job, status: JobStatus, message: str, now: datetime) -> Change:
    moved = replace(_move(job, status, message, now), claim=(), leaving=(), outcome=None, not_before=None)
    return Change(job=moved, events=(job_event(EventKind.JOB_FINISHED, moved, now),))


def fail(job: Job, message: str, now: datetime) -> Change:
    """The platform could not run it. A job being stopped just ends; tasks that did start are stopped first."""
    if job.is_terminal:
        return Change(job=job)
    if job.status in _STOPPING:
        return Change(job=job)
    if job.status is JobStatus.INIT or (job.status is JobStatus.PENDING and len(job.task_ids) == 1):
        return finish(job, JobStatus.FAILED, message, now)
    return _wind_down(job, JobStatus.FAILED, message, now)


def update(
    job: Job,
    *,
    priority: Priority | None,
    labels: Mapping[str, str],
    annotations: Mapping[str, str],
    now: datetime,
) -> Change:
    """Priority only while the job waits; labels and annotations at any time, an empty value removes the key."""
    if priority is not None and job.status not in (JobStatus.INIT, JobStatus.PENDING):
        raise Conflict(
            f"the priority of job {job.id} can be changed while it is init or pending; it is {job.status}",
            details={"status": job.status},
        )
    changed = replace(
        job,
        priority=job.priority if priority is None else priority,
        labels=merged(job.labels, labels),
        annotations=merged(job.annotations, annotations),
        updated_at=now,
    )
    return Change(job=changed, events=(job_event(EventKind.JOB_UPDATED, changed, now),))


def merged(old: Mapping[str, str], new: Mapping[str, str]) -> dict[str, str]:
    """``old`` overlaid with ``new``, where an empty value removes the key."""
    return {key: value for key, value in {**old, **new}.items() if value != ""}


def report(job: Job, tasks: Sequence[Task], seen: TaskReport, now: datetime, deciders: Collection[str] = ()) -> Change:
    """A runtime told the present state of one task. The job follows its tasks.

    ``deciders`` are the roles whose success is the job's; none: every role.
    """
    known = {task.id: task for task in tasks}
    before = known.get(seen.task_id)
    if before is None or before.status in _ENDED:
        return Change(job=job)
    after = replace(
        before,
        status=seen.status,
        message=seen.message,
        exit_code=seen.exit_code,
        signal=seen.signal,
        usage=seen.usage,
        started_at=seen.started_at or before.started_at,
        finished_at=seen.finished_at,
    )
    if after == before:
        return Change(job=job)
    known[after.id] = after
    moved = _follow(job, known, after, deciders, now)
    return Change(job=moved.job, tasks=(after,), events=moved.events)


def _follow(job: Job, known: Mapping[TaskId, Task], latest: Task, deciders: Collection[str], now: datetime) -> Change:
    """The job's status as its tasks imply it."""
    if job.is_terminal or job.status is JobStatus.INIT:
        return Change(job=job)
    if latest.status in _ENDED and any(each.task_id == latest.id for each in job.leaving):
        return _left(job, known, latest, now)
    mine = [known[placement.task_id] for placement in job.placements]
    if job.status in _STOPPING:
        return _conclude(job, latest.message, now) if _is_quiet(job, known) else Change(job=job)
    if latest.status is TaskStatus.FAILED and latest.id in {task.id for task in mine}:
        return _lost(_started(job, latest), known, latest, now)
    deciding = [task for task in mine if not deciders or task.role in deciders] or mine
    if all(task.status is TaskStatus.SUCCEEDED for task in deciding):
        return _end(_started(job, latest), known, JobStatus.SUCCEEDED, latest.message, now)
    if job.status is JobStatus.PENDING and all(task.status is not TaskStatus.PENDING for task in mine):
        moved = _started(_move(job, JobStatus.RUNNING, job.message, now), latest)
        return Change(job=moved, events=(job_event(EventKind.JOB_STARTED, moved, now),))
    return Change(job=job)


def _left(job: Job, known: Mapping[TaskId, Task], gone: Task, now: datetime) -> Change:
    """A task that was taken out of the job has ended: its room is free."""
    leaving = tuple(placement for placement in job.leaving if placement.task_id != gone.id)
    changed = replace(job, leaving=leaving, updated_at=now)
    if changed.status in _STOPPING and _is_quiet(changed, known):
        return _conclude(changed, gone.message, now)
    return Change(job=changed, events=(_resized(changed, now),))


def _lost(job: Job, known: Mapping[TaskId, Task], failed: Task, now: datetime) -> Change:
    """A task failed. An elastic job that can do without it goes on; any other starts again or fails, by its policy."""
    policy, elastic = job.spec.policy, job.spec.elastic
    why = failed.message if len(job.placements) == 1 else f"{failed.role}-{failed.index}: {failed.message}"
    if job.failures >= policy.retries:
        return _end(job, known, JobStatus.FAILED, why, now)
    counted = replace(job, failures=job.failures + 1)
    if elastic is not None and elastic.role == failed.role and failed.index > 0 and job.status is JobStatus.RUNNING:
        kept = tuple(placement for placement in job.placements if placement.task_id != failed.id)
        if sum(placement.role == elastic.role for placement in kept) in elastic.allowed:
            changed = replace(
                counted, placements=kept, generation=job.generation + 1, resized_at=now, message=why, updated_at=now
            )
            return Change(job=changed, events=(_resized(changed, now),))
    wait_s = policy.backoff_after(counted.failures)
    again = f"{why}; attempt {counted.failures + 1} of {policy.retries + 1} starts in {wait_s:g} s at the earliest"
    counted = replace(counted, not_before=now + timedelta(seconds=wait_s))
    return _end(counted, known, JobStatus.INIT, again, now)


def _end(job: Job, known: Mapping[TaskId, Task], outcome: JobStatus, message: str, now: datetime) -> Change:
    """The job is over, or this attempt is: at once if nothing of it runs, else when what runs has been stopped."""
    decided = replace(job, outcome=outcome, message=message)
    if _is_quiet(job, known):
        return _conclude(decided, message, now)
    return _wind_down(decided, outcome, message, now)


def _is_quiet(job: Job, known: Mapping[TaskId, Task]) -> bool:
    return all(known[placement.task_id].status in _ENDED for placement in (*job.placements, *job.leaving))


def _conclude(job: Job, last_words: str, now: datetime) -> Change:
    """The last task has ended: the job becomes what was decided."""
    outcome = job.outcome or JobStatus.TERMINATED
    if outcome is not JobStatus.INIT:
        message = (last_words or "stopped") if outcome is JobStatus.TERMINATED else job.message
        return finish(job, outcome, message, now)
    moved = replace(
        _move(job, JobStatus.INIT, job.message, now),
        placements=(),
        leaving=(),
        outcome=None,
        resized_at=None,
        started_at=None,
    )
    return Change(job=moved, events=(job_event(EventKind.JOB_REQUEUED, moved, now),))


def _started(job: Job, task: Task) -> Job:
    """A job may end before it was ever seen running; its runtime still knows when it began."""
    if task.started_at is None or (job.activated_at is not None and job.activated_at <= task.started_at):
        return job
    return replace(job, activated_at=task.started_at)
