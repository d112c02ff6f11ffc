"""Queues and their quotas."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from paddleflow.domain.ids import ClusterName, QueueName
from paddleflow.domain.resources import NOTHING, Resources


class QuotaType(StrEnum):
    ELASTIC = "elasticQuota"
    CAPABILITY = "volcanoCapabilityQuota"


class QueueStatus(StrEnum):
    CREATING = "creating"
    UPDATING = "updating"
    OPEN = "open"
    CLOSING = "closing"
    CLOSED = "closed"
    UNAVAILABLE = "unavailable"


PARENT_LABEL = "paddleflow.baidu.com/elastic-resource-quota-parent"
ISOLATION_LABEL = "paddleflow.baidu.com/resource-isolation-type"
NODE_QUOTA_LABEL = "paddleflow.baidu.com/quota"
"""On a node: the name of the physical quota that owns it; absent or ``public``: it belongs to everybody."""
PHYSICAL = "physical"
PUBLIC = "public"
TREE_ROOT = QueueName("root")
"""The parent of every elastic queue that names none. It need not exist: then it limits and guarantees nothing."""


class QueuePolicy(StrEnum):
    """Names a queue's ``schedulingPolicy`` may hold. Others are kept and mean nothing."""

    PRIORITY = "priority"
    """More urgent jobs first, then first come; how every queue orders its jobs anyway."""
    PREEMPT = "preempt"
    """A job may evict less urgent ones of its own queue."""
    STRICT = "strict"
    """Nobody overtakes a job that has to wait."""
    SPREAD = "spread"
    """Tasks go to the emptiest nodes instead of the fullest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    id: str
    name: QueueName
    namespace: str
    cluster: ClusterName
    quota_type: QuotaType = QuotaType.ELASTIC
    max_resources: Resources = NOTHING
    min_resources: Resources = NOTHING
    location: Mapping[str, str] = field(default_factory=dict)
    policies: tuple[str, ...] = ()
    """Names of sort policies (the wire's ``schedulingPolicy``)."""
    weight: int = 1
    """Its part of what is left when every guarantee is met, beside the weights of its siblings."""
    status: QueueStatus = QueueStatus.OPEN
    created_at: datetime
    updated_at: datetime
    seq: int = 0
    version: int = 0

    @property
    def is_unlimited(self) -> bool:
        """A capability queue whose maximum is all zero limits nothing."""
        return self.quota_type is QuotaType.CAPABILITY and self.max_resources.is_zero

    def over_maximum(self, asked: Resources) -> str | None:
        """The resource in which ``asked`` exceeds this queue's maximum, or None."""
        return None if self.is_unlimited else asked.over_named_limit(self.max_resources)

    @property
    def is_physical(self) -> bool:
        """It owns nodes of its own and shares in no others."""
        return self.quota_type is QuotaType.ELASTIC and self.location.get(ISOLATION_LABEL) == PHYSICAL

    @property
    def parent(self) -> QueueName | None:
        """The quota above, in the tree of elastic quotas; the root and physical quotas have none."""
        if self.quota_type is not QuotaType.ELASTIC or self.is_physical or self.name == TREE_ROOT:
            return None
        return QueueName(self.location.get(PARENT_LABEL) or TREE_ROOT)

    @property
    def node_labels(self) -> dict[str, str]:
        """Labels a node must carry to serve this queue, beyond belonging to its pool."""
        return {key: value for key, value in self.location.items() if key not in (PARENT_LABEL, ISOLATION_LABEL)}

    def may_use(self, labels: Mapping[str, str]) -> bool:
        """Whether a node with these labels serves this queue."""
        owner = labels.get(NODE_QUOTA_LABEL, PUBLIC)
        if owner != (self.name if self.is_physical else PUBLIC):
            return False
        return all(labels.get(key) == value for key, value in self.node_labels.items())
