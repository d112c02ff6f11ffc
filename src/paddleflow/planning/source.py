"""A pipeline as it was written: frozen nodes that say exactly what the text says, and where it says it.

Nothing is resolved here: references are names, templates are text, what was left out is None.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from paddleflow.domain.runs import Value

Path: TypeAlias = tuple[str | int, ...]
"""Where in the document: ``("entry_points", "train", "env", "LR")``."""

RAY_ENTRY_POINT: Final = "RAY_JOB_ENTRY_POINT"
"""The variable of a distributed step that goes before its command."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedParameter:
    """``{type: int, default: 3}``."""

    type: str
    default: Value


Written: TypeAlias = "Value | TypedParameter"


@dataclass(frozen=True, slots=True, kw_only=True)
class FsSource:
    name: str
    mount_path: str = ""
    sub_path: str = ""
    read_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeSource:
    """A path of a filesystem whose content belongs to a step's fingerprint."""

    name: str
    path: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheSource:
    enable: bool | None = None
    max_expired_time: str | None = None
    """As written, in seconds; checking makes it a number."""
    fs_scope: tuple[ScopeSource, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrySource:
    times: int
    backoff_s: float = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StepSource:
    name: str
    at: Path
    deps: tuple[str, ...] = ()
    command: str = ""
    docker_env: str = ""
    parameters: Mapping[str, Written] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    inputs: Mapping[str, str] = field(default_factory=dict)
    outputs: tuple[str, ...] = ()
    cache: CacheSource | None = None
    reference: str = ""
    """The component it takes its body from."""
    extra_fs: tuple[FsSource, ...] = ()
    loop: Value = None
    """None: no loop."""
    condition: str = ""
    retry: RetrySource | None = None
    timeout_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DagSource:
    name: str
    at: Path
    deps: tuple[str, ...] = ()
    parameters: Mapping[str, Written] = field(default_factory=dict)
    inputs: Mapping[str, str] = field(default_factory=dict)
    outputs: Mapping[str, str] = field(default_factory=dict)
    """Name → the template of a child's output."""
    nodes: Mapping[str, NodeSource] = field(default_factory=dict)
    loop: Value = None
    condition: str = ""


NodeSource: TypeAlias = "StepSource | DagSource"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    name: str = ""
    docker_env: str = ""
    nodes: Mapping[str, NodeSource]
    """``entry_points``."""
    components: Mapping[str, NodeSource] = field(default_factory=dict)
    post_process: Mapping[str, StepSource] = field(default_factory=dict)
    cache: CacheSource = CacheSource()
    parallelism: int | None = None
    disabled: str = ""
    strategy: str = ""
    main_fs: FsSource | None = None
    extra_fs: tuple[FsSource, ...] = ()
    lines: Mapping[Path, int] = field(default_factory=dict)
    """The line of each key of the text, counted from one; empty when there is no text (a Python pipeline)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overrides:
    """What a request says beside the text; it wins."""

    name: str = ""
    parameters: Mapping[str, Value] = field(default_factory=dict)
    """``lr`` in every node that has it, or ``train.lr`` in one."""
    docker_env: str = ""
    disabled: str = ""
    strategy: str = ""
    fs_name: str = ""
    """Main filesystem, where the text names none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How large a pipeline and its runs may become."""

    loop_items: int = 10_000
    """Items of one loop."""
    nodes: int = 20_000
    """Nodes of one run, loops unrolled."""
    parallelism: int = 1_000
    """The highest ``parallelism`` that counts; more is taken as this."""
    depth: int = 20
    """Dags inside dags."""
