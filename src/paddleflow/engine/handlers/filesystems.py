"""Commands about filesystems and their links.

Secrets among the properties are sealed here and never leave again in an answer, an event or an error. Whether a storage
can be reached was found out before (``engine.storage_desk``): a transaction never waits for a network.

A link may hang in a filesystem of type ``local`` too, which the original refused: mounts show both alike.
"""

from __future__ import annotations

from dataclasses import replace

from paddleflow.domain import commands
from paddleflow.domain.errors import Duplicate, InUse, Invalid, NotFound
from paddleflow.domain.events import EventKind
from paddleflow.domain.filesystems import Filesystem, Link, check_link_path, check_not_nested
from paddleflow.domain.ids import UserName, filesystem_id
from paddleflow.domain.mounts import SEEN_WITHIN
from paddleflow.domain.names import check_filesystem_name
from paddleflow.domain.queries import PageRequest, RunFilter
from paddleflow.domain.runs import RUN_ACTIVE
from paddleflow.domain.snapshots import SnapshotState
from paddleflow.domain.storages import (
    FILESYSTEM_CODES,
    Storage,
    check_secrets_stay_home,
    parse_link_storage,
    parse_storage,
    sealed_properties,
    with_kept_secrets,
)
from paddleflow.domain.users import ResourceType
from paddleflow.engine.context import Answer, Context

_NAME_LIMIT = 59
"""User and name together: both become part of names with a limit of their own on a cluster."""
_MOST_LINKS = 100


def create_filesystem(ctx: Context, command: commands.CreateFilesystem) -> Answer:
    owner = _owner(ctx, command.owner)
    name = check_filesystem_name(command.name)
    if len(owner) + len(name) > _NAME_LIMIT:
        raise Invalid(
            f"fs name[{name}] and user name together may have {_NAME_LIMIT} characters",
            code="FileSystemNameFormatError",
        )
    storage = parse_storage(command.url, command.properties)
    fs_id = filesystem_id(owner, name)
    if ctx.uow.filesystems.find(fs_id) is not None:
        raise Duplicate(f"fs[{name}] of user[{owner}] already exists", code="DuplicatedName")
    ctx.uow.filesystems.add(
        Filesystem(
            id=fs_id,
            name=name,
            owner=owner,
            type=storage.type,
            server_address=storage.server_address,
            sub_path=storage.sub_path,
            properties=sealed_properties(storage.properties, ctx.seal),
            independent_mount_process=command.independent_mount_process,
            created_at=ctx.now,
            updated_at=ctx.now,
        )
    )
    ctx.emit(EventKind.FILESYSTEM_CREATED, fs_id, owner)
    return {"fsName": name, "fsID": fs_id}


def update_filesystem(ctx: Context, command: commands.UpdateFilesystem) -> Answer:
    filesystem = the_filesystem(ctx, command.name, command.owner)
    properties = with_kept_secrets(command.properties, filesystem.properties, ctx.unseal, FILESYSTEM_CODES)
    storage = parse_storage(command.url, properties)
    check_secrets_stay_home(filesystem.storage, storage, command.properties, FILESYSTEM_CODES)
    if _place(storage) != _place(filesystem.storage):
        refuse_mounted(ctx, filesystem)
        _refuse_in_use(ctx, filesystem)
    ctx.uow.filesystems.save(
        replace(
            filesystem,
            type=storage.type,
            server_address=storage.server_address,
            sub_path=storage.sub_path,
            properties=sealed_properties(storage.properties, ctx.seal),
            independent_mount_process=command.independent_mount_process,
            updated_at=ctx.now,
        )
    )
    ctx.emit(EventKind.FILESYSTEM_UPDATED, filesystem.id, filesystem.owner)
    return {"fsName": filesystem.name, "fsID": filesystem.id}


def delete_filesystem(ctx: Context, command: commands.DeleteFilesystem) -> Answer:
    filesystem = the_filesystem(ctx, command.name, command.owner)
    refuse_mounted(ctx, filesystem)
    _refuse_in_use(ctx, filesystem)
    _refuse_scheduled(ctx, filesystem)
    ctx.uow.grants.delete_of_resource(ResourceType.FILESYSTEM, filesystem.id)
    ctx.uow.filesystems.delete(filesystem.id)
    ctx.emit(EventKind.FILESYSTEM_DELETED, filesystem.id, filesystem.owner)
    return {}


def create_link(ctx: Context, command: commands.CreateLink) -> Answer:
    filesystem = the_filesystem(ctx, command.fs_name, command.owner)
    path = check_link_path(command.fs_path)
    storage = parse_link_storage(command.url, command.properties)
    links = ctx.uow.links.of_filesystem(filesystem.id)
    check_not_nested(path, [link.fs_path for link in links])
    if len(links) >= _MOST_LINKS:
        raise Invalid(f"fs[{filesystem.name}] has {len(links)} links, and more are not allowed; delete one first")
    ctx.uow.links.add(
        Link(
            fs_id=filesystem.id,
            fs_path=path,
            owner=filesystem.owner,
            type=storage.type,
            server_address=storage.server_address,
            sub_path=storage.sub_path,
            properties=sealed_properties(storage.properties, ctx.seal),
            created_at=ctx.now,
            updated_at=ctx.now,
        )
    )
    ctx.emit(EventKind.LINK_CREATED, filesystem.id, filesystem.owner, path=path)
    return {}


def delete_link(ctx: Context, command: commands.DeleteLink) -> Answer:
    filesystem = the_filesystem(ctx, command.fs_name, command.owner)
    path = check_link_path(command.fs_path)
    if ctx.uow.links.find(filesystem.id, path) is None:
        raise NotFound(f"fs[{filesystem.name}] has no link at [{path[:80]}]", code="LinkNotExist")
    ctx.uow.links.delete(filesystem.id, path)
    ctx.emit(EventKind.LINK_DELETED, filesystem.id, filesystem.owner, path=path)
    return {}


def refuse_mounted(ctx: Context, filesystem: Filesystem) -> None:
    mounts = ctx.uow.mounts.of_filesystem(filesystem.id, ctx.now - SEEN_WITHIN)
    if mounts:
        where = f" at [{mounts[0].mountpoint[:80]}]" if mounts[0].mountpoint else ""
        where += f" on node[{mounts[0].node}]" if mounts[0].node else ""
        raise InUse(f"fs[{filesystem.name}] is mounted{where} by user[{mounts[0].user}]; unmount it first")


def _place(storage: Storage) -> tuple[str, str, str, str]:
    return (storage.type, storage.server_address, storage.sub_path, storage.properties.get("bucket", ""))


def _refuse_in_use(ctx: Context, filesystem: Filesystem) -> None:
    where = RunFilter(owners=frozenset({filesystem.owner}), fs_names=frozenset({filesystem.name}), statuses=RUN_ACTIVE)
    active = ctx.uow.runs.page(where, PageRequest(limit=1)).rows
    if active:
        raise InUse(f"fs[{filesystem.name}] is used by run[{active[0].id}], which has not ended; stop it first")
    for snapshot in ctx.uow.snapshots.in_state(frozenset({SnapshotState.CREATING})):
        if snapshot.fs_id == filesystem.id:
            raise InUse(f"snapshot[{snapshot.id}] of fs[{filesystem.name}] is being made; wait for it or delete it")


def _refuse_scheduled(ctx: Context, filesystem: Filesystem) -> None:
    for schedule in ctx.uow.schedules.running():
        version = ctx.uow.pipelines.find_version(schedule.pipeline_id, schedule.version_id)
        if version is not None and version.fs_id == filesystem.id:
            raise InUse(f"fs[{filesystem.name}] is used by schedule[{schedule.id}]; stop it first")


def _owner(ctx: Context, name: str) -> UserName:
    owner = UserName(name or ctx.actor.name)
    if ctx.uow.users.find(owner) is None:
        raise NotFound(f"user[{owner[:80]}] does not exist", code="UserNotExist")
    return owner


def the_filesystem(ctx: Context, name: str, owner: str) -> Filesystem:
    user = UserName(owner or ctx.actor.name)
    filesystem = ctx.uow.filesystems.find(filesystem_id(user, name))
    if filesystem is None:
        raise NotFound(f"username[{user}] not create fsName[{name[:80]}]", code="RecordNotFound")
    return filesystem
