"""Commands about filesystems. Type ``local`` (a directory of the host) is what runtimes can mount today."""

from __future__ import annotations

import posixpath
from dataclasses import replace

from paddleflow.domain import commands
from paddleflow.domain.errors import Duplicate, InUse, Invalid, NotFound
from paddleflow.domain.events import EventKind
from paddleflow.domain.filesystems import Filesystem
from paddleflow.domain.ids import UserName, filesystem_id
from paddleflow.domain.names import check_filesystem_name, check_text
from paddleflow.domain.queries import PageRequest, RunFilter
from paddleflow.domain.runs import RUN_ACTIVE
from paddleflow.domain.users import ResourceType
from paddleflow.engine.context import Answer, Context

_NAME_LIMIT = 59
"""User and name together: both become part of names with a limit of their own on a cluster."""


def create_filesystem(ctx: Context, command: commands.CreateFilesystem) -> Answer:
    owner = _owner(ctx, command.owner)
    name = check_filesystem_name(command.name)
    if len(owner) + len(name) > _NAME_LIMIT:
        raise Invalid(
            f"fs name[{name}] and user name together may have {_NAME_LIMIT} characters",
            code="FileSystemNameFormatError",
        )
    fs_id = filesystem_id(owner, name)
    if ctx.uow.filesystems.find(fs_id) is not None:
        raise Duplicate(f"fs[{name}] of user[{owner}] already exists", code="DuplicatedName")
    ctx.uow.filesystems.add(
        Filesystem(
            id=fs_id,
            name=name,
            owner=owner,
            type="local",
            sub_path=_local_directory(command.url),
            properties=dict(command.properties),
            independent_mount_process=command.independent_mount_process,
            created_at=ctx.now,
            updated_at=ctx.now,
        )
    )
    ctx.emit(EventKind.FILESYSTEM_CREATED, fs_id, owner)
    return {"fsName": name, "fsID": fs_id}


def update_filesystem(ctx: Context, command: commands.UpdateFilesystem) -> Answer:
    filesystem = _filesystem(ctx, command.name, command.owner)
    directory = _local_directory(command.url)
    if directory != filesystem.sub_path:
        _refuse_in_use(ctx, filesystem)
    ctx.uow.filesystems.save(
        replace(
            filesystem,
            sub_path=directory,
            properties=dict(command.properties),
            independent_mount_process=command.independent_mount_process,
            updated_at=ctx.now,
        )
    )
    ctx.emit(EventKind.FILESYSTEM_UPDATED, filesystem.id, filesystem.owner)
    return {"fsName": filesystem.name, "fsID": filesystem.id}


def delete_filesystem(ctx: Context, command: commands.DeleteFilesystem) -> Answer:
    filesystem = _filesystem(ctx, command.name, command.owner)
    _refuse_in_use(ctx, filesystem)
    ctx.uow.grants.delete_of_resource(ResourceType.FILESYSTEM, filesystem.id)
    ctx.uow.filesystems.delete(filesystem.id)
    ctx.emit(EventKind.FILESYSTEM_DELETED, filesystem.id, filesystem.owner)
    return {}


def _refuse_in_use(ctx: Context, filesystem: Filesystem) -> None:
    where = RunFilter(owners=frozenset({filesystem.owner}), fs_names=frozenset({filesystem.name}), statuses=RUN_ACTIVE)
    active = ctx.uow.runs.page(where, PageRequest(limit=1)).rows
    if active:
        raise InUse(f"fs[{filesystem.name}] is used by run[{active[0].id}], which has not ended; stop it first")


def _owner(ctx: Context, name: str) -> UserName:
    owner = UserName(name or ctx.actor.name)
    if ctx.uow.users.find(owner) is None:
        raise NotFound(f"user[{owner[:80]}] does not exist", code="UserNotExist")
    return owner


def _filesystem(ctx: Context, name: str, owner: str) -> Filesystem:
    user = UserName(owner or ctx.actor.name)
    filesystem = ctx.uow.filesystems.find(filesystem_id(user, name))
    if filesystem is None:
        raise NotFound(f"username[{user}] not create fsName[{name[:80]}]", code="RecordNotFound")
    return filesystem


def _local_directory(url: str) -> str:
    """The absolute directory of a ``local://…`` address."""
    code = "InvalidFileSystemParamsURL"
    check_text("url", url, limit=4096, code=code)
    scheme, separator, rest = url.partition(":")
    if not separator or scheme != "local":
        raise Invalid(
            f"url[{url[:80]}] is not supported: filesystems of type local are, written local:///directory", code=code
        )
    directory = posixpath.normpath("/" + rest.lstrip("/"))
    first = directory.split("/")[1]
    if first in ("", "root") or ".." in rest.split("/"):
        raise Invalid(f"url[{url[:80]}] must name a directory below / other than /root", code=code)
    return directory
