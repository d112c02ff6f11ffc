"""Asking the nursery for a supervisor, and starting a nursery when there is none. Server side."""

from __future__ import annotations

import errno
import os
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from paddleflow.adapters.local import layout
from paddleflow.domain.errors import Unavailable

_PROGRAM = str(Path(__file__).with_name("nursery.py"))
_START_PATIENCE_S = 20.0
_NOBODY = (errno.ENOENT, errno.ECONNREFUSED, errno.EPIPE)
"""Not there, dead, or just leaving."""


class NurseryClient:
    def __init__(self, root_fd: int, root: str, idle_s: float) -> None:
        self._root = root
        self._idle_s = idle_s
        # Socket addresses are limited to 108 bytes; through the descriptor the root may have any length.
        self._address = f"/proc/self/fd/{root_fd}/{layout.NURSERY_SOCKET}"
        self._sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._sender.settimeout(_START_PATIENCE_S)

    def request_supervisor(self, job_id: str, task_id: str) -> None:
        """Returns when the request is with a living nursery. Asking twice for one task is harmless."""
        message = f"{job_id}/{task_id}".encode()
        if self._send(message):
            return
        lock = layout.acquire_lock_waiting(f"{self._root}/{layout.NURSERY_LOCK}")
        try:
            # Another server may have started one while this one waited.
            if self._send(message):
                return
            self._start()
            if not self._send(message):
                raise Unavailable("the process that starts tasks ended right after its start")
        finally:
            os.close(lock)

    def close(self) -> None:
        self._sender.close()

    def _send(self, message: bytes) -> bool:
        try:
            self._sender.sendto(message, self._address)
        except OSError as error:
            if error.errno in _NOBODY:
                return False
            raise Unavailable(f"the process that starts tasks does not answer: {error}") from error
        return True

    def _start(self) -> None:
        with suppress(FileNotFoundError):
            os.unlink(self._address)
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as requests:
                requests.bind(self._address)
                os.chmod(self._address, 0o600)
                # Ends, with success, as soon as the nursery proper has been detached and listens.
                start = subprocess.run(
                    [sys.executable, "-I", "-S", _PROGRAM, str(self._idle_s)],
                    stdin=requests.fileno(),
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                    cwd=self._root,
                    env={},
                    timeout=_START_PATIENCE_S,
                    check=False,
                )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Unavailable(f"the process that starts tasks cannot be started: {error}") from error
        if start.returncode != 0:
            why = start.stderr.decode(errors="replace").strip().rpartition("\n")[2]
            raise Unavailable(f"the process that starts tasks cannot be started: {why or start.returncode}")
