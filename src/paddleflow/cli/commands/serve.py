"""``paddleflow serve``: hands the options that were given to the server's composition, which knows the defaults."""

from __future__ import annotations

import gc
from importlib import import_module
from pathlib import Path
from urllib.parse import urlsplit

import click

from paddleflow.domain.errors import Unavailable


@click.command()
@click.option("--host", help="Listen on this address.  [default: 127.0.0.1]")
@click.option("--port", type=click.IntRange(0, 65535), help="Listen on this port.  [default: 8999]")
@click.option("--state-dir", type=click.Path(file_okay=False, path_type=Path), help="Where everything is kept.")
@click.option("--database", metavar="URL", help="The database, if not a file in the state directory.")
@click.option("--config", type=click.Path(dir_okay=False, path_type=Path), help="A configuration file.")
@click.option("--log-level", help="debug, info, warning or error.")
@click.pass_context
def serve(ctx: click.Context, /, **options: object) -> None:
    """run the server on this machine

    Jobs run as processes of this machine. Stop it with Ctrl-C; running jobs are found again at the next start.
    """
    _refuse_visible_password(ctx, options.get("database"))
    gc.disable()  # what starting makes stays for good; looking through it again and again is a tenth of the start
    try:
        module = import_module("paddleflow.wiring.serve")
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.startswith("paddleflow"):
            raise
        raise Unavailable(
            f"the server needs {error.name}, which is not installed; install the package "
            "with its extra [server], in a checkout: pip install '.[server]'",
            code="ServerNotInstalled",
        ) from error
    ctx.exit(int(module.serve(options)))


def _refuse_visible_password(ctx: click.Context, url: object) -> None:
    """Everybody on this machine can read a command line."""
    given_here = ctx.get_parameter_source("database") is click.core.ParameterSource.COMMANDLINE
    if given_here and isinstance(url, str) and urlsplit(url).password:
        raise click.UsageError(
            "a password in --database is visible to everybody on this machine; "
            "give the URL as PADDLEFLOW_DATABASE or in the --config file"
        )
