"""``paddleflow pipeline``: pipelines that are kept on the server; and, without a server, files for other engines."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from paddleflow.cli.commands.pipeline_export import export
from paddleflow.cli.complete import filesystem_names, pipeline_ids
from paddleflow.cli.invocation import Invocation
from paddleflow.cli.output import show as show_table
from paddleflow.cli.output import show_one, show_page

if TYPE_CHECKING:
    from paddleflow.sdk.pipelines import PipelineInfo, PipelineVersionInfo

_HEADERS = ["pipeline id", "name", "username", "desc", "create time", "update time"]
_VERSION_HEADERS = ["ppl ver id", "fs name", "yaml path", "username", "create time", "update time"]
_LOCAL_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.group()
def pipeline() -> None:
    """keep pipelines on the server, or export them

    A stored pipeline has versions, 1, 2 and so on; runs and schedules name the one they mean.
    """


pipeline.add_command(export)


@pipeline.command()
@click.argument("fs_name", required=False, shell_complete=filesystem_names)
@click.option("-yp", "--yamlpath", help="The file on the filesystem.  [default: ./run.yaml]")
@click.option("-yr", "--yamlraw", type=_LOCAL_FILE, help="Instead of FS_NAME: a file on this machine.")
@click.option("-d", "--desc", help="What it is for.")
@click.option("-u", "--username", help="The owner, if it is another; for root.")
@click.pass_obj
def create(
    invocation: Invocation,
    *,
    fs_name: str | None,
    yamlpath: str | None,
    yamlraw: Path | None,
    desc: str | None,
    username: str | None,
) -> None:
    """keep a pipeline on the server, as version 1

    \b
    paddleflow pipeline create -yr run.yaml
    paddleflow pipeline create data -yp pipelines/run.yaml
    """
    if (fs_name is None) == (yamlraw is None):
        raise click.UsageError("say where the pipeline is: either FS_NAME, or --yamlraw FILE")
    text = None if yamlraw is None else yamlraw.read_bytes()
    _, made = invocation.client.create_pipeline(fs_name, yamlpath, desc, username, text)
    click.echo(f"pipeline[{made['name']}] create  success, id[{made['pplID']}], versionID[{made['pplVerID']}]")


@pipeline.command("list")
@click.option("-u", "--userfilter", help="Only pipelines of this user; for root.")
@click.option("-n", "--namefilter", help="Only pipelines of this name.")
@click.option("-m", "--maxkeys", type=int, help="Max size of the listed pipelines.")
@click.option("-mk", "--marker", help="Next page.")
@click.pass_obj
def list_pipelines(
    invocation: Invocation, userfilter: str | None, namefilter: str | None, maxkeys: int | None, marker: str | None
) -> None:
    """list pipelines"""
    _, page = invocation.client.list_pipeline(userfilter, namefilter, maxkeys, marker)
    rows = [_row(one) for one in page["pipelineList"]]
    show_page(invocation.output, _HEADERS, rows, marker=page["nextMarker"], nothing="no pipeline found ")


@pipeline.command()
@click.argument("pipeline_id", shell_complete=pipeline_ids)
@click.option("-f", "--fsfilter", shell_complete=filesystem_names, help="Only versions from this filesystem.")
@click.option("-m", "--maxkeys", type=int, help="Max size of the listed versions.")
@click.option("-mk", "--marker", help="Next page.")
@click.pass_obj
def show(
    invocation: Invocation, pipeline_id: str, fsfilter: str | None, maxkeys: int | None, marker: str | None
) -> None:
    """show a pipeline and its versions"""
    _, found = invocation.client.show_pipeline(pipeline_id, fsfilter, maxkeys, marker)
    info, versions = found["pipelineInfo"], found["pipelineVersionList"]
    rows = [_version_row(one) for one in versions]
    if invocation.output == "json":
        listed = [dict(zip(_VERSION_HEADERS, row, strict=True)) for row in rows]
        show_table("json", [*_HEADERS, "versions"], [[*_row(info), listed]])
        click.echo(f"marker: {found['nextMarker']}", err=True)
        return
    show_one(invocation.output, _HEADERS, _row(info))
    show_page(invocation.output, _VERSION_HEADERS, rows, marker=found["nextMarker"], nothing="no version found ")


@pipeline.command()
@click.argument("pipeline_id", shell_complete=pipeline_ids)
@click.argument("fs_name", required=False, shell_complete=filesystem_names)
@click.argument("yaml_path", required=False)
@click.option("-yr", "--yamlraw", type=_LOCAL_FILE, help="Instead of FS_NAME and YAML_PATH: a file on this machine.")
@click.option("-u", "--username", help="The owner, if it is another; for root.")
@click.option("-d", "--desc", help="What it is for.")
@click.pass_obj
def update(
    invocation: Invocation,
    *,
    pipeline_id: str,
    fs_name: str | None,
    yaml_path: str | None,
    yamlraw: Path | None,
    username: str | None,
    desc: str | None,
) -> None:
    """keep a new version of a pipeline

    \b
    paddleflow pipeline update ppl-000001 -yr run.yaml
    paddleflow pipeline update ppl-000001 data pipelines/run.yaml
    """
    if (yaml_path is None) == (yamlraw is None) or (yamlraw is not None and fs_name is not None):
        raise click.UsageError("say where the new version is: either FS_NAME YAML_PATH, or --yamlraw FILE")
    text = None if yamlraw is None else yamlraw.read_bytes()
    _, made = invocation.client.update_pipeline(pipeline_id, fs_name, yaml_path, username, desc, text)
    click.echo(f"pipeline[{pipeline_id}] update success, new version id [{made['pipelineVersionID']}]")


@pipeline.command()
@click.argument("pipeline_id", shell_complete=pipeline_ids)
@click.pass_obj
def delete(invocation: Invocation, pipeline_id: str) -> None:
    """delete a pipeline and all its versions"""
    invocation.client.delete_pipeline(pipeline_id)
    click.echo(f"pipeline id [{pipeline_id}] delete success")


@pipeline.command()
@click.argument("pipeline_id", shell_complete=pipeline_ids)
@click.argument("pipeline_version_id")
@click.pass_obj
def showversion(invocation: Invocation, pipeline_id: str, pipeline_version_id: str) -> None:
    """show one version of a pipeline and its text"""
    _, found = invocation.client.show_pipeline_version(pipeline_id, pipeline_version_id)
    info, version = found["pipelineInfo"], found["pipelineVersionInfo"]
    text = ["ppl ver id", "pipeline yaml"], [version.pipeline_version_id, version.pipeline_yaml]
    if invocation.output == "json":
        row = [info.pipeline_id, info.name, info.desc, *_version_row(version), version.pipeline_yaml]
        show_table("json", ["pipeline id", "name", "desc", *_VERSION_HEADERS, "pipeline yaml"], [row])
        return
    show_one(invocation.output, _HEADERS, _row(info))
    show_one(invocation.output, _VERSION_HEADERS, _version_row(version))
    show_one(invocation.output, *text)


@pipeline.command()
@click.argument("pipeline_id", shell_complete=pipeline_ids)
@click.argument("pipeline_version_id")
@click.pass_obj
def deleteversion(invocation: Invocation, pipeline_id: str, pipeline_version_id: str) -> None:
    """delete one version of a pipeline"""
    invocation.client.delete_pipeline_version(pipeline_id, pipeline_version_id)
    # The two ids stand in each other's place; scripts match on the line as it is.
    click.echo(f"pipeline version [{pipeline_id}] of pipeline [{pipeline_version_id}] delete success")


def _row(one: PipelineInfo) -> list[object]:
    return [one.pipeline_id, one.name, one.username, one.desc, one.create_time, one.update_time]


def _version_row(one: PipelineVersionInfo) -> list[object]:
    return [one.pipeline_version_id, one.fs_name, one.yaml_path, one.username, one.create_time, one.update_time]
