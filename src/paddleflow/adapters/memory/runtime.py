"""A Runtime without processes: tasks do what the story says, when it says so.

It keeps every promise of the port (idempotent by id, tombstones, levels), which the same contract suite checks. What a
real task would do by itself is done by the test through ``finish``, ``write_log`` and ``use``.
"""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from paddleflow.domain.clusters import Node
from paddleflow.domain.errors import InUse, PaddleFlowError, Unavailable, invalid_field, not_found
from paddleflow.domain.ids import JobId, TaskId
from paddleflow.domain.jobs import Address, Membership, TaskLaunch, TaskReport, TaskStatus, Usage
from paddleflow.ports.clock import Clock
from paddleflow.ports.runtime import LogChunk

_ENDED = (TaskStatus.SUCCEEDED, TaskStatus.FAILED)
_ID = re.compile(r"[A-Za-z0-9][-A-Za-z0-9_.]{0,119}")


@dataclass(slots=True, kw_only=True)
class _Entry:
    report: TaskReport
    log: bytearray = field(default_factory=bytearray)
    is_acknowledged: bool = False
    is_stopping: bool = False

    @property
    def has_ended(self) -> bool:
        return self.report.status in _ENDED


class MemoryRuntime:
    def __init__(
        self,
        *,
        clock: Clock,
        nodes: Sequence[Node],
        obeys_stop: bool = True,
        port_range: range = range(20000, 30000),
        log_cap_bytes: int | None = None,
    ) -> None:
        """``obeys_stop`` False: a stopped task runs on until the story finishes it, as one that ignores TERM."""
        self._clock = clock
        self._nodes = list(nodes)
        self._obeys_stop = obeys_stop
        self._port_range = port_range
        self._log_cap_bytes = log_cap_bytes
        self._ports: dict[TaskId, tuple[JobId, tuple[int, ...]]] = {}
        """With the job, because a task's id alone does not tell where the job's ends."""
        self._entries: dict[TaskId, _Entry] = {}
        self._changed: dict[TaskId, None] = {}
        self._woken = False
        self._condition = threading.Condition()
        self._next_launch_error: PaddleFlowError | None = None
        self.launches: list[TaskLaunch] = []
        """Every launch that really started a task, in order."""
        self.published: dict[JobId, Membership] = {}
        """What the tasks of each job would read now."""

    # What the story makes happen.

    def finish(self, task_id: TaskId, exit_code: int = 0, *, signal: int | None = None, message: str = "") -> None:
        """The task's process ends: with an exit code, or by a signal. Finishing twice is a mistake of the story."""
        with self._condition:
            entry = self._entries[task_id]
            if entry.has_ended:
                raise AssertionError(f"{task_id} has ended already")
            told = message or (f"exit code {exit_code}" if signal is None else f"killed by signal {signal}")
            succeeded = exit_code == 0 and signal is None and not entry.is_stopping
            self._end(
                task_id,
                status=TaskStatus.SUCCEEDED if succeeded else TaskStatus.FAILED,
                message=f"stopped by request, {told}" if entry.is_stopping and not message else told,
                exit_code=None if signal is not None else exit_code,
                signal=signal,
            )

    def write_log(self, task_id: TaskId, content: bytes) -> None:
        with self._condition:
            self._entries[task_id].log += content

    def use(self, task_id: TaskId, usage: Usage) -> None:
        """From now on the task uses this much."""
        with self._condition:
            entry = self._entries[task_id]
            entry.report = replace(entry.report, usage=usage)

    def launch_counts(self) -> dict[TaskId, int]:
        """How often each task was really started."""
        with self._condition:
            return dict(Counter(launch.task_id for launch in self.launches))

    def set_nodes(self, nodes: Sequence[Node]) -> None:
        with self._condition:
            self._nodes = list(nodes)

    def fail_next_launch(self, error: PaddleFlowError) -> None:
        with self._condition:
            self._next_launch_error = error

    # The port.

    def addresses(self, job_id: JobId, task_ids: Sequence[TaskId], ports: int) -> Mapping[TaskId, Address]:
        _check_ids(job_id, *task_ids)
        if ports < 0:
            raise invalid_field("ports", f"[{ports}] must not be negative")
        with self._condition:
            held = {task_id: self._ports.get(task_id, (job_id, ()))[1] for task_id in task_ids}
            taken = {port for _, numbers in self._ports.values() for port in numbers}
            free = [port for port in self._port_range if port not in taken]
            if sum(max(0, ports - len(numbers)) for numbers in held.values()) > len(free):
                raise Unavailable(f"{len(free)} ports are left, which are not enough")
            supply = iter(free)
            for task_id, numbers in held.items():
                held[task_id] = numbers + tuple(next(supply) for _ in range(ports - len(numbers)))
                self._ports[task_id] = (job_id, held[task_id])
            return {task_id: Address(host="127.0.0.1", ports=numbers[:ports]) for task_id, numbers in held.items()}

    def publish(self, membership: Membership) -> None:
        _check_ids(membership.job_id, *(placement.task_id for placement, _ in membership.tasks))
        with self._condition:
            published = self.published.get(membership.job_id)
            if published is None or membership.generation >= published.generation:
                self.published[membership.job_id] = membership

    def launch(self, launch: TaskLaunch) -> None:
        _check_ids(launch.job_id, launch.task_id)
        with self._condition:
            if launch.task_id in self._entries:
                return
            error, self._next_launch_error = self._next_launch_error, None
            if error is not None:
                raise error
            self._check(launch)
            self.launches.append(launch)
            self._entries[launch.task_id] = _Entry(
                report=TaskReport(
                    task_id=launch.task_id,
                    job_id=launch.job_id,
                    status=TaskStatus.RUNNING,
                    started_at=self._clock.now(),
                )
            )
            self._tell(launch.task_id)

    def _check(self, launch: TaskLaunch) -> None:
        if launch.node not in {node.name for node in self._nodes}:
            raise invalid_field("node", f"[{launch.node}] is not a node of this cluster")
        if not launch.argv or not launch.argv[0]:
            raise invalid_field("command", "it is empty")

    def stop(self, job_id: JobId, task_ids: Sequence[TaskId], grace_s: float) -> None:
        _check_ids(job_id, *task_ids)
        with self._condition:
            for task_id in task_ids:
                entry = self._entries.get(task_id)
                if entry is None:
                    pending = TaskReport(task_id=task_id, job_id=job_id, status=TaskStatus.PENDING)
                    self._entries[task_id] = _Entry(report=pending, is_stopping=True)
                    self._end(task_id, status=TaskStatus.FAILED, message="stopped by request before it started")
                elif not entry.has_ended:
                    entry.is_stopping = True
                    if self._obeys_stop:
                        message = "stopped by request (SIGTERM)"
                        self._end(task_id, status=TaskStatus.FAILED, message=message, signal=15)

    def acknowledge(self, task_id: TaskId) -> None:
        """The platform has stored the end of this task: ``survey`` need not tell it again. Idempotent."""
        with self._condition:
            entry = self._entries.get(task_id)
            if entry is not None and entry.has_ended:
                entry.is_acknowledged = True
                self._ports.pop(task_id, None)

    def remove(self, job_id: JobId) -> None:
        _check_ids(job_id)
        with self._condition:
            mine = {task_id: e for task_id, e in self._entries.items() if e.report.job_id == job_id}
            for task_id, entry in mine.items():
                if not entry.has_ended:
                    raise InUse(f"job [{job_id}] cannot be removed while its task [{task_id}] has not ended")
            for task_id in mine:
                del self._entries[task_id]
                self._changed.pop(task_id, None)
            self._ports = {task_id: held for task_id, held in self._ports.items() if held[0] != job_id}
            self.published.pop(job_id, None)

    def survey(self) -> list[TaskReport]:
        with self._condition:
            return [entry.report for entry in self._entries.values() if not entry.is_acknowledged]

    def wait_reports(self, timeout_s: float) -> list[TaskReport]:
        with self._condition:
            self._condition.wait_for(lambda: self._changed or self._woken, timeout=max(0.0, timeout_s))
            self._woken = False
            reports = [self._entries[task_id].report for task_id in self._changed]
            self._changed.clear()
            return reports

    def wake(self) -> None:
        with self._condition:
            self._woken = True
            self._condition.notify_all()

    def close(self) -> None:
        """Nothing to let go of; the story may go on with a new platform on this same runtime."""

    def nodes(self) -> list[Node]:
        with self._condition:
            return list(self._nodes)

    def usage(self, task_id: TaskId) -> Usage | None:
        with self._condition:
            entry = self._entries.get(task_id)
            return None if entry is None else entry.report.usage

    def read_log(self, job_id: JobId, task_id: TaskId, start: int, limit: int) -> LogChunk:
        _check_ids(job_id, task_id)
        with self._condition:
            entry = self._entries.get(task_id)
            if entry is None:
                raise not_found("log", task_id)
            size, cap = len(entry.log), self._log_cap_bytes
            gap = (size, size) if cap is None or size <= cap else (cap // 2, size - cap // 2)
            offset = max(0, size + start) if start < 0 else min(start, size)
            if gap[0] <= offset < gap[1]:
                offset = gap[1]
            end = min(offset + max(0, limit), gap[0] if offset < gap[0] else size)
            gaps = (gap,) if gap[0] < gap[1] else ()
            return LogChunk(content=bytes(entry.log[offset:end]), start=offset, size=size, gaps=gaps)

    def _end(
        self,
        task_id: TaskId,
        *,
        status: TaskStatus,
        message: str,
        exit_code: int | None = None,
        signal: int | None = None,
    ) -> None:
        entry = self._entries[task_id]
        entry.report = replace(
            entry.report,
            status=status,
            message=message,
            exit_code=exit_code,
            signal=signal,
            usage=replace(entry.report.usage, memory_bytes=0),
            finished_at=self._clock.now(),
        )
        self._tell(task_id)

    def _tell(self, task_id: TaskId) -> None:
        self._changed[task_id] = None
        self._condition.notify_all()


def _check_ids(job_id: str, *task_ids: str) -> None:
    for field_name, ident in (("job id", job_id), *(("task id", task_id) for task_id in task_ids)):
        if not _ID.fullmatch(ident):
            raise invalid_field(field_name, f"[{ident[:80]}] is not made of letters, digits, '-', '_' and '.'")
    for task_id in task_ids:
        if not task_id.startswith(f"{job_id}-"):
            raise invalid_field("task id", f"[{task_id}] is not a task of job [{job_id}]: it must begin with its id")
