"""What both exports need to know of a plan: which nodes remain, in what order, and with which values.

A node that certainly does nothing is left out: disabled, a loop over an empty list, a dag in which nothing remains.
Whoever waited for it waits for what it waited for. What no other engine does is refused here, by name.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from paddleflow.domain.errors import Invalid
from paddleflow.domain.runs import NodeKind, Value
from paddleflow.exports.symbols import Gap, Gapped, Kind, Symbolic, joined, parts_of, substitute
from paddleflow.planning.plan import LoopArtifact, LoopItems, Plan, PlanNode
from paddleflow.planning.templates import MISSING, Missing, Ref
from paddleflow.planning.values import LOOP_ARGUMENT, PARENT

_SINGLE = frozenset({"", "single", "vcjob"})


def refused(node: PlanNode, problem: str) -> Invalid:
    return Invalid(f"{node.kind}[{node.path}] cannot be exported: {problem}", code="InvalidPipeline")


class Outline:
    """``parameters``: by path, each seen from the dag around. ``settled``: the same, seen from nowhere in particular,
    so that the only gaps are the run's id, its user and loop items."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.parameters: dict[str, dict[str, Symbolic]] = {}
        self.settled: dict[str, dict[str, Symbolic]] = {}
        for node in plan.nodes.values():
            own = {name: self._parameter(node, value) for name, value in node.parameters.items()}
            self.parameters[node.path] = own
            self.settled[node.path] = {name: self.settle(node, value) for name, value in own.items()}
            if node.env.get("PF_JOB_TYPE", "") not in _SINGLE:
                raise refused(node, f"its PF_JOB_TYPE[{node.env['PF_JOB_TYPE'][:80]}] has no counterpart there")
        self._kept: dict[str, bool] = {}
        for node in reversed(list(plan.nodes.values())):  # children before their parents
            self._kept[node.path] = self._is_kept(node)

    # Which nodes, in which order.

    def kept(self, paths: Iterable[str]) -> list[PlanNode]:
        return [self.plan.nodes[path] for path in paths if self._kept[path]]

    @property
    def post_process(self) -> PlanNode | None:
        path = self.plan.post_process
        return self.plan.nodes[path] if path and self._kept[path] else None

    def sibling(self, node: PlanNode, name: str) -> PlanNode:
        return self.plan.nodes[f"{node.parent}.{name}" if node.parent else name]

    def child(self, dag: PlanNode, name: str) -> PlanNode:
        return self.plan.nodes[f"{dag.path}.{name}"]

    def deps(self, node: PlanNode) -> list[str]:
        found: dict[str, None] = {}
        waiting = list(reversed(node.deps))
        while waiting:
            dep = self.sibling(node, waiting.pop())
            if self._kept[dep.path]:
                found[dep.name] = None
            else:
                waiting.extend(reversed(dep.deps))
        return list(found)

    def steps_within(self, node: PlanNode) -> list[PlanNode]:
        """The steps that remain of it, at any depth; itself if it is one."""
        if node.kind is NodeKind.STEP:
            return [node]
        return [step for child in self.kept(node.children) for step in self.steps_within(child)]

    def _is_kept(self, node: PlanNode) -> bool:
        if node.disabled or (node.loop is not None and self.items(node) == []):
            return False
        return node.kind is NodeKind.STEP or any(self._kept[child] for child in node.children)

    # Values.

    def items(self, node: PlanNode) -> list[Value] | None:
        """Of its loop; None: they are known only while it runs."""
        loop = node.loop
        if loop is None or isinstance(loop, LoopArtifact):
            return None
        if isinstance(loop, LoopItems):
            return list(loop.items)
        value = self.settled[node.path].get(loop.name)
        return None if isinstance(value, Gapped) else listed(node, value)

    def settle(self, node: PlanNode, value: Symbolic) -> Symbolic:
        """The value with the parent's parameters put in; parents are settled before their children."""
        if not isinstance(value, Gapped):
            return value
        around = self.settled.get(node.parent, {})
        if value.only is not None and value.only.kind is Kind.PARENT:
            return around[value.only.of]
        pieces: list[str | Gap] = []
        for part in value.parts:
            if isinstance(part, Gap) and part.kind is Kind.PARENT:
                pieces += parts_of(around[part.of])
            else:
                pieces.append(part)
        return joined(pieces)

    def _parameter(self, node: PlanNode, value: Value) -> Symbolic:
        if not isinstance(value, str):
            return value
        parent = self.plan.nodes.get(node.parent)

        def lookup(ref: Ref) -> Symbolic | Missing:
            if ref.name == LOOP_ARGUMENT and ref.node in ("", PARENT):
                return Gapped((Gap(Kind.ITEM, parent.path),)) if parent is not None and parent.loop else ""
            if not ref.node:
                return system_value(ref.name, node)
            if ref.node == PARENT:
                return MISSING if parent is None else Gapped((Gap(Kind.PARENT, ref.name),))
            return self.parameters[self.sibling(node, ref.node).path].get(ref.name, MISSING)

        return substitute(value, lookup)


def system_value(name: str, node: PlanNode) -> Symbolic | Missing:
    """All but the loop item, which depends on where the template stands."""
    match name:
        case "PF_RUN_ID":
            return Gapped((Gap(Kind.RUN_ID),))
        case "PF_USER_NAME":
            return Gapped((Gap(Kind.USER_NAME),))
        case "PF_STEP_NAME":
            return node.name
        case _:
            return MISSING


def listed(node: PlanNode, value: Value) -> list[Value]:
    """The items in a list, or in a text that is a JSON list."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError as error:
            raise refused(node, f"loopArgument [{str(value)[:80]}] unmarshal to list failed, error: {error}") from error
    if not isinstance(value, list):
        raise refused(node, "loopArgument can only be string or list type")
    return value
