"""Runtime: where tasks really run.

Every call is idempotent by id. A runtime tells what it sees as *levels* (TaskReport holds a task's whole present
state); ``wait_reports`` may lose one, ``survey`` never does, and a reader that has both converges.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from paddleflow.domain.clusters import Node
from paddleflow.domain.ids import JobId, TaskId
from paddleflow.domain.jobs import Address, Membership, TaskLaunch, TaskReport, Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class LogChunk:
    """Bytes of a log that follow each other. Offsets count what the task has written, also where it was not kept."""

    content: bytes
    start: int
    """Offset of the first byte of ``content``: the one asked for, or the end of the gap that one is in."""
    size: int
    """How much has been written up to now."""
    gaps: tuple[tuple[int, int], ...] = ()
    """What was not kept, in order: from the first offset up to the second. A chunk ends where a gap begins."""
    is_cut_off: bool = False
    """What was written after the last byte is lost too."""


class Runtime(Protocol):
    def addresses(self, job_id: JobId, task_ids: Sequence[TaskId], ports: int) -> Mapping[TaskId, Address]:
        """Where each of these tasks can be reached: a host, and ``ports`` ports that no other task is given.

        Asking again gives the same answer, before and after a restart of the platform. Ports are given back when the
        task's end is acknowledged or its job removed. Raises Unavailable when no port is left now.
        """
        ...

    def publish(self, membership: Membership) -> None:
        """Show a running job who belongs to it. Its tasks find the newest at the path in ``PF_MEMBERSHIP_FILE``,
        whole at any moment; one older than what is published already changes nothing."""
        ...

    def launch(self, launch: TaskLaunch) -> None:
        """Start the task, or do nothing if it was ever launched or stopped before under this id.

        Raises Invalid when this task can never be started here (an unknown node, an impossible mount), Unavailable
        when it may work later.
        """
        ...

    def stop(self, job_id: JobId, task_ids: Sequence[TaskId], grace_s: float) -> None:
        """Ask the tasks to end: TERM, then KILL after the grace period. Returns at once; the end is a report.

        A task that was never launched is marked so that it never will be, and is reported as ended.
        """
        ...

    def remove(self, job_id: JobId) -> None:
        """Forget an ended job and delete what it left behind, logs included. Unknown ids are fine."""
        ...

    def survey(self) -> list[TaskReport]:
        """The present state of every task this runtime knows and whose end was not acknowledged."""
        ...

    def acknowledge(self, task_id: TaskId) -> None:
        """The platform has stored the end of this task; ``survey`` need not tell it again. Unknown ids are fine."""
        ...

    def wait_reports(self, timeout_s: float) -> list[TaskReport]:
        """Block until tasks have changed, or the time is up; their present states, possibly none."""
        ...

    def wake(self) -> None:
        """Make a blocked ``wait_reports`` return now (used at shutdown)."""
        ...

    def nodes(self) -> list[Node]:
        """The nodes as they are now."""
        ...

    def usage(self, task_id: TaskId) -> Usage | None:
        """What the task uses now, or used until it ended; None if the task is unknown."""
        ...

    def read_log(self, job_id: JobId, task_id: TaskId, start: int, limit: int) -> LogChunk:
        """Up to ``limit`` bytes from offset ``start`` (negative: from the end). Raises NotFound for an unknown task.

        A log that grows beyond what is kept loses its middle: the beginning and the end can always be read.
        """
        ...

    def close(self) -> None:
        """Stop listening. What runs goes on."""
        ...
