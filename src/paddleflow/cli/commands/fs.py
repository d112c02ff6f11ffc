"""``paddleflow fs``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from paddleflow.cli.invocation import Invocation
from paddleflow.cli.output import show as show_table
from paddleflow.cli.output import show_list
from paddleflow.cli.values import pairs_of

if TYPE_CHECKING:
    from paddleflow.sdk.filesystems import FSInfo

_HEADERS = ["name", "owner", "type", "server address", "sub path", "properties"]


@click.group()
def fs() -> None:
    """manage filesystems"""


@fs.command("list")
@click.option("-u", "--username", help="Only the filesystems of this user; for root.")
@click.option("-m", "--maxsize", type=int, default=100, show_default=True, help="Max size of the listed filesystems.")
@click.pass_obj
def list_filesystems(invocation: Invocation, username: str | None, maxsize: int) -> None:
    """list filesystems"""
    _, found = invocation.client.list_fs(username, maxsize)
    show_list(invocation.output, _HEADERS, _rows(found), nothing="no fs found ")


@fs.command()
@click.argument("fsname")
@click.option("-u", "--username", help="The owner, if it is another; for root.")
@click.pass_obj
def show(invocation: Invocation, fsname: str, username: str | None) -> None:
    """show a filesystem"""
    _, found = invocation.client.show_fs(fsname, username)
    show_table(invocation.output, _HEADERS, _rows(found))


@fs.command()
@click.argument("fsname")
@click.argument("url")
@click.option("-u", "--username", help="The owner, if it is another; for root.")
@click.option("-o", "--option", "options", multiple=True, metavar="K=V", help="A property; may be repeated.")
@click.pass_obj
def create(invocation: Invocation, fsname: str, url: str, username: str | None, options: tuple[str, ...]) -> None:
    """create a filesystem from a URL, e.g. local://data/set"""
    invocation.client.add_fs(fsname, url, username, pairs_of("-o", options) or None)
    click.echo(f"fs[{fsname}] create success")


@fs.command()
@click.argument("fsname")
@click.option("-u", "--username", help="The owner, if it is another; for root.")
@click.pass_obj
def delete(invocation: Invocation, fsname: str, username: str | None) -> None:
    """delete a filesystem; the data stays where it is"""
    invocation.client.delete_fs(fsname, username)
    click.echo(f"fs[{fsname}] delete success")


def _rows(found: Sequence[FSInfo]) -> list[list[object]]:
    return [[one.name, one.owner, one.fstype, one.server_address, one.subpath, one.properties] for one in found]
