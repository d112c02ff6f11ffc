"""Queues, and who may use them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from paddleflow.sdk.session import Session, present, require, segment
from paddleflow.sdk.words import PARENT_LABEL

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
    weight: int = 1
    parent: str | None = None
    """The quota above, in the tree of elastic quotas."""

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
            weight=data.get("weight", 1),
            parent=data.get("parent"),
        )


@dataclass(frozen=True)
class GrantInfo:
    username: str
    resourceName: str


@dataclass(frozen=True)
class WhatIfInfo:
    sentence: str
    start: list[dict[str, Any]] = field(default_factory=list)
    """``{"jobID", "nodes"}`` of each job that would start."""
    shrink: list[dict[str, Any]] = field(default_factory=list)
    """``{"jobID", "from", "to"}``, as in ``grow``."""
    grow: list[dict[str, Any]] = field(default_factory=list)
    evict: list[dict[str, Any]] = field(default_factory=list)
    """``{"jobID", "inFavourOf"}``."""
    job: dict[str, Any] | None = None
    """Of the job asked about: ``{"wouldStart", "sentence", "nodes", "details"}``."""

    @classmethod
    def from_wire(cls, data: Mapping[str, Any]) -> WhatIfInfo:
        return cls(
            sentence=data["sentence"],
            start=data.get("start") or [],
            shrink=data.get("shrink") or [],
            grow=data.get("grow") or [],
            evict=data.get("evict") or [],
            job=data.get("job"),
        )


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
        *,
        weight: int | None = None,
        parent: str | None = None,
    ) -> tuple[bool, None]:
        """``parent`` is the quota above; it has to be there."""
        body = present(
            name=require(name, "InvalidQueueName", "name"),
            namespace=require(namespace, "InvalidNameSpace", "namespace"),
            clusterName=clusterName,
            maxResources=maxResources,
            minResources=minResources,
            schedulingPolicy=schedulingPolicy,
            location=_located(location, parent),
            quotaType=quotaType,
            weight=weight,
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
        *,
        weight: int | None = None,
        parent: str | None = None,
    ) -> tuple[bool, None]:
        """Change what is given. An empty ``parent`` puts the queue under the root again."""
        body = present(
            maxResources=maxResources or None,
            minResources=minResources or None,
            schedulingPolicy=schedulingPolicy,
            location=_located(location, parent),
            weight=weight,
        )
        self._put(_queue_path(queuename), body)
        return True, None

    def close_queue(self, queuename: str) -> tuple[bool, None]:
        """Let it accept and start nothing any more; what runs goes on."""
        self._put(_queue_path(queuename), params={"action": "close"})
        return True, None

    def open_queue(self, queuename: str) -> tuple[bool, None]:
        self._put(_queue_path(queuename), params={"action": "open"})
        return True, None

    def what_if(
        self,
        queues: Sequence[Mapping[str, Any]] = (),
        nodes: Sequence[Mapping[str, Any]] = (),
        remove_nodes: Sequence[str] = (),
        job: Mapping[str, Any] | None = None,
    ) -> tuple[bool, WhatIfInfo]:
        """What the scheduler would do next if these things were so; nothing is carried out.

        ``queues`` are changes such as ``{"name": "q", "maxResources": {"cpu": "8"}, "weight": 2}``, ``nodes`` are nodes
        to add such as ``{"count": 2, "cpu": "8", "mem": "32Gi"}``, ``job`` is a job in the shape of a request body.
        """
        body = present(queues=list(queues), nodes=list(nodes), removeNodes=list(remove_nodes), job=job)
        return True, WhatIfInfo.from_wire(self._call("POST", "/queue/whatIf", body=body, repeatable=True))

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


def _located(location: Mapping[str, str] | None, parent: str | None) -> Mapping[str, str] | None:
    return location if parent is None else {**(location or {}), PARENT_LABEL: parent}


def _queue_path(queuename: str) -> str:
    return f"/queue/{segment(require(queuename, 'InvalidQueueName', 'queuename'))}"
