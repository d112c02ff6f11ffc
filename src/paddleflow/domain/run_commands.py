"""What may be asked about pipelines, runs and schedules, or decided for them by the runner and the timekeeper."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from paddleflow.domain.ids import (
    CacheId,
    JobId,
    PipelineId,
    RunId,
    ScheduleId,
    VersionId,
)
from paddleflow.domain.job_commands import SubmitJob
from paddleflow.domain.runs import ArtifactEvent, CacheEntry, RunNode, RunStatus, Value
from paddleflow.domain.schedules import ConcurrencyPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateRun:
    """A pipeline that has been read, checked and compiled (``engine.pipelines``), to be run."""

    owner: str = ""
    """Root may act for another user."""
    name: str
    source: str
    text: str
    plan: str
    fs_name: str = ""
    description: str = ""
    parameters: Mapping[str, Value] = field(default_factory=dict)
    docker_env: str = ""
    disabled: str = ""
    strategy: str = "fail_fast"
    schedule_id: ScheduleId | None = None
    scheduled_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StopRun:
    id: RunId
    force: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryRun:
    """A new run of the same plan that keeps what has succeeded."""

    id: RunId


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteRun:
    id: RunId
    check_cache: bool = True
    """Refuse while other runs rely on its results."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdvanceRun:
    """What ``planning.advance`` decided: nodes as they are now, jobs to start and stop, all or nothing.

    Refused as Stale unless the run still has version ``seen``.
    """

    id: RunId
    seen: int
    nodes: tuple[RunNode, ...] = ()
    """Only those that changed."""
    submit: tuple[tuple[str, SubmitJob], ...] = ()
    """The key of the node, and its job (with an id). A job that is refused fails its node with the reason."""
    stop: tuple[JobId, ...] = ()
    cache: tuple[CacheEntry, ...] = ()
    """Results that may be used from now on; their ids and numbers are given when they are stored."""
    artifacts: tuple[ArtifactEvent, ...] = ()
    status: RunStatus | None = None
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetRunRemains:
    """Nothing of this deleted run is left on its filesystem any more."""

    id: RunId


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteCacheEntry:
    id: CacheId


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteArtifact:
    """Forget the record of an artifact (the file stays with its run)."""

    owner: str = ""
    fs_name: str
    run_id: RunId
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatePipeline:
    """A pipeline that has been read and checked, to be kept."""

    owner: str = ""
    name: str
    text: str
    fs_name: str = ""
    yaml_path: str = ""
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdatePipeline:
    """A new version of it."""

    id: PipelineId
    owner: str = ""
    name: str
    """As written in the text: must be the pipeline's own."""
    text: str
    fs_name: str = ""
    yaml_path: str = ""
    description: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletePipeline:
    id: PipelineId


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletePipelineVersion:
    id: PipelineId
    version_id: VersionId


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateSchedule:
    owner: str = ""
    name: str
    description: str = ""
    pipeline_id: PipelineId
    version_id: VersionId
    crontab: str
    time_zone: str = "UTC"
    starts_at: datetime | None = None
    ends_at: datetime | None = None
    concurrency: int = 0
    policy: str = ConcurrencyPolicy.SUSPEND
    expire_s: int = 0
    catch_up: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class StopSchedule:
    id: ScheduleId


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteSchedule:
    id: ScheduleId


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedTick:
    at: datetime
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FireSchedule:
    """Ticks of a schedule dealt with, once each: refused as Stale unless the schedule still has version ``seen``."""

    id: ScheduleId
    seen: int
    start: tuple[CreateRun, ...] = ()
    skip: tuple[SkippedTick, ...] = ()
    stop: tuple[RunId, ...] = ()
    """Active runs that make room."""
    next_at: datetime | None = None
    """None: there is no further tick; the schedule ends when its end time has passed, at once if it has none."""
    failed: str = ""
    """The schedule cannot go on (its pipeline is gone or broken): why."""
