"""Answers that come later, without an event loop of anybody's.

A file operation is a coroutine. Most find what they need in memory and end in their first step, which costs a
microsecond; one that must wait for the store awaits a Later and is stepped on when a worker answers. ``asyncio`` would
cost several times more for the first kind, which is nearly all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Later(Generic[T]):
    """One answer, given once, awaited by any number of coroutines."""

    __slots__ = ("_error", "_value", "_waiting", "is_done")

    def __init__(self) -> None:
        self.is_done = False
        self._value: T | None = None
        self._error: BaseException | None = None
        self._waiting: list[Callable[[], None]] = []

    def succeed(self, value: T) -> None:
        self._value = value
        self._finish()

    def fail(self, error: BaseException) -> None:
        self._error = error
        self._finish()

    def when_done(self, call: Callable[[], None]) -> None:
        if self.is_done:
            call()
        else:
            self._waiting.append(call)

    def result(self) -> T:
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value]

    def _finish(self) -> None:
        if self.is_done:
            raise RuntimeError("an answer was given twice")
        self.is_done = True
        waiting, self._waiting = self._waiting, []
        for call in waiting:
            call()

    def __await__(self) -> Generator[Later[Any], None, T]:
        if not self.is_done:
            yield self
        return self.result()


def start(work: Coroutine[Any, Any, T], done: Callable[[T | None, BaseException | None], None]) -> None:
    """Step a coroutine until it waits or ends; ``done`` gets its value or its error, perhaps before this returns."""
    try:
        waits_for: Later[Any] = work.send(None)
    except StopIteration as end:
        done(end.value, None)
    except Exception as error:  # noqa: BLE001 - whatever went wrong belongs to whoever asked for this work
        done(None, error)
    else:
        waits_for.when_done(lambda: start(work, done))


def run(work: Coroutine[Any, Any, T]) -> T:
    """The value of a coroutine that never has to wait: all its answers come from this thread."""
    outcome: list[tuple[T | None, BaseException | None]] = []
    start(work, lambda value, error: outcome.append((value, error)))
    if not outcome:
        work.close()
        raise RuntimeError("this work waits for an answer that nobody here gives")
    value, error = outcome[0]
    if error is not None:
        raise error
    return value  # type: ignore[return-value]
