"""A graph drawn as text, one row for each node: a lane runs down from a node to the last of those that wait for it.

::

    ●     load
    ├─●   clean
    ├─│─● count
    │ ╰─● train
    ●     report

``train`` waits for ``clean`` and ``count``, ``report`` for ``load`` alone. A lane that a line crosses without touching
it breaks that line. A node that stands right under another waits
for it; one that waits for nothing never stands right under another, so that the eye does not join them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

BULLET = "●"


def draw_lanes(nodes: Sequence[str], waits_for: Mapping[str, Iterable[str]]) -> dict[str, tuple[str, str]]:
    """For each node its row of lanes, ending in the bullet, and the lanes that pass below it.

    ``nodes`` are in topological order; of what they wait for only nodes that came earlier count.
    """
    drawn: dict[str, tuple[str, str]] = {}
    open_lanes: list[str | None] = []
    """Whose lane each column is."""
    rested: list[bool] = []
    """Whether a column was empty in the row above."""
    left = Counter(before for node in nodes for before in set(waits_for.get(node, ())))
    for node in nodes:
        before = {one for one in waits_for.get(node, ()) if one in open_lanes}
        joined = {column for column, owner in enumerate(open_lanes) if owner in before}
        left.subtract(before)
        ending = {column for column in joined if not left[open_lanes[column] or ""]}
        column = _column_for(open_lanes, rested, joined, ending)
        if column == len(open_lanes):
            open_lanes.append(None)
        row = _row(open_lanes, joined, ending, column)
        for ended in ending:
            open_lanes[ended] = None
        open_lanes[column] = node if left[node] else None
        below = _below(open_lanes)
        rested = [owner is None and at not in joined and at != column for at, owner in enumerate(open_lanes)]
        while open_lanes and open_lanes[-1] is None and rested[-1]:
            open_lanes.pop()
            rested.pop()
        drawn[node] = row, below
    return drawn


def _column_for(open_lanes: Sequence[str | None], rested: Sequence[bool], joined: set[int], ending: set[int]) -> int:
    """Under what it waits for if nobody else does; otherwise in the first free column to the right of it."""
    if ending:
        return max(ending)
    first = max(joined, default=-1) + 1
    free = (at for at in range(first, len(open_lanes)) if open_lanes[at] is None and rested[at])
    return next(free, len(open_lanes))


def _row(open_lanes: Sequence[str | None], joined: set[int], ending: set[int], column: int) -> str:
    touched = joined | {column}
    first, last = min(touched), max(touched)
    cells = []
    for at, owner in enumerate(open_lanes):
        if at == column:
            cell = BULLET
        elif at in joined:
            cell = _junction(at > first, at < last, at in ending)
        elif owner is not None:
            cell = "│"
        else:
            cell = "─" if first < at < last else " "
        cells.append(cell + ("─" if first <= at < last else " "))
    return "".join(cells).rstrip()


def _junction(to_left: bool, to_right: bool, ends: bool) -> str:
    if to_left and to_right:
        return "┴" if ends else "┼"
    if to_right:
        return "╰" if ends else "├"
    return "╯" if ends else "┤"


def _below(open_lanes: Sequence[str | None]) -> str:
    return "".join("  " if owner is None else "│ " for owner in open_lanes).rstrip()
