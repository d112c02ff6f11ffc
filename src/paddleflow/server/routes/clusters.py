"""Clusters, and the resources of their nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from starlette.responses import Response

from paddleflow.api.clusters import (
    ClusterAnswer,
    ClusterListAnswer,
    ClusterResourceAnswer,
    ClusterResourceRequest,
    CreateClusterRequest,
    NodeInfosAnswer,
    NodeTableAnswer,
    UpdateClusterRequest,
    cluster_answer,
    cluster_resource_answer,
    node_info_answer,
    node_labels,
    node_table_answer,
)
from paddleflow.api.wire import Listed
from paddleflow.domain.clusters import Cluster, NodeStatus
from paddleflow.domain.commands import DeleteCluster
from paddleflow.domain.errors import invalid_field
from paddleflow.domain.ids import ClusterName, QueueName
from paddleflow.domain.queries import ClusterFilter
from paddleflow.engine.reads import NodeUse
from paddleflow.server.call import Call, empty, reply
from paddleflow.server.routing import PAGE, Access, Param, Routes

routes = Routes()

Row = TypeVar("Row")

_CLUSTERS = Listed[Cluster]("clusterList", cluster_answer)
_NAMES = Param(name="clusterNames", about="names, separated by commas")


@routes.add("GET", "/cluster/resource", Access.ROOT, answer=dict[str, ClusterResourceAnswer], params=(_NAMES,))
def show_cluster_resources(call: Call) -> Response:
    """Every node of the online clusters: what it has and what is idle."""
    found = call.services.reads.node_use(call.actor, _names(call.text("clusterNames")))
    return reply(
        {name: cluster_resource_answer([(use.node, use.idle) for use in uses]) for name, uses in found.items()}
    )


@routes.add("POST", "/cluster/resource", Access.ROOT, answer=dict[str, NodeTableAnswer], body_required=False)
def query_cluster_resources(call: Call, body: ClusterResourceRequest) -> Response:
    """As a table by node, with filters and pages."""
    wanted = _labels(body.labels)
    if body.nodeStatus and body.nodeStatus not in tuple(NodeStatus):
        raise invalid_field("nodeStatus", f"it is not one of {', '.join(NodeStatus)}")
    queue = QueueName(body.queueName) if body.queueName else None
    names = frozenset(ClusterName(name) for name in body.clusterNames)
    found = call.services.reads.node_use(call.actor, names, queue)
    answer: dict[str, NodeTableAnswer] = {}
    for name, uses in found.items():
        chosen = [
            (use.node, use.idle)
            for use in uses
            if (not body.nodeStatus or use.node.status == body.nodeStatus)
            and wanted.items() <= node_labels(use.node).items()
        ]
        source = call.services.reads.cluster(call.actor, name).source
        page = _paged(chosen, body.pageNo, body.pageSize)
        answer[name] = node_table_answer(page, name, source, body.queueName)
    return reply(answer)


@routes.add("POST", "/cluster", Access.ROOT, answer=ClusterAnswer)
def create_cluster(call: Call, body: CreateClusterRequest) -> Response:
    answer = call.submit(body.to_command(), create=True)
    return _shown(call, ClusterName(str(answer["name"])))


@routes.add(
    "GET",
    "/cluster",
    Access.ROOT,
    answer=ClusterListAnswer,
    params=(*PAGE, _NAMES, Param(name="clusterStatus", about="online or offline")),
)
def list_clusters(call: Call) -> Response:
    where = ClusterFilter(names=_names(call.text("clusterNames")), status=call.text("clusterStatus"))
    request = call.page("cluster")
    return call.listing("cluster", request, call.services.reads.clusters(call.actor, where, request), _CLUSTERS)


@routes.add("GET", "/cluster/{clusterName}", Access.ROOT, answer=ClusterAnswer)
def show_cluster(call: Call) -> Response:
    return _shown(call, ClusterName(call.path("clusterName")))


@routes.add("PUT", "/cluster/{clusterName}", Access.ROOT, answer=ClusterAnswer)
def update_cluster(call: Call, body: UpdateClusterRequest) -> Response:
    call.submit(body.to_command(call.path("clusterName")))
    return _shown(call, ClusterName(call.path("clusterName")))


@routes.add("DELETE", "/cluster/{clusterName}", Access.ROOT)
def delete_cluster(call: Call) -> Response:
    call.submit(DeleteCluster(name=ClusterName(call.path("clusterName"))))
    return empty()


@routes.add(
    "GET",
    "/cluster/{clusterName}/nodeInfos",
    Access.ROOT,
    answer=NodeInfosAnswer,
    params=(
        Param(name="pageNo", kind="integer", low=1),
        Param(name="pageSize", kind="integer", low=1, high=100),
    ),
)
def show_node_infos(call: Call) -> Response:
    """Every node with the tasks on it."""
    name = ClusterName(call.path("clusterName"))
    page_no = call.integer("pageNo", 1, low=1)
    page_size = call.integer("pageSize", 100, low=1, high=100)
    uses: Sequence[NodeUse] = call.services.reads.node_use(call.actor, frozenset({name})).get(name, ())
    shown = _paged(uses, page_no, page_size)
    nodes = [node_info_answer(use.node, use.used, use.tasks) for use in shown]
    return reply({"totalCount": len(uses), "nodeList": nodes})


def _shown(call: Call, name: ClusterName) -> Response:
    return reply(cluster_answer(call.services.reads.cluster(call.actor, name)))


def _names(text: str) -> frozenset[ClusterName]:
    return frozenset(ClusterName(name.strip()) for name in text.split(",") if name.strip())


def _labels(text: str) -> dict[str, str]:
    """``k=v,…`` as a mapping."""
    wanted = {}
    for part in text.split(","):
        if part.strip():
            key, separator, value = part.partition("=")
            if not separator:
                raise invalid_field("labels", f"[{part[:80]}] is not key=value")
            wanted[key.strip()] = value.strip()
    return wanted


def _paged(rows: Sequence[Row], page_no: int, page_size: int) -> Sequence[Row]:
    """Pages count from one; no size means everything."""
    if page_size <= 0:
        return rows
    first = max(page_no - 1, 0) * page_size
    return rows[first : first + page_size]
