"""``paddleflow fs snapshot``: how a filesystem was at one moment."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from paddleflow.cli.complete import filesystem_names
from paddleflow.cli.invocation import Invocation
from paddleflow.cli.output import show_list, show_one
from paddleflow.cli.places import owner_option
from paddleflow.domain.errors import Conflict

if TYPE_CHECKING:
    from paddleflow.sdk.client import Client
    from paddleflow.sdk.snapshots import SnapshotInfo

_HEADERS = ["snapshot id", "name", "fs name", "sub path", "kind", "state", "files", "bytes", "create time", "message"]
_LOOK_EVERY_S = 0.5


@click.group()
def snapshot() -> None:
    """keep how a filesystem, or a directory of it, is now

    \b
    paddleflow fs snapshot create data -p /set --wait
    paddleflow fs mount data /mnt/then -o snapshot=ID
    """


@snapshot.command()
@click.argument("fsname", shell_complete=filesystem_names)
@click.option("-n", "--name", help="What it is to be called.")
@click.option("-p", "--path", "sub_path", help="Only this directory.")
@click.option("--copy", is_flag=True, help="Keep the files themselves too, not only their names and versions.")
@click.option("--wait", is_flag=True, help="Until it is ready.")
@owner_option
@click.pass_obj
def create(
    invocation: Invocation,
    *,
    fsname: str,
    name: str | None,
    sub_path: str | None,
    copy: bool,
    wait: bool,
    username: str | None,
) -> None:
    """begin a snapshot"""
    _, snapshot_id = invocation.client.create_snapshot(fsname, name, sub_path, copy=copy, username=username)
    if wait:
        _wait(invocation.client, fsname, snapshot_id, username)
    click.echo(f"snapshot[{snapshot_id}] create success")


@snapshot.command("list")
@click.argument("fsname", shell_complete=filesystem_names)
@owner_option
@click.pass_obj
def list_snapshots(invocation: Invocation, fsname: str, username: str | None) -> None:
    """list the snapshots of a filesystem"""
    _, found = invocation.client.list_snapshots(fsname, username)
    show_list(invocation.output, _HEADERS, [_row(one) for one in found], nothing="no snapshot found ")


@snapshot.command()
@click.argument("fsname", shell_complete=filesystem_names)
@click.argument("snapshot_id")
@owner_option
@click.pass_obj
def show(invocation: Invocation, fsname: str, snapshot_id: str, username: str | None) -> None:
    """show a snapshot"""
    _, one = invocation.client.show_snapshot(fsname, snapshot_id, username)
    show_one(invocation.output, _HEADERS, _row(one))


@snapshot.command()
@click.argument("fsname", shell_complete=filesystem_names)
@click.argument("snapshot_id")
@owner_option
@click.pass_obj
def delete(invocation: Invocation, fsname: str, snapshot_id: str, username: str | None) -> None:
    """delete a snapshot; the filesystem stays as it is"""
    invocation.client.delete_snapshot(fsname, snapshot_id, username)
    click.echo(f"snapshot[{snapshot_id}] delete success")


def _wait(client: Client, fsname: str, snapshot_id: str, username: str | None) -> None:
    while True:
        _, made = client.show_snapshot(fsname, snapshot_id, username)
        if made.state == "failed":
            raise Conflict(f"snapshot {snapshot_id} failed: {made.message}", code="SnapshotFailed")
        if made.state == "ready":
            return
        time.sleep(_LOOK_EVERY_S)


def _row(one: SnapshotInfo) -> list[object]:
    return [
        one.snapshot_id,
        one.name,
        one.fs_name,
        one.sub_path,
        one.kind,
        one.state,
        one.files,
        one.bytes,
        one.create_time,
        one.message,
    ]
