"""Filesystems and links. Their lists have a shape of their own, older than the others'."""

from __future__ import annotations

from starlette.responses import Response

from paddleflow.api.filesystems import (
    FilesystemAnswer,
    FilesystemListAnswer,
    FilesystemNameAnswer,
    FilesystemRequest,
    LinkListAnswer,
    LinkRequest,
    filesystem_answer,
    link_answer,
)
from paddleflow.domain.commands import DeleteFilesystem, DeleteLink
from paddleflow.domain.filesystems import Link
from paddleflow.server.call import Call, empty, reply
from paddleflow.server.routing import PAGE, Access, Param, Routes

routes = Routes()

_OWNER = Param(name="username", about="whose; root may name another user")


@routes.add("POST", "/fs", Access.LOGIN, answer=FilesystemNameAnswer, status=201, prepares=True)
def create_filesystem(call: Call, body: FilesystemRequest) -> Response:
    """The storage is reached first; one that cannot be is refused."""
    answer = call.services.storage.create_filesystem(
        call.actor, body.to_create(), request_id=call.request_id, idempotency_key=call.idempotency_key
    )
    return reply(answer, status=201)


@routes.add("PUT", "/fs", Access.OWNER, answer=FilesystemNameAnswer, status=201, prepares=True)
def update_filesystem(call: Call, body: FilesystemRequest) -> Response:
    """A secret sent as ****** stays as it is."""
    answer = call.services.storage.update_filesystem(call.actor, body.to_update(), request_id=call.request_id)
    return reply(answer, status=201)


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


@routes.add("DELETE", "/fs/{fsName}", Access.OWNER, params=(_OWNER,), prepares=True)
def delete_filesystem(call: Call) -> Response:
    command = DeleteFilesystem(name=call.path("fsName"), owner=call.text("username"))
    call.services.storage.delete_filesystem(call.actor, command, request_id=call.request_id)
    return empty()


@routes.add("POST", "/link", Access.LOGIN, status=201, prepares=True)
def create_link(call: Call, body: LinkRequest) -> Response:
    """Show another storage at a path of a filesystem, in every mount of it."""
    call.services.storage.create_link(
        call.actor, body.to_command(), request_id=call.request_id, idempotency_key=call.idempotency_key
    )
    return Response(status_code=201)


_PATH = Param(name="fsPath", about="the link at this path alone")


@routes.add("GET", "/link/{fsName}", Access.OWNER, answer=LinkListAnswer, params=(*PAGE, _PATH, _OWNER))
def list_links(call: Call) -> Response:
    reads, owner, name = call.services.storage_reads, call.text("username"), call.path("fsName")
    marker = ""
    links: tuple[Link, ...]
    if call.text("fsPath"):
        filesystem, link = reads.link(call.actor, owner, name, call.text("fsPath"))
        links = (link,)
    else:
        filesystem, page = reads.links(call.actor, owner, name, call.page("link"))
        marker, links = call.next_marker("link", page), page.rows
    return reply(
        {
            "marker": call.text("marker"),
            "truncated": bool(marker),
            "nextMarker": marker,
            "linkList": [link_answer(filesystem, link) for link in links],
        }
    )


@routes.add("DELETE", "/link/{fsName}", Access.OWNER, params=(Param(name="fsPath", required=True), _OWNER))
def delete_link(call: Call) -> Response:
    path = call.needed("fsPath")
    call.submit(DeleteLink(fs_name=call.path("fsName"), fs_path=path, owner=call.text("username")))
    return empty()
