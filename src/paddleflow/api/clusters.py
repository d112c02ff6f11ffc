"""Clusters and nodes on the wire. A credential goes in and never comes out."""

# ruff: noqa: N815  the names of the fields are the names on the wire

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from paddleflow.api.wire import PageAnswer, ResourcesAnswer, WireRequest, local_time, resources_answer
from paddleflow.domain.clusters import Cluster, Node
from paddleflow.domain.commands import CreateCluster, UpdateCluster
from paddleflow.domain.ids import ClusterName
from paddleflow.domain.jobs import Task, TaskStatus
from paddleflow.domain.resources import NOTHING, Resources

STATUS_LABEL = "paddleflow/node-status"


class CreateClusterRequest(WireRequest):
    clusterName: str = ""
    endpoint: str = ""
    clusterType: str = ""
    version: str = ""
    credential: str = ""
    description: str = ""
    source: str = ""
    setting: str = ""
    status: str = ""
    namespaceList: list[str] = Field(default_factory=list)

    def to_command(self) -> CreateCluster:
        return CreateCluster(
            name=self.clusterName,
            endpoint=self.endpoint,
            type=self.clusterType,
            cluster_version=self.version,
            credential=self.credential,
            description=self.description,
            source=self.source,
            setting=self.setting,
            status=self.status,
            namespaces=tuple(self.namespaceList),
        )


class UpdateClusterRequest(WireRequest):
    endpoint: str | None = None
    clusterType: str | None = None
    version: str | None = None
    credential: str | None = None
    description: str | None = None
    source: str | None = None
    setting: str | None = None
    status: str | None = None
    namespaceList: list[str] | None = None

    def to_command(self, name: str) -> UpdateCluster:
        return UpdateCluster(
            name=ClusterName(name),
            endpoint=self.endpoint,
            type=self.clusterType,
            cluster_version=self.version,
            credential=self.credential,
            description=self.description,
            source=self.source,
            setting=self.setting,
            status=self.status,
            namespaces=None if self.namespaceList is None else tuple(self.namespaceList),
        )


class ClusterResourceRequest(WireRequest):
    """Which nodes to show, and which page of them."""

    clusterNames: list[str] = Field(default_factory=list)
    queueName: str = ""
    labels: str = ""
    nodeStatus: str = ""
    pageNo: int = 0
    pageSize: int = 0


class ClusterAnswer(TypedDict):
    id: str
    clusterName: str
    description: str
    endpoint: str
    source: str
    clusterType: str
    version: str
    status: str
    credential: str
    setting: str
    namespaceList: list[str]
    createTime: str
    updateTime: str


class ClusterListAnswer(PageAnswer):
    clusterList: list[ClusterAnswer]


def cluster_answer(cluster: Cluster) -> ClusterAnswer:
    return {
        "id": cluster.id,
        "clusterName": cluster.name,
        "description": cluster.description,
        "endpoint": cluster.endpoint,
        "source": cluster.source,
        "clusterType": cluster.type,
        "version": cluster.cluster_version,
        "status": cluster.status,
        "credential": "",
        "setting": cluster.setting,
        "namespaceList": list(cluster.namespaces),
        "createTime": local_time(cluster.created_at),
        "updateTime": local_time(cluster.updated_at),
    }


class NodeResourceAnswer(TypedDict):
    nodeName: str
    schedulable: bool
    total: ResourcesAnswer
    idle: ResourcesAnswer


class ResourceSummaryAnswer(TypedDict):
    total: ResourcesAnswer
    idle: ResourcesAnswer


class ClusterResourceAnswer(TypedDict):
    nodeList: list[NodeResourceAnswer]
    summary: ResourceSummaryAnswer
    errMsg: str


def cluster_resource_answer(nodes: Sequence[tuple[Node, Resources]]) -> ClusterResourceAnswer:
    """Every node with what is idle on it, and the sum."""
    total = sum((node.capacity for node, _ in nodes), NOTHING)
    idle = sum((free for _, free in nodes), NOTHING)
    return {
        "nodeList": [
            {
                "nodeName": node.name,
                "schedulable": node.schedulable,
                "total": resources_answer(node.capacity),
                "idle": resources_answer(free),
            }
            for node, free in nodes
        ],
        "summary": {"total": resources_answer(total), "idle": resources_answer(idle)},
        "errMsg": "",
    }


class NodeTableAnswer(TypedDict):
    allocatable: dict[str, dict[str, str]]
    capacity: dict[str, dict[str, str]]
    labels: dict[str, dict[str, str]]
    clusterName: str
    clusterSource: str
    queueName: NotRequired[str]


def node_table_answer(
    nodes: Sequence[tuple[Node, Resources]], cluster: str, source: str, queue: str
) -> NodeTableAnswer:
    answer = NodeTableAnswer(
        allocatable={node.name: free.spell() for node, free in nodes},
        capacity={node.name: node.capacity.spell() for node, _ in nodes},
        labels={node.name: node_labels(node) for node, _ in nodes},
        clusterName=cluster,
        clusterSource=source,
    )
    if queue:
        answer["queueName"] = queue
    return answer


def node_labels(node: Node) -> dict[str, str]:
    return {**node.labels, STATUS_LABEL: node.status}


class PodAnswer(TypedDict):
    podName: str
    status: int
    labels: dict[str, str]
    resources: dict[str, int]


class NodeInfoAnswer(TypedDict):
    nodeName: str
    nodeIP: str
    podsCount: int
    labels: dict[str, str]
    used: dict[str, int]
    capacity: dict[str, int]
    pods: list[PodAnswer]


class NodeInfosAnswer(TypedDict):
    totalCount: int
    nodeList: list[NodeInfoAnswer]


_POD_STATUS: Mapping[TaskStatus, int] = {
    TaskStatus.PENDING: 0,
    TaskStatus.RUNNING: 1,
    TaskStatus.SUCCEEDED: 3,
    TaskStatus.FAILED: 3,
}
"""0 creating, 1 running, 2 terminating, 3 deleted; a task that is being stopped still counts as running."""


def node_info_answer(node: Node, used: Resources, tasks: Sequence[tuple[Task, Resources]]) -> NodeInfoAnswer:
    """Amounts are integers here: CPU in thousandths of a core, memory in bytes."""
    return {
        "nodeName": node.name,
        "nodeIP": node.address,
        "podsCount": len(tasks),
        "labels": node_labels(node),
        "used": dict(used.amounts),
        "capacity": dict(node.capacity.amounts),
        "pods": [
            {
                "podName": task.id,
                "status": _POD_STATUS[task.status],
                "labels": {},
                "resources": dict(held.amounts),
            }
            for task, held in tasks
        ],
    }
