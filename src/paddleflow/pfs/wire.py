"""Messages between the front and its workers: whole Python values over a socket pair nobody else holds.

Pickle is right here and nowhere else in the product: both ends are the same code of the same user, started one by the
other, and the descriptors have no name that a third process could open.
"""

from __future__ import annotations

import copyreg
import pickle
import socket
import struct
from collections.abc import Iterator
from operator import attrgetter
from typing import Any

from paddleflow.pfs.backstage import Cached, Found, ObjectVersion, Page
from paddleflow.ports.objects import ObjectEntry

_LENGTH = struct.Struct("<I")
RECEIVE = 64 << 10
"""At once. Room for more than this the system would map and unmap each time."""


_KINDS: tuple[Any, ...] = (ObjectEntry, ObjectVersion, Found, Cached, Page)
_PARTS = {kind: attrgetter(*kind.__slots__) for kind in _KINDS}
_SETTERS = {kind: [kind.__dict__[name].__set__ for name in kind.__slots__] for kind in _KINDS}


def _taken_apart(value: Any) -> tuple[Any, ...]:
    return _put_together, (type(value), *_PARTS[type(value)](value))


def _put_together(kind: type, *parts: Any) -> Any:
    made: Any = object.__new__(kind)
    for put, part in zip(_SETTERS[kind], parts, strict=True):
        put(made, part)
    return made


# What a frozen dataclass does by itself to be pickled costs several times more, and a listing has many thousands.
for _kind in _KINDS:
    copyreg.pickle(_kind, _taken_apart)


def pack(message: object) -> bytes:
    body = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    return _LENGTH.pack(len(body)) + body


class Inbox:
    """Bytes as they come in, messages as they become whole."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def feed(self, data: bytes) -> Iterator[Any]:
        if not self._bytes and len(data) >= _LENGTH.size and _LENGTH.size + _LENGTH.unpack_from(data)[0] == len(data):
            # Nearly always: one message, whole.
            yield pickle.loads(memoryview(data)[_LENGTH.size :])  # noqa: S301 - see above: both ends are ours
            return
        self._bytes += data
        while len(self._bytes) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._bytes)
            end = _LENGTH.size + length
            if len(self._bytes) < end:
                return
            body = bytes(memoryview(self._bytes)[_LENGTH.size : end])
            del self._bytes[:end]
            yield pickle.loads(body)  # noqa: S301 - see above: both ends are ours


def receive(end: socket.socket, inbox: Inbox) -> Iterator[Any]:
    """Every message until the other side is gone, waiting for each."""
    try:
        while data := end.recv(RECEIVE):
            yield from inbox.feed(data)
    except ConnectionError:
        return  # gone with something of ours unread
