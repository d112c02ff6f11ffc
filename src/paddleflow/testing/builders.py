"""Domain objects with everything defaulted but what a test is about."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from paddleflow.domain.clusters import Node, NodeStatus
from paddleflow.domain.ids import DEFAULT_CLUSTER, DEFAULT_QUEUE, JobId, NodeName, QueueName, UserName, task_id
from paddleflow.domain.jobs import FlavourRef, Job, JobSpec, JobStatus, Member, Placement, Priority
from paddleflow.domain.queues import PARENT_LABEL, Queue, QueueStatus, QuotaType
from paddleflow.domain.resources import CPU, GPU, MEMORY, NOTHING, Resources

THEN = datetime(2026, 1, 1, 12, tzinfo=UTC)


def resources(cpu: str = "1", memory: str = "1Gi", gpus: int = 0) -> Resources:
    amounts = {CPU: cpu, MEMORY: memory}
    if gpus:
        amounts[GPU] = str(gpus)
    return Resources.parse(amounts)


def a_member(
    asking: Resources | None = None, command: str = "true", env: Mapping[str, str] | None = None, replicas: int = 1
) -> Member:
    return Member(
        flavour=FlavourRef(resources=asking or resources()),
        command=command,
        env=env or {},
        replicas=replicas,
    )


def a_job(
    name: str = "job-a",
    *,
    queue: str = DEFAULT_QUEUE,
    owner: str = "alice",
    asking: Resources | None = None,
    priority: Priority = Priority.NORMAL,
    status: JobStatus = JobStatus.INIT,
    seq: int = 1,
    node: str = "",
    gpus: tuple[int, ...] = (),
    member: Member | None = None,
    spec: JobSpec | None = None,
    at: datetime = THEN,
) -> Job:
    """A single job; one that is past ``init`` is placed on ``node``."""
    spec = spec or JobSpec(members=(member or a_member(asking),))
    job_id = JobId(name)
    placements = tuple(
        Placement(
            task_id=task_id(job_id, each.role, index), role=each.role, index=index, node=NodeName(node), gpus=gpus
        )
        for each, index in spec.slots
        if node
    )
    return Job(
        id=job_id,
        name=name,
        owner=UserName(owner),
        queue=QueueName(queue),
        cluster=DEFAULT_CLUSTER,
        priority=priority,
        spec=spec,
        status=status,
        placements=placements,
        created_at=at,
        updated_at=at,
        seq=seq,
        version=1,
    )


def a_queue(
    name: str = DEFAULT_QUEUE,
    *,
    maximum: Resources | None = None,
    minimum: Resources = NOTHING,
    parent: str = "",
    weight: int = 1,
    policies: tuple[str, ...] = (),
    location: Mapping[str, str] | None = None,
    status: QueueStatus = QueueStatus.OPEN,
    quota_type: QuotaType = QuotaType.ELASTIC,
) -> Queue:
    return Queue(
        id=f"queue-{name}",
        name=QueueName(name),
        namespace="default",
        cluster=DEFAULT_CLUSTER,
        quota_type=quota_type,
        max_resources=maximum if maximum is not None else resources("100", "100Gi"),
        min_resources=minimum,
        location={**(location or {}), **({PARENT_LABEL: parent} if parent else {})},
        weight=weight,
        policies=policies,
        status=status,
        created_at=THEN,
        updated_at=THEN,
    )


def a_node(
    name: str = "node-1",
    having: Resources | None = None,
    status: NodeStatus = NodeStatus.READY,
    labels: Mapping[str, str] | None = None,
) -> Node:
    return Node(
        name=NodeName(name),
        cluster=DEFAULT_CLUSTER,
        capacity=having or resources("8", "32Gi", gpus=8),
        status=status,
        labels=labels or {},
    )
