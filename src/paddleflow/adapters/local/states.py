"""Reading what became of a task from its directory, and putting right what a dead supervisor left. Server side.

The order of evidence: ``end.json`` is final; a held lock means a supervisor lives; ``started.json`` without either
means the supervisor was killed; nothing but ``spec.json`` means that nothing has been executed yet.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from paddleflow.adapters.local import layout, processes
from paddleflow.adapters.local.cgroups import TaskCgroups
from paddleflow.adapters.local.endings import FAILED, NEVER_STARTED
from paddleflow.adapters.local.spec import TaskSpec
from paddleflow.domain.ids import JobId, TaskId
from paddleflow.domain.jobs import TaskReport, TaskStatus, Usage

_LOST = "the supervisor of the task was lost (killed, or the host went down); what was left of the task was killed"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFolder:
    """One task's directory."""

    root: str
    job_id: JobId
    task_id: TaskId

    @property
    def path(self) -> str:
        return layout.task_path(self.root, self.job_id, self.task_id)

    def exists(self) -> bool:
        return os.path.isdir(self.path)

    def has(self, name: str) -> bool:
        return os.path.lexists(f"{self.path}/{name}")

    def is_known(self) -> bool:
        """Whether the task was ever launched or stopped. A folder alone may hold no more than reserved ports."""
        return self.has(layout.SPEC) or self.has(layout.STOP)

    def has_ended(self) -> bool:
        return self.has(layout.END)

    @property
    def is_supervised(self) -> bool:
        return layout.is_locked(f"{self.path}/{layout.LOCK}")

    @property
    def claimed_at(self) -> float | None:
        """When the task was claimed for launching, as seconds of the epoch."""
        with suppress(FileNotFoundError):
            return os.stat(f"{self.path}/{layout.SPEC}").st_mtime
        return None

    def report(self) -> TaskReport:
        """The present state, as written down."""
        end = layout.read_document(f"{self.path}/{layout.END}")
        if end is not None:
            return self._ended(end)
        started = layout.read_document(f"{self.path}/{layout.STARTED}")
        status = TaskStatus.PENDING if started is None else TaskStatus.RUNNING
        return TaskReport(
            task_id=self.task_id,
            job_id=self.job_id,
            status=status,
            started_at=None if started is None else _moment(started["started_at"]),
        )

    def _ended(self, end: dict[str, Any]) -> TaskReport:
        return TaskReport(
            task_id=self.task_id,
            job_id=self.job_id,
            status=TaskStatus(end["status"]),
            message=end["message"],
            exit_code=end.get("exit_code"),
            signal=end.get("signal"),
            usage=Usage(cpu_s=end.get("cpu_s", 0.0), max_memory_bytes=end.get("max_memory_bytes", 0)),
            started_at=_moment(end.get("started_at")),
            finished_at=_moment(end["finished_at"]),
        )

    def settle(self) -> bool:
        """End a task that nobody looks after any more, if it can be ended. False: it has not run and still may."""
        if not (self.has(layout.STARTED) or self.has(layout.STOP) or self.has_ended()):
            return False  # Not even locked: that would turn away a supervisor that is about to start.
        lock = layout.acquire_lock(f"{self.path}/{layout.LOCK}")
        if lock is None:
            return True  # A supervisor lives after all, or another server is settling it.
        try:
            if self.has_ended():
                return True
            started = layout.read_document(f"{self.path}/{layout.STARTED}")
            if started is None:
                layout.write_end(self.path, {"status": FAILED, "message": NEVER_STARTED, "finished_at": time.time()})
            else:
                self._end_lost(started)
            return True
        finally:
            os.close(lock)

    def _end_lost(self, started: dict[str, Any]) -> None:
        usage = self.live_usage()
        cgroups = self._cgroups()
        if started["boot_id"] == processes.boot_id():
            for process in processes.session_members(started["pid"], started["start_ticks"]):
                # It may have ended meanwhile, or be a set-user-id program of another user, which is not ours to kill.
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(process.pid, signal.SIGKILL)
            if cgroups is not None:
                cgroups.remove()
        layout.write_end(
            self.path,
            {
                "status": FAILED,
                "message": _LOST,
                "started_at": started["started_at"],
                "finished_at": time.time(),
                "cpu_s": usage.cpu_s,
                "max_memory_bytes": usage.max_memory_bytes,
            },
        )

    def live_usage(self) -> Usage:
        """What the processes of a task that has not ended use now."""
        started = layout.read_document(f"{self.path}/{layout.STARTED}")
        if started is None or started["boot_id"] != processes.boot_id():
            return Usage()
        cgroups = self._cgroups()
        if cgroups is not None:
            cpu_s = cgroups.cpu_s()
            memory_bytes = cgroups.memory_bytes()
            most = max(cgroups.max_memory_bytes() or 0, memory_bytes)
            if cpu_s is not None:
                return Usage(cpu_s=cpu_s, max_memory_bytes=most, memory_bytes=memory_bytes)
        members = processes.session_members(started["pid"], started["start_ticks"])
        resident = sum(process.resident_bytes for process in members)
        return Usage(cpu_s=sum(p.cpu_s for p in members), max_memory_bytes=resident, memory_bytes=resident)

    def _cgroups(self) -> TaskCgroups | None:
        document = layout.read_document(f"{self.path}/{layout.SPEC}")
        spec = None if document is None else TaskSpec.from_document(document)
        return TaskCgroups(spec.cgroup_parents, spec.cgroup_name) if spec and spec.cgroup_parents else None


def _moment(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
