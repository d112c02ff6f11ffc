"""Clusters and their nodes: where capacity comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from paddleflow.domain.ids import ClusterName, NodeName
from paddleflow.domain.resources import Resources


class ClusterType(StrEnum):
    KUBERNETES = "Kubernetes"
    K3S = "K3S"
    LOCAL = "Local"


class ClusterStatus(StrEnum):
    ONLINE = "online"
    OFFLINE = "offline"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    id: str
    name: ClusterName
    type: ClusterType
    endpoint: str
    description: str = ""
    source: str = "OnPremise"
    cluster_version: str = ""
    """The version of the cluster's own software, as its administrator gave it."""
    status: ClusterStatus = ClusterStatus.ONLINE
    sealed_credential: str = ""
    """Encrypted at rest; never answered to anyone."""
    setting: str = ""
    namespaces: tuple[str, ...] = ()
    created_at: datetime
    updated_at: datetime
    seq: int = 0
    version: int = 0


class NodeStatus(StrEnum):
    READY = "Ready"
    NOT_READY = "NotReady"
    UNSCHEDULABLE = "Unschedulable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    name: NodeName
    cluster: ClusterName
    capacity: Resources
    status: NodeStatus = NodeStatus.READY
    address: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def schedulable(self) -> bool:
        return self.status is NodeStatus.READY
