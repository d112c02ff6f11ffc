"""Runs: one execution of a pipeline each, made of nodes; what they read and wrote; what may be reused.

A node of the plan becomes one *run node* for each item of its loop (one, when it has none): a step is one job, a dag
holds others. The plan itself is kept as text here: what it means is the business of ``planning``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TypeAlias

from paddleflow.domain.ids import CacheId, FilesystemId, JobId, RunId, ScheduleId, UserName

Value: TypeAlias = "str | int | float | bool | list[Value] | None"
"""What a parameter or a loop item can be."""


RUNS_DIRECTORY = ".pipeline"
"""On a run's main filesystem: below it every run has a directory of its own for what its steps make."""


class RunStatus(StrEnum):
    INITIATING = "initiating"
    """Stored; nobody has looked at it yet."""
    PENDING = "pending"
    RUNNING = "running"
    TERMINATING = "terminating"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TERMINATED = "terminated"
    SKIPPED = "skipped"
    """A tick of a schedule that was recorded and not run."""


RUN_ENDED = frozenset({RunStatus.SUCCEEDED, RunStatus.FAILED, RunStatus.TERMINATED, RunStatus.SKIPPED})
RUN_ACTIVE = frozenset(RunStatus) - RUN_ENDED


class Stop(StrEnum):
    """What was asked of a run, remembered: a restart does not forget it."""

    NO = ""
    GENTLE = "stop"
    """Stop the steps; the post-process still runs."""
    FORCE = "force"
    """Stop the post-process too, or do not start it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    id: RunId
    name: str
    owner: UserName
    source: str
    """Where the pipeline came from: a path on the filesystem, ``<pipeline>-<version>``, or a digest of the text."""
    text: str
    """The pipeline as it was written."""
    plan: str
    """What it was compiled to: versioned JSON, see ``planning.plan``."""
    fs_id: FilesystemId | None = None
    """The main filesystem: where artifacts live."""
    fs_name: str = ""
    description: str = ""
    parameters: Mapping[str, Value] = field(default_factory=dict)
    """What the request overrode."""
    docker_env: str = ""
    disabled: str = ""
    strategy: str = "fail_fast"
    schedule_id: ScheduleId | None = None
    scheduled_at: datetime | None = None
    retry_of: RunId | None = None
    status: RunStatus = RunStatus.INITIATING
    stop: Stop = Stop.NO
    message: str = ""
    created_at: datetime
    activated_at: datetime | None = None
    finished_at: datetime | None = None
    updated_at: datetime
    seq: int = 0
    version: int = 0

    @property
    def is_ended(self) -> bool:
        return self.status in RUN_ENDED


class NodeKind(StrEnum):
    STEP = "step"
    DAG = "dag"


class NodeStatus(StrEnum):
    PENDING = "pending"
    """Its turn has come or will come; nothing runs for it yet."""
    RUNNING = "running"
    """Of a step: its job exists (the job says whether it waits or runs). Of a dag: its children may run."""
    TERMINATING = "terminating"
    """Its job was told to stop."""
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TERMINATED = "terminated"
    CANCELLED = "cancelled"
    """Never started, because something else ended first."""
    SKIPPED = "skipped"
    """Disabled, or its condition was false, or its loop had no items. Counts as done."""


NODE_ENDED = frozenset(
    {NodeStatus.SUCCEEDED, NodeStatus.FAILED, NodeStatus.TERMINATED, NodeStatus.CANCELLED, NodeStatus.SKIPPED}
)
NODE_DONE = frozenset({NodeStatus.SUCCEEDED, NodeStatus.SKIPPED})
"""Those that let what depends on them begin."""

NO_ITEMS = -1
"""The ``seq`` of the one node that stands for a loop without items."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One thing a step's result depends on."""

    digest: str
    shown: str = ""
    """The value as people may see it, shortened; empty where it may be a secret or is a file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint:
    """What a step is, and what it reads: equal fingerprints mean an equal result."""

    first: str
    """Of the step itself: command, image, environment, parameters, names of artifacts, filesystems."""
    second: str
    """Of contents: input artifacts and the watched paths of filesystems."""
    parts: Mapping[str, Part]
    """Both taken apart, by names such as ``command``, ``parameters.lr``, ``inputs.data``, ``fs_scope.main:/src``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunNode:
    """One node of a run, for one item of its loop. What it was given is filled in when it starts."""

    run_id: RunId
    key: str
    """Unique in the run: ``train``; ``sub[2].train[5]`` for the item 5 of a loop inside the item 2 of another."""
    node: str
    """Its full name in the plan: ``sub.train``."""
    kind: NodeKind
    parent: str = ""
    """The key of the dag it is in; empty at the top."""
    seq: int = 0
    item: Value = None
    """Of a loop."""
    in_loop: bool = False
    id: str = ""
    """What users call it: the job's id for a step, ``dag-…`` for a dag; empty until it starts."""
    job_id: JobId | None = None
    """The job that runs or ran it, in this run or (reused, or kept by a retry) another."""
    status: NodeStatus = NodeStatus.PENDING
    message: str = ""
    parameters: Mapping[str, Value] = field(default_factory=dict)
    inputs: Mapping[str, str] = field(default_factory=dict)
    """Name → path on the main filesystem; those of a looped producer are joined by commas."""
    outputs: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    command: str = ""
    fingerprint: Fingerprint | None = None
    """Of a step whose result may be reused."""
    cache_run_id: RunId | None = None
    """Where the result was taken from, when it was reused."""
    source_run: RunId | None = None
    """The run in whose directory the outputs lie, when it is not this one (reused, or kept by a retry)."""
    started_at: datetime | None = None
    finished_at: datetime | None = None

    @property
    def is_ended(self) -> bool:
        return self.status in NODE_ENDED


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheEntry:
    """A result that may be used again. Written when a step has succeeded, never before."""

    id: CacheId
    fingerprint: Fingerprint
    run_id: RunId
    job_id: JobId
    node: str
    """The full name of the step in its plan."""
    source: str
    owner: UserName
    fs_id: FilesystemId | None
    fs_name: str = ""
    outputs: Mapping[str, str] = field(default_factory=dict)
    expires_after_s: int = -1
    """Seconds after ``updated_at``; -1: never."""
    created_at: datetime
    updated_at: datetime
    seq: int = 0


class ArtifactUse(StrEnum):
    INPUT = "input"
    OUTPUT = "output"


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactEvent:
    """A step read an artifact or made one."""

    run_id: RunId
    fs_id: FilesystemId
    fs_name: str
    owner: UserName
    path: str
    step: str
    """The full name of the step."""
    job_id: JobId
    use: ArtifactUse
    name: str
    piece: int = 0
    """Of an input that a loop made: which of its items."""
    meta: str = ""
    created_at: datetime
    updated_at: datetime
    seq: int = 0
