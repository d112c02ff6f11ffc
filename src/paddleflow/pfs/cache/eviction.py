"""Which entries leave a cache that is full. Pure: it is told what there is and what time it is.

The longest unused leave first. What is being filled is left alone for a while, or two readers of large files would
evict each other's beginnings for ever; what this process itself has open goes last, because evicting it frees nothing
until it is closed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

FILLING_GRACE_S = 60.0


@dataclass(frozen=True, slots=True)
class Candidate:
    name: str
    bytes: int
    last_used: float
    is_filling: bool = False
    """Not complete: somebody may be at it."""
    is_open_here: bool = False


def choose(candidates: Iterable[Candidate], needed: int, now: float) -> list[Candidate]:
    """The entries to evict so that ``needed`` bytes become free, or as many of them as may be evicted."""
    if needed <= 0:
        return []
    chosen: list[Candidate] = []
    freed = 0
    evictable = (candidate for candidate in candidates if not _is_protected(candidate, now))
    for candidate in sorted(evictable, key=lambda one: (one.is_open_here, one.last_used, one.name)):
        if freed >= needed:
            break
        chosen.append(candidate)
        freed += candidate.bytes
    return chosen


def _is_protected(candidate: Candidate, now: float) -> bool:
    return candidate.is_filling and 0 <= now - candidate.last_used < FILLING_GRACE_S
