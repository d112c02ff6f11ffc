"""Rules about what nodes are given: parameters, input and output artifacts, environment, command, and their templates.

Which templates a field may use::

    parameters        system parameters, {{up.param}}, {{PF_PARENT.param}}, {{PF_PARENT.PF_LOOP_ARGUMENT}}
    artifacts.input   one whole template: {{up.output}} or {{PF_PARENT.input}}
    artifacts.output  (of a dag) one whole template: {{child.output}}
    env               system parameters, own parameters
    command           system parameters, own parameters, own input and output artifacts

``up`` is a sibling named in ``deps``. Text that does not have the shape of a template is left alone everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator

from paddleflow.planning.checks_context import Context, Place, Problem
from paddleflow.planning.parameters import (
    LOOP_ARGUMENT,
    PARENT,
    SYSTEM_PARAMETERS,
    plain,
    wrong_default,
    wrong_value,
)
from paddleflow.planning.source import RAY_ENTRY_POINT, DagSource, NodeSource, StepSource, TypedParameter
from paddleflow.planning.templates import Ref, references, whole

ARTIFACT_SHAPE = "should be like {{XX-XX.XX_XX}}"


def parameters(ctx: Context) -> Iterator[Problem]:
    for place in ctx.active:
        for name, written in place.node.parameters.items():
            at = (*place.node.at, "parameters", name)
            value = plain(written)
            typed = isinstance(written, TypedParameter)
            wrong = wrong_default(name, written) if isinstance(written, TypedParameter) else wrong_value(name, value)
            if wrong:
                yield ctx.problem(wrong, (*at, "default") if typed else at)
            elif isinstance(value, str):
                for ref in references(value):
                    message = _wrong_in_parameters(ctx, place, ref, value)
                    if message:
                        yield ctx.problem(message, at)


def _wrong_in_parameters(ctx: Context, place: Place, ref: Ref, text: str) -> str:
    if not ref.node:
        known = ref.name in SYSTEM_PARAMETERS
        return "" if known else f"unsupported SysParamName[{ref.name}] for param[{text}] of filedType[parameters]"
    if ref.node == PARENT:
        if place.parent is None:
            return "PF_PARENT should used by a child component"
        if ref.name == LOOP_ARGUMENT:
            return "" if place.parent.loop is not None else _invalid(place, ref, "loop_argument not exist")
        return "" if ref.name in place.parent.parameters else _invalid(place, ref, f"parameter[{ref.name}] not exist")
    up, wrong = _upstream(ctx, place, ref)
    if up is None:
        return wrong
    return "" if ref.name in up.parameters else _invalid(place, ref, f"parameter[{ref.name}] not exist")


def inputs(ctx: Context) -> Iterator[Problem]:
    """Those of a component are place-holders: whoever refers to it gives the real ones."""
    for place in ctx.active:
        if place.is_component:
            continue
        for name, value in place.node.inputs.items():
            message = _wrong_input(ctx, place, name, value)
            if message:
                yield ctx.problem(message, (*place.node.at, "artifacts", "input", name))


def _wrong_input(ctx: Context, place: Place, name: str, value: str) -> str:
    ref = whole(value)
    if ref is None or not ref.node:
        return (
            f"check input artifact [{name}] in component[{place.name}] failed:"
            f" format of value[{value}] invalid, {ARTIFACT_SHAPE}"
        )
    if ref.node == PARENT:
        if place.parent is None:
            return "PF_PARENT should used by a child component"
        exists = ref.name in place.parent.inputs
        return "" if exists else _invalid(place, ref, f"input artifact[{ref.name}] not exist")
    up, wrong = _upstream(ctx, place, ref)
    return wrong if up is None else _wrong_output_of(place, ref, up)


def outputs(ctx: Context) -> Iterator[Problem]:
    for place in ctx.active:
        if not isinstance(place.node, DagSource):
            continue
        for name, value in place.node.outputs.items():
            message = _wrong_output(ctx, place, place.node, value)
            if message:
                yield ctx.problem(message, (*place.node.at, "artifacts", "output", name))


def _wrong_output(ctx: Context, place: Place, dag: DagSource, value: str) -> str:
    ref = whole(value)
    if ref is None or not ref.node:
        return (
            f"check output artifact value [{value}] in dag[{place.name}] failed:"
            f" format of value[{value}] invalid, {ARTIFACT_SHAPE}"
        )
    if ref.node == PARENT:
        return "PF_PARENT can only used in parameters or input artifacts"
    child = dag.nodes.get(ref.node)
    if child is None:
        return _invalid(place, ref, f"component[{ref.node}] not exist{ctx.did_you_mean(ref.node, dag.nodes)}")
    if isinstance(child, StepSource) and ctx.references.missing(child):
        return _missing_component(ctx, child, f"{place.name}.{ref.node}")
    return _wrong_output_of(place, ref, ctx.resolve(child))


def artifacts_need_a_filesystem(ctx: Context) -> Iterator[Problem]:
    if ctx.source.main_fs is not None or ctx.overrides.fs_name:
        return
    for place in ctx.active:
        if place.node.outputs:
            yield ctx.problem(
                f"cannot define artifact in component[{place.name}] with no Fs mounted",
                (*place.node.at, "artifacts", "output"),
            )


def environment(ctx: Context) -> Iterator[Problem]:
    for place in ctx.active:
        node = place.node
        if isinstance(node, StepSource):
            known = (*SYSTEM_PARAMETERS, *node.parameters)
            for name, value in node.env.items():
                for message in _wrong_own(place, "env", value, known):
                    yield ctx.problem(message, (*node.at, "env", name))


def command(ctx: Context) -> Iterator[Problem]:
    for place in ctx.active:
        node = place.node
        if isinstance(node, StepSource):
            known = (*SYSTEM_PARAMETERS, *node.parameters, *node.inputs, *node.outputs)
            for message in _wrong_own(place, "command", node.command, known):
                yield ctx.problem(message, (*node.at, "command"))


def programs(ctx: Context) -> Iterator[Problem]:
    """A step without one would succeed at once, and nobody would hear that its command was forgotten."""
    for place in ctx.active:
        node = place.node
        if not isinstance(node, StepSource) or node.reference:
            continue
        if not (node.command.strip() or node.env.get(RAY_ENTRY_POINT, "").strip()):
            yield ctx.problem(
                f"command of step [{place.name}] is empty, give the program to run", (*node.at, "command")
            )


def _wrong_own(place: Place, field: str, text: str, known: tuple[str, ...]) -> Iterator[str]:
    """Of fields that may use only what the node itself has."""
    for ref in references(text):
        if ref.node == PARENT:
            if place.parent is None:
                yield "PF_PARENT should used by a child component"
            else:
                yield "PF_PARENT can only used in parameters or input artifacts"
        elif ref.node:
            yield (
                f"component [{place.name}] refer [{ref.node}.{ref.name}] invalid, only parameters can use upstream"
                " parameters and only input artifacts can use upstream output artifacts"
            )
        elif ref.name not in known:
            yield f"unsupported RefParamName[{ref.name}] for param[{text}] of filedType[{field}]"


def _upstream(ctx: Context, place: Place, ref: Ref) -> tuple[NodeSource | None, str]:
    """The sibling a template speaks of, or why it may not."""
    if ref.node not in place.node.deps:
        return None, _invalid(place, ref, f"component[{ref.node}] not in deps")
    sibling = place.siblings.get(ref.node)
    if sibling is None:
        return None, _invalid(place, ref, f"component[{ref.node}] not exist")
    if isinstance(sibling, StepSource) and ctx.references.missing(sibling):
        return None, _missing_component(ctx, sibling, ref.node)
    return ctx.resolve(sibling), ""


def _missing_component(ctx: Context, step: StepSource, name: str) -> str:
    return f"reference.component [{ctx.references.missing(step)}] in component[{name}] is not exist"


def _wrong_output_of(place: Place, ref: Ref, producer: NodeSource) -> str:
    if ref.name not in producer.outputs:
        return _invalid(place, ref, f"output artifact[{ref.name}] not exist")
    if producer.condition:
        return _invalid(
            place, ref, f"component[{ref.node}] has condition so its param and output artifacts can't be refered"
        )
    return ""


def _invalid(place: Place, ref: Ref, why: str) -> str:
    return f"invalid reference param {{{{ {ref.node}.{ref.name} }}}} in component[{place.name}]: {why}"
