"""The SFTP protocol, version 3, spoken over one open channel: requests out, answers in, many under way at once.

Owns packets and their numbers, and nothing of SSH. The SSH library has a client of its own, which is not used: it
cannot hold names that are no UTF-8, folds most refusals into one, and asks for 32 KiB at a time from threads it never
joins. Here one caller at a time uses a session, sends what it can foresee and then collects, so a large read costs a
few round trips instead of hundreds.

Names are bytes. A server's refusal is ``Refused``; a connection that ends, stalls or speaks nonsense is ``Broken``,
after which the session is of no more use.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

from paddleflow.domain.errors import Unavailable

_VERSION = 3
_LARGEST_PACKET = 16 * 1024 * 1024
_SAFE_LENGTH = 32 * 1024
"""Of one read or write, with servers that do not say how much they take."""
_LONGEST_LENGTH = 256 * 1024
_IN_FLIGHT = 4 * 1024 * 1024
"""Bytes asked for and not yet answered: enough for a long way, and no more memory than that."""
_LISTINGS_IN_FLIGHT = 8


class Channel(Protocol):
    """What is needed of an SSH channel."""

    def recv(self, nbytes: int) -> bytes: ...

    def sendall(self, s: bytes) -> None: ...


class Kind(IntEnum):
    INIT, VERSION, OPEN, CLOSE, READ, WRITE, LSTAT, FSTAT, SETSTAT, FSETSTAT, OPENDIR, READDIR = range(1, 13)
    REMOVE, MKDIR, RMDIR, REALPATH, STAT, RENAME, READLINK, SYMLINK = range(13, 21)
    STATUS, HANDLE, DATA, NAME, ATTRS = range(101, 106)
    EXTENDED, EXTENDED_REPLY = 200, 201


class Status(IntEnum):
    OK, EOF, NO_SUCH_FILE, PERMISSION_DENIED, FAILURE, BAD_MESSAGE, NO_CONNECTION, CONNECTION_LOST, UNSUPPORTED = range(
        9
    )


class Flag(IntEnum):
    READ, WRITE, APPEND, CREATE, TRUNCATE, EXCLUSIVE = (1 << bit for bit in range(6))


class Refused(Exception):
    """The server said no. Does not leave the adapter."""

    def __init__(self, status: int, told: str) -> None:
        super().__init__(told)
        self.status = status
        self.told = told


class Broken(Unavailable):
    """The connection is of no more use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attributes:
    """None: not told, or not to be set. The owner and the group go together, and so do the times."""

    size: int | None = None
    uid: int | None = None
    gid: int | None = None
    mode: int | None = None
    atime: int | None = None
    mtime: int | None = None


def text(value: bytes) -> bytes:
    return struct.pack(">I", len(value)) + value


def pack(attributes: Attributes) -> bytes:
    flags, fields = 0, b""
    if attributes.size is not None:
        flags, fields = flags | 1, fields + struct.pack(">Q", attributes.size)
    if attributes.uid is not None and attributes.gid is not None:
        flags, fields = flags | 2, fields + struct.pack(">II", attributes.uid, attributes.gid)
    if attributes.mode is not None:
        flags, fields = flags | 4, fields + struct.pack(">I", attributes.mode)
    if attributes.atime is not None and attributes.mtime is not None:
        flags, fields = flags | 8, fields + struct.pack(">II", attributes.atime, attributes.mtime)
    return struct.pack(">I", flags) + fields


class Reply:
    """The fields of an answer, taken one after the other."""

    def __init__(self, kind: int, body: bytes) -> None:
        self.kind = kind
        self._body = body
        self._at = 0

    def number(self) -> int:
        return int(self._unpack(">I", 4))

    def long(self) -> int:
        return int(self._unpack(">Q", 8))

    def text(self) -> bytes:
        size = self.number()
        if self._at + size > len(self._body):
            raise Broken("the SFTP server sent a packet that ends too early")
        value = self._body[self._at : self._at + size]
        self._at += size
        return value

    @property
    def is_read(self) -> bool:
        return self._at >= len(self._body)

    def attributes(self) -> Attributes:
        flags = self.number()
        size = self.long() if flags & 1 else None
        uid, gid = (self.number(), self.number()) if flags & 2 else (None, None)
        mode = self.number() if flags & 4 else None
        atime, mtime = (self.number(), self.number()) if flags & 8 else (None, None)
        if flags & 0x80000000:
            for _ in range(self.number()):
                self.text(), self.text()
        return Attributes(size=size, uid=uid, gid=gid, mode=mode, atime=atime, mtime=mtime)

    def _unpack(self, form: str, size: int) -> int:
        if self._at + size > len(self._body):
            raise Broken("the SFTP server sent a packet that ends too early")
        value: int = struct.unpack_from(form, self._body, self._at)[0]
        self._at += size
        return value


class SftpSession:
    """For one caller at a time."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._next = 0
        self._early: dict[int, Reply] = {}
        """Answers that came before the one that was waited for."""
        self._due: set[int] = set()
        self.is_broken = False
        self.extensions = self._greet()
        self._read_length = self._write_length = _SAFE_LENGTH
        if b"limits@openssh.com" in self.extensions:
            limits = self.call(Kind.EXTENDED, text(b"limits@openssh.com"), expect=Kind.EXTENDED_REPLY)
            _, longest_read, longest_write, _ = (limits.long() for _ in range(4))
            self._read_length = min(longest_read or _SAFE_LENGTH, _LONGEST_LENGTH)
            self._write_length = min(longest_write or _SAFE_LENGTH, _LONGEST_LENGTH)

    @property
    def is_settled(self) -> bool:
        """Everything that was asked has been answered and looked at: the next caller may have it."""
        return not self._due and not self.is_broken

    def send(self, kind: Kind, *fields: bytes) -> int:
        """The number under which the answer will come."""
        self._next = (self._next + 1) & 0xFFFFFFFF
        number = self._next
        self._due.add(number)
        body = struct.pack(">BI", kind, number) + b"".join(fields)
        try:
            self._channel.sendall(text(body))
        except TimeoutError as error:
            raise self._broke("the SFTP server takes no more requests") from error
        except (OSError, EOFError) as error:
            raise self._broke("the connection to the SFTP server broke while a request was sent") from error
        return number

    def receive(self, number: int, expect: Kind | None = None) -> Reply:
        """The answer to one request. A status other than OK is Refused."""
        while number not in self._early:
            kind, body = self._packet()
            reply = Reply(kind, body)
            self._early[reply.number()] = reply
        reply = self._early.pop(number)
        self._due.discard(number)
        if reply.kind == Kind.STATUS:
            status, told = reply.number(), reply.text().decode(errors="replace")
            if status != Status.OK:
                raise Refused(status, told)
        if expect is not None and reply.kind != expect:
            raise self._broke(f"the SFTP server answered with packet {reply.kind} where {expect.name} was due")
        return reply

    def call(self, kind: Kind, *fields: bytes, expect: Kind = Kind.STATUS) -> Reply:
        return self.receive(self.send(kind, *fields), expect)

    def extended(self, name: bytes, *fields: bytes, expect: Kind = Kind.STATUS) -> Reply:
        return self.call(Kind.EXTENDED, text(name), *fields, expect=expect)

    def read(self, handle: bytes, start: int, size: int) -> bytes:
        """Exactly these bytes of an open file; fewer only at its end."""
        content = bytearray(size)
        wanted = deque((at, min(self._read_length, size - at)) for at in range(0, size, self._read_length))
        under_way: deque[tuple[int, int, int]] = deque()
        end = size
        asked = 0
        while wanted or under_way:
            while wanted and (asked < _IN_FLIGHT or not under_way):
                at, length = wanted.popleft()
                if at >= end:
                    continue
                fields = struct.pack(">QI", start + at, length)
                under_way.append((self.send(Kind.READ, text(handle), fields), at, length))
                asked += length
            if not under_way:
                break
            number, at, length = under_way.popleft()
            asked -= length
            try:
                part = self.receive(number, Kind.DATA).text()
            except Refused as refused:
                if refused.status != Status.EOF:
                    raise
                end = min(end, at)
                continue
            if not part or len(part) > length:
                raise self._broke("the SFTP server sent another number of bytes than it was asked for")
            content[at : at + len(part)] = part
            if len(part) < length:
                # Servers may send less than was asked for anywhere; only the end of file is the end.
                wanted.appendleft((at + len(part), length - len(part)))
        return bytes(content[:end]) if end < size else bytes(content)

    def write(self, handle: bytes, size: int, piece: Callable[[int, int], bytes], *, start: int = 0) -> None:
        """``piece(at, length)`` gives the bytes; ``start`` is where in the file the first of them goes."""
        under_way: deque[int] = deque()
        for at in range(0, size, self._write_length):
            content = piece(at, min(self._write_length, size - at))
            under_way.append(self.send(Kind.WRITE, text(handle), struct.pack(">Q", start + at), text(content)))
            if len(under_way) * self._write_length >= _IN_FLIGHT:
                self.receive(under_way.popleft(), Kind.STATUS)
        for number in under_way:
            self.receive(number, Kind.STATUS)

    def names(self, path: bytes) -> Iterator[tuple[bytes, Attributes]]:
        """What a directory holds, without itself and the one above."""
        handle = self.call(Kind.OPENDIR, text(path), expect=Kind.HANDLE).text()
        try:
            under_way = deque(self.send(Kind.READDIR, text(handle)) for _ in range(_LISTINGS_IN_FLIGHT))
            is_over = False
            while under_way:
                try:
                    reply = self.receive(under_way.popleft(), Kind.NAME)
                except Refused as refused:
                    if refused.status != Status.EOF:
                        raise
                    is_over = True
                    continue
                for _ in range(reply.number()):
                    name, _, attributes = reply.text(), reply.text(), reply.attributes()
                    if not name or b"/" in name or b"\0" in name:
                        raise self._broke("the SFTP server listed something that is no name of a file")
                    if name not in {b".", b".."}:
                        yield name, attributes
                if not is_over:
                    under_way.append(self.send(Kind.READDIR, text(handle)))
        finally:
            if not self.is_broken:
                self.call(Kind.CLOSE, text(handle))

    def _broke(self, told: str) -> Broken:
        self.is_broken = True
        return Broken(told)

    def _greet(self) -> Mapping[bytes, bytes]:
        try:
            self._channel.sendall(text(struct.pack(">BI", Kind.INIT, _VERSION)))
        except (OSError, EOFError) as error:
            raise Broken("the SSH server ended the SFTP session at once") from error
        kind, body = self._packet()
        reply = Reply(kind, body)
        if kind != Kind.VERSION or reply.number() < _VERSION:
            raise Broken("the SSH server does not speak SFTP version 3")
        extensions: dict[bytes, bytes] = {}
        while not reply.is_read:
            name = reply.text()
            extensions[name] = reply.text()
        return extensions

    def _packet(self) -> tuple[int, bytes]:
        size = struct.unpack(">I", self._exactly(4))[0]
        if not 0 < size <= _LARGEST_PACKET:
            raise self._broke("the SSH server sent something that is not SFTP; does its login shell print a message?")
        body = self._exactly(size)
        return body[0], body[1:]

    def _exactly(self, size: int) -> bytes:
        parts: list[bytes] = []
        while size:
            try:
                part = self._channel.recv(size)
            except TimeoutError as error:
                raise self._broke("the SFTP server did not answer in time") from error
            except (OSError, EOFError) as error:
                raise self._broke("the connection to the SFTP server broke") from error
            if not part:
                raise self._broke("the SFTP server closed the connection")
            parts.append(part)
            size -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)
