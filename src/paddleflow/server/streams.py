"""Answers that go on: woken by the feed, ended with the server, never a thread of their own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from paddleflow.engine.feed import Feed


class Streams:
    """Every open stream of one app. ``close`` ends them; it may be called from any thread, and more than once."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._open: set[Wake] = set()
        self._closed = False

    @property
    def closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        self._closed = True
        for wake in tuple(self._open):
            wake.ring()

    @contextmanager
    def following(self) -> Iterator[Wake]:
        """Rings whenever something was appended to the feed, and when the streams are closed."""
        wake = Wake(asyncio.get_running_loop())
        self._open.add(wake)
        unsubscribe: Callable[[], None] = self._feed.subscribe(wake.ring)
        try:
            if self._closed:
                wake.ring()
            yield wake
        finally:
            unsubscribe()
            self._open.discard(wake)


class Wake:
    """A bell that other threads ring for a coroutine."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._rung = asyncio.Event()

    def ring(self) -> None:
        try:
            self._loop.call_soon_threadsafe(self._rung.set)
        except RuntimeError:
            # The loop ended between our unsubscribing and this call: there is nobody left to wake.
            return

    async def wait(self, timeout_s: float) -> bool:
        """Until rung, or the time is up; whether it was rung."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._rung.wait()
        except TimeoutError:
            return False
        self._rung.clear()
        return True

    @staticmethod
    async def rest(seconds: float) -> None:
        """Let what comes in bursts gather."""
        await asyncio.sleep(seconds)
