"""The drawing of a plan: every edge goes to the right, nothing overlaps, the same plan is drawn the same way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from paddleflow.domain.runs import NodeKind
from paddleflow.planning.layout import STEP_HEIGHT, STEP_WIDTH, Edge, Graph, PlacedNode, lay_out
from paddleflow.planning.plan import Plan, PlanNode

Shape = Mapping[str, tuple[Sequence[str], object]]
"""Name → what it waits for, and the shape of the dag it is (None: a step)."""


def plan_of(shape: Shape, post_process: str = "") -> Plan:
    nodes: dict[str, PlanNode] = {}

    def add(shape: Shape, parent: str) -> tuple[str, ...]:
        prefix = f"{parent}." if parent else ""
        paths = []
        for name, (deps, inside) in shape.items():
            path = prefix + name
            kind = NodeKind.STEP if inside is None else NodeKind.DAG
            nodes[path] = PlanNode(path=path, name=name, kind=kind, parent=parent, deps=tuple(deps))
            if inside is not None:
                children = add(inside, path)  # type: ignore[arg-type]
                nodes[path] = PlanNode(
                    path=path, name=name, kind=kind, parent=parent, deps=tuple(deps), children=children
                )
            paths.append(path)
        return tuple(paths)

    top = add(shape, "")
    if post_process:
        path = f"post_process.{post_process}"
        nodes[path] = PlanNode(path=path, name=post_process, kind=NodeKind.STEP)
        return Plan(name="drawn", nodes=nodes, top=top, post_process=path)
    return Plan(name="drawn", nodes=nodes, top=top)


def placed(graph: Graph) -> dict[str, PlacedNode]:
    return {node.path: node for node in graph.nodes}


def overlap(a: PlacedNode, b: PlacedNode) -> bool:
    beside = a.x + a.width <= b.x or b.x + b.width <= a.x
    above = a.y + a.height <= b.y or b.y + b.height <= a.y
    return not (beside or above)


def holds(outer: PlacedNode, inner: PlacedNode) -> bool:
    return (
        outer.x < inner.x
        and outer.y < inner.y
        and inner.x + inner.width < outer.x + outer.width
        and inner.y + inner.height < outer.y + outer.height
    )


def check_drawing(plan: Plan) -> None:
    graph = lay_out(plan)
    nodes = placed(graph)
    assert set(nodes) == set(plan.nodes)
    for edge in graph.edges:
        source, target = nodes[edge.source], nodes[edge.target]
        assert source.layer < target.layer
        assert source.x + source.width < target.x, edge
    for a, b in combinations(graph.nodes, 2):
        assert a.parent != b.parent or not overlap(a, b), (a, b)
    for node in graph.nodes:
        if node.parent:
            assert holds(nodes[node.parent], node), node
        assert node.x >= 0
        assert node.y >= 0
        assert node.x + node.width <= graph.width
        assert node.y + node.height <= graph.height


def test_a_chain_stands_in_one_line() -> None:
    graph = lay_out(plan_of({"a": ([], None), "b": (["a"], None), "c": (["b"], None)}))
    nodes = placed(graph)
    assert [nodes[name].layer for name in "abc"] == [0, 1, 2]
    assert {node.y for node in graph.nodes} == {0}
    assert graph.edges == (Edge(source="a", target="b"), Edge(source="b", target="c"))
    assert (nodes["a"].width, nodes["a"].height) == (STEP_WIDTH, STEP_HEIGHT)


def test_a_node_stands_behind_the_last_it_waits_for() -> None:
    nodes = placed(lay_out(plan_of({"a": ([], None), "b": (["a"], None), "c": (["a", "b"], None), "d": ([], None)})))
    assert [nodes[name].layer for name in "abcd"] == [0, 1, 2, 0]


def test_edges_that_would_cross_are_uncrossed() -> None:
    shape: Shape = {"a": ([], None), "b": ([], None), "x": (["b"], None), "y": (["a"], None)}
    nodes = placed(lay_out(plan_of(shape)))
    assert (nodes["a"].row < nodes["b"].row) == (nodes["y"].row < nodes["x"].row)


def test_a_dag_is_a_box_around_its_nodes() -> None:
    inner: Shape = {"first": ([], None), "second": (["first"], None)}
    plan = plan_of({"a": ([], None), "sub": (["a"], inner), "z": (["sub"], None)})
    check_drawing(plan)
    nodes = placed(lay_out(plan))
    assert nodes["sub.first"].parent == "sub"
    assert nodes["sub"].width > 2 * STEP_WIDTH
    assert nodes["sub.second"].layer == 1, "counted inside its dag"


def test_post_processing_stands_right_of_everything() -> None:
    plan = plan_of({"a": ([], None), "b": (["a"], None)}, post_process="notify")
    check_drawing(plan)
    nodes = placed(lay_out(plan))
    assert nodes["post_process.notify"].x > nodes["b"].x + nodes["b"].width
    assert nodes["post_process.notify"].layer == 2


def test_a_plan_of_nothing_is_an_empty_drawing() -> None:
    assert lay_out(plan_of({})) == Graph(nodes=(), edges=(), width=0, height=0)
    check_drawing(plan_of({"hollow": ([], {})}))


def test_a_thousand_nodes_are_drawn() -> None:
    shape: dict[str, tuple[Sequence[str], object]] = {}
    for number in range(1000):
        deps = [f"n{number - gap}" for gap in (1, 7, 40) if number % 5 and number >= gap]
        shape[f"n{number}"] = (deps, None)
    assert len(lay_out(plan_of(shape)).nodes) == 1000


@st.composite
def shapes(draw: st.DrawFn, depth: int = 2) -> Shape:
    shape: dict[str, tuple[Sequence[str], object]] = {}
    for number in range(draw(st.integers(0, 7))):
        deps = draw(st.lists(st.sampled_from(sorted(shape)), unique=True, max_size=3)) if shape else []
        is_dag = depth > 0 and draw(st.booleans()) and draw(st.booleans())
        shape[f"n{number}"] = (deps, draw(shapes(depth=depth - 1)) if is_dag else None)
    return shape


@given(shapes(), st.booleans())
def test_any_plan_is_drawn_without_overlap_and_the_same_way_twice(shape: Shape, post: bool) -> None:
    plan = plan_of(shape, "tidy" if post else "")
    check_drawing(plan)
    assert lay_out(plan) == lay_out(plan)
