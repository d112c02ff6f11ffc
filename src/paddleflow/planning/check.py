"""Checking: everything that can be wrong with a pipeline before it runs, one small function a rule.

The rules run in the order users know, so that the first problem is the one they expect: components, names and circles,
the post-process, the request's parameters, what is disabled, single nodes, then caching, failure and filesystems.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from paddleflow.domain.errors import Invalid
from paddleflow.planning import checks_control as control
from paddleflow.planning import checks_options as options
from paddleflow.planning import checks_structure as structure
from paddleflow.planning import checks_values as values
from paddleflow.planning.checks_context import Context, Problem
from paddleflow.planning.source import Limits, Overrides, Source

__all__ = ["Problem", "check", "checked", "problems"]

Rule: TypeAlias = Callable[[Context], Iterator[Problem]]

GROUND: Final[tuple[Rule, ...]] = (
    structure.components_without_deps,
    structure.components_acyclic,
    structure.size,
)
"""When one of these finds something, the others are not asked: they follow references and go down into dags."""

RULES: Final[tuple[Rule, ...]] = (
    structure.components_exist,
    structure.pipeline_name,
    structure.node_names,
    structure.acyclic,
    structure.loops_beside_their_items,
    control.post_process,
    control.request_parameters,
    control.disabled,
    structure.deps_exist,
    control.condition,
    control.loops,
    options.images,
    structure.unique_names,
    structure.reference,
    structure.variable_names,
    values.parameters,
    values.inputs,
    values.artifacts_need_a_filesystem,
    values.outputs,
    values.environment,
    values.command,
    values.programs,
    options.cache_expiry,
    options.failure_strategy,
    options.main_filesystem,
    options.extra_filesystems,
    options.cache_scopes,
)


def problems(source: Source, overrides: Overrides, limits: Limits) -> tuple[Problem, ...]:
    """All that is wrong, the first one first."""
    return tuple(_found(Context(source, overrides, limits)))


def check(source: Source, overrides: Overrides, limits: Limits) -> None:
    """Raises the first problem, if there is one."""
    checked(source, overrides, limits)


def checked(source: Source, overrides: Overrides, limits: Limits) -> Context:
    """The pipeline laid out and found good: what compiling goes on from."""
    context = Context(source, overrides, limits)
    first = next(_found(context), None)
    if first is not None:
        where = f" (line {first.line}, at {first.place})" if first.line is not None else ""
        raise Invalid(
            f"{first.message}{where}", code="InvalidPipeline", details={"path": first.place, "line": first.line}
        )
    return context


def _found(context: Context) -> Iterator[Problem]:
    is_sound = True
    for rule in GROUND:
        for problem in rule(context):
            is_sound = False
            yield problem
    if is_sound:
        for rule in RULES:
            yield from rule(context)
