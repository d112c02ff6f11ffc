"""Rules about what runs when: conditions, loops, what is disabled, what comes after everything."""

from __future__ import annotations

from collections.abc import Iterator

from paddleflow.domain.errors import Invalid
from paddleflow.domain.runs import Value
from paddleflow.planning.checks_context import Context, Place, Problem, Root
from paddleflow.planning.conditions import check_condition
from paddleflow.planning.parameters import (
    LIST_DEPTH,
    SYSTEM_PARAMETERS,
    flat,
    is_too_deep,
    json_list,
    plain,
    wrong_number,
)
from paddleflow.planning.source import DagSource, NodeSource, StepSource
from paddleflow.planning.templates import references, whole


def request_parameters(ctx: Context) -> Iterator[Problem]:
    for message in ctx.override_problems:
        yield ctx.problem(message)


# Disabled.


def disabled(ctx: Context) -> Iterator[Problem]:
    off = frozenset(ctx.disabled)
    names = [place.name for place in ctx.places if place.root is not Root.COMPONENTS]
    seen: set[str] = set()
    for name in ctx.disabled:
        if name in seen:
            yield ctx.problem(f"disabled component[{name}] is set repeatedly!", ("disabled",))
            continue
        seen.add(name)
        place = ctx.find(name)
        if place is None:
            near = ctx.did_you_mean(name, names)
            yield ctx.problem(f"disabled component[{name}] not existed!{near}", ("disabled",))
            continue
        if any(name[:at] in off for at, letter in enumerate(name) if letter == "."):
            continue  # A dag around it is disabled, and nothing in there runs.
        for user in _users_of(place, seen=off):
            yield ctx.problem(f"disabled component[{name}] is refered by [{user}]", ("disabled",))


def _users_of(place: Place, *, seen: frozenset[str]) -> Iterator[str]:
    """Those that need a value or an artifact of a node: enabled siblings, and the dag around it."""
    prefix = place.name.removesuffix(place.node.name)
    for name, sibling in place.siblings.items():
        if name != place.node.name and f"{prefix}{name}" not in seen and place.node.name in _mentioned_by(sibling):
            yield f"{prefix}{name}"
    if place.parent is not None and any(
        ref.node == place.node.name for text in place.parent.outputs.values() for ref in references(text)
    ):
        yield prefix.removesuffix(".")


def _mentioned_by(node: NodeSource) -> set[str]:
    values = [plain(written) for written in node.parameters.values()]
    texts = [value for value in values if isinstance(value, str)]
    return {ref.node for text in (*texts, *node.inputs.values()) for ref in references(text)}


# Conditions.


def condition(ctx: Context) -> Iterator[Problem]:
    for place in ctx.places:
        node = place.node
        if not node.condition:
            continue
        at = (*node.at, "condition")
        known = {*SYSTEM_PARAMETERS, *node.parameters, *node.inputs}
        wrong = False
        for ref in references(node.condition):
            if ref.node or ref.name not in known:
                wrong = True
                name = f"{ref.node}.{ref.name}" if ref.node else ref.name
                yield ctx.problem(
                    f"{{{{{name}}}}} in condition is not parameter or input artifact or system templete", at
                )
        if not wrong:
            try:
                check_condition(node.condition)
            except Invalid as error:
                yield ctx.problem(error.message, at)


# Loops.


def loops(ctx: Context) -> Iterator[Problem]:
    for place in ctx.places:
        if place.node.loop is not None:
            message = _wrong_loop(ctx, place, place.node.loop)
            if message:
                yield ctx.problem(message, (*place.node.at, "loop_argument"))


def _wrong_loop(ctx: Context, place: Place, loop: Value) -> str:
    if isinstance(loop, list):
        return _wrong_items(ctx, place, loop)
    if not isinstance(loop, str):
        return "loopArgument can only be string or list type"
    found = references(loop)
    if len(found) > 1:
        return f"loopArgument[{loop}] is invalid, using templates in loopArgument invalid"
    if found:
        if whole(loop) is None:
            return f"loopArgument[{loop}] is invalid, using template and others in the sametime"
        ref = found[0]
        if ref.node or (ref.name not in place.node.parameters and ref.name not in place.node.inputs):
            name = f"{ref.node}.{ref.name}" if ref.node else ref.name
            return f"loopArgument {{{{{name}}}}} is not parameter or input artifact"
        return ""
    items = json_list(loop)
    if isinstance(items, str):
        return f"loopArgument [{loop}] unmarshal to list failed, error: {items}"
    return _wrong_items(ctx, place, items)


def _wrong_items(ctx: Context, place: Place, items: list[Value]) -> str:
    if len(items) > ctx.limits.loop_items:
        return (
            f"loopArgument of component [{place.name}] has {len(items)} items, the limit is {ctx.limits.loop_items};"
            " the setting pipelines.max_loop_items raises it"
        )
    if is_too_deep(items):
        return f"loopArgument of component [{place.name}] is invalid, lists are nested more than {LIST_DEPTH} deep"
    for item in flat(items):
        if isinstance(item, bool) or not isinstance(item, str | int | float):
            return "each one in list loopArgument should be int or float or string"
        wrong = wrong_number(item)
        if wrong:
            return f"loopArgument of component [{place.name}] is invalid, {wrong}"
        if isinstance(item, str) and references(item):
            return (
                f"[{item}]in loopArgument of component [{place.name}] is invalid,"
                " each one in list loopArgument must not be templete"
            )
    return ""


# The post-process.


def post_process(ctx: Context) -> Iterator[Problem]:
    steps = ctx.source.post_process
    if len(steps) > 1:
        yield ctx.problem("post_process can only has 1 step at most", ("post_process",))
    for name, step in steps.items():
        if name in ctx.source.nodes:
            yield ctx.problem(
                f"a step in post_process has name [{name}], which is same to name of a step in entry_points", step.at
            )
        missing = ctx.references.missing(step)
        if missing:
            near = ctx.did_you_mean(missing, ctx.source.components)
            yield ctx.problem(
                f"reference[{missing}] of step [{name}] in post_process is not exist{near}", (*step.at, "reference")
            )
            continue
        body = ctx.resolve(step)
        if isinstance(body, DagSource):
            yield ctx.problem("component in post_process should be a step, not dag", (*step.at, "reference"))
            continue
        if any(ref.node for text in _texts_of(body) for ref in references(text)):
            yield ctx.problem("step in post_process can not use parameters of steps in entry_points", step.at)
        for fault in _faults_after_everything(body):
            yield ctx.problem(f"step [{name}] in post_process {fault}", step.at)


def _texts_of(step: StepSource) -> Iterator[str]:
    for written in step.parameters.values():
        value = plain(written)
        if isinstance(value, str):
            yield value
    yield from step.env.values()
    yield step.command


def _faults_after_everything(step: StepSource) -> Iterator[str]:
    if step.inputs:
        yield "has input artifacts"
    if step.deps:
        yield "has deps"
    if step.cache is not None and step.cache.enable:
        yield "should not use cache"
    if step.condition:
        yield "should not have condition"
    if step.loop is not None:
        yield "should not have loop_argument"
