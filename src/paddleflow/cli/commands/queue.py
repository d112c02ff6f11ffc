"""``paddleflow queue``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from paddleflow.cli.commands.what_if import what_if
from paddleflow.cli.complete import queue_names
from paddleflow.cli.invocation import Invocation
from paddleflow.cli.output import show_list, show_page, show_with_details
from paddleflow.cli.values import NAMES, PAIRS
from paddleflow.domain.resources import NOTHING, Resources

if TYPE_CHECKING:
    from paddleflow.sdk.client import Client
    from paddleflow.sdk.queues import QueueInfo

Pairs = dict[str, str]


@click.group()
def queue() -> None:
    """manage queues and who may use them"""


queue.add_command(what_if)


@queue.command("list")
@click.option("-m", "--maxsize", type=int, default=100, show_default=True, help="Max size of the listed queues.")
@click.option("-mk", "--marker", help="Next page.")
@click.pass_obj
def list_queues(invocation: Invocation, maxsize: int, marker: str | None) -> None:
    """list queues"""
    _, queues, following = invocation.client.list_queue(maxsize, marker)
    headers = ["name", "namespace", "status", "cluster name", "create time", "update time"]
    rows = [[one.name, one.namespace, one.status, one.clusterName, one.createTime, one.updateTime] for one in queues]
    show_page(invocation.output, headers, rows, marker=following, nothing="no queue found")


@queue.command()
@click.argument("queuename", shell_complete=queue_names)
@click.pass_obj
def show(invocation: Invocation, queuename: str) -> None:
    """show a queue, with what is used and idle"""
    _, one = invocation.client.show_queue(queuename)
    headers = ["name", "namespace", "status", "quota type", "cluster name", "create time", "update time"]
    row = [one.name, one.namespace, one.status, one.quotaType, one.clusterName, one.createTime, one.updateTime]
    details = {
        "max resources": one.maxResources,
        "min resources": one.minResources,
        "used resources": one.usedResources,
        "idle resources": one.idleResources,
        "scheduling policy": one.schedulingPolicy,
        "location": one.location,
        "weight": one.weight,
        "parent": one.parent,
        **_children(invocation.client, one),
    }
    given: dict[str, object] = {name: value for name, value in details.items() if value or name == "max resources"}
    show_with_details(invocation.output, headers, row, "queue info: ", given)


@queue.command()
@click.argument("name")
@click.argument("namespace")
@click.argument("maxcpu")
@click.argument("maxmem")
@click.option("--maxscalar", type=PAIRS, help="Max scalar resources, e.g. nvidia.com/gpu=8.")
@click.option("--mincpu", help="Guaranteed cpu, e.g. 10.")
@click.option("--minmem", help="Guaranteed memory, e.g. 10Gi.")
@click.option("--minscalar", type=PAIRS, help="Guaranteed scalar resources.")
@click.option("--policy", type=NAMES, help="How waiting jobs are ordered, e.g. priority.")
@click.option("--location", type=PAIRS, help="Labels of the nodes the queue lives on.")
@click.option("--quota", help="elasticQuota (the default) or volcanoCapabilityQuota.")
@click.option("--clustername", help="The cluster of the queue.")
@click.option(
    "--weight", type=click.IntRange(min=1), help="Its part of what is left over, beside its siblings' weights."
)
@click.option("--parent", shell_complete=queue_names, help="The quota above it.")
@click.pass_obj
def create(
    invocation: Invocation,
    *,
    name: str,
    namespace: str,
    maxcpu: str,
    maxmem: str,
    maxscalar: Pairs | None,
    mincpu: str | None,
    minmem: str | None,
    minscalar: Pairs | None,
    policy: list[str] | None,
    location: Pairs | None,
    quota: str | None,
    clustername: str | None,
    weight: int | None,
    parent: str | None,
) -> None:
    """create a queue of at most MAXCPU and MAXMEM"""
    most = _resources(maxcpu, maxmem, maxscalar)
    least = _resources(mincpu, minmem, minscalar)
    invocation.client.add_queue(
        name, namespace, clustername, most, least or None, policy, location, quota, weight=weight, parent=parent
    )
    click.echo(f"queue[{name}] create success ")


@queue.command()
@click.argument("name", shell_complete=queue_names)
@click.option("--maxcpu", help="Max cpu, e.g. 10.")
@click.option("--maxmem", help="Max memory, e.g. 10Gi.")
@click.option("--maxscalar", type=PAIRS, help="Max scalar resources, e.g. nvidia.com/gpu=8.")
@click.option("--mincpu", help="Guaranteed cpu, e.g. 10.")
@click.option("--minmem", help="Guaranteed memory, e.g. 10Gi.")
@click.option("--minscalar", type=PAIRS, help="Guaranteed scalar resources.")
@click.option("--policy", type=NAMES, help="How waiting jobs are ordered; NAME- removes one.")
@click.option("--location", type=PAIRS, help="Labels of the nodes the queue lives on; KEY= removes one.")
@click.option(
    "--weight", type=click.IntRange(min=1), help="Its part of what is left over, beside its siblings' weights."
)
@click.option("--parent", shell_complete=queue_names, help="The quota above it; empty: the root.")
@click.pass_obj
def update(
    invocation: Invocation,
    *,
    name: str,
    maxcpu: str | None,
    maxmem: str | None,
    maxscalar: Pairs | None,
    mincpu: str | None,
    minmem: str | None,
    minscalar: Pairs | None,
    policy: list[str] | None,
    location: Pairs | None,
    weight: int | None,
    parent: str | None,
) -> None:
    """change a queue; what is not given stays"""
    most = _resources(maxcpu, maxmem, maxscalar)
    least = _resources(mincpu, minmem, minscalar)
    invocation.client.update_queue(name, most, least, policy, location, weight=weight, parent=parent)
    click.echo(f"queue[{name}] update success ")


@queue.command()
@click.argument("queuename", shell_complete=queue_names)
@click.pass_obj
def stop(invocation: Invocation, queuename: str) -> None:
    """let a queue accept and start nothing; what runs goes on"""
    invocation.client.close_queue(queuename)
    click.echo(f"queue[{queuename}] stop success ")


@queue.command("open")
@click.argument("queuename", shell_complete=queue_names)
@click.pass_obj
def open_(invocation: Invocation, queuename: str) -> None:
    """let a stopped queue accept and start jobs again"""
    invocation.client.open_queue(queuename)
    click.echo(f"queue[{queuename}] open success ")


@queue.command()
@click.argument("queuename", shell_complete=queue_names)
@click.pass_obj
def delete(invocation: Invocation, queuename: str) -> None:
    """delete a queue"""
    invocation.client.del_queue(queuename)
    click.echo(f"queue[{queuename}] delete success ")


@queue.command()
@click.argument("username")
@click.argument("queuename", shell_complete=queue_names)
@click.pass_obj
def grant(invocation: Invocation, username: str, queuename: str) -> None:
    """let a user use a queue"""
    invocation.client.grant_queue(username, queuename)
    click.echo(f"queue[{queuename}] add username[{username}] success")


@queue.command()
@click.argument("username")
@click.argument("queuename", shell_complete=queue_names)
@click.pass_obj
def ungrant(invocation: Invocation, username: str, queuename: str) -> None:
    """take a queue away from a user"""
    invocation.client.ungrant_queue(username, queuename)
    click.echo(f"queue[{queuename}] delete username[{username}] success")


@queue.command()
@click.option("-m", "--maxsize", type=int, default=100, show_default=True, help="Max size of the listed grants.")
@click.option("-u", "--username", help="Only the grants of this user.")
@click.pass_obj
def grantlist(invocation: Invocation, maxsize: int, username: str | None) -> None:
    """list who may use which queue"""
    _, grants = invocation.client.show_queue_grant(username, maxsize)
    rows = [[one.username, one.resourceName] for one in grants]
    show_list(invocation.output, ["user name", "queue name"], rows, nothing="no grantlist found ")


def _children(client: Client, parent: QueueInfo) -> dict[str, object]:
    """The quotas under this one, and how much of its guarantee they have been promised."""
    if parent.status != "closed" or (parent.parent is None and parent.name != "root"):
        return {}  # only a closed queue can have any
    below, marker = [], None
    while True:
        _, queues, marker = client.list_queue(1000, marker)
        below += [one for one in queues if one.parent == parent.name and one.clusterName == parent.clusterName]
        if not marker:
            break
    promised = sum((_amounts(one.minResources) for one in below), NOTHING)
    return {"children": [one.name for one in below], "children min resources": promised.spell()}


def _amounts(shown: dict[str, Any]) -> Resources:
    scalars = shown.get("scalarResources") or {}
    return Resources.parse({name: text for name, text in shown.items() if isinstance(text, str)} | scalars)


def _resources(cpu: str | None, memory: str | None, scalars: Pairs | None) -> dict[str, object]:
    given = {"cpu": cpu, "mem": memory, "scalarResources": scalars}
    return {name: value for name, value in given.items() if value is not None}
