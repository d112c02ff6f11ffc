"""Schedules: cron rules that start runs of a stored pipeline."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from paddleflow.domain.ids import PipelineId, ScheduleId, UserName, VersionId


class ScheduleStatus(StrEnum):
    RUNNING = "running"
    SUCCESS = "success"
    """Its end time has passed."""
    FAILED = "failed"
    TERMINATED = "terminated"
    """Stopped by its owner."""


class ConcurrencyPolicy(StrEnum):
    """What happens to a tick while as many runs are active as may be."""

    SUSPEND = "suspend"
    """It waits until one ends."""
    REPLACE = "replace"
    """The oldest active run is stopped for it."""
    SKIP = "skip"
    """It is recorded as skipped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    id: ScheduleId
    name: str
    """Unique for its owner."""
    description: str = ""
    owner: UserName
    pipeline_id: PipelineId
    version_id: VersionId
    crontab: str
    """Five fields, ``@daily`` and the like, or ``@every 90s``; ``CRON_TZ=Asia/Tokyo `` in front chooses the zone."""
    time_zone: str = "UTC"
    """In which the fields are read."""
    starts_at: datetime | None = None
    ends_at: datetime | None = None
    concurrency: int = 0
    """Runs active at one time; 0: any number."""
    policy: ConcurrencyPolicy = ConcurrencyPolicy.SUSPEND
    expire_s: int = 0
    """A tick that is later than this is recorded as skipped; 0: never too late."""
    catch_up: bool = True
    """Ticks missed while nobody kept time are started after all; False: only the newest of them."""
    status: ScheduleStatus = ScheduleStatus.RUNNING
    message: str = ""
    next_at: datetime | None = None
    """The next tick that has not been dealt with."""
    created_at: datetime
    updated_at: datetime
    seq: int = 0
    version: int = 0
