"""A frozen picture of everything the scheduler looks at, and the ledger that keeps it up to date.

The ledger is told of jobs, queues and nodes as rows change, so that a cycle costs what changed and not what is stored.
It holds no rule: rules live in ``decide``.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from paddleflow.domain.clusters import Node
from paddleflow.domain.ids import ClusterName, JobId, NodeName, QueueName, TaskId
from paddleflow.domain.jobs import HOLDING, Job, JobStatus, Placement, Priority
from paddleflow.domain.queues import Queue
from paddleflow.domain.resources import Resources


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A job that wants to start. ``tasks`` are its gang: all of them or none."""

    job_id: JobId
    seq: int
    priority: Priority
    queue: QueueName
    cluster: ClusterName
    tasks: tuple[tuple[TaskId, Resources], ...]
    request: Resources

    @property
    def rank(self) -> tuple[int, int]:
        """Lower goes first."""
        return (-self.priority, self.seq)


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What one task of an admitted job occupies."""

    node: NodeName
    resources: Resources
    gpus: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """A job that holds resources: admitted, running or on its way out."""

    job_id: JobId
    queue: QueueName
    cluster: ClusterName
    request: Resources
    held: tuple[Held, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    queues: Mapping[QueueName, Queue]
    nodes: tuple[Node, ...]
    waiting: Mapping[QueueName, tuple[Waiting, ...]]
    """Of each queue, in the order in which they are considered: priority, then first come."""
    holding: tuple[Holding, ...] = field(default=())


def waiting_of(job: Job) -> Waiting:
    return Waiting(
        job_id=job.id,
        seq=job.seq,
        priority=job.priority,
        queue=job.queue,
        cluster=job.cluster,
        tasks=tuple((task_id, member.flavour.resources) for task_id, member, _ in job.spec.task_slots(job.id)),
        request=job.spec.request,
    )


def holding_of(job: Job) -> Holding:
    asked = {task_id: member.flavour.resources for task_id, member, _ in job.spec.task_slots(job.id)}
    return Holding(
        job_id=job.id,
        queue=job.queue,
        cluster=job.cluster,
        request=job.spec.request,
        held=_held(asked, job.placements),
    )


def _held(asked: Mapping[TaskId, Resources], placements: Sequence[Placement]) -> tuple[Held, ...]:
    return tuple(
        Held(node=placement.node, resources=asked[placement.task_id], gpus=placement.gpus) for placement in placements
    )


_rank = attrgetter("rank")


class Ledger:
    """What the scheduler believes, folded from rows as they change."""

    def __init__(self) -> None:
        self._queues: dict[QueueName, Queue] = {}
        self._nodes: tuple[Node, ...] = ()
        self._waiting: dict[QueueName, list[Waiting]] = {}
        self._waiting_by_id: dict[JobId, Waiting] = {}
        self._holding: dict[JobId, Holding] = {}

    def set_capacity(self, queues: Iterable[Queue], nodes: Iterable[Node]) -> None:
        self._queues = {queue.name: queue for queue in queues}
        self._nodes = tuple(nodes)

    def put(self, job: Job) -> None:
        """The job is now as given; a job that has ended is forgotten."""
        self.drop(job.id)
        if job.status is JobStatus.INIT:
            entry = waiting_of(job)
            insort(self._waiting.setdefault(job.queue, []), entry, key=_rank)
            self._waiting_by_id[job.id] = entry
        elif job.status in HOLDING:
            self._holding[job.id] = holding_of(job)

    def drop(self, job_id: JobId) -> None:
        self._holding.pop(job_id, None)
        entry = self._waiting_by_id.pop(job_id, None)
        if entry is not None:
            line = self._waiting[entry.queue]
            del line[bisect_left(line, entry.rank, key=_rank)]

    def admitted(self, job_id: JobId, placements: Sequence[Placement]) -> None:
        """The job was just given these places. Said at once and not only by its event: until that is heard the room
        would look free, and somebody more urgent could be given it a second time."""
        entry = self._waiting_by_id.get(job_id)
        if entry is None:
            return
        self.drop(job_id)
        self._holding[job_id] = Holding(
            job_id=job_id,
            queue=entry.queue,
            cluster=entry.cluster,
            request=entry.request,
            held=_held(dict(entry.tasks), placements),
        )

    def snapshot(self) -> Snapshot:
        return Snapshot(
            queues=self._queues,
            nodes=self._nodes,
            waiting={queue: tuple(line) for queue, line in self._waiting.items() if line},
            holding=tuple(self._holding.values()),
        )
