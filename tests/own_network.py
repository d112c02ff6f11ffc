"""Run a program in a network of its own, where every port of loopback is free and nothing else can be reached.

usage: python tests/own_network.py COMMAND...
"""

from __future__ import annotations

import fcntl
import os
import socket
import struct
import subprocess
import sys

_INSIDE = "--inside"
_UNSHARE = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--net", "--map-root-user"]
_SIOCSIFFLAGS = 0x8914
_IFF_UP = 1


def command(words: list[str]) -> list[str]:
    return [*_UNSHARE, sys.executable, __file__, _INSIDE, *words]


def is_allowed() -> bool:
    try:
        return subprocess.run(command(["true"]), capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


def _bring_up_loopback() -> None:
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", _IFF_UP))


if __name__ == "__main__":
    if sys.argv[1] == _INSIDE:
        _bring_up_loopback()
        os.execvp(sys.argv[2], sys.argv[2:])
    else:
        os.execvp(_UNSHARE[0], command(sys.argv[1:]))
