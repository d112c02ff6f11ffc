"""How nodes end, and what that does to the others: whose turn comes, what is cancelled, stopped or closed.

Nothing here calls itself along a chain of nodes: what may go on is put on the two lists.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from dataclasses import replace
from datetime import datetime

from paddleflow.domain.errors import Invalid
from paddleflow.domain.ids import JobId
from paddleflow.domain.runs import NO_ITEMS, NodeKind, NodeStatus, RunNode, Value
from paddleflow.planning import expand
from paddleflow.planning.draft import Draft
from paddleflow.planning.plan import Plan
from paddleflow.planning.progress import Frame, Group, Progress
from paddleflow.planning.verdict import dag_verdict, run_verdict

_CONTINUE = "continue"


class Endings:
    def __init__(self, plan: Plan, progress: Progress, now: datetime) -> None:
        self.plan = plan
        self.progress = progress
        self.draft = Draft(now=now)
        self.ready: deque[Group] = deque()
        """Groups whose turn may have come."""
        self.closing: deque[Frame] = deque()
        """Frames in which everything has ended."""

    def end(self, row: RunNode, status: NodeStatus, message: str = "", *, at: datetime | None = None) -> None:
        self.put(replace(row, status=status, message=message, finished_at=at or self.draft.now))
        group = self.progress.group_of(row)
        group.open -= 1
        group.ended.add(status)
        if group.open == 0:
            self._group_ended(group)
        if status is NodeStatus.FAILED:
            self.spread_failure(group, row.key)

    def _group_ended(self, group: Group) -> None:
        frame = group.frame
        frame.open -= 1
        frame.ended |= group.ended
        if group.is_done:
            for name in self.progress.dependents[group.node.path]:
                dependent = frame.groups[name]
                dependent.waiting -= 1
                if dependent.waiting == 0:
                    self.ready.append(dependent)
        if frame.open == 0:
            self.closing.append(frame)

    def spread_failure(self, group: Group, failed: str) -> None:
        """``failed`` is the key of one that did; nothing depends on the post-process."""
        if group.frame is self.progress.after:
            return
        why = f"{failed} failed"
        if self.plan.strategy == _CONTINUE:
            self._cancel_downstream(group, why)
        elif not self.progress.is_halted:
            self.halt(why)

    def _cancel_downstream(self, group: Group, why: str) -> None:
        frame = group.frame
        reached = deque(self.progress.dependents[group.node.path])
        while reached:
            dependent = frame.groups[reached.popleft()]
            if not dependent.is_ended:
                self.give_up(dependent, why)
                reached.extend(self.progress.dependents[dependent.node.path])

    def halt(self, why: str) -> None:
        """Nothing but the post-process begins any more, and what runs is stopped."""
        self.progress.is_halted = True
        for frame in list(self.progress.frames.values()):
            for group in frame.groups.values():
                self.give_up(group, why)

    def give_up(self, group: Group, why: str) -> None:
        """Stop what runs of a group, cancel what does not. Dags inside it are given up by their own frames."""
        if group.is_ended:
            return
        group.asked = None
        if not group.is_unrolled:
            self.only_row(group, NodeStatus.CANCELLED, f"not started: {why}")
            return
        for key in list(group.keys):
            row = self.progress.nodes[key]
            if row.status is NodeStatus.PENDING:
                self.progress.preparing.pop(key, None)
                self.end(row, NodeStatus.CANCELLED, f"not started: {why}")
            elif row.status is NodeStatus.RUNNING and row.kind is NodeKind.STEP and row.job_id is not None:
                self._stop_step(row, row.job_id, why)

    def _stop_step(self, row: RunNode, job_id: JobId, why: str) -> None:
        """A step whose job is only about to be submitted is taken back: there is no job to be stopped."""
        started = self.draft.started.pop(row.key, None)
        if started is not None:
            del self.progress.running[job_id]
            self.end(started.before, NodeStatus.CANCELLED, f"not started: {why}")
        else:
            self.draft.stop[job_id] = None
            self.put(replace(row, status=NodeStatus.TERMINATING, message=f"stopped: {why}"))

    def close(self, frame: Frame) -> None:
        progress = self.progress
        if frame.row is None:
            self._close_run()
            return
        if progress.frames.get(frame.key) is not frame:
            return  # it was on the list twice
        verdict = dag_verdict(progress, frame)
        row = replace(progress.nodes[frame.key], outputs=verdict.outputs)
        progress.close_frame(frame)
        self.end(row, verdict.status, verdict.message)

    def _close_run(self) -> None:
        """First the top, then the post-process, then the run."""
        progress = self.progress
        if progress.top.open:
            return
        if progress.after is not None and progress.after.open:
            for group in progress.after.groups.values():
                if group.waiting:
                    group.waiting = 0
                    self.ready.append(group)
            return
        progress.is_over = True
        self.draft.status, self.draft.message = run_verdict(progress)

    # Rows.

    def row(self, group: Group, key: str, seq: int = 0, item: Value = None) -> RunNode:
        return RunNode(
            run_id=self.progress.facts.run_id,
            key=key,
            node=group.node.path,
            kind=group.node.kind,
            parent=group.frame.parent,
            seq=seq,
            item=item,
            in_loop=key != group.key,
        )

    def only_row(self, group: Group, status: NodeStatus, message: str = "") -> None:
        """The one row of a group that is not unrolled; a loop without items is marked as such."""
        is_empty_loop = status is NodeStatus.SKIPPED and not group.node.disabled
        row = self.row(group, f"{group.key}[]", NO_ITEMS) if is_empty_loop else self.row(group, group.key)
        if status is NodeStatus.SKIPPED:
            # Only for people to read: a node that is not run is skipped even when its parameters cannot be had.
            with suppress(Invalid):
                row = replace(row, parameters=expand.parameters(self.progress, group))
        self.progress.unroll(group, [row])
        self.end(row, status, message)

    def put(self, row: RunNode) -> None:
        self.progress.put(row)
        self.draft.changed[row.key] = None
