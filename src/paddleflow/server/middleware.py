"""Around every request: an id that comes back with the answer, and how long it took.

Plain ASGI, because a middleware that wraps responses in tasks costs as much as a whole request.
"""

from __future__ import annotations

import random
import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from paddleflow.server.errors import unexpected_error
from paddleflow.server.metrics import Metrics

_HEADER = b"x-pf-request-id"
_LONGEST_ID = 128
_RANDOM = random.Random()  # noqa: S311 - ids, no secrets


class Envelope:
    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = _request_id(scope)
        scope.setdefault("state", {})["request_id"] = request_id
        began = time.perf_counter()
        status = 0

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), (_HEADER, request_id.encode())]
            await send(message)

        try:
            await self._app(scope, receive, answer)
        except Exception as error:  # noqa: BLE001  whatever escapes the framework itself still gets our answer
            response = unexpected_error(error, request_id)
            if not status:
                await response(scope, receive, answer)
        finally:
            route = scope.get("route")
            path = getattr(route, "path", "")
            self._metrics.observe(path, scope["method"], status, (time.perf_counter() - began) * 1000)


def _request_id(scope: Scope) -> str:
    """The client's own, cut to what may stand in a header and a log line; else a new one."""
    for name, value in scope["headers"]:
        if name == _HEADER:
            shown = "".join(c for c in value.decode("latin-1") if "!" <= c <= "~")[:_LONGEST_ID]
            if shown:
                return shown
    # Unique, not secret: the system's own random source would cost more than routing the request does.
    digits = f"{_RANDOM.getrandbits(128):032x}"
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"
