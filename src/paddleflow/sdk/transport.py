"""The one door to HTTP: it makes a call, repeats it where that is safe, and turns every failure into our errors.

A call that may be repeated (a read, or a create that carries an idempotency key) is tried again a few times when the
connection is lost half-way; a server that cannot be reached at all is reported at once, with its address, unless it was
said that it may still be starting. httpx is imported on first use, so that importing the client stays cheap. A
process that was forked off makes connections of its own: two processes that read from one would each get half of the
other's answers.
"""

from __future__ import annotations

import json
import os
import random
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from paddleflow.sdk.errors import (
    CONNECTION_ERROR,
    InvalidError,
    PaddleFlowSDKException,
    UnavailableError,
    UnreachableError,
    error_from_wire,
)

if TYPE_CHECKING:
    import httpx

PREFIX = "/api/paddleflow/v1"
ANSWER_TIMEOUT_S = 60.0
CONNECT_TIMEOUT_S = 10.0
STREAM_IDLE_TIMEOUT_S = 90.0
"""The server sends a heartbeat more often than this, so a silent stream is a dead one."""
START_PATIENCE_S = 5.0
"""A server that is being started on this machine refuses connections until it listens: for a second or two."""
ATTEMPTS = 4
_FIRST_PAUSE_S = 0.1
_BETWEEN_KNOCKS_S = 0.1
_CHANCE = random.Random()
"""Our own: to draw from the program's would change what comes of its seed, in the midst of somebody's training."""
_BUSY = 503
"""A dependency of the server did not answer just now; asking again is what it asks for."""

Query = Mapping[str, object]


def pause_before(attempt: int) -> None:
    """Back off before attempt number ``attempt`` (the first is 1, which does not wait), with jitter, 2 s at most."""
    if attempt > 1:
        time.sleep(min(2.0, _FIRST_PAUSE_S * 3 ** (attempt - 2)) * _CHANCE.uniform(0.5, 1.0))


class Transport:
    """Calls to one server, over kept-alive connections. Safe to share between threads."""

    def __init__(self, host: str, port: int) -> None:
        self.address = _address(host, port)
        self._start_afresh()
        _ALIVE.add(self)

    def _start_afresh(self) -> None:
        self._lazy_client: httpx.Client | None = None
        self._making = threading.Lock()
        self._may_be_starting: Callable[[], None] | None = None

    def __getstate__(self) -> dict[str, str]:
        return {"address": self.address}

    def __setstate__(self, state: dict[str, str]) -> None:
        self.address = state["address"]
        self._start_afresh()
        _ALIVE.add(self)

    def wait_for_start(self, tell: Callable[[], None]) -> None:
        """A server of this machine that refuses the first connection is given some seconds to start. ``tell`` is
        called before the wait."""
        if is_loopback(self.address):
            self._may_be_starting = tell

    def call(
        self,
        method: str,
        path: str,
        *,
        params: Query | None = None,
        body: object = None,
        headers: Mapping[str, str] | None = None,
        repeatable: bool = False,
    ) -> Any:
        """The decoded JSON of the answer; None where the answer has no body."""
        import httpx

        for attempt in range(1, ATTEMPTS + 1):
            pause_before(attempt)
            try:
                response = self._patiently(
                    lambda: self._client().request(
                        method, PREFIX + path, params=_query(params), json=body, headers=dict(headers or {})
                    )
                )
                if response.status_code == _BUSY and repeatable and attempt < ATTEMPTS:
                    continue
                return _decoded(response, self.address)
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                # Refused on the first try means nobody is there; after a lost connection it may be restarting.
                if attempt in (1, ATTEMPTS):
                    raise self._unreachable("cannot reach", error) from error
            except httpx.TimeoutException as error:
                raise self._unreachable("no answer in time from", error) from error
            except httpx.TransportError as error:
                if not repeatable or attempt == ATTEMPTS:
                    raise self._unreachable("lost the connection to", error) from error
        raise AssertionError("unreachable: the last attempt either returns or raises")

    def _patiently(self, request: Callable[[], httpx.Response]) -> httpx.Response:
        """What was refused has reached nobody, so asking again is safe; and once a server has answered, or was waited
        for in vain, it is known to be there or gone."""
        import httpx

        tell, self._may_be_starting = self._may_be_starting, None
        try:
            return request()
        except httpx.ConnectError:
            if tell is None:
                raise
        tell()
        given_up = time.monotonic() + START_PATIENCE_S
        while True:
            time.sleep(_BETWEEN_KNOCKS_S)
            try:
                return request()
            except httpx.ConnectError:
                if time.monotonic() >= given_up:
                    raise

    def stream(
        self,
        path: str,
        *,
        params: Query | None = None,
        headers: Mapping[str, str] | None = None,
        on_answer: Callable[[Mapping[str, str]], None] = lambda _: None,
    ) -> Iterator[bytes]:
        """The body of a GET as it arrives. A lost connection raises UnreachableError; resuming is the caller's.

        ``on_answer`` is told the headers of the answer before the first byte of it.
        """
        import httpx

        timeout = httpx.Timeout(STREAM_IDLE_TIMEOUT_S, connect=CONNECT_TIMEOUT_S)
        try:
            with self._client().stream(
                "GET", PREFIX + path, params=_query(params), headers=dict(headers or {}), timeout=timeout
            ) as response:
                if not response.is_success:
                    response.read()
                    raise _failure(response)
                on_answer(response.headers)
                yield from response.iter_bytes()
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            raise self._unreachable("cannot reach", error) from error
        except httpx.TransportError as error:
            raise self._unreachable("lost the connection to", error) from error

    def close(self) -> None:
        with self._making:
            client, self._lazy_client = self._lazy_client, None
        if client is not None:
            client.close()

    def leave_to_parent(self) -> object:
        """In a forked process: what was open, which is the parent's; whatever comes opens anew."""
        theirs = self._lazy_client
        self._start_afresh()
        return theirs

    def _client(self) -> httpx.Client:
        with self._making:
            if self._lazy_client is None:
                self._lazy_client = self._connected()
            return self._lazy_client

    def _connected(self) -> httpx.Client:
        import httpx

        try:
            return httpx.Client(
                base_url=self.address,
                timeout=httpx.Timeout(ANSWER_TIMEOUT_S, connect=CONNECT_TIMEOUT_S),
                # Plain HTTP has no certificate to verify, and loading the roots would cost more than a call does.
                verify=self.address.startswith("https:"),
                trust_env=not is_loopback(self.address),
            )
        except httpx.InvalidURL as error:
            raise InvalidError("InvalidServer", f"{self.address} is not an address: {error}") from error

    def _unreachable(self, problem: str, error: Exception) -> UnreachableError:
        return UnreachableError(CONNECTION_ERROR, f"{problem} the PaddleFlow server at {self.address}: {error}")


_ALIVE: weakref.WeakSet[Transport] = weakref.WeakSet()
_LEFT_TO_PARENT: list[object] = []
"""Connections of the process this one was forked from: never used here, and never closed, because that would be told to
the server on the parent's behalf."""


def _after_fork() -> None:
    _LEFT_TO_PARENT.extend([transport.leave_to_parent() for transport in list(_ALIVE)])


os.register_at_fork(after_in_child=_after_fork)


def is_loopback(address: str) -> bool:
    """Whether ``scheme://host:port`` names this very machine."""
    host = address.split("://", 1)[-1].split("/", 1)[0].rsplit(":", 1)[0].strip("[]")
    return host in {"localhost", "::1"} or host.startswith("127.")


def _address(host: str, port: int) -> str:
    scheme, _, name = host.rpartition("://")
    name = name.rstrip("/")
    if name.count(":") > 1 and not name.startswith("["):
        name = f"[{name}]"
    return f"{scheme or 'http'}://{name}:{port}"


def _query(params: Query | None) -> dict[str, str]:
    """Absent values are left out; booleans are spelt as JSON spells them."""
    spelt = {True: "true", False: "false"}
    return {
        name: spelt[value] if isinstance(value, bool) else str(value)
        for name, value in (params or {}).items()
        if value is not None and value != ""
    }


def _decoded(response: httpx.Response, address: str) -> Any:
    if not response.is_success:
        raise _failure(response)
    if not response.content.strip():
        return None
    try:
        return response.json()
    except ValueError as error:
        raise UnavailableError(
            "InvalidResponse", f"what answers at {address} does not speak JSON; is it a PaddleFlow server?"
        ) from error


def _failure(response: httpx.Response) -> PaddleFlowSDKException:
    request_id = response.headers.get("x-pf-request-id")
    try:
        told = json.loads(response.content)
    except ValueError:
        # A proxy's page, not our server's: the status is all there is to tell.
        told = None
    if not isinstance(told, dict):
        told = {}
    code = str(told.get("code") or "InternalError")
    message = str(told.get("message") or f"HTTP {response.status_code} {response.reason_phrase}")
    return error_from_wire(response.status_code, code, message, told.get("requestID") or request_id)
