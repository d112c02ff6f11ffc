"""What one cycle of the scheduler has decided, as values that the platform or a replay carries out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace

from paddleflow.domain.ids import JobId, QueueName
from paddleflow.domain.jobs import Spot
from paddleflow.scheduling import reasons
from paddleflow.scheduling.entries import Waiting
from paddleflow.scheduling.reasons import Reason

Because = Callable[[], Reason]
"""Made into words only when somebody asks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    job_id: JobId
    spots: tuple[Spot, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """Room that is being freed for a waiting job; no spots: what it had claimed cannot come any more."""

    job_id: JobId
    spots: tuple[Spot, ...]
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Eviction:
    job_id: JobId
    in_favour_of: JobId
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Resize:
    """Tasks added to a running elastic job, or taken from it."""

    job_id: JobId
    add: tuple[Spot, ...] = ()
    drop: tuple[Spot, ...] = ()
    reason: Reason
    in_favour_of: JobId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingGrowth:
    """An elastic job with room to grow from ``size`` to ``larger`` that keeps its size until ``at``."""

    job_id: JobId
    size: int
    larger: int
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """Room kept for a job that has to wait: where it will start, and when at the latest if that can be known."""

    job_id: JobId
    spots: tuple[Spot, ...]
    starts_by: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocked:
    """The first job of a queue that has to wait, and why. Those behind it may pass if they do not delay it."""

    job: Waiting
    because: Because

    @property
    def reason(self) -> Reason:
        return self.because()


@dataclass(frozen=True, slots=True, kw_only=True)
class Decisions:
    admissions: tuple[Admission, ...] = ()
    reservations: tuple[Reservation, ...] = ()
    evictions: tuple[Eviction, ...] = ()
    resizes: tuple[Resize, ...] = ()
    promises: tuple[Promise, ...] = ()
    pending_growths: tuple[PendingGrowth, ...] = ()
    blocked: Mapping[QueueName, Blocked] = field(default_factory=dict)
    causes: Mapping[JobId, Because] = field(default_factory=dict)
    """Of every job that was looked at and has to wait."""
    refused: Mapping[str, Because] = field(default_factory=dict)
    """By kin: jobs that can neither start nor have room freed for them as things are."""
    wake_at: float | None = None
    """When to decide again though nothing has happened."""

    @property
    def changes_anything(self) -> bool:
        return bool(self.admissions or self.reservations or self.evictions or self.resizes)

    @property
    def subjects(self) -> frozenset[JobId]:
        """Every job that is to be started, moved or told of room."""
        started = {each.job_id for each in self.admissions} | {each.job_id for each in self.reservations}
        moved = {each.job_id for each in self.evictions} | {each.job_id for each in self.resizes}
        return frozenset(started | moved)

    def only(self, accepted: Collection[JobId]) -> Decisions:
        """The part of it that was carried out."""
        return replace(
            self,
            admissions=tuple(each for each in self.admissions if each.job_id in accepted),
            reservations=tuple(each for each in self.reservations if each.job_id in accepted),
            evictions=tuple(each for each in self.evictions if each.job_id in accepted),
            resizes=tuple(each for each in self.resizes if each.job_id in accepted),
        )

    def reason_of(self, job: Waiting) -> Reason | None:
        """Why this job waits; None when it was admitted."""
        because = self.causes.get(job.job_id)
        if because is not None:
            return because()
        if any(admission.job_id == job.job_id for admission in self.admissions):
            return None
        because = self.refused.get(job.kin)
        if because is not None:
            return because()
        head = self.blocked.get(job.queue)
        if head is None or head.job.job_id == job.job_id:
            return None if head is None else head.reason
        return reasons.behind(head.job.job_id, job.queue, head.reason)
