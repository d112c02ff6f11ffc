"""Commands about stored pipelines and their versions. What is handed in has been read and checked by the desk
(``engine.pipelines``); here it is kept, and kept apart by owner and name."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from paddleflow.domain import commands
from paddleflow.domain.access import require_owner
from paddleflow.domain.catalog import Pipeline, PipelineVersion
from paddleflow.domain.errors import Conflict, Duplicate, InUse, Invalid, NotFound, not_found
from paddleflow.domain.events import EventKind
from paddleflow.domain.ids import FilesystemId, PipelineId, UserName, VersionId, filesystem_id, numbered_id
from paddleflow.domain.names import check_text
from paddleflow.domain.queries import PageRequest, ScheduleFilter
from paddleflow.domain.schedules import ScheduleStatus
from paddleflow.engine.context import Answer, Context

_DESCRIPTION_LIMIT = 256
_PATH_LIMIT = 4096
_FIRST = VersionId("1")


def create_pipeline(ctx: Context, command: commands.CreatePipeline) -> Answer:
    owner = _owner(ctx, command.owner)
    if ctx.uow.pipelines.find_named(owner, command.name) is not None:
        raise Duplicate(
            f"pipeline[{command.name}] of user[{owner}] already exists; update it to store a new version",
            code="DuplicatedName",
            details={"name": command.name},
        )
    pipeline = ctx.uow.pipelines.add(
        Pipeline(
            id=PipelineId(numbered_id("ppl", ctx.uow.numbers.next("ppl"))),
            name=command.name,
            description=check_text("desc", command.description, limit=_DESCRIPTION_LIMIT),
            owner=owner,
            versions_made=1,
            created_at=ctx.now,
            updated_at=ctx.now,
        )
    )
    _add_version(ctx, pipeline.id, _FIRST, command, owner)
    ctx.emit(EventKind.PIPELINE_CREATED, pipeline.id, owner, name=pipeline.name, version=_FIRST)
    return {"pipelineID": pipeline.id, "pipelineVersionID": _FIRST, "name": pipeline.name}


def update_pipeline(ctx: Context, command: commands.UpdatePipeline) -> Answer:
    """A new version; those before it stay as they are."""
    pipeline = _owned(ctx, command.id)
    owner = _owner(ctx, command.owner)
    if command.name != pipeline.name:
        raise Invalid(
            f"pipeline[{pipeline.id}] has the name[{pipeline.name}] and the new version has the name"
            f"[{command.name[:80]}]; they must be the same",
            details={"field": "name"},
        )
    description = pipeline.description if command.description is None else command.description
    version_id = VersionId(str(pipeline.versions_made + 1))
    ctx.uow.pipelines.save(
        replace(
            pipeline,
            description=check_text("desc", description, limit=_DESCRIPTION_LIMIT),
            versions_made=pipeline.versions_made + 1,
            updated_at=ctx.now,
        )
    )
    _add_version(ctx, pipeline.id, version_id, command, owner)
    ctx.emit(EventKind.PIPELINE_UPDATED, pipeline.id, pipeline.owner, name=pipeline.name, version=version_id)
    return {"pipelineID": pipeline.id, "pipelineVersionID": version_id, "name": pipeline.name}


def delete_pipeline(ctx: Context, command: commands.DeletePipeline) -> Answer:
    """With all its versions. Runs keep the text they were started from."""
    pipeline = _owned(ctx, command.id)
    _refuse_if_scheduled(ctx, pipeline.id)
    ctx.uow.pipelines.delete(pipeline.id)
    ctx.emit(EventKind.PIPELINE_DELETED, pipeline.id, pipeline.owner, name=pipeline.name)
    return {}


def delete_pipeline_version(ctx: Context, command: commands.DeletePipelineVersion) -> Answer:
    pipeline = _owned(ctx, command.id)
    version = ctx.uow.pipelines.find_version(pipeline.id, command.version_id)
    if version is None:
        raise not_found("pipelineVersion", f"{pipeline.id}-{command.version_id[:80]}", code="PipelineNotFound")
    if ctx.uow.pipelines.count_versions(pipeline.id) == 1:
        raise Conflict(
            f"version[{version.id}] is the only one left of pipeline[{pipeline.id}]; delete the pipeline instead",
            code="ActionNotAllowed",
        )
    _refuse_if_scheduled(ctx, pipeline.id, version.id)
    ctx.uow.pipelines.delete_version(pipeline.id, version.id)
    # The pipeline is written too: of two servers that each delete one of the last two versions, one has to look again.
    ctx.uow.pipelines.save(replace(pipeline, updated_at=ctx.now))
    ctx.emit(EventKind.PIPELINE_UPDATED, pipeline.id, pipeline.owner, name=pipeline.name, deleted_version=version.id)
    return {}


def _add_version(
    ctx: Context,
    pipeline_id: PipelineId,
    version_id: VersionId,
    command: commands.CreatePipeline | commands.UpdatePipeline,
    owner: UserName,
) -> None:
    ctx.uow.pipelines.add_version(
        PipelineVersion(
            pipeline_id=pipeline_id,
            id=version_id,
            fs_id=_filesystem(ctx, owner, command.fs_name),
            fs_name=command.fs_name,
            yaml_path=check_text("yamlPath", command.yaml_path, limit=_PATH_LIMIT),
            text=command.text,
            digest=hashlib.sha256(command.text.encode()).hexdigest(),
            owner=owner,
            created_at=ctx.now,
            updated_at=ctx.now,
        )
    )


def _filesystem(ctx: Context, owner: UserName, name: str) -> FilesystemId | None:
    if not name:
        return None
    fs_id = filesystem_id(owner, name)
    if ctx.uow.filesystems.find(fs_id) is None:
        raise Invalid(f"user[{owner}] has no filesystem [{name[:80]}]", details={"field": "fsName"})
    return fs_id


def _owner(ctx: Context, name: str) -> UserName:
    owner = UserName(name or ctx.actor.name)
    if ctx.uow.users.find(owner) is None:
        raise NotFound(f"user[{owner[:80]}] does not exist", code="UserNotExist")
    return owner


def _owned(ctx: Context, pipeline_id: PipelineId) -> Pipeline:
    pipeline = ctx.uow.pipelines.find(pipeline_id)
    if pipeline is None:
        raise not_found("pipeline", pipeline_id[:80], code="PipelineNotFound")
    require_owner(ctx.actor, pipeline.owner, "pipeline", pipeline.id, code="AccessDenied")
    return pipeline


def _refuse_if_scheduled(ctx: Context, pipeline_id: PipelineId, version_id: VersionId | None = None) -> None:
    where = ScheduleFilter(
        pipelines=frozenset({pipeline_id}),
        versions=frozenset() if version_id is None else frozenset({version_id}),
        statuses=frozenset({ScheduleStatus.RUNNING}),
    )
    users = ctx.uow.schedules.page(where, PageRequest(limit=1)).rows
    if users:
        what = f"pipeline[{pipeline_id}]" + (f" version[{version_id}]" if version_id else "")
        raise InUse(
            f"{what} is used by schedule[{users[0].id}], which is running; stop that first",
            code="ActionNotAllowed",
            details={"schedule": users[0].id},
        )
