"""One thread that waits for everything: requests of the kernel, answers of workers, the holder, timers.

Nothing here computes. Waking up costs more than answering: across two idle processors a request spends a tenth of a
millisecond in wake-ups and a hundredth in us. So after a request the loop goes on looking for a moment before it
sleeps, but only while that pays: requests lately came in close succession, and there is a processor to spare. Looked at
once in vain, it needs several close requests before it looks again; an idle mount costs nothing.
"""

from __future__ import annotations

import heapq
import os
import select
import threading
import time
from collections import deque
from collections.abc import Callable
from itertools import count
from typing import Protocol

POLL_NS = 100_000
"""How long to look before sleeping."""
CLOSE_NS = 250_000
"""Two requests closer than this are in close succession; it includes our own wake-up, which looking would have
saved."""
TRUST = 4
"""So many of these in a row, and looking is worth it."""
MOST_TRUST = 16
DISAPPOINTMENT = 4
CROWD_EVERY_NS = 20_000_000
CROWDED = 5.0
"""Percent of the last seconds in which somebody waited for a processor: looking would take it from them, and from the
very one whose request is looked for."""


class Timer:
    __slots__ = ("_call", "_order", "due")

    def __init__(self, due: float, order: int, call: Callable[[], None]) -> None:
        self.due = due
        self._order = order
        self._call: Callable[[], None] | None = call

    def __lt__(self, other: Timer) -> bool:
        return (self.due, self._order) < (other.due, other._order)

    def cancel(self) -> None:
        self._call = None

    def fire(self) -> None:
        call, self._call = self._call, None
        if call is not None:
            call()


class Patience:
    """Whether to look a little longer before sleeping. Pure: it is told what happened."""

    __slots__ = ("trust",)

    def __init__(self) -> None:
        self.trust = 0

    def is_worth(self) -> bool:
        return self.trust >= TRUST

    def came_after(self, gap_ns: int) -> None:
        """A request came this long after the last one was answered."""
        if gap_ns > CLOSE_NS:
            self.trust = 0
        elif self.trust < MOST_TRUST:
            self.trust += 1

    def looked_in_vain(self) -> None:
        self.trust -= DISAPPOINTMENT


class Server(Protocol):
    """The one whose requests are worth waiting for awake."""

    def fileno(self) -> int: ...

    def serve(self) -> None:
        """Answer one request, if there is one."""
        ...


class Loop:
    """Callbacks run in the thread of ``run``; only ``call_soon`` and ``stop`` may be called from other threads and from
    signal handlers."""

    def __init__(self, *, poll: bool = True) -> None:
        self._epoll = select.epoll()
        self._readers: dict[int, Callable[[], None]] = {}
        self._server: Server | None = None
        self._server_fd = -1
        self._soon: deque[Callable[[], None]] = deque()
        self._timers: list[Timer] = []
        self._order = count()
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._epoll.register(self._wake, select.EPOLLIN)
        self._readers[self._wake] = self._woken
        self._is_stopped = False
        self._is_asleep = False
        self._thread = 0
        self._patience = Patience()
        self._processors = len(os.sched_getaffinity(0))
        self._may_look = poll and self._processors >= 2
        self._is_crowded = False
        self._next_crowd_check = 0

    def attend(self, server: Server) -> None:
        """Serve this one's requests, and be quick about it."""
        self._server = server
        self._server_fd = server.fileno()
        self._epoll.register(self._server_fd, select.EPOLLIN)

    def add(self, fd: int, call: Callable[[], None]) -> None:
        """Call whenever there is something to read, or the other end has gone."""
        self._epoll.register(fd, select.EPOLLIN)
        self._readers[fd] = call

    def remove(self, fd: int) -> None:
        """Before closing it."""
        if fd == self._server_fd:
            self._server, self._server_fd = None, -1
            self._epoll.unregister(fd)
        elif self._readers.pop(fd, None) is not None:
            self._epoll.unregister(fd)

    def await_room(self, fd: int, call: Callable[[], None]) -> None:
        """Call once, when there is room to write again. The file must have been added for reading."""
        read = self._readers[fd]

        def ready() -> None:
            self._epoll.modify(fd, select.EPOLLIN)
            self._readers[fd] = read
            call()
            read()

        self._readers[fd] = ready
        self._epoll.modify(fd, select.EPOLLIN | select.EPOLLOUT)

    def call_soon(self, call: Callable[[], None]) -> None:
        """In the loop's thread, after what is going on there now."""
        self._soon.append(call)
        # Asleep in our own thread: then a signal handler calls, and sleeping would go on after it.
        if self._is_asleep or threading.get_ident() != self._thread:
            os.eventfd_write(self._wake, 1)

    def call_later(self, seconds: float, call: Callable[[], None]) -> Timer:
        timer = Timer(time.monotonic() + seconds, next(self._order), call)
        heapq.heappush(self._timers, timer)
        return timer

    def stop(self) -> None:
        self._is_stopped = True
        os.eventfd_write(self._wake, 1)

    def run(self) -> None:
        """Until somebody says ``stop``."""
        self._thread = threading.get_ident()
        poll = self._epoll.poll
        clock = time.perf_counter_ns
        answered = clock()
        while not self._is_stopped:
            events = poll(0)
            if not events:
                events = self._look(answered) or self._sleep()
            for fd, _ in events:
                if fd == self._server_fd:
                    assert self._server is not None
                    self._patience.came_after(clock() - answered)
                    self._server.serve()
                    answered = clock()
                else:
                    reader = self._readers.get(fd)
                    if reader is not None:
                        reader()
            if self._soon or self._timers:
                self._run_due()

    def close(self) -> None:
        self._epoll.close()
        os.close(self._wake)

    def _look(self, answered: int) -> list[tuple[int, int]]:
        """Poll for a moment, if that is worth it."""
        patience = self._patience
        if not self._may_look or self._soon or not patience.is_worth():
            return []
        clock, poll = time.perf_counter_ns, self._epoll.poll
        now = clock()
        if now >= self._next_crowd_check:
            self._next_crowd_check = now + CROWD_EVERY_NS
            self._is_crowded = running_tasks() > self._processors or pressure() > CROWDED
        if self._is_crowded:
            return []
        until = answered + POLL_NS
        while now < until:
            events = poll(0)
            if events:
                return events
            now = clock()
        patience.looked_in_vain()
        return []

    def _sleep(self) -> list[tuple[int, int]]:
        self._is_asleep = True
        try:
            return self._epoll.poll(self._pause())
        finally:
            self._is_asleep = False

    def _pause(self) -> float:
        """How long to sleep: seconds, -1 for as long as it takes."""
        if self._soon:
            return 0.0
        if self._timers:
            return max(0.0, self._timers[0].due - time.monotonic())
        return -1.0

    def _run_due(self) -> None:
        for _ in range(len(self._soon)):
            self._soon.popleft()()
        if self._timers:
            now = time.monotonic()
            while self._timers and self._timers[0].due <= now:
                heapq.heappop(self._timers).fire()

    def _woken(self) -> None:
        os.eventfd_read(self._wake)


def running_tasks() -> int:
    """How many threads of this machine want a processor just now, ours among them."""
    try:
        with open("/proc/loadavg", encoding="ascii") as table:
            return int(table.read().split()[3].partition("/")[0])
    except OSError:
        return 1 << 30  # no /proc: then there is no telling, and sleeping is never wrong


def pressure() -> float:
    """Percent of the last ten seconds in which a thread of this machine waited for a processor; 0 where the system does
    not tell."""
    try:
        with open("/proc/pressure/cpu", encoding="ascii") as table:
            return float(table.readline().split()[1].removeprefix("avg10="))
    except (OSError, ValueError, IndexError):
        return 0.0
