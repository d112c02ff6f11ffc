"""The threads in which engine calls run: the event loop itself never waits for a database."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

_LOCAL_READERS = 3
"""Reads of a local file are all computing, and threads that compute only take turns: measured, 32 answer half as many
requests as 3. One would do, but then everybody waited for whoever asks for a long list."""
_REMOTE_READERS = 16
"""Reads of a database elsewhere are mostly waiting for it."""
_LONG_HAULERS = 3
"""Files of users may lie on a slow disk, and a large pipeline takes its time to compile."""

P = ParamSpec("P")
T = TypeVar("T")


class Workers:
    """Readers side by side, and one writer: the store lets one write at a time, so a queue in front of a single thread
    is the same order without the fight for the lock. What touches the files of users has threads of its own."""

    def __init__(self, *, reads_are_local: bool) -> None:
        readers = _LOCAL_READERS if reads_are_local else _REMOTE_READERS
        self._readers = ThreadPoolExecutor(readers, thread_name_prefix="http-read")
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="http-write")
        self._long = ThreadPoolExecutor(_LONG_HAULERS, thread_name_prefix="http-long")

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._readers, partial(work, *args, **kwargs))

    async def run_write(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._writer, partial(work, *args, **kwargs))

    async def run_long(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._long, partial(work, *args, **kwargs))

    def close(self) -> None:
        self._readers.shutdown(wait=False)
        self._writer.shutdown(wait=False)
        self._long.shutdown(wait=False)
