"""Ports in a row, for what gives ports to others out of a range and sees itself whether they are free.

They cannot be held by binding them, as ``tests.ports`` does: nobody would find them free then. So the test processes of
this host share the ports among themselves by names that only one can have, which go with the process.
"""

from __future__ import annotations

import socket

BLOCK = 64
_FIRST = range(30000, 32768 - BLOCK, BLOCK)
"""Below those the kernel gives to outgoing connections, and none that our servers take unasked."""
_names: dict[int, socket.socket] = {}


def free_block(count: int = BLOCK) -> range:
    """So many ports that no other test process is given and that nobody has now; the same ones again when asked again,
    unless somebody has taken one meanwhile."""
    assert count <= BLOCK
    for first in _FIRST:
        ports = range(first, first + count)
        if _is_ours(first) and all(_is_free(port) for port in ports):
            return ports
    raise AssertionError("this host has no free ports in a row")


def _is_ours(first: int) -> bool:
    if first in _names:
        return True
    name = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        name.bind(f"\0paddleflow-tests-ports-{first}")
    except OSError:
        name.close()
        return False
    _names[first] = name
    return True


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True
