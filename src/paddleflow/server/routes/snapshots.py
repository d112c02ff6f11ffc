"""Snapshots of filesystems."""

from __future__ import annotations

from starlette.responses import Response

from paddleflow.api.snapshots import (
    SnapshotAnswer,
    SnapshotIdAnswer,
    SnapshotListAnswer,
    SnapshotRequest,
    snapshot_answer,
)
from paddleflow.api.wire import Listed
from paddleflow.domain.commands import DeleteSnapshot
from paddleflow.domain.ids import SnapshotId
from paddleflow.domain.snapshots import Snapshot
from paddleflow.server.call import Call, empty, reply
from paddleflow.server.routing import PAGE, Access, Param, Routes

routes = Routes()

_OWNER = Param(name="username", about="whose; root may name another user")


@routes.add("POST", "/fs/{fsName}/snapshot", Access.OWNER, answer=SnapshotIdAnswer, status=201, body_required=False)
def create_snapshot(call: Call, body: SnapshotRequest) -> Response:
    """Begin to make one; its state tells when it is ready."""
    return reply(call.submit(body.to_command(call.path("fsName")), create=True), status=201)


@routes.add("GET", "/fs/{fsName}/snapshot", Access.OWNER, answer=SnapshotListAnswer, params=(*PAGE, _OWNER))
def list_snapshots(call: Call) -> Response:
    request = call.page("snapshot")
    filesystem, page = call.services.storage_reads.snapshots(
        call.actor, call.text("username"), call.path("fsName"), request
    )
    shown: Listed[Snapshot] = Listed("snapshotList", lambda snapshot: snapshot_answer(filesystem, snapshot))
    return call.listing("snapshot", request, page, shown)


@routes.add("GET", "/fs/{fsName}/snapshot/{snapshotID}", Access.OWNER, answer=SnapshotAnswer, params=(_OWNER,))
def show_snapshot(call: Call) -> Response:
    filesystem, snapshot = call.services.storage_reads.snapshot(
        call.actor, call.text("username"), call.path("fsName"), SnapshotId(call.path("snapshotID"))
    )
    return reply(snapshot_answer(filesystem, snapshot))


@routes.add("DELETE", "/fs/{fsName}/snapshot/{snapshotID}", Access.OWNER, params=(_OWNER,))
def delete_snapshot(call: Call) -> Response:
    """It is gone as soon as what is kept of it on the storage is."""
    command = DeleteSnapshot(
        fs_name=call.path("fsName"), id=SnapshotId(call.path("snapshotID")), owner=call.text("username")
    )
    call.submit(command)
    return empty()
