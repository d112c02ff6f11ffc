"""The words between the holder and its fronts, and the front's end of the line.

One socket that keeps messages whole, JSON with descriptors beside it. The front finds its end as descriptor 3. The
first message hands it everything: the /dev/fuse descriptor, the table of backing files, and as an anonymous file (it
may be larger than a message, and it carries credentials) what was negotiated, which front this is, and its plan.
"""

from __future__ import annotations

import errno
import json
import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from paddleflow.domain.errors import Unavailable
from paddleflow.pfs.fuse import negotiation
from paddleflow.pfs.fuse.negotiation import Negotiated

FRONT_FD = 3
LONGEST = 1 << 16
DESCRIPTORS = 4
BACKING_LIMIT = 65_536
"""So many files the kernel may know at once; each costs it about a kilobyte."""
RECORD_SIZE = 64

Message = dict[str, Any]


def send(line: socket.socket, message: Mapping[str, Any], fds: tuple[int, ...] = ()) -> None:
    socket.send_fds(line, [json.dumps(message).encode()], fds)


def receive(line: socket.socket) -> tuple[Message | None, list[int]]:
    """None when the other end is gone."""
    raw, fds, _, _ = socket.recv_fds(line, LONGEST, DESCRIPTORS, socket.MSG_CMSG_CLOEXEC)
    return (json.loads(raw) if raw else None), list(fds)


def make_table(limit: int = BACKING_LIMIT) -> int:
    """Memory for the table of backing files (see ``passthrough``), as a file that has no name; the first record is its
    head."""
    fd = os.memfd_create("backings", os.MFD_CLOEXEC)
    os.ftruncate(fd, RECORD_SIZE * (limit + 1))
    return fd


def into_memory(document: Mapping[str, Any]) -> int:
    """A document as an anonymous file: no disk, no argument, no environment ever holds it."""
    fd = os.memfd_create("plan", os.MFD_CLOEXEC)
    with os.fdopen(os.dup(fd), "wb") as memory:
        memory.write(json.dumps(document).encode())
    return fd


def from_memory(fd: int) -> Message:
    """Read it and close it."""
    with os.fdopen(fd, "rb") as memory:
        memory.seek(0)
        document: Message = json.loads(memory.read())
    return document


@dataclass(frozen=True, slots=True)
class Welcome:
    """What a front starts with."""

    fuse_fd: int
    table_fd: int
    negotiated: Negotiated
    plan: Mapping[str, Any]
    generation: int
    """0 for the first front of a mount; every other one takes over."""


class HolderLink:
    """The front's end. It also registers backing files: by itself where it is privileged, through the holder where
    not."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self._asks_holder = False
        self.unmount_failed: Callable[[str], None] | None = None
        """Told, with a sentence, when an unmount that was asked for did not happen."""
        message, fds = receive(line)
        if message is None or len(fds) != 3:
            raise Unavailable("the holder of this mount ended before it handed the mount over")
        fuse_fd, table_fd, document = fds
        told = from_memory(document)
        negotiated = Negotiated(**told["negotiated"])
        self.welcome = Welcome(fuse_fd, table_fd, negotiated, told["plan"], told["generation"])
        os.set_blocking(fuse_fd, False)

    @classmethod
    def inherit(cls, fd: int = FRONT_FD) -> HolderLink:
        os.set_inheritable(fd, False)
        return cls(socket.socket(fileno=fd))

    def fileno(self) -> int:
        return self._line.fileno()

    def serving(self) -> None:
        """From now on requests are answered: whoever asked for the mount is told."""
        send(self._line, {"say": "serving"})

    def failed(self, sentence: str) -> None:
        """This mount can never work (say, the store refuses our credentials): take it down."""
        send(self._line, {"say": "failed", "why": sentence})

    def renew_plan(self, plan: Mapping[str, Any]) -> None:
        """What the next front is to get, for instance with newer credentials."""
        fd = into_memory(plan)
        try:
            send(self._line, {"say": "plan"}, (fd,))
        finally:
            os.close(fd)

    def unmount(self, *, lazy: bool) -> None:
        """Ask for it; it happens while we go on serving, and then the kernel says that the mount is gone."""
        send(self._line, {"say": "unmount", "lazy": lazy})

    def receive(self) -> bool:
        """To call when there is something to read. False when the holder is gone: the mount then lives as long as
        we."""
        try:
            message, _ = receive(self._line)
        except ConnectionError:
            return False
        if message is None:
            return False
        self._heard(message)
        return True

    def open_backing(self, fd: int) -> int:
        if not self._asks_holder:
            try:
                return negotiation.open_backing(self.welcome.fuse_fd, fd)
            except PermissionError:
                self._asks_holder = True
        return self._ask({"ask": "open_backing"}, (fd,))

    def close_backing(self, backing: int) -> None:
        if self._asks_holder:
            self._ask({"ask": "close_backing", "backing": backing}, ())
        else:
            negotiation.close_backing(self.welcome.fuse_fd, backing)

    def _ask(self, question: Message, fds: tuple[int, ...]) -> int:
        send(self._line, question, fds)
        while True:
            message, _ = receive(self._line)
            if message is None:
                raise OSError(errno.EPERM, "the holder, which alone may register backing files, is gone")
            if "errno" in message:
                if message["errno"]:
                    raise OSError(message["errno"], os.strerror(message["errno"]))
                return int(message["backing"])
            self._heard(message)

    def _heard(self, message: Message) -> None:
        if "unmount_failed" in message and self.unmount_failed is not None:
            self.unmount_failed(message["unmount_failed"])
