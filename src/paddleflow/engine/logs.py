"""Logs: which runtime holds a task's log, who may read it, and what is said where a part of it was not kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from paddleflow.domain.access import require_job
from paddleflow.domain.errors import NotFound, not_found
from paddleflow.domain.ids import ClusterName, JobId, TaskId
from paddleflow.domain.jobs import Job, Task
from paddleflow.domain.users import Actor
from paddleflow.ports.runtime import LogChunk, Runtime
from paddleflow.ports.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskLog:
    task_id: TaskId
    text: str
    has_more: bool
    """There are lines beyond those shown."""
    truncated: bool
    """The log itself lost lines (its cap was reached, the disk was full), or the byte limit cut what is shown."""


CUT_OFF = b"\n[paddleflow: what was written after this is lost, the disk was full]\n"


def gap_notice(start: int, end: int) -> bytes:
    """The line that stands in a log in place of bytes that were not kept."""
    lost = end - start
    return f"\n[paddleflow: {lost} bytes are left out here, the log is over its cap or the disk was full]\n".encode()


def requested_start(start: int, size: int) -> int:
    """The offset that a request means: a negative one counts from the end."""
    return max(0, size + start) if start < 0 else min(start, size)


def joined(first: LogChunk, start: int, read_on: Callable[[int], LogChunk]) -> Iterator[bytes]:
    """The log from ``start`` to its end at the time of ``first``, with a notice where a part of it was not kept."""
    chunk, position = first, requested_start(start, first.size)
    while True:
        if chunk.start > position:
            yield gap_notice(position, chunk.start)
        if chunk.content:
            yield chunk.content
        position = chunk.start + len(chunk.content)
        if not chunk.content or position >= first.size:
            break
        chunk = read_on(position)
    if chunk.is_cut_off:
        yield CUT_OFF


class Logs:
    def __init__(self, store: Store, runtimes: Mapping[ClusterName, Runtime]) -> None:
        self._store = store
        self._runtimes = runtimes

    def job(self, actor: Actor, job_id: JobId) -> tuple[Job, tuple[Task, ...]]:
        with self._store.read() as view:
            job = view.jobs.find(job_id)
            if job is None:
                raise not_found("job", job_id[:80], code="JobNotFound")
            require_job(actor, job)
            return job, view.jobs.tasks(job_id)

    def read(self, actor: Actor, job_id: JobId, task_id: TaskId | None, start: int, limit: int) -> LogChunk:
        """Raw bytes of one task's log; the first task the job has now when none is named. One not started is silent."""
        job, tasks = self.job(actor, job_id)
        if task_id is not None and task_id not in {task.id for task in tasks}:
            raise NotFound(f"task[{task_id[:80]}] is not a task of job[{job_id}]", code="RecordNotFound")
        if not tasks:
            return LogChunk(content=b"", start=0, size=0)
        first = job.placements[0].task_id if job.placements else tasks[-1].id
        return self._chunk(job, task_id or first, start, limit)

    def tail_or_head(
        self, actor: Actor, job_id: JobId, *, lines: int, max_bytes: int, from_tail: bool
    ) -> tuple[Job, tuple[TaskLog, ...]]:
        """Up to ``lines`` lines and ``max_bytes`` bytes of every task, from the end or from the beginning."""
        job, tasks = self.job(actor, job_id)
        logs = []
        for task in tasks:
            start = -max_bytes if from_tail else 0
            read = partial(self._chunk, job, task.id, limit=max_bytes)
            first = read(start)
            content = b""
            for part in joined(first, start, read):
                content += part
                if not from_tail and len(content) > max_bytes:
                    break
            cut = first.size > max_bytes if from_tail else len(content) > max_bytes
            parts = (content if from_tail else content[:max_bytes]).decode(errors="replace").splitlines(keepends=True)
            shown = parts[-lines:] if from_tail else parts[:lines]
            logs.append(
                TaskLog(
                    task_id=task.id,
                    text="".join(shown),
                    has_more=cut or len(shown) < len(parts),
                    truncated=bool(first.gaps) or first.is_cut_off or cut,
                )
            )
        return job, tuple(logs)

    def ended(self, job_id: JobId) -> bool:
        """No more output can come: the job has ended or is gone."""
        with self._store.read() as view:
            job = view.jobs.find(job_id)
        return job is None or job.is_terminal

    def _chunk(self, job: Job, task_id: TaskId, start: int, limit: int) -> LogChunk:
        runtime = self._runtimes.get(job.cluster)
        if runtime is None:
            raise NotFound(f"the logs of job[{job.id}] are on cluster[{job.cluster}], which this server does not run")
        try:
            return runtime.read_log(job.id, task_id, start, limit)
        except NotFound:
            return LogChunk(content=b"", start=0, size=0)  # admitted, and has not got as far as writing a log
