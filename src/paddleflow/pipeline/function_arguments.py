"""What the signature of a step function says: which arguments are artifacts, which are parameters of which type."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, get_args, get_origin

from paddleflow.pipeline import names
from paddleflow.pipeline.failures import dsl_error

if TYPE_CHECKING:
    _Path = Path
else:
    _Path = type(Path())  # Path itself cannot be subclassed before Python 3.12

ENV_PREFIX = "PF_PARAMETER_"
"""The environment variable that carries an argument, before its name in capitals."""
_NAME_LIMIT = 50 - len(ENV_PREFIX)


class Input(_Path):
    """Marks an argument as an artifact that another step made; in the job it is its ``pathlib.Path``."""


class Output(_Path):
    """Marks an argument as an artifact to be made; in the job it is the ``pathlib.Path`` to write to."""


class Kind(StrEnum):
    VALUE = "value"
    INPUT = "input"
    INPUTS = "inputs"
    """Several artifacts: of several steps, or of one that loops."""
    OUTPUT = "output"


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    name: str
    kind: Kind
    type: str = ""
    """Of a value: the name of a Python type."""


_VALUES: dict[object, str] = {str: "str", int: "int", float: "float", bool: "bool", list: "list", dict: "dict"}


def read_arguments(function: Callable[..., object], title: str) -> Iterator[Argument]:
    try:
        signature = inspect.signature(function, eval_str=True)
    except NameError as error:
        raise dsl_error(f"an annotation of {title} cannot be read: {error}") from error
    for name, parameter in signature.parameters.items():
        where = f"argument[{name}] of {title}"
        names.check_variable(name, where)
        if len(name) > _NAME_LIMIT:
            raise dsl_error(f"the name of {where} should have {_NAME_LIMIT} characters at most")
        if parameter.kind not in (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY):
            raise dsl_error(f"{where} should be an ordinary argument: *, ** and / are not for steps")
        yield _argument(name, parameter, where)


def _argument(name: str, parameter: inspect.Parameter, where: str) -> Argument:
    annotation = parameter.annotation
    if annotation is inspect.Parameter.empty and parameter.default is not inspect.Parameter.empty:
        annotation = type(parameter.default)
    if annotation is Input:
        return Argument(name=name, kind=Kind.INPUT)
    if annotation is Output:
        return Argument(name=name, kind=Kind.OUTPUT)
    plain = get_origin(annotation) or annotation
    if plain is list and get_args(annotation) == (Input,):
        return Argument(name=name, kind=Kind.INPUTS)
    if plain not in _VALUES:
        raise dsl_error(
            f"{where} should be annotated as one of str, int, float, bool, list, dict, Input, list[Input] or Output, "
            f"{'and has no annotation' if annotation is inspect.Parameter.empty else f'not as [{annotation}]'}"
        )
    return Argument(name=name, kind=Kind.VALUE, type=_VALUES[plain])
