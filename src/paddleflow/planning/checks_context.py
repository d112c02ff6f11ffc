"""What every rule is told: the pipeline, laid out flat with the names, neighbours and parents of each node."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum, auto
from functools import cached_property

from paddleflow.planning.parameters import override
from paddleflow.planning.references import References
from paddleflow.planning.source import DagSource, Limits, NodeSource, Overrides, Path, Source, StepSource

SUGGESTIONS = 20
"""Problems that come with a suggestion. Finding one is slow, and nobody reads the hundredth."""
SUGGEST_AMONG = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    message: str
    path: Path = ()
    """Where in the document; empty: in what the request says beside it."""
    line: int | None = None

    @property
    def place(self) -> str:
        return ".".join(map(str, self.path))


class Root(Enum):
    ENTRY_POINTS = auto()
    COMPONENTS = auto()
    POST_PROCESS = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A node as written, and what is around it."""

    name: str
    """Full: ``sub.train``."""
    node: NodeSource
    siblings: Mapping[str, NodeSource]
    """Itself included."""
    root: Root
    parent: DagSource | None = None
    is_off: bool = False
    """Disabled, or inside a dag that is."""

    @property
    def is_component(self) -> bool:
        """One that others refer to, not a part of one."""
        return self.root is Root.COMPONENTS and self.parent is None


class Context:
    """One pipeline, one request, one set of limits. What is expensive is made when a rule first asks."""

    def __init__(self, source: Source, overrides: Overrides, limits: Limits) -> None:
        self.written = source
        """Without what the request says."""
        self.overrides = overrides
        self.limits = limits
        self.references = References(source.components)
        self._suggestions = SUGGESTIONS

    @cached_property
    def _overridden(self) -> tuple[Source, tuple[str, ...]]:
        given = self.overrides
        source, problems = override(self.written, given.parameters, self.references)
        source = replace(
            source,
            name=given.name or source.name,
            docker_env=given.docker_env or source.docker_env,
            disabled=given.disabled or source.disabled,
            strategy=given.strategy or source.strategy,
        )
        return source, problems

    @property
    def source(self) -> Source:
        """With what the request says."""
        return self._overridden[0]

    @property
    def override_problems(self) -> tuple[str, ...]:
        return self._overridden[1]

    @cached_property
    def disabled(self) -> tuple[str, ...]:
        """Full names, as often as they were given."""
        return tuple(name for name in (part.strip() for part in self.source.disabled.split(",")) if name)

    @cached_property
    def places(self) -> tuple[Place, ...]:
        """Entry points, the post-process, components: every node once, parents before children, in written order."""
        off = frozenset(self.disabled)
        source = self.source
        return (
            *_places(source.nodes, Root.ENTRY_POINTS, off),
            *_places(source.post_process, Root.POST_PROCESS, off),
            *_places(source.components, Root.COMPONENTS, frozenset()),
        )

    @cached_property
    def active(self) -> tuple[Place, ...]:
        """Those whose contents matter: all but what is disabled."""
        return tuple(place for place in self.places if not place.is_off)

    @cached_property
    def steps(self) -> tuple[tuple[Place, StepSource], ...]:
        """The steps that have a body of their own."""
        return tuple(
            (place, place.node)
            for place in self.places
            if isinstance(place.node, StepSource) and not place.node.reference
        )

    @cached_property
    def scopes(self) -> tuple[Mapping[str, NodeSource], ...]:
        """Each set of nodes that may depend on each other."""
        inside = (place.node.nodes for place in self.places if isinstance(place.node, DagSource))
        return (self.source.nodes, *inside)

    def resolve(self, node: NodeSource) -> NodeSource:
        return self.references.resolve(node)

    def find(self, name: str) -> Place | None:
        """The node of that full name in what would run: references are followed, so it may be part of a component."""
        roots = ((Root.ENTRY_POINTS, self.source.nodes), (Root.POST_PROCESS, self.source.post_process))
        return next(filter(None, (self._find(name, root, nodes) for root, nodes in roots)), None)

    def _find(self, name: str, root: Root, nodes: Mapping[str, NodeSource]) -> Place | None:
        siblings, parent, place = nodes, None, None
        for end in (*(at for at, letter in enumerate(name) if letter == "."), len(name)):
            full = name[:end]
            node = siblings.get(full.rpartition(".")[2])
            if node is None:
                return None
            place = Place(name=full, node=node, siblings=siblings, root=root, parent=parent)
            body = self.resolve(node)
            parent = body if isinstance(body, DagSource) else None
            siblings = parent.nodes if parent else {}
        return place

    def problem(self, message: str, path: Path = ()) -> Problem:
        """With the line of the nearest part of the path that has one."""
        for end in range(len(path), 0, -1):
            line = self.written.lines.get(path[:end])
            if line is not None:
                return Problem(message=message, path=path, line=line)
        return Problem(message=message, path=path)

    def did_you_mean(self, name: str, names: Iterable[str]) -> str:
        """The end of a message about a name that does not exist, where one that does is near."""
        if not self._suggestions:
            return ""
        among = list(names)
        if len(among) > SUGGEST_AMONG:
            return ""
        self._suggestions -= 1
        near = difflib.get_close_matches(name, among, n=1)
        return f", did you mean [{near[0]}]?" if near else ""


def _places(nodes: Mapping[str, NodeSource], root: Root, off: frozenset[str]) -> Iterator[Place]:
    stack = [
        Place(name=name, node=node, siblings=nodes, root=root, is_off=name in off)
        for name, node in reversed(tuple(nodes.items()))
    ]
    while stack:
        place = stack.pop()
        yield place
        if isinstance(place.node, DagSource):
            dag = place.node
            for name, node in reversed(tuple(dag.nodes.items())):
                full = f"{place.name}.{name}"
                stack.append(
                    Place(
                        name=full,
                        node=node,
                        siblings=dag.nodes,
                        root=root,
                        parent=dag,
                        is_off=place.is_off or full in off,
                    )
                )
