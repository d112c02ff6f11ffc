"""A proxy that knows nothing but bytes: after so many of them it cuts a connection, lets it hang, or does something
behind the back of both sides."""

from __future__ import annotations

import socket
import struct
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Cut:
    """Reset both sides once so many bytes have passed in this direction."""

    from_server: int | None = None
    from_client: int | None = None


@dataclass(frozen=True)
class Hang:
    """Nothing passes any more once so many bytes have come from the server; the connection stays."""

    from_server: int


@dataclass(frozen=True)
class Meanwhile:
    """Something happens once so many bytes have come from the server; then everything passes."""

    from_server: int
    act: Callable[[], object]


Fault = Cut | Hang | Meanwhile


@dataclass
class Cutter:
    upstream_port: int
    count: int = 0
    """Connections that were made."""
    _pairs: list[tuple[socket.socket, socket.socket]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._plans: deque[Fault] = deque()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._threads: list[threading.Thread] = []
        self._accepts = threading.Thread(target=self._accept, daemon=True)
        self._accepts.start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def plan(self, *faults: Fault) -> None:
        """For the connections that come next, one each."""
        self._plans.extend(faults)

    def cut_all(self) -> None:
        for pair in self._pairs:
            _reset(*pair)

    def close(self) -> None:
        # Wakes the thread that waits for connections.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._accepts.join()
        self.cut_all()
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self.upstream_port))
            except OSError:
                _reset(client)
                continue
            self.count += 1
            plan = self._plans.popleft() if self._plans else None
            self._pairs.append((client, server))
            sent = plan.from_server if plan is not None else None
            asked = plan.from_client if isinstance(plan, Cut) else None
            for source, target, limit in ((server, client, sent), (client, server, asked)):
                thread = threading.Thread(target=_pass_on, args=(source, target, limit, plan), daemon=True)
                self._threads.append(thread)
                thread.start()


def _pass_on(source: socket.socket, target: socket.socket, limit: int | None, plan: Fault | None) -> None:
    left = limit
    try:
        while part := source.recv(65_536):
            if left is None or len(part) < left:
                target.sendall(part)
                left = None if left is None else left - len(part)
            elif isinstance(plan, Meanwhile):
                plan.act()
                target.sendall(part)
                left = None
            else:
                target.sendall(part[:left])
                if isinstance(plan, Hang):
                    return
                break
    except OSError:
        pass  # the other direction has ended it
    _reset(source, target)


def _reset(*connections: socket.socket) -> None:
    for connection in connections:
        try:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            # Wakes whoever waits in recv; the close after it is a reset.
            connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # closed already
        connection.close()
