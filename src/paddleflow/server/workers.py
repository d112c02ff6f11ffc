"""The threads in which engine calls run: the event loop itself never waits for a database."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

_READERS = 4
"""Reads in progress at once; more wait their turn. Many more only fight over the interpreter: measured, 32 threads
answer half as many requests as 4."""

P = ParamSpec("P")
T = TypeVar("T")


class Workers:
    """Readers side by side, and one writer: the store lets one write at a time, so a queue in front of a single thread
    is the same order without the fight for the lock."""

    def __init__(self) -> None:
        self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix="http-read")
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="http-write")

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._readers, partial(work, *args, **kwargs))

    async def run_write(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._writer, partial(work, *args, **kwargs))

    def close(self) -> None:
        self._readers.shutdown(wait=False)
        self._writer.shutdown(wait=False)
