"""``paddleflow cluster``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from paddleflow.cli.invocation import Invocation
from paddleflow.cli.output import show as show_table
from paddleflow.cli.output import show_one, show_page, to_json
from paddleflow.cli.values import NAMES


@click.group()
def cluster() -> None:
    """manage clusters"""


@cluster.command("list")
@click.option("-m", "--maxkeys", type=int, default=100, show_default=True, help="Max size of the listed clusters.")
@click.option("-mk", "--marker", help="Next page.")
@click.option("-cn", "--clusternames", help="Only these, separated by commas.")
@click.option("-cs", "--clusterstatus", help="Only those of this status.")
@click.pass_obj
def list_clusters(
    invocation: Invocation, maxkeys: int, marker: str | None, clusternames: str | None, clusterstatus: str | None
) -> None:
    """list clusters"""
    _, found, following = invocation.client.list_cluster(maxkeys, marker, clusternames, clusterstatus)
    headers = [
        "cluster id", "cluster name", "description", "cluster type", "version", "status", "create time", "update time",
    ]  # fmt: skip
    rows = [
        [
            one.clusterid, one.clustername, one.description, one.clustertype, one.version, one.status, one.createtime,
            one.updatetime,
        ]
        for one in found
    ]  # fmt: skip
    show_page(invocation.output, headers, rows, marker=following, nothing="no cluster found ")


@cluster.command()
@click.argument("clustername")
@click.pass_obj
def show(invocation: Invocation, clustername: str) -> None:
    """show a cluster"""
    _, one = invocation.client.show_cluster(clustername)
    headers = [
        "cluster id", "cluster name", "description", "endpoint", "source", "cluster type", "version", "status",
        "setting", "namespace list", "create time", "update time",
    ]  # fmt: skip
    row = [
        one.clusterid, one.clustername, one.description, one.endpoint, one.source, one.clustertype, one.version,
        one.status, one.setting, one.namespacelist, one.createtime, one.updatetime,
    ]  # fmt: skip
    if invocation.output == "json":
        show_table("json", [*headers, "credential"], [[*row, one.credential]])
        return
    show_one(invocation.output, headers, row)
    click.echo(f"credential value:\n------------------------\n{one.credential}")


@cluster.command()
@click.argument("clustername")
@click.argument("endpoint")
@click.argument("clustertype")
@click.option("-c", "--credential", help="A kubeconfig: an absolute path, or the text itself.")
@click.option("-d", "--description", help="What it is.")
@click.option("--source", help="Where it comes from, such as OnPremise.")
@click.option("--setting", help="More configuration.")
@click.option("--status", help="online or offline.")
@click.option("-ns", "--namespacelist", type=NAMES, help="The namespaces queues may use.")
@click.option("--version", help="The version of the cluster, such as v1.16.3.")
@click.pass_obj
def create(
    invocation: Invocation,
    *,
    clustername: str,
    endpoint: str,
    clustertype: str,
    credential: str | None,
    description: str | None,
    source: str | None,
    setting: str | None,
    status: str | None,
    namespacelist: list[str] | None,
    version: str | None,
) -> None:
    """create a cluster of type Kubernetes, K3S or Local"""
    _, ident = invocation.client.create_cluster(
        clustername, endpoint, clustertype, _credential(credential), description, source, setting, status,
        namespacelist, version,
    )  # fmt: skip
    click.echo(f"cluster[{clustername}] create  success, id[{ident}]")


@cluster.command()
@click.argument("clustername")
@click.option("-e", "--endpoint", help="Where it is.")
@click.option("-c", "--credential", help="A kubeconfig: an absolute path, or the text itself.")
@click.option("-t", "--clustertype", help="Kubernetes, K3S or Local.")
@click.option("-d", "--description", help="What it is.")
@click.option("--source", help="Where it comes from, such as OnPremise.")
@click.option("--setting", help="More configuration.")
@click.option("--status", help="online or offline.")
@click.option("-ns", "--namespacelist", type=NAMES, help="The namespaces queues may use.")
@click.option("--version", help="The version of the cluster, such as v1.16.3.")
@click.pass_obj
def update(
    invocation: Invocation,
    *,
    clustername: str,
    endpoint: str | None,
    credential: str | None,
    clustertype: str | None,
    description: str | None,
    source: str | None,
    setting: str | None,
    status: str | None,
    namespacelist: list[str] | None,
    version: str | None,
) -> None:
    """change a cluster; what is not given stays"""
    _, ident = invocation.client.update_cluster(
        clustername, endpoint, _credential(credential), clustertype, description, source, setting, status,
        namespacelist, version,
    )  # fmt: skip
    click.echo(f"cluster[{clustername}] update success, id[{ident}]")


@cluster.command()
@click.argument("clustername")
@click.pass_obj
def delete(invocation: Invocation, clustername: str) -> None:
    """delete a cluster and its queues"""
    invocation.client.delete_cluster(clustername)
    click.echo(f"cluster[{clustername}] delete success")


@cluster.command()
@click.option("-cn", "--clustername", help="Only these, separated by commas.")
@click.pass_obj
def resource(invocation: Invocation, clustername: str | None) -> None:
    """show what each node of the clusters has and has left"""
    _, found = invocation.client.list_cluster_resource(clustername)
    _show_resources(invocation, found)


@cluster.command()
@click.option("--pageno", type=int, default=0, show_default=True, help="The page.")
@click.option("--pagesize", type=int, default=1000, show_default=True, help="Nodes on a page.")
@click.option("-cn", "--clusternames", type=NAMES, help="Only these, separated by commas.")
@click.option("-q", "--queuename", help="Only the nodes of this queue.")
@click.option("-l", "--labels", help="Only nodes with these labels, k=v,k=v.")
@click.pass_obj
def statistic(
    invocation: Invocation,
    *,
    pageno: int,
    pagesize: int,
    clusternames: list[str] | None,
    queuename: str | None,
    labels: str | None,
) -> None:
    """show capacity and what may still be allocated, by node"""
    _, found = invocation.client.list_cluster_resource_v2(pageno, pagesize, clusternames, queuename, labels)
    _show_resources(invocation, found)


def _show_resources(invocation: Invocation, found: Mapping[str, object]) -> None:
    as_text = invocation.output != "json"
    rows = [[name, to_json(value) if as_text else value] for name, value in found.items()]
    show_table(invocation.output, ["cluster name", "cluster info"], rows)


def _credential(given: str | None) -> bytes | None:
    if given is None or not given.startswith("/"):
        return None if given is None else given.encode()
    try:
        return Path(given).read_bytes()
    except OSError as error:
        raise click.BadParameter(f"cannot read {given}: {error.strerror}", param_hint="--credential") from error
