"""Telling the kernel that something it remembers is no longer so.

Such a message takes locks of the inode it names, and whoever holds those may be waiting for an answer of ours. Not even
SIGKILL ends that wait: a front with a thread in it would stay half dead, and no successor could give the answer that
lets it go. So a process of its own hands them to the kernel, which nobody waits for.

They only make sooner what times to live and the check at open would bring anyway; therefore the queue is bounded, and
what does not fit is counted and left out.
"""

from __future__ import annotations

import ctypes
import errno
import logging
import os
import signal
import socket
import threading
from typing import NoReturn

from paddleflow.pfs.fuse import protocol

log = logging.getLogger(__name__)

QUEUE = 65_536
UNKNOWN = (errno.ENOENT, errno.ENOTDIR, errno.ENOTEMPTY, errno.EBUSY)
"""The kernel does not have it (any more), or somebody is just using it: normal, and nothing is left to do."""


PR_SET_NAME = 15
LONGEST = 1024


class Notifier:
    """What the vfs tells the kernel; safe to call from any thread, and never waits. To be made before there are other
    threads: it forks."""

    def __init__(self, fuse_fd: int, *, limit: int = QUEUE) -> None:
        self.sent = 0
        self.left_out = 0
        self._line = _start_messenger(fuse_fd)
        self._limit = limit
        self._queue: dict[bytes, None] = {}
        self._wake = threading.Condition()
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name="notifier", daemon=True)
        self._thread.start()

    def inval_node(self, node: int) -> None:
        """Attributes and content."""
        self._put(protocol.pack_inval_inode(node, 0, 0))

    def inval_attributes(self, node: int) -> None:
        self._put(protocol.pack_inval_inode(node, -1, 0))

    def inval_entry(self, parent: int, name: str) -> None:
        self._put(protocol.pack_inval_entry(parent, name, expire=False))

    def expire_entry(self, parent: int, name: str) -> None:
        """Look the name up again before it is used again, but leave what is open or mounted below it alone."""
        self._put(protocol.pack_inval_entry(parent, name, expire=True))

    def deleted(self, parent: int, child: int, name: str) -> None:
        self._put(protocol.pack_delete(parent, child, name))

    def inval_every_entry(self) -> None:
        """All names of the mount at once (Linux 6.16; older kernels refuse, and names live as long as they were
        told)."""
        self._put(protocol.pack_new_epoch())

    def close(self) -> None:
        with self._wake:
            self._is_closed = True
            self._wake.notify()
        self._line.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._line.close()

    def _put(self, message: bytes) -> None:
        with self._wake:
            if len(self._queue) >= self._limit and message not in self._queue:
                self.left_out += 1
                return
            self._queue[message] = None
            self._wake.notify()

    def _run(self) -> None:
        while True:
            with self._wake:
                while not self._queue and not self._is_closed:
                    self._wake.wait()
                if self._is_closed:
                    return
                batch, self._queue = self._queue, {}
            for message in batch:
                if self._is_closed or not self._send(message):
                    return

    def _send(self, message: bytes) -> bool:
        try:
            self._line.send(message)
        except OSError:
            return False  # unmounted: nobody remembers anything
        self.sent += 1
        return True


def _start_messenger(fuse_fd: int) -> socket.socket:
    """Our end of the line to a process that hands each message to the kernel, and ends with us."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if not os.fork():
        _carry_messages(theirs.detach(), fuse_fd)
    theirs.close()
    return ours


def _carry_messages(line: int, fuse_fd: int) -> NoReturn:
    try:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        ctypes.CDLL(None).prctl(PR_SET_NAME, b"pfs-notifier", 0, 0, 0)
        # Whoever waits for the end of the front must not wait for us.
        low, high = sorted((line, fuse_fd))
        os.closerange(3, low)
        os.closerange(low + 1, high)
        os.closerange(high + 1, os.sysconf("SC_OPEN_MAX"))
        while True:
            message = os.read(line, LONGEST)
            if not message or not _is_taken(fuse_fd, message):
                break
    finally:
        os._exit(0)


def _is_taken(fuse_fd: int, message: bytes) -> bool:
    """False when there is nobody left to tell."""
    try:
        os.write(fuse_fd, message)
    except OSError as error:
        if error.errno in (errno.ENODEV, errno.EBADF):
            return False
        if error.errno not in UNKNOWN:
            log.warning("the kernel did not take a notification: %s", error)
    return True
