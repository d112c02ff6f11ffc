"""Waiting for what happens in another thread, process or server: the only place in the tests that sleeps.

The deadline is there to end a test that hangs. It is no measure of speed: no test sets a shorter one to prove that
something is fast.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

DEADLINE_S = 60.0
_FIRST_PAUSE_S = 0.002
_LONGEST_PAUSE_S = 0.1


def wait_for(condition: Callable[[], T | None], what: str = "", *, deadline_s: float = DEADLINE_S) -> T:
    """The first true answer of ``condition``. An exception means "not yet"; the last one is shown when time is up.
    To end the waiting early (the server that is waited for has died), call ``pytest.fail`` in the condition."""
    until = time.monotonic() + deadline_s
    pause = _FIRST_PAUSE_S
    while True:
        answer, error = _ask(condition)
        if answer:
            return answer
        if time.monotonic() > until:
            subject = what or getattr(condition, "__qualname__", repr(condition))
            raise AssertionError(
                f"waited {deadline_s:.0f} s in vain for: {subject}; last: {error or answer!r}"
            ) from error
        time.sleep(pause)
        pause = min(pause * 1.5, _LONGEST_PAUSE_S)


def _ask(condition: Callable[[], T | None]) -> tuple[T | None, Exception | None]:
    try:
        return condition(), None
    except Exception as error:  # noqa: BLE001 - whatever it is, it may be over when asked again
        return None, error
