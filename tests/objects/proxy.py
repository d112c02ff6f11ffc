"""A proxy between a client and an HTTP server that does what networks and servers do on bad days, as planned.

``proxy.plan("GET", Reset(100), Refuse())`` spoils the next two GETs, in this order; everything else passes unchanged.
It speaks HTTP/1.1 with Content-Length or chunks, one request after the other on each connection.
"""

from __future__ import annotations

import re
import socket
import struct
import threading
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import BinaryIO


@dataclass(frozen=True)
class Pass:
    """Nothing happens: to let one through before the next fault."""


@dataclass(frozen=True)
class Reset:
    """The connection is reset after so many bytes of the answer; the server did what was asked."""

    after: int = 0


@dataclass(frozen=True)
class ResetRequest:
    """The connection to the server and to the client are reset after so many bytes of the request's body."""

    after: int = 0


@dataclass(frozen=True)
class Stall:
    """Nothing more comes after so many bytes of the answer, and the connection stays."""

    after: int = 0


@dataclass(frozen=True)
class Refuse:
    status: int = 503
    code: str = "SlowDown"
    headers: str = ""


@dataclass(frozen=True)
class Truncate:
    """The body ends after so many bytes, and the connection is closed in good order."""

    to: int


@dataclass(frozen=True)
class Alter:
    """A pattern in the head of the answer, and what stands there instead."""

    pattern: bytes
    replacement: bytes


@dataclass(frozen=True)
class Drip:
    """The answer comes in small pieces."""

    piece: int = 1000


@dataclass(frozen=True)
class First:
    """Something happens behind the client's back, then the request goes on to the server."""

    act: Callable[[], object]


Fault = Pass | Reset | ResetRequest | Stall | Refuse | Truncate | Alter | Drip | First


@dataclass
class Message:
    head: bytes
    body: bytes

    @property
    def method(self) -> str:
        return self.head.split(b" ", 1)[0].decode()

    @property
    def target(self) -> str:
        return self.head.split(b" ", 2)[1].decode()


class _Over(Exception):
    """This connection has ended."""


@dataclass
class FaultProxy:
    upstream_port: int
    seen: list[tuple[str, str]] = field(default_factory=list)
    """Method and target of every request, in the order they came."""

    def __post_init__(self) -> None:
        self._plans: dict[str, deque[Fault]] = defaultdict(deque)
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def plan(self, method: str, *faults: Fault) -> None:
        with self._lock:
            self._plans[method].extend(faults)

    def count(self, method: str) -> int:
        return sum(1 for seen, _ in self.seen if seen == method)

    @property
    def left(self) -> int:
        """Faults that nothing ran into."""
        return sum(len(faults) for faults in self._plans.values())

    def clear(self) -> None:
        with self._lock:
            self._plans.clear()

    def close(self) -> None:
        self._closing.set()
        # Wakes the thread that waits for connections.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(10)

    def _accept(self) -> None:
        while not self._closing.is_set():
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(client,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, client: socket.socket) -> None:
        client.settimeout(0.2)
        server = socket.create_connection(("127.0.0.1", self.upstream_port))
        try:
            with client.makefile("rb") as requests, server.makefile("rb") as answers:
                while not self._closing.is_set():
                    self._serve_one(client, server, requests, answers)
        except (_Over, OSError):
            pass  # the end of a connection, ours or theirs
        finally:
            client.close()
            server.close()

    def _serve_one(self, client: socket.socket, server: socket.socket, requests: BinaryIO, answers: BinaryIO) -> None:
        self._wait_for_bytes(client)
        client.settimeout(30)
        head = _read_head(requests)
        request = Message(head, b"")
        fault = self._next_fault(request)
        request.body = _read_body(requests, head, "")
        if isinstance(fault, ResetRequest):
            server.sendall(request.head + request.body[: fault.after])
            _reset(server)
            _reset(client)
            raise _Over
        if isinstance(fault, Refuse):
            client.sendall(_refusal(fault, request.method))
            return
        if isinstance(fault, First):
            fault.act()
        server.sendall(request.head + request.body)
        answer_head = _read_head(answers)
        answer = Message(answer_head, _read_body(answers, answer_head, request.method))
        self._deliver(client, answer, fault)
        if b"connection: close" in answer.head.lower():
            raise _Over

    def _deliver(self, client: socket.socket, answer: Message, fault: Fault) -> None:
        match fault:
            case Reset(after):
                client.sendall((answer.head + answer.body)[:after])
                _reset(client)
                raise _Over
            case Stall(after):
                client.sendall((answer.head + answer.body)[:after])
                self._closing.wait()
                raise _Over
            case Truncate(to):
                client.sendall(answer.head + answer.body[:to])
                raise _Over
            case Alter(pattern, replacement):
                client.sendall(re.sub(pattern, replacement, answer.head) + answer.body)
            case Drip(piece):
                whole = answer.head + answer.body
                for start in range(0, len(whole), piece):
                    client.sendall(whole[start : start + piece])
            case _:
                client.sendall(answer.head + answer.body)

    def _next_fault(self, request: Message) -> Fault:
        with self._lock:
            self.seen.append((request.method, request.target))
            faults = self._plans[request.method]
            return faults.popleft() if faults else Pass()

    def _wait_for_bytes(self, client: socket.socket) -> None:
        while not self._closing.is_set():
            try:
                if not client.recv(1, socket.MSG_PEEK):
                    raise _Over
            except TimeoutError:
                continue
            return


def _read_head(stream: BinaryIO) -> bytes:
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        line = stream.readline()
        if not line:
            raise _Over
        head += line
    return head


def _read_body(stream: BinaryIO, head: bytes, answers: str) -> bytes:
    """As it came, chunks and all. ``answers``: the method this is the answer to."""
    lower = head.lower()
    if answers == "HEAD" or lower.startswith((b"http/1.1 204", b"http/1.1 304")):
        return b""
    if b"transfer-encoding: chunked" in lower:
        body = b""
        while True:
            size = stream.readline()
            body += size + stream.read(int(size, 16) + 2)
            if int(size, 16) == 0:
                return body
    length = re.search(rb"\r\ncontent-length: *(\d+)", lower)
    return stream.read(int(length.group(1))) if length else b""


def _refusal(fault: Refuse, method: str) -> bytes:
    document = f"<Error><Code>{fault.code}</Code><Message>as planned</Message></Error>".encode()
    head = f"HTTP/1.1 {fault.status} Planned\r\nContent-Length: {len(document)}\r\n{fault.headers}\r\n".encode()
    return head if method == "HEAD" else head + document


def _reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    # Closing is left to whoever still reads from it; with this set, the close is a reset.
    connection.close()
