"""Log-in, users and grants."""

from __future__ import annotations

from starlette.responses import Response

from paddleflow.api.access import (
    CreateGrantAnswer,
    CreateGrantRequest,
    CreateUserAnswer,
    CreateUserRequest,
    GrantListAnswer,
    LoginAnswer,
    LoginRequest,
    SetPasswordRequest,
    UserAnswer,
    UserListAnswer,
    grant_answer,
    user_answer,
)
from paddleflow.api.wire import Listed
from paddleflow.domain.commands import DeleteGrant, DeleteUser
from paddleflow.domain.ids import UserName
from paddleflow.domain.users import Grant, User
from paddleflow.server.call import Call, empty, reply
from paddleflow.server.routing import PAGE, Access, Param, Routes

routes = Routes()

_USERS = Listed[User]("userList", user_answer)
_GRANTS = Listed[Grant]("grantList", grant_answer)


@routes.add("POST", "/login", Access.PUBLIC, answer=LoginAnswer)
def login(call: Call, body: LoginRequest) -> Response:
    return reply({"authorization": call.services.reads.login(body.username, body.password)})


@routes.add("POST", "/user", Access.ROOT, answer=CreateUserAnswer)
def create_user(call: Call, body: CreateUserRequest) -> Response:
    return reply(call.submit(body.to_command(), create=True))


@routes.add(
    "GET",
    "/user",
    Access.ROOT,
    answer=UserListAnswer | UserAnswer,
    denied="AccessDenied",
    params=(*PAGE, Param(name="user", about="show this one user instead of a list")),
)
def list_users(call: Call) -> Response:
    name = call.text("user")
    if name:
        return reply(user_answer(call.services.reads.user(call.actor, UserName(name))))
    request = call.page("user")
    return call.listing("user", request, call.services.reads.users(call.actor, request), _USERS)


@routes.add("PUT", "/user/{username}", Access.OWNER)
def set_password(call: Call, body: SetPasswordRequest) -> Response:
    call.submit(body.to_command(call.path("username")))
    return empty()


@routes.add("DELETE", "/user/{username}", Access.ROOT, denied="AccessDenied")
def delete_user(call: Call) -> Response:
    call.submit(DeleteUser(name=UserName(call.path("username"))))
    return empty()


@routes.add("POST", "/grant", Access.ROOT, answer=CreateGrantAnswer)
def create_grant(call: Call, body: CreateGrantRequest) -> Response:
    return reply(call.submit(body.to_command(), create=True))


@routes.add("GET", "/grant", Access.ROOT, answer=GrantListAnswer, params=(*PAGE, Param(name="username")))
def list_grants(call: Call) -> Response:
    request = call.page("grant")
    name = call.text("username")
    page = call.services.reads.grants(call.actor, UserName(name) if name else None, request)
    return call.listing("grant", request, page, _GRANTS)


@routes.add(
    "DELETE",
    "/grant",
    Access.ROOT,
    params=(
        Param(name="username", required=True),
        Param(name="resourceType", required=True, among=("queue", "user", "fs")),
        Param(name="resourceID", required=True),
    ),
)
def delete_grant(call: Call) -> Response:
    call.submit(
        DeleteGrant(
            user=UserName(call.text("username")),
            resource_type=call.text("resourceType"),
            resource_id=call.text("resourceID"),
        )
    )
    return empty()
