"""Clusters and their nodes: rows and repository."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from sqlalchemy import bindparam, select

from paddleflow.adapters.sql.session import Session, page_of
from paddleflow.adapters.sql.statements import (
    Row,
    Statement,
    delete_by,
    insert_plain,
    insert_row,
    select_by,
    update_version,
)
from paddleflow.adapters.sql.tables import clusters, nodes
from paddleflow.adapters.sql.values import (
    from_micros,
    mapping_from_json,
    mapping_to_json,
    resources_from_json,
    resources_to_json,
    strings_from_json,
    strings_to_json,
    to_micros,
)
from paddleflow.domain.clusters import Cluster, ClusterStatus, ClusterType, Node, NodeStatus
from paddleflow.domain.ids import ClusterName
from paddleflow.domain.queries import ClusterFilter, Page, PageRequest

_BY_NAME = select_by(clusters, "name")
_ADD = insert_row(clusters)
_SAVE = update_version(clusters, "name")
_DELETE = delete_by(clusters, "name")
_ALL = Statement(select(clusters).order_by(clusters.c.seq))
_IN_ORDER = select(nodes).order_by(nodes.c.cluster, nodes.c.name)
_NODES = Statement(_IN_ORDER)
_NODES_OF = Statement(_IN_ORDER.where(nodes.c.cluster == bindparam("cluster")))
_DELETE_NODES = delete_by(nodes, "cluster")
_ADD_NODE = insert_plain(nodes)


@lru_cache(maxsize=64)
def _page(*, names: int, with_status: bool) -> Statement:
    query = select(clusters).where(clusters.c.seq > bindparam("after"))
    if names:
        query = query.where(clusters.c.name.in_([bindparam(f"name_{n}") for n in range(names)]))
    if with_status:
        query = query.where(clusters.c.status == bindparam("status"))
    return Statement(query.order_by(clusters.c.seq).limit(bindparam("limit")))


def _cluster(row: Row) -> Cluster:
    (
        seq,
        id,
        name,
        type,
        endpoint,
        description,
        source,
        cluster_version,
        status,
        sealed_credential,
        setting,
        namespaces,
        created_at,
        updated_at,
        version,
    ) = row
    return Cluster(
        id=id,
        name=name,
        type=ClusterType(type),
        endpoint=endpoint,
        description=description,
        source=source,
        cluster_version=cluster_version,
        status=ClusterStatus(status),
        sealed_credential=sealed_credential,
        setting=setting,
        namespaces=strings_from_json(namespaces),
        created_at=from_micros(created_at),
        updated_at=from_micros(updated_at),
        seq=seq,
        version=version,
    )


def _row(cluster: Cluster, version: int) -> dict[str, object]:
    return {
        "id": cluster.id,
        "name": cluster.name,
        "type": cluster.type.value,
        "endpoint": cluster.endpoint,
        "description": cluster.description,
        "source": cluster.source,
        "cluster_version": cluster.cluster_version,
        "status": cluster.status.value,
        "sealed_credential": cluster.sealed_credential,
        "setting": cluster.setting,
        "namespaces": strings_to_json(cluster.namespaces),
        "created_at": to_micros(cluster.created_at),
        "updated_at": to_micros(cluster.updated_at),
        "version": version,
    }


def _node(row: Row) -> Node:
    cluster, name, capacity, status, address, labels = row
    return Node(
        name=name,
        cluster=cluster,
        capacity=resources_from_json(capacity),
        status=NodeStatus(status),
        address=address,
        labels=mapping_from_json(labels),
    )


def _node_row(cluster: ClusterName, node: Node) -> dict[str, object]:
    return {
        "cluster": cluster,
        "name": node.name,
        "capacity": resources_to_json(node.capacity),
        "status": node.status.value,
        "address": node.address,
        "labels": mapping_to_json(node.labels),
    }


class SqlClusters:
    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    def find(self, name: ClusterName) -> Cluster | None:
        row = self._session.row(_BY_NAME, {"name": name})
        return None if row is None else _cluster(row)

    def add(self, cluster: Cluster) -> Cluster:
        seq = self._session.insert(_ADD, _row(cluster, 1), kind="cluster", name=cluster.name)
        return replace(cluster, seq=seq, version=1)

    def save(self, cluster: Cluster) -> Cluster:
        version = cluster.version + 1
        self._session.save(_SAVE, _row(cluster, version), kind="cluster", name=cluster.name, seen=cluster.version)
        return replace(cluster, version=version)

    def delete(self, name: ClusterName) -> None:
        self._session.change(_DELETE_NODES, {"cluster": name})
        self._session.change(_DELETE, {"name": name})

    def all(self) -> tuple[Cluster, ...]:
        return tuple(_cluster(row) for row in self._session.rows(_ALL))

    def page(self, where: ClusterFilter, request: PageRequest) -> Page[Cluster]:
        parameters: dict[str, object] = {"after": request.after, "limit": request.limit + 1}
        parameters.update({f"name_{n}": name for n, name in enumerate(sorted(where.names))})
        if where.status:
            parameters["status"] = where.status
        statement = _page(names=len(where.names), with_status=bool(where.status))
        return page_of([_cluster(row) for row in self._session.rows(statement, parameters)], request)

    def nodes(self, cluster: ClusterName | None = None) -> tuple[Node, ...]:
        if cluster is None:
            rows = self._session.rows(_NODES)
        else:
            rows = self._session.rows(_NODES_OF, {"cluster": cluster})
        return tuple(_node(row) for row in rows)

    def replace_nodes(self, cluster: ClusterName, nodes: Sequence[Node]) -> None:
        self._session.change(_DELETE_NODES, {"cluster": cluster})
        if nodes:
            self._session.change_many(_ADD_NODE, [_node_row(cluster, node) for node in nodes])
