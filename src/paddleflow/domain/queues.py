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
