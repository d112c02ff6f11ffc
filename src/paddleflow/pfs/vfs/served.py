"""What readers were given, and whether it was in the cache when they, or reading ahead for them, first needed it.

A file that the kernel reads by itself counts at its opening, with its size: what of it is really read, nobody tells us.
Bytes that we read ahead count when we ask for them, and not again when the reader comes to them; so a first pass over a
file is all misses, as it should be.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Counted:
    """The part of an open file that was counted last: what is read twice in a row counts once."""

    start: int = 0
    end: int = 0


@dataclass(slots=True)
class Served:
    hits: int = 0
    misses: int = 0
    hit_bytes: int = 0
    miss_bytes: int = 0

    def count(self, size: int, *, was_cached: bool) -> None:
        if was_cached:
            self.hits += 1
            self.hit_bytes += size
        else:
            self.misses += 1
            self.miss_bytes += size

    def new_part(self, counted: Counted, start: int, size: int) -> tuple[int, int]:
        """What of these bytes is not counted yet; from now on it is."""
        end = start + size
        if counted.start <= start <= counted.end:
            start = min(end, max(start, counted.end))
            counted.end = max(counted.end, end)
        else:
            counted.start, counted.end = start, end
        return start, end - start
