"""Our server under test: started as users start it, in a directory of its own, and asked over HTTP."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.processes import BenchError, free_ports, require_alive, resident_bytes, running, wait_until

API = "/api/paddleflow/v1"
READY_TIMEOUT_S = 60.0
JOB = {
    "schedulingPolicy": {"queue": "default-queue"},
    "flavour": {"name": "flavour1"},
    "command": "true",
}
LIVE = ("init", "pending", "running", "terminating")


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    port: int
    pid: int
    ready_s: float
    ready_rss_bytes: int
    token: str

    @property
    def headers(self) -> dict[str, str]:
        return {"x-pf-authorization": self.token}

    def ask(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        return _ask(self.port, method, API + path, body, self.headers)

    def submit(self, command: str) -> str:
        return str(self.ask("POST", "/job/single", {**JOB, "command": command})["id"])

    def status(self, job_id: str) -> str:
        return str(self.ask("GET", f"/job/{job_id}")["status"])

    def stop_job(self, job_id: str) -> None:
        self.ask("PUT", f"/job/{job_id}?action=stop")
        wait_until(lambda: self.status(job_id) not in LIVE, what=f"{job_id} to stop", timeout_s=30)

    def any_live(self) -> bool:
        return any(self.ask("GET", f"/job?status={status}&maxKeys=1")["jobList"] for status in LIVE)

    def count(self, status: str) -> int:
        """Jobs in a state, counted page by page."""
        total, marker = 0, ""
        while True:
            page = self.ask("GET", f"/job?status={status}&maxKeys=1000&marker={marker}")
            total += len(page["jobList"])
            if not page["isTruncated"]:
                return total
            marker = page["nextMarker"]


_QUEUE_CPUS = 20
"""What the default queue of a new installation allows."""


@contextmanager
def serving(state_dir: Path, *, slots: int) -> Iterator[Server]:
    """A server with one simulated node that has room for ``slots`` jobs of one CPU at a time."""
    state_dir.mkdir(exist_ok=True)
    config = state_dir / "bench.yaml"
    config.write_text(f'local: {{nodes: [{{name: bench, cpu: "{slots}", memory: {slots * 4}Gi}}]}}\n')
    (port,) = free_ports(1)
    program = Path(sys.executable).with_name("paddleflow")
    argv = [str(program), "serve", "--port", str(port), "--state-dir", str(state_dir), "--config", str(config)]
    log = state_dir / "bench-server.log"
    began = time.perf_counter()
    with running(argv, log) as process:
        wait_until(lambda: _ready(port, process, log), what="/readyz", timeout_s=READY_TIMEOUT_S, every_s=0.005)
        ready_s, rss = time.perf_counter() - began, resident_bytes(process.pid)
        answer = _ask(port, "POST", f"{API}/login", {"username": "root", "password": "paddleflow"}, {})
        server = Server(port=port, pid=process.pid, ready_s=ready_s, ready_rss_bytes=rss, token=answer["authorization"])
        if slots > _QUEUE_CPUS:
            _widen(server, slots)
        yield server


def _widen(server: Server, slots: int) -> None:
    """Make the default queue as large as the node."""
    server.ask("PUT", "/queue/default-queue", {"maxResources": {"cpu": str(slots), "mem": f"{slots * 4}Gi"}})
    found = server.ask("GET", "/queue/default-queue")["maxResources"]["cpu"]
    if found != str(slots):
        raise BenchError(f"the queue has {found} CPUs, not {slots}")


def _ready(port: int, process: subprocess.Popen[bytes], log: Path) -> bool:
    require_alive(process, log)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    except OSError:
        return False  # not listening yet
    finally:
        connection.close()


def _ask(port: int, method: str, path: str, body: object, headers: dict[str, str]) -> dict[str, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        content = None if body is None else json.dumps(body)
        connection.request(method, path, content, {**headers, "Content-Type": "application/json"})
        response = connection.getresponse()
        answer = response.read()
    finally:
        connection.close()
    if response.status >= 300:
        raise BenchError(f"{method} {path} was answered {response.status}: {answer[:500].decode(errors='replace')}")
    return json.loads(answer) if answer else {}
