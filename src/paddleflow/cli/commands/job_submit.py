"""``paddleflow job submit`` and ``job run``: run a command as a job, on one task or on many, without writing JSON."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from paddleflow.cli.commands.job_follow import watch_to_the_end
from paddleflow.cli.complete import filesystem_names, flavour_names, queue_names
from paddleflow.cli.invocation import Invocation
from paddleflow.cli.values import environment_of, pairs_of

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


class Workers(click.ParamType):  # type: ignore[type-arg]  # generic only in newer releases of click
    """``N``, or ``MIN:MAX`` for a job that grows and shrinks."""

    name = "N[:MAX]"

    def convert(
        self, value: str | tuple[int, int], param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, int]:
        if isinstance(value, tuple):
            return value
        least, colon, most = value.partition(":")
        if not (least.isdecimal() and (most.isdecimal() or not colon)):
            self.fail(f"{value!r} should be a number such as 2, or the fewest and the most such as 2:4", param, ctx)
        workers = int(least), int(most if colon else least)
        if not 1 <= workers[0] <= workers[1]:
            self.fail(f"{value!r} should be 1 or more, and the most not below the fewest", param, ctx)
        return workers


_OPTIONS = (
    click.option("-q", "--queue", shell_complete=queue_names, help="The queue; the server has a default one."),
    click.option("-n", "--name", help="A name for people."),
    click.option("-f", "--flavour", shell_complete=flavour_names, help="What a task needs, by name."),
    click.option("-c", "--cpu", help="What a task needs: cpu, e.g. 2 or 500m."),
    click.option("-m", "--memory", help="What a task needs: memory, e.g. 4Gi."),
    click.option("-g", "--gpus", type=click.IntRange(min=0), default=0, help="What a task needs: GPUs."),
    click.option("-p", "--priority", help="LOW, NORMAL or HIGH."),
    click.option("--image", help="The container image; jobs on the host need none."),
    click.option(
        "--fs",
        multiple=True,
        metavar="NAME[/DIR][:/PATH][:ro]",
        shell_complete=filesystem_names,
        help="Mount a filesystem, or a directory of it, at PATH; repeat.",
    ),
    click.option(
        "-e", "--env", multiple=True, metavar="NAME[=VALUE]", help="A variable, or one of this shell's; repeat."
    ),
    click.option("-l", "--label", "labels", multiple=True, metavar="K=V", help="A label; may be repeated."),
    click.option("--workdir", help="Run there.  [default: this directory, if the server is on this machine]"),
    click.option("--retries", type=click.IntRange(min=0), help="Start it again so often if it fails."),
    click.option("--deadline", type=float, metavar="SECONDS", help="Stop it if it runs longer."),
)


def job_options(command: Decorated) -> Decorated:
    """What every job may be given."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@click.command(context_settings={"allow_interspersed_args": False})
@job_options
@click.option("-w", "--watch", is_flag=True, help="Follow its status and log, and exit as it does.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@click.pass_context
def submit(ctx: click.Context, /, *, watch: bool, command: tuple[str, ...], **options: Any) -> None:
    """run COMMAND as a job and print its id

    \b
    paddleflow job submit -c 2 -m 4Gi -- python train.py --lr 0.1
    paddleflow job submit --watch -- bash -c 'make data && make train'
    paddleflow job submit --fs data/images:/data:ro -- python train.py /data
    """
    invocation: Invocation = ctx.obj
    _, ident = invocation.client.submit_job(list(command), **_submission(**options))
    click.echo(ident)
    if watch:
        ctx.exit(watch_to_the_end(invocation.client, ident))


@click.command(context_settings={"allow_interspersed_args": False})
@click.option(
    "-F",
    "--framework",
    required=True,
    type=click.Choice(["paddle", "pytorch", "tensorflow", "mpi", "ray", "spark"]),
    help="How the tasks find each other.",
)
@click.option(
    "-W",
    "--workers",
    type=Workers(),
    default="2",
    show_default=True,
    help="Tasks; MIN:MAX lets the job grow and shrink.",
)
@click.option("--ps", type=click.IntRange(min=0), default=0, help="Parameter servers beside the workers.")
@job_options
@click.option("-d", "--detach", is_flag=True, help="Only print the id; follow it later with job watch.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@click.pass_context
def run(
    ctx: click.Context,
    /,
    *,
    framework: str,
    workers: tuple[int, int],
    ps: int,
    detach: bool,
    command: tuple[str, ...],
    **options: Any,
) -> None:
    """run COMMAND on several tasks, print the id, and follow their logs to the end

    Every task runs the command; of mpi, ray and spark jobs one more task does, and the workers serve it.

    \b
    paddleflow job run -F pytorch -W 2 -c 4 -- torchrun train.py
    paddleflow job run -F paddle -W 2:8 -g 1 --retries 3 -- python -m paddle.distributed.launch train.py
    paddleflow job run -F mpi -W 4 -- mpirun -np 4 ./solve
    """
    invocation: Invocation = ctx.obj
    _, ident = invocation.client.submit_distributed_job(
        list(command), framework=framework, workers=workers, ps=ps, **_submission(**options)
    )
    click.echo(ident)
    if not detach:
        ctx.exit(watch_to_the_end(invocation.client, ident))


def _submission(
    *,
    env: tuple[str, ...],
    labels: tuple[str, ...],
    workdir: str | None,
    deadline: float | None,
    **options: Any,
) -> dict[str, Any]:
    """The options as the client takes them."""
    return {
        **options,
        "env": environment_of("--env", env),
        "labels": pairs_of("--label", labels),
        "work_dir": workdir,
        "deadline_s": deadline,
    }
