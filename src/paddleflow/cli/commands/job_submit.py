"""``paddleflow job submit``: run a command as a job, without writing JSON."""

from __future__ import annotations

from pathlib import Path

import click

from paddleflow.cli.commands.job_follow import watch_to_the_end
from paddleflow.cli.complete import flavour_names, queue_names
from paddleflow.cli.invocation import Invocation
from paddleflow.cli.values import environment_of, pairs_of


@click.command(context_settings={"allow_interspersed_args": False})
@click.option("-q", "--queue", shell_complete=queue_names, help="The queue; the server has a default one.")
@click.option("-n", "--name", help="A name for people.")
@click.option("-f", "--flavour", shell_complete=flavour_names, help="What it needs, by name.")
@click.option("-c", "--cpu", help="What it needs: cpu, e.g. 2 or 500m.")
@click.option("-m", "--memory", help="What it needs: memory, e.g. 4Gi.")
@click.option("-g", "--gpus", type=click.IntRange(min=0), default=0, help="What it needs: GPUs.")
@click.option("-p", "--priority", help="LOW, NORMAL or HIGH.")
@click.option("--image", help="The container image; jobs on the host need none.")
@click.option("-e", "--env", multiple=True, metavar="NAME[=VALUE]", help="A variable, or one of this shell's; repeat.")
@click.option("-l", "--label", "labels", multiple=True, metavar="K=V", help="A label; may be repeated.")
@click.option("--workdir", help="Run there.  [default: this directory, if the server is on this machine]")
@click.option("-w", "--watch", is_flag=True, help="Follow its status and log, and exit as it does.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@click.pass_context
def submit(
    ctx: click.Context,
    *,
    queue: str | None,
    name: str | None,
    flavour: str | None,
    cpu: str | None,
    memory: str | None,
    gpus: int,
    priority: str | None,
    image: str | None,
    env: tuple[str, ...],
    labels: tuple[str, ...],
    workdir: str | None,
    watch: bool,
    command: tuple[str, ...],
) -> None:
    """run COMMAND as a job and print its id

    \b
    paddleflow job submit -c 2 -m 4Gi -- python train.py --lr 0.1
    paddleflow job submit --watch -- bash -c 'make data && make train'
    """
    from paddleflow.sdk.transport import is_loopback

    invocation: Invocation = ctx.obj
    client = invocation.client
    if workdir is None and is_loopback(client.address):
        workdir = str(Path.cwd())
    _, ident = client.submit_job(
        list(command),
        queue=queue,
        name=name,
        flavour=flavour,
        cpu=cpu,
        memory=memory,
        gpus=gpus,
        priority=priority,
        env=environment_of("--env", env),
        image=image,
        labels=pairs_of("--label", labels),
        work_dir=workdir,
    )
    click.echo(ident)
    if watch:
        ctx.exit(watch_to_the_end(client, ident))
