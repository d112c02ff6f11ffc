"""Jobs and their tasks: rows and repository. Lists are in job_pages.py, the JSON of a job's spec in specs.py."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import lru_cache

from sqlalchemy import bindparam, func, select, union_all

from paddleflow.adapters.sql.job_pages import page_rows
from paddleflow.adapters.sql.session import Session, page_of, stale
from paddleflow.adapters.sql.specs import (
    course_from_json,
    course_to_json,
    placements_from_json,
    placements_to_json,
    spec_from_json,
    spec_to_json,
)
from paddleflow.adapters.sql.statements import (
    Row,
    Statement,
    delete_by,
    insert_plain,
    insert_row,
    select_by,
    update_version,
    upsert,
)
from paddleflow.adapters.sql.tables import job_labels, jobs, tasks
from paddleflow.adapters.sql.values import (
    from_micros,
    from_micros_or_null,
    mapping_from_json,
    mapping_to_json,
    to_json,
    to_micros,
    to_micros_or_null,
)
from paddleflow.domain.ids import JobId, QueueName
from paddleflow.domain.jobs import Job, JobStatus, Priority, Task, TaskStatus, Usage
from paddleflow.domain.queries import JobFilter, Page, PageRequest

_BATCHES = (4, 32, 500)
"""How many ids one question may have. A batch is filled up with its last id, so that there are three statements."""

_BY_ID = select_by(jobs, "id")
_ADD = insert_row(jobs)
# What hardly ever changes is compared, not written: an index is only touched when a column of it is.
_SAVE = update_version(
    jobs, "id", unchanged=("labels", "owner", "queue", "cluster", "name", "spec", "annotations", "created_at")
)
_SAVE_ALL = update_version(jobs, "id")
_DELETE = delete_by(jobs, "id")
_COUNT_BY_STATUS = Statement(select(jobs.c.queue, jobs.c.status, func.count()).group_by(jobs.c.queue, jobs.c.status))

# Along the index of changes: an ended job hardly ever changes again.
_ENDED_LAST = Statement(
    select(jobs)
    .where(jobs.c.finished_at.is_not(None))
    .order_by(jobs.c.updated_at.desc(), jobs.c.seq.desc())
    .limit(bindparam("limit"))
)
# Few jobs have one, so their specs are searched for it: an encoded spec names only what was given.
_ENDED_WITH_TTL = Statement(
    select(jobs).where(jobs.c.finished_at.is_not(None), jobs.c.spec.contains('"ttl_s":')).order_by(jobs.c.seq)
)

_ADD_LABEL = insert_plain(job_labels)
_DELETE_LABELS = delete_by(job_labels, "job_seq")

_TASKS = Statement(
    select(tasks).where(tasks.c.job_id == bindparam("job_id")).order_by(tasks.c.role, tasks.c["index"], tasks.c.id)
)
_PUT_TASK = upsert(tasks, "id")

_of_queue = (jobs.c.queue == bindparam("queue"), jobs.c.activated_at <= bindparam("end"))
_overlapping = union_all(
    select(jobs.c.seq).where(*_of_queue, jobs.c.finished_at >= bindparam("start")),
    select(jobs.c.seq).where(*_of_queue, jobs.c.finished_at.is_(None)),
)
_FINISHED_BETWEEN = Statement(select(jobs).where(jobs.c.seq.in_(_overlapping)).order_by(jobs.c.seq))


@lru_cache(maxsize=len(_BATCHES))
def _by_ids(count: int) -> Statement:
    return Statement(select(jobs).where(jobs.c.id.in_([bindparam(f"id_{n}") for n in range(count)])))


@lru_cache(maxsize=32)
def _in_status(count: int) -> Statement:
    among = jobs.c.status.in_([bindparam(f"status_{n}") for n in range(count)])
    return Statement(select(jobs).where(among).order_by(jobs.c.seq))


def _job(row: Row) -> Job:
    (
        seq,
        id,
        name,
        owner,
        queue,
        cluster,
        priority,
        labels,
        annotations,
        spec,
        status,
        message,
        placements,
        created_at,
        activated_at,
        finished_at,
        updated_at,
        version,
        course,
    ) = row
    return Job(
        id=id,
        name=name,
        owner=owner,
        queue=queue,
        cluster=cluster,
        priority=Priority(priority),
        labels=mapping_from_json(labels),
        annotations=mapping_from_json(annotations),
        spec=spec_from_json(spec),
        status=JobStatus(status),
        message=message,
        placements=placements_from_json(placements),
        created_at=from_micros(created_at),
        activated_at=from_micros_or_null(activated_at),
        finished_at=from_micros_or_null(finished_at),
        updated_at=from_micros(updated_at),
        seq=seq,
        version=version,
        **({} if course is None else course_from_json(course)),
    )


def _row(job: Job, version: int) -> dict[str, object]:
    return {
        "id": job.id,
        "name": job.name,
        "owner": job.owner,
        "queue": job.queue,
        "cluster": job.cluster,
        "priority": job.priority.value,
        "labels": mapping_to_json(job.labels),
        "annotations": mapping_to_json(job.annotations),
        "spec": spec_to_json(job.spec),
        "status": job.status.value,
        "message": job.message,
        "placements": placements_to_json(job.placements),
        "created_at": to_micros(job.created_at),
        "activated_at": to_micros_or_null(job.activated_at),
        "finished_at": to_micros_or_null(job.finished_at),
        "updated_at": to_micros(job.updated_at),
        "version": version,
        "course": course_to_json(job),
    }


def _task(row: Row) -> Task:
    (
        id,
        job_id,
        role,
        index,
        node,
        gpus,
        status,
        message,
        exit_code,
        signal,
        cpu_s,
        max_memory_bytes,
        memory_bytes,
        started_at,
        finished_at,
    ) = row
    return Task(
        id=id,
        job_id=job_id,
        role=role,
        index=index,
        node=node,
        gpus=tuple(json.loads(gpus)),
        status=TaskStatus(status),
        message=message,
        exit_code=exit_code,
        signal=signal,
        usage=Usage(cpu_s=cpu_s, max_memory_bytes=max_memory_bytes, memory_bytes=memory_bytes),
        started_at=from_micros_or_null(started_at),
        finished_at=from_micros_or_null(finished_at),
    )


def _task_row(task: Task) -> dict[str, object]:
    return {
        "id": task.id,
        "job_id": task.job_id,
        "role": task.role,
        "index": task.index,
        "node": task.node,
        "gpus": to_json(task.gpus),
        "status": task.status.value,
        "message": task.message,
        "exit_code": task.exit_code,
        "signal": task.signal,
        "cpu_s": float(task.usage.cpu_s),
        "max_memory_bytes": task.usage.max_memory_bytes,
        "memory_bytes": task.usage.memory_bytes,
        "started_at": to_micros_or_null(task.started_at),
        "finished_at": to_micros_or_null(task.finished_at),
    }


class SqlJobs:
    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    def find(self, id: JobId) -> Job | None:
        row = self._session.row(_BY_ID, {"id": id})
        return None if row is None else _job(row)

    def find_many(self, ids: Iterable[JobId]) -> tuple[Job, ...]:
        wanted = list(dict.fromkeys(ids))
        found: list[Job] = []
        for start in range(0, len(wanted), _BATCHES[-1]):
            batch = wanted[start : start + _BATCHES[-1]]
            size = next(size for size in _BATCHES if size >= len(batch))
            batch += batch[-1:] * (size - len(batch))
            parameters = {f"id_{n}": id for n, id in enumerate(batch)}
            found += [_job(row) for row in self._session.rows(_by_ids(size), parameters)]
        return tuple(found)

    def add(self, job: Job) -> Job:
        seq = self._session.insert(_ADD, _row(job, 1), kind="job", name=job.id)
        self._add_labels(seq, job.labels)
        return replace(job, seq=seq, version=1)

    def save(self, job: Job) -> Job:
        version = job.version + 1
        row = _row(job, version)
        if self._session.update(_SAVE, row, key=job.id, seen=job.version) is None:
            seq = self._session.update(_SAVE_ALL, row, key=job.id, seen=job.version)
            if seq is None:
                raise stale("job", job.id)
            self._session.change(_DELETE_LABELS, {"job_seq": seq})
            self._add_labels(seq, job.labels)
        return replace(job, version=version)

    def _add_labels(self, seq: int, labels: Mapping[str, str]) -> None:
        if labels:
            rows = [{"job_seq": seq, "key": key, "value": value} for key, value in labels.items()]
            self._session.change_many(_ADD_LABEL, rows)

    def delete(self, id: JobId) -> None:
        """Tasks and labels go by their foreign keys."""
        self._session.change(_DELETE, {"id": id})

    def page(self, where: JobFilter, request: PageRequest) -> Page[Job]:
        return page_of([_job(row) for row in page_rows(self._session, where, request)], request)

    def in_status(self, statuses: frozenset[JobStatus]) -> tuple[Job, ...]:
        if not statuses:
            return ()
        wanted = {f"status_{n}": status.value for n, status in enumerate(statuses)}
        return tuple(_job(row) for row in self._session.rows(_in_status(len(wanted)), wanted))

    def ended_with_ttl(self) -> tuple[Job, ...]:
        found = (_job(row) for row in self._session.rows(_ENDED_WITH_TTL))
        return tuple(job for job in found if job.is_terminal and job.spec.policy.ttl_s is not None)

    def ended_last(self, limit: int) -> tuple[Job, ...]:
        return tuple(_job(row) for row in self._session.rows(_ENDED_LAST, {"limit": limit}))

    def count_by_status(self) -> Mapping[tuple[QueueName, JobStatus], int]:
        rows = self._session.rows(_COUNT_BY_STATUS)
        return {(QueueName(queue), JobStatus(status)): count for queue, status, count in rows}

    def finished_between(self, queue: QueueName, start: datetime, end: datetime) -> tuple[Job, ...]:
        window = {"queue": queue, "start": to_micros(start), "end": to_micros(end)}
        return tuple(_job(row) for row in self._session.rows(_FINISHED_BETWEEN, window))

    def tasks(self, id: JobId) -> tuple[Task, ...]:
        return tuple(_task(row) for row in self._session.rows(_TASKS, {"job_id": id}))

    def put_tasks(self, tasks: Sequence[Task]) -> None:
        if tasks:
            self._session.change_many(_PUT_TASK, [_task_row(task) for task in tasks])
