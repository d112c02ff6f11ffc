"""A proxy between a client and an HTTP server that does what networks and servers do on bad days, as planned.

``proxy.plan("GET", Reset(100), Refuse())`` spoils the next two GETs, in this order; everything else passes unchanged.
It speaks HTTP/1.1 with Content-Length or chunks, one request after the other on each connection.

How long a client waits for bytes that do not come must not decide a test: a limit short enough to wait for would now
and then be too short for a healthy answer. So a client may have any limit, and ``proxy.see(its socket)`` lets the proxy
shorten it when a stall begins.
"""

from __future__ import annotations

import re
import socket
import struct
import threading
from collections import defaultdict, deque
from collections.abc import Callable
from contextlib import suppress
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
    """Nothing more comes after so many bytes of the answer, and the connection stays. What the system allows the
    client's socket to wait is cut short as soon as the answer is due."""

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


_SOON = struct.pack("ll", 0, 20_000)
"""SO_RCVTIMEO: 20 ms."""
_INTERIM = b"HTTP/1.1 100 Continue\r\n\r\n"
"""An answer that says another is coming."""


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
        self._open: list[socket.socket] = []
        self._clients: dict[object, socket.socket] = {}
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._threads: list[threading.Thread] = []
        self._accepts = threading.Thread(target=self._accept, daemon=True)
        self._accepts.start()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def see(self, client: socket.socket) -> None:
        """Before it asks for anything: the client's end of a connection to here."""
        self._clients[client.getsockname()] = client

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
        self._accepts.join()
        for connection in self._open:
            # Wakes whoever reads from it or writes to it.
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self.upstream_port))
            self._open += [client, server]
            thread = threading.Thread(target=self._serve, args=(client, server), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, client: socket.socket, server: socket.socket) -> None:
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
                self._hurry(client)
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

    def _hurry(self, client: socket.socket) -> None:
        """The client may be waiting already, for as long as it was allowed when it began; an interim answer makes it
        begin again."""
        end = self._clients.get(client.getpeername())
        if end is not None:
            end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _SOON)
            client.sendall(_INTERIM)


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
            if not size:
                raise _Over
            body += size + _read(stream, int(size, 16) + 2)
            if int(size, 16) == 0:
                return body
    length = re.search(rb"\r\ncontent-length: *(\d+)", lower)
    return _read(stream, int(length.group(1))) if length else b""


def _read(stream: BinaryIO, size: int) -> bytes:
    content = stream.read(size)
    if len(content) < size:
        raise _Over
    return content


def _refusal(fault: Refuse, method: str) -> bytes:
    document = f"<Error><Code>{fault.code}</Code><Message>as planned</Message></Error>".encode()
    head = f"HTTP/1.1 {fault.status} Planned\r\nContent-Length: {len(document)}\r\n{fault.headers}\r\n".encode()
    return head if method == "HEAD" else head + document


def _reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    # Closing is left to whoever still reads from it; with this set, the close is a reset.
    connection.close()
