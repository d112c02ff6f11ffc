"""Parameters: which values they may have, what a declared type asks for, and what a request puts in their place.

Words and Go names of types in the messages are those users of the product already know.

A declared type holds for a request too. Numbers of a JSON body fit as they are. The command line can send only texts
(``-p lr=0.1``), so a text is taken as the declared type if it reads as one; where no type is declared it stays a text,
which is the same thing once it is part of a command.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final, NoReturn, TypeVar

from paddleflow.domain.names import can_be_kept
from paddleflow.domain.runs import Value
from paddleflow.planning.references import References
from paddleflow.planning.source import DagSource, NodeSource, Source, StepSource, TypedParameter, Written
from paddleflow.planning.templates import references, spell

_PATH: Final = re.compile(r"[.a-zA-Z0-9/_-]+")
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,18}")
_NUMBER: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,4})?")

SYSTEM_PARAMETERS: Final = ("PF_RUN_ID", "PF_STEP_NAME", "PF_USER_NAME", "PF_LOOP_ARGUMENT")
LOOP_ARGUMENT: Final = "PF_LOOP_ARGUMENT"
PARENT: Final = "PF_PARENT"
"""In front of a dot: the dag a node is in."""

LIST_DEPTH: Final = 32
"""Lists in lists that a value may have. Whoever stores, prints or sends it may go down into it by recursion."""


def plain(written: Written) -> Value:
    """The value of a parameter: a typed one is its default."""
    return written.default if isinstance(written, TypedParameter) else written


def shown(value: object) -> str:
    if value is None:
        return "<nil>"
    return spell(value) if isinstance(value, str | int | float | list) else str(value)


def go_type(value: object) -> str:
    match value:
        case str():
            return "string"
        case bool():
            return "bool"
        case int():
            return "int"
        case float():
            return "float64"
        case list():
            return "[]interface {}"
        case None:
            return "<nil>"
        case _:
            return "map[string]interface {}"


def wrong_value(name: str, value: object) -> str:
    """What is wrong with a parameter's own value, its templates left aside; empty: nothing."""
    if isinstance(value, list):
        return wrong_items(value)
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return f"type[{go_type(value)}] is not supported for param[{name}]"
    wrong = wrong_number(value)
    return f"value of param[{name}] is invalid, {wrong}" if wrong else ""


def wrong_items(items: list[Value]) -> str:
    if is_too_deep(items):
        return f"list param is invalid, lists are nested more than {LIST_DEPTH} deep"
    for item in flat(items):
        if isinstance(item, bool) or not isinstance(item, str | int | float):
            return "list param item can only be int, float, string, list type"
        wrong = wrong_number(item)
        if wrong:
            return f"list param item is invalid, {wrong}"
        if isinstance(item, str) and references(item):
            return f"list param item [{item}] is invalid, each item must not be templete"
    return ""


def wrong_number(value: object) -> str:
    """What is not a number everywhere a plan may be read; empty: nothing is wrong, or it is no number."""
    if isinstance(value, float) and not math.isfinite(value):
        return f"{shown(value)} is not a finite number"
    if isinstance(value, int) and abs(value) >= 2**63:
        return "a whole number must fit in 64 bits"
    return ""


def is_too_deep(items: list[Value]) -> bool:
    layer: list[list[Value]] = [items]
    for _ in range(LIST_DEPTH):
        layer = [item for inner in layer for item in inner if isinstance(item, list)]
        if not layer:
            return False
    return True


def flat(items: list[Value]) -> Iterator[object]:
    """What is in a list and in the lists in it, in order, lists themselves left out."""
    stack: list[Iterator[Value]] = [iter(items)]
    while stack:
        for item in stack[-1]:
            if isinstance(item, list):
                stack.append(iter(item))
                break
            yield item
        else:
            stack.pop()


def wrong_default(name: str, typed: TypedParameter) -> str:
    """What is wrong with ``{type: …, default: …}``; empty: nothing."""
    told = f"dict param[name: {name}, value: {{Type:{typed.type} Default:{shown(typed.default)}}}]"
    if not typed.type:
        return f"type[] is not supported for {told}"
    if typed.default is None or typed.default == "":
        return f"invalid value[{shown(typed.default)}] in {told}"
    if typed.type not in _TYPES:
        return f"type[{typed.type}] is not supported for {told}"
    return misfit(name, typed.default, typed.type)


def misfit(name: str, value: object, type_: str) -> str:
    """Why a value is not of a type; empty: it is, or the type is none that is known."""
    if type_ not in _TYPES:
        return ""
    if isinstance(value, bool) or not isinstance(value, _TYPES[type_]):
        return f"invalid type[{go_type(value)}] for param[{shown(value)}]. expect type[{type_}]"
    if type_ == "path" and not _PATH.fullmatch(str(value)):
        return f"invalid path value[{value}] in parameter[{name}]"
    return wrong_value(name, value)


_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "string": (str,),
    "path": (str,),
    "int": (int,),
    "float": (float, int),
    "list": (list,),
}


def read_as(value: Value, type_: str) -> Value:
    """A text as the type that is declared for it, if it reads as one; anything else as it is."""
    if not isinstance(value, str):
        return value
    if type_ == "int" and _INTEGER.fullmatch(value.strip()):
        return int(value)
    if type_ == "float" and _NUMBER.fullmatch(value.strip()):
        return float(value)
    if type_ == "list":
        items = json_list(value)
        return value if isinstance(items, str) else items
    return value


def json_list(text: str) -> list[Value] | str:
    """A text that is a JSON list, read; else what is wrong with it."""
    try:
        found: object = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        return str(error)
    if not isinstance(found, list):
        return f"it is {go_type(found)}, not a list"
    if not all(can_be_kept(item) for item in flat(found) if isinstance(item, str)):
        return "a text in it has a NUL character or half of a surrogate pair"
    return found


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a number that JSON knows")


Changes = dict[tuple[str, ...], dict[str, Value]]
"""Names from the top to a node → its parameters that are replaced."""

_Node = TypeVar("_Node", StepSource, NodeSource)


def override(source: Source, given: Mapping[str, Value], behind: References) -> tuple[Source, tuple[str, ...]]:
    """The pipeline with the parameters of a request in it, and what could not be put anywhere.

    ``lr`` replaces the parameter in every node that has it, ``train.lr`` or ``sub.train.lr`` in one. Components are
    left alone.
    """
    problems: list[str] = []
    changes: Changes = {}
    everywhere = _holders(source) if any("." not in key for key in given) else {}
    for key, value in given.items():
        *names, parameter = key.split(".")
        try:
            targets = [_find(source, names, parameter, key)] if names else everywhere.get(parameter, [])
        except _NowhereError as error:
            problems.append(str(error))
            continue
        if not targets:
            problems.append(f"param[{parameter}] not exist")
        for path, node in targets:
            type_ = behind.declared_type(node, parameter)
            fitting = read_as(value, type_)
            wrong = misfit(parameter, fitting, type_)
            if wrong and wrong not in problems:
                problems.append(wrong)
            changes.setdefault(path, {})[parameter] = fitting
    if not changes:
        return source, tuple(problems)
    changed = replace(
        source,
        nodes=_changed(source.nodes, changes, ()),
        post_process=_changed(source.post_process, changes, ()),
    )
    return changed, tuple(problems)


Target = tuple[tuple[str, ...], NodeSource]


class _NowhereError(Exception):
    """A request names a parameter that no node has."""


def _holders(source: Source) -> dict[str, list[Target]]:
    """Parameter → every node that has it."""
    found: dict[str, list[Target]] = {}
    stack: list[Target] = [((name,), node) for name, node in (*source.nodes.items(), *source.post_process.items())]
    while stack:
        path, node = stack.pop()
        for parameter in node.parameters:
            found.setdefault(parameter, []).append((path, node))
        if isinstance(node, DagSource):
            stack.extend(((*path, name), child) for name, child in node.nodes.items())
    return found


def _find(source: Source, names: list[str], parameter: str, key: str) -> Target:
    at: Mapping[str, NodeSource] = source.nodes if names[0] in source.nodes else source.post_process
    node: NodeSource | None = None
    for name in names:
        if node is not None:
            if isinstance(node, StepSource):
                raise _NowhereError(
                    f"replace param by request failed, component [{node.name}] should be a dag, not step"
                )
            at = node.nodes
        if name not in at:
            raise _NowhereError(f"cannont find component to replace param with [{key}]")
        node = at[name]
    assert node is not None
    if parameter not in node.parameters:
        kind = "step" if isinstance(node, StepSource) else "dag"
        raise _NowhereError(f"no parameter named [{parameter}] in {kind} [{node.name}]")
    return tuple(names), node


def _changed(nodes: Mapping[str, _Node], changes: Changes, path: tuple[str, ...]) -> dict[str, _Node]:
    """Recursion is as deep as dags are, which was checked before."""
    fresh: dict[str, _Node] = {}
    for name, node in nodes.items():
        here = (*path, name)
        new = node
        if here in changes:
            new = replace(new, parameters={**new.parameters, **changes[here]})
        if isinstance(new, DagSource):
            new = replace(new, nodes=_changed(new.nodes, changes, here))
        fresh[name] = new
    return fresh
