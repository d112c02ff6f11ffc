"""Components, and what a step that refers to one stands for.

A step with a ``reference`` is shorthand: it has the body of the component, its own name and dependencies, and the
parameters and inputs it gives itself. Components may refer to components. How large and how deep the whole becomes is
reckoned before anything is copied, so that a few lines of text cannot ask for a billion nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from paddleflow.planning.source import DagSource, NodeSource, StepSource, TypedParameter, Written


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """How much a part of a pipeline is, references followed."""

    nodes: int
    depth: int
    """Dags inside dags; 0: there is no dag."""


def walk(nodes: Iterable[NodeSource]) -> Iterator[tuple[NodeSource, int]]:
    """Every node as written and the number of dags around it. Needs no recursion: nesting is the writer's choice."""
    stack = [(node, 0) for node in nodes]
    while stack:
        node, level = stack.pop()
        yield node, level
        if isinstance(node, DagSource):
            stack.extend((child, level + 1) for child in node.nodes.values())


class References:
    """The components of one pipeline."""

    def __init__(self, components: Mapping[str, NodeSource]) -> None:
        self._components = components

    def chain(self, step: StepSource) -> tuple[NodeSource, ...]:
        """The components behind a step, nearest first. Ends early where one is missing or the chain bites its tail."""
        found: list[NodeSource] = []
        seen: set[str] = set()
        name = step.reference
        while name and name not in seen and name in self._components:
            seen.add(name)
            component = self._components[name]
            found.append(component)
            name = component.reference if isinstance(component, StepSource) else ""
        return tuple(found)

    def missing(self, step: StepSource) -> str:
        """The first component on the way that does not exist; empty: all do."""
        last = (step, *self.chain(step))[-1]
        name = last.reference if isinstance(last, StepSource) else ""
        return name if name and name not in self._components else ""

    def resolve(self, node: NodeSource) -> NodeSource:
        """What a node stands for: itself, or the component it refers to with what the node gives put in."""
        if isinstance(node, DagSource) or not node.reference:
            return node
        chain = self.chain(node)
        if not chain:
            return node
        parameters: dict[str, Written] = {}
        inputs: dict[str, str] = {}
        for each in (*reversed(chain), node):
            parameters.update(each.parameters)
            inputs.update(each.inputs)
        return replace(chain[-1], name=node.name, at=node.at, deps=node.deps, parameters=parameters, inputs=inputs)

    def declared_type(self, node: NodeSource, parameter: str) -> str:
        """The type a parameter must have: as the node says, or the nearest component behind it; empty: any."""
        written = node.parameters.get(parameter)
        if isinstance(written, TypedParameter):
            return written.type
        behind = () if isinstance(node, DagSource) else self.chain(node)
        for component in behind:
            typed = component.parameters.get(parameter)
            if isinstance(typed, TypedParameter):
                return typed.type
        return ""

    def in_order(self) -> tuple[str, ...] | None:
        """The names of the components, those referred to first; None when they refer to each other in a circle."""
        uses = {
            name: {
                inner.reference
                for inner, _ in walk((component,))
                if isinstance(inner, StepSource) and inner.reference in self._components
            }
            for name, component in self._components.items()
        }
        users: dict[str, list[str]] = {name: [] for name in uses}
        for name, used in uses.items():
            for each in used:
                users[each].append(name)
        waiting = {name: len(used) for name, used in uses.items()}
        ready = [name for name, count in waiting.items() if not count]
        for name in ready:
            for user in users[name]:
                waiting[user] -= 1
                if not waiting[user]:
                    ready.append(user)
        return tuple(ready) if len(ready) == len(uses) else None

    def measure(self, nodes: Iterable[NodeSource]) -> Measure:
        """Of components that form no circle."""
        known: dict[str, Measure] = {}
        for name in self.in_order() or ():
            known[name] = _measure((self._components[name],), known)
        return _measure(nodes, known)


def _measure(nodes: Iterable[NodeSource], known: Mapping[str, Measure]) -> Measure:
    total = 0
    deepest = 0
    for node, level in walk(nodes):
        inside = known.get(node.reference) if isinstance(node, StepSource) and node.reference else None
        total += inside.nodes if inside else 1
        depth = level + (inside.depth if inside else isinstance(node, DagSource))
        deepest = max(deepest, depth)
    return Measure(nodes=total, depth=deepest)
