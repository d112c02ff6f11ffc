"""``paddleflow job``: the commands that ask or change once. Those that follow a job are in ``job_follow.py``."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from paddleflow.cli.commands.job_follow import logs, watch
from paddleflow.cli.commands.job_submit import run, submit
from paddleflow.cli.complete import job_ids, queue_names
from paddleflow.cli.durations import spelt_span
from paddleflow.cli.invocation import Invocation
from paddleflow.cli.output import Table, show_facts, show_page, show_with_details
from paddleflow.cli.output import show as show_table
from paddleflow.cli.values import NAMES, PAIRS

if TYPE_CHECKING:
    from paddleflow.sdk.jobs import JobInfo

_FIELDS = {
    "id": ("job id", "job_id"),
    "name": ("job name", "job_name"),
    "queue": ("queue", "queue"),
    "status": ("status", "status"),
    "acceptTime": ("accept time", "accept_time"),
    "startTime": ("start time", "start_time"),
    "finishTime": ("finish time", "finish_time"),
    "user": ("user", "username"),
    "runtime": ("runtime", "runtime"),
    "distributedRuntime": ("distributed runtime", "distributed_runtime"),
    "workflowRuntime": ("workflow runtime", "workflow_runtime"),
    "message": ("message", "message"),
    "labels": ("labels", "labels"),
    "annotations": ("annotations", "annotations"),
    "priority": ("priority", "priority"),
    "flavour": ("flavour", "flavour"),
    "fs": ("file system", "fs"),
    "extraFS": ("extra file systems", "extra_fs_list"),
    "image": ("image", "image"),
    "env": ("env", "env"),
    "command": ("command", "command"),
    "args": ("args", "args_list"),
    "port": ("port", "port"),
    "extensionTemplate": ("extension template", "extension_template"),
    "framework": ("framework", "framework"),
    "members": ("members", "member_list"),
    "elastic": ("elastic", "elastic"),
    "runPolicy": ("run policy", "run_policy"),
}
"""What ``-fl`` may name: the header it is shown under, and where it is found."""

_LISTED = ["id", "name", "queue", "status", "acceptTime", "startTime", "finishTime"]
_ON_TERMINAL = ["job id", "name", "user", "status", "ran", "command", "queue"]
_SHOWN = ["id", "name", "queue", "priority", "status", "acceptTime", "startTime", "finishTime"]


@click.group()
def job() -> None:
    """submit, watch and manage jobs"""


job.add_command(submit)
job.add_command(run)
job.add_command(watch)
job.add_command(logs)


@job.command("list")
@click.option("-s", "--status", help="Only jobs of this status.")
@click.option("-t", "--timestamp", help="Only jobs updated since this Unix time.")
@click.option("-st", "--starttime", help="Only jobs started since YYYY-MM-DD HH:MM:SS.")
@click.option("-q", "--queue", shell_complete=queue_names, help="Only jobs of this queue.")
@click.option("-l", "--labels", type=PAIRS, help="Only jobs with these labels.")
@click.option("-m", "--maxkeys", type=int, help="Max size of the listed jobs.")
@click.option("-mk", "--marker", help="Next page.")
@click.option("-fl", "--fieldlist", type=NAMES, help=f"Show these fields: {', '.join(_FIELDS)}.")
@click.pass_obj
def list_jobs(
    invocation: Invocation,
    *,
    status: str | None,
    timestamp: str | None,
    starttime: str | None,
    queue: str | None,
    labels: dict[str, str] | None,
    maxkeys: int | None,
    marker: str | None,
    fieldlist: list[str] | None,
) -> None:
    """list jobs, newest first"""
    fields = fieldlist or _LISTED
    unknown = [name for name in fields if name not in _FIELDS]
    if unknown:
        raise click.BadParameter(
            f"unknown field {', '.join(unknown)}; there are {', '.join(_FIELDS)}", param_hint="--fieldlist"
        )
    _, found, following = invocation.client.list_job(status, timestamp, starttime, queue, labels, maxkeys, marker)
    rows = [_row(one, fields) for one in found]
    terminal = None if fieldlist else _for_terminal(found, datetime.now())  # noqa: DTZ005 - as the server's times
    show_page(invocation.output, _headers(fields), rows, marker=following, nothing="no job found", terminal=terminal)


@job.command()
@click.argument("jobid", shell_complete=job_ids)
@click.pass_obj
def show(invocation: Invocation, jobid: str) -> None:
    """show a job, its configuration and where it runs"""
    _, one = invocation.client.show_job(jobid)
    title = "job config and runtime info: "
    show_with_details(invocation.output, _headers(_SHOWN), _row(one, _SHOWN), title, _details(one))


@job.command()
@click.argument("jobtype", type=click.Choice(["single", "distributed", "workflow"]))
@click.argument("jsonpath", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.pass_obj
def create(invocation: Invocation, jobtype: str, jsonpath: Path) -> None:
    """create a job from a JSON file in the shape of the request body"""
    try:
        request = json.loads(jsonpath.read_text(encoding="utf-8"))
    except ValueError as error:
        raise click.BadParameter(f"{jsonpath} is not JSON: {error}", param_hint="JSONPATH") from error
    if not isinstance(request, dict):
        raise click.BadParameter(f"{jsonpath} should hold one JSON object", param_hint="JSONPATH")
    _, ident = invocation.client.create_job(jobtype, request)
    click.echo(f"job create success, id[{ident}]")


@job.command()
@click.argument("jobid", shell_complete=job_ids)
@click.option("-p", "--priority", help="VERY_LOW, LOW, NORMAL, HIGH or VERY_HIGH; while it waits.")
@click.option("-l", "--labels", type=PAIRS, help="Labels to set, k=v,k=v.")
@click.option("-a", "--annotations", type=PAIRS, help="Annotations to set, k=v,k=v.")
@click.pass_obj
def update(
    invocation: Invocation,
    *,
    jobid: str,
    priority: str | None,
    labels: dict[str, str] | None,
    annotations: dict[str, str] | None,
) -> None:
    """change priority, labels or annotations of a job"""
    invocation.client.update_job(jobid, priority, labels, annotations)
    click.echo(f"jobid[{jobid}] update success")


@job.command()
@click.argument("jobid", shell_complete=job_ids)
@click.pass_obj
def stop(invocation: Invocation, jobid: str) -> None:
    """stop a job"""
    invocation.client.stop_job(jobid)
    click.echo(f"jobid[{jobid}] stop success")


@job.command()
@click.argument("jobid", shell_complete=job_ids)
@click.pass_obj
def delete(invocation: Invocation, jobid: str) -> None:
    """forget a job that has ended"""
    invocation.client.delete_job(jobid)
    click.echo(f"job[{jobid}] delete success ")


@job.command()
@click.argument("jobid", shell_complete=job_ids)
@click.pass_obj
def why(invocation: Invocation, jobid: str) -> None:
    """say why a job waits, failed or was stopped"""
    _, reason = invocation.client.why_job(jobid)
    if invocation.output == "table":
        click.echo(f"{reason.job_id} {reason.sentence.removeprefix('it ')}")
        _show_numbers(reason.details)
        return
    headers = ["job id", "status", "sentence", "details"]
    show_table(invocation.output, headers, [[reason.job_id, reason.status, reason.sentence, reason.details]])


@job.command()
@click.argument("jobid", shell_complete=job_ids)
@click.pass_obj
def eta(invocation: Invocation, jobid: str) -> None:
    """say when a job is expected to start"""
    _, told = invocation.client.job_eta(jobid)
    headers = ["job id", "status", "earliest", "expected", "latest", "confidence"]
    row: list[object] = [told.job_id, told.status, told.low, told.median, told.high, f"{told.confidence:.0%}"]
    if invocation.output == "json":
        show_table(invocation.output, [*headers, "sentence"], [[*row, told.sentence]])
        return
    click.echo(f"{told.job_id} {told.sentence.removeprefix('it ')}")
    if told.median:
        show_table(invocation.output, headers, [row])


def _show_numbers(details: dict[str, Any]) -> None:
    """The facts behind a sentence: single ones in one small table, each list of them in another."""
    single = {name: value for name, value in details.items() if not _is_rows(value) and value not in ([], "")}
    if single:
        rows = [
            [name, ", ".join(map(str, value)) if isinstance(value, list) else value] for name, value in single.items()
        ]
        show_facts(["what", "value"], rows)
    for name, rows in details.items():
        if _is_rows(rows):
            headers = list(dict.fromkeys(header for row in rows for header in row))
            click.echo(f"\n{name}:")
            show_facts(headers, [[row.get(header) for header in headers] for row in rows])


def _is_rows(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(row, dict) for row in value)


def _headers(fields: list[str]) -> list[str]:
    return [_FIELDS[name][0] for name in fields]


def _row(one: JobInfo, fields: list[str]) -> list[object]:
    return [getattr(one, _FIELDS[name][1]) for name in fields]


def _for_terminal(jobs: list[JobInfo], today: datetime) -> Table:
    rows: list[list[object]] = [
        [
            one.job_id,
            # Of jobs without a name of their own, and of steps, the id says it.
            "" if one.job_id == one.job_name or one.job_id.startswith(f"job-{one.job_name}-") else one.job_name,
            one.username,
            one.status,
            spelt_span(one.start_time, one.finish_time, today),
            " ".join(_command(one).split()),
            one.queue,
        ]
        for one in jobs
    ]
    return _ON_TERMINAL, rows


def _command(one: JobInfo) -> str:
    """The command of the job, or of the first of its members that has one."""
    return one.command or next(filter(None, (member.get("command") for member in one.member_list or [])), "")


def _details(one: JobInfo) -> dict[str, object]:
    details: dict[str, object] = {
        "flavour": one.flavour,
        "fs": one.fs,
        "extraFS": one.extra_fs_list,
        "labels": one.labels,
        "annotations": one.annotations,
        "image": one.image,
        "command": one.command,
        "args": one.args_list,
        "port": one.port,
    }
    if one.member_list:
        details |= {"framework": one.framework, "members": one.member_list}
    if one.elastic:
        details["elastic"] = one.elastic
    if one.run_policy:
        details["runPolicy"] = one.run_policy
    if one.extension_template:
        details["extensionTemplate"] = one.extension_template
    details["message"] = one.message
    runtimes = {
        "runtime": one.runtime,
        "distributed runtime": one.distributed_runtime,
        "workflow runtime": one.workflow_runtime,
    }
    return details | {name: value for name, value in runtimes.items() if value}
