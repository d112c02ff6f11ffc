"""Commands about cache configuration, mounts and what mounts report.

A mount is not given its token here: the token is a secret, and what a command answers is kept for repeated requests.
"""

from __future__ import annotations

from dataclasses import fields, replace

from paddleflow.domain import commands
from paddleflow.domain.access import may_use_filesystem
from paddleflow.domain.errors import Conflict, Duplicate, Invalid, NotFound, invalid_field, no_access, not_found
from paddleflow.domain.events import EventKind
from paddleflow.domain.filesystems import CacheConfig, check_cache_config
from paddleflow.domain.ids import FilesystemId, MountId, NodeName, SnapshotId
from paddleflow.domain.mounts import MOST_PREFIXES, CacheReport, Mount
from paddleflow.domain.names import can_be_kept, check_text
from paddleflow.domain.snapshots import SnapshotState
from paddleflow.engine.context import Answer, Context
from paddleflow.engine.handlers.filesystems import refuse_mounted, the_filesystem

_NODE_LIMIT = 253
_LARGEST = 2**63 - 1


def create_cache_config(ctx: Context, command: commands.CreateCacheConfig) -> Answer:
    filesystem = the_filesystem(ctx, command.fs_name, command.owner)
    refuse_mounted(ctx, filesystem)
    if ctx.uow.cache_configs.find(filesystem.id) is not None:
        raise Duplicate(f"fs[{filesystem.name}] has a cache configuration already; change or delete it")
    plain = CacheConfig(fs_id=filesystem.id, created_at=ctx.now, updated_at=ctx.now)
    ctx.uow.cache_configs.add(_with_settings(plain, command.settings))
    ctx.emit(EventKind.CACHE_CONFIG_SET, filesystem.id, filesystem.owner)
    return {}


def update_cache_config(ctx: Context, command: commands.UpdateCacheConfig) -> Answer:
    filesystem = the_filesystem(ctx, command.fs_name, command.owner)
    refuse_mounted(ctx, filesystem)
    config = _config(ctx, filesystem.id, filesystem.name)
    ctx.uow.cache_configs.save(replace(_with_settings(config, command.settings), updated_at=ctx.now))
    ctx.emit(EventKind.CACHE_CONFIG_SET, filesystem.id, filesystem.owner)
    return {}


def delete_cache_config(ctx: Context, command: commands.DeleteCacheConfig) -> Answer:
    filesystem = the_filesystem(ctx, command.fs_name, command.owner)
    refuse_mounted(ctx, filesystem)
    _config(ctx, filesystem.id, filesystem.name)
    ctx.uow.cache_configs.delete(filesystem.id)
    ctx.emit(EventKind.CACHE_CONFIG_DELETED, filesystem.id, filesystem.owner)
    return {}


def _config(ctx: Context, fs_id: FilesystemId, name: str) -> CacheConfig:
    config = ctx.uow.cache_configs.find(fs_id)
    if config is None:
        raise NotFound(f"fs[{name}] has no cache configuration", code="RecordNotFound")
    return config


def _with_settings(config: CacheConfig, settings: commands.CacheSettings) -> CacheConfig:
    said = {each.name: getattr(settings, each.name) for each in fields(settings)}
    return check_cache_config(replace(config, **{name: value for name, value in said.items() if value is not None}))


def open_mount(ctx: Context, command: commands.OpenMount) -> Answer:
    filesystem = ctx.uow.filesystems.find(command.fs_id)
    grants = () if ctx.actor.is_root else ctx.uow.grants.of_user(ctx.actor.name)
    if filesystem is None:
        raise not_found("fs", command.fs_id[:80])
    if not may_use_filesystem(ctx.actor, filesystem, grants):
        raise no_access(ctx.actor.name, "fs", filesystem.id, code="AccessDenied")
    snapshot = _snapshot(ctx, filesystem.id, command.snapshot)
    mount = Mount(
        id=MountId(ctx.new_id("mount", 16)),
        fs_id=filesystem.id,
        user=ctx.actor.name,
        node=_node(command.node),
        mountpoint=_path("mountpoint", command.mountpoint),
        read_only=command.read_only or snapshot is not None,
        snapshot=snapshot,
        created_at=ctx.now,
        seen_at=ctx.now,
    )
    ctx.uow.mounts.add(mount)
    ctx.emit(EventKind.MOUNT_OPENED, mount.id, filesystem.owner, fsID=filesystem.id, node=mount.node)
    return {"mountID": mount.id, "fsID": filesystem.id}


def _snapshot(ctx: Context, fs_id: FilesystemId, asked: str) -> SnapshotId | None:
    if not asked:
        return None
    snapshot = ctx.uow.snapshots.find(SnapshotId(asked))
    if snapshot is None or snapshot.fs_id != fs_id:
        raise Invalid(f"snapshot[{asked[:80]}] of this filesystem does not exist", details={"field": "snapshot"})
    if snapshot.state is not SnapshotState.READY:
        raise Conflict(f"snapshot[{snapshot.id}] is {snapshot.state} and can be mounted only when it is ready")
    return snapshot.id


def renew_mount(ctx: Context, command: commands.RenewMount) -> Answer:
    ctx.uow.mounts.save(replace(_mount(ctx, command.id), seen_at=ctx.now))
    return {}


def close_mount(ctx: Context, command: commands.CloseMount) -> Answer:
    mount = ctx.uow.mounts.find(command.id)
    if mount is None:
        raise not_found("mount", command.id[:80])
    filesystem = ctx.uow.filesystems.find(mount.fs_id)
    owner = None if filesystem is None else filesystem.owner
    if not ctx.actor.is_root and ctx.actor.name not in (mount.user, owner):
        raise no_access(ctx.actor.name, "mount", mount.id)
    ctx.uow.mounts.delete(mount.id)
    ctx.emit(EventKind.MOUNT_CLOSED, mount.id, owner, fsID=mount.fs_id, node=mount.node)
    return {}


def report_cache(ctx: Context, command: commands.ReportCache) -> Answer:
    mount = _mount(ctx, command.id)
    node = _node(command.node or mount.node)
    if not node:
        raise invalid_field("node", "it is empty; name the node whose cache this is")
    counts = {
        "bytes": command.cached_bytes,
        "files": command.cached_files,
        "totalBytes": command.total_bytes,
        "hits": command.hits,
        "misses": command.misses,
        "hitBytes": command.hit_bytes,
        "missBytes": command.miss_bytes,
        **{f"versions.{path[:80]}": size for path, size in command.prefixes.items()},
    }
    for name, value in counts.items():
        if not 0 <= value <= _LARGEST:
            raise invalid_field(name, f"{value} is not zero or above")
    if len(command.prefixes) > MOST_PREFIXES:
        raise invalid_field("versions", f"it has {len(command.prefixes)} entries, the limit is {MOST_PREFIXES}")
    for path in command.prefixes:
        _path("versions", path)
    ctx.uow.cache_reports.put(
        CacheReport(
            fs_id=mount.fs_id,
            node=NodeName(node),
            mount_id=mount.id,
            cached_bytes=command.cached_bytes,
            cached_files=command.cached_files,
            total_bytes=command.total_bytes,
            hits=command.hits,
            misses=command.misses,
            hit_bytes=command.hit_bytes,
            miss_bytes=command.miss_bytes,
            prefixes=dict(command.prefixes),
            reported_at=ctx.now,
        )
    )
    ctx.uow.mounts.save(replace(mount, node=node, seen_at=ctx.now))
    return {}


def _mount(ctx: Context, mount_id: MountId) -> Mount:
    """A mount speaks for itself alone."""
    mount = ctx.uow.mounts.find(mount_id)
    if mount is None:
        raise not_found("mount", mount_id[:80])
    if not ctx.actor.is_platform and mount.user != ctx.actor.name:
        raise no_access(ctx.actor.name, "mount", mount.id)
    return mount


def _node(name: str) -> str:
    check_text("node", name, limit=_NODE_LIMIT)
    if not can_be_kept(name):
        raise invalid_field("node", "it is no plain text")
    return name


def _path(field: str, path: str) -> str:
    check_text(field, path, limit=4096)
    if not can_be_kept(path):
        raise invalid_field(field, "it is no plain text")
    return path
