"""Cache configuration and cache statistics of filesystems on the wire."""

# ruff: noqa: N815  the names of the fields are the names on the wire

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field
from typing_extensions import TypedDict

from paddleflow.api.wire import Quantity, WireRequest, local_time
from paddleflow.domain.commands import CacheSettings, CreateCacheConfig, ReportCache, UpdateCacheConfig
from paddleflow.domain.filesystems import CacheConfig, Filesystem
from paddleflow.domain.ids import MountId
from paddleflow.domain.mounts import NodeCache


class CacheLimitsRequest(WireRequest):
    cpuLimit: Quantity | None = None
    memoryLimit: Quantity | None = None


class CacheSettingsRequest(WireRequest):
    """What is not given is left as it is; in a new configuration, as a mount has it by itself."""

    username: str = ""
    cacheDir: str | None = None
    quota: int | None = None
    metaDriver: str | None = None
    blockSize: int | None = None
    debug: bool | None = None
    cleanCache: bool | None = None
    resource: CacheLimitsRequest = CacheLimitsRequest()
    nodeTaintToleration: dict[str, str] | None = None
    extraConfig: dict[str, str] | None = None

    def settings(self) -> CacheSettings:
        return CacheSettings(
            cache_dir=self.cacheDir,
            quota=self.quota,
            meta_driver=self.metaDriver,
            block_size=self.blockSize,
            debug=self.debug,
            clean_cache=self.cleanCache,
            cpu_limit=self.resource.cpuLimit,
            memory_limit=self.resource.memoryLimit,
            node_taint_toleration=self.nodeTaintToleration,
            extra_config=self.extraConfig,
        )

    def to_update(self, fs_name: str) -> UpdateCacheConfig:
        return UpdateCacheConfig(fs_name=fs_name, settings=self.settings(), owner=self.username)


class CacheConfigRequest(CacheSettingsRequest):
    fsName: str = ""

    def to_create(self) -> CreateCacheConfig:
        return CreateCacheConfig(fs_name=self.fsName, settings=self.settings(), owner=self.username)


class CacheLimitsAnswer(TypedDict):
    cpuLimit: str
    memoryLimit: str


class CacheConfigAnswer(TypedDict):
    cacheDir: str
    quota: int
    metaDriver: str
    blockSize: int
    debug: bool
    cleanCache: bool
    resource: CacheLimitsAnswer
    nodeTaintToleration: dict[str, str]
    extraConfig: dict[str, str]
    fsName: str
    username: str
    createTime: str
    updateTime: str


def cache_config_answer(filesystem: Filesystem, config: CacheConfig) -> CacheConfigAnswer:
    return {
        "cacheDir": config.cache_dir,
        "quota": config.quota,
        "metaDriver": config.meta_driver,
        "blockSize": config.block_size,
        "debug": config.debug,
        "cleanCache": config.clean_cache,
        "resource": {"cpuLimit": config.cpu_limit, "memoryLimit": config.memory_limit},
        "nodeTaintToleration": dict(config.node_taint_toleration),
        "extraConfig": dict(config.extra_config),
        "fsName": filesystem.name,
        "username": filesystem.owner,
        "createTime": local_time(config.created_at),
        "updateTime": local_time(config.updated_at),
    }


class MountReportRequest(WireRequest):
    fsID: str = ""
    mountID: str = ""
    bytes: int = 0
    files: int = 0
    totalBytes: int = 0
    """Of the filesystem, as far as the mount has seen it; 0: it cannot tell."""
    hits: int = 0
    misses: int = 0
    hitBytes: int = 0
    missBytes: int = 0
    versions: dict[str, int] = Field(default_factory=dict)
    """Cached bytes below some paths."""


class CacheReportRequest(WireRequest):
    node: str = ""
    mounts: list[MountReportRequest] = Field(default_factory=list, max_length=100)

    def to_commands(self) -> list[ReportCache]:
        return [
            ReportCache(
                id=MountId(mount.mountID),
                node=self.node,
                cached_bytes=mount.bytes,
                cached_files=mount.files,
                total_bytes=mount.totalBytes,
                hits=mount.hits,
                misses=mount.misses,
                hit_bytes=mount.hitBytes,
                miss_bytes=mount.missBytes,
                prefixes=mount.versions,
            )
            for mount in self.mounts
        ]


class NodeCacheAnswer(TypedDict):
    node: str
    bytes: int
    files: int
    totalBytes: int
    hits: int
    misses: int
    hitBytes: int
    missBytes: int
    hitRatio: float | None
    """Of the bytes read, the part that came from the cache; null: nothing was read."""
    versions: dict[str, int]
    updateTime: str


class CacheStatsAnswer(TypedDict):
    fsName: str
    fsID: str
    hitRatio: float | None
    nodes: list[NodeCacheAnswer]


def node_cache_answer(cache: NodeCache) -> NodeCacheAnswer:
    return {
        "node": cache.node,
        "bytes": cache.cached_bytes,
        "files": cache.cached_files,
        "totalBytes": cache.total_bytes,
        "hits": cache.hits,
        "misses": cache.misses,
        "hitBytes": cache.hit_bytes,
        "missBytes": cache.miss_bytes,
        "hitRatio": cache.hit_ratio,
        "versions": dict(cache.prefixes),
        "updateTime": local_time(cache.reported_at),
    }


def cache_stats_answer(filesystem: Filesystem, caches: Sequence[NodeCache]) -> CacheStatsAnswer:
    hit = sum(cache.hit_bytes for cache in caches)
    read = hit + sum(cache.miss_bytes for cache in caches)
    return {
        "fsName": filesystem.name,
        "fsID": filesystem.id,
        "hitRatio": hit / read if read else None,
        "nodes": [node_cache_answer(cache) for cache in caches],
    }
