"""Jobs and tasks: what users ask for, where it was placed, how far it has come.

The words of the status are those of the wire. A job is a set of members (one for a single job); each member has a
role and a number of replicas; each replica is a task, which is one process of the local runtime or one pod.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum, StrEnum

from paddleflow.domain.ids import ClusterName, JobId, NodeName, QueueName, TaskId, UserName, task_id
from paddleflow.domain.resources import NOTHING, Resources


class JobStatus(StrEnum):
    INIT = "init"
    """Stored; waits in its queue."""
    PENDING = "pending"
    """Admitted and placed; the runtime has been, or is being, told."""
    RUNNING = "running"
    TERMINATING = "terminating"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TERMINATED = "terminated"
    PREEMPTING = "preempting"
    PREEMPTED = "preempted"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"


TERMINAL = frozenset(
    {
        JobStatus.SUCCEEDED,
        JobStatus.FAILED,
        JobStatus.TERMINATED,
        JobStatus.PREEMPTED,
        JobStatus.CANCELLED,
        JobStatus.SKIPPED,
    }
)
HOLDING = frozenset({JobStatus.PENDING, JobStatus.RUNNING, JobStatus.TERMINATING, JobStatus.PREEMPTING})
"""A job in one of these holds the resources it was placed on."""
ACTIVE = HOLDING | {JobStatus.INIT}


class JobKind(StrEnum):
    SINGLE = "single"
    DISTRIBUTED = "distributed"
    WORKFLOW = "workflow"


class Framework(StrEnum):
    STANDALONE = "standalone"
    PADDLE = "paddle"
    PYTORCH = "pytorch"
    TENSORFLOW = "tensorflow"
    MPI = "mpi"
    RAY = "ray"
    SPARK = "spark"


class Priority(IntEnum):
    """Higher goes first. The wire spells the name."""

    VERY_LOW = 1
    LOW = 2
    NORMAL = 3
    HIGH = 4
    VERY_HIGH = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class FlavourRef:
    """A flavour as a job knows it: by name, by amounts, or (once resolved) by both."""

    name: str = ""
    resources: Resources = NOTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class FsRef:
    """A filesystem to mount. The submitter gives the first four; the rest is filled in when the job is accepted."""

    name: str
    mount_path: str = ""
    sub_path: str = ""
    read_only: bool = False
    id: str = ""
    type: str = ""
    host_path: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One role of a job."""

    role: str = "worker"
    replicas: int = 1
    name: str = ""
    flavour: FlavourRef = FlavourRef()
    limit: FlavourRef | None = None
    """None: the limits are the requests."""
    fs: FsRef | None = None
    extra_fs: tuple[FsRef, ...] = ()
    image: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    command: str = ""
    args: tuple[str, ...] = ()
    port: int = 0
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)

    @property
    def mounts(self) -> tuple[FsRef, ...]:
        return (() if self.fs is None else (self.fs,)) + self.extra_fs


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec:
    kind: JobKind = JobKind.SINGLE
    framework: Framework = Framework.STANDALONE
    members: tuple[Member, ...]
    extension_template: Mapping[str, object] | None = None

    @property
    def request(self) -> Resources:
        """What the whole job asks for."""
        total = NOTHING
        for member in self.members:
            total = total + member.flavour.resources * member.replicas
        return total

    def task_slots(self, job_id: JobId) -> Iterator[tuple[TaskId, Member, int]]:
        """Every task the job consists of: its id, its member and its index within the role."""
        counts: dict[str, int] = {}
        for member in self.members:
            for _ in range(member.replicas):
                index = counts.get(member.role, 0)
                counts[member.role] = index + 1
                yield task_id(job_id, member.role, index), member, index


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Where one task goes: a node, and which of its GPUs."""

    task_id: TaskId
    node: NodeName
    gpus: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    id: JobId
    name: str
    owner: UserName
    queue: QueueName
    cluster: ClusterName
    """The queue's cluster when the job was accepted."""
    priority: Priority = Priority.NORMAL
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    spec: JobSpec
    status: JobStatus = JobStatus.INIT
    message: str = ""
    placements: tuple[Placement, ...] = ()
    created_at: datetime
    activated_at: datetime | None = None
    """First seen running."""
    finished_at: datetime | None = None
    updated_at: datetime
    seq: int = 0
    """Row number, given by the store: first come, first served within a priority."""
    version: int = 0

    @property
    def is_terminal(self) -> bool:
        return self.status in TERMINAL


class TaskStatus(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a task has used so far, as its runtime accounts it."""

    cpu_s: float = 0.0
    max_memory_bytes: int = 0
    memory_bytes: int = 0
    """Right now; zero once it has ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    id: TaskId
    job_id: JobId
    role: str
    index: int
    node: NodeName
    gpus: tuple[int, ...] = ()
    status: TaskStatus = TaskStatus.PENDING
    message: str = ""
    exit_code: int | None = None
    signal: int | None = None
    usage: Usage = Usage()
    started_at: datetime | None = None
    finished_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskReport:
    """What a runtime observed of a task: its present level, never a difference."""

    task_id: TaskId
    job_id: JobId
    status: TaskStatus
    message: str = ""
    exit_code: int | None = None
    signal: int | None = None
    usage: Usage = Usage()
    started_at: datetime | None = None
    finished_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BindMount:
    """A host directory shown to one task at a path of its own."""

    source: str
    target: str
    read_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskLaunch:
    """Everything a runtime needs to start one task, made by ``frameworks`` from a job and its placement."""

    task_id: TaskId
    job_id: JobId
    node: NodeName
    argv: tuple[str, ...]
    env: Mapping[str, str]
    """Complete but for what the runtime itself adds (PATH, HOME, CUDA_VISIBLE_DEVICES)."""
    work_dir: str = ""
    """Absolute; empty: the task's own private directory."""
    mounts: tuple[BindMount, ...] = ()
    limits: Resources = NOTHING
    gpus: tuple[int, ...] = ()
