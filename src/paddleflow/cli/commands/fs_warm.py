"""``paddleflow fs warmup`` and ``evict``: what lies in the cache of this machine before it is asked for."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import click

from paddleflow.cli.complete import filesystem_places
from paddleflow.cli.invocation import Invocation
from paddleflow.cli.places import is_local, owner_option, split_place
from paddleflow.cli.sizes import spelt_size
from paddleflow.cli.transfers import show_summary, shown_progress
from paddleflow.domain.errors import NotFound

if TYPE_CHECKING:
    from paddleflow.sdk.file_access import FileAccess

_PIECE = 1 << 20


@click.command()
@click.argument("places", metavar="{FSNAME[:/PATH]|MOUNTED PATH}...", nargs=-1, shell_complete=filesystem_places)
@click.option(
    "-f",
    "--file",
    "listing",
    type=click.File("r", encoding="utf-8"),
    metavar="LIST",
    help="A file of places, one in a line; - is standard input.",
)
@click.option("-p", "--parallel", type=click.IntRange(1, 1024), default=16, show_default=True, help="Files at a time.")
@click.option(
    "-t",
    "--type",
    "kind",
    type=click.Choice(["meta", "data"]),
    default="data",
    show_default=True,
    help="The content, or only names and attributes; these are kept by a mount, so name a path in one.",
)
@click.option("-r", "--recursive", is_flag=True, help="Always so: a directory means everything below it.")
@owner_option
@click.pass_obj
def warmup(
    invocation: Invocation,
    *,
    places: tuple[str, ...],
    listing: Iterator[str] | None,
    parallel: int,
    kind: str,
    recursive: bool,
    username: str | None,
) -> None:
    """bring files, and all below directories, into the cache of this machine"""
    wanted = [*places, *(line.strip() for line in listing or () if line.strip())]
    if not wanted:
        raise click.UsageError("name what to warm up: FSNAME, FSNAME:/path or a path in a mount; or give -f LIST")
    local = [place for place in wanted if is_local(place)]
    remote = [split_place(place) for place in wanted if not is_local(place)]
    if remote and kind == "meta":
        raise click.UsageError("names and attributes are kept by a mount; name a path in one, e.g. /mnt/data/set")
    if remote:
        files = invocation.client.fs.of(username)
        _warm_remote(invocation.output, files, remote, parallel)
    if local:
        _warm_local(invocation.output, local, parallel, with_data=kind == "data")


@click.command()
@click.argument("places", metavar="FSNAME[:/PATH]...", nargs=-1, required=True, shell_complete=filesystem_places)
@owner_option
@click.pass_obj
def evict(invocation: Invocation, places: tuple[str, ...], username: str | None) -> None:
    """take files out of the cache of this machine; they stay in the storage"""
    files = invocation.client.fs.of(username)
    for fsname, path in map(split_place, places):
        click.echo(f"{fsname}:{path} evict success, {spelt_size(files.evict(fsname, path))} freed")


def _warm_remote(output: str, files: FileAccess, places: Sequence[tuple[str, str]], parallel: int) -> None:
    for fsname in dict.fromkeys(fsname for fsname, _ in places):
        paths = [path for name, path in places if name == fsname]
        began = time.monotonic()
        with shown_progress(f"warming {fsname}") as progress:
            done = files.warm(fsname, paths, parallel=parallel, progress=progress)
        show_summary(output, f"{fsname} warmup success", done, time.monotonic() - began)


def _warm_local(output: str, places: Sequence[str], parallel: int, *, with_data: bool) -> None:
    """Through a mount: looking at a name makes the mount remember it, reading a file makes it cache it."""
    from paddleflow.sdk.file_access import Transferred

    began = time.monotonic()
    names = [name for place in places for name in _walked(Path(place).expanduser())]
    with ThreadPoolExecutor(parallel) as pool:
        sizes = list(pool.map(_read if with_data else _look, names))
    done = Transferred(files=len(names), bytes=sum(sizes))
    show_summary(output, "warmup success", done, time.monotonic() - began)


def _walked(top: Path) -> Iterator[Path]:
    if not top.exists():
        raise NotFound(f"{top} is not there", code="NoSuchFile")
    if not top.is_dir():
        yield top
    for folder, _, names in os.walk(top):
        yield from (Path(folder, name) for name in names)


def _look(name: Path) -> int:
    name.lstat()
    return 0


def _read(name: Path) -> int:
    size = 0
    with name.open("rb", buffering=0) as file:
        while piece := file.read(_PIECE):
            size += len(piece)
    return size
