"""Taking turns: a lock for coroutines that are stepped by hand. First come, first served."""

from __future__ import annotations

from collections import deque

from paddleflow.pfs.later import Later


class Turn:
    """``async with turn:`` one at a time. Free, it costs nothing and does not wait."""

    __slots__ = ("_taken", "_waiting")

    def __init__(self) -> None:
        self._taken = False
        self._waiting: deque[Later[None]] = deque()

    async def __aenter__(self) -> None:
        if self._taken:
            mine: Later[None] = Later()
            self._waiting.append(mine)
            await mine
        else:
            self._taken = True

    async def __aexit__(self, *_: object) -> None:
        self.leave()

    def leave(self) -> None:
        if self._waiting:
            self._waiting.popleft().succeed(None)
        else:
            self._taken = False

    @property
    def is_taken(self) -> bool:
        return self._taken
