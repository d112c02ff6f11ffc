"""Telling the kernel that something it remembers is no longer so.

Such a message takes locks of the inode it names, and whoever holds those may be waiting for an answer of ours: so a
thread of its own sends them, never the loop. They only make sooner what times to live and the check at open would bring
anyway; therefore the queue is bounded, and what does not fit is counted and left out.
"""

from __future__ import annotations

import errno
import logging
import os
import threading

from paddleflow.pfs.fuse import protocol

log = logging.getLogger(__name__)

QUEUE = 65_536
UNKNOWN = (errno.ENOENT, errno.ENOTDIR, errno.ENOTEMPTY, errno.EBUSY)
"""The kernel does not have it (any more), or somebody is just using it: normal, and nothing is left to do."""


class Notifier:
    """What the vfs tells the kernel; safe to call from any thread, and never waits."""

    def __init__(self, fuse_fd: int, *, limit: int = QUEUE) -> None:
        self.sent = 0
        self.left_out = 0
        self._fd = fuse_fd
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
        self._thread.join()

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
            os.write(self._fd, message)
        except OSError as error:
            if error.errno in (errno.ENODEV, errno.EBADF):
                return False  # unmounted: nobody remembers anything
            if error.errno not in UNKNOWN:
                log.warning("the kernel did not take a notification: %s", error)
            return True
        self.sent += 1
        return True
