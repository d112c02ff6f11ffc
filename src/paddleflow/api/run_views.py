"""The nodes of a run on the wire: a view for each, the graph with its layout, and where the time went.

A view is what the product has always shown of a node; ``key``, ``loopItem`` and ``retries`` are added. The graph has
one node for each node of the *plan*, however many items its loop has, so that it can be drawn; ``items`` counts them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeAlias

from typing_extensions import TypedDict

from paddleflow.api.wire import local_time
from paddleflow.domain.ids import JobId, UserName, filesystem_id
from paddleflow.domain.jobs import Job, JobStatus
from paddleflow.domain.runs import NO_ITEMS, NodeKind, NodeStatus, Run, RunNode
from paddleflow.planning.layout import Graph, PlacedNode, lay_out
from paddleflow.planning.plan import Mount, Plan, PlanNode
from paddleflow.planning.timing import RunTiming

_NOT_YET = frozenset({JobStatus.INIT, JobStatus.PENDING})
_LOUDEST = (
    NodeStatus.FAILED,
    NodeStatus.TERMINATING,
    NodeStatus.RUNNING,
    NodeStatus.PENDING,
    NodeStatus.TERMINATED,
    NodeStatus.CANCELLED,
    NodeStatus.SUCCEEDED,
    NodeStatus.SKIPPED,
)
"""What several items are called together: the first of these that one of them is."""


class MountAnswer(TypedDict):
    id: str
    name: str
    mountPath: str
    subPath: str
    readOnly: bool


class ScopeAnswer(TypedDict):
    name: str
    id: str
    path: str


class CachePolicyAnswer(TypedDict):
    enable: bool
    maxExpiredTime: str
    """Seconds; "-1": never."""
    fsScope: list[ScopeAnswer]


class ArtifactsAnswer(TypedDict):
    input: dict[str, str]
    output: dict[str, str]


class JobViewAnswer(TypedDict):
    """A step."""

    jobID: str
    name: str
    type: str
    stepName: str
    parentDagID: str
    command: str
    parameters: dict[str, Any]
    env: dict[str, str]
    extraFS: list[MountAnswer]
    startTime: str
    endTime: str
    status: str
    deps: str
    dockerEnv: str
    artifacts: ArtifactsAnswer
    cache: CachePolicyAnswer
    jobMessage: str
    cacheRunID: str
    cacheJobID: str
    key: str
    loopItem: Any
    retries: int


class DagViewAnswer(TypedDict):
    id: str
    name: str
    type: str
    dagName: str
    parentDagID: str
    deps: str
    parameters: dict[str, Any]
    artifacts: ArtifactsAnswer
    startTime: str
    endTime: str
    status: str
    message: str
    entryPoints: dict[str, list[JobViewAnswer | DagViewAnswer]]
    key: str
    loopItem: Any


ViewAnswer: TypeAlias = JobViewAnswer | DagViewAnswer


class GraphNodeAnswer(TypedDict):
    id: str
    """The full name in the pipeline, such as ``sub.train``."""
    name: str
    type: str
    status: str
    """Empty where nothing was run."""
    x: int
    y: int
    width: int
    height: int
    layer: int
    row: int
    parent: str
    startTime: str
    endTime: str
    items: dict[str, int]
    """Status → how many."""


class GraphEdgeAnswer(TypedDict):
    source: str
    target: str


class GraphAnswer(TypedDict):
    nodes: list[GraphNodeAnswer]
    edges: list[GraphEdgeAnswer]
    width: int
    height: int


NO_GRAPH: GraphAnswer = {"nodes": [], "edges": [], "width": 0, "height": 0}


class StepTimingAnswer(TypedDict):
    key: str
    name: str
    type: str
    status: str
    startTime: str
    endTime: str
    waitingSeconds: float
    runningSeconds: float
    totalSeconds: float
    reused: bool
    critical: bool


class TimingAnswer(TypedDict):
    runID: str
    status: str
    totalSeconds: float
    steps: list[StepTimingAnswer]
    criticalPath: list[str]
    """Keys of the steps that determined the end, in order."""


class RunViews:
    """All nodes of one run, shown."""

    def __init__(self, run: Run, plan: Plan, nodes: Sequence[RunNode], jobs: Mapping[JobId, Job]) -> None:
        self._run = run
        self._plan = plan
        self._jobs = jobs
        self._nodes = nodes
        self._by_key = {node.key: node for node in nodes}
        self._held: dict[str, list[RunNode]] = defaultdict(list)
        for node in nodes:
            self._held[node.parent].append(node)

    def runtime(self) -> dict[str, list[ViewAnswer]]:
        return self._inside("")

    def post_process(self) -> dict[str, JobViewAnswer]:
        found = [node for node in self._nodes if node.node == self._plan.post_process]
        return {self._plan.nodes[node.node].name: self._step(node) for node in found}

    def graph(self) -> GraphAnswer:
        rows: dict[str, list[RunNode]] = defaultdict(list)
        for node in self._nodes:
            rows[node.node].append(node)
        drawn = lay_out(self._plan)
        return graph_answer(drawn, [self._drawn(placed, rows[placed.path]) for placed in drawn.nodes])

    def timing(self, timing: RunTiming) -> TimingAnswer:
        critical = frozenset(timing.critical)
        return {
            "runID": self._run.id,
            "status": self._run.status,
            "totalSeconds": round(timing.total_s, 3),
            "steps": [self._timed(node, timing, critical) for node in self._nodes if node.seq != NO_ITEMS],
            "criticalPath": list(timing.critical),
        }

    def _inside(self, parent: str) -> dict[str, list[ViewAnswer]]:
        views: dict[str, list[ViewAnswer]] = {}
        for node in self._held[parent]:
            if node.node == self._plan.post_process:
                continue
            items = views.setdefault(self._plan.nodes[node.node].name, [])
            if node.seq != NO_ITEMS:
                items.append(self._dag(node) if node.kind is NodeKind.DAG else self._step(node))
        return views

    def _own_job(self, node: RunNode) -> Job | None:
        """The job that ran it in this run; not the one whose result it was given."""
        is_own = node.job_id is not None and node.cache_run_id is None and node.source_run is None
        return self._jobs.get(node.job_id) if is_own and node.job_id is not None else None

    def _status(self, node: RunNode) -> NodeStatus:
        job = self._own_job(node)
        if node.status is NodeStatus.RUNNING and job is not None and job.status in _NOT_YET:
            return NodeStatus.PENDING
        return node.status

    def _parent_id(self, node: RunNode) -> str:
        parent = self._by_key.get(node.parent)
        return "" if parent is None else parent.id

    def _numbered(self, node: RunNode, plan: PlanNode) -> str:
        return f"{self._run.id}-{plan.name}" + (f"-{node.seq}" if node.seq > 0 else "")

    def _step(self, node: RunNode) -> JobViewAnswer:
        plan = self._plan.nodes[node.node]
        job = self._own_job(node)
        has_begun = node.started_at is not None
        return {
            "jobID": node.id,
            "name": self._numbered(node, plan),
            "type": node.kind,
            "stepName": plan.name,
            "parentDagID": self._parent_id(node),
            "command": node.command if has_begun else plan.command,
            "parameters": dict(node.parameters if has_begun else plan.parameters),
            "env": dict(node.env if has_begun else plan.env),
            "extraFS": [mount_answer(mount, self._run.owner) for mount in plan.mounts],
            "startTime": local_time(node.started_at if job is None else job.created_at),
            "endTime": local_time(node.finished_at),
            "status": self._status(node),
            "deps": ",".join(plan.deps),
            "dockerEnv": plan.docker_env,
            "artifacts": {"input": dict(node.inputs), "output": dict(node.outputs)},
            "cache": {
                "enable": plan.cache.enable,
                "maxExpiredTime": str(plan.cache.expires_after_s),
                "fsScope": [
                    {"name": scope.fs_name, "id": filesystem_id(self._run.owner, scope.fs_name), "path": scope.path}
                    for scope in plan.cache.scopes
                ],
            },
            "jobMessage": node.message or ("" if job is None else job.message),
            "cacheRunID": node.cache_run_id or "",
            "cacheJobID": (node.job_id or "") if node.cache_run_id else "",
            "key": node.key,
            "loopItem": node.item,
            "retries": 0 if job is None else job.failures,
        }

    def _dag(self, node: RunNode) -> DagViewAnswer:
        plan = self._plan.nodes[node.node]
        return {
            "id": node.id,
            "name": f"dag-{self._numbered(node, plan)}",
            "type": node.kind,
            "dagName": plan.name,
            "parentDagID": self._parent_id(node),
            "deps": ",".join(plan.deps),
            "parameters": dict(plan.parameters if node.started_at is None else node.parameters),
            "artifacts": {"input": dict(node.inputs), "output": dict(node.outputs)},
            "startTime": local_time(node.started_at),
            "endTime": local_time(node.finished_at),
            "status": node.status,
            "message": node.message,
            "entryPoints": self._inside(node.key),
            "key": node.key,
            "loopItem": node.item,
        }

    def _drawn(self, placed: PlacedNode, rows: Sequence[RunNode]) -> GraphNodeAnswer:
        statuses = Counter(self._status(node) for node in rows)
        if not statuses:
            # Its turn has not come, or never will.
            statuses = Counter([NodeStatus.CANCELLED if self._run.is_ended else NodeStatus.PENDING])
        together = next(status for status in _LOUDEST if status in statuses)
        is_over = all(node.is_ended for node in rows)
        return _graph_node(
            placed,
            status=together,
            start=min(_known(node.started_at for node in rows), default=None),
            end=max(_known(node.finished_at for node in rows), default=None) if is_over else None,
            items={str(status): statuses[status] for status in _LOUDEST if status in statuses},
        )

    def _timed(self, node: RunNode, timing: RunTiming, critical: frozenset[str]) -> StepTimingAnswer:
        timed = timing.nodes[node.key]
        return {
            "key": node.key,
            "name": node.node,
            "type": node.kind,
            "status": self._status(node),
            "startTime": local_time(timed.started_at),
            "endTime": local_time(timed.ended_at),
            "waitingSeconds": round(timed.waiting_s, 3),
            "runningSeconds": round(timed.running_s, 3),
            "totalSeconds": round(timed.total_s, 3),
            "reused": timed.is_reused,
            "critical": node.key in critical,
        }


def _known(times: Iterable[datetime | None]) -> list[datetime]:
    return [at for at in times if at is not None]


def plan_graph(plan: Plan) -> GraphAnswer:
    """Of a plan that is not run."""
    drawn = lay_out(plan)
    return graph_answer(drawn, [_graph_node(placed) for placed in drawn.nodes])


def graph_answer(graph: Graph, nodes: list[GraphNodeAnswer]) -> GraphAnswer:
    edges: list[GraphEdgeAnswer] = [{"source": edge.source, "target": edge.target} for edge in graph.edges]
    return {"nodes": nodes, "edges": edges, "width": graph.width, "height": graph.height}


def _graph_node(
    placed: PlacedNode,
    *,
    status: str = "",
    start: datetime | None = None,
    end: datetime | None = None,
    items: dict[str, int] | None = None,
) -> GraphNodeAnswer:
    return {
        "id": placed.path,
        "name": placed.name,
        "type": placed.kind,
        "status": status,
        "x": placed.x,
        "y": placed.y,
        "width": placed.width,
        "height": placed.height,
        "layer": placed.layer,
        "row": placed.row,
        "parent": placed.parent,
        "startTime": local_time(start),
        "endTime": local_time(end),
        "items": items or {},
    }


def mount_answer(mount: Mount | None, owner: UserName) -> MountAnswer:
    """Without a filesystem, an empty one: clients expect the object."""
    if mount is None:
        return {"id": "", "name": "", "mountPath": "", "subPath": "", "readOnly": False}
    return {
        "id": filesystem_id(owner, mount.name),
        "name": mount.name,
        "mountPath": mount.mount_path,
        "subPath": mount.sub_path,
        "readOnly": mount.read_only,
    }
