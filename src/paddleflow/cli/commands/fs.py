"""``paddleflow fs``: what is registered; links, caches, mounts and files have commands in the files beside it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from paddleflow.cli.commands.fs_bench import bench
from paddleflow.cli.commands.fs_caches import createfscache, deletefscache, getfscache, updatefscache
from paddleflow.cli.commands.fs_files import cat, cp, ls, mkdir, mv, rm
from paddleflow.cli.commands.fs_links import link, listlink, showlink, unlink
from paddleflow.cli.commands.fs_mount import mount, mounts, umount
from paddleflow.cli.commands.fs_snapshots import snapshot
from paddleflow.cli.commands.fs_stats import stats
from paddleflow.cli.commands.fs_warm import evict, warmup
from paddleflow.cli.complete import filesystem_names
from paddleflow.cli.invocation import Invocation
from paddleflow.cli.output import show_list, show_one
from paddleflow.cli.places import owner_option
from paddleflow.cli.properties import given_properties, property_options
from paddleflow.cli.sections import SectionedGroup

if TYPE_CHECKING:
    from paddleflow.sdk.filesystems import FSInfo

_HEADERS = ["name", "owner", "type", "server address", "sub path", "properties"]


_SECTIONS = {
    "Filesystems": ("create", "list", "show", "update", "delete"),
    "Mounts": ("mount", "umount", "mounts", "stats", "bench"),
    "Files, without a mount": ("ls", "cp", "mv", "rm", "mkdir", "cat"),
    "Cache": ("warmup", "evict", "createfscache", "updatefscache", "getfscache", "deletefscache"),
    "Links and snapshots": ("link", "unlink", "showlink", "listlink", "snapshot"),
}


@click.group(cls=SectionedGroup, sections=_SECTIONS)
def fs() -> None:
    """manage filesystems, mount them, work on their files

    \b
    paddleflow fs create data s3://bucket/set --properties keys.json
    paddleflow fs cp -r ./set data:/set                     copy a tree up; no mount is needed
    paddleflow fs mount data /mnt/data                      or mount it
    paddleflow fs warmup data:/set                          bring it into the cache of this machine
    """


@fs.command("list")
@click.option("-u", "--username", help="Only the filesystems of this user; for root.")
@click.option("-m", "--maxsize", type=int, default=100, show_default=True, help="Max size of the listed filesystems.")
@click.pass_obj
def list_filesystems(invocation: Invocation, username: str | None, maxsize: int) -> None:
    """list filesystems"""
    _, found = invocation.client.list_fs(username, maxsize)
    show_list(invocation.output, _HEADERS, _rows(found), nothing="no fs found ")


@fs.command()
@click.argument("fsname", shell_complete=filesystem_names)
@owner_option
@click.pass_obj
def show(invocation: Invocation, fsname: str, username: str | None) -> None:
    """show a filesystem; secrets are shown as ******"""
    _, found = invocation.client.show_fs(fsname, username)
    show_one(invocation.output, _HEADERS, _rows(found)[0])


@fs.command()
@click.argument("fsname")
@click.argument("url")
@owner_option
@property_options
@click.pass_obj
def create(
    invocation: Invocation, fsname: str, url: str, username: str | None, options: tuple[str, ...], file: Path | None
) -> None:
    """create a filesystem from a URL, e.g. local://data/set

    \b
    local://PATH                  a directory of the server's machine
    s3://BUCKET/PATH              accessKey, secretKey, endpoint [, region, s3ForcePathStyle, insecureSkipVerify]
    bos://BUCKET/PATH             accessKey, secretKey, endpoint [, region, sessionToken]
    hdfs://HOST:PORT/PATH         user, group
    sftp://HOST:PORT/PATH         user, password
    """
    invocation.client.add_fs(fsname, url, username, given_properties(options, file) or None)
    click.echo(f"fs[{fsname}] create success")


@fs.command()
@click.argument("fsname", shell_complete=filesystem_names)
@click.argument("url")
@owner_option
@property_options
@click.pass_obj
def update(
    invocation: Invocation, fsname: str, url: str, username: str | None, options: tuple[str, ...], file: Path | None
) -> None:
    """give a filesystem another URL or other properties; a secret given as ****** stays"""
    invocation.client.update_fs(fsname, url, username, given_properties(options, file) or None)
    click.echo(f"fs[{fsname}] update success")


@fs.command()
@click.argument("fsname", shell_complete=filesystem_names)
@owner_option
@click.pass_obj
def delete(invocation: Invocation, fsname: str, username: str | None) -> None:
    """delete a filesystem; the data stays where it is"""
    invocation.client.delete_fs(fsname, username)
    click.echo(f"fs[{fsname}] delete success")


_BESIDE = (
    link,
    unlink,
    showlink,
    listlink,
    createfscache,
    updatefscache,
    getfscache,
    deletefscache,
    mount,
    umount,
    mounts,
    ls,
    cp,
    mv,
    rm,
    mkdir,
    cat,
    warmup,
    evict,
    stats,
    bench,
    snapshot,
)
for _command in _BESIDE:
    fs.add_command(_command)


def _rows(found: Sequence[FSInfo]) -> list[list[object]]:
    return [[one.name, one.owner, one.fstype, one.server_address, one.subpath, one.properties] for one in found]
