"""``paddleflow run check``: what is wrong with a pipeline, or what it would do, found out here or by a server."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from paddleflow.cli.errors import ExitCode
from paddleflow.cli.invocation import Invocation
from paddleflow.cli.local_pipeline import Checked, Complaint, check_file
from paddleflow.cli.output import shortened, show, terminal_width, to_json, wrapped
from paddleflow.cli.values import pairs_of

if TYPE_CHECKING:
    from paddleflow.planning.plan import Plan
    from paddleflow.planning.source import Overrides


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("-p", "--param", multiple=True, metavar="K=V", help="A parameter; may be repeated.")
@click.option("-f", "--fsname", help="The main filesystem, where the file names none.")
@click.option("-n", "--name", help="The name of the run.")
@click.option("--disabled", multiple=True, metavar="NAME", help="A step to leave out; may be repeated.")
@click.option("-de", "--dockerenv", help="The image of steps that name none.")
@click.pass_context
def check(
    ctx: click.Context,
    *,
    file: Path,
    param: tuple[str, ...],
    fsname: str | None,
    name: str | None,
    disabled: tuple[str, ...],
    dockerenv: str | None,
) -> None:
    """check a pipeline in a FILE and show what it would do

    FILE is YAML or JSON; no server is asked. Every problem is told with its line. Exits with 1 if there are any.
    """
    invocation: Invocation = ctx.obj
    checked = check_file(file, overrides_of(param, fsname, name, disabled, dockerenv))
    ctx.exit(show_checked(invocation.output, checked, str(file)))


def overrides_of(
    param: Sequence[str],
    fsname: str | None = None,
    name: str | None = None,
    disabled: Sequence[str] = (),
    dockerenv: str | None = None,
) -> Overrides:
    from paddleflow.planning.source import Overrides

    return Overrides(
        parameters=pairs_of("--param", param),
        fs_name=fsname or "",
        name=name or "",
        disabled=",".join(disabled),
        docker_env=dockerenv or "",
    )


def checked_by_server(answer: dict[str, Any]) -> Checked:
    """What a server says of a pipeline, in the same terms."""
    from paddleflow.planning.codec import load_plan

    complaints = tuple(
        Complaint(message=one["message"], path=one.get("path") or "", line=one.get("line"))
        for one in answer["problems"]
    )
    plan = load_plan(json.dumps(answer["plan"])) if answer.get("plan") else None
    return Checked(complaints=complaints, plan=plan)


def show_checked(output: str, checked: Checked, file: str) -> ExitCode:
    """Print the problems or the plan; the exit code they stand for."""
    if output == "json":
        click.echo(to_json(_document(checked)))
    elif checked.plan is None:
        show_complaints(checked, file)
    else:
        _show_plan(output, checked.plan)
    return ExitCode.FAILED if checked.plan is None else ExitCode.OK


def show_complaints(checked: Checked, file: str) -> None:
    for complaint in checked.complaints:
        click.echo(complaint.told(file), err=True)
    count = len(checked.complaints)
    click.echo(f"{file} has {count} problem{'' if count == 1 else 's'}", err=True)


def _show_plan(output: str, plan: Plan) -> None:
    from paddleflow.cli.plan_view import PLAN_HEADERS, draw_plan, plan_rows

    if output == "text":
        show(output, PLAN_HEADERS, plan_rows(plan))
    else:
        width = terminal_width()
        title, *drawn = draw_plan(plan).split("\n")
        if width is not None:
            title, drawn = "\n".join(wrapped(title, width)), [shortened(line, width) for line in drawn]
        click.echo("\n".join([title, *drawn]))


def _document(checked: Checked) -> dict[str, object]:
    from paddleflow.planning.codec import dump_plan

    return {
        "valid": checked.plan is not None,
        "problems": [{"message": one.message, "path": one.path, "line": one.line} for one in checked.complaints],
        "plan": json.loads(dump_plan(checked.plan)) if checked.plan is not None else None,
    }
