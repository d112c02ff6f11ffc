"""Talking to a running mount: a socket in its state directory, JSON lines both ways.

A request is one line; the answer is any number of lines, the last of which has ``"done": true``, or ``"error"`` with a
sentence. Whoever may open the socket owns the mount: the directory is the owner's alone.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

from paddleflow.domain.errors import Invalid, NotFound, Unavailable

SOCKET = "control.sock"
_LONGEST_REQUEST = 1 << 20


class Watcher(Protocol):
    def add(self, fd: int, on_readable: Callable[[], None]) -> None: ...

    def remove(self, fd: int) -> None: ...


Tell = Callable[[Mapping[str, Any]], bool]
"""Send one line; False when the asker is gone."""
Handler = Callable[[Mapping[str, Any], Tell], None]
"""Does one kind of request and tells until it has told ``done``; may go on after it returned."""


@contextmanager
def _short(directory: str) -> Iterator[str]:
    """Another name for a directory: the path of a socket may have 107 bytes, and homes are deeper than that."""
    fd = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{fd}"
    finally:
        os.close(fd)


class ControlDesk:
    """The mount's end."""

    def __init__(self, state_dir: str, watcher: Watcher, handlers: Mapping[str, Handler]) -> None:
        self._watcher = watcher
        self._handlers = handlers
        self._listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        with _short(state_dir) as place:
            fresh = f"{place}/{SOCKET}.{os.getpid()}"
            self._listening.bind(fresh)
            os.rename(fresh, f"{place}/{SOCKET}")  # a predecessor's is replaced at once: there is never none
        self._listening.listen(16)
        self._listening.setblocking(False)
        watcher.add(self._listening.fileno(), self._on_connection)

    def _on_connection(self) -> None:
        try:
            asker, _ = self._listening.accept()
        except BlockingIOError:
            return
        asker.setblocking(False)
        request = bytearray()
        self._watcher.add(asker.fileno(), lambda: self._on_request(asker, request))

    def _on_request(self, asker: socket.socket, request: bytearray) -> None:
        try:
            data = asker.recv(1 << 16)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        request += data
        if not data or len(request) > _LONGEST_REQUEST:
            self._hang_up(asker)
        elif request.endswith(b"\n"):
            self._watcher.remove(asker.fileno())
            asker.settimeout(1.0)  # an asker that does not read is given up, so that the mount never waits for it
            self._answer(asker, bytes(request))

    def _answer(self, asker: socket.socket, request: bytes) -> None:
        def tell(line: Mapping[str, Any]) -> bool:
            try:
                asker.sendall(json.dumps(line).encode() + b"\n")
            except OSError:
                asker.close()
                return False
            if "done" in line or "error" in line:
                asker.close()
            return True

        try:
            wish = json.loads(request)
            handler = self._handlers[wish["do"]]
        except (ValueError, KeyError, TypeError):
            tell({"error": f"a mount understands {', '.join(sorted(self._handlers))}"})
            return
        handler(wish, tell)

    def _hang_up(self, asker: socket.socket) -> None:
        self._watcher.remove(asker.fileno())
        asker.close()


def ask(state_dir: str, request: Mapping[str, Any], *, silence_s: float = 60.0) -> Iterator[Mapping[str, Any]]:
    """The answer of a mount, line by line; Unavailable when nothing comes for so long."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as end:
        end.settimeout(silence_s)
        try:
            with _short(state_dir) as place:
                end.connect(f"{place}/{SOCKET}")
        except (FileNotFoundError, ConnectionRefusedError) as error:
            raise NotFound("no mount is running there") from error
        try:
            end.sendall(json.dumps(request).encode() + b"\n")
            with end.makefile("r", encoding="utf-8") as lines:
                for line in lines:
                    answer = json.loads(line)
                    if "error" in answer:
                        raise Invalid(answer["error"])
                    yield answer
                    if answer.get("done"):
                        return
        except OSError as error:
            raise Unavailable(f"the mount did not answer: {error}") from error
    raise Unavailable("the mount ended in the middle of its answer")
