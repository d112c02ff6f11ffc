"""What may be asked about jobs, decided for them by the scheduler, or reported by a runtime."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from paddleflow.domain.ids import (
    JobId,
)
from paddleflow.domain.jobs import JobSpec, Spot, TaskReport


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitJob:
    spec: JobSpec
    """Flavours and filesystems by name; the handler resolves them."""
    id: str = ""
    """Chosen by the user, or empty."""
    name: str = ""
    queue: str = ""
    priority: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    host_env: Mapping[str, str] = field(default_factory=dict)
    """Variables of whoever submits it from this very machine, for tasks that are processes of it as well: they find
    the same programs and files. What a member's own environment says goes before; elsewhere they mean nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateJob:
    """Labels and annotations are merged; an empty value removes the key."""

    id: JobId
    priority: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class StopJob:
    id: JobId


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteJob:
    id: JobId


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmitJob:
    """The scheduler's decision: these tasks on these nodes."""

    id: JobId
    spots: tuple[Spot, ...]
    image_note: str = ""
    """Said to a job that names an image: what its runtime does with it."""
    placement_note: str = ""
    """Why there and not elsewhere, where there was something to choose by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReserveRoom:
    """Room is being freed for this waiting job, and nobody else may have it. No spots: the claim is given up."""

    id: JobId
    spots: tuple[Spot, ...]
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvictJob:
    """Take the job off its nodes in favour of another."""

    id: JobId
    in_favour_of: JobId
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResizeJob:
    """Add tasks to a running elastic job, or take some away."""

    id: JobId
    add: tuple[Spot, ...] = ()
    drop: tuple[tuple[str, int], ...] = ()
    """Role and index of each."""
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpireJob:
    """The job has run longer than its deadline allows."""

    id: JobId


@dataclass(frozen=True, slots=True, kw_only=True)
class FailJob:
    """The platform could not run the job (the runtime refused to launch it)."""

    id: JobId
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetRemains:
    """A runtime holds nothing of this deleted job any more."""

    id: JobId


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportTask:
    report: TaskReport
