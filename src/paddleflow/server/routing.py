"""Endpoints as data: method, path, who may call it, what it takes and what it answers.

The declaration is the whole truth about an endpoint: the OpenAPI document, the access check and the parsing of the body
all come from it. A handler is a plain function that runs in a worker thread after the caller was found to be allowed;
one that streams is a coroutine function and must not block.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, get_type_hints

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from paddleflow.api.wire import WireRequest
from paddleflow.domain.access import require_root
from paddleflow.domain.errors import Invalid, PaddleFlowError, Unauthenticated
from paddleflow.domain.ids import UserName
from paddleflow.domain.users import Actor
from paddleflow.server.bodies import BODY_LIMIT, parse_json, read_body, validated
from paddleflow.server.call import PREFIX, Call, uri_problem
from paddleflow.server.deps import Services
from paddleflow.server.errors import known_error, unexpected_error
from paddleflow.server.workers import Workers

Handler = Callable[..., Any]


class Access(StrEnum):
    PUBLIC = "public"
    LOGIN = "login"
    """Anyone with a valid token; the answer holds what that user may see."""
    ROOT = "root"
    OWNER = "owner"
    """The owner of the thing named, or root."""
    MOUNT = "mount"
    """A mount, by the token of its own in the header x-pf-mount-token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Param:
    """A query parameter, for the document; the handler reads it."""

    name: str
    kind: str = "string"
    about: str = ""
    required: bool = False
    low: int | None = None
    high: int | None = None
    among: tuple[str, ...] = ()

    def schema(self) -> dict[str, object]:
        schema: dict[str, object] = {"type": self.kind}
        if self.low is not None:
            schema["minimum"] = self.low
        if self.high is not None:
            schema["maximum"] = self.high
        if self.among:
            schema["enum"] = list(self.among)
        return schema


PAGE = (
    Param(name="marker", about="nextMarker of the page before"),
    Param(name="maxKeys", kind="integer", about="rows on a page; 50 unless told", low=1, high=1000),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    method: str
    path: str
    access: Access
    handler: Handler
    answer: Any = None
    """The shape of the answer's JSON; None: an empty body."""
    media: str = "application/json"
    also_media: str = ""
    """A second form the success may take."""
    status: int = 200
    params: tuple[Param, ...] = ()
    denied: str = "OnlyRootAllowed"
    """The code with which a root-only endpoint refuses others."""
    body: type[WireRequest] | None = None
    body_required: bool = True
    body_limit: int = BODY_LIMIT
    prefixed: bool = True
    quick: bool = False
    """Reads a row or two by key and nothing else."""
    only_asks: bool = False
    """A question with a body: it changes nothing and does not wait in the line of those that do."""
    prepares: bool = False
    """Reads files and compiles before it writes, which may take long: it must hold up neither readers nor writers."""

    @property
    def writes(self) -> bool:
        return self.method != "GET" and self.access is not Access.PUBLIC and not self.only_asks

    @property
    def full_path(self) -> str:
        return (PREFIX if self.prefixed else "") + self.path

    @property
    def name(self) -> str:
        return self.handler.__name__

    @property
    def summary(self) -> str:
        return (self.handler.__doc__ or self.name.replace("_", " ")).strip()


class Routes:
    """The endpoints one module declares, in order; a literal path goes before one with a parameter."""

    def __init__(self) -> None:
        self.endpoints: list[Endpoint] = []

    def add(self, method: str, path: str, access: Access, **declared: Any) -> Callable[[Handler], Handler]:
        def register(handler: Handler) -> Handler:
            body = get_type_hints(handler).get("body")
            self.endpoints.append(
                Endpoint(method=method, path=path, access=access, handler=handler, body=body, **declared)
            )
            return handler

        return register


NOBODY = Actor(name=UserName(""))


def token_of(request: Request) -> str:
    token = request.headers.get("x-pf-authorization", "")
    if not token:
        scheme, _, rest = request.headers.get("authorization", "").partition(" ")
        token = rest.strip() if scheme.lower() == "bearer" else ""
    if not token:
        raise Unauthenticated("Request should login first", code="AuthWithoutToken")
    return token


def mount_token_of(request: Request) -> str:
    token = request.headers.get("x-pf-mount-token", "")
    if not token:
        raise Unauthenticated("Request should carry the token of a mount", code="AuthWithoutToken")
    return token


def admitted(endpoint: Endpoint, services: Services, request: Request, request_id: str) -> Call:
    """The call, once its caller is known and may use this endpoint at all."""
    if endpoint.access is Access.PUBLIC:
        return Call(request, services, NOBODY, request_id, "")
    if endpoint.access is Access.MOUNT:
        token = mount_token_of(request)
        mount = services.mounts.mount_of(token)
        check_texts(request)
        return Call(request, services, Actor(name=mount.user), request_id, token)
    token = token_of(request)
    actor = services.reads.actor_of(token)
    if endpoint.access is Access.ROOT:
        require_root(actor, code=endpoint.denied)
    check_texts(request)
    if request.method not in ("POST", "PUT"):
        refuse_other_user(actor, request.query_params.get("userName"))
    return Call(request, services, actor, request_id, token)


def check_texts(request: Request) -> None:
    """What no name can be is refused before anything looks it up."""
    given: list[tuple[str, str]] = [*request.path_params.items(), *request.query_params.multi_items()]
    for name, value in given:
        if "\x00" in value or "\x00" in name or not _encodable(value):
            raise uri_problem(name.replace("\x00", "")[:80], value.replace("\x00", ""), "it contains a NUL character")


def _encodable(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def refuse_other_user(actor: Actor, named: object) -> None:
    """Nobody but root speaks for somebody else."""
    if isinstance(named, str) and named and named != actor.name and not actor.is_root:
        raise Unauthenticated("The user does not have permission to operate other users", code="AuthIllegalUser")


def carry_out(endpoint: Endpoint, services: Services, request: Request, request_id: str, raw: bytes) -> Any:
    """Runs in a worker thread, from knowing the caller to the bytes of the answer."""
    call = admitted(endpoint, services, request, request_id)
    if endpoint.body is None:
        return endpoint.handler(call)
    if not raw.strip() and not endpoint.body_required:
        body = endpoint.body()
    else:
        if not raw.strip():
            raise Invalid("the request has no body; a JSON object is needed", code="MalformedJSON")
        value = parse_json(raw)
        if isinstance(value, Mapping) and endpoint.access is not Access.PUBLIC:
            for key, named in value.items():
                if key.lower() == "username":
                    refuse_other_user(call.actor, named)
        body = validated(endpoint.body, value)
    return endpoint.handler(call, body)


def request_id_of(request: Request) -> str:
    """Given to this request by the middleware."""
    request_id: str = request.scope["state"]["request_id"]
    return request_id


def asgi_endpoint(endpoint: Endpoint, services: Services, workers: Workers) -> Callable[[Request], Awaitable[Response]]:
    """The endpoint as the framework calls it."""
    streams = inspect.iscoroutinefunction(endpoint.handler)
    takes_body = endpoint.body is not None
    # With an embedded database a quick read costs less than handing it to a thread and back.
    inline = endpoint.quick and services.reads_are_local
    run_elsewhere = workers.run_long if endpoint.prepares else workers.run_write if endpoint.writes else workers.run

    async def run(request: Request) -> Response:
        request_id = request_id_of(request)
        try:
            if streams:
                call = await workers.run(admitted, endpoint, services, request, request_id)
                response: Response = await endpoint.handler(call)
                return response
            if inline:
                answer: Response = carry_out(endpoint, services, request, request_id, b"")
                return answer
            raw = await read_body(request, endpoint.body_limit) if takes_body else b""
            return await run_elsewhere(carry_out, endpoint, services, request, request_id, raw)
        except PaddleFlowError as error:
            return known_error(error, request_id)
        except ClientDisconnect:
            return Response(status_code=400)  # nobody is there to read it
        except Exception as error:  # noqa: BLE001  the last stop: a defect becomes a 500 and a line in the log
            return unexpected_error(error, request_id)

    return run
