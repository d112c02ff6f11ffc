"""The nodes and queues of a server, asked for over the client, as a cluster to replay jobs on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from paddleflow.domain.clusters import Node, NodeStatus
from paddleflow.domain.ids import ClusterName, NodeName, QueueName
from paddleflow.domain.queues import Queue, QuotaType
from paddleflow.domain.resources import Resources
from paddleflow.simulation.cluster import Capacity
from paddleflow.simulation.history import present_capacity
from paddleflow.simulation.trace import TraceJob

if TYPE_CHECKING:
    from paddleflow.sdk.client import Client
    from paddleflow.sdk.queues import QueueInfo

_STATUS_LABEL = "paddleflow/node-status"
"""Added by the server to a node's own labels."""
_DAWN = datetime.fromtimestamp(0, UTC)


def server_capacity(client: Client, cluster: str, jobs: Sequence[TraceJob]) -> Capacity:
    """What the server would replay these jobs on itself."""
    name = ClusterName(cluster)
    return present_capacity(name, _nodes(client, name), map(_queue, _queues(client)), jobs)


def _nodes(client: Client, cluster: ClusterName) -> Iterator[Node]:
    _, tables = client.list_cluster_resource_v2(page_size=0, clusternames=[cluster])
    table = tables.get(cluster, {})  # a cluster that is offline is not in the answer
    for name, amounts in table.get("capacity", {}).items():
        labels = dict(table["labels"][name])
        status = NodeStatus(labels.pop(_STATUS_LABEL, NodeStatus.READY))
        yield Node(
            name=NodeName(name), cluster=cluster, capacity=Resources.parse(amounts), status=status, labels=labels
        )


def _queues(client: Client) -> Iterator[QueueInfo]:
    marker: str | None = None
    while True:
        _, queues, marker = client.list_queue(1000, marker)
        yield from queues
        if not marker:
            return


def _queue(told: QueueInfo) -> Queue:
    return Queue(
        id=f"queue-{told.name}",
        name=QueueName(told.name),
        namespace=told.namespace,
        cluster=ClusterName(told.clusterName),
        quota_type=QuotaType(told.quotaType),
        max_resources=_amounts(told.maxResources),
        min_resources=_amounts(told.minResources),
        location=told.location,
        policies=tuple(told.schedulingPolicy),
        weight=told.weight,
        created_at=_DAWN,
        updated_at=_DAWN,
    )


def _amounts(told: Mapping[str, Any]) -> Resources:
    """The wire spells CPU and memory also where a quota does not name them, as zero: that is no limit."""
    scalars: Mapping[str, str] = told.get("scalarResources") or {}
    plain = {name: text for name in ("cpu", "memory", "storage") if (text := told.get(name)) and text != "0"}
    return Resources.parse({**plain, **scalars})
