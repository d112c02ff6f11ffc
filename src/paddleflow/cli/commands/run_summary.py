"""A run on one screen: who and what, its steps, where its time went. Commands and sources are not part of it."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from paddleflow.cli.commands.run_tables import MOST_TIMED, TIMING_HEADERS, timing_row
from paddleflow.cli.durations import spelt_seconds
from paddleflow.cli.output import draw_fitted, draw_simple, shortened, terminal_width, visible, wrapped
from paddleflow.cli.run_tree import Change, states
from paddleflow.domain.runs import NodeStatus, RunStatus
from paddleflow.sdk.run_views import DagInfo

if TYPE_CHECKING:
    from paddleflow.sdk.run_views import RunInfo, View

_LABELS = 13
_NARROW = 40
"""On a narrower terminal values are not set below each other."""
_MOST_LINES = 3
"""Lines of one value on a terminal."""
_MOST_NAMED = 12
"""Steps of the critical path, or that were reused, by name on a terminal."""
_MESSAGE = 240
"""Characters of a step's message on a terminal."""
_QUIET = (NodeStatus.SUCCEEDED, NodeStatus.CANCELLED)
"""Whose messages say nothing that the status does not say."""


def show_summary(run: RunInfo, timing: dict[str, Any]) -> None:
    for line in summary_lines(run, timing, terminal_width()):
        click.echo(line)
    click.echo(f"more: paddleflow run show {run.run_id} --detail, or --yaml for its source", err=True)
    click.echo(f"logs: paddleflow log run {run.run_id}", err=True)


def summary_lines(run: RunInfo, timing: dict[str, Any], width: int | None) -> Iterator[str]:
    """``width`` is that of a terminal; None: nothing is shortened."""
    for label, value in _labelled(run, timing, width):
        if value:
            yield from _label_lines(label, value, width)
    steps = [step for step in timing["steps"] if step["type"] == "step"]
    if not steps:
        return
    shown = _picked(steps)
    told = states(run)
    rows = [_step_row(step, told.get(step["key"]), width) for step in shown]
    yield ""
    yield "where the time went:"
    if width is None:
        yield draw_simple(TIMING_HEADERS, rows)
    else:
        yield draw_fitted([*TIMING_HEADERS[:-1], "note"], rows, width, wraps=True)
    if len(steps) > len(shown):
        yield from _lines(f"the {len(shown)} steps that failed or took longest are shown, of {len(steps)}", width)
    if timing["criticalPath"]:
        yield from _lines(f"critical path: {' → '.join(_ends(timing['criticalPath'], width))}", width)
    yield f"total: {spelt_seconds(timing['totalSeconds'])}"


def _labelled(run: RunInfo, timing: dict[str, Any], width: int | None) -> list[tuple[str, str]]:
    is_news = run.run_msg and run.status != RunStatus.SUCCEEDED
    started = run.activate_time
    if started and not run.is_ended:
        started += f", {spelt_seconds(timing['totalSeconds'])} ago"
    return [
        ("run", run.run_id),
        ("name", run.name),
        ("description", run.description),
        ("status", f"{run.status}: {run.run_msg}" if is_news else run.status),
        ("user", run.username),
        ("filesystem", run.fs_name),
        ("image", run.docker_env),
        ("created", run.create_time),
        ("started", started),
        ("ended", f"{run.finish_time}, after {spelt_seconds(timing['totalSeconds'])}" if run.finish_time else ""),
        ("parameters", ", ".join(f"{name}={_plain(value)}" for name, value in run.parameters.items())),
        ("disabled", run.disabled),
        ("source", run.source),
        ("schedule", f"{run.schedule_id} for {run.scheduled_time}" if run.schedule_id else ""),
        ("retry of", run.retry_of),
        ("reused", "; ".join(f"{', '.join(_ends(keys, width))} of {made}" for made, keys in _reused(run).items())),
    ]


def _plain(value: object) -> str:
    return value if isinstance(value, str) and value.isprintable() else json.dumps(value, ensure_ascii=False)


def _reused(run: RunInfo) -> Mapping[str, Sequence[str]]:
    """The run that made them → the keys of the steps whose results were taken over."""
    found: dict[str, list[str]] = defaultdict(list)
    for view in _steps((*(view for views in run.runtime.values() for view in views), *run.post_process.values())):
        if view.cache_run_id:
            found[view.cache_run_id].append(view.key or view.step_name)
    return found


def _steps(views: Sequence[View]) -> Iterator[Any]:
    for view in views:
        if isinstance(view, DagInfo):
            yield from _steps([inner for listed in view.entry_points.values() for inner in listed])
        else:
            yield view


def _picked(steps: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """As many as are shown, in their order: what failed before what took longest."""
    ranked = sorted(steps, key=lambda step: (step["status"] != NodeStatus.FAILED, -step["totalSeconds"]))
    kept = {step["key"] for step in ranked[:MOST_TIMED]}
    return [step for step in steps if step["key"] in kept]


def _step_row(step: dict[str, Any], change: Change | None, width: int | None) -> list[object]:
    """Its times; and of what did not succeed why, such as its exit code."""
    *cells, notes = timing_row(step)
    message = change.message if change is not None and step["status"] not in _QUIET else ""
    told = message if width is None else shortened(message, _MESSAGE)
    return [*cells, ", ".join(filter(None, (str(notes), told)))]


def _ends(names: Sequence[str], width: int | None) -> list[str]:
    """On a terminal the first and the last of many."""
    if width is None or len(names) <= _MOST_NAMED:
        return list(names)
    half = _MOST_NAMED // 2
    return [*names[:half], f"… {len(names) - 2 * half} more …", *names[-half:]]


def _label_lines(label: str, value: str, width: int | None) -> Iterator[str]:
    if width is None:
        yield f"{label:<{_LABELS}}{' '.join(value.split())}"
        return
    text, indent = visible(" ".join(value.split())), _LABELS
    if width < _NARROW:
        text, label, indent = f"{label}: {text}", "", 0
    lines = wrapped(text, width - indent)
    if len(lines) > _MOST_LINES:
        lines[_MOST_LINES - 1 :] = [shortened(" ".join(lines[_MOST_LINES - 1 :]), width - indent)]
    for at, line in enumerate(lines):
        yield f"{'' if at else label:<{indent}}{line}"


def _lines(text: str, width: int | None) -> list[str]:
    return [text] if width is None else wrapped(visible(text), width)
