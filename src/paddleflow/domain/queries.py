"""Filters and pages for lists, and questions about what would happen.

Every list is ordered by the store's row number, oldest first, and continues after a marker: the row number of the
last row shown. The filter takes part in the question whether more follows, so a truncated page always has a next one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Generic, TypeVar

from paddleflow.domain.clusters import Node
from paddleflow.domain.commands import SubmitJob
from paddleflow.domain.ids import (
    DEFAULT_CLUSTER,
    ClusterName,
    JobId,
    NodeName,
    PipelineId,
    QueueName,
    RunId,
    ScheduleId,
    UserName,
    VersionId,
)
from paddleflow.domain.jobs import JobStatus
from paddleflow.domain.resources import Resources
from paddleflow.domain.runs import ArtifactUse, RunStatus
from paddleflow.domain.schedules import ScheduleStatus

Row = TypeVar("Row")

REPLAY_POLICIES = ("paddleflow", "fifo", "backfill", "edl")
"""Who may decide in a replay: the platform's own scheduler, and three others to compare it with."""
MOST_REPLAYED = 5_000
"""Jobs in one replay that a server is asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRequest:
    limit: int = 50
    after: int = 0
    """Row number of the last row that was seen; 0: the first page."""
    newest_first: bool = False
    """The rows that were added last come first. Only jobs and runs can be listed so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Generic[Row]):
    rows: tuple[Row, ...]
    next_after: int | None
    """The marker of the next page, or None when this was the last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFilter:
    owner: UserName | None = None
    statuses: frozenset[JobStatus] = frozenset()
    """Empty: any."""
    queue: QueueName | None = None
    cluster: ClusterName | None = None
    updated_since: datetime | None = None
    activated_since: datetime | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    """All must match."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFilter:
    """An empty set: any. A value must be in each of the others."""

    owners: frozenset[UserName] = frozenset()
    fs_names: frozenset[str] = frozenset()
    ids: frozenset[RunId] = frozenset()
    names: frozenset[str] = frozenset()
    statuses: frozenset[RunStatus] = frozenset()
    schedule: ScheduleId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheFilter:
    owners: frozenset[UserName] = frozenset()
    fs_names: frozenset[str] = frozenset()
    run_ids: frozenset[RunId] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactFilter:
    owners: frozenset[UserName] = frozenset()
    fs_names: frozenset[str] = frozenset()
    run_ids: frozenset[RunId] = frozenset()
    uses: frozenset[ArtifactUse] = frozenset()
    paths: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineFilter:
    owners: frozenset[UserName] = frozenset()
    names: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleFilter:
    owners: frozenset[UserName] = frozenset()
    ids: frozenset[ScheduleId] = frozenset()
    names: frozenset[str] = frozenset()
    pipelines: frozenset[PipelineId] = frozenset()
    versions: frozenset[VersionId] = frozenset()
    statuses: frozenset[ScheduleStatus] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class FlavourFilter:
    name_contains: str = ""
    cluster: ClusterName | None = None
    """None: only flavours bound to no cluster. Given: those, and that cluster's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueFilter:
    name: QueueName | None = None
    among: frozenset[QueueName] | None = None
    """None: any; else only these (what a user was granted)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFilter:
    names: frozenset[ClusterName] = frozenset()
    status: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Eta:
    """When a job is expected to start: as likely before the median as after it, and rarely outside low and high."""

    job_id: JobId
    status: JobStatus
    low: datetime | None = None
    """None, as for the other two: it cannot be told, or there is nothing to wait for."""
    median: datetime | None = None
    high: datetime | None = None
    confidence: float = 0.0
    """The share of starts that such a forecast gets right, 0 to 1."""
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueChange:
    """A queue as it might be; None leaves an amount as it is, and of amounts only the named ones change."""

    name: QueueName
    max_resources: Resources | None = None
    min_resources: Resources | None = None
    weight: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf:
    """What would the scheduler do next, were these things so? Nothing of it is carried out."""

    queues: tuple[QueueChange, ...] = ()
    nodes: tuple[Node, ...] = ()
    """Nodes to add; their names are made up and tell nothing."""
    without_nodes: tuple[NodeName, ...] = ()
    job: SubmitJob | None = None
    """A job to submit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WouldStart:
    job_id: JobId
    nodes: tuple[NodeName, ...]
    """One for each of its tasks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WouldResize:
    job_id: JobId
    before: int
    after: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WouldEvict:
    job_id: JobId
    in_favour_of: JobId


@dataclass(frozen=True, slots=True, kw_only=True)
class WouldRun:
    """What would become of the job the question asks about."""

    starts: bool
    sentence: str
    nodes: tuple[NodeName, ...] = ()
    details: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIfAnswer:
    sentence: str
    starts: tuple[WouldStart, ...] = ()
    shrinks: tuple[WouldResize, ...] = ()
    grows: tuple[WouldResize, ...] = ()
    evictions: tuple[WouldEvict, ...] = ()
    job: WouldRun | None = None
    """None: the question asks about no job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PastJobs:
    """Which of the jobs that have run: chosen by the time of their submission, the earliest first."""

    since: datetime | None = None
    until: datetime | None = None
    """Not included."""
    cluster: ClusterName | None = None
    """None: any."""
    limit: int = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayQuestion:
    """How would these jobs have fared on that cluster? Nothing of it is carried out."""

    trace: str | None = None
    """The text of a CSV file; None: the jobs this platform has run, of the cluster named below."""
    past: PastJobs = PastJobs()
    """Which of those."""
    description: Mapping[str, object] | None = None
    """Nodes, queues and costs; None: the nodes and queues of the cluster named below, as they are now."""
    cluster: ClusterName = DEFAULT_CLUSTER
    policies: tuple[str, ...] = REPLAY_POLICIES[:1]
    load: float | None = None
    limit: int | None = None
    """None: all, and an error if they are too many."""
    sort: bool = False
