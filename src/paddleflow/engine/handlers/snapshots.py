"""Commands about snapshots. Making and removing what lies on the storage is the archivist's work."""

from __future__ import annotations

from dataclasses import replace

from paddleflow.domain import commands
from paddleflow.domain.errors import Conflict, InUse, NotFound, invalid_field
from paddleflow.domain.events import EventKind
from paddleflow.domain.filesystems import RESERVED
from paddleflow.domain.ids import SnapshotId
from paddleflow.domain.mounts import SEEN_WITHIN
from paddleflow.domain.names import can_be_kept, check_sub_path, check_text
from paddleflow.domain.snapshots import Snapshot, SnapshotKind, SnapshotState
from paddleflow.engine.context import Answer, Context
from paddleflow.engine.handlers.filesystems import the_filesystem

_NAME_LIMIT = 256
_MESSAGE_LIMIT = 4096


def create_snapshot(ctx: Context, command: commands.CreateSnapshot) -> Answer:
    filesystem = the_filesystem(ctx, command.fs_name, command.owner)
    sub_path = check_sub_path("subPath", command.sub_path, code="InvalidArguments")
    for field, value in (("name", command.name), ("subPath", sub_path)):
        if not can_be_kept(value):
            raise invalid_field(field, "it is no plain text")
    if sub_path.split("/")[0] == RESERVED:
        raise invalid_field("subPath", f"{RESERVED} is the platform's own directory, and no part of a snapshot")
    snapshot = Snapshot(
        id=SnapshotId(ctx.new_id("snap", 16)),
        fs_id=filesystem.id,
        owner=filesystem.owner,
        name=check_text("name", command.name, limit=_NAME_LIMIT),
        sub_path=sub_path,
        kind=SnapshotKind.COPY if command.copy else SnapshotKind.MANIFEST,
        created_at=ctx.now,
        updated_at=ctx.now,
    )
    ctx.uow.snapshots.add(snapshot)
    ctx.emit(EventKind.SNAPSHOT_REQUESTED, snapshot.id, filesystem.owner, fsID=filesystem.id)
    return {"snapshotID": snapshot.id}


def delete_snapshot(ctx: Context, command: commands.DeleteSnapshot) -> Answer:
    filesystem = the_filesystem(ctx, command.fs_name, command.owner)
    snapshot = ctx.uow.snapshots.find(command.id)
    if snapshot is None or snapshot.fs_id != filesystem.id:
        raise NotFound(f"fs[{filesystem.name}] has no snapshot[{command.id[:80]}]", code="RecordNotFound")
    for mount in ctx.uow.mounts.of_filesystem(filesystem.id, ctx.now - SEEN_WITHIN):
        if mount.snapshot == snapshot.id:
            raise InUse(f"snapshot[{snapshot.id}] is mounted by user[{mount.user}]; unmount it first")
    if snapshot.state is not SnapshotState.DELETING:
        ctx.uow.snapshots.save(replace(snapshot, state=SnapshotState.DELETING, updated_at=ctx.now))
        ctx.emit(EventKind.SNAPSHOT_DELETING, snapshot.id, filesystem.owner, fsID=filesystem.id)
    return {}


def report_snapshot(ctx: Context, command: commands.ReportSnapshot) -> Answer:
    snapshot = ctx.uow.snapshots.find(command.id)
    if snapshot is None:
        raise NotFound(f"snapshot[{command.id}] is gone", code="RecordNotFound")
    if snapshot.state is not SnapshotState.CREATING:
        raise Conflict(f"snapshot[{command.id}] is {snapshot.state} and not being made any more")
    ended = command.state
    ctx.uow.snapshots.save(
        replace(
            snapshot,
            files=command.files,
            bytes=command.bytes,
            state=snapshot.state if ended is None else ended,
            message=command.message[:_MESSAGE_LIMIT],
            updated_at=ctx.now,
        )
    )
    if ended is not None:
        ctx.emit(EventKind.SNAPSHOT_ENDED, snapshot.id, snapshot.owner, fsID=snapshot.fs_id, state=ended)
    return {}


def forget_snapshot(ctx: Context, command: commands.ForgetSnapshot) -> Answer:
    snapshot = ctx.uow.snapshots.find(command.id)
    if snapshot is not None:
        ctx.uow.snapshots.delete(snapshot.id)
        ctx.emit(EventKind.SNAPSHOT_DELETED, snapshot.id, snapshot.owner, fsID=snapshot.fs_id)
    return {}
