"""What may be asked about what belongs to a filesystem: links, cache settings, mounts, cache reports, snapshots."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from paddleflow.domain.ids import FilesystemId, MountId, SnapshotId
from paddleflow.domain.snapshots import SnapshotState


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateLink:
    """Show another storage at a path of a filesystem."""

    fs_name: str
    fs_path: str
    url: str
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    owner: str = ""
    """Root may act for another user; the same in what follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteLink:
    fs_name: str
    fs_path: str
    owner: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheSettings:
    """None: not said. A new configuration then has the default, a changed one what it had."""

    cache_dir: str | None = None
    quota: int | None = None
    meta_driver: str | None = None
    block_size: int | None = None
    debug: bool | None = None
    clean_cache: bool | None = None
    cpu_limit: str | None = None
    memory_limit: str | None = None
    node_taint_toleration: Mapping[str, str] | None = None
    extra_config: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateCacheConfig:
    fs_name: str
    settings: CacheSettings
    owner: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateCacheConfig:
    fs_name: str
    settings: CacheSettings
    owner: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteCacheConfig:
    fs_name: str
    owner: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenMount:
    fs_id: FilesystemId
    node: str = ""
    mountpoint: str = ""
    read_only: bool = False
    snapshot: str = ""
    """Mount a snapshot and not the filesystem as it is; read-only then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RenewMount:
    """A mount is still there."""

    id: MountId


@dataclass(frozen=True, slots=True, kw_only=True)
class CloseMount:
    id: MountId


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportCache:
    """What a mount says of its node's cache of its filesystem."""

    id: MountId
    node: str
    cached_bytes: int = 0
    cached_files: int = 0
    total_bytes: int = 0
    hits: int = 0
    misses: int = 0
    hit_bytes: int = 0
    miss_bytes: int = 0
    prefixes: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateSnapshot:
    fs_name: str
    name: str = ""
    sub_path: str = ""
    copy: bool = False
    """Keep the files too, and not only which versions there were."""
    owner: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteSnapshot:
    fs_name: str
    id: SnapshotId
    owner: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportSnapshot:
    """How far a snapshot has come. None: it is still being made."""

    id: SnapshotId
    files: int
    bytes: int
    state: SnapshotState | None = None
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetSnapshot:
    """Nothing is left of a deleted snapshot."""

    id: SnapshotId


StorageCommand = (
    CreateLink
    | DeleteLink
    | CreateCacheConfig
    | UpdateCacheConfig
    | DeleteCacheConfig
    | OpenMount
    | RenewMount
    | CloseMount
    | ReportCache
    | CreateSnapshot
    | DeleteSnapshot
    | ReportSnapshot
    | ForgetSnapshot
)
