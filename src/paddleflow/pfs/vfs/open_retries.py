"""Opens that are tried again after ESTALE.

An open is two requests: LOOKUP finds the node, OPEN opens it. A name can be replaced in between; OPEN then answers
ESTALE, and the kernel looks the name up again and opens what it finds. It does so once: a name that is replaced a
second time in between would show ESTALE to the program. So the second time LOOKUP opens the file already, and OPEN
takes what is ready. The program gets the file that had the name at the LOOKUP, which was made during its call.

A retry is recognised by its thread, parent and name. It looks the name up twice when the first answer is another node
than the kernel knew; both times it gets the same node. Whatever else the thread does next, the retry was given up and
the file is closed again.
"""

from __future__ import annotations

import errno
import logging
import os
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from paddleflow.domain.errors import PaddleFlowError, Stale
from paddleflow.pfs.attrs import Opened
from paddleflow.pfs.errnos import FsError, errno_of
from paddleflow.pfs.later import start
from paddleflow.pfs.nodes import Node
from paddleflow.pfs.vfs.mounted import Mounted
from paddleflow.pfs.vfs.writing import Writing

_log = logging.getLogger(__name__)

_TRIES: Final = 16
_LOOKUPS: Final = 2
_KEPT: Final = 1024
"""Retries remembered. The kernel retries at once, so only those of threads killed meanwhile pile up."""
_EXPIRES_AFTER_S: Final = 60.0
_ONLY_BY_CALL: Final = os.O_CREAT | os.O_EXCL | os.O_NOCTTY
"""Flags of CREATE that OPEN of the same call does not have."""


@dataclass(slots=True)
class _Ready:
    parent: Node
    name: str
    flags: int
    node: Node
    opened: Opened
    since: float
    lookups: int = 0


class OpenRetries:
    def __init__(
        self, mounted: Mounted, writing: Writing, open_node: Callable[[Node, int, int | None], Awaitable[Opened]]
    ) -> None:
        self._mounted = mounted
        self._writing = writing
        self._open_node = open_node
        self._expected: OrderedDict[int, tuple[int, str, int]] = OrderedDict()
        """By thread: parent, name and flags of the open that was answered ESTALE."""
        self._ready: dict[int, _Ready] = {}

    def expect(self, error: Exception, thread: int, parent: Node | None, name: str, flags: int) -> None:
        """OPEN or CREATE ends with this error. Threads of another pid namespace have the number 0 here and cannot be
        told apart."""
        if errno_of(error) != errno.ESTALE or not thread or parent is None:
            return
        truncates_for_reading = flags & os.O_TRUNC and flags & os.O_ACCMODE == os.O_RDONLY
        if not flags & os.O_EXCL and not truncates_for_reading:
            self._expected[thread] = (parent.id, name, flags & ~_ONLY_BY_CALL)
            if len(self._expected) > _KEPT:
                self._expected.popitem(last=False)

    async def look_up(self, thread: int, parent: Node, name: str) -> Node | None:
        """The node to answer a retry's LOOKUP with, open already; None for every other LOOKUP."""
        ready = self._ready.get(thread)
        if ready is not None and not (ready.parent is parent and ready.name == name and ready.lookups < _LOOKUPS):
            self._give_up(thread)
            ready = None
        expected = self._expected.get(thread)
        if ready is None and expected is not None and expected[:2] == (parent.id, name):
            del self._expected[thread]
            ready = await self._prepare(parent, name, expected[2])
            if ready is not None:
                self._give_up(thread)
                self._ready[thread] = ready
        if ready is None:
            return None
        ready.lookups += 1
        return ready.node

    def take(self, thread: int, node: Node, flags: int, unique: int) -> Opened | None:
        """What LOOKUP opened for this OPEN, if it did."""
        ready = self._ready.get(thread)
        if ready is None:
            return None
        if ready.node is not node or ready.flags != flags & ~_ONLY_BY_CALL:
            self._give_up(thread)
            return None
        del self._ready[thread]
        self._mounted.note_open(node, ready.opened.handle, unique)
        if flags & os.O_TRUNC:
            self._writing.empty(node)
        return ready.opened

    def expire(self) -> None:
        """Close what no OPEN came for: its thread was killed in between, or may not open the file."""
        now = self._mounted.tree.clock()
        for thread in [key for key, ready in self._ready.items() if now - ready.since > _EXPIRES_AFTER_S]:
            self._give_up(thread)

    async def _prepare(self, parent: Node, name: str, flags: int) -> _Ready | None:
        for _ in range(_TRIES):
            node = await self._mounted.tree.find(parent, name)
            if node is None:
                return None
            try:
                # Truncated when OPEN comes: only then has the kernel checked that the caller may.
                opened = await self._open_node(node, flags & ~os.O_TRUNC, None)
            except (FsError, Stale) as error:
                if errno_of(error) != errno.ESTALE:
                    return None  # OPEN will say so
            except PaddleFlowError:
                return None
            else:
                return _Ready(parent, name, flags, node, opened, self._mounted.tree.clock())
        return None

    def _give_up(self, thread: int) -> None:
        ready = self._ready.pop(thread, None)
        if ready is not None:
            start(self._writing.release(ready.node, ready.opened.handle), _closed)


def _closed(_: None, error: BaseException | None) -> None:
    if error is not None:
        _log.error("a file that was opened ahead could not be closed", exc_info=error)
