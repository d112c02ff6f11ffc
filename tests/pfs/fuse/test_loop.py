"""The loop: descriptors, timers, calls from other threads, and when looking on is worth it."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from paddleflow.pfs.fuse.loop import CLOSE_NS, MOST_TRUST, TRUST, Loop, Patience, pressure, running_tasks
from tests.waiting import wait_for


@pytest.fixture
def loop() -> Iterator[Loop]:
    loop = Loop()
    yield loop
    loop.close()


class Pipe:
    """Serves one byte at a time."""

    def __init__(self, loop: Loop, until: int) -> None:
        self.reading, self.writing = os.pipe2(os.O_NONBLOCK)
        self.served = 0
        self._loop, self._until = loop, until

    def fileno(self) -> int:
        return self.reading

    def serve(self) -> None:
        os.read(self.reading, 1)
        self.served += 1
        if self.served == self._until:
            self._loop.stop()


def test_everything_there_is_served(loop: Loop) -> None:
    pipe = Pipe(loop, 100)
    loop.attend(pipe)
    os.write(pipe.writing, b"x" * 100)
    loop.run()
    assert pipe.served == 100


def test_requests_from_another_thread_are_served_while_looking_and_sleeping(loop: Loop) -> None:
    pipe = Pipe(loop, 2000)
    loop.attend(pipe)

    def send() -> None:
        for _ in range(2000):
            os.write(pipe.writing, b"x")

    sender = threading.Thread(target=send)
    sender.start()
    loop.run()
    sender.join()
    assert pipe.served == 2000


class Clock:
    """In place of the loop's ``time``: it moves when the test says so."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.perf_counter_ns = time.perf_counter_ns

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("paddleflow.pfs.fuse.loop.time", clock)
    return clock


def test_timers_fire_in_order_and_cancelled_ones_do_not(loop: Loop, clock: Clock) -> None:
    fired: list[str] = []
    loop.call_later(20, lambda: fired.append("second"))
    loop.call_later(21, loop.stop)
    loop.call_later(10, lambda: fired.append("first"))
    loop.call_later(5, lambda: fired.append("never")).cancel()
    loop.call_later(22, lambda: fired.append("after the end"))
    clock.now += 21
    loop.run()
    assert fired == ["first", "second"]


def test_a_timer_does_not_fire_before_its_time(loop: Loop, clock: Clock) -> None:
    fired: list[str] = []
    loop.call_later(10, lambda: fired.append("too early"))
    clock.now += 9.999
    loop.call_soon(loop.stop)
    loop.run()
    assert fired == []


def test_timers_of_the_same_moment_keep_their_order(loop: Loop, clock: Clock) -> None:
    fired: list[int] = []
    for number in range(10):
        loop.call_later(0.0, lambda number=number: fired.append(number))  # type: ignore[misc]
    loop.call_later(0.0, loop.stop)
    loop.run()
    assert fired == list(range(10))


def test_a_timer_wakes_a_loop_that_sleeps(loop: Loop) -> None:
    began = time.monotonic()
    loop.call_later(0.01, loop.stop)
    loop.run()
    assert time.monotonic() - began >= 0.01


def test_a_call_from_another_thread_wakes_the_loop(loop: Loop) -> None:
    seen: list[int] = []

    def from_elsewhere() -> None:
        loop.call_soon(lambda: seen.append(threading.get_ident()))
        loop.call_soon(loop.stop)

    other = threading.Thread(target=from_elsewhere)
    loop.call_soon(other.start)
    loop.run()
    other.join()
    assert seen == [threading.get_ident()]


def test_a_call_that_calls_again_does_not_starve_the_rest(loop: Loop) -> None:
    reading, writing = os.pipe()
    calls = 0

    def again() -> None:
        nonlocal calls
        calls += 1
        loop.call_soon(again)

    loop.call_soon(again)
    loop.add(reading, loop.stop)
    os.write(writing, b"x")
    loop.run()
    assert calls < 100
    loop.remove(reading)


def test_a_removed_descriptor_is_not_called(loop: Loop) -> None:
    (removed, first), (kept, second) = os.pipe(), os.pipe()
    loop.add(removed, lambda: pytest.fail("it was removed"))
    loop.add(kept, loop.stop)
    loop.remove(removed)
    os.write(first, b"x")
    os.write(second, b"x")
    loop.run()


def test_waiting_for_room_calls_once_and_goes_on_reading(loop: Loop) -> None:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    happened: list[str] = []

    def read() -> None:
        try:
            happened.append(ours.recv(100).decode())
        except BlockingIOError:
            return
        loop.stop()

    def has_room() -> None:
        happened.append("room")
        theirs.send(b"read")

    loop.add(ours.fileno(), read)
    loop.await_room(ours.fileno(), has_room)
    with ours, theirs:
        loop.run()
    assert happened == ["room", "read"]


def once_it_sleeps(loop: Loop, act: Callable[[], None]) -> threading.Thread:
    def wait_and_act() -> None:
        wait_for(lambda: loop._is_asleep)
        act()

    other = threading.Thread(target=wait_and_act)
    other.start()
    return other


def test_stop_from_another_thread(loop: Loop) -> None:
    other = once_it_sleeps(loop, loop.stop)
    loop.run()
    other.join()


def test_a_signal_handler_wakes_a_loop_that_sleeps(loop: Loop) -> None:
    seen: list[str] = []

    def called() -> None:
        seen.append("called")
        loop.stop()

    before = signal.signal(signal.SIGUSR1, lambda *_: loop.call_soon(called))
    try:
        other = once_it_sleeps(loop, lambda: signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1))
        loop.run()
        other.join()
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert seen == ["called"]


def test_patience_grows_with_close_requests_only() -> None:
    patience = Patience()
    assert not patience.is_worth()
    for _ in range(TRUST):
        patience.came_after(CLOSE_NS - 1)
    assert patience.is_worth()
    patience.came_after(CLOSE_NS + 1)
    assert not patience.is_worth()


def test_patience_is_lost_by_looking_in_vain() -> None:
    patience = Patience()
    for _ in range(10 * MOST_TRUST):
        patience.came_after(1)
    looks = 0
    while patience.is_worth():
        patience.looked_in_vain()
        looks += 1
    assert looks <= MOST_TRUST, "a mount that fell silent must soon let the processor sleep"


def test_somebody_runs_just_now() -> None:
    assert running_tasks() >= 1


def test_pressure_is_a_part_of_the_time() -> None:
    assert 0 <= pressure() <= 100
