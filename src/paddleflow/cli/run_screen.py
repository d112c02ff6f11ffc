"""A watched run on a terminal: the whole drawing with live states, or one line that counts.

rich draws from a thread of its own a few times a second, so that durations run on between two looks at the run.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.console import Console, ConsoleOptions
from rich.live import Live
from rich.text import Text

from paddleflow.cli.durations import spelt_whole_seconds
from paddleflow.cli.lanes import BULLET
from paddleflow.cli.output import display_width
from paddleflow.cli.run_tree import ServerClock, TreeRow, progress, tree_rows
from paddleflow.domain.errors import PaddleFlowError

if TYPE_CHECKING:
    from paddleflow.sdk.client import Client
    from paddleflow.sdk.run_views import RunInfo

_FRAMES_PER_SECOND = 4
_CHROME = 3
"""Lines of the screen that are not rows of the drawing."""
_LOOKS = {
    "succeeded": ("✔", "green"),
    "failed": ("✘", "bold red"),
    "running": ("●", "cyan"),
    "pending": ("○", "yellow"),
    "terminating": ("◌", "magenta"),
    "terminated": ("■", "magenta"),
    "cancelled": ("·", "dim"),
    "skipped": ("◇", "dim"),
}
_LIVELY = ("failed", "running", "terminating", "terminated")
"""Shown first when there is no room for all."""


class Drawing:
    """The pipeline, drawn; each node with its state, its loop counted, its time and what it has to say."""

    def __init__(self, client: Client, run_id: str, console: Console | None = None) -> None:
        self._client = client
        self._run_id = run_id
        self._console = console or Console(highlight=False)
        self._clock = ServerClock()
        self._run: RunInfo | None = None
        self._rows: list[TreeRow] = []
        self._live = Live(self, console=self._console, refresh_per_second=_FRAMES_PER_SECOND)

    def look(self, run: RunInfo) -> None:
        if not self._clock.is_set and run.activate_time:
            self._set_clock(run)
        self._run, self._rows = run, tree_rows(run)
        if not self._live.is_started:
            self._live.start()
        self._live.refresh()

    def close(self) -> None:
        self._live.stop()

    def _set_clock(self, run: RunInfo) -> None:
        try:
            _, timing = self._client.run_timing(self._run_id)
        except PaddleFlowError:
            # Without it only the durations of what still runs are missing; the next look tries again.
            return
        self._clock.set(run.activate_time, timing["totalSeconds"], time.monotonic())

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        if self._run is None:
            return
        now_s = time.monotonic()
        yield self._headline(self._run, now_s)
        shown = chosen(self._rows, max(1, console.height - _CHROME))
        left = max((display_width(f"{row.lanes} {row.name}") for row in shown), default=0)
        counters = max((len(row.counter) for row in shown), default=0)
        for row in shown:
            yield self._line(row, left, counters, now_s)
        if len(shown) < len(self._rows):
            yield Text(f"… and {len(self._rows) - len(shown)} more", style="dim")

    def _headline(self, run: RunInfo, now_s: float) -> Text:
        ended, known = progress(run)
        taken = self._clock.seconds(run.activate_time, run.finish_time, now_s)
        line = Text(no_wrap=True, overflow="ellipsis")
        line.append(run.run_id, "bold").append(f" {run.name} ").append(run.status, _look(run.status)[1])
        return line.append(f"  {ended}/{known} steps" + ("" if taken is None else f"  {spelt_whole_seconds(taken)}"))

    def _line(self, row: TreeRow, left: int, counters: int, now_s: float) -> Text:
        icon, style = _look(row.status)
        lanes, _, rest = row.lanes.partition(BULLET)
        taken = self._clock.seconds(row.started, row.ended, now_s)
        line = Text(no_wrap=True, overflow="ellipsis")
        line.append(lanes, "dim").append(icon, style).append(rest, "dim").append(f" {row.name}")
        line.append(" " * (left - line.cell_len + 2))
        line.append(row.counter.rjust(counters) + ("  " if counters else ""), "bold")
        line.append(f"{row.status:<11}", style).append(f" {'' if taken is None else spelt_whole_seconds(taken):>6}")
        return line.append(f"  {row.message}", "dim") if row.message else line


def chosen(rows: list[TreeRow], room: int) -> list[TreeRow]:
    """As many as there is room for, in their order: what moves or failed before what waits or is done."""
    if len(rows) <= room:
        return rows
    by_interest = sorted(range(len(rows)), key=lambda at: (rows[at].status not in _LIVELY, rows[at].ended != "", at))
    kept = set(by_interest[: max(1, room - 1)])
    return [row for at, row in enumerate(rows) if at in kept]


class Counter:
    """One line: how many of the steps have ended."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True, highlight=False)
        self._spinner = self._console.status("")

    def look(self, run: RunInfo) -> None:
        ended, known = progress(run)
        self._spinner.update(Text(f"{run.run_id} {run.status}: {ended} of {known} steps ended"))
        self._spinner.start()

    def close(self) -> None:
        self._spinner.stop()


def _look(status: str) -> tuple[str, str]:
    return _LOOKS.get(status, ("○", ""))
