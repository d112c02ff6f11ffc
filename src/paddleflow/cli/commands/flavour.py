"""``paddleflow flavour``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from paddleflow.cli.complete import flavour_names
from paddleflow.cli.invocation import Invocation
from paddleflow.cli.output import show_one, show_page
from paddleflow.cli.values import PAIRS

if TYPE_CHECKING:
    from paddleflow.sdk.flavours import FlavourInfo

_HEADERS = ["name", "cpu", "mem", "scalarResources", "clusterName"]


@click.group()
def flavour() -> None:
    """manage flavours, named amounts of resources"""


@flavour.command("list")
@click.option("-m", "--maxkeys", type=int, default=100, show_default=True, help="Max size of the listed flavours.")
@click.option("--marker", help="Next page.")
@click.option("-cn", "--clustername", default="", help="Also the flavours of this cluster.")
@click.pass_obj
def list_flavours(invocation: Invocation, maxkeys: int, marker: str | None, clustername: str) -> None:
    """list flavours"""
    _, flavours, following = invocation.client.list_flavour(maxkeys, marker, clustername)
    show_page(invocation.output, _HEADERS, _rows(flavours), marker=following, nothing="not find flavour")


@flavour.command()
@click.argument("name", shell_complete=flavour_names)
@click.pass_obj
def show(invocation: Invocation, name: str) -> None:
    """show a flavour"""
    _, one = invocation.client.show_flavour(name)
    show_one(invocation.output, _HEADERS, *_rows([one]))


@flavour.command()
@click.argument("name")
@click.option("-c", "--cpu", required=True, help="Cpu, e.g. 4.")
@click.option("-m", "--memory", required=True, help="Memory, e.g. 8Gi.")
@click.option("-s", "--scalar", type=PAIRS, help="Scalar resources, e.g. nvidia.com/gpu=1.")
@click.option("-cn", "--clustername", help="The only cluster it is for.")
@click.pass_obj
def create(
    invocation: Invocation, name: str, cpu: str, memory: str, scalar: dict[str, str] | None, clustername: str | None
) -> None:
    """create a flavour"""
    invocation.client.add_flavour(name, cpu, memory, scalar, clustername)
    click.echo(f"flavour[{name}] create success ")


@flavour.command()
@click.argument("name", shell_complete=flavour_names)
@click.option("-c", "--cpu", help="Cpu, e.g. 4.")
@click.option("-m", "--memory", help="Memory, e.g. 8Gi.")
@click.option("-s", "--scalar", type=PAIRS, help="Scalar resources, e.g. nvidia.com/gpu=1.")
@click.pass_obj
def update(
    invocation: Invocation, name: str, cpu: str | None, memory: str | None, scalar: dict[str, str] | None
) -> None:
    """change a flavour; what is not given stays"""
    _, changed = invocation.client.update_flavour(name, cpu, memory, scalar)
    click.echo(f"update [{changed}] success")


@flavour.command()
@click.argument("name", shell_complete=flavour_names)
@click.pass_obj
def delete(invocation: Invocation, name: str) -> None:
    """delete a flavour"""
    invocation.client.del_flavour(name)
    click.echo(f"flavour[{name}] delete success ")


def _rows(flavours: Sequence[FlavourInfo]) -> list[list[str]]:
    return [[one.name, one.cpu, one.mem, one.scalar_resources, one.cluster_name] for one in flavours]
