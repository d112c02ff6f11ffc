"""Placed jobs of every framework, with addresses, for tests that need no platform around them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from paddleflow.domain.ids import DEFAULT_CLUSTER, JobId, NodeName, QueueName, TaskId, UserName, task_id
from paddleflow.domain.jobs import (
    Address,
    Elasticity,
    FlavourRef,
    Framework,
    Job,
    JobKind,
    JobSpec,
    Member,
    Placement,
)
from paddleflow.domain.resources import Resources

THEN = datetime(2026, 1, 1, 12, tzinfo=UTC)


def member(
    role: str = "worker",
    replicas: int = 1,
    command: str = "python train.py",
    *,
    args: tuple[str, ...] = (),
    env: Mapping[str, str] | None = None,
    cpu: str = "2",
    memory: str = "2Gi",
) -> Member:
    flavour = FlavourRef(resources=Resources.of(cpu, memory))
    return Member(role=role, replicas=replicas, command=command, args=args, env=env or {}, flavour=flavour)


def spec(framework: Framework, *members: Member, elastic: Elasticity | None = None) -> JobSpec:
    return JobSpec(kind=JobKind.DISTRIBUTED, framework=framework, members=members, elastic=elastic)


def placed(asked: JobSpec, *, counts: Mapping[str, int] | None = None, gpus: int = 0, ident: str = "job-a") -> Job:
    """Every task on ``node-1``; ``counts`` says how many a role has now, if not its replicas."""
    placements = []
    for each in asked.members:
        for index in range((counts or {}).get(each.role, each.replicas)):
            first = gpus * len(placements)
            placements.append(
                Placement(
                    task_id=task_id(JobId(ident), each.role, index),
                    role=each.role,
                    index=index,
                    node=NodeName("node-1"),
                    gpus=tuple(range(first, first + gpus)),
                )
            )
    return Job(
        id=JobId(ident),
        name="a job",
        owner=UserName("alice"),
        queue=QueueName("default-queue"),
        cluster=DEFAULT_CLUSTER,
        spec=asked,
        placements=tuple(placements),
        created_at=THEN,
        updated_at=THEN,
    )


def book_of(job: Job, ports: int, host: str = "127.0.0.1", first_port: int = 20000) -> dict[TaskId, Address]:
    return {
        placement.task_id: Address(
            host=host, ports=tuple(range(first_port + number * ports, first_port + (number + 1) * ports))
        )
        for number, placement in enumerate(job.placements)
    }
