"""A whole platform behind a real HTTP server on loopback: SQLite, reactors, uvicorn; tasks are those of a story."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import uvicorn

from paddleflow.adapters.directories import DirectoryFiles
from paddleflow.adapters.identity import KeyedIdentity
from paddleflow.adapters.memory.runtime import MemoryRuntime
from paddleflow.adapters.memory.storages import RecordedStorages
from paddleflow.adapters.sql.store import SqlStore
from paddleflow.adapters.system import SystemClock
from paddleflow.domain.ids import DEFAULT_CLUSTER
from paddleflow.server.app import create_app
from paddleflow.settings import LocalSettings, Settings
from paddleflow.testing.builders import a_node, resources
from paddleflow.wiring.platform import Outside, Platform
from paddleflow.wiring.serve import services_of
from paddleflow.wiring.server_storage import OpenedStorages
from tests.waiting import DEADLINE_S, wait_for

PREFIX = "/api/paddleflow/v1"
ROOT_PASSWORD = "paddleflow"
KEY = b"k" * 32


@dataclass
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        return str(self.json["code"])

    @property
    def message(self) -> str:
        return str(self.json["message"])


@dataclass
class Caller:
    """Raw HTTP as one user."""

    port: int
    token: str = ""
    headers: dict[str, str] = field(default_factory=dict)

    def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        query: Mapping[str, object] | None = None,
        headers: Mapping[str, str] | None = None,
        raw: bytes | None = None,
        prefix: str = PREFIX,
    ) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE_S)
        try:
            sent = dict(self.headers)
            if self.token:
                sent["x-pf-authorization"] = self.token
            sent.update(headers or {})
            data = raw if raw is not None else None if body is None else json.dumps(body).encode()
            target = prefix + path + ("?" + urlencode(query) if query else "")
            connection.request(method, target, body=data, headers=sent)
            response = connection.getresponse()
            return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
        finally:
            connection.close()

    def get(self, path: str, **query: object) -> Answer:
        return self.call("GET", path, query=query)

    def post(self, path: str, body: object, **headers: str) -> Answer:
        return self.call("POST", path, body, headers={k.replace("_", "-"): v for k, v in headers.items()})

    def put(self, path: str, body: object = None, **query: object) -> Answer:
        return self.call("PUT", path, body, query=query)

    def delete(self, path: str, **query: object) -> Answer:
        return self.call("DELETE", path, query=query)

    def stream(self, path: str, headers: Mapping[str, str] | None = None, **query: object) -> socket.socket:
        """A GET whose answer is read from the socket as it comes."""
        target = PREFIX + path + ("?" + urlencode(query) if query else "")
        given = {"Host": "test", "x-pf-authorization": self.token, **(headers or {})}
        lines = [f"GET {target} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items()), "", ""]
        sock = socket.create_connection(("127.0.0.1", self.port), timeout=DEADLINE_S)
        sock.sendall("\r\n".join(lines).encode())
        return sock

    def submit(self, **changes: object) -> str:
        answer = self.post("/job/single", {"command": "true", **changes})
        assert answer.status == 200, answer.body
        return str(answer.json["id"])

    def status_of(self, job_id: str) -> str:
        return str(self.get(f"/job/{quote(job_id)}").json["status"])


LOG_CAP = 1 << 20
"""Bytes kept of a task's log."""


class EndingServer(uvicorn.Server):
    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.config.app.state.streams.close()  # type: ignore[union-attr]
        await super().shutdown(sockets)


class Served:
    def __init__(self, directory: Path, *, real_storages: bool = False) -> None:
        self.clock = SystemClock()
        self.identity = KeyedIdentity(KEY, token_life=timedelta(hours=1))
        self.database = directory / "pf.db"
        self.store = SqlStore(f"sqlite:///{self.database}", busy_timeout_s=DEADLINE_S)
        nodes = [a_node("node-1", resources("64", "256Gi", gpus=8))]
        self.runtime = MemoryRuntime(clock=self.clock, nodes=nodes, log_cap_bytes=LOG_CAP)
        self.storages = RecordedStorages()
        storages = OpenedStorages() if real_storages else self.storages
        outside = Outside(
            store=self.store,
            clock=self.clock,
            identity=self.identity,
            runtimes={DEFAULT_CLUSTER: self.runtime},
            files=DirectoryFiles(),
            storages=storages,
            snapshots=storages,
            holder="test",
        )
        settings = Settings(local=LocalSettings(sample_every_s=0.05))
        self.platform = Platform(outside, settings)
        self.platform.start()
        self.app = create_app(services_of(self.platform, outside, settings, KEY))
        self._socket = socket.socket()
        self._socket.bind(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        # Streams that nobody ends are cut off, but not before ``stop_http`` has seen that they are still there.
        longer = round(1.5 * DEADLINE_S)
        config = uvicorn.Config(
            self.app, log_config=None, access_log=False, lifespan="on", timeout_graceful_shutdown=longer
        )
        self.server = EndingServer(config)
        self._thread = threading.Thread(target=self.server.run, kwargs={"sockets": [self._socket]}, daemon=True)
        self._thread.start()
        wait_for(lambda: self.server.started, "the server started")
        self.root = self.login("root", ROOT_PASSWORD)

    def stop_http(self) -> bool:
        """Ask the server to stop; whether it did within the deadline."""
        self.server.should_exit = True
        self._thread.join(DEADLINE_S)
        return not self._thread.is_alive()

    def close(self) -> None:
        self.stop_http()
        self._socket.close()
        self.platform.stop()

    def login(self, name: str, password: str) -> Caller:
        answer = Caller(self.port).post("/login", {"username": name, "password": password})
        assert answer.status == 200, answer.body
        return Caller(self.port, token=answer.json["authorization"])

    def a_user(self, name: str, *queues: str) -> Caller:
        assert self.root.post("/user", {"username": name, "password": "secret1"}).status == 200
        for queue in queues:
            grant = {"userName": name, "resourceType": "queue", "resourceID": queue}
            assert self.root.post("/grant", grant).status == 200
        return self.login(name, "secret1")

    def task_of(self, job_id: str) -> str:
        """The job's task, once it runs."""

        def running() -> str | None:
            job = self.root.get(f"/job/{job_id}").json
            return job["runtime"]["name"] if job["status"] == "running" else None

        return wait_for(running, f"{job_id} runs")

    def finish(self, job_id: str, exit_code: int = 0) -> None:
        self.runtime.finish(self.task_of(job_id), exit_code)  # type: ignore[arg-type]
        wait_for(lambda: self.root.status_of(job_id) in ("succeeded", "failed"), f"{job_id} ended")
