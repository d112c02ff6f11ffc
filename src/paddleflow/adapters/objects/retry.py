"""Trying again: how often, after which pauses, and for how long in all.

Only calls that may be repeated go through here: the one who calls knows that doing it twice is the same as once. What
is tried again is Unavailable; a full disk, a refusal or something missing will not get better by asking. The pauses
grow and are spread by chance, so that many who failed together do not come back together; where the server says how
long to wait, that is the least.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from paddleflow.domain.errors import DiskFull, Unavailable

T = TypeVar("T")

_CHANCE = random.Random()  # noqa: S311 - it spreads retries, and is no secret
"""Our own: to draw from the program's would change what comes of its seed, in the midst of somebody's training."""

WAIT_FIRST = "wait_first_s"
"""The detail of an Unavailable in which a server's own wish (Retry-After) stands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    attempts: int = 6
    first_pause_s: float = 0.1
    growth: float = 2.0
    longest_pause_s: float = 5.0
    deadline_s: float = 60.0
    """No attempt begins later than this after the first one."""

    def pause(self, failures: int, chance: float) -> float:
        """After so many failures; ``chance`` in [0, 1) makes it between half and all of the full pause."""
        full = min(self.first_pause_s * self.growth ** (failures - 1), self.longest_pause_s)
        return full * (0.5 + chance / 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    patience: Patience = Patience()
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    chance: Callable[[], float] = _CHANCE.random

    def run(self, act: Callable[[], T]) -> T:
        began = self.clock()
        failures = 0
        while True:
            try:
                return act()
            except DiskFull:
                raise
            except Unavailable as error:
                failures += 1
                pause = self.patience.pause(failures, self.chance())
                wanted = error.details.get(WAIT_FIRST)
                if isinstance(wanted, int | float):
                    pause = max(pause, float(wanted))
                is_late = self.clock() + pause - began > self.patience.deadline_s
                if failures >= self.patience.attempts or is_late:
                    raise
                self.sleep(pause)
