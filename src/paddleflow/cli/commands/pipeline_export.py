"""``paddleflow pipeline export``: a pipeline as a file of another engine, made here without a server."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from paddleflow.cli.commands.run_check import overrides_of, show_complaints
from paddleflow.cli.errors import ExitCode
from paddleflow.cli.local_pipeline import check_file

if TYPE_CHECKING:
    from paddleflow.planning.plan import Plan


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--to", "engine", required=True, type=click.Choice(["argo", "airflow"]), help="Which engine.")
@click.option("-p", "--param", multiple=True, metavar="K=V", help="A parameter; may be repeated.")
@click.option("-f", "--fsname", help="The main filesystem, where the file names none.")
@click.option("-de", "--dockerenv", help="The image of steps that name none.")
@click.option(
    "-o", "--output", "target", type=click.Path(dir_okay=False, path_type=Path), help="Write there, not to the screen."
)
@click.pass_context
def export(
    ctx: click.Context,
    *,
    file: Path,
    engine: str,
    param: tuple[str, ...],
    fsname: str | None,
    dockerenv: str | None,
    target: Path | None,
) -> None:
    """make an Argo Workflow or an Airflow DAG of a pipeline

    \b
    paddleflow pipeline export run.yaml --to argo -de python:3.12 -o workflow.yaml

    FILE is a YAML or JSON file on this machine; no server is asked. What the other engine cannot do is an error that
    names it; nothing is left out silently.
    """
    checked = check_file(file, overrides_of(param, fsname, dockerenv=dockerenv))
    if checked.plan is None:
        show_complaints(checked, str(file))
        ctx.exit(ExitCode.FAILED)
    text = _exported(engine, checked.plan)
    if target is None:
        click.echo(text.rstrip("\n"))
    else:
        target.write_text(text, encoding="utf-8")
        click.echo(f"pipeline[{checked.plan.name}] export success, written to {target}")


def _exported(engine: str, plan: Plan) -> str:
    if engine == "argo":
        from paddleflow.documents import dump
        from paddleflow.exports.argo import argo_workflow

        return dump(argo_workflow(plan))
    from paddleflow.exports.airflow import airflow_dag

    return airflow_dag(plan)
