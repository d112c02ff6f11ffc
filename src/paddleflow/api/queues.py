"""Queues on the wire. Resource objects come in with ``mem`` and go out with ``memory``."""

# ruff: noqa: N815  the names of the fields are the names on the wire

from __future__ import annotations

from typing import NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from paddleflow.api.wire import (
    PageAnswer,
    ResourcesAnswer,
    ResourcesRequest,
    WireRequest,
    local_time,
    resources_answer,
)
from paddleflow.domain.commands import CreateQueue, UpdateQueue
from paddleflow.domain.ids import QueueName
from paddleflow.domain.queues import Queue
from paddleflow.domain.resources import Resources

_CODE = "InvalidComputeResource"


class CreateQueueRequest(WireRequest):
    name: str = ""
    namespace: str = ""
    clusterName: str = ""
    quotaType: str = ""
    maxResources: ResourcesRequest = ResourcesRequest()
    minResources: ResourcesRequest = ResourcesRequest()
    location: dict[str, str] = Field(default_factory=dict)
    schedulingPolicy: list[str] = Field(default_factory=list)
    weight: int = 1

    def to_command(self) -> CreateQueue:
        return CreateQueue(
            name=self.name,
            namespace=self.namespace,
            cluster=self.clusterName,
            quota_type=self.quotaType,
            max_resources=self.maxResources.parse("maxResources", _CODE),
            min_resources=self.minResources.parse("minResources", _CODE),
            location=self.location,
            policies=tuple(self.schedulingPolicy),
            weight=self.weight,
        )


class UpdateQueueRequest(WireRequest):
    maxResources: ResourcesRequest = ResourcesRequest()
    minResources: ResourcesRequest = ResourcesRequest()
    location: dict[str, str] = Field(default_factory=dict)
    schedulingPolicy: list[str] = Field(default_factory=list)
    weight: int | None = None

    def to_command(self, name: str, status: str | None = None) -> UpdateQueue:
        return UpdateQueue(
            name=QueueName(name),
            max_resources=self.maxResources.parse("maxResources", _CODE),
            max_dropped=self.maxResources.dropped(),
            min_resources=self.minResources.parse("minResources", _CODE),
            min_dropped=self.minResources.dropped(),
            location=self.location,
            policies=tuple(self.schedulingPolicy),
            weight=self.weight,
            status=status,
        )


class QueueAnswer(TypedDict):
    id: str
    name: str
    namespace: str
    clusterName: str
    quotaType: str
    minResources: ResourcesAnswer
    maxResources: ResourcesAnswer
    location: dict[str, str]
    schedulingPolicy: NotRequired[list[str]]
    weight: int
    parent: NotRequired[str]
    """The quota above, which may be a root that nobody created."""
    status: str
    createTime: str
    updateTime: str
    usedResources: NotRequired[ResourcesAnswer]
    idleResources: NotRequired[ResourcesAnswer]


class QueueListAnswer(PageAnswer):
    queueList: list[QueueAnswer]


def queue_answer(queue: Queue) -> QueueAnswer:
    """As lists show it."""
    answer = QueueAnswer(
        id=queue.id,
        name=queue.name,
        namespace=queue.namespace,
        clusterName=queue.cluster,
        quotaType=queue.quota_type,
        minResources=resources_answer(queue.min_resources),
        maxResources=resources_answer(queue.max_resources),
        location=dict(queue.location),
        weight=queue.weight,
        status=queue.status,
        createTime=local_time(queue.created_at),
        updateTime=local_time(queue.updated_at),
    )
    if queue.policies:
        answer["schedulingPolicy"] = list(queue.policies)
    if queue.parent is not None:
        answer["parent"] = queue.parent
    return answer


def queue_use_answer(queue: Queue, used: Resources, idle: Resources) -> QueueAnswer:
    """As it is shown alone: with what is used and what is left."""
    answer = queue_answer(queue)
    answer["usedResources"] = resources_answer(used)
    answer["idleResources"] = resources_answer(idle)
    return answer
