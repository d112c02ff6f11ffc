"""The plan: what compiling gives and a run is made of. Everything static is settled in it.

References are resolved, overrides applied, defaults merged, names unique, dependencies acyclic, templates checked; what
only a run can know (upstream values, loop items, contents) is left as templates. It is stored with the run as versioned
JSON (``codec``), so that a newer release can still finish a run that an older one began.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from paddleflow.domain.runs import NodeKind, Value

PLAN_VERSION = 1
POST_PROCESS = "post_process"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    name: str
    """Of the filesystem; it belongs to the run's owner."""
    mount_path: str = ""
    sub_path: str = ""
    read_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    fs_name: str
    path: str
    """Relative to the filesystem's root; empty: all of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CachePolicy:
    enable: bool = False
    expires_after_s: int = -1
    scopes: tuple[Scope, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    times: int = 0
    backoff_s: float = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopItems:
    """Known when the plan was made."""

    items: tuple[Value, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopParameter:
    """The value of an own parameter: a list, or a text that is a JSON list."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopArtifact:
    """The content of an own input artifact: a JSON list."""

    name: str


Loop: TypeAlias = LoopItems | LoopParameter | LoopArtifact


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactRef:
    """Another node's artifact: a sibling's output, a child's output, or (``node`` empty) an input of the parent dag."""

    node: str
    """The sibling's or child's own (short) name."""
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanNode:
    path: str
    """Full name: ``sub.train``; of the post-process ``post_process.notify``."""
    name: str
    """Its own: ``train``. No dots."""
    kind: NodeKind
    parent: str = ""
    """The path of the dag it is in; empty at the top."""
    deps: tuple[str, ...] = ()
    """Own names of siblings."""
    disabled: bool = False
    loop: Loop | None = None
    condition: str = ""
    parameters: Mapping[str, Value] = field(default_factory=dict)
    """Texts may hold templates: system parameters, ``{{up.p}}``, ``{{PF_PARENT.p}}``."""
    inputs: Mapping[str, ArtifactRef] = field(default_factory=dict)
    outputs: Mapping[str, ArtifactRef | None] = field(default_factory=dict)
    """Of a step: names, None each. Of a dag: a child's output each."""
    children: tuple[str, ...] = ()
    """Of a dag: the paths of its nodes, in topological order."""
    command: str = ""
    docker_env: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    cache: CachePolicy = CachePolicy()
    mounts: tuple[Mount, ...] = ()
    """Beside the main filesystem: the step's own, then those of the whole pipeline."""
    retry: Retry = Retry()
    timeout_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    version: int = PLAN_VERSION
    name: str
    """Of the run: it is part of every artifact's path."""
    nodes: Mapping[str, PlanNode]
    """By path, parents before children, each dag's children in topological order; the post-process last."""
    top: tuple[str, ...]
    """The paths of the nodes at the top, in topological order."""
    post_process: str = ""
    """The path of the step that runs when all else has ended; empty: none."""
    strategy: str = "fail_fast"
    parallelism: int = 10
    docker_env: str = ""
    disabled: str = ""
    main_fs: Mount | None = None
