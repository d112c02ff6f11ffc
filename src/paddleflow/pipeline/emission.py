"""From settled drafts to the document a server reads: which keys, in which order, and what must not be together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from paddleflow.pipeline import names
from paddleflow.pipeline.components import ContainerStep
from paddleflow.pipeline.drafts import Draft, Literal, Template
from paddleflow.pipeline.failures import dsl_error
from paddleflow.pipeline.options import CacheOptions, extra_fs_list

Document = dict[str, Any]


def emit(draft: Draft) -> Document:
    """One node, and everything inside it."""
    _check_names(draft)
    node: Document = {}
    if draft.deps:
        node["deps"] = ",".join(sorted(draft.deps))
    if draft.condition is not None:
        node["condition"] = draft.condition
    if draft.loop is not None:
        node["loop_argument"] = _plain(draft.loop, f"the loop_argument of {draft.title}")
    node["type"] = "dag" if draft.is_dag else "step"
    if draft.parameters:
        node["parameters"] = {name: _parameter(draft, name) for name in draft.parameters}
    artifacts = _artifacts(draft)
    if artifacts:
        node["artifacts"] = artifacts
    if isinstance(draft.component, ContainerStep):
        _emit_step(node, draft, draft.component)
    if draft.is_dag:
        node["entry_points"] = emit_children(draft)
    return node


def emit_children(dag: Draft) -> Document:
    return {child.name: emit(child) for child in _in_order(dag)}


def _emit_step(node: Document, draft: Draft, step: ContainerStep) -> None:
    if draft.command:
        node["command"] = draft.command
    if step.docker_env:
        node["docker_env"] = step.docker_env
    if draft.env:
        node["env"] = draft.env
    if step.cache_options is not None:
        if not isinstance(step.cache_options, CacheOptions):
            raise dsl_error(f"the cache_options of {draft.title} should be CacheOptions, not [{step.cache_options}]")
        node["cache"] = step.cache_options.compile()
    if step.extra_fs:
        # The list may have been appended to since it was set.
        node["extra_fs"] = [each.compile() for each in extra_fs_list(step.extra_fs, draft.title)]
    if step.retry is not None:
        node["retry"] = step.retry.compile()
    if step.timeout is not None:
        node["timeout"] = step.timeout


def _parameter(draft: Draft, name: str) -> object:
    match draft.parameters[name]:
        case Literal(value):
            return _plain(value, f"parameter[{name}] of {draft.title}")
        case Template(text):
            return text
        case foreign:
            raise dsl_error(f"parameter[{name}] of {draft.title} refers to something outside: [{foreign}]")


def _plain(value: object, what: str) -> object:
    """A copy, so that the document is nobody else's; made only of what a document can hold."""
    if isinstance(value, list):
        return [_plain(each, what) for each in value]
    if isinstance(value, dict):
        return {str(key): _plain(each, what) for key, each in value.items()}
    if not isinstance(value, str | int | float):
        raise dsl_error(f"{what} should be made of texts, numbers and lists, not of [{value!r}]")
    if isinstance(value, str) and names.MARKER.search(value):
        raise dsl_error(
            f"{what} refers to other components inside a list or a typed default, where nothing replaces it; "
            "give it as a parameter of its own, without a type"
        )
    return value


def _artifacts(draft: Draft) -> Document:
    artifacts: Document = {}
    if draft.inputs:
        artifacts["input"] = {name: _text(draft, name, given) for name, given in draft.inputs.items()}
    if draft.outputs:
        artifacts["output"] = (
            {name: _text(draft, name, given) for name, given in draft.outputs.items()}
            if draft.is_dag
            else sorted(draft.outputs)
        )
    return artifacts


def _text(draft: Draft, name: str, given: object) -> str:
    if not isinstance(given, Template):
        raise dsl_error(f"artifact[{name}] of {draft.title} refers to something outside: [{given}]")
    return given.text


def _check_names(draft: Draft) -> None:
    """The server tells parameters and artifacts of a node apart by name alone, whatever their case."""
    seen: dict[str, tuple[str, str]] = {}
    kinds: tuple[tuple[str, Iterable[str]], ...] = (
        ("parameter", draft.parameters),
        ("input", draft.inputs),
        ("output", draft.outputs),
    )
    for kind, found in kinds:
        for name in found:
            other_kind, other = seen.setdefault(name.lower(), (kind, name))
            if (other_kind, other) != (kind, name):
                raise dsl_error(
                    f"the parameters, inputs and outputs of {draft.title} should have different names, whatever their "
                    f"case: there is {other_kind}[{other}] and {kind}[{name}]"
                )


def _in_order(dag: Draft) -> list[Draft]:
    """Topological, otherwise as they were made: as if the list were read again and again from the top, each time
    taking what has become ready on the way."""
    place = {name: at for at, name in enumerate(dag.children)}
    waiting = {name: len(child.deps) for name, child in dag.children.items()}
    followers: dict[str, list[str]] = {name: [] for name in dag.children}
    for name, child in dag.children.items():
        for upstream in child.deps:
            followers[upstream].append(name)
    round_of = dict.fromkeys(dag.children, 0)
    ready = [name for name, count in waiting.items() if not count]
    ordered: list[str] = []
    while ready:
        name = ready.pop()
        ordered.append(name)
        for follower in followers[name]:
            again = place[name] > place[follower]
            round_of[follower] = max(round_of[follower], round_of[name] + again)
            waiting[follower] -= 1
            if not waiting[follower]:
                ready.append(follower)
    if len(ordered) < len(dag.children):
        ring = _ring(dag, set(dag.children) - set(ordered))
        raise dsl_error(f"compile {dag.title} failed: there is a ring between {ring}")
    ordered.sort(key=lambda name: (round_of[name], place[name]))
    return [dag.children[name] for name in ordered]


def _ring(dag: Draft, stuck: set[str]) -> list[str]:
    """Those that wait for each other, without those that only wait for them."""
    while True:
        needed = {upstream for name in stuck for upstream in dag.children[name].deps} & stuck
        if needed == stuck:
            return sorted(stuck)
        stuck = needed
