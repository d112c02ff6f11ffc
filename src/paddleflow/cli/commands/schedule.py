"""``paddleflow schedule``."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import click

from paddleflow.cli.commands.run_tables import RUN_HEADERS, run_row, show_runs
from paddleflow.cli.complete import pipeline_ids, schedule_ids
from paddleflow.cli.durations import spelt_time
from paddleflow.cli.invocation import Invocation
from paddleflow.cli.output import Table, show_one, show_page, terminal_width
from paddleflow.cli.output import show as show_table

if TYPE_CHECKING:
    from paddleflow.sdk.schedules import ScheduleInfo

_HEADERS = [
    "schedule id",
    "name",
    "desc",
    "pipeline id",
    "pipeline version id",
    "crontab",
    "username",
    "fs config",
    "options",
    "message",
    "status",
]
_TIME_HEADERS = ["schedule id", "start time", "end time", "create time", "update time", "next run time", "time zone"]


@click.group()
def schedule() -> None:
    """run pipelines at set times"""


@schedule.command()
@click.argument("name")
@click.argument("ppl_id", shell_complete=pipeline_ids)
@click.argument("ppl_ver_id")
@click.argument("crontab")
@click.option("-d", "--desc", help="What it is for.")
@click.option("-s", "--starttime", help="Not before YYYY-MM-DD HH:MM:SS.")
@click.option("-e", "--endtime", help="Not after YYYY-MM-DD HH:MM:SS.")
@click.option("-c", "--concurrency", type=click.IntRange(min=0), help="Runs at one time; 0: any number.")
@click.option(
    "-cp",
    "--concurrencypolicy",
    type=click.Choice(["suspend", "replace", "skip"]),
    help="What a tick does when there are as many: wait, stop the oldest, or be skipped.",
)
@click.option(
    "-ei", "--expireinterval", type=click.IntRange(min=0), help="Skip a tick that is later than so many seconds."
)
@click.option(
    "--catchup/--no-catchup",
    default=None,
    help="Start the ticks missed while no server ran: all of them (the default), or only the newest.",
)
@click.option("--timezone", metavar="ZONE", help="In which CRONTAB is read, e.g. Europe/Berlin.  [default: UTC]")
@click.option("-u", "--username", help="The owner, if it is another; for root.")
@click.pass_obj
def create(
    invocation: Invocation,
    *,
    name: str,
    ppl_id: str,
    ppl_ver_id: str,
    crontab: str,
    desc: str | None,
    starttime: str | None,
    endtime: str | None,
    concurrency: int | None,
    concurrencypolicy: str | None,
    expireinterval: int | None,
    catchup: bool | None,
    timezone: str | None,
    username: str | None,
) -> None:
    """start a run of a pipeline at every tick of a CRONTAB

    CRONTAB is minute, hour, day, month and weekday, or one of @hourly, @daily, @weekly, @monthly, @every 90s.

    \b
    paddleflow schedule create nightly ppl-000001 1 "0 3 * * *" --timezone Europe/Berlin
    paddleflow schedule create often ppl-000001 1 "@every 90s" -c 1 -cp skip
    """
    _, ident = invocation.client.create_schedule(
        name,
        ppl_id,
        ppl_ver_id,
        crontab,
        desc,
        starttime,
        endtime,
        concurrency,
        concurrencypolicy,
        expireinterval,
        catchup,
        username,
        timezone,
    )
    click.echo(f"schedule [{name}] create success with schedule id[{ident}]")


@schedule.command("list")
@click.option("-u", "--userfilter", help="Only schedules of this user; for root.")
@click.option("-n", "--namefilter", help="Only schedules of this name.")
@click.option("-p", "--pplfilter", shell_complete=pipeline_ids, help="Only schedules of this pipeline.")
@click.option("-pv", "--pplverfilter", help="Only schedules of this version.")
@click.option("-s", "--statusfilter", help="Only running, success, failed or terminated; several with commas.")
@click.option("-m", "--maxkeys", type=int, help="Max size of the listed schedules.")
@click.option("-mk", "--marker", help="Next page.")
@click.pass_obj
def list_schedules(
    invocation: Invocation,
    *,
    userfilter: str | None,
    namefilter: str | None,
    pplfilter: str | None,
    pplverfilter: str | None,
    statusfilter: str | None,
    maxkeys: int | None,
    marker: str | None,
) -> None:
    """list schedules"""
    _, page = invocation.client.list_schedule(
        userfilter, pplfilter, pplverfilter, None, namefilter, statusfilter, marker, maxkeys
    )
    found = page["scheduleList"]
    if invocation.output == "json":
        show_page("json", *_merged(found), marker=page["nextMarker"], nothing="")
    elif invocation.output == "table" and terminal_width() is not None:
        show_page("table", *_for_terminal(found), marker=page["nextMarker"], nothing="no schedule found ")
    elif found:
        show_table(invocation.output, _HEADERS, [_row(one) for one in found])
        show_page(
            invocation.output,
            _TIME_HEADERS,
            [_time_row(one) for one in found],
            marker=page["nextMarker"],
            nothing="",
        )
    else:
        click.echo("no schedule found ")


@schedule.command()
@click.argument("schedule_id", shell_complete=schedule_ids)
@click.option("-r", "--runfilter", help="Only this run.")
@click.option("-s", "--statusfilter", help="Only runs of this status; several with commas.")
@click.option("-m", "--maxkeys", type=int, help="Max size of the listed runs.")
@click.option("-mk", "--marker", help="Next page.")
@click.pass_obj
def show(
    invocation: Invocation,
    *,
    schedule_id: str,
    runfilter: str | None,
    statusfilter: str | None,
    maxkeys: int | None,
    marker: str | None,
) -> None:
    """show a schedule and its runs"""
    _, found = invocation.client.show_schedule(schedule_id, runfilter, statusfilter, marker, maxkeys)
    one, rows = found["scheduleInfo"], [run_row(run) for run in found["runList"]]
    if invocation.output == "json":
        headers, merged = _merged([one])
        listed = [dict(zip(RUN_HEADERS, row, strict=True)) for row in rows]
        show_table("json", [*headers, "runs"], [[*merged[0], listed]])
        click.echo(f"marker: {found['nextMarker']}", err=True)
        return
    show_one(invocation.output, _HEADERS, _row(one))
    show_one(invocation.output, _TIME_HEADERS, _time_row(one))
    show_runs(invocation.output, found["runList"], found["nextMarker"])


@schedule.command()
@click.argument("schedule_id", shell_complete=schedule_ids)
@click.pass_obj
def stop(invocation: Invocation, schedule_id: str) -> None:
    """start no more runs; those that were started go on"""
    invocation.client.stop_schedule(schedule_id)
    click.echo(f"schedule with id [{schedule_id}] stop success")


@schedule.command()
@click.argument("schedule_id", shell_complete=schedule_ids)
@click.pass_obj
def delete(invocation: Invocation, schedule_id: str) -> None:
    """delete a schedule that was stopped or has ended"""
    invocation.client.delete_schedule(schedule_id)
    click.echo(f"schedule with id [{schedule_id}] delete success")


def _row(one: ScheduleInfo) -> list[object]:
    return [
        one.schedule_id,
        one.name,
        one.desc,
        one.pipeline_id,
        one.pipeline_version_id,
        one.crontab,
        one.username,
        one.fs_config,
        one.options,
        one.message,
        one.status,
    ]


def _for_terminal(found: list[ScheduleInfo]) -> Table:
    now = datetime.now()  # noqa: DTZ005 - as the server's times
    headers = ["schedule id", "name", "status", "crontab", "next run", "message", "pipeline id", "version", "user"]
    rows = [
        [
            one.schedule_id,
            one.name,
            one.status,
            one.crontab,
            spelt_time(one.next_run_time, now),
            one.message,
            one.pipeline_id,
            one.pipeline_version_id,
            one.username,
        ]
        for one in found
    ]
    return headers, rows


def _time_row(one: ScheduleInfo) -> list[object]:
    return [
        one.schedule_id,
        one.start_time,
        one.end_time,
        one.create_time,
        one.update_time,
        one.next_run_time,
        one.time_zone,
    ]


def _merged(found: list[ScheduleInfo]) -> tuple[list[str], list[list[object]]]:
    """Both tables in one, for machines."""
    return [*_HEADERS, *_TIME_HEADERS[1:]], [[*_row(one), *_time_row(one)[1:]] for one in found]
