"""Mounts of filesystems: how they are let in, how they are told to cache, and what they report.

A mount logs in once, as its user, and then speaks for itself with a short-lived token in the header x-pf-mount-token.
"""

from __future__ import annotations

from starlette.responses import Response

from paddleflow.api.caches import (
    CacheConfigAnswer,
    CacheConfigRequest,
    CacheReportRequest,
    CacheSettingsRequest,
    CacheStatsAnswer,
    cache_config_answer,
    cache_stats_answer,
)
from paddleflow.api.mounts import (
    MountAccessAnswer,
    MountListAnswer,
    MountOpenedAnswer,
    MountRequest,
    mount_answer,
)
from paddleflow.api.wire import rfc3339
from paddleflow.domain.commands import CloseMount, DeleteCacheConfig
from paddleflow.domain.errors import invalid_field
from paddleflow.domain.ids import MountId
from paddleflow.server.call import Call, empty, reply
from paddleflow.server.routing import Access, Param, Routes

routes = Routes()

_OWNER = Param(name="username", about="whose; root may name another user")


@routes.add("POST", "/fsMount", Access.LOGIN, answer=MountOpenedAnswer, status=201)
def open_mount(call: Call, body: MountRequest) -> Response:
    """Let a mount in: its id, and a token for the header x-pf-mount-token."""
    opened = call.services.mounts.open(
        call.actor,
        body.to_command(call.actor.name),
        request_id=call.request_id,
        idempotency_key=call.idempotency_key,
    )
    answer = MountOpenedAnswer(
        mountID=opened.mount_id, fsID=opened.fs_id, token=opened.token, expiresAt=rfc3339(opened.expires_at)
    )
    return reply(answer, status=201)


@routes.add("POST", "/fsMount/access", Access.MOUNT, answer=MountAccessAnswer)
def access_mount(call: Call) -> Response:
    """What the mount needs to know, encrypted for it alone, and its next token."""
    access = call.services.mounts.access(call.token, request_id=call.request_id)
    answer = MountAccessAnswer(sealed=access.sealed, token=access.token, expiresAt=rfc3339(access.expires_at))
    return reply(answer)


@routes.add("DELETE", "/fsMount", Access.MOUNT)
def leave_mount(call: Call) -> Response:
    """The mount itself says that it is gone."""
    call.services.mounts.close(call.token, request_id=call.request_id)
    return empty()


@routes.add(
    "GET", "/fsMount", Access.OWNER, answer=MountListAnswer, params=(Param(name="fsName", required=True), _OWNER)
)
def list_mounts(call: Call) -> Response:
    filesystem, live = call.services.storage_reads.mounts(call.actor, call.text("username"), call.needed("fsName"))
    return reply({"mountList": [mount_answer(filesystem, each.mount, each.cache) for each in live]})


@routes.add("DELETE", "/fsMount/{mountID}", Access.OWNER)
def close_mount(call: Call) -> Response:
    """Its token is refused from now on."""
    call.submit(CloseMount(id=MountId(call.path("mountID"))))
    return empty()


@routes.add("POST", "/fsCache", Access.LOGIN, status=201)
def create_cache_config(call: Call, body: CacheConfigRequest) -> Response:
    call.submit(body.to_create(), create=True)
    return Response(status_code=201)


@routes.add("POST", "/fsCache/report", Access.MOUNT)
def report_cache(call: Call, body: CacheReportRequest) -> Response:
    """What the mount's node has cached; the scheduler sends jobs to where their data is."""
    commands = body.to_commands()
    if not commands:
        raise invalid_field("mounts", "it is empty; report on the mount of this token")
    for command in commands:
        call.services.mounts.report(call.token, command, request_id=call.request_id)
    return empty()


@routes.add("GET", "/fsCache/stats/{fsName}", Access.OWNER, answer=CacheStatsAnswer, params=(_OWNER,))
def show_cache_stats(call: Call) -> Response:
    filesystem, caches = call.services.storage_reads.caches(call.actor, call.text("username"), call.path("fsName"))
    return reply(cache_stats_answer(filesystem, caches))


@routes.add("GET", "/fsCache/{fsName}", Access.OWNER, answer=CacheConfigAnswer, params=(_OWNER,))
def show_cache_config(call: Call) -> Response:
    filesystem, config = call.services.storage_reads.cache_config(
        call.actor, call.text("username"), call.path("fsName")
    )
    return reply(cache_config_answer(filesystem, config))


@routes.add("PUT", "/fsCache/{fsName}", Access.OWNER)
def update_cache_config(call: Call, body: CacheSettingsRequest) -> Response:
    """Only what is given changes."""
    call.submit(body.to_update(call.path("fsName")))
    return empty()


@routes.add("DELETE", "/fsCache/{fsName}", Access.OWNER, params=(_OWNER,))
def delete_cache_config(call: Call) -> Response:
    call.submit(DeleteCacheConfig(fs_name=call.path("fsName"), owner=call.text("username")))
    return empty()
