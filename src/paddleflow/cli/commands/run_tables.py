"""Runs as tables, for every command that shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from paddleflow.cli.durations import spelt_seconds
from paddleflow.cli.output import draw_simple, show, to_json

if TYPE_CHECKING:
    from paddleflow.sdk.run_views import RunInfo

RUN_HEADERS = [
    "run id",
    "fs name",
    "username",
    "status",
    "name",
    "description",
    "run msg",
    "source",
    "schedule id",
    "scheduled time",
    "create time",
    "activate time",
    "update time",
]
_FIRST = [
    "run id",
    "status",
    "name",
    "desc",
    "param",
    "source",
    "run msg",
    "create time",
    "update time",
    "activate time",
]
_SECOND = [
    "fs name",
    "username",
    "docker env",
    "schedule id",
    "fs options(json)",
    "failure options(json)",
    "disabled",
    "run cached ids",
]
_TIMING = ["step", "status", "waiting", "running", "total", ""]
_MOST_TIMED = 100
"""Rows of the timing table; of a run with more, those that took longest are shown."""


def run_row(run: RunInfo) -> list[object]:
    return [
        run.run_id,
        run.fs_name,
        run.username,
        run.status,
        run.name,
        run.description,
        run.run_msg,
        run.source,
        run.schedule_id,
        run.scheduled_time,
        run.create_time,
        run.activate_time,
        run.update_time,
    ]


def show_run_tables(output: str, run: RunInfo, timing: dict[str, Any]) -> None:
    """All about one run: who and what, its text, its nodes; then where its time went."""
    from paddleflow.sdk.run_views import plain_views

    post_process = {name: view.get_dict() for name, view in run.post_process.items()}
    tables: list[tuple[list[str], list[object]]] = [
        (_FIRST, _first(run)),
        (_SECOND, _second(run)),
        (["run yaml detail"], [run.run_yaml]),
        (["runtime in json"], [plain_views(run.runtime)]),
        (["postProcess in json"], [post_process]),
    ]
    if output == "json":
        whole = {header: value for headers, row in tables for header, value in zip(headers, row, strict=True)}
        click.echo(to_json([{**whole, "timing": timing}]))
        return
    for headers, row in tables[:2]:
        show(output, headers, [row])
    for headers, row in tables[2:]:
        if row[0]:
            show(output, headers, [[row[0] if isinstance(row[0], str) else to_json(row[0])]])
    _show_timing(output, timing)


def _first(run: RunInfo) -> list[object]:
    return [
        run.run_id,
        run.status,
        run.name,
        run.description,
        run.parameters,
        run.source,
        run.run_msg,
        run.create_time,
        run.update_time,
        run.activate_time,
    ]


def _second(run: RunInfo) -> list[object]:
    return [
        run.fs_name,
        run.username,
        run.docker_env,
        run.schedule_id,
        run.fs_options,
        run.failure_options,
        run.disabled,
        run.run_cached_ids,
    ]


def _show_timing(output: str, timing: dict[str, Any]) -> None:
    steps = [step for step in timing["steps"] if step["type"] == "step"]
    if not steps:
        return
    shown = sorted(steps, key=lambda step: -step["totalSeconds"])[:_MOST_TIMED]
    kept = {step["key"] for step in shown}
    rows = [_timing_row(step) for step in steps if step["key"] in kept]
    if output == "text":
        show(output, _TIMING, rows)
        return
    click.echo("\nwhere the time went:")
    click.echo(draw_simple(_TIMING, rows))
    if len(steps) > len(shown):
        click.echo(f"the {len(shown)} steps that took longest are shown, of {len(steps)}")
    if timing["criticalPath"]:
        click.echo(f"critical path: {' → '.join(timing['criticalPath'])}")
    click.echo(f"total: {spelt_seconds(timing['totalSeconds'])}")


def _timing_row(step: dict[str, Any]) -> list[object]:
    notes = [word for word in ("reused", "critical") if step[word]]
    times = [spelt_seconds(step[name]) for name in ("waitingSeconds", "runningSeconds", "totalSeconds")]
    return [step["key"], step["status"], *times, ", ".join(notes)]
