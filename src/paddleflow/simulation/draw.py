"""Utilisation over time as a chart of characters: one column for each slice of time, its height the mean held in it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from paddleflow.simulation.metrics import held_seconds
from paddleflow.simulation.simulate import Usage

_BLOCKS = " ▁▂▃▄▅▆▇█"
_ASCII = " .:-=+*#@"
_LABEL = 5
"""Room for ``100% `` left of the chart."""
_LEAST_WIDTH = 20
_STEPS = len(_BLOCKS) - 1


def slices(usage: Usage, end: float, count: int) -> list[float]:
    """The mean part of the resource that was held in each of so many equal slices of time from zero."""
    if end <= 0 or not usage.available:
        return [0.0] * count
    width = end / count
    parts = []
    for index in range(count):
        begin, until = index * width, (index + 1) * width
        # Only the stretch of the series that this slice touches: from the last change before it to the first after.
        low = max(0, bisect_right(usage.times, begin) - 1)
        high = bisect_right(usage.times, until)
        cut = Usage(
            times=usage.times[low:high],
            held=usage.held[low:high],
            waiting=usage.waiting[low:high],
            available=usage.available,
        )
        parts.append(held_seconds(cut, begin, until) / (width * usage.available))
    return parts


def draw(usage: Usage, end: float, *, width: int, height: int = 6, ascii_only: bool = False) -> list[str]:
    """The lines of the chart, no longer than ``width``."""
    columns = max(_LEAST_WIDTH, width) - _LABEL - 1
    parts = slices(usage, end, columns)
    marks = _ASCII if ascii_only else _BLOCKS
    lines = []
    for row in range(height, 0, -1):
        label = f"{row * 100 // height:3}% " if row in (height, (height + 1) // 2) else " " * _LABEL
        lines.append(label + ("|" if ascii_only else "│") + "".join(_mark(part, row, height, marks) for part in parts))
    corner, rule = ("+", "-") if ascii_only else ("└", "─")
    lines.append(" " * _LABEL + corner + rule * columns)
    begin, until = "0", spell_time(end)
    lines.append(" " * (_LABEL + 1) + begin + until.rjust(columns - len(begin)))
    return lines


def _mark(part: float, row: int, height: int, marks: Sequence[str]) -> str:
    filled = part * height - (row - 1)
    return marks[max(0, min(_STEPS, round(filled * _STEPS)))]


def spell_time(seconds: float) -> str:
    """As people say it: ``90s``, ``25m``, ``3.5h``, ``12d``."""
    for limit, unit, size in ((120.0, "s", 1.0), (7200.0, "m", 60.0), (172_800.0, "h", 3600.0)):
        if seconds < limit:
            return _short(seconds / size) + unit
    return _short(seconds / 86_400.0) + "d"


def _short(value: float) -> str:
    return f"{value:.1f}".rstrip("0").rstrip(".") if value < 100 else f"{value:.0f}"
