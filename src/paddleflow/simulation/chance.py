"""Chance as a value: a small generator that gives the same numbers for the same seed on every machine and release.

The pure packages may not roll dice, and the standard generator's derived distributions are not promised to stay the
same between Python releases; a workload made from a seed must. The sequence is SplitMix64, a published and simple one.
Not for secrets.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15

T = TypeVar("T")


def scatter(value: int) -> int:
    """A 64-bit number that looks unrelated to ``value``; the same value always gives the same one."""
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
    value = (value ^ (value >> 27)) * 0x94D049BB133111EB & _MASK
    return value ^ (value >> 31)


class Chance:
    """A stream of numbers that depends on its seed alone."""

    def __init__(self, seed: int) -> None:
        self._state = seed & _MASK

    def uniform(self) -> float:
        """Between 0 and 1, neither included, so that logarithms of it are finite."""
        self._state = (self._state + _GOLDEN) & _MASK
        return ((scatter(self._state) >> 11) + 0.5) / (1 << 53)

    def below(self, limit: int) -> int:
        """A whole number from 0 to ``limit - 1``."""
        return min(limit - 1, int(self.uniform() * limit))

    def exponential(self, mean: float) -> float:
        return -mean * math.log(self.uniform())

    def log_normal(self, median: float, spread: float) -> float:
        """Its logarithm is normal around that of ``median`` with standard deviation ``spread``."""
        angle = 2.0 * math.pi * self.uniform()
        radius = math.sqrt(-2.0 * math.log(self.uniform()))
        return median * math.exp(spread * radius * math.cos(angle))

    def pick(self, choices: Sequence[T], weights: Sequence[float]) -> T:
        point = self.uniform() * sum(weights)
        for choice, weight in zip(choices, weights, strict=True):
            point -= weight
            if point < 0:
                return choice
        return choices[-1]
