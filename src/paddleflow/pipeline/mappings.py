"""The dictionaries of a component: they check every name and value, however it is put in."""

from __future__ import annotations

from collections import UserDict
from collections.abc import Mapping
from typing import TypeVar

from paddleflow.pipeline import names
from paddleflow.pipeline.failures import dsl_error
from paddleflow.pipeline.values import Artifact, ArtifactPlaceholder, LoopItem, Owner, Parameter

ValueT = TypeVar("ValueT")


class _Named(UserDict[str, ValueT]):
    """A dictionary that belongs to a component (or, of an environment, to a pipeline)."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        super().__init__()

    def fill(self, given: Mapping[str, object] | None, what: str) -> None:
        if given is None:
            return
        if not isinstance(given, Mapping):
            raise dsl_error(f"the {what} of component[{self._owner.name}] should be a dict, not [{given}]")
        for name, value in given.items():
            self[name] = value  # type: ignore[assignment]  # each dictionary checks and wraps what it is given


class ParameterDict(_Named[Parameter]):
    """Takes plain values, fresh parameters, and parameters or loop items of other components."""

    def __setitem__(self, name: str, value: object) -> None:
        if isinstance(value, Parameter) and value.component is None:
            value.set_base_info(self._owner, name)
            super().__setitem__(name, value)
            return
        if isinstance(value, Parameter | LoopItem) and value.component is self._owner:
            raise dsl_error(
                f"parameter[{name}] of component[{self._owner.name}] refers to the same component: a parameter can "
                "only take its value from another one"
            )
        if isinstance(value, Artifact):
            raise dsl_error(
                f"parameter[{name}] of component[{self._owner.name}] is given an Artifact: put it into the inputs"
            )
        parameter = Parameter()
        parameter.set_base_info(self._owner, name, ref=list(value) if isinstance(value, tuple) else value)
        super().__setitem__(name, parameter)


class InputArtifactDict(_Named[Artifact]):
    """Takes artifacts that belong to other components."""

    def __setitem__(self, name: str, value: object) -> None:
        foreign = isinstance(value, Artifact) and value.component not in (None, self._owner)
        if not isinstance(value, ArtifactPlaceholder) and not foreign:
            raise dsl_error(
                f"inputs[{name}] of component[{self._owner.name}] should be an artifact of another component, "
                f"not [{_shown(value)}]"
            )
        artifact = Artifact()
        artifact.set_base_info(self._owner, name, ref=value)  # type: ignore[arg-type]  # one of the two, as checked
        super().__setitem__(name, artifact)


class OutputArtifactDict(_Named[Artifact]):
    """Of a step it takes fresh artifacts, of a DAG the outputs of what is inside it."""

    def __init__(self, owner: Owner, *, of_dag: bool = False) -> None:
        self._of_dag = of_dag
        super().__init__(owner)

    def __setitem__(self, name: str, value: object) -> None:
        if self._of_dag:
            self._set_of_dag(name, value)
            return
        if not isinstance(value, Artifact) or value.component is not None:
            raise dsl_error(
                f"outputs[{name}] of component[{self._owner.name}] should be a new Artifact(), not [{_shown(value)}]"
            )
        value.set_base_info(self._owner, name)
        super().__setitem__(name, value)

    def _set_of_dag(self, name: str, value: object) -> None:
        bound = isinstance(value, Artifact) and value.component not in (None, self._owner)
        if not isinstance(value, ArtifactPlaceholder) and not bound:
            raise dsl_error(
                f"outputs[{name}] of DAG[{self._owner.name}] should be an output of a step or DAG inside it, "
                f"not [{_shown(value)}]"
            )
        artifact = Artifact()
        artifact.set_base_info(self._owner, name, ref=value)  # type: ignore[arg-type]  # one of the two, as checked
        super().__setitem__(name, artifact)

    def fill(self, given: Mapping[str, object] | None, what: str) -> None:
        """The same dict of new artifacts may serve several steps: each gets its own."""
        if isinstance(given, Mapping) and not self._of_dag:
            given = {name: _own_copy(name, value) for name, value in given.items()}
        super().fill(given, what)


class EnvDict(_Named[str]):
    """Environment variables: texts, numbers, parameters and loop items, kept as text."""

    def __setitem__(self, name: str, value: object) -> None:
        names.check_variable(name, f"an environment variable of [{self._owner.name}]")
        if isinstance(value, bool) or not isinstance(value, str | int | float | Parameter | LoopItem):
            raise dsl_error(
                f"env[{name}] of [{self._owner.name}] should be a text, a number or a Parameter, not [{_shown(value)}]"
            )
        super().__setitem__(name, str(value))


def _own_copy(name: str, value: object) -> object:
    taken = isinstance(value, Artifact) and value.component is not None and value.ref is None and value.name == name
    return Artifact() if taken else value


def _shown(value: object) -> str:
    """A value in a message; an artifact or parameter that belongs nowhere has no text of its own."""
    return type(value).__name__ if isinstance(value, Artifact | Parameter) else str(value)
