"""What a node is given by its surroundings, the items of its loop, and whether its condition holds.

An artifact of a looped node is several files: their lists are strung together to one loop, in the order of the items;
for a condition their contents are joined by commas, each without the white space around it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from paddleflow.domain.errors import Invalid
from paddleflow.domain.names import can_be_kept
from paddleflow.domain.runs import RunNode, Value
from paddleflow.planning.bulk import bulk_of_values
from paddleflow.planning.conditions import evaluate
from paddleflow.planning.moves import Fetch
from paddleflow.planning.paths import separate
from paddleflow.planning.plan import LoopArtifact, LoopItems, PlanNode
from paddleflow.planning.progress import MOST_BULK, Group, Progress
from paddleflow.planning.templates import MISSING, Missing, Ref, references
from paddleflow.planning.values import parameters_of, system_parameters

Contents: TypeAlias = Mapping[str, Sequence[str]]
"""Artifact name → the text of each of its files."""

LOOP_BYTES = 1024 * 1024
"""A file with the items of a loop must be smaller."""
CONDITION_BYTES = 1024
"""A file that a condition looks at must be smaller."""
_ITEM_DEPTH = 32
_SHOWN = 80


def parameters(progress: Progress, group: Group) -> Mapping[str, Value]:
    if group.parameters is None:
        siblings = group.frame.groups

        def upstream(name: str, parameter: str) -> Value | Missing:
            sibling = siblings.get(name)
            if sibling is None or not sibling.keys:
                return MISSING
            return progress.nodes[sibling.keys[0]].parameters.get(parameter, MISSING)

        group.parameters = parameters_of(group.node, progress.facts, group.frame.row, upstream)
    return group.parameters


def inputs(progress: Progress, group: Group) -> Mapping[str, str]:
    """Raises Invalid when an artifact is not there."""
    if group.inputs is None:
        found: dict[str, str] = {}
        for name, source in group.node.inputs.items():
            if source.node:
                path = progress.output_of(group.frame.groups[source.node], source.name)
            else:
                path = None if group.frame.row is None else group.frame.row.inputs.get(source.name)
            if path is None:
                raise Invalid(
                    f"input artifact [{name}] of component[{group.node.path}] cannot be found: "
                    f"[{source.node or 'PF_PARENT'}] has no artifact [{source.name}]"
                )
            found[name] = path
        group.inputs = found
    return group.inputs


def outputs_of_dag(progress: Progress, node: PlanNode, groups: Mapping[str, Group]) -> dict[str, str]:
    """Raises Invalid when one of them was not made."""
    found: dict[str, str] = {}
    for name, source in node.outputs.items():
        path = None if source is None else progress.output_of(groups[source.node], source.name)
        if path is None:
            made = "nothing" if source is None else f"[{source.node}.{source.name}]"
            raise Invalid(f"output artifact [{name}] of dag[{node.path}] cannot be found: {made} was not made")
        found[name] = path
    return found


# Loops.


def loop_fetch(progress: Progress, group: Group) -> Fetch | None:
    """The file with the items, when it must be read first. A loop over nothing (an empty loop made it) needs none."""
    if not isinstance(group.node.loop, LoopArtifact):
        return None
    name = group.node.loop.name
    return _fetch(progress, group, (name,), LOOP_BYTES)


def loop_items(progress: Progress, group: Group, contents: Contents) -> list[Value]:
    """Raises Invalid when they are no list, or too many."""
    loop = group.node.loop
    items: list[Value] = []
    if isinstance(loop, LoopItems):
        items.extend(loop.items)
    elif isinstance(loop, LoopArtifact):
        for text in contents.get(loop.name, ()):
            items.extend(_list_in(text))
    elif loop is not None:
        value = parameters(progress, group).get(loop.name)
        if not isinstance(value, str | list):
            raise Invalid("loopArgument can only be string or list type")
        items.extend(_list_in(value) if isinstance(value, str) else value)
    _check_room(progress, group, len(items))
    return items


def _check_room(progress: Progress, group: Group, count: int) -> None:
    limits = progress.limits
    if count > limits.loop_items:
        raise Invalid(
            f"the loop of component[{group.node.path}] has {count} items, more than the {limits.loop_items} that the "
            "setting pipelines.max_loop_items allows"
        )
    if count <= 1:
        return
    total = progress.size + (count - 1) * progress.weights[group.node.path]
    if total > limits.nodes:
        raise Invalid(
            f"the loop of component[{group.node.path}] would give the run {total} nodes, more than the {limits.nodes} "
            "that the setting pipelines.max_nodes allows"
        )
    repeated = count * bulk_of_values(parameters(progress, group).values())
    if progress.bulk + repeated > MOST_BULK:
        raise Invalid(
            f"each of the {count} nodes of the loop of component[{group.node.path}] would hold all its parameters, "
            f"{repeated} characters together and more than the {MOST_BULK} that a run may hold; write a long list in "
            "loop_argument itself, or read it from an artifact"
        )


def _list_in(text: str) -> list[Value]:
    shown = text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
    try:
        value = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise Invalid(f"loopArgument [{shown}] unmarshal to list failed, error: {error}") from error
    if not isinstance(value, list):
        raise Invalid(f"loopArgument [{shown}] unmarshal to list failed, error: it is not a list")
    if not _are_items(value):
        raise Invalid("each one in list loopArgument should be int or float or string")
    return value


def _no_number(word: str) -> Value:
    raise ValueError(f"{word} is not a number that JSON knows")


def _are_items(items: list[object]) -> bool:
    """Only plain values and lists of them, not too deep; texts that can be stored and passed on."""
    levels: list[tuple[int, object]] = [(1, item) for item in items]
    while levels:
        depth, item = levels.pop()
        if isinstance(item, list) and depth < _ITEM_DEPTH:
            levels.extend((depth + 1, inner) for inner in item)
        elif isinstance(item, str):
            if not can_be_kept(item):
                return False
        elif not isinstance(item, int | float):
            return False
    return True


# Conditions.


def condition_fetch(progress: Progress, group: Group) -> Fetch | None:
    """The artifacts a condition speaks of, when there are any that have not been read. All items share them."""
    if not group.node.condition or group.contents is not None:
        return None
    names = {ref.name for ref in references(group.node.condition) if not ref.node and ref.name in group.node.inputs}
    fetch = _fetch(progress, group, sorted(names), CONDITION_BYTES)
    if fetch is None:
        group.contents = dict.fromkeys(names, "")
    return fetch


def contents_for_condition(contents: Contents) -> dict[str, str]:
    return {name: ",".join(text.strip() for text in texts) for name, texts in contents.items()}


def holds(progress: Progress, group: Group, row: RunNode) -> bool:
    """Raises Invalid when the condition cannot be judged."""
    condition = group.node.condition
    if not condition:
        return True
    known: dict[str, Value] = {
        **parameters(progress, group),
        **(group.contents or {}),
        **system_parameters(progress.facts, group.node.name, row.item),
    }

    def lookup(ref: Ref) -> Value:
        if ref.node or ref.name not in known:
            raise Invalid(f"{ref.text} in condition is not parameter or input artifact or system templete")
        return known[ref.name]

    return evaluate(condition, lookup)


def _fetch(progress: Progress, group: Group, names: Sequence[str], limit: int) -> Fetch | None:
    own = inputs(progress, group)
    paths = {name: separate(own[name], progress.plan.main_fs) for name in names}
    return Fetch(key=group.key, paths=paths, limit=limit) if any(paths.values()) else None
