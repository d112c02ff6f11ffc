"""Queues, and who may use them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from paddleflow.sdk.session import Session, present, require, segment

ResourceMap = Mapping[str, Any]
"""``{"cpu": "4", "mem": "8Gi", "scalarResources": {"nvidia.com/gpu": "1"}}``."""


@dataclass(frozen=True)
class QueueInfo:
    name: str
    status: str
    namespace: str
    clusterName: str
    quotaType: str
    maxResources: dict[str, Any]
    minResources: dict[str, Any] = field(default_factory=dict)
    usedResources: dict[str, Any] | None = None
    """Only where one queue was asked for, not in lists; so too ``idleResources``."""
    idleResources: dict[str, Any] | None = None
    location: dict[str, str] = field(default_factory=dict)
    schedulingPolicy: list[str] = field(default_factory=list)
    createTime: str = ""
    updateTime: str = ""

    @classmethod
    def from_wire(cls, data: Mapping[str, Any]) -> QueueInfo:
        return cls(
            name=data["name"],
            status=data.get("status", ""),
            namespace=data.get("namespace", ""),
            clusterName=data.get("clusterName", ""),
            quotaType=data.get("quotaType", ""),
            maxResources=data.get("maxResources") or {},
            minResources=data.get("minResources") or {},
            usedResources=data.get("usedResources"),
            idleResources=data.get("idleResources"),
            location=data.get("location") or {},
            schedulingPolicy=data.get("schedulingPolicy") or [],
            createTime=data.get("createTime", ""),
            updateTime=data.get("updateTime", ""),
        )


@dataclass(frozen=True)
class GrantInfo:
    username: str
    resourceName: str


class QueueCalls(Session):
    """What the client can do with queues and their grants."""

    def add_queue(
        self,
        name: str,
        namespace: str,
        clusterName: str | None,  # noqa: N803
        maxResources: ResourceMap,  # noqa: N803
        minResources: ResourceMap | None = None,  # noqa: N803
        schedulingPolicy: Sequence[str] | None = None,  # noqa: N803
        location: Mapping[str, str] | None = None,
        quotaType: str | None = None,  # noqa: N803
    ) -> tuple[bool, None]:
        body = present(
            name=require(name, "InvalidQueueName", "name"),
            namespace=require(namespace, "InvalidNameSpace", "namespace"),
            clusterName=clusterName,
            maxResources=maxResources,
            minResources=minResources,
            schedulingPolicy=schedulingPolicy,
            location=location,
            quotaType=quotaType,
        )
        self._create("/queue", body)
        return True, None

    def update_queue(
        self,
        queuename: str,
        maxResources: ResourceMap | None = None,  # noqa: N803
        minResources: ResourceMap | None = None,  # noqa: N803
        schedulingPolicy: Sequence[str] | None = None,  # noqa: N803
        location: Mapping[str, str] | None = None,
    ) -> tuple[bool, None]:
        body = present(
            maxResources=maxResources or None,
            minResources=minResources or None,
            schedulingPolicy=schedulingPolicy,
            location=location,
        )
        self._put(_queue_path(queuename), body)
        return True, None

    def del_queue(self, queuename: str) -> tuple[bool, None]:
        self._delete(_queue_path(queuename))
        return True, None

    def list_queue(self, maxsize: int = 100, marker: str | None = None) -> tuple[bool, list[QueueInfo], str | None]:
        data = self._get("/queue", {"maxKeys": maxsize, "marker": marker})
        return True, [QueueInfo.from_wire(queue) for queue in data["queueList"]], data.get("nextMarker")

    def show_queue(self, queuename: str) -> tuple[bool, QueueInfo]:
        return True, QueueInfo.from_wire(self._get(_queue_path(queuename)))

    def grant_queue(self, username: str, queuename: str) -> tuple[bool, None]:
        body = {
            "userName": require(username, "InvalidUser", "username"),
            "resourceType": "queue",
            "resourceID": require(queuename, "InvalidQueueName", "queuename"),
        }
        self._create("/grant", body)
        return True, None

    def ungrant_queue(self, username: str, queuename: str) -> tuple[bool, None]:
        params = {
            "username": require(username, "InvalidUser", "username"),
            "resourceType": "queue",
            "resourceID": require(queuename, "InvalidQueueName", "queuename"),
        }
        self._delete("/grant", params)
        return True, None

    def show_queue_grant(self, username: str | None = None, maxsize: int = 100) -> tuple[bool, list[GrantInfo]]:
        data = self._get("/grant", {"username": username, "maxKeys": maxsize})
        grants = [
            GrantInfo(username=grant["userName"], resourceName=grant["resourceID"])
            for grant in data["grantList"]
            if grant.get("resourceType", "queue") == "queue"
        ]
        return True, grants


def _queue_path(queuename: str) -> str:
    return f"/queue/{segment(require(queuename, 'InvalidQueueName', 'queuename'))}"
