"""The question "what would the scheduler do if" on the wire, and its answer."""

# ruff: noqa: N815  the names of the fields are the names on the wire

from __future__ import annotations

from typing import Any, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from paddleflow.api.submissions import AnyJobRequest
from paddleflow.api.wire import ResourcesRequest, WireRequest
from paddleflow.domain.clusters import Node
from paddleflow.domain.errors import invalid_field
from paddleflow.domain.ids import DEFAULT_CLUSTER, ClusterName, NodeName, QueueName
from paddleflow.domain.queries import QueueChange, WhatIf, WhatIfAnswer, WouldResize

_CODE = "InvalidArguments"
MOST_NODES = 10_000
"""In one question; a cluster to try things on is free, counting it out is not."""


class QueueChangeRequest(WireRequest):
    name: str = ""
    maxResources: ResourcesRequest | None = None
    minResources: ResourcesRequest | None = None
    weight: int | None = None

    def to_change(self, field: str) -> QueueChange:
        if not self.name:
            raise invalid_field(f"{field}.name", "it is empty, name the queue to change", code=_CODE)
        if self.weight is not None and self.weight < 1:
            raise invalid_field(f"{field}.weight", "it must be at least 1", code=_CODE)
        most, least = self.maxResources, self.minResources
        return QueueChange(
            name=QueueName(self.name),
            max_resources=None if most is None else most.parse(f"{field}.maxResources", _CODE),
            min_resources=None if least is None else least.parse(f"{field}.minResources", _CODE),
            weight=self.weight,
        )


class NewNodesRequest(ResourcesRequest):
    """So many nodes, all alike."""

    count: int = 1
    labels: dict[str, str] = Field(default_factory=dict)
    clusterName: str = ""

    def to_nodes(self, field: str, first: int) -> list[Node]:
        if self.count < 1 or first + self.count > MOST_NODES:
            raise invalid_field(f"{field}.count", f"give at least 1, and at most {MOST_NODES} in all", code=_CODE)
        capacity = self.parse(field, _CODE)
        if capacity.is_zero:
            raise invalid_field(field, "it says no cpu, mem or scalarResources; a node needs some", code=_CODE)
        return [
            Node(
                name=NodeName(f"what-if-{number}"),
                cluster=ClusterName(self.clusterName or DEFAULT_CLUSTER),
                capacity=capacity,
                labels=self.labels,
            )
            for number in range(first + 1, first + self.count + 1)
        ]


class WhatIfRequest(WireRequest):
    queues: list[QueueChangeRequest] = Field(default_factory=list)
    nodes: list[NewNodesRequest] = Field(default_factory=list)
    removeNodes: list[str] = Field(default_factory=list)
    job: AnyJobRequest | None = None

    def to_query(self) -> WhatIf:
        nodes: list[Node] = []
        for index, asked in enumerate(self.nodes):
            nodes.extend(asked.to_nodes(f"nodes[{index}]", len(nodes)))
        return WhatIf(
            queues=tuple(change.to_change(f"queues[{index}]") for index, change in enumerate(self.queues)),
            nodes=tuple(nodes),
            without_nodes=tuple(NodeName(name) for name in self.removeNodes),
            job=None if self.job is None else self.job.to_command(),
        )


class StartAnswer(TypedDict):
    jobID: str
    nodes: list[str]


class EvictAnswer(TypedDict):
    jobID: str
    inFavourOf: str


ResizeAnswer = TypedDict("ResizeAnswer", {"jobID": str, "from": int, "to": int})  # "from" is no name in Python


class AskedJobAnswer(TypedDict):
    wouldStart: bool
    sentence: str
    nodes: list[str]
    details: dict[str, Any]


class WhatIfAnswerBody(TypedDict):
    sentence: str
    start: list[StartAnswer]
    shrink: list[ResizeAnswer]
    grow: list[ResizeAnswer]
    evict: list[EvictAnswer]
    job: NotRequired[AskedJobAnswer]


def what_if_answer(answer: WhatIfAnswer) -> WhatIfAnswerBody:
    body: WhatIfAnswerBody = {
        "sentence": answer.sentence,
        "start": [{"jobID": one.job_id, "nodes": list(one.nodes)} for one in answer.starts],
        "shrink": [_resize(one) for one in answer.shrinks],
        "grow": [_resize(one) for one in answer.grows],
        "evict": [{"jobID": one.job_id, "inFavourOf": one.in_favour_of} for one in answer.evictions],
    }
    if answer.job is not None:
        body["job"] = {
            "wouldStart": answer.job.starts,
            "sentence": answer.job.sentence,
            "nodes": list(answer.job.nodes),
            "details": dict(answer.job.details),
        }
    return body


def _resize(one: WouldResize) -> ResizeAnswer:
    return {"jobID": one.job_id, "from": one.before, "to": one.after}
