"""How a dag or a whole run ended, once everything in it has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from paddleflow.domain.errors import Invalid
from paddleflow.domain.runs import NodeStatus, RunStatus
from paddleflow.planning.expand import outputs_of_dag
from paddleflow.planning.paths import ENTRY_POINTS
from paddleflow.planning.progress import Frame, Group, Progress

SUCCEEDED = "Run successfully"
_FAILED = "update status to failed because some step or dag run failed: "
_STOPPED = "the run was stopped"
_NAMED = 10
"""Names in a message; of more, only the number is told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    status: NodeStatus
    message: str = ""
    outputs: Mapping[str, str] = field(default_factory=dict)


def dag_verdict(progress: Progress, frame: Frame) -> Verdict:
    """Steps are only ever terminated or cancelled because something stopped them, so such a dag was stopped too."""
    if NodeStatus.FAILED in frame.ended:
        failed = [group.node.path for group in _failed_in(frame)]
        return Verdict(status=NodeStatus.FAILED, message=_FAILED + _listed(failed))
    if frame.ended & {NodeStatus.TERMINATED, NodeStatus.CANCELLED}:
        return Verdict(status=NodeStatus.TERMINATED)
    assert frame.row is not None, "only a dag has a row"
    try:
        outputs = outputs_of_dag(progress, progress.plan.nodes[frame.row.node], frame.groups)
    except Invalid as error:
        return Verdict(status=NodeStatus.FAILED, message=error.message)
    return Verdict(status=NodeStatus.SUCCEEDED, outputs=outputs)


def run_verdict(progress: Progress) -> tuple[RunStatus, str]:
    top, after = progress.top, progress.after
    failed = [f"{ENTRY_POINTS}.{group.node.path}" for group in _failed_in(top)]
    failed += [] if after is None else [group.node.path for group in _failed_in(after)]
    if failed:
        return RunStatus.FAILED, _FAILED + _listed(failed)
    ended = top.ended | (set() if after is None else after.ended)
    if not ended & {NodeStatus.TERMINATED, NodeStatus.CANCELLED}:
        return RunStatus.SUCCEEDED, SUCCEEDED
    # Without a failure, nothing but a stop terminates or cancels.
    return RunStatus.TERMINATED, _STOPPED


def _failed_in(frame: Frame) -> Iterable[Group]:
    return (group for group in frame.groups.values() if NodeStatus.FAILED in group.ended)


def _listed(names: list[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")
