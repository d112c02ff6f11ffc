"""``paddleflow run create``: hand a pipeline in; if asked to, only check it, or stay until its run has ended."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from paddleflow.cli.commands.run_check import checked_by_server, show_checked
from paddleflow.cli.commands.run_watch import wait_to_the_end, watch_to_the_end
from paddleflow.cli.complete import filesystem_names, pipeline_ids
from paddleflow.cli.invocation import Invocation
from paddleflow.cli.values import pairs_of

if TYPE_CHECKING:
    from paddleflow.sdk.runs import RunRequest


@click.command()
@click.option("-f", "--fsname", shell_complete=filesystem_names, help="The main filesystem.")
@click.option("-n", "--name", help="The name of the run.")
@click.option("-d", "--desc", help="What it is for.")
@click.option("-u", "--username", help="Run it for this user; for root.")
@click.option("-p", "--param", multiple=True, metavar="K=V", help="A parameter; may be repeated.")
@click.option("-yp", "--runyamlpath", help="The file on the filesystem.  [default: ./run.yaml]")
@click.option(
    "-yr",
    "--runyamlraw",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A file on this machine.",
)
@click.option("-pplid", "--pipelineid", shell_complete=pipeline_ids, help="A stored pipeline.")
@click.option("-pplver", "--pipelineversionid", help="Which version of it.  [default: the newest]")
@click.option("--disabled", multiple=True, metavar="NAME", help="A step to leave out; may be repeated.")
@click.option("-de", "--dockerenv", help="The image of steps that name none.")
@click.option("-w", "--wait", is_flag=True, help="Stay until the run has ended, and exit as it does.")
@click.option("--watch", is_flag=True, help="As --wait, and draw how far each step is.")
@click.option("--dry-run", is_flag=True, help="Run nothing: let the server check it, and show the plan.")
@click.pass_context
def create(
    ctx: click.Context,
    *,
    fsname: str | None,
    name: str | None,
    desc: str | None,
    username: str | None,
    param: tuple[str, ...],
    runyamlpath: str | None,
    runyamlraw: Path | None,
    pipelineid: str | None,
    pipelineversionid: str | None,
    disabled: tuple[str, ...],
    dockerenv: str | None,
    wait: bool,
    watch: bool,
    dry_run: bool,
) -> None:
    """run a pipeline

    It is a file on this machine (-yr), a stored one (-pplid) or a file on the filesystem (-yp).

    \b
    paddleflow run create -f data -yr run.yaml -p lr=0.1 --watch
    paddleflow run create -f data -pplid ppl-000001 --wait
    """
    if runyamlraw is None and pipelineid is None and fsname is None:
        raise click.UsageError("say what to run: -yr FILE, -pplid ID, or -f FSNAME for the file on that filesystem")
    invocation: Invocation = ctx.obj
    request: RunRequest = {
        "fs_name": fsname,
        "username": username,
        "run_name": name,
        "desc": desc,
        "run_yaml_path": runyamlpath,
        "run_yaml_raw": None if runyamlraw is None else runyamlraw.read_bytes(),
        "pipeline_id": pipelineid,
        "pipeline_version_id": pipelineversionid,
        "param": pairs_of("--param", param),
        "disabled": ",".join(disabled) or None,
        "docker_env": dockerenv,
    }
    if dry_run:
        _, answer = invocation.client.check_run(**request)
        source = runyamlraw or pipelineid or runyamlpath or "./run.yaml"
        ctx.exit(show_checked(invocation.output, checked_by_server(answer), str(source)))
    _, ident = invocation.client.create_run(**request)
    click.echo(f"run[{fsname}] create success with run id[{ident}]")
    if watch:
        ctx.exit(watch_to_the_end(invocation.client, ident))
    if wait:
        ctx.exit(wait_to_the_end(invocation.client, ident))
