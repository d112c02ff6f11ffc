"""``paddleflow log``: logs as pages. To follow one as it is written, see ``paddleflow job logs``."""

from __future__ import annotations

from dataclasses import asdict

import click

from paddleflow.cli.complete import job_ids, run_ids
from paddleflow.cli.invocation import Invocation
from paddleflow.cli.output import to_json


@click.group()
def log() -> None:
    """show logs"""


@log.command("run")
@click.argument("runid", shell_complete=run_ids)
@click.option("-j", "--jobid", help="Only this job of the run.")
@click.option("-ps", "--pagesize", type=click.IntRange(min=1, max=100), help="Lines of a page.  [default: 100]")
@click.option("-pn", "--pageno", type=click.IntRange(min=1), help="Which page.  [default: 1]")
@click.option("-fp", "--logfileposition", type=click.Choice(["begin", "end"]), help="Count pages from there.")
@click.pass_obj
def log_of_run(
    invocation: Invocation,
    *,
    runid: str,
    jobid: str | None,
    pagesize: int | None,
    pageno: int | None,
    logfileposition: str | None,
) -> None:
    """show the story of a run and the log of every task of its jobs"""
    _, page = invocation.client.show_log(runid, jobid, pagesize, pageno, logfileposition)
    if invocation.output == "json":
        click.echo(to_json({"submitLog": page["submitLog"], "runLog": [asdict(one) for one in page["runLog"]]}))
        return
    click.echo("submit log:")
    click.echo(page["submitLog"])
    click.echo("run log:")
    for one in page["runLog"]:
        click.echo(
            f"runid:{one.runid} \tjobid:{one.jobid} \ttaskid:{one.taskid} \thas_next_page:{one.has_next_page} "
            f"\ttruncated:{one.truncated} \tpage_no:{one.pageno} \tpage_size:{one.pagesize}"
        )
        click.echo(one.log_content)


log.add_command(
    click.Command(
        "show",
        params=log_of_run.params,
        callback=log_of_run.callback,
        help="the same as `log run`, for scripts of earlier releases",
        deprecated=True,
    )
)


@log.command("job")
@click.option("-j", "--jobid", required=True, shell_complete=job_ids, help="The job.")
@click.option("-f", "--framework", help="The framework of the job.")
@click.option("-r", "--readfromtail", is_flag=True, default=None, help="Read from the end.")
@click.option("-l", "--line_limit", type=int, help="At most so many lines.")
@click.option("-s", "--size_limit", help="At most so much, e.g. 10M.")
@click.pass_obj
def log_of_job(
    invocation: Invocation,
    *,
    jobid: str,
    framework: str | None,
    readfromtail: bool | None,
    line_limit: int | None,
    size_limit: str | None,
) -> None:
    """show the log of every task of a job"""
    _, page = invocation.client.show_log_by_limit(
        jobid,
        read_from_tail=readfromtail,
        line_limit=line_limit,
        size_limit=size_limit,
        framework=framework,
    )
    if invocation.output == "json":
        tasks = [
            {
                "taskid": one.taskid,
                "has_next_page": one.has_next_page,
                "truncated": one.truncated,
                "log": one.log_content,
            }
            for one in page["logs"]
        ]
        click.echo(to_json({"eventList": page["eventList"], "logs": tasks}))
        return
    click.secho("eventList:", fg="green")
    for event in page["eventList"]:
        click.echo(event if isinstance(event, str) else to_json(event))
    click.secho("logs:", fg="green")
    for one in page["logs"]:
        click.echo(
            f"jobid:{one.jobid} \ttaskid:{one.taskid} \thas_next_page:{one.has_next_page} \ttruncated:{one.truncated}"
        )
        click.echo(one.log_content)
