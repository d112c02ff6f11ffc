"""Where the nodes of a plan stand when it is drawn: in columns, from left to right, dags as boxes around their nodes.

A node stands one column right of the last of those it waits for, so every edge goes to the right. Within a column the
order follows the neighbours (a few sweeps by barycentre), which keeps edges short and crossings few. The same plan is
always drawn the same way. Lengths are units of a drawing with the origin at the top left; what fits a screen is up to
whoever draws. Post-processing waits for everything and stands in a column of its own at the end.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from paddleflow.domain.runs import NodeKind
from paddleflow.planning.plan import Plan, PlanNode

STEP_WIDTH = 180
STEP_HEIGHT = 48
COLUMN_GAP = 64
ROW_GAP = 24
PADDING = 24
"""Between the border of a dag and what it holds."""
TITLE = 32
"""Above what a dag holds: room for its name."""
_SWEEPS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedNode:
    path: str
    name: str
    kind: NodeKind
    parent: str
    x: int
    """Of the left border, in the whole drawing."""
    y: int
    width: int
    height: int
    layer: int
    """Which column of its dag, from 0."""
    row: int
    """Which place in that column, from 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """The target waits for the source; both are in the same dag."""

    source: str
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    nodes: tuple[PlacedNode, ...]
    """In the order of the plan: parents before what they hold."""
    edges: tuple[Edge, ...]
    width: int
    height: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Box:
    """A dag, or the whole plan, drawn for itself: places relative to its own corner."""

    width: int
    height: int
    inside: tuple[PlacedNode, ...] = ()


_STEP = _Box(width=STEP_WIDTH, height=STEP_HEIGHT)


def lay_out(plan: Plan) -> Graph:
    boxes: dict[str, _Box] = {}
    # Children come after their parents in a plan, so backwards every box is there before it is needed.
    for node in reversed(tuple(plan.nodes.values())):
        is_dag = node.kind is NodeKind.DAG
        boxes[node.path] = _drawn(plan, node.children, boxes, framed=True) if is_dag else _STEP
    whole = _drawn(plan, plan.top, boxes, framed=False)
    if plan.post_process:
        whole = _with_post_process(plan.nodes[plan.post_process], whole)
    absolute = _absolute(plan, whole, boxes)
    return Graph(
        nodes=tuple(absolute[path] for path in plan.nodes if path in absolute),
        edges=tuple(_edges(plan)),
        width=whole.width,
        height=whole.height,
    )


def _edges(plan: Plan) -> list[Edge]:
    return [Edge(source=before, target=node.path) for node in plan.nodes.values() for before in waits_for(node)]


def waits_for(node: PlanNode) -> tuple[str, ...]:
    """The paths of the siblings a node waits for."""
    prefix = f"{node.parent}." if node.parent else ""
    return tuple(f"{prefix}{name}" for name in node.deps)


def _drawn(plan: Plan, paths: Sequence[str], boxes: Mapping[str, _Box], *, framed: bool) -> _Box:
    """The nodes of one dag, which come in topological order, in their columns."""
    left, top = (PADDING, PADDING + TITLE) if framed else (0, 0)
    columns = _ordered(_layered(plan, paths), plan)
    heights = [sum(boxes[path].height for path in column) + ROW_GAP * (len(column) - 1) for column in columns]
    tallest = max(heights, default=0)
    placed: list[PlacedNode] = []
    x = left
    for layer, column in enumerate(columns):
        width = max(boxes[path].width for path in column)
        y = top + (tallest - heights[layer]) // 2
        for row, path in enumerate(column):
            box = boxes[path]
            placed.append(_place(plan.nodes[path], box, x, y, layer, row))
            y += box.height + ROW_GAP
        x += width + COLUMN_GAP
    right = x - COLUMN_GAP if columns else left
    border = PADDING if framed else 0
    least = STEP_WIDTH if framed else 0
    return _Box(width=max(right + border, least), height=top + tallest + border, inside=tuple(placed))


def _place(node: PlanNode, box: _Box, x: int, y: int, layer: int, row: int) -> PlacedNode:
    return PlacedNode(
        path=node.path,
        name=node.name,
        kind=node.kind,
        parent=node.parent,
        x=x,
        y=y,
        width=box.width,
        height=box.height,
        layer=layer,
        row=row,
    )


def _layered(plan: Plan, paths: Sequence[str]) -> list[list[str]]:
    """By the longest way from a node that waits for none."""
    layer_of: dict[str, int] = {}
    columns: list[list[str]] = []
    for path in paths:
        layer = max((layer_of[before] + 1 for before in waits_for(plan.nodes[path])), default=0)
        layer_of[path] = layer
        if layer == len(columns):
            columns.append([])
        columns[layer].append(path)
    return columns


def _ordered(columns: list[list[str]], plan: Plan) -> list[list[str]]:
    """Each column by the mean place of the neighbours, to the right and back again; what has none keeps its place."""
    before: dict[str, tuple[str, ...]] = {}
    after: dict[str, list[str]] = defaultdict(list)
    for path in (path for column in columns for path in column):
        before[path] = waits_for(plan.nodes[path])
        for source in before[path]:
            after[source].append(path)
    place = {path: _middle(row, column) for column in columns for row, path in enumerate(column)}

    def sweep(ordered: Sequence[list[str]], neighbours: Mapping[str, Sequence[str]]) -> None:
        for column in ordered:
            weights = {path: _mean(place, neighbours.get(path, ()), place[path]) for path in column}
            column.sort(key=weights.__getitem__)
            for row, path in enumerate(column):
                place[path] = _middle(row, column)

    for _ in range(_SWEEPS):
        sweep(columns[1:], before)
        sweep(columns[-2::-1], after)
    return columns


def _middle(row: int, column: Sequence[str]) -> float:
    """Columns are drawn around a common middle, so places are counted from it."""
    return row - (len(column) - 1) / 2


def _mean(place: Mapping[str, float], neighbours: Sequence[str], otherwise: float) -> float:
    return sum(place[path] for path in neighbours) / len(neighbours) if neighbours else otherwise


def _with_post_process(node: PlanNode, whole: _Box) -> _Box:
    x = whole.width + COLUMN_GAP if whole.inside else 0
    height = max(whole.height, STEP_HEIGHT)
    layer = max((placed.layer + 1 for placed in whole.inside), default=0)
    placed = _place(node, _STEP, x, (height - STEP_HEIGHT) // 2, layer, 0)
    return _Box(width=x + STEP_WIDTH, height=height, inside=(*whole.inside, placed))


def _absolute(plan: Plan, whole: _Box, boxes: Mapping[str, _Box]) -> dict[str, PlacedNode]:
    """Every node where it stands in the whole drawing."""
    found: dict[str, PlacedNode] = {placed.path: placed for placed in whole.inside}
    for path in plan.nodes:
        corner = found.get(path)
        if corner is not None:
            for placed in boxes[path].inside:
                found[placed.path] = replace(placed, x=placed.x + corner.x, y=placed.y + corner.y)
    return found
