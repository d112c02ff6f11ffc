"""The life of a job, as a table.

::

    init ──admit──► pending ──runs──► running ──ends──► succeeded | failed
     │                 │  └──────────ends─────────────────▲
     │                 ├──stop──► terminating ◄──stop── running
     └──stop──► terminated ◄──ends──┘

Each function takes a job as it is, what is asked or was observed, and the time; it returns the job as it becomes and
the events that tell of it, or raises Conflict for a move the table does not know. Reports are levels, so one that
tells nothing new changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from paddleflow.domain.errors import Conflict
from paddleflow.domain.events import Event, EventKind
from paddleflow.domain.jobs import TERMINAL, Job, JobStatus, Placement, Priority, Task, TaskReport, TaskStatus

MOVES: Mapping[JobStatus, frozenset[JobStatus]] = {
    JobStatus.INIT: frozenset({JobStatus.PENDING, JobStatus.FAILED, JobStatus.TERMINATED}),
    JobStatus.PENDING: frozenset(
        {JobStatus.RUNNING, JobStatus.SUCCEEDED, JobStatus.FAILED, JobStatus.TERMINATING, JobStatus.TERMINATED}
    ),
    JobStatus.RUNNING: frozenset({JobStatus.SUCCEEDED, JobStatus.FAILED, JobStatus.TERMINATING, JobStatus.TERMINATED}),
    JobStatus.TERMINATING: frozenset({JobStatus.TERMINATED}),
    **{terminal: frozenset() for terminal in sorted(TERMINAL)},
}
"""Every legal move. What is not here is a defect and raises with the job's story."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    job: Job
    tasks: tuple[Task, ...] = ()
    """Only those that changed."""
    events: tuple[Event, ...] = ()


def job_event(kind: EventKind, job: Job, now: datetime) -> Event:
    return Event(
        kind=kind,
        subject=job.id,
        owner=job.owner,
        data={"status": job.status, "message": job.message, "queue": job.queue},
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
        finished_at=now if status in TERMINAL else job.finished_at,
    )


def submitted(job: Job, now: datetime) -> Change:
    return Change(job=job, events=(job_event(EventKind.JOB_SUBMITTED, job, now),))


def admit(job: Job, placements: Sequence[Placement], message: str, now: datetime) -> Change:
    """The scheduler has chosen nodes: every task gets one, and the job waits for its runtime."""
    moved = replace(_move(job, JobStatus.PENDING, message, now), placements=tuple(placements))
    where = {placement.task_id: placement for placement in placements}
    tasks = tuple(
        Task(
            id=task_id, job_id=job.id, role=member.role, index=index, node=where[task_id].node, gpus=where[task_id].gpus
        )
        for task_id, member, index in job.spec.task_slots(job.id)
    )
    return Change(job=moved, tasks=tasks, events=(job_event(EventKind.JOB_ADMITTED, moved, now),))


def stop(job: Job, now: datetime) -> Change:
    """A user wants it gone. What never reached a runtime ends at once; asking twice is asking once."""
    if job.status is JobStatus.TERMINATING:
        return Change(job=job)
    if job.is_terminal:
        raise Conflict(f"job {job.id} has already {job.status}, it cannot be stopped", details={"status": job.status})
    if job.status is JobStatus.INIT:
        return finish(job, JobStatus.TERMINATED, "stopped before it started", now)
    moved = _move(job, JobStatus.TERMINATING, "stopping", now)
    return Change(job=moved, events=(job_event(EventKind.JOB_STOPPING, moved, now),))


def finish(job: Job, status: JobStatus, message: str, now: datetime) -> Change:
    moved = _move(job, status, message, now)
    return Change(job=moved, events=(job_event(EventKind.JOB_FINISHED, moved, now),))


def fail(job: Job, message: str, now: datetime) -> Change:
    """The platform could not run it. A job being stopped just ends."""
    if job.is_terminal:
        return Change(job=job)
    status = JobStatus.TERMINATED if job.status is JobStatus.TERMINATING else JobStatus.FAILED
    return finish(job, status, message, now)


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


def report(job: Job, tasks: Sequence[Task], seen: TaskReport, now: datetime) -> Change:
    """A runtime told the present state of one task. The job follows its tasks."""
    known = {task.id: task for task in tasks}
    before = known.get(seen.task_id)
    if before is None or before.status in (TaskStatus.SUCCEEDED, TaskStatus.FAILED):
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
    moved = _follow(job, tuple(known.values()), after, now)
    return Change(job=moved.job, tasks=(after,), events=moved.events)


def _follow(job: Job, tasks: tuple[Task, ...], latest: Task, now: datetime) -> Change:
    """The job's status as its tasks imply it."""
    if job.is_terminal:
        return Change(job=job)
    ended = all(task.status in (TaskStatus.SUCCEEDED, TaskStatus.FAILED) for task in tasks)
    if job.status is JobStatus.TERMINATING:
        return finish(job, JobStatus.TERMINATED, latest.message or "stopped", now) if ended else Change(job=job)
    if latest.status is TaskStatus.FAILED:
        return finish(_started(job, latest), JobStatus.FAILED, latest.message, now)
    if ended:
        return finish(_started(job, latest), JobStatus.SUCCEEDED, latest.message, now)
    if job.status is JobStatus.PENDING and all(task.status is not TaskStatus.PENDING for task in tasks):
        moved = _started(_move(job, JobStatus.RUNNING, job.message, now), latest)
        return Change(job=moved, events=(job_event(EventKind.JOB_STARTED, moved, now),))
    return Change(job=job)


def _started(job: Job, task: Task) -> Job:
    """A job may end before it was ever seen running; its runtime still knows when it began."""
    if task.started_at is None or (job.activated_at is not None and job.activated_at <= task.started_at):
        return job
    return replace(job, activated_at=task.started_at)
