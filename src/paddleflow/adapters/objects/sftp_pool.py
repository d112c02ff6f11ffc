"""Connections to one SFTP server, kept and shared: each is used by one caller at a time.

Several connections rather than several channels on one: the SSH library gives each connection a thread, and a single
one is soon busy with ciphers. Whoever finds all of them taken waits. A connection that broke is not given back.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from paddleflow.adapters.objects.sftp_wire import Broken, SftpSession
from paddleflow.adapters.objects.ssh import Connection
from paddleflow.domain.errors import Unavailable


class SftpPool:
    def __init__(self, connect: Callable[[], Connection], *, most: int = 8) -> None:
        self._connect = connect
        self._room = threading.Semaphore(most)
        self._lock = threading.Lock()
        self._idle: list[Connection] = []
        self._is_closed = False

    @contextmanager
    def use(self) -> Iterator[SftpSession]:
        with self._room:
            connection = self._take()
            try:
                yield connection.session
            except Broken:
                connection.close()
                raise
            finally:
                self._give_back(connection)

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _take(self) -> Connection:
        while True:
            with self._lock:
                if self._is_closed:
                    raise Unavailable("the SFTP store is closed")
                connection = self._idle.pop() if self._idle else None
            if connection is None:
                return self._connect()
            if connection.is_alive:
                return connection
            connection.close()

    def _give_back(self, connection: Connection) -> None:
        with self._lock:
            # With answers still due, which nobody waits for any more, it is of no use to the next one.
            if not self._is_closed and connection.session.is_settled and connection.is_alive:
                self._idle.append(connection)
                return
        connection.close()
