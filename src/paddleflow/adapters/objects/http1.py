"""HTTP/1.1 on one socket: one request, one answer, as little as a store needs, and strict about where an answer ends.

The standard library's client spends most of a small request on parsing headers as if they were mail, and cannot be left
in good order when the other side hangs up. Here an answer ends where its Content-Length or its last chunk says, or, for
want of both, where the connection ends. Refuses anything that is malformed: there is nothing to guess about bytes.
"""

from __future__ import annotations

import socket
import ssl
import struct
import time
from collections.abc import Mapping
from dataclasses import dataclass

_HEAD_LIMIT = 64 << 10
_CHUNK_LINE_LIMIT = 1 << 10
_RECEIVE = 64 << 10
_PEEK = 4 << 10
"""Longer than nearly every head."""
_WITHOUT_BODY = {204, 304}
_MOST_INTERIM = 10
"""Answers that say another is coming."""
_SLOWEST = 1 << 10
"""Bytes a second, on the whole: less is not told from a server that wants to be waited for."""


class HungUp(Exception):
    """The other side closed the connection before it sent a single byte of an answer."""


class Malformed(Exception):
    """The answer is cut off, or no HTTP."""


class TooLong(Exception):
    """The answer is longer than the one who asked can take."""


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    """Names in lower case; of one that comes twice, the last."""
    body: bytes
    is_last: bool
    """The connection cannot be used again."""

    def header(self, name: str) -> str:
        return self.headers.get(name, "")


class Line:
    """A connected socket, and what has been received but not yet used.

    Without TLS a body is received by the system straight into the bytes that are handed on, without a copy: that halves
    what a large read costs. For this the system itself has to watch the time, and a head is looked at before it is
    taken, so that nothing of the body is taken with it.
    """

    def __init__(self, connected: socket.socket, stall_s: float) -> None:
        self._socket = connected
        self._received = bytearray()
        self._stall_s, self._asked_at, self._told = stall_s, 0.0, 0
        self._is_plain = not isinstance(connected, ssl.SSLSocket)
        if self._is_plain:
            limit = struct.pack("ll", int(stall_s), int(stall_s % 1 * 1_000_000))
            connected.settimeout(None)
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
        else:
            connected.settimeout(stall_s)

    def ask(self, method: str, target: str, headers: Mapping[str, str], body: bytes, *, at_most: int) -> Answer:
        try:
            return self._ask(method, target, headers, body, at_most)
        except BlockingIOError as error:
            raise TimeoutError from error

    def close(self) -> None:
        self._socket.close()

    def _ask(self, method: str, target: str, headers: Mapping[str, str], body: bytes, at_most: int) -> Answer:
        self._send(method, target, headers, body)
        self._asked_at, self._told = time.monotonic(), 0
        status, found = self._read_head()
        interim = 0
        while 100 <= status < 200:
            interim += 1
            if interim > _MOST_INTERIM:
                raise Malformed("it announces an answer again and again, and sends none")
            status, found = self._read_head()
        is_last = "close" in found.get("connection", "").lower()
        if method == "HEAD" or status in _WITHOUT_BODY:
            return Answer(status, found, b"", is_last)
        if "chunked" in found.get("transfer-encoding", "").lower():
            return Answer(status, found, self._read_chunks(at_most), is_last)
        if "content-length" in found:
            length = _number(found["content-length"], 10)
            if length > at_most:
                raise TooLong(f"{length} bytes")
            return Answer(status, found, self._read(length), is_last)
        return Answer(status, found, self._read_to_end(at_most), True)

    def _send(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> None:
        lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
        if body or method in {"PUT", "POST"}:
            lines.append(f"content-length: {len(body)}")
        head = "\r\n".join([*lines, "", ""]).encode("ascii")
        try:
            if len(body) <= _RECEIVE:
                self._socket.sendall(head + body)
            else:
                self._socket.sendall(head)
                self._socket.sendall(body)
        except (BrokenPipeError, ConnectionResetError) as error:
            raise HungUp from error

    def _read_head(self) -> tuple[int, dict[str, str]]:
        while (end := self._received.find(b"\r\n\r\n")) < 0:
            if len(self._received) > _HEAD_LIMIT:
                raise Malformed("the head of the answer has no end")
            try:
                more = self._receive_head()
            except ConnectionResetError as error:
                if self._received:
                    raise
                raise HungUp from error
            if not more:
                raise Malformed("it ended in its head") if self._received else HungUp
            self._received += more
            self._check_pace(len(more))
        first, *lines = self._received[:end].decode("latin-1").split("\r\n")
        del self._received[: end + 4]
        words = first.split(" ", 2)
        if len(words) < 2 or not words[0].startswith("HTTP/1."):
            raise Malformed("it is no HTTP/1.1")
        headers = {}
        for line in lines:
            name, colon, value = line.partition(":")
            if not colon:
                raise Malformed("a header without a colon")
            headers[name.lower()] = value.strip()
        return _number(words[1], 10), headers

    def _receive_head(self) -> bytes:
        if not self._is_plain:
            return self._socket.recv(_RECEIVE)
        ahead = self._socket.recv(_PEEK, socket.MSG_PEEK)
        # The end of the head may have begun in what was received before.
        before = bytes(self._received[-3:])
        end = (before + ahead).find(b"\r\n\r\n")
        return self._socket.recv(len(ahead) if end < 0 else end + 4 - len(before))

    def _read(self, size: int) -> bytes:
        """Exactly so many bytes."""
        ready = len(self._received)
        if ready >= size:
            content = bytes(self._received[:size])
            del self._received[:size]
            return content
        parts = [bytes(self._received)] if ready else []
        self._received.clear()
        while ready < size:
            if self._is_plain:
                part = self._socket.recv(size - ready, socket.MSG_WAITALL)
            else:
                part = self._socket.recv(min(size - ready, _RECEIVE))
            if not part:
                raise Malformed(f"it ended {size - ready} bytes too early")
            parts.append(part)
            ready += len(part)
            self._check_pace(len(part))
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _read_chunks(self, at_most: int) -> bytes:
        chunks = []
        total = 0
        while size := _number(self._read_line().partition(b";")[0].strip().decode("latin-1"), 16):
            total += size
            if total > at_most:
                raise TooLong(f"more than {at_most} bytes")
            chunks.append(self._read(size))
            if self._read(2) != b"\r\n":
                raise Malformed("a chunk is not as long as it says")
        trailers = 0
        while line := self._read_line():  # nobody asked for them
            trailers += len(line)
            if trailers > _HEAD_LIMIT:
                raise Malformed("its trailers have no end")
        return b"".join(chunks)

    def _read_line(self) -> bytes:
        while (end := self._received.find(b"\r\n")) < 0:
            if len(self._received) > _CHUNK_LINE_LIMIT:
                raise Malformed("a line without an end")
            more = self._socket.recv(_RECEIVE)
            if not more:
                raise Malformed("it ended between chunks")
            self._received += more
            self._check_pace(len(more))
        line = bytes(self._received[:end])
        del self._received[: end + 2]
        return line

    def _check_pace(self, size: int) -> None:
        """A byte now and then keeps no reader waiting for days."""
        self._told += size
        if time.monotonic() - self._asked_at > self._stall_s + self._told / _SLOWEST:
            raise TimeoutError

    def _read_to_end(self, at_most: int) -> bytes:
        while more := self._socket.recv(_RECEIVE):
            self._received += more
            self._check_pace(len(more))
            if len(self._received) > at_most:
                raise TooLong(f"more than {at_most} bytes")
        return bytes(self._received)


def _number(text: str, base: int) -> int:
    try:
        number = int(text, base)
    except ValueError:
        raise Malformed(f"{text[:20]!r} is not a number") from None
    if number < 0:
        raise Malformed("a negative number")
    return number
