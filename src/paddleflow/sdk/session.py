"""Who is logged in, and how a method of the client makes its call.

It owns the token. A token that has gone stale is renewed once, with the name and password of the last log-in, and the
call made again; a refused log-in is never repeated.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self
from urllib.parse import quote

from paddleflow.sdk.errors import InvalidError, NotFoundError, UnauthenticatedError
from paddleflow.sdk.transport import Query, Transport

TOKEN_HEADER = "x-pf-authorization"  # noqa: S105 - the name of a header
KEY_HEADER = "Idempotency-Key"


class Session:
    """A connection to one server on behalf of one user."""

    def __init__(
        self, paddleflow_server_host: str, username: str, password: str, paddleflow_server_port: int = 8999
    ) -> None:
        require(paddleflow_server_host, "InvalidServer", "paddleflow_server_host")
        require(username, "InvalidUser", "username")
        require(password, "InvalidPassWord", "password")
        self.username = username
        self._password = password
        self._token: str | None = None
        self._transport = Transport(paddleflow_server_host.strip(), int(paddleflow_server_port))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        """A copy for another process logs in as this one does, so the password is in it: send it to processes of your
        own, and keep it nowhere."""
        return self.__dict__.copy()

    def close(self) -> None:
        """Close the connections. The client may be used again afterwards."""
        self._transport.close()

    @property
    def address(self) -> str:
        """``scheme://host:port`` of the server."""
        return self._transport.address

    def wait_for_start(self, tell: Callable[[], None]) -> None:
        """If a server of this machine does not listen yet, call ``tell`` and wait some seconds for it."""
        self._transport.wait_for_start(tell)

    @property
    def token(self) -> str | None:
        """The proof of the last log-in; None before it."""
        return self._token

    def resume(self, token: str) -> None:
        """Go on with a token of an earlier log-in instead of logging in again."""
        self._token = token

    def login(self, user_name: str, password: str) -> tuple[bool, None]:
        require(user_name, "InvalidUser", "user_name")
        require(password, "InvalidPassWord", "password")
        try:
            answer = self._transport.call(
                "POST", "/login", body={"username": user_name, "password": password}, repeatable=True
            )
        except NotFoundError as error:
            # The server says the user does not exist; to the one logging in that is a refused log-in.
            raise UnauthenticatedError(error.code, error.message, error.requestId) from error
        self._token = str(answer["authorization"])
        self.username, self._password = user_name, password
        return True, None

    def _get(self, path: str, params: Query | None = None) -> Any:
        return self._call("GET", path, params=params, repeatable=True)

    def _put(self, path: str, body: object = None, params: Query | None = None) -> Any:
        return self._call("PUT", path, params=params, body=body)

    def _delete(self, path: str, params: Query | None = None) -> Any:
        return self._call("DELETE", path, params=params)

    def _create(self, path: str, body: Mapping[str, object], *, key: str | None = None) -> Any:
        """POST with a key of its own, so that sending it twice creates one thing."""
        headers = {KEY_HEADER: key or uuid.uuid4().hex}
        return self._call("POST", path, body=body, headers=headers, repeatable=True)

    def _call(
        self,
        method: str,
        path: str,
        *,
        params: Query | None = None,
        body: object = None,
        headers: Mapping[str, str] | None = None,
        repeatable: bool = False,
    ) -> Any:
        for last in (False, True):
            sent = {**(headers or {}), **self._proof()}
            try:
                return self._transport.call(method, path, params=params, body=body, headers=sent, repeatable=repeatable)
            except UnauthenticatedError:
                if last:
                    raise
                self.login(self.username, self._password)
        raise AssertionError("unreachable: the second round either returns or raises")

    def _stream(
        self, path: str, params: Query, on_answer: Callable[[Mapping[str, str]], None] = lambda _: None
    ) -> Iterator[bytes]:
        proof = self._proof()
        try:
            yield from self._transport.stream(path, params=params, headers=proof, on_answer=on_answer)
        except UnauthenticatedError:
            # Raised before the first byte, so nothing is told twice.
            self.login(self.username, self._password)
            yield from self._transport.stream(path, params=params, headers=self._proof(), on_answer=on_answer)

    def _proof(self) -> dict[str, str]:
        if self._token is None:
            raise UnauthenticatedError("InvalidOperator", "should login first")
        return {TOKEN_HEADER: self._token}


def require(value: str | None, code: str, name: str) -> str:
    """A text that must not be empty or blank; ``code`` is the word scripts match on."""
    if value is None or not str(value).strip():
        raise InvalidError(code, f"{name} should not be none or empty")
    return value


def refuse_blank(value: str | None, code: str, name: str) -> str | None:
    """A text that may be left out, but not be blank."""
    return require(value, code, name) if value else None


def segment(value: str) -> str:
    """A name as one segment of a path."""
    return quote(value, safe="")


def present(**fields: object) -> dict[str, object]:
    """A request body: the fields that were given."""
    return {name: value for name, value in fields.items() if value is not None}
