"""Hearing that tasks have changed: the platform's end of ``notify.fifo``. Server side.

A notice carries an address and nothing else. One that is lost costs time only: the runtime looks for itself now and
then. A named pipe and not a socket, because it holds thousands of notices where a datagram socket holds ten by default,
and a supervisor must never wait for a platform that is busy. With two servers on one root the later one hears.
"""

from __future__ import annotations

import fcntl
import os
import select

from paddleflow.adapters.local import layout

_ROOM_BYTES = 1024 * 1024


class Notices:
    def __init__(self, root: str) -> None:
        # A new pipe under the old name: whoever listened before hears no more, and no notice is heard by halves.
        scratch = f"{root}/{layout.NOTIFY_FIFO}.{os.urandom(8).hex()}"
        os.mkfifo(scratch, 0o600)
        # Opened for writing too, so that there is never an end of file between two supervisors.
        self._fifo = os.open(scratch, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        os.rename(scratch, f"{root}/{layout.NOTIFY_FIFO}")
        self._enlarge()
        self._woken = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._poller = select.poll()
        self._poller.register(self._fifo, select.POLLIN)
        self._poller.register(self._woken, select.POLLIN)

    def _enlarge(self) -> None:
        try:
            fcntl.fcntl(self._fifo, fcntl.F_SETPIPE_SZ, _ROOM_BYTES)
        except PermissionError:
            # An ordinary user who has many pipes already keeps the default, which holds about a thousand notices.
            return

    def wait(self, timeout_s: float) -> tuple[list[str], bool]:
        """The addresses heard of (each once, in order), and whether somebody called ``wake``."""
        ready = [fd for fd, _ in self._poller.poll(max(0.0, timeout_s) * 1000)]
        if self._woken in ready:
            os.eventfd_read(self._woken)
        heard = b""
        if self._fifo in ready:
            # Lines shorter than PIPE_BUF are written whole, and the pipe is read until it is empty.
            heard = os.read(self._fifo, _ROOM_BYTES)
        return list(dict.fromkeys(heard.decode(errors="replace").split())), self._woken in ready

    def wake(self) -> None:
        os.eventfd_write(self._woken, 1)

    def close(self) -> None:
        os.close(self._fifo)
        os.close(self._woken)
