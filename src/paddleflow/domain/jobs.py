"""Jobs and tasks: what users ask for, where it was placed, how far it has come.

The words of the status are those of the wire. A job is a set of members (one for a single job); each member has a
role and a number of replicas; each replica is a task, which is one process of the local runtime or one pod.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum, StrEnum

from paddleflow.domain.ids import ClusterName, JobId, NodeName, QueueName, TaskId, UserName
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
    node_selector: Mapping[str, str] = field(default_factory=dict)
    """Labels a node must carry for a task of this role."""

    @property
    def mounts(self) -> tuple[FsRef, ...]:
        return (() if self.fs is None else (self.fs,)) + self.extra_fs


@dataclass(frozen=True, slots=True, kw_only=True)
class Elasticity:
    """How many tasks of one role a job can live with. The scheduler chooses the number and may change it while the job
    runs; the member's own ``replicas`` says where it would like to begin."""

    role: str = "worker"
    least: int
    most: int
    sizes: tuple[int, ...] = ()
    """The numbers the model accepts, rising (1, 2, 4, 8); empty: every one from least to most."""
    rescale_cost_s: float = 30.0
    """What a change of size costs the job: it is not grown again before the change has paid for itself."""

    @property
    def allowed(self) -> tuple[int, ...]:
        return self.sizes or tuple(range(self.least, self.most + 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPolicy:
    """What happens when things end, early or late."""

    retries: int = 0
    """How often a failed job is started again. Evictions are not failures and cost nothing of it."""
    backoff_s: float = 10.0
    """Waited before the first new start, doubled for each further one, at most ten minutes."""
    deadline_s: float | None = None
    """An attempt that runs longer is stopped and the job fails. Backfilling relies on it."""
    ttl_s: float | None = None
    """Deleted so long after it has ended; None: kept."""
    grace_s: float | None = None
    """Between TERM and KILL; None: as the server is set."""
    requeue: bool = True
    """An evicted job waits again for its turn; False: it ends as preempted."""

    def backoff_after(self, failures: int) -> float:
        return min(600.0, self.backoff_s * 2.0 ** max(0, min(failures, 16) - 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec:
    kind: JobKind = JobKind.SINGLE
    framework: Framework = Framework.STANDALONE
    members: tuple[Member, ...]
    extension_template: Mapping[str, object] | None = None
    elastic: Elasticity | None = None
    policy: RunPolicy = RunPolicy()

    @property
    def request(self) -> Resources:
        """What the whole job asks for; of an elastic job, what it asks for at its smallest."""
        total = NOTHING
        for member in self.members:
            total = total + member.flavour.resources * self.least_of(member)
        return total

    def least_of(self, member: Member) -> int:
        """How many tasks of this role the job needs to start."""
        elastic = self.elastic
        return elastic.least if elastic is not None and elastic.role == member.role else member.replicas

    @property
    def slots(self) -> Iterator[tuple[Member, int]]:
        """Every task the job starts with: its member, and its index within the role."""
        counts: dict[str, int] = {}
        for member in self.members:
            for _ in range(self.least_of(member)):
                index = counts.get(member.role, 0)
                counts[member.role] = index + 1
                yield member, index

    def member_at(self, role: str, index: int) -> Member:
        """The member that a task belongs to. Several members may share a role; an elastic role has one."""
        seen = 0
        among = [member for member in self.members if member.role == role]
        for member in among:
            seen += member.replicas
            if index < seen:
                return member
        return among[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """Where the scheduler wants one task: which task, which node, which of its GPUs."""

    role: str
    index: int
    node: NodeName
    gpus: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """A task on its spot."""

    task_id: TaskId
    role: str
    index: int
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
    """The tasks the job consists of now."""
    leaving: tuple[Placement, ...] = ()
    """Tasks taken out of the running job; they hold their room until they have ended."""
    claim: tuple[Spot, ...] = ()
    """Of a waiting job: room that is being freed for it and that nobody else may have."""
    outcome: JobStatus | None = None
    """Of a job whose tasks are being stopped: what it becomes when the last has ended."""
    generation: int = 0
    """Counts the times tasks were added, so that a task id never means two processes."""
    failures: int = 0
    """Failed attempts; they use up the policy's retries."""
    not_before: datetime | None = None
    """Waits at least so long: the back-off after a failure."""
    resized_at: datetime | None = None
    created_at: datetime
    activated_at: datetime | None = None
    """First seen running."""
    started_at: datetime | None = None
    """When the present attempt was seen running."""
    finished_at: datetime | None = None
    updated_at: datetime
    seq: int = 0
    """Row number, given by the store: first come, first served within a priority."""
    version: int = 0

    @property
    def is_terminal(self) -> bool:
        return self.status in TERMINAL

    @property
    def task_ids(self) -> frozenset[TaskId]:
        """The tasks that hold room now, those on their way out included."""
        return frozenset(placement.task_id for placement in (*self.placements, *self.leaving))

    @property
    def held(self) -> Resources:
        """What those hold together."""
        total = NOTHING
        for placement in (*self.placements, *self.leaving):
            total = total + self.spec.member_at(placement.role, placement.index).flavour.resources
        return total


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
class Address:
    """Where the other tasks of a job find one of them."""

    host: str
    ports: tuple[int, ...]
    """Reserved for this task alone, as many as its framework asks for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """Who belongs to a running job now, as published to its tasks."""

    job_id: JobId
    generation: int
    """Rises with every change."""
    least: int
    most: int
    tasks: tuple[tuple[Placement, Address], ...]
    """Ordered by role, then index."""


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
