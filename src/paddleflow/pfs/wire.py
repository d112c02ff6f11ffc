"""Messages between the front and its workers: whole Python values over a socket pair nobody else holds.

Pickle is right here and nowhere else in the product: both ends are the same code of the same user, started one by the
other, and the descriptors have no name that a third process could open.
"""

from __future__ import annotations

import pickle
import socket
import struct
from collections.abc import Iterator
from typing import Any

_LENGTH = struct.Struct("<I")


def pack(message: object) -> bytes:
    body = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    return _LENGTH.pack(len(body)) + body


class Inbox:
    """Bytes as they come in, messages as they become whole."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def feed(self, data: bytes) -> Iterator[Any]:
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
        while data := end.recv(1 << 18):
            yield from inbox.feed(data)
    except ConnectionError:
        return  # gone with something of ours unread
