"""``paddleflow fs ls``, ``cp``, ``mv``, ``rm``, ``mkdir``, ``cat``: files of a filesystem, without a mount."""

from __future__ import annotations

import sys
import time
from datetime import datetime
from typing import TYPE_CHECKING

import click

from paddleflow.cli.complete import filesystem_places
from paddleflow.cli.invocation import Invocation
from paddleflow.cli.output import on_terminal
from paddleflow.cli.output import show as show_table
from paddleflow.cli.places import owner_option, split_place
from paddleflow.cli.sizes import spelt_size
from paddleflow.cli.transfers import show_summary, shown_progress

if TYPE_CHECKING:
    from paddleflow.sdk.file_access import FileAccess, FileEntry

_PIECE = 1 << 20
_SNAPSHOT = click.option("--snapshot", metavar="ID", help="As it was in this snapshot.")


@click.command()
@click.argument("place", metavar="FSNAME[:/PATH]", shell_complete=filesystem_places)
@click.option("-l", "--long", is_flag=True, help="With kind, size and time.")
@click.option("--human", is_flag=True, help="With -l: sizes as people read them.")
@click.option("-R", "--recursive", is_flag=True, help="With everything below.")
@owner_option
@_SNAPSHOT
@click.pass_obj
def ls(
    invocation: Invocation,
    *,
    place: str,
    long: bool,
    human: bool,
    recursive: bool,
    username: str | None,
    snapshot: str | None,
) -> None:
    """list a directory"""
    files = _files(invocation, username, snapshot)
    fsname, path = split_place(place)
    found = _below(files, fsname, path) if recursive else files.ls(fsname, path)
    if invocation.output == "json":
        headers = ["path", "kind", "size", "modified"]
        show_table("json", headers, [[one.path, one.kind, one.size, _time(one.modified)] for one in found])
        return
    for one in found:
        name = (one.path if recursive else one.name) + ("/" if one.is_directory else "")
        name = on_terminal(name)
        click.echo(_long_line(one, name, human=human) if long else name)


@click.command()
@click.argument("source", shell_complete=filesystem_places)
@click.argument("target", shell_complete=filesystem_places)
@click.option("-r", "-R", "--recursive", is_flag=True, help="Directories too, with everything below.")
@click.option("-p", "--parallel", type=click.IntRange(1, 256), default=8, show_default=True, help="Files at a time.")
@owner_option
@_SNAPSHOT
@click.pass_obj
def cp(
    invocation: Invocation,
    *,
    source: str,
    target: str,
    recursive: bool,
    parallel: int,
    username: str | None,
    snapshot: str | None,
) -> None:
    """copy files between this machine and filesystems

    A place on a filesystem is written FSNAME:/path; everything else is a path of this machine. Every file appears whole
    or not at all.

    \b
    paddleflow fs cp model.bin data:/models/
    paddleflow fs cp -r data:/models ./models
    paddleflow fs cp -r data:/set other:/set
    """
    files = _files(invocation, username, snapshot)
    began = time.monotonic()
    with shown_progress("copying") as progress:
        done = files.cp(source, target, recursive=recursive, parallel=parallel, progress=progress)
    show_summary(invocation.output, "copy success", done, time.monotonic() - began)


@click.command()
@click.argument("source", metavar="FSNAME:/SOURCE", shell_complete=filesystem_places)
@click.argument("target", metavar="FSNAME:/TARGET", shell_complete=filesystem_places)
@owner_option
@click.pass_obj
def mv(invocation: Invocation, source: str, target: str, username: str | None) -> None:
    """rename a file or a directory, or move it to another filesystem"""
    _files(invocation, username).mv(source, target)
    click.echo("move success")


@click.command()
@click.argument("places", metavar="FSNAME:/PATH...", nargs=-1, required=True, shell_complete=filesystem_places)
@click.option("-r", "-R", "--recursive", is_flag=True, help="Directories too, with everything below.")
@owner_option
@click.pass_obj
def rm(invocation: Invocation, places: tuple[str, ...], recursive: bool, username: str | None) -> None:
    """remove files; storages that are linked in are left alone"""
    files = _files(invocation, username)
    for fsname, path in [_not_the_root(place) for place in places]:
        files.rm(fsname, path, recursive=recursive)
        click.echo(f"{fsname}:{path} remove success")


@click.command()
@click.argument("places", metavar="FSNAME:/PATH...", nargs=-1, required=True, shell_complete=filesystem_places)
@click.option("-p", "--parents", is_flag=True, help="Also those above it; no error if it is there.")
@owner_option
@click.pass_obj
def mkdir(invocation: Invocation, places: tuple[str, ...], parents: bool, username: str | None) -> None:
    """make directories"""
    files = _files(invocation, username)
    for fsname, path in [_not_the_root(place) for place in places]:
        files.mkdir(fsname, path, parents=parents)
        click.echo(f"{fsname}:{path} make success")


@click.command()
@click.argument("places", metavar="FSNAME:/PATH...", nargs=-1, required=True, shell_complete=filesystem_places)
@owner_option
@_SNAPSHOT
@click.pass_obj
def cat(invocation: Invocation, places: tuple[str, ...], username: str | None, snapshot: str | None) -> None:
    """print files"""
    files = _files(invocation, username, snapshot)
    for fsname, path in map(split_place, places):
        with files.open(fsname, path) as file:
            while piece := file.read(_PIECE):
                sys.stdout.buffer.write(piece)
    sys.stdout.buffer.flush()


def _files(invocation: Invocation, username: str | None, snapshot: str | None = None) -> FileAccess:
    return invocation.client.fs.of(username, snapshot)


def _not_the_root(place: str) -> tuple[str, str]:
    fsname, path = split_place(place)
    if not path.strip("/."):
        raise click.BadParameter(f"{place!r} is the root of the filesystem; name what is in it, e.g. {fsname}:/old")
    return fsname, path


def _below(files: FileAccess, fsname: str, path: str) -> list[FileEntry]:
    found = [one for _, directories, below in files.walk(fsname, path) for one in [*directories, *below]]
    return sorted(found, key=lambda one: one.path)


def _long_line(one: FileEntry, name: str, *, human: bool) -> str:
    size = spelt_size(one.size) if human else str(one.size)
    target = f" -> {one.link_target}" if one.link_target is not None else ""
    return f"{one.shown_mode}  {'' if one.is_directory else size:>12}  {_time(one.modified) or '':19}  {name}{target}"


def _time(seconds: float) -> str | None:
    return datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M:%S") if seconds else None
