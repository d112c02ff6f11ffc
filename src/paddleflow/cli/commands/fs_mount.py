"""``paddleflow fs mount``, ``umount`` and ``mounts``."""

from __future__ import annotations

import os
import re
import select
import signal
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import click

from paddleflow.cli.complete import filesystem_names
from paddleflow.cli.invocation import Invocation
from paddleflow.cli.output import show_list, to_json
from paddleflow.cli.places import owner_option
from paddleflow.domain.errors import Unavailable

_NEXT_OPTION = re.compile(r",(?=[A-Za-z][A-Za-z_-]*(?:=|,|$))")
"""A comma between two options, and not one in a path."""


@click.command()
@click.argument("fsname", shell_complete=filesystem_names)
@click.argument("path", type=click.Path(path_type=Path))
@owner_option
@click.option("-o", "--option", "options", multiple=True, metavar="K[=V]", help="How; may be repeated.")
@click.option("--foreground", is_flag=True, help="Stay until Ctrl-C, and unmount then.")
@click.pass_obj
def mount(
    invocation: Invocation, fsname: str, path: Path, username: str | None, options: tuple[str, ...], foreground: bool
) -> None:
    """mount a filesystem on this machine

    \b
    -o ro                      only for reading
    -o dataset                 many small files that do not change: fastest to open, only for reading
    -o write-back              closing a file does not wait for its upload; fsync does
    -o allow-other             other users of this machine may use it
    -o snapshot=ID             as it was in this snapshot
    -o cache-dir=DIR           where content is cached; shared with every other mount that names it
    -o cache-size=64G          how large the cache may grow
    -o memory-cache-size=4G    and this much of it in memory
    -o meta-ttl=5s             for how long names and attributes are believed
    -o uid=, gid=, file-mode=, dir-mode=   what storages that hold no owner and no modes show
    """
    given = options_of(options)
    for note in no_effect(given):
        click.echo(f"note: {note}", err=True)
    files = invocation.client.fs.of(username)
    report = files.mount(fsname, path, given)
    if invocation.output == "json":
        told = {"how": report.how, "passthrough": report.passthrough, "reasons": report.reasons, "pid": report.pid}
        click.echo(to_json({"fs": fsname, "mountpoint": str(path.absolute()), **told}))
    else:
        click.echo(f"{fsname} is mounted at {path}: {report.how}")
        click.echo(f"passthrough: {'yes' if report.passthrough else 'no'}")
        for reason in report.reasons:
            click.echo(f"  {reason}")
        click.echo("mount success")
    if foreground:
        _stay(report.pid, path, is_json=invocation.output == "json")


@click.command()
@click.argument("path", type=click.Path(path_type=Path))
@click.option(
    "-f", "--force", is_flag=True, help="Even if it is in use: it disappears, and goes when the last user does."
)
def umount(path: Path, force: bool) -> None:
    """unmount a filesystem; what was written is uploaded first"""
    wired_mounts().unmount(str(path.absolute()), force)
    click.echo("umount success")


@click.command()
@click.argument("fsname", shell_complete=filesystem_names)
@owner_option
@click.pass_obj
def mounts(invocation: Invocation, fsname: str, username: str | None) -> None:
    """list where a filesystem is mounted now"""
    _, found = invocation.client.list_mounts(fsname, username)
    headers = ["mount id", "node", "mount point", "user", "read only", "snapshot", "since", "last seen"]
    rows = [
        [one.mount_id, one.node, one.mountpoint, one.username, one.read_only, one.snapshot, one.since, one.last_seen]
        for one in found
    ]
    show_list(invocation.output, headers, rows, nothing="no mount found ")


def wired_mounts() -> Any:
    """The composition of mounts, whose libraries may not be installed beside a light client."""
    return _wired("paddleflow.wiring.mount")


def options_of(items: Sequence[str]) -> dict[str, str]:
    """``-o k=v``, ``-o k``, and several with commas, as mount takes them."""
    given: dict[str, str] = {}
    for item in items:
        for one in filter(None, _NEXT_OPTION.split(item)):
            name, _, text = one.partition("=")
            if not name:
                raise click.BadParameter(f"{item!r} should be K or K=V", param_hint="-o")
            given[name] = text
    return given


def no_effect(given: dict[str, str]) -> list[str]:
    _, told = _wired("paddleflow.files.mounting").wishes(given)
    return list(told)


def _wired(module: str) -> Any:
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.startswith("paddleflow"):
            raise
        raise Unavailable(
            f"mounts need {error.name}, which is not installed; install it with: pip install 'paddleflow[fs]'",
            code="FilesNotInstalled",
        ) from error


def _stay(pid: int, path: Path, *, is_json: bool) -> None:
    """Until the mount ends, or somebody tells us to."""

    def stop(_number: int, _frame: FrameType | None) -> NoReturn:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)
    try:
        ended = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        select.select([ended], [], [])
    except KeyboardInterrupt:
        wired_mounts().unmount(str(path.absolute()), False)
        click.echo("umount success", err=is_json)
    finally:
        os.close(ended)
