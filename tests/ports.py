"""Ports of loopback for servers that cannot say which port they took."""

from __future__ import annotations

import socket

_reserved: list[socket.socket] = []


def reserve_port() -> int:
    """A port that nobody else is given until these tests end: this process keeps it bound, without listening.

    A server that sets SO_REUSEADDR, as all do, can listen on it all the same, as often as it is started. Until then
    connections to it are refused.
    """
    holder = socket.socket()
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind(("127.0.0.1", 0))
    _reserved.append(holder)
    return int(holder.getsockname()[1])
