"""Real servers as child processes, and raw HTTP to them."""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

PREFIX = "/api/paddleflow/v1"
DEADLINE_S = 60.0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def eventually(condition: Callable[[], object], what: str, deadline_s: float = DEADLINE_S) -> Any:
    """The first true value of ``condition``; fails the test, saying what never came, when the time is up."""
    until = time.monotonic() + deadline_s
    while time.monotonic() < until:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError(f"{what} did not happen within {deadline_s:.0f} s")


class Server:
    """One server process on a state directory. ``argv`` starts it; None: ``paddleflow serve``."""

    def __init__(self, state_dir: Path, argv: list[str] | None = None, *flags: str) -> None:
        self.port = free_port()
        self.state_dir = state_dir
        self._log = state_dir.parent / f"server-{self.port}.log"
        command = argv or [sys.executable, "-m", "paddleflow", "serve", "--state-dir", str(state_dir)]
        command = [part.replace("{port}", str(self.port)) for part in command]
        if argv is None:
            command += ["--port", str(self.port), *flags]
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        self.token = ""

    def wait_listening(self) -> Server:
        eventually(lambda: self.is_ready() or self.died(), "the server's start")
        assert not self.died(), self._log.read_text()
        return self

    def wait_ready(self) -> Server:
        """Listening, and logged in as root with the password of a new installation."""
        self.wait_listening()
        status, answer = self.call("POST", "/login", {"username": "root", "password": "paddleflow"}, token="")
        assert status == 200, answer
        self.token = answer["authorization"]
        return self

    def is_ready(self) -> bool:
        try:
            return self.raw("GET", "/readyz")[0] == 200
        except OSError:
            return False

    def died(self) -> bool:
        return self.process.poll() is not None

    def raw(
        self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            data = None if body is None else json.dumps(body).encode()
            connection.request(method, path, data, dict(headers or {}))
            response = connection.getresponse()
            return response.status, response.read()
        except http.client.HTTPException as error:
            raise ConnectionError(str(error)) from error
        finally:
            connection.close()

    def call(
        self, method: str, path: str, body: object = None, *, token: str | None = None, key: str = ""
    ) -> tuple[int, Any]:
        headers = {"x-pf-authorization": self.token if token is None else token}
        if key:
            headers["Idempotency-Key"] = key
        status, data = self.raw(method, PREFIX + path, body, headers)
        return status, json.loads(data) if data else None

    def job(self, job_id: str) -> dict[str, Any]:
        status, answer = self.call("GET", f"/job/{job_id}")
        assert status == 200, answer
        return dict(answer)

    def log_text(self) -> str:
        return self._log.read_text()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        if not self.died():
            self.process.terminate()
            self.process.wait(timeout=30)
