"""Rules about names and shape: components, references, dependencies, sizes. What nodes are given is not read here."""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator, Mapping
from typing import Final

from paddleflow.domain.runs import Value
from paddleflow.planning.checks_context import Context, Place, Problem, Root
from paddleflow.planning.parameters import misfit, plain
from paddleflow.planning.source import DagSource, NodeSource, Path, StepSource
from paddleflow.planning.templates import references

PIPELINE_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,127}")
NODE_NAME: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9-]{0,29}")
VARIABLE_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,49}")
_ITEM_NUMBER: Final = re.compile(r"(.+)-([1-9][0-9]*)")


def in_order(nodes: Mapping[str, NodeSource]) -> tuple[str, ...]:
    """Names so that dependencies come first and, among those that could be next, the one written first.

    Those on a circle, and what comes after them, are left out. Dependencies on what is not there do not count.
    """
    names = tuple(nodes)
    rank = {name: number for number, name in enumerate(names)}
    waiting: dict[str, int] = {}
    users: dict[str, list[str]] = {}
    for name, node in nodes.items():
        needed = {dep for dep in node.deps if dep in rank}
        waiting[name] = len(needed)
        for dep in needed:
            users.setdefault(dep, []).append(name)
    ready = [rank[name] for name, count in waiting.items() if not count]
    ordered: list[str] = []
    while ready:
        name = names[heapq.heappop(ready)]
        ordered.append(name)
        for user in users.get(name, ()):
            waiting[user] -= 1
            if not waiting[user]:
                heapq.heappush(ready, rank[user])
    return tuple(ordered)


def circle(nodes: Mapping[str, NodeSource]) -> str:
    """The name of a node that depends on itself by way of others; empty: there is none."""
    left = nodes.keys() - set(in_order(nodes))
    at = next((name for name in nodes if name in left), "")
    seen: set[str] = set()
    while at and at not in seen:
        seen.add(at)
        at = next(dep for dep in nodes[at].deps if dep in left)
    return at


# The ground: without these nothing else can be looked at.


def components_without_deps(ctx: Context) -> Iterator[Problem]:
    for component in ctx.written.components.values():
        if component.deps:
            yield ctx.problem("components can not have deps", (*component.at, "deps"))


def components_acyclic(ctx: Context) -> Iterator[Problem]:
    if ctx.references.in_order() is None:
        yield ctx.problem("components reference is not acyclic", ("components",))


def size(ctx: Context) -> Iterator[Problem]:
    """References followed: this is what a run would hold before its loops are unrolled."""
    if ctx.references.in_order() is None:
        return
    source = ctx.written
    whole = ctx.references.measure((*source.nodes.values(), *source.post_process.values()))
    if whole.nodes > ctx.limits.nodes:
        yield ctx.problem(
            f"the pipeline has {whole.nodes} nodes, the limit is {ctx.limits.nodes};"
            " the setting pipelines.max_nodes raises it",
            ("entry_points",),
        )
    parts = ctx.references.measure(source.components.values())
    for at, measure in (("entry_points", whole), ("components", parts)):
        if measure.depth > ctx.limits.depth:
            yield ctx.problem(f"dags are nested {measure.depth} deep, the limit is {ctx.limits.depth}", (at,))


# Names.


def components_exist(ctx: Context) -> Iterator[Problem]:
    """What components refer to; entry points are the business of ``reference``."""
    for place in ctx.places:
        if place.root is not Root.COMPONENTS or not isinstance(place.node, StepSource):
            continue
        missing = ctx.references.missing(place.node)
        if missing and place.node.reference == missing:
            near = ctx.did_you_mean(missing, ctx.source.components)
            yield ctx.problem(f"no component named {missing}{near}", (*place.node.at, "reference"))


def pipeline_name(ctx: Context) -> Iterator[Problem]:
    name = ctx.source.name
    if not PIPELINE_NAME.fullmatch(name):
        yield ctx.problem(
            f"check pipelineName[{name}] in run[] failed: format of run or pipeline name[{name}] invalid,"
            f" should be in ^{PIPELINE_NAME.pattern}$",
            ("name",),
        )


def node_names(ctx: Context) -> Iterator[Problem]:
    for place in ctx.places:
        name = place.node.name
        if not NODE_NAME.fullmatch(name):
            yield ctx.problem(
                f"check stepName[{name}] in run[] failed: format of component name[{name}] invalid,"
                f" should be in ^{NODE_NAME.pattern}$",
                place.node.at,
            )


def acyclic(ctx: Context) -> Iterator[Problem]:
    for nodes in ctx.scopes:
        name = circle(nodes)
        if name:
            yield ctx.problem("workflow is not acyclic", (*nodes[name].at, "deps"))


def loops_beside_their_items(ctx: Context) -> Iterator[Problem]:
    """Item 1 of a looped dag ``d`` keeps its artifacts where a dag called ``d-1`` beside it would."""
    for place in ctx.places:
        found = _ITEM_NUMBER.fullmatch(place.node.name)
        if not found or found[1] not in place.siblings or place.is_component:
            continue
        looped, here = ctx.resolve(place.siblings[found[1]]), ctx.resolve(place.node)
        if isinstance(looped, DagSource) and isinstance(here, DagSource) and looped.loop is not None:
            yield ctx.problem(
                f"dag [{place.name}] would keep its artifacts where item {found[2]} of the loop of dag"
                f" [{looped.name}] keeps them, rename one of the two",
                place.node.at,
            )


def deps_exist(ctx: Context) -> Iterator[Problem]:
    for place in ctx.places:
        if place.root is Root.POST_PROCESS or place.is_component:
            continue
        for dep in place.node.deps:
            if dep not in place.siblings:
                near = ctx.did_you_mean(dep, (name for name in place.siblings if name != place.node.name))
                yield ctx.problem(f"component [{place.name}] has an wrong dep [{dep}]{near}", (*place.node.at, "deps"))


# Inside one node.


def unique_names(ctx: Context) -> Iterator[Problem]:
    """Parameters and artifacts share one space of names, upper and lower case being the same."""
    for place in ctx.active:
        seen: set[str] = set()
        for kind, field, names in _fields_of(place.node):
            for name in names:
                if name.upper() in seen:
                    yield ctx.problem(
                        f"{kind} name[{name}] has already existed in params/artifacts of component[{place.name}]"
                        " (these names are case-insensitive)",
                        (*place.node.at, *field, name),
                    )
                seen.add(name.upper())


def variable_names(ctx: Context) -> Iterator[Problem]:
    for place in ctx.active:
        node = place.node
        named = [(shown, field, names) for (_, field, names), shown in zip(_fields_of(node), _SHOWN, strict=True)]
        if isinstance(node, StepSource):
            named.append(("env", ("env",), tuple(node.env)))
        for shown, field, names in named:
            for name in names:
                if not VARIABLE_NAME.fullmatch(name):
                    yield ctx.problem(
                        f"check {shown}[{name}] in component[{place.name}] failed: format of variable name[{name}]"
                        f" invalid, should be in ^{VARIABLE_NAME.pattern}$",
                        (*node.at, *field, name),
                    )


_SHOWN: Final = ("parameters", "inputArtifacts", "outputArtifacts")


def _fields_of(node: NodeSource) -> tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...]:
    """What messages call one of them, where it is written, and the names."""
    return (
        ("parameter", ("parameters",), tuple(node.parameters)),
        ("inputAtf", ("artifacts", "input"), tuple(node.inputs)),
        ("outputAtf", ("artifacts", "output"), tuple(node.outputs)),
    )


def reference(ctx: Context) -> Iterator[Problem]:
    for place in ctx.places:
        if isinstance(place.node, StepSource) and place.node.reference:
            for message, field in _wrong_reference(ctx, place, place.node):
                yield ctx.problem(
                    f"check reference failed, only outer components can be refered, error: {message}",
                    (*place.node.at, *field),
                )


def _wrong_reference(ctx: Context, place: Place, step: StepSource) -> Iterator[tuple[str, Path]]:
    cache = (step.cache.enable, step.cache.max_expired_time, step.cache.fs_scope) if step.cache else ()
    body = (step.command, step.docker_env, step.env, step.outputs, step.condition, step.extra_fs, step.retry)
    if any(body) or any(cache) or step.loop is not None or step.timeout_s is not None:
        yield "reference step can only have deps, parameters, input artifacts, reference", ()
    missing = ctx.references.missing(step)
    if missing:
        if place.root is Root.ENTRY_POINTS and missing == step.reference:
            near = ctx.did_you_mean(missing, ctx.source.components)
            yield f"no component named {missing}{near}", ("reference",)
        return
    component = ctx.resolve(ctx.source.components[step.reference])
    for name, written in step.parameters.items():
        message = _wrong_given(ctx, step, component, name, plain(written))
        if message:
            yield message, ("parameters", name)
    for name in step.inputs:
        if name not in component.inputs:
            yield "input artifact in step with reference must be in refered component", ("artifacts", "input", name)
    if component.inputs.keys() - step.inputs.keys():
        yield "input artifact in refered component should all used by reference component", ("artifacts", "input")


def _wrong_given(ctx: Context, step: StepSource, component: NodeSource, name: str, value: Value) -> str:
    """Of a parameter that a step gives to the component it refers to. What a template holds is known only later."""
    if name not in component.parameters:
        near = ctx.did_you_mean(name, component.parameters)
        return f"parameters in step with reference must be in refered component{near}"
    if isinstance(value, str) and references(value):
        return ""
    wrong = misfit(name, value, ctx.references.declared_type(ctx.source.components[step.reference], name))
    prefix = "parameters in step with reference check dict param in refered param failed, error: "
    return prefix + wrong if wrong else ""
