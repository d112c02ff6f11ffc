"""How far a run has come: its rows, and indexes over them that make every step forward cheap.

A *frame* is one running instance of a dag (or the top, or the post-process); a *group* is one node of the plan inside a
frame, unrolled into one row for each item of its loop. Everything here follows from the plan and the rows: a Progress
built from stored rows goes on exactly like the one that lived through the events. What is being asked outside is not
stored, and is asked again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from paddleflow.domain.errors import Invalid
from paddleflow.domain.ids import JobId
from paddleflow.domain.runs import NO_ITEMS, NODE_DONE, NodeKind, NodeStatus, RunNode, Stop, Value
from paddleflow.planning.bulk import bulk_of
from paddleflow.planning.moves import Fetch, RunFacts
from paddleflow.planning.paths import joined, runtime_name, runtime_root
from paddleflow.planning.plan import POST_PROCESS, Plan, PlanNode
from paddleflow.planning.source import Limits

TOP = ""
"""The key of the frame that holds the nodes at the top."""

MOST_BULK = 128 * 1024 * 1024
"""Characters that all rows of a run may hold together. Each row keeps what its node was given, so a large parameter in
a long loop is as many large parameters: in memory, in the database and in every answer about the run."""

_HAS_JOB = frozenset({NodeStatus.RUNNING, NodeStatus.TERMINATING})


@dataclass(slots=True, eq=False)
class Frame:
    key: str
    """Of the dag's row; ``TOP``; or ``POST_PROCESS``."""
    row: RunNode | None
    """The dag's own, as it was when it started; None for the other two."""
    runtime: str
    """What the paths of artifacts inside begin their name with."""
    groups: dict[str, Group] = field(default_factory=dict)
    """By own name, in the order of the plan."""
    open: int = 0
    """Groups that have not ended."""
    ended: set[NodeStatus] = field(default_factory=set)
    """How rows of ended groups ended."""

    @property
    def prefix(self) -> str:
        return f"{self.key}." if self.key else ""

    @property
    def parent(self) -> str:
        return "" if self.row is None else self.key


@dataclass(slots=True, eq=False)
class Group:
    key: str
    node: PlanNode
    frame: Frame
    waiting: int = 0
    """Groups it depends on that are not done."""
    is_unrolled: bool = False
    keys: list[str] = field(default_factory=list)
    """Of its rows, by item."""
    open: int = 0
    """Rows that have not ended."""
    ended: set[NodeStatus] = field(default_factory=set)
    parameters: Mapping[str, Value] | None = None
    """Once worked out; all rows share them. So with the inputs."""
    inputs: Mapping[str, str] | None = None
    contents: Mapping[str, str] | None = None
    """Of the artifacts its condition speaks of."""
    asked: Fetch | None = None
    """What it waits for from outside."""
    joined_outputs: dict[str, str | None] = field(default_factory=dict)

    @property
    def is_ended(self) -> bool:
        return self.is_unrolled and self.open == 0

    @property
    def is_done(self) -> bool:
        return self.is_ended and self.ended <= NODE_DONE


class Progress:
    """Changed by ``advance`` alone. Whoever cannot store what that returned throws this away and builds another."""

    def __init__(
        self, plan: Plan, facts: RunFacts, limits: Limits, nodes: Iterable[RunNode], stop: Stop = Stop.NO
    ) -> None:
        self.plan = plan
        self.facts = facts
        self.limits = limits
        self.stop = stop
        self.nodes: dict[str, RunNode] = {row.key: row for row in nodes}
        self.ordinals: dict[str, int] = {key: number for number, key in enumerate(self.nodes)}
        """The order in which rows came into being: whoever came first gets a free slot first."""
        self.dependents = _dependents(plan)
        self.weights = _weights(plan)
        self._index()

    def index_again(self) -> None:
        """Forget what was asked outside and begin anew from the rows."""
        self._index()

    def _index(self) -> None:
        self.frames: dict[str, Frame] = {}
        """Those that have not ended."""
        self.groups: dict[str, Group] = {}
        """Of open frames, by key."""
        self.running: dict[JobId, str] = {}
        self.preparing: dict[str, RunNode] = {}
        """Steps that hold a slot while it is found out whether they must run; as they would start."""
        self.queue: list[tuple[int, str]] = []
        """A heap of steps that wait for a slot."""
        self.job_ids: set[JobId] = set()
        self.is_halted = False
        """A failure has stopped everything but the post-process."""
        self.is_over = False
        self.is_fresh = True
        """Nothing has happened since the rows were read."""
        self._unclaimed: dict[tuple[str, str], list[str]] = defaultdict(list)
        for row in self.nodes.values():
            self._unclaimed[row.parent, row.node].append(row.key)
            if row.job_id is not None:
                self.job_ids |= {row.job_id, JobId(row.id)}
                if row.kind is NodeKind.STEP and row.status in _HAS_JOB:
                    self.running[row.job_id] = row.key
        self.size = len(self.plan.nodes) + sum(
            (len(keys) - 1) * self.weights[path] for (_, path), keys in self._unclaimed.items()
        )
        """Nodes the run has or is sure to get."""
        self.bulk = sum(bulk_of(row) for row in self.nodes.values())
        self.open_frame(TOP)
        self.after = self._open_after()

    def running_jobs(self) -> Mapping[JobId, str]:
        return self.running

    @property
    def top(self) -> Frame:
        return self.frames[TOP]

    def group_of(self, row: RunNode) -> Group:
        if row.node == self.plan.post_process:
            return self.groups[row.node]
        return self.frames[row.parent].groups[self.plan.nodes[row.node].name]

    def put(self, row: RunNode) -> None:
        self.nodes[row.key] = row
        self.ordinals.setdefault(row.key, len(self.ordinals))

    def make_room(self, row: RunNode) -> RunNode:
        """For what a node was given. Raises Invalid when the run holds too much."""
        bulk = self.bulk + bulk_of(row)
        if bulk > MOST_BULK:
            raise Invalid(
                f"the nodes of the run would hold more than {MOST_BULK} characters of parameters, paths, environments "
                f"and commands with component[{row.node}]; pass large values in files, as artifacts"
            )
        self.bulk = bulk
        return row

    def unroll(self, group: Group, rows: Iterable[RunNode]) -> None:
        """These are the group's rows from now on."""
        for row in rows:
            self.put(row)
            group.keys.append(row.key)
        group.is_unrolled = True
        group.open = len(group.keys)

    def open_frame(self, key: str) -> Frame:
        """Everything inside a dag (or at the top) comes into view; rows that are there already find their place."""
        opened = self._framed(key)
        inner = [opened]
        while inner:
            frame = inner.pop()
            for group in frame.groups.values():
                for row_key in group.keys:
                    row = self.nodes[row_key]
                    if row.kind is NodeKind.DAG and row.status is NodeStatus.RUNNING:
                        inner.append(self._framed(row_key))
        return opened

    def close_frame(self, frame: Frame) -> None:
        del self.frames[frame.key]
        for group in frame.groups.values():
            del self.groups[group.key]

    def output_of(self, group: Group, name: str) -> str | None:
        """Where an artifact of an ended group lies, joined over its items; None: it has none of that name."""
        if name not in group.joined_outputs:
            rows = [self.nodes[key] for key in group.keys if self.nodes[key].seq != NO_ITEMS]
            paths = tuple(row.outputs.get(name) for row in rows)
            known = tuple(path for path in paths if path is not None)
            group.joined_outputs[name] = joined(known) if len(known) == len(paths) else None
        return group.joined_outputs[name]

    def _framed(self, key: str) -> Frame:
        row = self.nodes[key] if key else None
        paths = self.plan.nodes[row.node].children if row else self.plan.top
        frame = Frame(key=key, row=row, runtime=self._runtime(row))
        self._fill(frame, paths)
        self.frames[key] = frame
        return frame

    def _open_after(self) -> Frame | None:
        """The post-process waits for the top as a whole."""
        if not self.plan.post_process:
            return None
        frame = Frame(key=POST_PROCESS, row=None, runtime=runtime_root(self.plan, post_process=True))
        self._fill(frame, (self.plan.post_process,))
        for group in frame.groups.values():
            group.waiting = 1 if self.top.open else 0
        return frame

    def _fill(self, frame: Frame, paths: Iterable[str]) -> None:
        for path in paths:
            node = self.plan.nodes[path]
            group = Group(key=frame.prefix + node.name, node=node, frame=frame)
            frame.groups[node.name] = group
            self.groups[group.key] = group
            self._adopt(group)
        for group in frame.groups.values():
            group.waiting = sum(not frame.groups[dep].is_done for dep in group.node.deps)
            if group.is_ended:
                frame.ended |= group.ended
            else:
                frame.open += 1

    def _adopt(self, group: Group) -> None:
        keys = self._unclaimed.pop((group.frame.parent, group.node.path), [])
        group.keys = sorted(keys, key=lambda key: self.nodes[key].seq)
        group.is_unrolled = bool(keys)
        for key in keys:
            row = self.nodes[key]
            if row.is_ended:
                group.ended.add(row.status)
            else:
                group.open += 1

    def _runtime(self, row: RunNode | None) -> str:
        """From the dags around, outermost first. They are few: nesting is limited."""
        around: list[RunNode] = []
        while row is not None:
            around.append(row)
            row = self.nodes[row.parent] if row.parent else None
        name = runtime_root(self.plan)
        for each in reversed(around):
            name = runtime_name(name, self.plan.nodes[each.node].name, each.seq)
        return name


def _dependents(plan: Plan) -> dict[str, list[str]]:
    """Path of a node → own names of the siblings that wait for it."""
    found: dict[str, list[str]] = {path: [] for path in plan.nodes}
    for node in plan.nodes.values():
        for dep in node.deps:
            found[f"{node.parent}.{dep}" if node.parent else dep].append(node.name)
    return found


def _weights(plan: Plan) -> dict[str, int]:
    """How many nodes one item of a node's loop brings at least: itself and what is inside."""
    weights = dict.fromkeys(plan.nodes, 1)
    for path in reversed(list(plan.nodes)):
        parent = plan.nodes[path].parent
        if parent:
            weights[parent] += weights[path]
    return weights
