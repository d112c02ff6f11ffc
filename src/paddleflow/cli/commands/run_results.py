"""``paddleflow run``: what runs have made: artifacts, where those come from, and results kept to be used again."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from paddleflow.cli.complete import filesystem_names, output_names, run_ids, step_names
from paddleflow.cli.invocation import Invocation
from paddleflow.cli.output import show as show_table
from paddleflow.cli.output import show_facts, show_list, show_one, show_page, to_json

if TYPE_CHECKING:
    from paddleflow.sdk.artifacts import ArtifactInfo, RunCacheInfo
    from paddleflow.sdk.client import Client

_CACHE_HEADERS = ["cache id", "run id", "job id", "fsname", "username", "expired time", "create time", "update time"]
_ARTIFACT_HEADERS = [
    "run id",
    "fsname",
    "username",
    "artifact path",
    "type",
    "step",
    "artifact name",
    "meta",
    "create time",
    "update time",
]


@click.command()
@click.option("-u", "--userfilter", help="Only results of this user; for root.")
@click.option("-f", "--fsfilter", shell_complete=filesystem_names, help="Only results on this filesystem.")
@click.option("-r", "--runfilter", shell_complete=run_ids, help="Only results of this run.")
@click.option("-m", "--maxkeys", type=int, help="Max size of the listed results.")
@click.option("-mk", "--marker", help="Next page.")
@click.pass_obj
def listcache(
    invocation: Invocation,
    *,
    userfilter: str | None,
    fsfilter: str | None,
    runfilter: str | None,
    maxkeys: int | None,
    marker: str | None,
) -> None:
    """list kept results, which later runs may reuse"""
    _, page = invocation.client.list_cache(userfilter, fsfilter, runfilter, maxkeys, marker)
    rows = [_cache_row(one) for one in page["runCacheList"]]
    show_page(invocation.output, _CACHE_HEADERS, rows, marker=page["nextMarker"], nothing="no cache found ")


@click.command()
@click.argument("cache_id")
@click.pass_obj
def showcache(invocation: Invocation, cache_id: str) -> None:
    """show a kept result"""
    _, one = invocation.client.show_cache(cache_id)
    headers = [*_CACHE_HEADERS[:6], "strategy", "custom", *_CACHE_HEADERS[6:]]
    row = _cache_row(one)
    row = [*row[:6], one.strategy, one.custom, *row[6:]]
    prints, fingerprints = ["first fp", "second fp"], [one.first_fp, one.second_fp]
    if invocation.output == "json":
        show_table("json", [*headers, *prints], [[*row, *fingerprints]])
        return
    show_one(invocation.output, headers, row)
    show_one(invocation.output, prints, fingerprints)


@click.command()
@click.argument("cache_id")
@click.pass_obj
def deletecache(invocation: Invocation, cache_id: str) -> None:
    """forget a kept result, so that its step runs again"""
    invocation.client.delete_cache(cache_id)
    click.echo(f"cache id [{cache_id}] delete success")


@click.command()
@click.option("-u", "--userfilter", help="Only artifacts of this user; for root.")
@click.option("-f", "--fsfilter", shell_complete=filesystem_names, help="Only artifacts on this filesystem.")
@click.option("-r", "--runfilter", shell_complete=run_ids, help="Only artifacts of this run.")
@click.option("-t", "--typefilter", type=click.Choice(["input", "output"]), help="Only those read, or those made.")
@click.option("-p", "--pathfilter", help="Only artifacts at this path.")
@click.option("-m", "--maxkeys", type=int, help="Max size of the listed artifacts.")
@click.option("-mk", "--marker", help="Next page.")
@click.pass_obj
def listartifact(
    invocation: Invocation,
    *,
    userfilter: str | None,
    fsfilter: str | None,
    runfilter: str | None,
    typefilter: str | None,
    pathfilter: str | None,
    maxkeys: int | None,
    marker: str | None,
) -> None:
    """list what steps of all runs have read and made"""
    _, page = invocation.client.list_artifact(userfilter, fsfilter, runfilter, typefilter, pathfilter, maxkeys, marker)
    rows = [_artifact_row(one) for one in page["artifactList"]]
    show_page(invocation.output, _ARTIFACT_HEADERS, rows, marker=page["nextMarker"], nothing="no artifact found ")


@click.command()
@click.argument("run_id", shell_complete=run_ids)
@click.argument("artifact", required=False, shell_complete=output_names)
@click.pass_obj
def artifacts(invocation: Invocation, run_id: str, artifact: str | None) -> None:
    """list what a run has made, or the files of one ARTIFACT

    Results taken over from another run are listed too, with the run that made them. ARTIFACT is STEP.ARTIFACT or an
    artifact path.
    """
    client = invocation.client
    if artifact is not None:
        _, files = client.artifact_files(run_id, _path_of(client, run_id, artifact))
        rows = [[one["type"], one["size"], one["modifyTime"], one["path"]] for one in files]
        show_list(invocation.output, ["type", "size", "modify time", "path"], rows, nothing="no file found ")
        return
    _, found = client.run_outputs(run_id)
    rows = [
        [one.step, one.artifact_name, one.fs_name, one.artifact_path, one.create_time, one.made_by] for one in found
    ]
    headers = ["step", "artifact name", "fsname", "artifact path", "create time", "made by"]
    show_list(invocation.output, headers, rows, nothing="no artifact found ")


@click.command()
@click.argument("run_id", shell_complete=run_ids)
@click.argument("artifact", shell_complete=output_names)
@click.option("-o", "--output", "target", type=click.Path(dir_okay=False, path_type=Path), help="Write to this file.")
@click.pass_obj
def download(invocation: Invocation, run_id: str, artifact: str, target: Path | None) -> None:
    """copy an artifact of a run here; a directory as a tar

    \b
    paddleflow run download run-000001 train.model
    paddleflow run download run-000001 'sub[2].train[5].model' -o model.tar
    paddleflow run download run-000001 .pipeline/run-000001/demo/train-0-…/model/weights

    ARTIFACT is STEP.ARTIFACT, or an artifact path, or a file below one, as `paddleflow run artifacts` lists them.
    """
    path = _path_of(invocation.client, run_id, artifact)
    with _progress(path) as told:
        _, written = invocation.client.download_artifact(run_id, path, target, told)
    click.echo(f"{artifact} download success, written to {written}")


@click.command()
@click.argument("fsname", metavar="{FSNAME|RUN_ID}", shell_complete=filesystem_names)
@click.argument("path", metavar="{PATH|STEP.ARTIFACT}")
@click.option("-u", "--username", help="The owner of the filesystem, if it is another; for root.")
@click.pass_obj
def lineage(invocation: Invocation, fsname: str, path: str, username: str | None) -> None:
    """show which run made an artifact and which have read it

    \b
    paddleflow run lineage run-000001 train.model
    paddleflow run lineage data .pipeline/run-000001/demo/train-0-…/model
    """
    if _is_name(path):
        from paddleflow.sdk.run_outputs import find_output

        _, run = invocation.client.show_run(fsname)
        fsname, path, username = run.fs_name, find_output(run, path).artifact_path, username or run.username
    _, found = invocation.client.artifact_lineage(fsname, path, username)
    sides = {"made by": found["madeBy"], "read by": found["readBy"]}
    headers = ["", "run id", "step", "artifact name", "job id", "time"]
    rows = [
        [side, one.run_id, one.step, one.artifact_name, one.job_id, one.create_time]
        for side, events in sides.items()
        for one in events
    ]
    if invocation.output == "json":
        show_table("json", ["use", *headers[1:]], rows)
    elif rows:
        show_table(invocation.output, headers, rows)
    else:
        click.echo(f"nobody has made or read {path} on {fsname}")


@click.command("why-cached")
@click.argument("run_id", shell_complete=run_ids)
@click.argument("step", shell_complete=step_names)
@click.pass_obj
def why_cached(invocation: Invocation, run_id: str, step: str) -> None:
    """say why a STEP was reused, or what has changed since"""
    _, told = invocation.client.why_cached(run_id, step)
    if invocation.output == "json":
        click.echo(to_json(told))
        return
    click.echo(told["sentence"])
    if told["changed"]:
        rows = [[part["name"], part["before"], part["after"]] for part in told["changed"]]
        before = f"in {told['comparedWith']}" if told["comparedWith"] else "before"
        show_facts(["changed", before, f"in {run_id}"], rows)


def _is_name(artifact: str) -> bool:
    """``STEP.ARTIFACT``, in which no slash can be; an artifact path is never without."""
    return "/" not in artifact


def _path_of(client: Client, run_id: str, artifact: str) -> str:
    return client.find_output(run_id, artifact)[1].artifact_path if _is_name(artifact) else artifact


def _cache_row(one: RunCacheInfo) -> list[object]:
    return [
        one.cache_id,
        one.run_id,
        one.job_id,
        one.fs_name,
        one.username,
        one.expired_time,
        one.create_time,
        one.update_time,
    ]


def _artifact_row(one: ArtifactInfo) -> Sequence[object]:
    return [
        one.run_id,
        one.fs_name,
        one.username,
        one.artifact_path,
        one.type,
        one.step,
        one.artifact_name,
        one.meta,
        one.create_time,
        one.update_time,
    ]


@contextmanager
def _progress(path: str) -> Iterator[Callable[[int, int | None], None]]:
    """A bar where somebody can see it; elsewhere nothing."""
    if not sys.stderr.isatty():
        yield lambda arrived, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(path.rsplit("/", 1)[-1], total=None)
        yield lambda arrived, total: bar.update(task, completed=arrived, total=total)
