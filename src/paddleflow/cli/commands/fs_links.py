"""``paddleflow fs link`` and its like: other storages shown inside a filesystem."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from paddleflow.cli.complete import filesystem_names
from paddleflow.cli.invocation import Invocation
from paddleflow.cli.output import show_list, show_one
from paddleflow.cli.places import owner_option
from paddleflow.cli.properties import given_properties, property_options

if TYPE_CHECKING:
    from paddleflow.sdk.links import LinkInfo

_HEADERS = ["name", "owner", "type", "fs path", "server address", "sub path", "properties"]


@click.command()
@click.argument("fsname", shell_complete=filesystem_names)
@click.argument("fspath")
@click.argument("url")
@owner_option
@property_options
@click.pass_obj
def link(
    invocation: Invocation,
    *,
    fsname: str,
    fspath: str,
    url: str,
    username: str | None,
    options: tuple[str, ...],
    file: Path | None,
) -> None:
    """show the storage at URL as the directory FSPATH of a filesystem"""
    invocation.client.add_link(fsname, fspath, url, username, given_properties(options, file) or None)
    click.echo(f"fs[{fsname}] create link success")


@click.command()
@click.argument("fsname", shell_complete=filesystem_names)
@click.argument("fspath")
@owner_option
@click.pass_obj
def unlink(invocation: Invocation, fsname: str, fspath: str, username: str | None) -> None:
    """take a link away; what it showed stays where it is"""
    invocation.client.delete_link(fsname, fspath, username)
    click.echo(f"fs[{fsname}] delete link success")


@click.command()
@click.argument("fsname", shell_complete=filesystem_names)
@click.argument("fspath")
@owner_option
@click.pass_obj
def showlink(invocation: Invocation, fsname: str, fspath: str, username: str | None) -> None:
    """show a link"""
    _, found = invocation.client.show_link(fsname, fspath, username)
    show_one(invocation.output, _HEADERS, _rows(found)[0])


@click.command()
@click.argument("fsname", shell_complete=filesystem_names)
@owner_option
@click.option("-m", "--maxsize", type=int, default=100, show_default=True, help="Max size of the listed links.")
@click.pass_obj
def listlink(invocation: Invocation, fsname: str, username: str | None, maxsize: int) -> None:
    """list the links of a filesystem"""
    _, found = invocation.client.list_link(fsname, username, maxsize)
    show_list(invocation.output, _HEADERS, _rows(found), nothing="no link found ")


def _rows(found: Sequence[LinkInfo]) -> list[list[object]]:
    return [
        [one.name, one.owner, one.fstype, one.fspath, one.server_address, one.subpath, one.properties] for one in found
    ]
