"""What a run hears of (events) and what it wants done (an Advance), as data.

The shell stores an Advance in one transaction and only then does what it asks for outside; each of those questions is
answered by an event. Doing one twice after a crash is harmless: nothing has started for a node before the answer to its
``Prepare`` was stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias

from paddleflow.domain.commands import SubmitJob
from paddleflow.domain.ids import FilesystemId, JobId, RunId, UserName
from paddleflow.domain.jobs import JobStatus
from paddleflow.domain.runs import ArtifactEvent, CacheEntry, Fingerprint, Part, RunNode, RunStatus
from paddleflow.planning.plan import Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """What a run is called and whose it is: the values behind the system parameters and the paths."""

    run_id: RunId
    owner: UserName
    source: str
    fs_id: FilesystemId | None = None
    """Of the main filesystem."""
    fs_name: str = ""


# Events: what has happened outside.


@dataclass(frozen=True, slots=True, kw_only=True)
class Begin:
    """Look at everything: the run is new, or somebody has just taken it up again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """The answer to a Fetch."""

    key: str
    contents: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Artifact name → the text of each of its files, in order."""
    error: str = ""
    """Why they could not be read; the node fails with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """The answer to a Prepare: the step may start, or its result is there already."""

    key: str
    fingerprint: Fingerprint | None = None
    hit: CacheEntry | None = None
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    """Something people should read beside a node that waits."""

    key: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEnded:
    key: str
    status: JobStatus
    """Terminal."""
    message: str = ""
    at: datetime
    refused: bool = False
    """The job was never made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StopAsked:
    force: bool = False


RunEvent: TypeAlias = Begin | Fetched | Prepared | Noted | JobEnded | StopAsked


# What is asked of the shell.


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetch:
    """Read these files of the main filesystem: a loop or a condition depends on them."""

    key: str
    """Of the node; of a loop that is not unrolled yet, the key its nodes will begin with."""
    paths: Mapping[str, tuple[str, ...]]
    """Artifact name → where it lies."""
    limit: int
    """Each file must have fewer bytes than this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepare:
    """Before a step starts: find out whether its result exists, else make way for its outputs."""

    key: str
    identity: Mapping[str, Part] | None = None
    """What the step is, taken apart; None: its result is never reused and need not be looked for."""
    inputs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Contents to fingerprint: artifact name → paths."""
    scopes: tuple[Scope, ...] = ()
    outputs: tuple[str, ...] = ()
    """Paths of the main filesystem to make way for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Advance:
    """One step forward of a run: what to store, in one transaction, and what to do then."""

    nodes: tuple[RunNode, ...] = ()
    """As they are now; only those that changed, each once."""
    submit: tuple[tuple[str, SubmitJob], ...] = ()
    stop: tuple[JobId, ...] = ()
    cache: tuple[CacheEntry, ...] = ()
    artifacts: tuple[ArtifactEvent, ...] = ()
    status: RunStatus | None = None
    """None: as before."""
    message: str = ""
    fetch: tuple[Fetch, ...] = ()
    prepare: tuple[Prepare, ...] = ()
