"""Real servers as child processes, and raw HTTP to them."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.ports import reserve_port
from tests.waiting import DEADLINE_S, wait_for

PREFIX = "/api/paddleflow/v1"
RUN_DEADLINE_S = 5 * DEADLINE_S
"""For what starts many programs one after the other, such as a run of many steps."""

T = TypeVar("T")


class Server:
    """One server process on a state directory. ``argv`` starts it; None: ``paddleflow serve``."""

    def __init__(self, state_dir: Path, argv: list[str] | None = None, *flags: str) -> None:
        self.port = reserve_port()
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
        try:
            self.wait_for(self.is_ready, "the server's start")
        except BaseException:
            # Nobody has it yet, so nobody else would end it.
            self.kill()
            raise
        return self

    def wait_ready(self) -> Server:
        """Listening, and logged in as root with the password of a new installation."""
        self.wait_listening()
        status, answer = self.call("POST", "/login", {"username": "root", "password": "paddleflow"}, token="")
        assert status == 200, answer
        self.token = answer["authorization"]
        return self

    def wait_for(self, condition: Callable[[], T | None], what: str, *, deadline_s: float = DEADLINE_S) -> T:
        """For something that only a living server does: its death is told at once, with its log."""

        def seen() -> T | None:
            if self.died():
                pytest.fail(f"the server ended with {self.process.returncode}, before {what}:\n{self.log_text()}")
            return condition()

        return wait_for(seen, what, deadline_s=deadline_s)

    def wait_dead(self) -> None:
        wait_for(self.died, "the server's death")

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
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE_S)
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

    def end_jobs(self, deadline_s: float = DEADLINE_S) -> None:
        """Jobs outlive their server, and so would those that a failed test has left behind."""

        def none_is_left() -> bool:
            status, answer = self.call("GET", "/job?status=init,pending,running,terminating,preempting")
            assert status == 200, answer
            for job in answer["jobList"]:
                self.call("PUT", f"/job/{job['id']}?action=stop")
            return not answer["jobList"]

        self.wait_for(none_is_left, "the end of the jobs that were left", deadline_s=deadline_s)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        if self.died():
            return
        self.process.terminate()
        try:
            self.process.wait(DEADLINE_S)
        finally:
            self.kill()  # nothing, if it has ended
