"""Where the time of a run went: how long each node waited and ran, and which chain of steps determined the end.

A node *waits* from the moment all it depends on has ended until its job runs: for a place among the run's parallel
steps, for its queue, for a node of the cluster. It *runs* from then to its end. A result that was reused, or kept by a
retry, takes the time that finding it took, and none of it is running.

The critical path is read backwards: from the step that ended last to the one that ended last among those it waited
for, out of a dag where that has nothing to wait for inside it, until a step that waited for nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from paddleflow.domain.ids import JobId
from paddleflow.domain.jobs import Job
from paddleflow.domain.runs import NodeKind, NodeStatus, RunNode
from paddleflow.planning.layout import waits_for
from paddleflow.planning.plan import Plan

_IDLE = frozenset({NodeStatus.CANCELLED, NodeStatus.SKIPPED})


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTiming:
    key: str
    waiting_s: float
    running_s: float
    is_reused: bool = False
    started_at: datetime | None = None
    """When it began to wait or, where that is not known, was started; None: its turn has not come."""
    ended_at: datetime | None = None
    """None: it has not ended."""

    @property
    def total_s(self) -> float:
        return self.waiting_s + self.running_s


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTiming:
    total_s: float
    nodes: Mapping[str, NodeTiming]
    """By key, in the order of the nodes."""
    critical: tuple[str, ...]
    """The keys of the steps on the critical path, in the order of time."""


def time_run(
    plan: Plan, nodes: Sequence[RunNode], jobs: Mapping[JobId, Job], *, began: datetime, until: datetime
) -> RunTiming:
    """``began`` is when the run became active; ``until`` is its end, or now."""
    placed = _Placed(plan, nodes)
    timed = {node.key: _timed(node, placed.ready_at(node, began), jobs, until) for node in nodes}
    return RunTiming(
        total_s=_seconds(began, until),
        nodes=timed,
        critical=critical_path(plan, nodes, until=until),
    )


def critical_path(plan: Plan, nodes: Sequence[RunNode], *, until: datetime) -> tuple[str, ...]:
    """The keys of the chain of steps that determined the end; ``until`` is the end of those that still run."""
    placed = _Placed(plan, nodes)
    post = [node for node in nodes if plan.post_process and node.node == plan.post_process]
    main = [node for node in nodes if node.node != plan.post_process]
    chain = [step.key for step in _backwards(placed, placed.last(main, until), until)]
    last_post = placed.last(post, until)
    return tuple(reversed(chain)) + ((last_post.key,) if last_post is not None else ())


def _backwards(placed: _Placed, step: RunNode | None, until: datetime) -> Iterable[RunNode]:
    while step is not None:
        yield step
        at: RunNode | None = step
        step = None
        while at is not None and step is None:
            step = placed.last(placed.before(at), until)
            at = placed.by_key.get(at.parent)  # nothing was waited for here: then what its dag waited for counts


class _Placed:
    """The nodes of a run, found by where they stand."""

    def __init__(self, plan: Plan, nodes: Sequence[RunNode]) -> None:
        self._plan = plan
        self.by_key = {node.key: node for node in nodes}
        self._siblings: dict[tuple[str, str], list[RunNode]] = defaultdict(list)
        self._held: dict[str, list[RunNode]] = defaultdict(list)
        self._ends: dict[tuple[str, str], datetime | None] = {}
        for node in nodes:
            self._siblings[node.parent, node.node].append(node)
            self._held[node.parent].append(node)

    def before(self, node: RunNode) -> list[RunNode]:
        """All items of those it waited for, in its own dag."""
        paths = waits_for(self._plan.nodes[node.node])
        return [found for path in paths for found in self._siblings[node.parent, path]]

    def ready_at(self, node: RunNode, began: datetime) -> datetime:
        """When the last thing it waited for was there."""
        if node.node == self._plan.post_process:
            known = [_latest(other for other in self.by_key.values() if other.node != node.node)]
        else:
            known = [self._end_of(node.parent, path) for path in waits_for(self._plan.nodes[node.node])]
        parent = self.by_key.get(node.parent)
        known.append(None if parent is None else parent.started_at)
        return max([began, *(at for at in known if at is not None)])

    def _end_of(self, parent: str, path: str) -> datetime | None:
        """Of all items together: looked at once, however many wait for them."""
        place = (parent, path)
        if place not in self._ends:
            self._ends[place] = _latest(self._siblings[place])
        return self._ends[place]

    def last(self, nodes: Iterable[RunNode], until: datetime) -> RunNode | None:
        """The step that ended last among these and what they hold; of equals the one that comes first."""
        found: tuple[datetime, RunNode] | None = None
        todo = list(nodes)[::-1]
        while todo:
            node = todo.pop()
            if node.kind is NodeKind.DAG:
                todo.extend(reversed(self._held[node.key]))
                continue
            if node.started_at is None or node.status in _IDLE:
                continue
            end = node.finished_at or until
            if found is None or end > found[0]:
                found = end, node
        return None if found is None else found[1]


def _latest(nodes: Iterable[RunNode]) -> datetime | None:
    return max((node.finished_at for node in nodes if node.finished_at is not None), default=None)


def _timed(node: RunNode, ready: datetime, jobs: Mapping[JobId, Job], until: datetime) -> NodeTiming:
    if node.started_at is None or node.status in _IDLE:
        return NodeTiming(key=node.key, waiting_s=0.0, running_s=0.0, ended_at=node.finished_at)
    start = min(ready, node.started_at)
    end = node.finished_at or until
    reused = node.source_run is not None or node.cache_run_id is not None
    runs_from = end if reused else node.started_at
    job = jobs.get(node.job_id) if node.job_id is not None and not reused else None
    if job is not None:
        # A job that never ran has only waited.
        runs_from = job.activated_at or end
    runs_from = min(max(runs_from, start), end)
    return NodeTiming(
        key=node.key,
        waiting_s=_seconds(start, runs_from),
        running_s=_seconds(runs_from, end),
        is_reused=reused,
        started_at=start,
        ended_at=node.finished_at,
    )


def _seconds(start: datetime, end: datetime) -> float:
    """Never negative: clocks of two machines may disagree."""
    return max(0.0, (end - start).total_seconds())
