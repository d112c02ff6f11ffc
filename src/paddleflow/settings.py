"""Every setting: its default, its unit, and what it does. Read by ``wiring`` and by nothing else.

A setting is given in the configuration file (YAML, one section for each class below), in the environment
(``PADDLEFLOW_SERVER_PORT`` for ``port`` of section ``server``), or as a flag of ``paddleflow serve``; later ones win.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    host: str = "127.0.0.1"
    """Address to listen on. The default is reachable from this machine only."""
    port: int = 8999
    """TCP port; 0 chooses a free one."""
    token_life_h: float = 24.0
    """Hours until a login token expires."""
    log_level: str = "info"
    """debug, info, warning or error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateSettings:
    dir: str = ""
    """Directory of everything this installation keeps; empty: ~/.local/state/paddleflow (or below XDG_STATE_HOME)."""
    database_url: str = ""
    """Empty: SQLite in the state directory. postgresql://user:password@host/database for PostgreSQL, which several
    servers may share; give them the same installation.key in their state directories, or each refuses the others'
    tokens."""
    root_password: str = "paddleflow"
    """Password of root in a new installation; never applied to an existing one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSettings:
    """A node to simulate. Its tasks run on this machine; its capacity is what is written here."""

    name: str
    """With ``count`` above one, -1, -2 … are appended."""
    cpu: str = "8"
    """Kubernetes quantity."""
    memory: str = "16Gi"
    """Kubernetes quantity."""
    gpus: int = 0
    """GPUs, numbered from 0 in CUDA_VISIBLE_DEVICES."""
    count: int = 1
    """How many of them."""
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalSettings:
    nodes: tuple[NodeSettings, ...] = ()
    """Nodes to simulate; none: this machine as it is."""
    images: str = "refuse"
    """What becomes of a job or step that names an image, which a process of this machine cannot use: refuse, or ignore
    (it runs without, and its message says so)."""
    log_cap_mib: float = 64.0
    """Mebibytes kept of one task's log: half from its beginning, at least a quarter from its end. A line between them
    says how much is left out."""
    stop_grace_s: float = 10.0
    """Seconds between TERM and KILL."""
    sample_every_s: float = 10.0
    """Seconds between two samples of a running task's use."""
    first_port: int = 20000
    """First port of those given to tasks that must find each other (distributed and elastic jobs)."""
    last_port: int = 29999
    """Last of them. Keep the range below net.ipv4.ip_local_port_range, from which any program may be given one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerSettings:
    settle_s: float = 60.0
    """Seconds for which an elastic job keeps its size after a change before it may grow again. It keeps it longer where
    the workers it could add need longer to make up for the cost of the change (``rescaleCostSeconds`` times its
    workers, divided by the workers it could add). It shrinks at any time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineSettings:
    max_loop_items: int = 10_000
    """Items of one loop."""
    max_nodes: int = 20_000
    """Steps and dags of one run, loops unrolled."""
    max_parallelism: int = 1_000
    """The highest number of steps one run works on at a time; a pipeline that asks for more gets this."""
    workers: int = 4
    """Threads that read artifacts and fingerprint inputs before a step starts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesystemSettings:
    cache_dir: str = ""
    """Directory in which the mounts of jobs cache; empty: ~/.cache/paddleflow/fs (or below XDG_CACHE_HOME), which this
    user's own mounts share. A filesystem's cache configuration goes before it."""
    cache_gib: float = 64.0
    """How large it may grow; a tenth of the disk is left free besides."""
    memory_cache_gib: float = 0.0
    """Gibibytes of memory for small files, before the disk."""
    mount_idle_s: float = 60.0
    """Seconds after which a mount that no job uses is unmounted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    server: ServerSettings = ServerSettings()
    state: StateSettings = StateSettings()
    local: LocalSettings = LocalSettings()
    scheduler: SchedulerSettings = SchedulerSettings()
    pipelines: PipelineSettings = PipelineSettings()
    filesystems: FilesystemSettings = FilesystemSettings()
