"""One task that knows of no other."""

from __future__ import annotations

from paddleflow.domain.jobs import Job, JobKind, JobSpec, TaskLaunch
from paddleflow.frameworks.container import launch_of
from paddleflow.frameworks.rules import bad


def check(spec: JobSpec) -> None:
    if spec.kind is JobKind.DISTRIBUTED:
        raise bad("framework", "standalone is the framework of single jobs; name the one that connects the tasks")
    if len(spec.members) != 1 or spec.members[0].replicas != 1:
        raise bad("members", "a single job has one member with one replica")
    if spec.elastic is not None:
        raise bad("elastic", "a single job has one task and cannot change its size; submit a distributed job")


def launches(job: Job) -> tuple[TaskLaunch, ...]:
    return tuple(
        launch_of(
            job,
            job.spec.member_at(placement.role, placement.index),
            placement,
            {"PF_JOB_MODE": "Pod", "PF_WORLD_SIZE": "1", "PF_TASK_RANK": "0"},
        )
        for placement in job.placements
    )
