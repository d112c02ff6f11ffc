"""Backstage by messages: the front's end of its workers.

What was asked of a worker that died is asked of its successor: every call may be done twice (see ``backstage``).
A call goes to the worker its subject chooses, so that a listing goes on where it was begun, and one part of one object
is fetched once.
"""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys
import zlib
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from paddleflow.domain.errors import Unavailable
from paddleflow.pfs.backstage import Cached, Found, ObjectVersion, Page
from paddleflow.pfs.later import Later
from paddleflow.pfs.readahead import PART
from paddleflow.pfs.wire import RECEIVE, Inbox, pack, receive
from paddleflow.pfs.worker import Question
from paddleflow.ports.objects import Usage

_log = logging.getLogger(__name__)
_FAREWELL_S = 5.0
_PATIENCE = 5
"""Deaths of a worker without one answer between them."""


class Watcher(Protocol):
    """The loop, as far as this module needs it."""

    def add(self, fd: int, on_readable: Callable[[], None]) -> None: ...

    def remove(self, fd: int) -> None: ...

    def await_room(self, fd: int, on_writable: Callable[[], None]) -> None: ...


class _Worker:
    """One child process, what it was asked and has not answered."""

    def __init__(self, argv: Sequence[str], plan: str, index: int, watcher: Watcher) -> None:
        self._argv = argv
        self._plan = plan
        self._index = index
        self._watcher = watcher
        self._pending: dict[int, tuple[bytes, Later[Any]]] = {}
        self._deaths = 0
        self._start()

    def ask(self, question: Question, answer: Later[Any]) -> None:
        message = pack(question)
        self._pending[question[0]] = (message, answer)
        self._send(message)

    def tell_plan(self, plan: str) -> None:
        """Successors begin with this one."""
        self._plan = plan

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def pending(self) -> int:
        return len(self._pending)

    def say_farewell(self) -> None:
        """The last word, without the loop, which has ended: what is to be done once when the mount is gone."""
        self._end.settimeout(_FAREWELL_S)
        try:
            self._end.sendall(pack((0, "farewell", (), {})))
            for number, is_error, value in receive(self._end, self._inbox):
                if number == 0:
                    if is_error:
                        _log.warning("the end of the mount was not told: %s", value)
                    return
        except OSError as error:
            _log.warning("the end of the mount was not told: %s", error)

    def stop(self) -> None:
        self._watcher.remove(self._end.fileno())
        self._end.close()
        self._process.wait()

    def _start(self) -> None:
        self._end, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [*self._argv, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=sys.stderr,
            )
        self._end.setblocking(False)
        self._inbox = Inbox()
        self._outbox: deque[memoryview] = deque()
        self._watcher.add(self._end.fileno(), self._on_readable)
        self._send(pack((self._index, self._plan)))
        for message, _ in list(self._pending.values()):
            self._send(message)

    def _restart(self) -> None:
        self._watcher.remove(self._end.fileno())
        self._end.close()
        self._process.kill()
        self._process.wait()
        self._deaths += 1
        if self._deaths > _PATIENCE:
            # Something that was asked kills whoever does it. The askers get an error; the mount goes on.
            pending, self._pending = self._pending, {}
            self._deaths = 0
            self._start()
            for _, answer in pending.values():
                answer.fail(Unavailable("the worker that does this died several times in a row"))
        else:
            self._start()

    def _send(self, message: bytes) -> None:
        self._outbox.append(memoryview(message))
        if len(self._outbox) == 1:
            self._flush()

    def _flush(self) -> None:
        while self._outbox:
            first = self._outbox[0]
            try:
                sent = self._end.send(first)
            except BlockingIOError:
                self._watcher.await_room(self._end.fileno(), self._flush)
                return
            except OSError:  # it died: the readable side says so too and starts another, which is sent all of it
                self._outbox.clear()
                return
            if sent == len(first):
                self._outbox.popleft()
            else:
                self._outbox[0] = first[sent:]

    def _on_readable(self) -> None:
        try:
            data = self._end.recv(RECEIVE)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._restart()
            return
        self._deaths = 0
        for message in self._inbox.feed(data):
            number, is_error, value = message
            _, answer = self._pending.pop(number)
            if is_error:
                answer.fail(value)
            else:
                answer.succeed(value)


class RemoteBackstage:
    """Implements ``Backstage`` with worker processes."""

    def __init__(self, argv: Sequence[str], plan: str, count: int, watcher: Watcher) -> None:
        self._workers = [_Worker(argv, plan, index, watcher) for index in range(count)]
        self._number = 0

    @property
    def pids(self) -> list[int]:
        return [worker.pid for worker in self._workers]

    @property
    def pending(self) -> int:
        return sum(worker.pending for worker in self._workers)

    def stop(self) -> None:
        for worker in self._workers:
            worker.stop()

    def say_farewell(self) -> None:
        self._workers[0].say_farewell()

    def tell_plan(self, plan: str) -> None:
        for worker in self._workers:
            worker.tell_plan(plan)

    def ask(self, worker: int, method: str, *arguments: object, **named: object) -> Later[Any]:
        """Any method of a worker by its number, those of ``Backstage`` or its other ones."""
        self._number += 1
        answer: Later[Any] = Later()
        self._workers[worker % len(self._workers)].ask((self._number, method, arguments, named), answer)
        return answer

    def ask_all(self, method: str, *arguments: object) -> list[Later[Any]]:
        return [self.ask(index, method, *arguments) for index in range(len(self._workers))]

    def _for_path(self, path: str) -> int:
        return zlib.crc32(os.fsencode(path))

    async def stat(self, path: str) -> Found:
        answer: Found = await self.ask(self._for_path(path), "stat", path)
        return answer

    async def list(self, path: str, cursor: int = 0) -> Page:
        answer: Page = await self.ask(self._for_path(path), "list", path, cursor)
        return answer

    async def fetch(self, version: ObjectVersion, start: int, size: int) -> Cached:
        answer: Cached = await self.ask(self._for_path(version.key) + start // PART, "fetch", version, start, size)
        return answer

    async def read(self, version: ObjectVersion, start: int, size: int) -> bytes:
        answer: bytes = await self.ask(self._for_path(version.key), "read", version, start, size)
        return answer

    async def put(self, path: str, staged: str, *, mode: int | None = None) -> Found:
        answer: Found = await self.ask(self._for_path(path), "put", path, staged, mode=mode)
        return answer

    async def delete(self, path: str) -> None:
        await self.ask(self._for_path(path), "delete", path)

    async def make_directory(self, path: str, *, mode: int | None = None) -> None:
        await self.ask(self._for_path(path), "make_directory", path, mode=mode)

    async def remove_directory(self, path: str) -> None:
        await self.ask(self._for_path(path), "remove_directory", path)

    async def rename(self, source: str, target: str) -> None:
        await self.ask(self._for_path(source), "rename", source, target)

    async def set_modes(
        self,
        path: str,
        *,
        mode: int | None = None,
        uid: int | None = None,
        gid: int | None = None,
        modified_ns: int | None = None,
    ) -> None:
        worker = self._for_path(path)
        await self.ask(worker, "set_modes", path, mode=mode, uid=uid, gid=gid, modified_ns=modified_ns)

    async def make_link(self, path: str, target: str) -> None:
        await self.ask(self._for_path(path), "make_link", path, target)

    async def xattrs(self, path: str) -> Mapping[str, bytes]:
        answer: Mapping[str, bytes] = await self.ask(self._for_path(path), "xattrs", path)
        return answer

    async def set_xattr(self, path: str, name: str, value: bytes) -> None:
        await self.ask(self._for_path(path), "set_xattr", path, name, value)

    async def remove_xattr(self, path: str, name: str) -> None:
        await self.ask(self._for_path(path), "remove_xattr", path, name)

    async def usage(self, path: str) -> Usage | None:
        answer: Usage | None = await self.ask(self._for_path(path), "usage", path)
        return answer
