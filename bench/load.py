"""A cheap HTTP load generator: one thread, blocking nothing, a fixed number of keep-alive connections.

It runs in a process of its own (``python -m bench.load``, plan on standard input, outcome on standard output) and does
as little as it can: requests are bytes made beforehand, of an answer only the status and the length are read. On two
cores anything heavier would measure itself. Its own CPU time is part of the outcome, so that one can see it did not.
"""

from __future__ import annotations

import json
import selectors
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field

from bench.processes import BenchError

STALLED_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """``count`` requests in all; each takes the next path, starting over at the end."""

    port: int
    method: str
    paths: Sequence[str]
    count: int
    clients: int = 8
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    rate: float
    p50_ms: float
    p99_ms: float
    generator_cpu_share: float
    """Of one core."""


@dataclass(slots=True)
class Connection:
    socket: socket.socket
    started: float = 0.0
    received: bytearray = field(default_factory=bytearray)


def measure(plan: Plan) -> Outcome:
    """Carry out a plan in another process."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.load"],
        input=json.dumps(asdict(plan)),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise BenchError(f"the load generator failed: {done.stderr.strip()[-2000:]}")
    return Outcome(**json.loads(done.stdout))


def carry_out(plan: Plan) -> Outcome:
    requests = _endless([_request(plan, path) for path in plan.paths])
    latencies: list[float] = []
    statuses: Counter[int] = Counter()
    left = plan.count
    with selectors.DefaultSelector() as selector:
        began, cpu_began = time.perf_counter(), time.process_time()
        for _ in range(min(plan.clients, plan.count)):
            connection = Connection(socket.create_connection(("127.0.0.1", plan.port)))
            connection.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            selector.register(connection.socket, selectors.EVENT_READ, connection)
            _send(connection, next(requests))
            left -= 1
        while len(latencies) < plan.count:
            ready = selector.select(STALLED_S)
            if not ready:
                raise BenchError(f"no answer for {STALLED_S:g} s after {len(latencies)} of {plan.count} requests")
            for key, _ in ready:
                connection = key.data
                status = _receive(connection)
                if status is None:
                    continue
                latencies.append(time.perf_counter() - connection.started)
                statuses[status] += 1
                if left:
                    _send(connection, next(requests))
                    left -= 1
        seconds, cpu = time.perf_counter() - began, time.process_time() - cpu_began
        for key in list(selector.get_map().values()):
            key.data.socket.close()
    if set(statuses) != {200}:
        raise BenchError(f"{plan.method} {plan.paths[0]} was answered {dict(statuses)}")
    latencies.sort()
    return Outcome(
        rate=plan.count / seconds,
        p50_ms=1000 * latencies[len(latencies) // 2],
        p99_ms=1000 * latencies[min(len(latencies) - 1, len(latencies) * 99 // 100)],
        generator_cpu_share=cpu / seconds,
    )


def _endless(requests: Sequence[bytes]) -> Iterator[bytes]:
    while True:
        yield from requests


def _request(plan: Plan, path: str) -> bytes:
    body = plan.body.encode()
    headers = {"Host": "127.0.0.1", "Content-Length": str(len(body)), **plan.headers}
    if body:
        headers["Content-Type"] = "application/json"
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"{plan.method} {path} HTTP/1.1\r\n{head}\r\n".encode() + body


def _send(connection: Connection, request: bytes) -> None:
    connection.received.clear()
    connection.started = time.perf_counter()
    connection.socket.sendall(request)


def _receive(connection: Connection) -> int | None:
    """The status once the answer is complete."""
    part = connection.socket.recv(262_144)
    if not part:
        raise BenchError("the server closed a connection in the middle of an answer")
    received = connection.received
    received += part
    end = received.find(b"\r\n\r\n")
    if end < 0:
        return None
    head = bytes(received[:end]).lower()
    at = head.find(b"content-length:")
    if at < 0:
        raise BenchError("the load generator understands answers with a Content-Length only")
    length = int(head[at + 15 :].split(b"\r\n", 1)[0])
    return int(head[9:12]) if len(received) >= end + 4 + length else None


if __name__ == "__main__":
    print(json.dumps(asdict(carry_out(Plan(**json.load(sys.stdin))))))
