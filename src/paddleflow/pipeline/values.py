"""What flows between components: parameters, artifacts, loop items.

Each knows the component it belongs to once it was put into one; its text form is then a marker that may stand inside a
command, an environment value, a condition or a loop argument. Before that it belongs nowhere and has no text form.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Protocol

from paddleflow.pipeline import names
from paddleflow.pipeline.failures import dsl_error

_TYPES: dict[object, str] = {str: "string", int: "int", float: "float", list: "list"}
_TYPE_NAMES = ("string", "int", "float", "list", "path")


class Owner(Protocol):
    """A component, as far as its values need to know it."""

    @property
    def name(self) -> str: ...
    @property
    def full_name(self) -> str: ...


@dataclass(frozen=True, slots=True)
class ParameterPlaceholder:
    """A parameter of another component, by name: it need not exist yet."""

    name: str
    component_full_name: str


@dataclass(frozen=True, slots=True)
class ArtifactPlaceholder:
    """An artifact of another component, by name: it need not exist yet."""

    name: str
    component_full_name: str


class Parameter:
    """A parameter of a step or DAG: a default and perhaps a type, a plain value, or another component's parameter."""

    def __init__(self, default: object = None, type: object = None) -> None:
        self._type = None if type is None else _type_name(type)
        self._default: object = None
        self._name = ""
        self._component: Owner | None = None
        self._ref: object = None
        self.default = default

    @property
    def type(self) -> str | None:
        return self._type

    @property
    def default(self) -> object:
        return self._default

    @default.setter
    def default(self, value: object) -> None:
        self._default = value if value is None or self._type is None else _cast(value, self._type)
        # A default that is set later takes the place of whatever the parameter stood for.
        self._ref = None

    @property
    def name(self) -> str:
        return self._name

    @property
    def component(self) -> Owner | None:
        return self._component

    @property
    def ref(self) -> object:
        """What it takes its value from: a plain value, or a parameter or loop item of another component."""
        return self._ref

    def set_base_info(self, component: Owner, name: str, ref: object = None) -> None:
        self._name = names.check_variable(name, f"a parameter of component[{component.name}]")
        self._component = component
        self._ref = ref

    def __str__(self) -> str:
        return names.marker(names.PARAMETER, _owner_of(self._component, "Parameter").full_name, self._name)


class Artifact:
    """A file or directory that a step leaves behind for others."""

    def __init__(self) -> None:
        self._name = ""
        self._component: Owner | None = None
        self._ref: Artifact | ArtifactPlaceholder | None = None

    @property
    def name(self) -> str:
        return self._name

    @property
    def component(self) -> Owner | None:
        return self._component

    @property
    def ref(self) -> Artifact | ArtifactPlaceholder | None:
        """Of an input, or an output of a DAG: the artifact it stands for."""
        return self._ref

    def set_base_info(self, component: Owner, name: str, ref: Artifact | ArtifactPlaceholder | None = None) -> None:
        self._name = names.check_variable(name, f"an artifact of component[{component.name}]")
        self._component = component
        self._ref = ref

    def __str__(self) -> str:
        return names.marker(names.ARTIFACT, _owner_of(self._component, "Artifact").full_name, self._name)


class LoopItem:
    """The item at which a component's loop stands."""

    def __init__(self, component: Owner) -> None:
        self.component = component
        self.name = names.LOOP_ITEM

    def __str__(self) -> str:
        return names.marker(names.LOOP, self.component.full_name, self.name)


class LoopArgument:
    """What a component loops over, and the item to be used inside the loop."""

    def __init__(self, argument: object, component: Owner) -> None:
        if not isinstance(argument, list | Parameter | Artifact | LoopItem) and not _is_loop_text(argument):
            raise dsl_error(
                f"the loop_argument of component[{component.name}] should be a list, the JSON text of a list, a "
                "Parameter, an Artifact, the loop item of the DAG around it, or the text of exactly one of these, "
                f"not [{argument}]"
            )
        self.argument = argument
        self.component = component
        self.item = LoopItem(component)


def _is_loop_text(argument: object) -> bool:
    if not isinstance(argument, str):
        return False
    text = argument.strip()
    if names.MARKER.fullmatch(text) or names.OWN_TEMPLATE.fullmatch(text):
        return True
    try:
        return isinstance(json.loads(text), list)
    except (ValueError, RecursionError):
        # Not JSON at all is the same answer as JSON of something else.
        return False


def _owner_of(component: Owner | None, kind: str) -> Owner:
    if component is None:
        raise dsl_error(f"this {kind} belongs to no component yet: put it into a step or DAG before using it in a text")
    return component


def _type_name(given: object) -> str:
    if isinstance(given, str) and given in _TYPE_NAMES:
        return given
    known = _TYPES.get(given) if isinstance(given, type) else None
    if known is None:
        raise dsl_error(f"the type of a Parameter should be one of {', '.join(_TYPE_NAMES)}, not [{given}]")
    return known


def _cast(value: object, kind: str) -> object:
    try:
        match kind:
            case "int":
                return _whole(value)
            case "float":
                return float(value)  # type: ignore[arg-type]  # what cannot be a float is refused below
            case "list":
                return _listed(value)
    except (TypeError, ValueError) as error:
        raise dsl_error(f"the default value[{value}] of a Parameter is not of its type[{kind}]") from error
    return str(value)


def _whole(value: object) -> int:
    if isinstance(value, float):
        if not value.is_integer():
            raise ValueError(value)
        return int(value)
    if isinstance(value, str) and not re.fullmatch(r"\s*[+-]?[0-9]+\s*", value):
        raise ValueError(value)
    return int(value)  # type: ignore[call-overload,no-any-return]  # what cannot be an int is refused by the caller


def _listed(value: object) -> list[object]:
    found = json.loads(value) if isinstance(value, str) else value
    if not isinstance(found, list | tuple):
        raise TypeError(value)
    return list(found)
