"""What the scheduler knows of a job: one that waits, and one that holds room.

Plain values, made from a ``Job`` for the platform and from a row of a trace for a replay. Times are seconds since the
epoch: the scheduler only ever compares and adds them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from paddleflow.domain.ids import ClusterName, FilesystemId, JobId, NodeName, QueueName
from paddleflow.domain.jobs import Elasticity, Job, JobSpec, JobStatus, Placement, Priority, Spot
from paddleflow.domain.resources import NOTHING, Resources


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskGroup:
    """Tasks that are alike: the scheduler counts how many fit instead of asking one by one."""

    role: str
    count: int
    each: Resources
    first: int = 0
    """Index of the first within its role."""
    selector: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """A job that wants to start. Its groups are a gang: all of them or none."""

    job_id: JobId
    seq: int
    priority: Priority = Priority.NORMAL
    queue: QueueName
    cluster: ClusterName
    groups: tuple[TaskGroup, ...]
    elastic: Elasticity | None = None
    claim: tuple[Spot, ...] = ()
    """Room that is being freed for it."""
    since: float = 0.0
    """When it began to wait."""
    not_before: float = 0.0
    limit_s: float | None = None
    """It is stopped when it has run so long: a bound others may rely on."""
    data: tuple[FilesystemId, ...] = ()
    """The filesystems it reads."""
    prefers: Mapping[NodeName, float] = field(default_factory=dict)
    """How much of its data each node has at hand; more is better."""

    @cached_property
    def rank(self) -> tuple[int, int, JobId]:
        """Lower goes first within a queue."""
        return (-self.priority, self.seq, self.job_id)

    @cached_property
    def request(self) -> Resources:
        return total_of(self.groups)

    @cached_property
    def shape(self) -> str:
        """Equal for jobs that fit the same places, in the same words. A string, because a string remembers its hash."""
        return repr(
            [
                (group.role, group.count, sorted(group.each.amounts.items()), sorted(group.selector.items()))
                for group in self.groups
            ]
        )

    @cached_property
    def kin(self) -> str:
        """Equal for jobs that also have the same rights: where one is refused, so is the other."""
        return f"{self.queue} {self.priority} {self.shape}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What one task occupies."""

    role: str
    index: int
    node: NodeName
    each: Resources
    gpus: tuple[int, ...] = ()

    @property
    def spot(self) -> Spot:
        return Spot(role=self.role, index=self.index, node=self.node, gpus=self.gpus)


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """A job that holds room: admitted, running or on its way out."""

    job_id: JobId
    seq: int
    priority: Priority = Priority.NORMAL
    queue: QueueName
    cluster: ClusterName
    groups: tuple[TaskGroup, ...]
    held: tuple[Held, ...]
    parting: tuple[Held, ...] = ()
    """Tasks taken out of it that have not ended yet; their room is still taken."""
    elastic: Elasticity | None = None
    started_at: float = 0.0
    limit_s: float | None = None
    resized_at: float = 0.0
    is_leaving: bool = False
    """Being stopped or evicted: it frees its room soon and cannot be chosen again."""
    is_resizable: bool = True
    """It runs; one that is only just being started cannot be told of a change."""

    @property
    def size(self) -> int:
        """How many tasks of its elastic role it has."""
        role = "" if self.elastic is None else self.elastic.role
        return sum(part.role == role for part in self.held)

    @property
    def uses(self) -> Resources:
        return sum((part.each for part in (*self.held, *self.parting)), NOTHING)

    @property
    def departing(self) -> tuple[Held, ...]:
        """The part of it whose room is about to be free."""
        return (*self.held, *self.parting) if self.is_leaving else self.parting


def total_of(groups: Iterable[TaskGroup]) -> Resources:
    return sum((group.each * group.count for group in groups), NOTHING)


def groups_of(spec: JobSpec) -> tuple[TaskGroup, ...]:
    """The gang a job starts as."""
    counts: dict[str, int] = {}
    groups: list[TaskGroup] = []
    for member in spec.members:
        count, first = spec.least_of(member), counts.get(member.role, 0)
        counts[member.role] = first + count
        groups.append(
            TaskGroup(
                role=member.role,
                count=count,
                each=member.flavour.resources,
                first=first,
                selector=member.node_selector,
            )
        )
    return tuple(groups)


def waiting_of(job: Job) -> Waiting:
    return Waiting(
        job_id=job.id,
        seq=job.seq,
        priority=job.priority,
        queue=job.queue,
        cluster=job.cluster,
        groups=groups_of(job.spec),
        elastic=job.spec.elastic,
        claim=job.claim,
        since=_seconds(job.updated_at if job.generation else job.created_at),
        not_before=_seconds(job.not_before),
        limit_s=job.spec.policy.deadline_s,
        data=_filesystems(job.spec),
    )


def _filesystems(spec: JobSpec) -> tuple[FilesystemId, ...]:
    return tuple(
        dict.fromkeys(FilesystemId(mount.id) for member in spec.members for mount in member.mounts if mount.id)
    )


def starting_of(job: Waiting, held: tuple[Held, ...], now: float) -> Holding:
    """A job that has just been given this room."""
    return Holding(
        job_id=job.job_id,
        seq=job.seq,
        priority=job.priority,
        queue=job.queue,
        cluster=job.cluster,
        groups=job.groups,
        held=held,
        elastic=job.elastic,
        started_at=now,
        limit_s=job.limit_s,
        resized_at=now,
    )


def holding_of(job: Job) -> Holding:
    return Holding(
        job_id=job.id,
        seq=job.seq,
        priority=job.priority,
        queue=job.queue,
        cluster=job.cluster,
        groups=groups_of(job.spec),
        held=_held(job.spec, job.placements),
        parting=_held(job.spec, job.leaving),
        elastic=job.spec.elastic,
        started_at=_seconds(job.started_at or job.updated_at),
        limit_s=job.spec.policy.deadline_s,
        resized_at=_seconds(job.resized_at),
        is_leaving=job.status in (JobStatus.TERMINATING, JobStatus.PREEMPTING),
        is_resizable=job.status is JobStatus.RUNNING,
    )


def _held(spec: JobSpec, placements: Iterable[Placement]) -> tuple[Held, ...]:
    return tuple(
        Held(
            role=at.role,
            index=at.index,
            node=at.node,
            each=spec.member_at(at.role, at.index).flavour.resources,
            gpus=at.gpus,
        )
        for at in placements
    )


def _seconds(moment: datetime | None) -> float:
    return 0.0 if moment is None else moment.timestamp()
