"""Use of jobs and queues, for people: rates and series from samples, card time from rows."""

from __future__ import annotations

import logging
import math
import threading
from collections import OrderedDict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from paddleflow.domain.access import may_use_queue, require_job
from paddleflow.domain.errors import NotFound, PaddleFlowError, no_access, not_found
from paddleflow.domain.ids import ClusterName, JobId, QueueName, TaskId, UserName
from paddleflow.domain.jobs import Job, JobStatus, Task
from paddleflow.domain.users import Actor
from paddleflow.ports.clock import Clock
from paddleflow.ports.runtime import Runtime
from paddleflow.ports.store import ReadView, Store

log = logging.getLogger(__name__)

_POINTS = 1000
"""Samples kept for one task; the oldest go first."""
_TASKS = 2000
"""Tasks whose samples are kept; the ones sampled longest ago go first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    at: datetime
    cpu_s: float
    memory_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JobUse:
    """Averages over the life of a job."""

    cpu_rate: float
    """Of what it asked for; 1.0 is all of it."""
    memory_rate: float
    memory_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CardTime:
    job: Job
    cards: int
    hours: float


class Statistics:
    def __init__(self, store: Store, clock: Clock, runtimes: Mapping[ClusterName, Runtime]) -> None:
        self._store = store
        self._clock = clock
        self._runtimes = runtimes
        self._lock = threading.Lock()
        self._samples: OrderedDict[TaskId, deque[Sample]] = OrderedDict()

    def sample(self) -> None:
        """Take one sample of every running task."""
        with self._store.read() as view:
            running = view.jobs.in_status(frozenset({JobStatus.RUNNING}))
            tasks = [(job, task) for job in running for task in view.jobs.tasks(job.id)]
        for job, task in tasks:
            runtime = self._runtimes.get(job.cluster)
            usage = runtime.usage(task.id) if runtime is not None else None
            if usage is not None:
                self._keep(task.id, Sample(at=self._clock.now(), cpu_s=usage.cpu_s, memory_bytes=usage.memory_bytes))

    def _keep(self, task_id: TaskId, sample: Sample) -> None:
        with self._lock:
            self._samples.setdefault(task_id, deque(maxlen=_POINTS)).append(sample)
            self._samples.move_to_end(task_id)
            while len(self._samples) > _TASKS:
                self._samples.popitem(last=False)

    def job_use(self, actor: Actor, job_id: JobId) -> JobUse:
        job, tasks = self._job(actor, job_id)
        cpu_s, memory = 0.0, 0
        runtime = self._runtimes.get(job.cluster)
        for task in tasks:
            usage = task.usage if task.finished_at else (runtime.usage(task.id) if runtime else None) or task.usage
            cpu_s += usage.cpu_s
            memory += usage.memory_bytes or usage.max_memory_bytes
        lived = ((job.finished_at or self._clock.now()) - job.activated_at).total_seconds() if job.activated_at else 0.0
        asked = job.held if job.placements else job.spec.request
        cores = asked.cpu_milli / 1000
        return JobUse(
            cpu_rate=cpu_s / (lived * cores) if lived > 0 and cores else 0.0,
            memory_rate=memory / asked.memory_bytes if asked.memory_bytes else 0.0,
            memory_bytes=memory,
        )

    def series(
        self, actor: Actor, job_id: JobId, start: datetime | None, end: datetime | None, step_s: int
    ) -> tuple[Job, Mapping[TaskId, Sequence[Sample]], bool]:
        """Samples of every task in the window, at most one a step; and whether any were left out at the limit."""
        job, tasks = self._job(actor, job_id)
        found: dict[TaskId, Sequence[Sample]] = {}
        truncated = False
        for task in tasks:
            with self._lock:
                samples = list(self._samples.get(task.id, ()))
            chosen: list[Sample] = []
            for sample in samples:
                inside = (start is None or sample.at >= start) and (end is None or sample.at <= end)
                if inside and (not chosen or (sample.at - chosen[-1].at).total_seconds() >= step_s):
                    chosen.append(sample)
            truncated = truncated or len(samples) == _POINTS
            found[task.id] = chosen
        return job, found, truncated

    def card_time(
        self, actor: Actor, queues: Sequence[QueueName], start: datetime, end: datetime
    ) -> Mapping[QueueName, Mapping[UserName, tuple[CardTime, ...]]]:
        """GPU hours of each queue and user within the window, hours cut to two decimals."""
        answer: dict[QueueName, Mapping[UserName, tuple[CardTime, ...]]] = {}
        with self._store.read() as view:
            for name in queues:
                self._check_queue(view, actor, name)
                by_user: dict[UserName, list[CardTime]] = {}
                for job in view.jobs.finished_between(name, start, end):
                    cards = (job.held if job.placements else job.spec.request).gpus
                    if cards and job.activated_at is not None:
                        ended = min(job.finished_at or self._clock.now(), end)
                        seconds = max(0.0, (ended - max(job.activated_at, start)).total_seconds())
                        hours = math.floor(cards * seconds / 36) / 100
                        by_user.setdefault(job.owner, []).append(CardTime(job=job, cards=cards, hours=hours))
                answer[name] = {user: tuple(times) for user, times in by_user.items()}
        return answer

    def _check_queue(self, view: ReadView, actor: Actor, name: QueueName) -> None:
        if view.queues.find(name) is None:
            raise NotFound("QueueName does not exist", code="QueueNameNotFound")
        if not may_use_queue(actor, name, () if actor.is_root else view.grants.of_user(actor.name)):
            raise no_access(actor.name, "queue", name)

    def _job(self, actor: Actor, job_id: JobId) -> tuple[Job, tuple[Task, ...]]:
        with self._store.read() as view:
            job = view.jobs.find(job_id)
            if job is None:
                raise not_found("job", job_id[:80], code="JobNotFound")
            require_job(actor, job)
            return job, view.jobs.tasks(job_id)


class Sampler:
    """The thread that takes samples."""

    def __init__(self, statistics: Statistics, every_s: float) -> None:
        self._statistics = statistics
        self._every_s = every_s
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sampler", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout_s: float = 10.0) -> None:
        self._stopping.set()
        self._thread.join(timeout_s)

    def _run(self) -> None:
        while not self._stopping.wait(self._every_s):
            try:
                self._statistics.sample()
            except PaddleFlowError as error:
                log.warning("no sample was taken: %s", error)
