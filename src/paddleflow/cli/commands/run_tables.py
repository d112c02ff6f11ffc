"""Runs as tables, for every command that shows them."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from paddleflow.cli.durations import spelt_seconds, spelt_span, spelt_time
from paddleflow.cli.output import show, show_facts, show_one, show_page, to_json
from paddleflow.domain.runs import RunStatus

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
_ON_TERMINAL = ["run id", "name", "status", "took", "user", "fs", "created", "message"]
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
TIMING_HEADERS = ["step", "status", "waiting", "running", "total", ""]
MOST_TIMED = 100
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


def show_runs(output: str, runs: list[RunInfo], marker: str | None) -> None:
    """One page of runs."""
    rows, now = [run_row(one) for one in runs], datetime.now()  # noqa: DTZ005 - as the server's times
    short = _ON_TERMINAL, [_short_row(one, now) for one in runs]
    show_page(output, RUN_HEADERS, rows, marker=marker, nothing="no run found ", terminal=short)


def _short_row(run: RunInfo, now: datetime) -> list[object]:
    return [
        run.run_id,
        run.name,
        run.status,
        # Nothing changes a run that has ended.
        spelt_span(run.activate_time, run.update_time if run.is_ended else "", now),
        run.username,
        run.fs_name,
        spelt_time(run.create_time, now),
        "" if run.status == RunStatus.SUCCEEDED else run.run_msg,
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
        show_one(output, headers, row)
    for headers, row in tables[2:]:
        if row[0]:
            show_one(output, headers, [row[0] if isinstance(row[0], str) else to_json(row[0])])
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
    shown = sorted(steps, key=lambda step: -step["totalSeconds"])[:MOST_TIMED]
    kept = {step["key"] for step in shown}
    rows = [timing_row(step) for step in steps if step["key"] in kept]
    if output == "text":
        show(output, TIMING_HEADERS, rows)
        return
    click.echo("\nwhere the time went:")
    show_facts(TIMING_HEADERS, rows)
    if len(steps) > len(shown):
        click.echo(f"the {len(shown)} steps that took longest are shown, of {len(steps)}")
    if timing["criticalPath"]:
        click.echo(f"critical path: {' → '.join(timing['criticalPath'])}")
    click.echo(f"total: {spelt_seconds(timing['totalSeconds'])}")


def timing_row(step: dict[str, Any]) -> list[object]:
    notes = [word for word in ("reused", "critical") if step[word]]
    times = [spelt_seconds(step[name]) for name in ("waitingSeconds", "runningSeconds", "totalSeconds")]
    return [step["key"], step["status"], *times, ", ".join(notes)]
