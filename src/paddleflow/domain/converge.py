"""What a runtime should be told about a job next, computed from the job's present state alone.

Calls are idempotent by id, so the answer may be carried out twice and only what is true now matters, not which event
made somebody ask.
"""

from __future__ import annotations

from dataclasses import dataclass

from paddleflow.domain.ids import TaskId
from paddleflow.domain.jobs import Job, JobStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeCalls:
    launch: bool = False
    """Start every task of the job that was not started yet."""
    stop: tuple[TaskId, ...] = ()


def next_calls(job: Job) -> RuntimeCalls:
    leaving = tuple(placement.task_id for placement in job.leaving)
    match job.status:
        case JobStatus.PENDING:
            return RuntimeCalls(launch=True)
        case JobStatus.RUNNING:
            return RuntimeCalls(launch=job.spec.elastic is not None, stop=leaving)
        case JobStatus.TERMINATING | JobStatus.PREEMPTING:
            return RuntimeCalls(stop=(*(placement.task_id for placement in job.placements), *leaving))
        case _:
            return RuntimeCalls()
