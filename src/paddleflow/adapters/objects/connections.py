"""Connections to one HTTP server: kept open, used by one request at a time, never waited on for ever.

Everything that goes wrong underneath becomes Unavailable, in words that name the server and nothing of what was sent. A
redirect is an answer like any other: a signed request is for one server.
"""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from paddleflow.adapters.objects.http1 import Answer, HungUp, Line, Malformed, TooLong
from paddleflow.domain.errors import Unavailable

_KEPT = 32
"""Idle connections beyond this are closed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    connect_s: float = 10.0
    stall_s: float = 30.0
    """Without a single byte moving."""


class Connections:
    def __init__(
        self, host: str, port: int, *, tls: ssl.SSLContext | None = None, limits: Limits | None = None
    ) -> None:
        self._host, self._port, self._tls, self._limits = host, port, tls, limits or Limits()
        self._idle: list[Line] = []
        self._lock = threading.Lock()
        self._is_closed = False

    def ask(self, method: str, target: str, headers: Mapping[str, str], body: bytes, *, at_most: int) -> Answer:
        """One request, one answer, whose body is refused when it is longer than ``at_most``. May go out twice, when an
        idle connection turns out to be gone: only for requests that may be repeated."""
        line = self._take_idle()
        if line is not None:
            # It was idle, and the server may have given it up: then nothing was answered, and we connect anew.
            with suppress(HungUp):
                return self._exchange(line, method, target, headers, body, at_most)
        try:
            return self._exchange(self._connect(), method, target, headers, body, at_most)
        except HungUp as error:
            raise Unavailable(f"{self._name} closed the connection without an answer") from error

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for line in idle:
            line.close()

    def _exchange(
        self, line: Line, method: str, target: str, headers: Mapping[str, str], body: bytes, at_most: int
    ) -> Answer:
        try:
            answer = line.ask(method, target, headers, body, at_most=at_most)
        except BaseException as error:
            line.close()
            if isinstance(error, TimeoutError):
                raise Unavailable(f"{self._name} sent nothing for {self._limits.stall_s:g} s") from error
            if isinstance(error, Malformed):
                raise Unavailable(f"the answer of {self._name} is broken: {error}") from error
            if isinstance(error, TooLong):
                raise Unavailable(f"{self._name} sends {error} where {at_most} are the most") from error
            if isinstance(error, OSError):
                raise Unavailable(f"the connection to {self._name} broke: {_told(error)}") from error
            raise
        if answer.is_last:
            line.close()
        else:
            self._give_back(line)
        return answer

    def _take_idle(self) -> Line | None:
        with self._lock:
            if self._is_closed:
                raise Unavailable(f"the connections to {self._name} are closed")
            return self._idle.pop() if self._idle else None

    def _give_back(self, line: Line) -> None:
        with self._lock:
            if not self._is_closed and len(self._idle) < _KEPT:
                self._idle.append(line)
                return
        line.close()

    def _connect(self) -> Line:
        try:
            connected = socket.create_connection((self._host, self._port), self._limits.connect_s)
        except socket.gaierror as error:
            raise Unavailable(f"there is no host named {self._host}: check the endpoint") from error
        except TimeoutError as error:
            raise Unavailable(f"{self._name} cannot be reached within {self._limits.connect_s:g} s") from error
        except OSError as error:
            raise Unavailable(f"{self._name} cannot be reached: {_told(error)}") from error
        try:
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._tls is not None:
                connected = self._tls.wrap_socket(connected, server_hostname=self._host)
        except BaseException as error:
            connected.close()
            if isinstance(error, ssl.SSLCertVerificationError):
                raise Unavailable(
                    f"the certificate of {self._name} is not trusted: {error.verify_message}; "
                    "set insecureSkipVerify to true only if you know why"
                ) from error
            if isinstance(error, ssl.SSLError):
                hint = "give the endpoint as http://… if it is plain HTTP"
                raise Unavailable(f"{self._name} does not speak TLS: {hint}") from error
            if isinstance(error, OSError):
                raise Unavailable(f"{self._name} cannot be reached: {_told(error)}") from error
            raise
        return Line(connected, self._limits.stall_s)

    @property
    def _name(self) -> str:
        return f"{self._host}:{self._port}"


def _told(error: OSError) -> str:
    """What the system says, without what was being sent."""
    return error.strerror or type(error).__name__
