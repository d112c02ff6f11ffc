"""When two pipelines are the same: equal plans, whatever their parameters and inputs are called.

The Python language invents names for what an f-string refers to, and hands it from dag to dag under names of its own.
So every parameter and input is called here by what it stands for in the end: ``numbers.count``, ``split.words``.
"""

from __future__ import annotations

import importlib.util
from dataclasses import fields
from pathlib import Path
from types import ModuleType
from typing import Any

from paddleflow.documents import dump, load
from paddleflow.planning.compile import compile_plan
from paddleflow.planning.parse import parse
from paddleflow.planning.plan import LoopArtifact, LoopParameter, Plan, PlanNode
from paddleflow.planning.source import Limits, Overrides
from paddleflow.planning.templates import MISSING, Missing, Ref, fill, whole

_NAMED = ("parameters", "inputs", "outputs", "loop", "command", "condition", "env", "deps", "children", "path")


def plan_of(text: str) -> Plan:
    document = load(text)
    return compile_plan(parse(document.value, document.lines), Overrides(), Limits())


def load_example(folder: Path) -> ModuleType:
    """Its run.py, as somebody gets it who imports it."""
    spec = importlib.util.spec_from_file_location(f"example_{folder.name.replace('-', '_')}", folder / "run.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def python_document(folder: Path) -> dict[str, Any]:
    """What the function that is called like the folder compiles to."""
    build = getattr(load_example(folder), folder.name.replace("-", "_"))
    document: dict[str, Any] = build().compile()
    return document


def python_plan(folder: Path) -> Plan:
    return plan_of(dump(python_document(folder)))


def settled(plan: Plan) -> dict[str, object]:
    """A plan in which nothing depends on chosen names; equal for twins."""
    described: dict[str, object] = {path: _Node(plan, node).settled() for path, node in plan.nodes.items()}
    described["whole"] = (plan.name, plan.strategy, plan.parallelism, plan.main_fs, plan.post_process, sorted(plan.top))
    return described


class _Node:
    def __init__(self, plan: Plan, node: PlanNode) -> None:
        self.plan = plan
        self.node = node

    def settled(self) -> dict[str, object]:
        node = self.node
        told: dict[str, object] = {
            each.name: getattr(node, each.name) for each in fields(node) if each.name not in _NAMED
        }
        return told | {
            "parameters": {
                self.origin_of_parameter(name): None if self._refers(value) else value
                for name, value in node.parameters.items()
            },
            "inputs": {self.origin_of_input(name) for name in node.inputs},
            "outputs": {self.origin_of_output(name) for name in node.outputs},
            "loop": self._loop(),
            "texts": [self._text(text) for text in (node.command, node.condition, *node.env.values())],
            "env": list(node.env),
            "deps": set(node.deps),
            "children": set(node.children),
        }

    def origin_of_parameter(self, name: str) -> str:
        value = self.node.parameters[name]
        ref = whole(value) if isinstance(value, str) else None
        if ref is None or not ref.node:
            return f"{self.node.path}.{name}"
        if ref.node != "PF_PARENT":
            return self._beside(ref.node).origin_of_parameter(ref.name)
        if ref.name == "PF_LOOP_ARGUMENT":
            return f"item of {self.node.parent}"
        return self._at(self.node.parent).origin_of_parameter(ref.name)

    def origin_of_input(self, name: str) -> str:
        ref = self.node.inputs[name]
        if not ref.node:
            return self._at(self.node.parent).origin_of_input(ref.name)
        return self._beside(ref.node).origin_of_output(ref.name)

    def origin_of_output(self, name: str) -> str:
        ref = self.node.outputs[name]
        if ref is None:
            return f"{self.node.path}.{name}"
        return self._at(f"{self.node.path}.{ref.node}").origin_of_output(ref.name)

    def _loop(self) -> object:
        match self.node.loop:
            case LoopParameter(name=name):
                return self.origin_of_parameter(name)
            case LoopArtifact(name=name):
                return self.origin_of_input(name)
            case listed:
                return listed

    def _text(self, text: str) -> object:
        def lookup(ref: Ref) -> str | Missing:
            if ref.node or ref.name.startswith("PF_"):
                return MISSING
            if ref.name in self.node.parameters:
                return f"<{self.origin_of_parameter(ref.name)}>"
            if ref.name in self.node.inputs:
                return f"<{self.origin_of_input(ref.name)}>"
            return f"<{self.origin_of_output(ref.name)}>"

        return fill(text, lookup)

    def _refers(self, value: object) -> bool:
        ref = whole(value) if isinstance(value, str) else None
        return ref is not None and bool(ref.node)

    def _beside(self, name: str) -> _Node:
        return self._at(f"{self.node.parent}.{name}" if self.node.parent else name)

    def _at(self, path: str) -> _Node:
        return _Node(self.plan, self.plan.nodes[path])
