"""Users, and the version of the server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from paddleflow.sdk.session import Session, require, segment


@dataclass(frozen=True)
class UserInfo:
    name: str
    create_time: str

    @classmethod
    def from_wire(cls, data: Mapping[str, Any]) -> UserInfo:
        return cls(name=data["name"], create_time=data.get("createTime", ""))


class UserCalls(Session):
    """What the client can do with users."""

    def get_version(self) -> tuple[bool, dict[str, Any]]:
        return True, dict(self._get("/version"))

    def add_user(self, user_name: str, password: str) -> tuple[bool, None]:
        require(user_name, "InvalidUser", "user_name")
        require(password, "InvalidPassWord", "password")
        self._create("/user", {"username": user_name, "password": password})
        return True, None

    def del_user(self, user_name: str) -> tuple[bool, None]:
        self._delete(f"/user/{segment(require(user_name, 'InvalidUser', 'user_name'))}")
        return True, None

    def update_password(self, name: str, password: str) -> tuple[bool, None]:
        require(password, "InvalidPassWord", "password")
        self._put(f"/user/{segment(require(name, 'InvalidUser', 'name'))}", {"password": password})
        if name == self.username and self._token is not None:
            # A changed password revokes the tokens made with the old one, ours among them.
            self.login(name, password)
        return True, None

    def list_user(self, maxsize: int = 100) -> tuple[bool, list[UserInfo]]:
        data = self._get("/user", {"maxKeys": maxsize})
        return True, [UserInfo.from_wire(user) for user in data["userList"]]
