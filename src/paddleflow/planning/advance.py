"""One step forward of a run: what has happened, folded into its progress, and everything that follows from it.

The work is in proportion to what changed. What follows is put on lists and taken off them, never called in turn, so a
chain of ten thousand nodes that all end at once is no deeper than one. Nothing is done here; what to store and to do is
returned as an Advance.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import assert_never

from paddleflow.domain.errors import Invalid
from paddleflow.domain.jobs import JobStatus
from paddleflow.domain.runs import (
    ArtifactUse,
    Fingerprint,
    NodeKind,
    NodeStatus,
    RunNode,
    RunStatus,
    Stop,
)
from paddleflow.planning import expand, start
from paddleflow.planning.draft import Started
from paddleflow.planning.endings import Endings
from paddleflow.planning.moves import (
    Advance,
    Begin,
    Fetched,
    JobEnded,
    Noted,
    Prepared,
    RunEvent,
    StopAsked,
)
from paddleflow.planning.paths import dag_id
from paddleflow.planning.plan import Plan
from paddleflow.planning.progress import Frame, Group, Progress
from paddleflow.planning.render import submission_of

_STOPPED = "the run was stopped"


def advance(plan: Plan, progress: Progress, events: Sequence[RunEvent], now: datetime) -> Advance:
    turn = _Turn(plan, progress, now)
    for event in events:
        if not progress.is_over or isinstance(event, Begin):
            turn.take(event)
            turn.settle()
    progress.is_fresh = False
    return turn.draft.advance(progress)


class _Turn(Endings):
    def take(self, event: RunEvent) -> None:
        match event:
            case Begin():
                self._begin()
            case StopAsked(force=force):
                self._stop(Stop.FORCE if force else Stop.GENTLE)
            case Noted(key=key, message=message):
                row = self.progress.nodes.get(key)
                if row is not None and row.status is NodeStatus.PENDING:
                    self.put(replace(row, message=message))
            case Fetched():
                self._fetched(event)
            case Prepared():
                self._prepared(event)
            case JobEnded():
                self._job_ended(event)
            case _:
                assert_never(event)

    def settle(self) -> None:
        """Until nothing follows any more."""
        while True:
            if self.ready:
                self._consider(self.ready.popleft())
            elif self.closing:
                self.close(self.closing.popleft())
            elif not self._start_next():
                return

    # Events.

    def _begin(self) -> None:
        progress = self.progress
        if not progress.is_fresh:
            progress.index_again()
        self.draft.status = RunStatus.RUNNING
        for key in progress.running.values():
            row = progress.nodes[key]
            if row.status is NodeStatus.TERMINATING and row.job_id is not None:
                self.draft.stop[row.job_id] = None
        if progress.stop is not Stop.NO:
            self._stop(progress.stop)
        frames = list(progress.frames.values())
        for frame in frames if progress.after is None else [*frames, progress.after]:
            self._look_into(frame)

    def _stop(self, how: Stop) -> None:
        progress = self.progress
        progress.stop = Stop.FORCE if Stop.FORCE in (how, progress.stop) else how
        self.draft.status = RunStatus.TERMINATING
        self.halt(_STOPPED)
        if progress.stop is Stop.FORCE and progress.after is not None:
            for group in progress.after.groups.values():
                self.give_up(group, _STOPPED)

    def _fetched(self, event: Fetched) -> None:
        group = self.progress.groups.get(event.key)
        if group is None or group.asked is None:
            return
        if not event.error and not group.asked.paths.keys() <= event.contents.keys():
            return  # the answer to an earlier question
        group.asked = None
        if not group.is_unrolled:
            if event.error:
                self.only_row(group, NodeStatus.FAILED, event.error)
            else:
                self._unroll(group, event.contents)
            return
        if not event.error:
            group.contents = expand.contents_for_condition(event.contents)
        for key in list(group.keys):
            row = self.progress.nodes[key]
            if row.status is NodeStatus.PENDING:
                if event.error:
                    self.end(row, NodeStatus.FAILED, event.error)
                else:
                    self._enter(group, row)

    def _prepared(self, event: Prepared) -> None:
        row = self.progress.preparing.pop(event.key, None)
        if row is None:
            return
        row = replace(row, message="")
        if event.error:
            self.end(row, NodeStatus.FAILED, event.error)
        elif event.hit is not None:
            self.end(
                replace(
                    row,
                    id=start.new_job_id(self.progress, row),
                    job_id=event.hit.job_id,
                    outputs=event.hit.outputs,
                    fingerprint=event.fingerprint,
                    cache_run_id=event.hit.run_id,
                    source_run=event.hit.run_id,
                    started_at=self.draft.now,
                ),
                NodeStatus.SUCCEEDED,
                f"the result of {event.hit.run_id} is used again",
            )
        else:
            self._submit(row, event.fingerprint)

    def _job_ended(self, event: JobEnded) -> None:
        row = self.progress.nodes.get(event.key)
        if row is None or row.job_id is None or self.progress.running.get(row.job_id) != event.key:
            return
        del self.progress.running[row.job_id]
        if event.refused:
            row = replace(row, job_id=None)
        if event.status is JobStatus.SUCCEEDED:
            self.end(row, NodeStatus.SUCCEEDED, event.message, at=event.at)
            self.draft.artifacts += start.artifact_events(self.progress, row, ArtifactUse.OUTPUT, self.draft.now)
            entry = start.cache_entry(self.progress, row, self.draft.now)
            if entry is not None:
                self.draft.cache.append(entry)
        elif event.status is JobStatus.FAILED:
            self.end(row, NodeStatus.FAILED, event.message or "its job failed", at=event.at)
        elif row.status is NodeStatus.TERMINATING or self._is_stopped(row):
            self.end(row, NodeStatus.TERMINATED, event.message or row.message, at=event.at)
        else:
            why = f": {event.message}" if event.message else ""
            self.end(row, NodeStatus.FAILED, f"its job was stopped from outside ({event.status}){why}", at=event.at)

    def _is_stopped(self, row: RunNode) -> bool:
        """A stop that was asked for reaches the post-process only by force."""
        if row.node == self.plan.post_process:
            return self.progress.stop is Stop.FORCE
        return self.progress.stop is not Stop.NO

    # What follows from them.

    def _look_into(self, frame: Frame) -> None:
        """Everything in a frame that has just come into view."""
        for group in list(frame.groups.values()):
            if NodeStatus.FAILED in group.ended:
                self.spread_failure(group, group.key)
            if group.waiting == 0 and not group.is_ended:
                self.ready.append(group)
        if frame.open == 0:
            self.closing.append(frame)

    def _consider(self, group: Group) -> None:
        """A group whose dependencies are done. It may have ended meanwhile, or have some of its rows already."""
        if group.is_ended or group.asked is not None:
            return
        if group.is_unrolled:
            for key in list(group.keys):
                row = self.progress.nodes[key]
                if row.status is NodeStatus.PENDING:
                    self._enter(group, row)
            return
        if group.node.disabled:
            self.only_row(group, NodeStatus.SKIPPED, "disabled")
            return
        try:
            fetch = expand.loop_fetch(self.progress, group)
        except Invalid as error:
            self.only_row(group, NodeStatus.FAILED, error.message)
            return
        if fetch is not None:
            group.asked = self.draft.fetch[group.key] = fetch
        else:
            self._unroll(group, {})

    def _unroll(self, group: Group, contents: expand.Contents) -> None:
        if group.node.loop is None:
            rows = [self.row(group, group.key)]
        else:
            try:
                items = expand.loop_items(self.progress, group, contents)
            except Invalid as error:
                self.only_row(group, NodeStatus.FAILED, error.message)
                return
            if not items:
                self.only_row(group, NodeStatus.SKIPPED, "the loop has no items, so there is nothing to run")
                return
            rows = [self.row(group, f"{group.key}[{seq}]", seq, item) for seq, item in enumerate(items)]
            self.progress.size += (len(rows) - 1) * self.progress.weights[group.node.path]
        self.progress.unroll(group, rows)
        for row in rows:
            self.draft.changed[row.key] = None
        for row in rows:
            if self.progress.nodes[row.key].status is NodeStatus.PENDING:
                self._enter(group, self.progress.nodes[row.key])

    def _enter(self, group: Group, row: RunNode) -> None:
        """One item whose turn has come: skip it, open its dag, or put it in line for a slot."""
        if group.asked is not None:
            return
        try:
            fetch = expand.condition_fetch(self.progress, group)
            if fetch is not None:
                group.asked = self.draft.fetch[group.key] = fetch
                return
            if not expand.holds(self.progress, group, row):
                row = self.progress.make_room(replace(row, parameters=expand.parameters(self.progress, group)))
                kind = group.node.kind
                message = f"the result of condition for {kind}[{group.node.path}] is false, skip running"
                self.end(row, NodeStatus.SKIPPED, message)
            elif group.node.kind is NodeKind.DAG:
                self._open_dag(group, row)
            else:
                heapq.heappush(self.progress.queue, (self.progress.ordinals[row.key], row.key))
        except Invalid as error:
            self.end(row, NodeStatus.FAILED, error.message)

    def _open_dag(self, group: Group, row: RunNode) -> None:
        opened = replace(
            row,
            id=dag_id(row.run_id, row.key),
            status=NodeStatus.RUNNING,
            parameters=expand.parameters(self.progress, group),
            inputs=expand.inputs(self.progress, group),
            started_at=self.draft.now,
        )
        self.put(self.progress.make_room(opened))
        self._look_into(self.progress.open_frame(row.key))

    def _start_next(self) -> bool:
        """Give a free slot to whoever has waited longest; False: there is no slot, or nobody waits."""
        progress = self.progress
        while progress.queue and len(progress.running) + len(progress.preparing) < max(1, self.plan.parallelism):
            _, key = heapq.heappop(progress.queue)
            row = progress.nodes[key]
            if row.status is not NodeStatus.PENDING:
                continue  # it was cancelled while it stood in line
            group = progress.group_of(row)
            try:
                given = start.given(progress, group, row)
                question = start.question(progress, group, given)
            except Invalid as error:
                self.end(row, NodeStatus.FAILED, error.message)
                return True
            if question is None:
                self._submit(given, None)
            else:
                progress.preparing[key] = given
                self.draft.prepare[key] = question
            return True
        return False

    def _submit(self, row: RunNode, fingerprint: Fingerprint | None) -> None:
        progress, now = self.progress, self.draft.now
        job_id = start.new_job_id(progress, row)
        running = replace(
            row,
            id=job_id,
            job_id=job_id,
            status=NodeStatus.RUNNING,
            message="",
            fingerprint=fingerprint,
            started_at=now,
        )
        try:
            submission = submission_of(self.plan, self.plan.nodes[row.node], running)
        except Invalid as error:
            self.end(row, NodeStatus.FAILED, error.message)
            return
        self.draft.started[row.key] = Started(
            before=progress.nodes[row.key],
            submission=submission,
            artifacts=start.artifact_events(progress, running, ArtifactUse.INPUT, now),
        )
        progress.running[job_id] = row.key
        self.put(running)
