"""How far a run is, as rows of a drawing: one for each node of its pipeline, a dag's own nodes under it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from paddleflow.cli.durations import parsed_time
from paddleflow.cli.lanes import draw_lanes
from paddleflow.domain.runs import NODE_ENDED, NodeStatus
from paddleflow.planning.plan import POST_PROCESS
from paddleflow.sdk.run_views import DagInfo

if TYPE_CHECKING:
    from paddleflow.sdk.run_views import RunInfo, View

_ITEM = re.compile(r"\[\d*\]")
_TOLD_OF = (
    NodeStatus.FAILED,
    NodeStatus.TERMINATED,
    NodeStatus.TERMINATING,
    NodeStatus.PENDING,
    NodeStatus.SKIPPED,
)
"""Whose messages are shown in a row, the first of these that has one: why something failed, was stopped, waits, or was
not needed."""
_NO_ITEMS = "the loop has no items, so there is nothing to run"


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeRow:
    path: str
    lanes: str
    """What stands left of the name; the bullet in it is the node itself."""
    name: str
    status: str
    counter: str
    """``37/100`` of a loop; empty where there is one item."""
    started: str
    ended: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A node, for one item of its loop, is not as it was."""

    key: str
    status: str
    message: str


def tree_rows(run: RunInfo) -> list[TreeRow]:
    """In topological order, what waits below what it waits for; the post-process last."""
    nodes: list[dict[str, Any]] = run.graph.get("nodes", [])
    inside: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for node in nodes:
        # It waits for everything, so it is drawn for itself; no node of a pipeline can be called as this.
        is_last = node["id"].startswith(f"{POST_PROCESS}.")
        inside[POST_PROCESS if is_last else node["parent"]].append(node)
    before: dict[str, list[str]] = defaultdict(list)
    for edge in run.graph.get("edges", []):
        before[edge["target"]].append(edge["source"])
    messages = _messages(run)
    return [row for parent in ("", POST_PROCESS) for row in _rows(inside, parent, "", before, messages)]


def _rows(
    inside: Mapping[str, Sequence[dict[str, Any]]],
    parent: str,
    margin: str,
    before: Mapping[str, list[str]],
    messages: Mapping[str, str],
) -> Iterator[TreeRow]:
    nodes = {node["id"]: node for node in inside.get(parent, ())}
    lanes = draw_lanes(list(nodes), before)
    width = max((len(row) for row, _ in lanes.values()), default=0)
    for path, (row, below) in lanes.items():
        node = nodes[path]
        yield TreeRow(
            path=path,
            lanes=f"{margin}{row.ljust(width)}",
            name=node["name"],
            status=node["status"],
            counter=_counter(node["items"]),
            started=node["startTime"],
            ended=node["endTime"],
            message=messages.get(path, ""),
        )
        yield from _rows(inside, path, f"{margin}{below.ljust(width)}   ", before, messages)


def _counter(items: Mapping[str, int]) -> str:
    total = sum(items.values())
    return f"{sum(items.get(status, 0) for status in NODE_ENDED)}/{total}" if total > 1 else ""


def _messages(run: RunInfo) -> dict[str, str]:
    """Path of a node → what its loudest item has to say."""
    best: dict[str, tuple[int, str]] = {}
    skipped = {node["id"] for node in run.graph.get("nodes", []) if node["status"] == NodeStatus.SKIPPED}
    for change in states(run).values():
        path = _ITEM.sub("", change.key)
        # Why single items were skipped is no news of a loop in which others were not.
        is_told = change.status in _TOLD_OF and (change.status != NodeStatus.SKIPPED or path in skipped)
        if change.message and is_told:
            told = _TOLD_OF.index(NodeStatus(change.status)), change.message
            best[path] = min(best.get(path, told), told, key=lambda one: one[0])
    return {path: message for path, (_, message) in best.items()}


def states(run: RunInfo) -> dict[str, Change]:
    """Every node that has a state, by its key. A dag begins before the nodes in it and ends after them."""
    found = {change.key: change for change in _states("", run.runtime)}
    return found | {view.key: _change(view) for view in run.post_process.values()}


def _states(around: str, views: Mapping[str, list[View]]) -> Iterator[Change]:
    for name, listed in views.items():
        if not listed:
            yield Change(key=f"{around}{name}[]", status=NodeStatus.SKIPPED, message=_NO_ITEMS)
        for view in listed:
            if not isinstance(view, DagInfo):
                yield _change(view)
                continue
            inside = _states(f"{view.key}.", view.entry_points)
            yield from (*inside, _change(view)) if view.status in NODE_ENDED else (_change(view), *inside)


def _change(view: View) -> Change:
    message = view.message if isinstance(view, DagInfo) else view.job_message
    # While it runs, a job's message says only where it does.
    told = "" if view.status == NodeStatus.RUNNING else one_line_of(message)
    return Change(key=view.key, status=view.status, message=told)


def one_line_of(text: str) -> str:
    """Without line breaks, and without what could move the cursor of whoever reads it."""
    return "".join(char for char in " ".join(text.split()) if char.isprintable())


def changes(before: Mapping[str, Change], now: Mapping[str, Change]) -> list[Change]:
    """What is new since ``before``; a node that only waits for its turn is no news."""
    return [
        change
        for key, change in now.items()
        if (key not in before or before[key].status != change.status)
        and not (key not in before and change.status == NodeStatus.PENDING)
    ]


def progress(run: RunInfo) -> tuple[int, int]:
    """Steps that have ended, and steps known of: a loop that has not begun counts as one."""
    items = [node["items"] for node in run.graph.get("nodes", []) if node["type"] == "step"]
    ended = sum(counted.get(status, 0) for counted in items for status in NODE_ENDED)
    return ended, sum(sum(counted.values()) for counted in items)


class ServerClock:
    """What time it is at the server, whose times carry no zone: told once, then counted on with a clock of our own."""

    def __init__(self) -> None:
        self._then: datetime | None = None
        self._at_s = 0.0

    @property
    def is_set(self) -> bool:
        return self._then is not None

    def set(self, activated: str, seconds_since: float, now_s: float) -> None:
        """A run that was activated then has been active for so long."""
        began = parsed_time(activated)
        if began is not None:
            self._then, self._at_s = began, now_s - seconds_since

    def seconds(self, started: str, ended: str, now_s: float) -> float | None:
        """How long something has taken; None where that cannot be told."""
        start, end = parsed_time(started), parsed_time(ended)
        if start is None:
            return None
        if end is not None:
            return max(0.0, (end - start).total_seconds())
        if self._then is None:
            return None
        return max(0.0, now_s - self._at_s - (start - self._then).total_seconds())
