"""``paddleflow fs createfscache`` and its like: how the mounts of a filesystem cache."""

from __future__ import annotations

import click

from paddleflow.cli.complete import filesystem_names
from paddleflow.cli.invocation import Invocation
from paddleflow.cli.output import show_one
from paddleflow.cli.places import owner_option
from paddleflow.cli.values import pairs_of

_HEADERS = ["fsname", "owner", "cache dir", "meta driver", "block size"]
_OPTION = click.option(
    "-o", "--option", "options", multiple=True, metavar="K=V", help="cacheDir=, metaDriver=, blockSize= or quota=."
)


@click.command()
@click.argument("fsname", shell_complete=filesystem_names)
@owner_option
@_OPTION
@click.pass_obj
def createfscache(invocation: Invocation, fsname: str, username: str | None, options: tuple[str, ...]) -> None:
    """say how the mounts of a filesystem cache"""
    invocation.client.create_cache(fsname, pairs_of("-o", options), username)
    click.echo("create fs cache success")


@click.command()
@click.argument("fsname", shell_complete=filesystem_names)
@owner_option
@_OPTION
@click.pass_obj
def updatefscache(invocation: Invocation, fsname: str, username: str | None, options: tuple[str, ...]) -> None:
    """change how the mounts of a filesystem cache; what is not given stays"""
    invocation.client.update_fs_cache(fsname, pairs_of("-o", options), username)
    click.echo(f"fs[{fsname}] cache config update success")


@click.command()
@click.argument("fsname", shell_complete=filesystem_names)
@owner_option
@click.pass_obj
def getfscache(invocation: Invocation, fsname: str, username: str | None) -> None:
    """show how the mounts of a filesystem cache"""
    _, one = invocation.client.get_fs_cache(fsname, username)
    show_one(invocation.output, _HEADERS, [one.fsname, one.username, one.cachedir, one.metadriver, one.blocksize])


@click.command()
@click.argument("fsname", shell_complete=filesystem_names)
@owner_option
@click.pass_obj
def deletefscache(invocation: Invocation, fsname: str, username: str | None) -> None:
    """let the mounts of a filesystem cache as their node does"""
    invocation.client.delete_fs_cache(fsname, username)
    click.echo(f"fs[{fsname}] cache config delete success")
