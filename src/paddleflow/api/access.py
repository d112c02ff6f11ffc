"""Log-in, users and grants on the wire."""

# ruff: noqa: N815  the names of the fields are the names on the wire

from __future__ import annotations

from typing_extensions import TypedDict

from paddleflow.api.wire import PageAnswer, WireRequest, rfc3339
from paddleflow.domain.commands import CreateGrant, CreateUser, SetPassword
from paddleflow.domain.ids import UserName
from paddleflow.domain.users import Grant, User


class LoginRequest(WireRequest):
    username: str = ""
    password: str = ""


class LoginAnswer(TypedDict):
    authorization: str


class CreateUserRequest(WireRequest):
    username: str = ""
    password: str = ""

    def to_command(self) -> CreateUser:
        return CreateUser(name=self.username, password=self.password)


class CreateUserAnswer(TypedDict):
    username: str


class SetPasswordRequest(WireRequest):
    password: str = ""

    def to_command(self, name: str) -> SetPassword:
        return SetPassword(name=UserName(name), password=self.password)


class UserAnswer(TypedDict):
    name: str
    createTime: str


class UserListAnswer(PageAnswer):
    userList: list[UserAnswer]


def user_answer(user: User) -> UserAnswer:
    return {"name": user.name, "createTime": rfc3339(user.created_at)}


class CreateGrantRequest(WireRequest):
    userName: str = ""
    resourceType: str = ""
    resourceID: str = ""

    def to_command(self) -> CreateGrant:
        return CreateGrant(user=UserName(self.userName), resource_type=self.resourceType, resource_id=self.resourceID)


class CreateGrantAnswer(TypedDict):
    grantID: str


class GrantAnswer(TypedDict):
    grantID: str
    userName: str
    resourceType: str
    resourceID: str
    createTime: str
    updateTime: str


class GrantListAnswer(PageAnswer):
    grantList: list[GrantAnswer]


def grant_answer(grant: Grant) -> GrantAnswer:
    return {
        "grantID": grant.id,
        "userName": grant.user,
        "resourceType": grant.resource_type,
        "resourceID": grant.resource_id,
        "createTime": rfc3339(grant.created_at),
        "updateTime": rfc3339(grant.updated_at),
    }
