"""Launcher: what the state of a job asks of its runtime, done.

Launch and stop are idempotent by id, so after a crash every admitted or stopping job is told to its runtime again.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from paddleflow.domain.commands import FailJob, ForgetRemains
from paddleflow.domain.converge import next_calls
from paddleflow.domain.errors import Conflict, Denied, Invalid, NotFound, Unavailable
from paddleflow.domain.events import Event, EventKind
from paddleflow.domain.ids import ClusterName, JobId, TaskId
from paddleflow.domain.jobs import HOLDING, Address, Job, Membership
from paddleflow.domain.users import PLATFORM
from paddleflow.engine.intake import Intake
from paddleflow.engine.job_mounts import JobMounts
from paddleflow.frameworks import launches_of, ports_per_task
from paddleflow.ports.identity import Identity
from paddleflow.ports.runtime import Runtime
from paddleflow.ports.store import Store

log = logging.getLogger(__name__)

_RELEVANT = frozenset({EventKind.JOB_ADMITTED, EventKind.JOB_RESIZED, EventKind.JOB_EVICTING, EventKind.JOB_STOPPING})


_CLEARED_AT_ONCE = 50
_MOUNTED_WITHIN_S = 0.1


class Launcher:
    name = "launcher"
    kinds = _RELEVANT | {EventKind.JOB_DELETED}

    def __init__(
        self,
        *,
        store: Store,
        intake: Intake,
        identity: Identity,
        runtimes: Mapping[ClusterName, Runtime],
        stop_grace_s: float,
        python: str,
        mounts: Mapping[ClusterName, JobMounts] | None = None,
    ) -> None:
        self._store = store
        self._intake = intake
        self._runtimes = runtimes
        self._stop_grace_s = stop_grace_s
        self._identity = identity
        self._python = python
        """Starts, inside a task, a Python that can import this package."""
        self._mounts = mounts or {}
        """Of the clusters whose nodes are this machine."""
        self._mounting: set[JobId] = set()
        """Jobs that wait for a filesystem to be mounted."""
        self._again: set[JobId] = set()
        """Jobs whose runtime could not be reached; tried again at every tick."""
        self._remains_left = False
        self._more_to_clear = False
        """Of the remains that are left some were not tried yet."""
        self._stuck: set[JobId] = set()
        """Deleted jobs whose remains could not be cleared away; the others' come first."""

    def resync(self) -> None:
        with self._store.read() as view:
            jobs = view.jobs.in_status(HOLDING)
        for job in jobs:
            self._converge(job)
        self._clear_remains()

    def react(self, events: Sequence[Event]) -> None:
        self._look_at({JobId(event.subject) for event in events if event.kind in _RELEVANT})
        if any(event.kind is EventKind.JOB_DELETED for event in events):
            self._clear_remains()

    def tick(self) -> float | None:
        again, self._again, self._mounting = self._again | self._mounting, set(), set()
        self._look_at(again)
        if self._remains_left:
            self._clear_remains()
        return 0.0 if self._more_to_clear else _MOUNTED_WITHIN_S if self._mounting else None

    def _look_at(self, ids: set[JobId]) -> None:
        if not ids:
            return
        with self._store.read() as view:
            jobs = view.jobs.find_many(ids)
        for job in sorted(jobs, key=lambda job: job.seq):
            self._converge(job)

    def _converge(self, job: Job) -> None:
        runtime = self._runtimes.get(job.cluster)
        calls = next_calls(job)
        if runtime is None:
            return
        try:
            if calls.launch:
                placed = self._with_mounts(job)
                if placed is not None:
                    self._launch(placed, runtime)
            if calls.stop:
                grace_s = job.spec.policy.grace_s
                runtime.stop(job.id, calls.stop, self._stop_grace_s if grace_s is None else grace_s)
        except Invalid as error:
            self._intake.submit(FailJob(id=job.id, message=f"could not start: {error.message}"), PLATFORM)
        except Unavailable as error:
            log.warning("job %s: its runtime is unavailable, trying again: %s", job.id, error)
            self._again.add(job.id)

    def _with_mounts(self, job: Job) -> Job | None:
        """The job with its filesystems where its node has them; None while one is still being mounted."""
        mounts = self._mounts.get(job.cluster)
        if mounts is None:
            return job
        try:
            return mounts.placed(job)
        except Unavailable as error:
            log.debug("job %s waits: %s", job.id, error)
            self._mounting.add(job.id)
            return None
        except (NotFound, Denied) as error:
            # It was deleted, or its owner may not use it any more: this job's end, and nobody else's.
            raise Invalid(error.message) from error

    def _launch(self, job: Job, runtime: Runtime) -> None:
        ports = ports_per_task(job.spec)
        tasks = [placement.task_id for placement in job.placements]
        book = runtime.addresses(job.id, tasks, ports) if ports else {}
        if ports:
            # Before anybody starts or goes: a newcomer finds itself in it.
            runtime.publish(membership_of(job, book))
        secret = self._identity.job_secret(job.id)
        for launch in launches_of(job, book, secret=secret, python=self._python):
            runtime.launch(launch)

    def _clear_remains(self) -> None:
        """Delete what deleted jobs left on their runtimes, some at a time: with a run go thousands of jobs, and others
        wait to be started. What cannot go now is tried again at a later tick."""
        with self._store.read() as view:
            remains = view.remains.all()
        if all(job_id in self._stuck for job_id, _ in remains):
            self._stuck.clear()
        chosen = [(job_id, cluster) for job_id, cluster in remains if job_id not in self._stuck][:_CLEARED_AT_ONCE]
        cleared = [job_id for job_id, cluster in chosen if self._is_cleared(job_id, cluster)]
        self._intake.submit_together([ForgetRemains(id=job_id) for job_id in cleared], PLATFORM)
        self._remains_left = len(cleared) < len(remains)
        self._more_to_clear = len(remains) > len(cleared) + len(self._stuck)

    def _is_cleared(self, job_id: JobId, cluster: ClusterName) -> bool:
        runtime = self._runtimes.get(cluster)
        try:
            if runtime is not None:
                runtime.remove(job_id)
        except (Conflict, Unavailable) as error:
            log.warning("job %s was deleted, what it left behind was not; trying again: %s", job_id, error)
            self._stuck.add(job_id)
            return False
        return True


def membership_of(job: Job, book: Mapping[TaskId, Address]) -> Membership:
    elastic = job.spec.elastic
    members = sorted(job.placements, key=lambda placement: (placement.role, placement.index))
    return Membership(
        job_id=job.id,
        generation=job.generation,
        least=len(members) if elastic is None else elastic.least,
        most=len(members) if elastic is None else elastic.most,
        tasks=tuple((placement, book[placement.task_id]) for placement in members),
    )
