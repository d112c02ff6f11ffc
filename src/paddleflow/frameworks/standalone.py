"""One task that knows of no other."""

from __future__ import annotations

from paddleflow.domain.jobs import Job, TaskLaunch
from paddleflow.frameworks.container import launch_of


def launches(job: Job) -> tuple[TaskLaunch, ...]:
    where = {placement.task_id: placement for placement in job.placements}
    return tuple(
        launch_of(job, member, where[task_id], {"PF_JOB_MODE": "Pod"})
        for task_id, member, _ in job.spec.task_slots(job.id)
    )
