"""A trace against a cluster: each job of the trace as the scheduler will see it, and those it would refuse.

The trace says what was asked, the cluster what a node is and which queues there are. A job that asks for more GPUs
than a node has becomes a gang of whole nodes. CPUs and memory count only where some node names them: a cluster
described by its GPUs is one where nothing else is scarce. A job no idle cluster could hold is refused, as the
platform does at submission; it is counted and takes no part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from paddleflow.domain.errors import Invalid, invalid_field
from paddleflow.domain.ids import JobId, QueueName
from paddleflow.domain.jobs import Elasticity
from paddleflow.domain.resources import CPU, GPU, MEMORY, Resources
from paddleflow.scheduling.entries import TaskGroup, Waiting
from paddleflow.simulation.cluster import SIMULATED, Capacity
from paddleflow.simulation.trace import TraceJob

ROLE = "worker"


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """A job about to be submitted."""

    entry: Waiting
    at_s: float
    tasks: int
    """How many it was submitted with; what a policy that knows no elastic jobs gives it."""
    each: Resources
    duration_s: float
    """With ``tasks`` tasks. Elastic jobs speed up in proportion, up to their most."""
    kind: int
    """The same for jobs of the same tasks and bounds."""
    units: int
    """What one task takes of the resource that is measured."""

    @property
    def work(self) -> float:
        """In task-seconds."""
        return self.duration_s * self.tasks

    @property
    def demand(self) -> float:
        return self.work * self.units


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    capacity: Capacity
    measured: str
    """The resource that utilisation and load are told of: GPUs, or CPUs where nobody asks for GPUs."""
    submissions: tuple[Submission, ...]
    refused: tuple[TraceJob, ...] = ()

    @property
    def available(self) -> int:
        """How much of the measured resource there is."""
        return self.capacity.total.get(self.measured)


def prepare(jobs: Sequence[TraceJob], capacity: Capacity, *, load: float | None = None) -> Workload:
    """The workload these jobs are on this cluster; with ``load``, their submissions moved closer or further apart so
    that they demand that part of it between the first and the last."""
    shaping = _Shaping(capacity, GPU if any(job.gpus for job in jobs) else CPU)
    shaped = [shaping.shape(job) for job in jobs]
    accepted = [one for one in shaped if shaping.can_hold(one)]
    scale = 1.0 if load is None else _scale(accepted, shaping, load)
    return Workload(
        capacity=capacity,
        measured=shaping.measured,
        submissions=tuple(
            shaping.submission(one, one.job.submit_s * scale, seq) for seq, one in enumerate(accepted, 1)
        ),
        refused=tuple(one.job for one in shaped if not shaping.can_hold(one)),
    )


@dataclass(frozen=True, slots=True)
class _Shaped:
    """A trace's job cut into tasks."""

    job: TraceJob
    queue: QueueName
    tasks: int
    each: Resources


def _scale(shaped: Sequence[_Shaped], shaping: _Shaping, load: float) -> float:
    if not 0 < load <= 100:
        raise invalid_field("load", f"[{load:g}] must be above 0; 0.9 is nine tenths of the cluster")
    span = shaped[-1].job.submit_s - shaped[0].job.submit_s if shaped else 0.0
    demand = sum(one.job.duration_s * one.tasks * one.each.get(shaping.measured) for one in shaped)
    if not (span and demand and shaping.available):
        raise invalid_field(
            "load", "it cannot be set for a trace whose jobs are all submitted at once or demand nothing"
        )
    return demand / (shaping.available * span * load)


class _Shaping:
    """What trace jobs become on one cluster."""

    def __init__(self, capacity: Capacity, measured: str) -> None:
        self._capacity = capacity
        self.measured = measured
        total = capacity.total
        self.available = total.get(measured)
        self._scarce = frozenset(name for name in (CPU, MEMORY) if total.get(name))
        self._most_gpus = max(node.capacity.gpus for node in capacity.nodes)
        self._queues = {queue.name: queue for queue in capacity.queues}
        self._alone = next(iter(self._queues)) if len(self._queues) == 1 else None
        self._kinds: dict[tuple[tuple[str, int], ...], Resources] = {}
        self._numbers: dict[tuple[int, Resources, int | None, int | None], int] = {}
        self._holds: dict[tuple[QueueName, int, Resources], bool] = {}

    def shape(self, job: TraceJob) -> _Shaped:
        tasks, gpus = job.tasks or 1, job.gpus
        parts = 1
        if job.tasks is None and gpus > self._most_gpus > 0:
            parts = tasks = -(-gpus // self._most_gpus)
            gpus = self._most_gpus
        asked = {GPU: gpus, CPU: -(-job.cpu_milli // parts), MEMORY: -(-job.memory_bytes // parts)}
        kept = tuple((name, units) for name, units in asked.items() if units and (name == GPU or name in self._scarce))
        return _Shaped(job, self._queue_of(job), tasks, self._kinds.setdefault(kept, Resources(dict(kept))))

    def can_hold(self, shaped: _Shaped) -> bool:
        """Whether the idle cluster has room for all its tasks at once, and its queue allows so much."""
        key = (shaped.queue, shaped.tasks, shaped.each)
        if key not in self._holds:
            self._holds[key] = self._is_allowed(shaped) and self._has_room(shaped)
        return self._holds[key]

    def _is_allowed(self, shaped: _Shaped) -> bool:
        queue = self._queues.get(shaped.queue)
        while queue is not None:
            if queue.over_maximum(shaped.each * shaped.tasks) is not None:
                return False
            queue = self._queues.get(queue.parent) if queue.parent is not None else None
        return True

    def _has_room(self, shaped: _Shaped) -> bool:
        room = 0
        for node in self._capacity.nodes:
            room += min((node.capacity.get(name) // units for name, units in shaped.each), default=shaped.tasks)
            if room >= shaped.tasks:
                return True
        return False

    def submission(self, shaped: _Shaped, at_s: float, seq: int) -> Submission:
        job, tasks, each = shaped.job, shaped.tasks, shaped.each
        elastic = None
        if job.is_elastic and job.min_tasks is not None and job.max_tasks is not None:
            elastic = Elasticity(
                role=ROLE, least=job.min_tasks, most=job.max_tasks, rescale_cost_s=self._capacity.costs.rescale_s
            )
        entry = Waiting(
            job_id=JobId(job.id),
            seq=seq,
            priority=job.priority,
            queue=shaped.queue,
            cluster=SIMULATED,
            groups=(TaskGroup(role=ROLE, count=tasks if elastic is None else elastic.least, each=each),),
            elastic=elastic,
            since=at_s,
            limit_s=job.limit_s,
        )
        return Submission(
            entry=entry,
            at_s=at_s,
            tasks=tasks,
            each=each,
            duration_s=job.duration_s,
            kind=self._numbers.setdefault((tasks, each, job.min_tasks, job.max_tasks), len(self._numbers)),
            units=each.get(self.measured),
        )

    def _queue_of(self, job: TraceJob) -> QueueName:
        if self._alone is not None:
            return self._alone
        name = QueueName(job.queue)
        if name in self._queues:
            return name
        named = f"queue [{job.queue[:80]}], which is not described" if job.queue else "no queue"
        raise Invalid(
            f"row {job.row} of the trace names {named}; the queues are {', '.join(sorted(self._queues)[:20])}",
            details={"row": job.row, "column": "queue"},
        )
