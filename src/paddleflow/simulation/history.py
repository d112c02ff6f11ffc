"""What a platform has run, as a trace; and the nodes and queues it ran on, as the cluster of a replay.

A row of a trace is a number of tasks that are alike, so a job of several roles becomes what asks for the same in all:
as many tasks as have GPUs (or, without GPUs, as there are), each with its part of the whole job, rounded up. An elastic
job is told with the mean number of tasks it had, and as long as it would have run with so many. Node selectors and the
sizes an elastic job accepts are not told: a trace has no words for them.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from paddleflow.domain.clusters import Node
from paddleflow.domain.errors import Invalid
from paddleflow.domain.ids import ClusterName, QueueName
from paddleflow.domain.jobs import Elasticity, Job, JobSpec, Task
from paddleflow.domain.queues import Queue, QueueStatus, QuotaType
from paddleflow.domain.resources import CPU, GPU, MEMORY, NOTHING, Resources, format_units
from paddleflow.simulation.cluster import SIMULATED, Capacity
from paddleflow.simulation.trace import OWN_NEEDED, OWN_OPTIONAL, TraceJob

COLUMNS = (*OWN_NEEDED, *OWN_OPTIONAL)
_DAWN = datetime.fromtimestamp(0, UTC)


def needs_tasks(job: Job) -> bool:
    """Whether the job's own row does not tell how long it ran: its size changed, or nobody saw it running."""
    return job.spec.elastic is not None or job.started_at is None


def past_job(job: Job, tasks: Sequence[Task]) -> TraceJob | None:
    """An ended job as a trace tells it, its submission in seconds since 1970; None if its last attempt never ran.

    ``tasks`` may be left empty for a job that does not need them.
    """
    began = job.started_at or _first_start(job, tasks)
    if began is None or job.finished_at is None:
        return None
    duration_s = max(0.0, (job.finished_at - began).total_seconds())
    elastic, count = job.spec.elastic, 0
    if elastic is not None:
        count, duration_s = _evened(elastic, tasks, began, job.finished_at)
    count, each = _alike(job.spec, count)
    if not (each.gpus or each.cpu_milli or each.memory_bytes):
        return None  # it asked only for what a trace does not know
    return TraceJob(
        id=job.id,
        row=0,
        submit_s=round(job.created_at.timestamp(), 3),
        duration_s=round(duration_s, 3),
        gpus=each.gpus,
        cpu_milli=each.cpu_milli,
        memory_bytes=each.memory_bytes,
        queue=job.queue,
        priority=job.priority,
        tasks=count,
        min_tasks=None if elastic is None else elastic.least,
        max_tasks=None if elastic is None else elastic.most,
        limit_s=job.spec.policy.deadline_s,
    )


def spell_history(jobs: Iterable[TraceJob]) -> str:
    """The whole text of a trace that holds these jobs."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(COLUMNS)
    for job in jobs:
        rows.writerow(
            (
                f"{job.submit_s:.3f}",
                f"{job.duration_s:.3f}",
                job.gpus,
                format_units(CPU, job.cpu_milli),
                format_units(MEMORY, job.memory_bytes),
                job.queue,
                job.priority.name,
                job.tasks,
                job.min_tasks,
                job.max_tasks,
                None if job.limit_s is None else f"{job.limit_s:.3f}",
                job.id,
            )
        )
    return text.getvalue()


def present_capacity(
    cluster: ClusterName, nodes: Iterable[Node], queues: Iterable[Queue], jobs: Iterable[TraceJob] = ()
) -> Capacity:
    """The ready nodes of a cluster and its queues, all of them open, as a place to replay ``jobs`` on.

    A queue that the jobs name and that is gone by now guarantees and limits nothing: leaving its jobs out would replay
    an emptier cluster than there was.
    """
    ready = tuple(replace(node, cluster=SIMULATED) for node in nodes if node.cluster == cluster and node.schedulable)
    if not ready:
        raise Invalid(
            f"cluster[{cluster[:80]}] has no ready node to replay on; describe a cluster instead",
            details={"field": "clusterName"},
        )
    kept = {
        queue.name: replace(queue, cluster=SIMULATED, status=QueueStatus.OPEN)
        for queue in queues
        if queue.cluster == cluster
    }
    gone = dict.fromkeys(QueueName(job.queue) for job in jobs if job.queue and job.queue not in kept)
    return Capacity(nodes=ready, queues=(*kept.values(), *map(_unlimited, gone)))


def _unlimited(name: QueueName) -> Queue:
    return Queue(
        id=f"queue-{name}",
        name=name,
        namespace="",
        cluster=SIMULATED,
        quota_type=QuotaType.CAPABILITY,
        created_at=_DAWN,
        updated_at=_DAWN,
    )


def _first_start(job: Job, tasks: Iterable[Task]) -> datetime | None:
    """When a job began that ended before anybody saw it running: its runtime knows."""
    mine = job.task_ids
    return min((task.started_at for task in tasks if task.id in mine and task.started_at is not None), default=None)


def _evened(elastic: Elasticity, tasks: Iterable[Task], began: datetime, ended: datetime) -> tuple[int, float]:
    """How many tasks an elastic job had in the mean, and how long it would have run with exactly so many."""
    work_s = 0.0
    for task in tasks:
        if task.role == elastic.role and task.started_at is not None:
            spent = min(ended, task.finished_at or ended) - max(began, task.started_at)
            work_s += max(0.0, spent.total_seconds())
    run_s = max(0.0, (ended - began).total_seconds())
    if not (work_s and run_s):
        return elastic.least, run_s
    size = max(elastic.least, min(elastic.most, round(work_s / run_s)))
    return size, work_s / size


def _alike(spec: JobSpec, elastic_size: int) -> tuple[int, Resources]:
    """The job as equal tasks: how many, and what each asks for."""
    whole, with_gpus, every = NOTHING, 0, 0
    for member in spec.members:
        is_elastic = spec.elastic is not None and spec.elastic.role == member.role
        count = elastic_size if is_elastic else member.replicas
        whole = whole + member.flavour.resources * count
        every += count
        with_gpus += count if member.flavour.resources.gpus else 0
    count = max(1, elastic_size or with_gpus or every)
    return count, Resources({name: -(-whole.get(name) // count) for name in (GPU, CPU, MEMORY)})
