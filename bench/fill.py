"""Finished jobs written straight through the store: the only part of the bench that knows the inside."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from paddleflow.adapters.sql.store import SqlStore
from paddleflow.domain.ids import DEFAULT_CLUSTER, JobId, NodeName, QueueName, UserName, task_id
from paddleflow.domain.jobs import FlavourRef, Job, JobSpec, JobStatus, Member, Placement, Task, TaskStatus
from paddleflow.domain.resources import Resources

BATCH = 2000
OWNER = UserName("root")
QUEUE = QueueName("default-queue")
NODE = NodeName("bench")


def fill(state_dir: Path, count: int) -> list[str]:
    """Store ``count`` finished jobs, each with its task, in an installation whose server is stopped; their ids."""
    store = SqlStore(f"sqlite:///{state_dir / 'paddleflow.db'}")
    begin = datetime.now(UTC) - timedelta(seconds=count)
    ids: list[str] = []
    try:
        for start in range(0, count, BATCH):
            jobs = [_job(number, begin) for number in range(start, min(start + BATCH, count))]
            with store.write() as work:
                for job in jobs:
                    work.jobs.add(job)
                work.jobs.put_tasks([_task(job) for job in jobs])
            ids += [job.id for job in jobs]
    finally:
        store.close()
    return ids


def _job(number: int, begin: datetime) -> Job:
    at = begin + timedelta(seconds=number)
    job_id = JobId(f"job-{number:016x}")
    member = Member(
        flavour=FlavourRef(name="flavour1", resources=Resources.of(cpu="1", memory="1Gi")),
        command="true",
        env={"EPOCHS": "3"},
    )
    return Job(
        id=job_id,
        name=f"filled-{number}",
        owner=OWNER,
        queue=QUEUE,
        cluster=DEFAULT_CLUSTER,
        spec=JobSpec(members=(member,)),
        status=JobStatus.FAILED if number % 10 == 0 else JobStatus.SUCCEEDED,
        placements=(Placement(task_id=task_id(job_id, member.role, 0), role=member.role, index=0, node=NODE),),
        created_at=at,
        activated_at=at,
        finished_at=at,
        updated_at=at,
    )


def _task(job: Job) -> Task:
    failed = job.status is JobStatus.FAILED
    return Task(
        id=job.placements[0].task_id,
        job_id=job.id,
        role="worker",
        index=0,
        node=NODE,
        status=TaskStatus.FAILED if failed else TaskStatus.SUCCEEDED,
        exit_code=1 if failed else 0,
        started_at=job.created_at,
        finished_at=job.created_at,
    )
