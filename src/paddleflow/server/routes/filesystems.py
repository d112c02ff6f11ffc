"""Filesystems. Their list has a shape of its own, older than the others'."""

from __future__ import annotations

from starlette.responses import Response

from paddleflow.api.filesystems import (
    FilesystemAnswer,
    FilesystemListAnswer,
    FilesystemNameAnswer,
    FilesystemRequest,
    filesystem_answer,
)
from paddleflow.domain.commands import DeleteFilesystem
from paddleflow.server.call import Call, empty, reply
from paddleflow.server.routing import PAGE, Access, Param, Routes

routes = Routes()

_OWNER = Param(name="username", about="whose; root may name another user")


@routes.add("POST", "/fs", Access.LOGIN, answer=FilesystemNameAnswer, status=201)
def create_filesystem(call: Call, body: FilesystemRequest) -> Response:
    return reply(call.submit(body.to_create(), create=True), status=201)


@routes.add("PUT", "/fs", Access.OWNER, answer=FilesystemNameAnswer, status=201)
def update_filesystem(call: Call, body: FilesystemRequest) -> Response:
    return reply(call.submit(body.to_update()), status=201)


@routes.add("GET", "/fs", Access.LOGIN, answer=FilesystemListAnswer, params=(*PAGE, Param(name="fsName"), _OWNER))
def list_filesystems(call: Call) -> Response:
    request = call.page("fs")
    page = call.services.reads.filesystems(call.actor, call.text("username"), call.text("fsName"), request)
    marker = call.next_marker("fs", page)
    return reply(
        {
            "marker": call.text("marker"),
            "truncated": bool(marker),
            "nextMarker": marker,
            "fsList": [filesystem_answer(filesystem) for filesystem in page.rows],
        }
    )


@routes.add("GET", "/fs/{fsName}", Access.OWNER, answer=FilesystemAnswer, params=(_OWNER,), quick=True)
def show_filesystem(call: Call) -> Response:
    found = call.services.reads.filesystem(call.actor, call.text("username"), call.path("fsName"))
    return reply(filesystem_answer(found))


@routes.add("DELETE", "/fs/{fsName}", Access.OWNER, params=(_OWNER,))
def delete_filesystem(call: Call) -> Response:
    call.submit(DeleteFilesystem(name=call.path("fsName"), owner=call.text("username")))
    return empty()
