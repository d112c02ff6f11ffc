"""The threads in which engine calls run: the event loop itself never waits for a database."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

_THREADS = 32
"""Calls in progress at once; more wait their turn. They wait for the database, hardly ever for each other."""

P = ParamSpec("P")
T = TypeVar("T")


class Workers:
    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="http")

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, partial(work, *args, **kwargs))

    def close(self) -> None:
        self._pool.shutdown(wait=False)
