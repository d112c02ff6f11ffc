"""``paddleflow run``: the commands that ask or change once; the others are added from the files beside this one."""

from __future__ import annotations

import click

from paddleflow.cli.commands.run_check import check
from paddleflow.cli.commands.run_create import create
from paddleflow.cli.commands.run_results import (
    artifacts,
    deletecache,
    download,
    lineage,
    listartifact,
    listcache,
    showcache,
    why_cached,
)
from paddleflow.cli.commands.run_summary import show_summary
from paddleflow.cli.commands.run_tables import show_run_tables, show_runs
from paddleflow.cli.commands.run_watch import watch
from paddleflow.cli.complete import filesystem_names, run_ids
from paddleflow.cli.invocation import Invocation
from paddleflow.cli.values import NAMES
from paddleflow.domain.runs import RUN_ACTIVE, RUN_ENDED, RunStatus

_WORDS = {"active": RUN_ACTIVE, "final": RUN_ENDED}


@click.group()
def run() -> None:
    """run pipelines, watch and manage their runs

    \b
    paddleflow run check run.yaml                          look at it first; no server is needed
    paddleflow run create -f data -yr run.yaml --watch     run it, and watch
    paddleflow run artifacts run-000001                    see what it made
    """


@run.command("list")
@click.option("-f", "--fsname", shell_complete=filesystem_names, help="Only runs on this filesystem.")
@click.option("-u", "--username", help="Only runs of this user; for root.")
@click.option("-r", "--runid", shell_complete=run_ids, help="Only this run.")
@click.option("-n", "--name", help="Only runs of this name.")
@click.option("-s", "--status", type=NAMES, help="Only runs of this status, or active, or final; several with commas.")
@click.option("-m", "--maxsize", type=int, default=100, show_default=True, help="Max size of the listed runs.")
@click.option("-mk", "--marker", help="Next page.")
@click.pass_obj
def list_runs(
    invocation: Invocation,
    *,
    fsname: str | None,
    username: str | None,
    runid: str | None,
    name: str | None,
    status: list[str] | None,
    maxsize: int,
    marker: str | None,
) -> None:
    """list runs, newest first"""
    _, page = invocation.client.list_run(fsname, username, runid, name, _statuses(status), maxsize, marker)
    found = page["runList"]
    if found:
        click.echo(f"{len(found)} runs shown under:", err=invocation.output == "json")
    show_runs(invocation.output, found, page["nextMarker"])


@run.command()
@click.argument("run_id", shell_complete=run_ids)
@click.option("--detail", is_flag=True, help="Show everything: options, source, and the nodes as JSON.")
@click.option("--yaml", is_flag=True, help="Print the source of the pipeline alone.")
@click.pass_obj
def show(invocation: Invocation, run_id: str, detail: bool, yaml: bool) -> None:
    """show a run: its steps and where its time went

    \b
    paddleflow run show run-000001                         on one screen
    paddleflow run show run-000001 --detail                with the commands, parameters and artifacts of every step
    paddleflow run show run-000001 --yaml > run.yaml       what was run

    `--output json` and `--output text` always have all of it.
    """
    if yaml and (detail or invocation.output == "json"):
        raise click.UsageError("--yaml prints the source alone: leave out --detail and --output json")
    _, one = invocation.client.show_run(run_id)
    if yaml:
        click.echo(one.run_yaml, nl=not one.run_yaml.endswith("\n"))
        return
    _, timing = invocation.client.run_timing(run_id)
    if detail or invocation.output != "table":
        show_run_tables(invocation.output, one, timing)
    else:
        show_summary(one, timing)


@run.command()
@click.argument("run_id", shell_complete=run_ids)
@click.option("-f", "--force", is_flag=True, help="Stop the post-process too, or do not start it.")
@click.pass_obj
def stop(invocation: Invocation, run_id: str, force: bool) -> None:
    """stop a run; its post-process still runs"""
    invocation.client.stop_run(run_id, force)
    click.echo(f"runid[{run_id}] stop success")


@run.command()
@click.argument("run_id", shell_complete=run_ids)
@click.pass_obj
def retry(invocation: Invocation, run_id: str) -> None:
    """run again what did not succeed, as a new run"""
    _, new = invocation.client.retry_run(run_id)
    click.echo(f"run id[{run_id}] retry success, new run id is [{new}]")


@run.command()
@click.argument("run_id", shell_complete=run_ids)
@click.option("-not-cc", "--notcheckcache", is_flag=True, help="Even if other runs rely on its results.")
@click.pass_obj
def delete(invocation: Invocation, run_id: str, notcheckcache: bool) -> None:
    """delete a run that has ended, and its artifacts"""
    invocation.client.delete_run(run_id, check_cache=not notcheckcache)
    click.echo(f"run id [{run_id}] delete success")


_BESIDE = (
    create,
    check,
    watch,
    why_cached,
    artifacts,
    download,
    lineage,
    listcache,
    showcache,
    deletecache,
    listartifact,
)
for _command in _BESIDE:
    run.add_command(_command)


def _statuses(words: list[str] | None) -> str | None:
    if not words:
        return None
    wanted = [status for word in words for status in _WORDS.get(word, [word])]
    order = {str(status): place for place, status in enumerate(RunStatus)}
    return ",".join(sorted(dict.fromkeys(map(str, wanted)), key=lambda status: order.get(status, len(order))))
