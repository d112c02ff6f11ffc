"""A backstage whose answers a test gives by hand, in the order it wants; and one that fails as told."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from paddleflow.pfs.later import Later, run, start


class SlowBackstage:
    """Questions wait in ``asked`` until the test answers them. The real work is done when they are answered, or when
    they are asked, if ``looks_first``: then the answer is old by the time it comes."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.slow: set[str] = set()
        """Methods that wait; the others are done on the spot."""
        self.asked: list[tuple[str, tuple[Any, ...], Later[Any], Any]] = []
        self.looks_first = False

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._inner, name)

        async def ask(*arguments: Any, **named: Any) -> Any:
            if name not in self.slow:
                return await real(*arguments, **named)
            answer: Later[Any] = Later()
            work = real(*arguments, **named)
            self.asked.append((name, arguments, answer, _Outcome(work) if self.looks_first else work))
            return await answer

        return ask

    def answer(self, index: int = 0) -> None:
        _, _, answer, work = self.asked.pop(index)
        outcome = work if isinstance(work, _Outcome) else _Outcome(work)
        if outcome.error is not None:
            answer.fail(outcome.error)
        else:
            answer.succeed(outcome.value)

    def answer_all(self) -> None:
        while self.asked:
            self.answer()


class _Outcome:
    def __init__(self, work: Coroutine[Any, Any, Any]) -> None:
        self.value: Any = None
        self.error: BaseException | None = None
        try:
            self.value = run(work)
        except Exception as error:  # noqa: BLE001 - it is the asker's
            self.error = error


class Running:
    """An operation on its way."""

    def __init__(self, work: Coroutine[Any, Any, Any]) -> None:
        self.is_done = False
        self.value: Any = None
        self.error: BaseException | None = None
        start(work, self._ended)

    def _ended(self, value: Any, error: BaseException | None) -> None:
        self.is_done, self.value, self.error = True, value, error

    def result(self) -> Any:
        assert self.is_done, "still waiting"
        if self.error is not None:
            raise self.error
        return self.value


class FailingBackstage:
    """Raises a given error from given methods, as often as told."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.failures: dict[str, list[BaseException]] = {}
        self.calls: list[tuple[str, tuple[Any, ...]]] = []

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._inner, name)

        async def call(*arguments: Any, **named: Any) -> Any:
            self.calls.append((name, arguments))
            waiting = self.failures.get(name)
            if waiting:
                raise waiting.pop(0)
            return await real(*arguments, **named)

        return call

    def count(self, name: str) -> int:
        return sum(1 for called, _ in self.calls if called == name)
