"""Opens that are tried again after ESTALE.

An open is two requests: LOOKUP finds the node, OPEN opens it. A name can be replaced in between; OPEN then answers
ESTALE, and the kernel looks the name up again and opens what it finds. It does so once: a name that is replaced a
second time in between would show ESTALE to the program. So the second time LOOKUP opens the file already, and OPEN
takes what is ready. The program gets the file that had the name at the LOOKUP, which was made during its call.

A retry is recognised by its thread, parent and name. It looks the name up again when the answer is another node than
the kernel knew, and again when other threads have looked it up meanwhile; it gets the same node each time. Whatever
else the thread does next, the retry was given up and the file is closed again.

All of it is kept in a small file, written anew at each step, because this process may die between any two of them: a
successor gets the next one, and finds the file that is open ahead among the handles it takes over.
"""

from __future__ import annotations

import errno
import json
import logging
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from paddleflow.domain.errors import PaddleFlowError, Stale
from paddleflow.pfs.attrs import Opened, OpenMode
from paddleflow.pfs.errnos import FsError, errno_of
from paddleflow.pfs.later import start
from paddleflow.pfs.nodes import Node
from paddleflow.pfs.vfs.mounted import AHEAD, Mounted
from paddleflow.pfs.vfs.writing import Writing

_log = logging.getLogger(__name__)

_TRIES: Final = 16
_LOOKUPS: Final = 16
"""More than the kernel needs while some threads look up one name; a thread that only looks is not retrying an open."""
_KEPT: Final = 128
"""Retries remembered. The kernel retries at once, so only those of threads killed meanwhile pile up."""
_EXPIRES_AFTER_S: Final = 60.0
_ONLY_BY_CALL: Final = os.O_CREAT | os.O_EXCL | os.O_NOCTTY
"""Flags of CREATE that OPEN of the same call does not have."""


@dataclass(frozen=True, slots=True)
class _Call:
    """What a thread wants to open."""

    parent: int
    name: str
    flags: int


@dataclass(slots=True)
class _Ready:
    """Open ahead, for the OPEN that is to come."""

    call: _Call
    node: Node
    opened: Opened
    since: float
    lookups: int = 0


class OpenRetries:
    def __init__(
        self,
        path: str,
        mounted: Mounted,
        writing: Writing,
        open_node: Callable[[Node, int, int], Awaitable[Opened]],
    ) -> None:
        self._path = path
        self._mounted = mounted
        self._writing = writing
        self._open_node = open_node
        self._expected: dict[int, _Call] = {}
        """By thread: the open that was answered ESTALE."""
        self._ready: dict[int, _Ready] = {}

    def expect(self, error: Exception, thread: int, parent: Node | None, name: str, flags: int) -> None:
        """OPEN or CREATE ends with this error. Threads of another pid namespace have the number 0 here and cannot be
        told apart."""
        if errno_of(error) != errno.ESTALE or not thread or parent is None:
            return
        truncates_for_reading = flags & os.O_TRUNC and flags & os.O_ACCMODE == os.O_RDONLY
        if flags & os.O_EXCL or truncates_for_reading:
            return
        self._expected[thread] = _Call(parent.id, name, flags & ~_ONLY_BY_CALL)
        if len(self._expected) > _KEPT:
            del self._expected[next(iter(self._expected))]
        self._save()

    async def look_up(self, thread: int, parent: Node, name: str) -> Node | None:
        """The node to answer a retry's LOOKUP with, open already; None for every other LOOKUP."""
        ready = self._ready.get(thread)
        if ready is not None:
            if (ready.call.parent, ready.call.name) == (parent.id, name) and ready.lookups < _LOOKUPS:
                ready.lookups += 1
                return ready.node
            self._give_up(thread)
        call = self._expected.get(thread)
        if call is None or (call.parent, call.name) != (parent.id, name):
            return None
        ready = await self._prepare(call, parent)
        if ready is None:
            return None  # still expected: should this process die before it answers, the successor is asked again
        self._expected.pop(thread, None)
        self._ready[thread] = ready
        self._save()
        return ready.node

    def take(self, thread: int, node: Node, flags: int, unique: int) -> Opened | None:
        """What LOOKUP opened for this OPEN, if it did."""
        ready = self._ready.get(thread)
        if ready is None:
            return None
        if ready.node is not node or ready.call.flags != flags & ~_ONLY_BY_CALL:
            self._give_up(thread)
            return None
        try:
            self._mounted.note_open(node, ready.opened.handle, unique)
        except OSError:
            self._give_up(thread)
            raise
        del self._ready[thread]
        self._save()
        if flags & os.O_TRUNC:
            self._writing.empty(node)
        return ready.opened

    def expire(self) -> None:
        """Close what no OPEN came for: its thread was killed in between, or may not open the file."""
        now = self._mounted.tree.clock()
        for thread in [key for key, ready in self._ready.items() if now - ready.since > _EXPIRES_AFTER_S]:
            self._give_up(thread)

    def inherit(self, is_successor: bool) -> None:
        """Go on with a predecessor's retries. What it opened ahead and no retry knows of, nobody would ever close."""
        if not is_successor:
            self._save()  # threads of an earlier mount mean nothing
            return
        self._expected, ready = self._load()
        claimed = set()
        for thread, (call, number, handle) in ready.items():
            node = self._mounted.nodes.find(number)
            opened = None if node is None else self._reopened(node, handle)
            if node is not None and opened is not None:
                claimed.add(handle)
                self._ready[thread] = _Ready(call, node, opened, self._mounted.tree.clock(), lookups=1)
        for number, handles in list(self._mounted.nodes.opens.items()):
            node = self._mounted.nodes.get(number)
            for handle, (request, _) in list(handles.items()):
                if request == AHEAD and handle not in claimed:
                    start(self._writing.release(node, handle), _closed)
        self._save()

    def _reopened(self, node: Node, handle: int) -> Opened | None:
        """A predecessor's handle; None when it was not noted, or what the kernel is to read has left the cache."""
        file = self._mounted.files.get(node.id)
        if file is None or file.mode is None or handle not in file.handles:
            return None
        if file.mode is OpenMode.PASSTHROUGH and not file.backing:
            cached = None if file.version is None else self._mounted.find(file.version)
            if cached is None:
                return None
            file.backing = cached.path
            cached.close()
        return Opened(handle, file.mode, file.backing, False, file.handles[handle].is_writable)

    async def _prepare(self, call: _Call, parent: Node) -> _Ready | None:
        for _ in range(_TRIES):
            node = await self._mounted.tree.find(parent, call.name)
            if node is None:
                return None
            try:
                # Truncated when OPEN comes: only then has the kernel checked that the caller may.
                with self._mounted.nodes.pinned(node):
                    opened = await self._open_node(node, call.flags & ~os.O_TRUNC, AHEAD)
            except (FsError, Stale) as error:
                if errno_of(error) != errno.ESTALE:
                    return None  # OPEN will say so
            except PaddleFlowError:
                return None
            else:
                return _Ready(call, node, opened, self._mounted.tree.clock(), lookups=1)
        return None

    def _give_up(self, thread: int) -> None:
        ready = self._ready.pop(thread)
        start(self._writing.release(ready.node, ready.opened.handle), _closed)
        self._save()

    def _save(self) -> None:
        calls = [[thread, it.parent, it.name, it.flags] for thread, it in self._expected.items()]
        ready = [
            [thread, it.call.parent, it.call.name, it.call.flags, it.node.id, it.opened.handle]
            for thread, it in self._ready.items()
        ]
        if not calls and not ready:
            with suppress(FileNotFoundError):
                os.unlink(self._path)
            return
        fresh = f"{self._path}.new"
        try:
            with open(fresh, "w", encoding="ascii") as file:
                json.dump({"expected": calls, "ready": ready}, file)
            os.replace(fresh, self._path)
        except OSError as error:
            # Without this file a successor only closes what is open ahead; with an older one it would go wrong.
            _log.warning("retries of opens are not kept for a successor: %s", error)
            for path in (fresh, self._path):
                with suppress(FileNotFoundError):
                    os.unlink(path)

    def _load(self) -> tuple[dict[int, _Call], dict[int, tuple[_Call, int, int]]]:
        try:
            with open(self._path, encoding="ascii") as file:
                kept = json.load(file)
        except FileNotFoundError:
            return {}, {}
        calls = {thread: _Call(*call) for thread, *call in kept["expected"]}
        return calls, {thread: (_Call(*call), node, handle) for thread, *call, node, handle in kept["ready"]}


def _closed(_: None, error: BaseException | None) -> None:
    if error is not None:
        _log.error("a file that was opened ahead could not be closed", exc_info=error)
