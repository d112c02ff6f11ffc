"""``paddleflow statistics``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from paddleflow.cli.complete import job_ids
from paddleflow.cli.invocation import Invocation
from paddleflow.cli.output import show, show_list, show_one
from paddleflow.cli.values import NAMES

if TYPE_CHECKING:
    from paddleflow.sdk.statistics import TaskInfo


@click.group()
def statistics() -> None:
    """show what jobs and queues have used"""


@statistics.command()
@click.argument("jobid", shell_complete=job_ids)
@click.option("-d", "--detail", is_flag=True, help="As a series over time.")
@click.option("-s", "--start", type=int, help="From this Unix time; with -d.")
@click.option("-e", "--end", type=int, help="To this Unix time; with -d.")
@click.option("-st", "--step", type=int, help="Seconds between two points; with -d.")
@click.pass_obj
def job(invocation: Invocation, jobid: str, detail: bool, start: int | None, end: int | None, step: int | None) -> None:
    """show what a job uses"""
    if not detail and (start is not None or end is not None or step is not None):
        raise click.UsageError("please use -d or --detail option to show detail statistics")
    if detail:
        _show_series(invocation, jobid, start, end, step)
        return
    _, found = invocation.client.get_statistics(jobid)
    if not found.metrics_info:
        click.echo("no data")
        return
    headers = [name.replace("_", " ") for name in found.metrics_info]
    show_one(invocation.output, headers, list(found.metrics_info.values()))


@statistics.command("card-time")
@click.option("-q", "--queue_names", type=NAMES, required=True, help="Queues, separated by commas.")
@click.option("-s", "--start_time", required=True, help="YYYY-MM-DD HH:MM:SS")
@click.option("-e", "--end_time", required=True, help="YYYY-MM-DD HH:MM:SS")
@click.pass_obj
def card_time(invocation: Invocation, queue_names: list[str], start_time: str, end_time: str) -> None:
    """show the hours of accelerator cards that queues have used"""
    _, found = invocation.client.get_cardtime_by_queue_name(queue_names, start_time, end_time)
    headers = ["queueName", "cardTime", "deviceType", "detail"]
    rows = [[one.get(name) for name in headers] for one in found.data]
    show_list(invocation.output, headers, rows, nothing="no data")


def _show_series(invocation: Invocation, jobid: str, start: int | None, end: int | None, step: int | None) -> None:
    _, found, truncated = invocation.client.get_statistics_detail(jobid, start, end, step)
    if not found.result:
        click.echo("no data")
        return
    first, *others = found.result
    headers, rows = series_table(first.task_info)
    show(invocation.output, headers, rows)
    if others:
        click.echo(f"task {first.task_name} is shown; there are {len(others)} more", err=True)
    if truncated:
        click.echo("results has been truncated due to server side limitation", err=invocation.output == "json")


def series_table(series: Sequence[TaskInfo]) -> tuple[list[str], list[list[object]]]:
    """One row for each time, one column for each metric, ``N/A`` where a metric has no value then."""
    headers = ["timestamp", *(one.metric.replace("_", " ") for one in series)]
    by_metric = [dict(one.values) for one in series]
    times = sorted({time for values in by_metric for time in values})
    return headers, [[time, *(values.get(time, "N/A") for values in by_metric)] for time in times]
