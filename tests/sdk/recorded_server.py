"""A small HTTP server that answers in the shapes of the wire, for tests of the client alone.

It knows no rules: a test says what is answered where, and sees afterwards what was asked. It can also lose
connections, which a real server does not do on request.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

PREFIX = "/api/paddleflow/v1"


@dataclass
class Asked:
    """One request as it arrived."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any


@dataclass
class Answer:
    status: int = 200
    body: Any = None
    """JSON; or bytes or a list of bytes, sent as they are."""
    headers: dict[str, str] = field(default_factory=dict)
    lose_connection: bool = False
    """Hang up instead of answering, or after the bytes of the body."""


Answerer = Callable[[Asked], Answer]


@dataclass
class RecordedServer:
    port: int = 0
    asked: list[Asked] = field(default_factory=list)
    answers: dict[tuple[str, str], list[Answer | Answerer]] = field(default_factory=dict)
    start: Callable[[], None] = lambda: None

    def on(self, method: str, path: str, *answers: Answer | Answerer) -> None:
        """Answer these in turn; the last one for ever."""
        self.answers[method, path] = list(answers)

    def answer(self, asked: Asked) -> Answer:
        self.asked.append(asked)
        waiting = self.answers.get((asked.method, asked.path))
        if not waiting:
            return error(404, "PathNotFound", "")
        chosen = waiting.pop(0) if len(waiting) > 1 else waiting[0]
        return chosen(asked) if callable(chosen) else chosen

    def calls(self, method: str, path: str) -> list[Asked]:
        return [one for one in self.asked if (one.method, one.path) == (method, path)]


def ok(body: Any = None, status: int = 200) -> Answer:
    return Answer(status=status, body=body)


def error(status: int, code: str, message: str) -> Answer:
    return Answer(status=status, body={"requestID": "req-1", "code": code, "message": message})


def lost(body: Any = None) -> Answer:
    return Answer(body=body, lose_connection=True)


def event_bytes(seq: int, kind: str, subject: str, **data: Any) -> bytes:
    told = {"seq": seq, "kind": kind, "subject": subject, "owner": "root", "at": "2024-01-01T00:00:00Z", "data": data}
    return f"id: {seq}\nevent: {kind}\ndata: {json.dumps(told)}\n\n".encode()


def job_json(status: str = "running", **more: Any) -> dict[str, Any]:
    return {
        "id": "job-1",
        "name": "train",
        "labels": {"team": "a"},
        "annotations": {},
        "schedulingPolicy": {"queue": "default-queue", "priority": "NORMAL"},
        "UserName": "root",
        "flavour": {"cpu": "1", "mem": "1Gi", "name": ""},
        "limitFlavour": {"cpu": "2", "mem": "2Gi", "name": ""},
        "fs": {},
        "extraFS": [],
        "image": "",
        "env": {},
        "command": "true",
        "args": [],
        "port": 0,
        "extensionTemplate": None,
        "status": status,
        "message": "",
        "acceptTime": "2024-01-01 00:00:00",
        "startTime": "",
        "finishTime": "",
        **more,
    }


@contextmanager
def running(*, late: bool = False) -> Iterator[RecordedServer]:
    """A server on a free port of the loopback, with a log-in that always works. One that is ``late`` has its port and
    refuses connections until the test calls ``start``."""
    recorded = RecordedServer()
    recorded.on("POST", "/login", lambda asked: ok({"authorization": f"token-{len(recorded.calls('POST', '/login'))}"}))

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _handle(self) -> None:
            url = urlsplit(self.path)
            length = int(self.headers.get("content-length") or 0)
            raw = self.rfile.read(length)
            asked = Asked(
                method=self.command,
                path=url.path.removeprefix(PREFIX),
                query=dict(parse_qsl(url.query)),
                headers={name.lower(): value for name, value in self.headers.items()},
                body=json.loads(raw) if raw else None,
            )
            self._send(recorded.answer(asked))

        do_GET = do_POST = do_PUT = do_DELETE = _handle

        def _send(self, answer: Answer) -> None:
            if answer.lose_connection and answer.body is None:
                self.close_connection = True
                return
            if isinstance(answer.body, bytes):
                content = answer.body
            else:
                content = b"" if answer.body is None else json.dumps(answer.body).encode()
            self.send_response(answer.status)
            # A promise that is not kept is what a lost connection looks like to the reader.
            self.send_header("content-length", str(len(content) + (1000 if answer.lose_connection else 0)))
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)
            self.close_connection = self.close_connection or answer.lose_connection

        def log_message(self, format: str, *args: object) -> None:
            """Tests read what was asked from ``asked``."""

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: Any, client_address: Any) -> None:
            # A client that hangs up while it is told something does no wrong; anything else is shown.
            if not isinstance(sys.exception(), ConnectionError):
                super().handle_error(request, client_address)

    with Server(("127.0.0.1", 0), Handler, bind_and_activate=False) as server:
        server.daemon_threads = True
        server.server_bind()
        recorded.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})

        def start() -> None:
            server.server_activate()
            thread.start()

        recorded.start = start
        if not late:
            start()
        try:
            yield recorded
        finally:
            if thread.is_alive():
                server.shutdown()
                thread.join()
