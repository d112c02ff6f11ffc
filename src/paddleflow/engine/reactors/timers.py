"""The only clock watcher: what must be done because time has passed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from heapq import heappop, heappush

from paddleflow.domain.commands import Command, DeleteJob, ExpireJob
from paddleflow.domain.errors import Conflict, NotFound
from paddleflow.domain.events import Event, EventKind
from paddleflow.domain.ids import JobId
from paddleflow.domain.jobs import Job, JobStatus
from paddleflow.domain.mounts import REPORT_KEPT, SEEN_WITHIN
from paddleflow.domain.users import PLATFORM
from paddleflow.engine.intake import Intake
from paddleflow.ports.clock import Clock
from paddleflow.ports.store import Store

_RECEIPT_LIFE = timedelta(hours=24)
_EVERY = timedelta(minutes=10)


class Timers:
    """Ends jobs at their deadline, deletes ended ones after their time to live, forgets receipts after a day (a client
    that retries later than that means it), mounts that were not seen any more, and old reports of caches."""

    name = "timers"
    kinds = frozenset({EventKind.JOB_STARTED, EventKind.JOB_FINISHED})

    def __init__(self, *, store: Store, intake: Intake, clock: Clock) -> None:
        self._store = store
        self._intake = intake
        self._clock = clock
        self._next_sweep: datetime | None = None
        self._due: list[tuple[datetime, JobId]] = []
        """A moment to look at a job again; what is to be done is read from the job."""

    def resync(self) -> None:
        self._next_sweep = self._clock.now()
        self._due = []
        with self._store.read() as view:
            jobs = (*view.jobs.in_status(frozenset({JobStatus.RUNNING})), *view.jobs.ended_with_ttl())
        self._watch(jobs)

    def react(self, events: Sequence[Event]) -> None:
        with self._store.read() as view:
            jobs = view.jobs.find_many(JobId(event.subject) for event in events)
        self._watch(jobs)

    def _watch(self, jobs: Sequence[Job]) -> None:
        for job in jobs:
            due = due_at(job)
            if due is not None:
                heappush(self._due, (due, job.id))

    def tick(self) -> float | None:
        now = self._clock.now()
        while self._due and self._due[0][0] <= now:
            _, job_id = heappop(self._due)
            self._look_at(job_id, now)
        if self._next_sweep is not None and now >= self._next_sweep:
            self._next_sweep = now + _EVERY
            with self._store.write() as uow:
                uow.receipts.delete_before(now - _RECEIPT_LIFE)
                uow.mounts.delete_unseen(now - SEEN_WITHIN)
                uow.cache_reports.delete_before(now - REPORT_KEPT)
        return (self._due[0][0] - now).total_seconds() if self._due else None

    def _look_at(self, job_id: JobId, now: datetime) -> None:
        with self._store.read() as view:
            job = view.jobs.find(job_id)
        due = None if job is None else due_at(job)
        if job is None or due is None:
            return
        if due > now:
            heappush(self._due, (due, job_id))  # it was started again meanwhile
            return
        command: Command = DeleteJob(id=job_id) if job.is_terminal else ExpireJob(id=job_id)
        try:
            self._intake.submit(command, PLATFORM)
        except (Conflict, NotFound):
            return  # somebody else was faster, and it is done


def due_at(job: Job) -> datetime | None:
    """When time alone changes this job."""
    policy = job.spec.policy
    if job.is_terminal:
        ended = job.finished_at
        return None if ended is None or policy.ttl_s is None else ended + timedelta(seconds=policy.ttl_s)
    began = job.started_at
    if job.status is not JobStatus.RUNNING or began is None or policy.deadline_s is None:
        return None
    return began + timedelta(seconds=policy.deadline_s)
