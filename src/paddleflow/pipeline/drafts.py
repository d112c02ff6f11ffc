"""A pipeline as compiling works on it: a copy of every component, in which references are names.

The components that users hold are only read here. So compiling twice gives the same twice, a component may be changed
in between, and a chain of a thousand steps is no deeper than one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from paddleflow.pipeline import names
from paddleflow.pipeline.components import DAG, Component, ContainerStep
from paddleflow.pipeline.failures import dsl_error
from paddleflow.pipeline.values import Artifact, ArtifactPlaceholder, LoopItem, Owner, Parameter, ParameterPlaceholder


@dataclass(frozen=True, slots=True)
class LoopItemPlaceholder:
    """The loop item of another component, by name."""

    component_full_name: str


@dataclass(frozen=True, slots=True)
class Template:
    """A reference that is settled: the text that stands for it in the document."""

    text: str


@dataclass(frozen=True, slots=True)
class Text:
    """A text with markers in it, not settled yet."""

    text: str


@dataclass(frozen=True, slots=True)
class Literal:
    """A plain value, or ``{default, type}``."""

    value: object


GivenParameter: TypeAlias = Literal | Template | Text | ParameterPlaceholder | LoopItemPlaceholder
GivenArtifact: TypeAlias = Template | ArtifactPlaceholder


@dataclass(slots=True, eq=False, kw_only=True)
class Draft:
    """One component, being compiled."""

    component: Component
    full_name: str
    parent: Draft | None
    parameters: dict[str, GivenParameter] = field(default_factory=dict)
    inputs: dict[str, GivenArtifact] = field(default_factory=dict)
    outputs: dict[str, GivenArtifact | None] = field(default_factory=dict)
    """Of a step: None each."""
    waits_for: list[str] = field(default_factory=list)
    """Full names, not settled yet."""
    deps: set[str] = field(default_factory=set)
    """Own names of siblings."""
    condition: str | None = None
    loop: object = None
    """A list, a text, or a placeholder; None: no loop."""
    command: str = ""
    env: dict[str, str] = field(default_factory=dict)
    children: dict[str, Draft] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.component.name

    @property
    def is_dag(self) -> bool:
        return isinstance(self.component, DAG)

    @property
    def title(self) -> str:
        """How messages call it."""
        return f"{'DAG' if self.is_dag else 'step'}[{self.full_name.removeprefix(names.ROOT + '.')}]"

    def around(self) -> Iterator[Draft]:
        """The DAGs it is in, from the inside out."""
        dag = self.parent
        while dag is not None:
            yield dag
            dag = dag.parent

    def walk(self) -> Iterator[Draft]:
        yield self
        for child in self.children.values():
            yield from child.walk()


def draft(component: Component, parent: Draft | None = None) -> Draft:
    """A component and everything inside it."""
    made = Draft(component=component, full_name=component.full_name, parent=parent, condition=component.condition)
    made.parameters = {name: _parameter(value) for name, value in component.parameters.items()}
    made.inputs = {name: _artifact(value) for name, value in component.inputs.items()}
    made.outputs = {name: None if value.ref is None else _artifact(value) for name, value in component.outputs.items()}
    made.waits_for = [upstream.full_name for upstream in component.upstreams]
    if component.loop_argument is not None:
        made.loop = _loop(component)
    if isinstance(component, ContainerStep):
        if component.command is not None and not isinstance(component.command, str):
            raise dsl_error(f"the command of {made.title} should be a text, not [{component.command}]")
        made.command = component.command or ""
        made.env = dict(component.env)
    if isinstance(component, DAG):
        _draft_children(made, component)
    return made


def _draft_children(made: Draft, dag: DAG) -> None:
    for child in dag.entry_points.values():
        if child.name in made.children:
            raise dsl_error(f"there are two components named [{child.name}] in {made.title}")
        made.children[child.name] = draft(child, made)


def _parameter(parameter: Parameter) -> GivenParameter:
    """A default without a type is given like any value: it may be a text that refers to others, or a loop item."""
    given = parameter.default if parameter.ref is None and parameter.type is None else parameter.ref
    match given:
        case Parameter(component=owner) as ref if owner is not None:
            return ParameterPlaceholder(ref.name, _full_name(ref.component))
        case ParameterPlaceholder() as ref:
            return ref
        case LoopItem() as ref:
            return LoopItemPlaceholder(ref.component.full_name)
        case str() as text if names.MARKER.search(text):
            return Text(text)
        case None:
            return Literal(_declared(parameter))
        case value:
            return Literal(value)


def _declared(parameter: Parameter) -> object:
    """Without a type there is no default here either: a dict without a type means nothing to the server."""
    if parameter.type is None:
        return ""
    if parameter.default is None:
        return {"type": parameter.type}
    return {"default": parameter.default, "type": parameter.type}


def _artifact(artifact: Artifact) -> ArtifactPlaceholder:
    ref = artifact.ref
    if isinstance(ref, ArtifactPlaceholder):
        return ref
    assert ref is not None  # inputs, and outputs of DAGs, are made with what they stand for
    return ArtifactPlaceholder(ref.name, _full_name(ref.component))


def _loop(component: Component) -> object:
    argument = component.loop_argument.argument
    if isinstance(argument, Parameter | Artifact) and argument.component is None:
        raise dsl_error(
            f"the loop_argument of {component.class_name()}[{component.name}] belongs to no component: put it into "
            "the parameters or inputs of one first"
        )
    # Each of them has a text that says whose it is; lists and texts are what they are.
    return str(argument) if isinstance(argument, Parameter | Artifact | LoopItem) else argument


def _full_name(component: Owner | None) -> str:
    assert component is not None  # only what belongs to a component can be referred to
    return component.full_name
