"""The root of the command line: global options, the table of commands, and how every ending is told.

Whatever goes wrong leaves as one line on standard error and an exit code of ``errors.py``; never as a traceback of
ours.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from paddleflow import __version__
from paddleflow.cli.errors import ExitCode, exit_code, one_line
from paddleflow.cli.invocation import Invocation
from paddleflow.cli.lazy import LazyCommand, LazyGroup
from paddleflow.cli.output import FORMATS
from paddleflow.domain.errors import PaddleFlowError

_COMMANDS = "paddleflow.cli.commands"

_TABLE = {
    "job": LazyCommand(f"{_COMMANDS}.job", "job", "submit, watch and manage jobs"),
    "run": LazyCommand(f"{_COMMANDS}.run", "run", "run pipelines, watch and manage their runs"),
    "pipeline": LazyCommand(f"{_COMMANDS}.pipeline", "pipeline", "keep pipelines on the server, or export them"),
    "schedule": LazyCommand(f"{_COMMANDS}.schedule", "schedule", "run pipelines at set times"),
    "queue": LazyCommand(f"{_COMMANDS}.queue", "queue", "manage queues and who may use them"),
    "flavour": LazyCommand(f"{_COMMANDS}.flavour", "flavour", "manage flavours, named amounts of resources"),
    "fs": LazyCommand(f"{_COMMANDS}.fs", "fs", "manage filesystems, mount them, work on their files"),
    "cluster": LazyCommand(f"{_COMMANDS}.cluster", "cluster", "manage clusters"),
    "user": LazyCommand(f"{_COMMANDS}.user", "user", "manage users"),
    "log": LazyCommand(f"{_COMMANDS}.log", "log", "show logs"),
    "simulate": LazyCommand(
        f"{_COMMANDS}.simulate", "simulate", "replay a TRACE of jobs and show what the scheduler makes of it"
    ),
    "statistics": LazyCommand(f"{_COMMANDS}.statistics", "statistics", "show what jobs and queues have used"),
    "serve": LazyCommand(f"{_COMMANDS}.serve", "serve", "run the server on this machine"),
    "version": LazyCommand(f"{_COMMANDS}.version", "version", "show the versions of client and server"),
    "completion": LazyCommand(f"{_COMMANDS}.completion", "completion", "print a shell completion script"),
}


class _OutputClosed(Exception):
    """Whoever read our output has gone. click would turn the plain error into an exit of its own."""


class _Root(LazyGroup):
    def invoke(self, ctx: click.Context) -> object:
        try:
            result: object = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError as error:
            raise _OutputClosed from error
        return result


@click.group(
    cls=_Root,
    lazy=_TABLE,
    context_settings={"auto_envvar_prefix": "PADDLEFLOW", "help_option_names": ["-h", "--help"]},
)
@click.option(
    "--pf_config",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="The config file.  [default: ~/.paddleflow/paddleflow.ini]",
)
@click.option("--output", type=click.Choice(FORMATS), default="table", show_default=True, help="How to show answers.")
@click.version_option(__version__, prog_name="PaddleFlow", message="%(prog)s-%(version)s")
@click.pass_context
def cli(ctx: click.Context, pf_config: Path | None, output: str) -> None:
    """PaddleFlow: pipelines, jobs and data, from a laptop to a cluster.

    Options may also be given as environment variables: PADDLEFLOW_OUTPUT=json, PADDLEFLOW_PF_CONFIG=PATH.
    """
    invocation = Invocation(pf_config, output)
    ctx.obj = invocation
    ctx.call_on_close(invocation.close)


def run(argv: list[str]) -> int:
    """Run one command line; the exit code."""
    try:
        result = cli.main(args=argv, prog_name="paddleflow", standalone_mode=False)
    except PaddleFlowError as error:
        click.echo(one_line(error), err=True)
        return exit_code(error)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return ExitCode.INTERRUPTED
    except _OutputClosed:
        _forget_output()
        return ExitCode.OUTPUT_CLOSED
    return result if isinstance(result, int) else ExitCode.OK


def _forget_output() -> None:
    """Nobody reads us any more: let the interpreter's last flush go nowhere instead of failing."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
