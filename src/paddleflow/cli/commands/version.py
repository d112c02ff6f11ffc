"""``paddleflow version``."""

from __future__ import annotations

import click

from paddleflow import __version__
from paddleflow.cli.invocation import Invocation
from paddleflow.cli.output import to_json


@click.command()
@click.pass_obj
def version(invocation: Invocation) -> None:
    """show the versions of client and server"""
    _, server = invocation.client.get_version()
    click.echo(to_json({"client": f"PaddleFlow-{__version__}", "server": server}))
