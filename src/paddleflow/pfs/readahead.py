"""Reading ahead: which bytes of an open file to ask for before they are wanted. Pure: a state for each open, no clock.

A file read from its beginning is taken to be read on: a window of 1 MiB is asked for ahead of the reader and doubles
each time the reader has gone through it, up to 32 MiB. Small jumps, as kernels make that read ahead themselves and out
of order, do not count. A real jump halves the window and nothing is asked for until the next read shows that it goes on
from there; a second jump in a row closes it: random readers pay for nothing they did not ask for. When memory is short
the window shrinks with what is left of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

MIB = 1 << 20
FIRST_WINDOW = MIB
LARGEST_WINDOW = 32 * MIB
BACK = MIB
"""How far back, and forward, a read may jump and still be part of the same stream."""
FORWARD = 4 * MIB
PART = 8 * MIB
"""Longer ranges are asked for in parts that begin at multiples of this: each is one request, brought by another."""
_TIGHT = 0.9
"""From this pressure on nothing is read ahead."""
_NOTHING = (0, 0)


@dataclass(frozen=True, slots=True)
class Pattern:
    """What was seen of the reads through one open file."""

    reached: int = 0
    """Where the stream of reads has got to."""
    window: int = FIRST_WINDOW
    """How far ahead to ask; 0 when the reads have no order."""
    asked: int = 0
    """Up to where it was asked for."""
    since_growth: int = 0
    """Bytes read in order since the window last grew."""
    jumps: int = 0
    """In a row."""


def advance(
    pattern: Pattern, start: int, size: int, file_size: int, pressure: float = 0.0
) -> tuple[Pattern, tuple[int, int]]:
    """The pattern after a read, and the range ``(start, size)`` to ask for now; size 0: none."""
    end = min(start + size, file_size)
    if end <= start:
        return pattern, _NOTHING
    if not pattern.reached - BACK <= start <= pattern.reached + FORWARD:
        return _jumped(pattern, start, end), _NOTHING
    pattern = _further(pattern, end)
    window = min(pattern.window, _largest(pressure))
    if not window or pattern.asked - end >= window // 2:
        return pattern, _NOTHING
    begin = max(end, pattern.asked)
    until = min(end + window, file_size)
    if until <= begin:
        return pattern, _NOTHING
    return replace(pattern, asked=until), (begin, until - begin)


def parts(start: int, size: int) -> Iterator[tuple[int, int]]:
    """A range cut at the borders of parts."""
    end = start + size
    while start < end:
        until = min(end, (start // PART + 1) * PART)
        yield start, until - start
        start = until


def _further(pattern: Pattern, end: int) -> Pattern:
    progress = max(0, end - pattern.reached)
    window, read = pattern.window, pattern.since_growth + progress
    if not window:
        window, read = FIRST_WINDOW if progress else 0, 0
    elif read >= window and window < LARGEST_WINDOW:
        window, read = window * 2, 0
    reached = max(pattern.reached, end)
    return replace(pattern, reached=reached, window=window, since_growth=read, jumps=0 if progress else pattern.jumps)


def _jumped(pattern: Pattern, start: int, end: int) -> Pattern:
    if not start:
        return Pattern(reached=end)  # once more from the beginning
    jumps = pattern.jumps + 1
    window = 0 if jumps > 1 else max(FIRST_WINDOW, pattern.window // 2)
    return Pattern(reached=end, window=window, asked=end, jumps=jumps)


def _largest(pressure: float) -> int:
    if pressure >= _TIGHT:
        return 0
    return max(FIRST_WINDOW, int(LARGEST_WINDOW * (1 - pressure)) // MIB * MIB)
