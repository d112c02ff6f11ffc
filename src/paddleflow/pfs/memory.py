"""Memory for bytes on their way: one pool, counted in bytes, that all fetching of a process takes from.

Who wants more than is left waits its turn; nothing is ever lent beyond the limit. The limit is a share of what the
process may use: of the machine's memory and of every cgroup above it, version 1 and 2, whichever is least. A limit set
on a parent group counts like one's own, because the kernel kills for either.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SHARE = 8
"""One part in so many of the memory the process may use."""
_NO_LIMIT = 1 << 60
"""Version 1 says "none" with a huge number."""


class MemoryPool:
    def __init__(self, limit: int) -> None:
        if limit <= 0:
            raise ValueError("a memory pool needs a limit above 0")
        self.limit = limit
        self._used = 0
        self._peak = 0
        self._changed = threading.Condition()
        self._queue: deque[object] = deque()

    @property
    def used(self) -> int:
        return self._used

    @property
    def peak(self) -> int:
        """The most that was ever lent at once."""
        return self._peak

    @property
    def pressure(self) -> float:
        """0: nothing is lent; 1: all of it is."""
        return self._used / self.limit

    @contextmanager
    def borrow(self, size: int) -> Iterator[None]:
        """Wait until so many bytes are left, in the order of asking, and give them back at the end. Who has borrowed
        must not borrow again before."""
        if size > self.limit:
            raise ValueError(f"{size} bytes are more than the pool of {self.limit} ever has")
        ticket = object()
        with self._changed:
            self._queue.append(ticket)
            try:
                self._changed.wait_for(lambda: self._queue[0] is ticket and self._used + size <= self.limit)
                self._used += size
                self._peak = max(self._peak, self._used)
            finally:
                self._queue.remove(ticket)
                self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._used -= size
                self._changed.notify_all()


def pool_limit(wanted: int) -> int:
    """As much as was asked for, or this process' share of what it may use."""
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    groups = cgroup_limit(Path("/proc/self/cgroup"), Path("/sys/fs/cgroup"))
    return max(1, min(wanted, min(physical, groups or physical) // SHARE))


def cgroup_limit(membership: Path, mount: Path) -> int | None:
    """The least memory limit of all groups this process is in, themselves or by a parent; None when there is none."""
    try:
        lines = membership.read_text().splitlines()
    except OSError:
        return None  # a system without cgroups
    limits: list[int] = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers:
            limits += _limits_above(mount, path, "memory.max")
            limits += _limits_above(mount / "unified", path, "memory.max")
        elif "memory" in controllers.split(","):
            limits += _limits_above(mount / "memory", path, "memory.limit_in_bytes")
    return min(limits, default=None)


def _limits_above(top: Path, path: str, name: str) -> Iterator[int]:
    group = top / path.strip("/")
    for folder in [group, *group.parents]:
        if folder == top.parent:
            return
        try:
            text = (folder / name).read_text().strip()
        except OSError:
            continue  # the topmost group has no such file, and one outside our namespace cannot be seen
        if text.isdigit() and int(text) < _NO_LIMIT:
            yield int(text)
