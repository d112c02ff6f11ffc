"""What a runtime should be told about a job next, computed from the job's present state alone.

Calls are idempotent by id, so the answer may be carried out twice and only what is true now matters, not which event
made somebody ask.
"""

from __future__ import annotations

from enum import StrEnum

from paddleflow.domain.jobs import Job, JobStatus


class RuntimeCall(StrEnum):
    LAUNCH = "launch"
    STOP = "stop"


def next_call(job: Job) -> RuntimeCall | None:
    match job.status:
        case JobStatus.PENDING:
            return RuntimeCall.LAUNCH
        case JobStatus.TERMINATING | JobStatus.PREEMPTING:
            return RuntimeCall.STOP
        case _:
            return None
