"""What the templates of a node stand for, once everything it needs is known.

Parameters are given by the surroundings: upstream nodes, the dag around, system parameters; so all items of a loop
share them. Command, environment and condition then see the node's own parameters, artifacts and loop item. Every text
is filled in one pass: a value that looks like a template is never looked at again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from paddleflow.domain.runs import RunNode, Value
from paddleflow.planning.moves import RunFacts
from paddleflow.planning.paths import in_container
from paddleflow.planning.plan import Mount, PlanNode
from paddleflow.planning.templates import MISSING, Missing, Ref, fill, spell

PARENT = "PF_PARENT"
RUN_ID = "PF_RUN_ID"
STEP_NAME = "PF_STEP_NAME"
USER_NAME = "PF_USER_NAME"
LOOP_ARGUMENT = "PF_LOOP_ARGUMENT"

Upstream: TypeAlias = Callable[[str, str], "Value | Missing"]
"""Own name of a sibling, name of its parameter → the value."""


def system_parameters(facts: RunFacts, name: str, item: Value) -> dict[str, Value]:
    """``item`` is None where there is no loop; the parameter is an empty text then."""
    return {
        RUN_ID: str(facts.run_id),
        STEP_NAME: name,
        USER_NAME: str(facts.owner),
        LOOP_ARGUMENT: "" if item is None else item,
    }


def parameters_of(node: PlanNode, facts: RunFacts, parent: RunNode | None, upstream: Upstream) -> dict[str, Value]:
    """The loop item that parameters may speak of is that of the dag around: the node's own does not exist yet."""
    system = system_parameters(facts, node.name, parent.item if parent is not None else None)

    def lookup(ref: Ref) -> Value | Missing:
        if not ref.node:
            return system.get(ref.name, MISSING)
        if ref.node != PARENT:
            return upstream(ref.node, ref.name)
        if parent is None:
            return MISSING
        return system[LOOP_ARGUMENT] if ref.name == LOOP_ARGUMENT else parent.parameters.get(ref.name, MISSING)

    return {name: fill(value, lookup) if isinstance(value, str) else value for name, value in node.parameters.items()}


def own_lookup(known: Mapping[str, Value]) -> Callable[[Ref], Value | Missing]:
    """Of texts that may only speak of the node itself."""
    return lambda ref: MISSING if ref.node else known.get(ref.name, MISSING)


def own_environment(node: PlanNode, known: Mapping[str, Value]) -> dict[str, str]:
    """The step's ``env``, filled in; without what the platform adds."""
    lookup = own_lookup(known)
    return {name: spell(fill(text, lookup)) for name, text in node.env.items()}


def artifact_texts(
    inputs: Mapping[str, str], outputs: Mapping[str, str], main_fs: Mount | None, facts: RunFacts
) -> tuple[dict[str, str], dict[str, str]]:
    """The paths of input and output artifacts as the step's process sees them."""
    return (
        {name: in_container(text, main_fs, facts.fs_id) for name, text in inputs.items()},
        {name: in_container(text, main_fs, facts.fs_id) for name, text in outputs.items()},
    )


def whole_environment(
    own: Mapping[str, str], system: Mapping[str, Value], inputs: Mapping[str, str], outputs: Mapping[str, str]
) -> dict[str, str]:
    """What the step's job is given; the platform's own variables win."""
    return {
        **own,
        **{name: spell(value) for name, value in system.items()},
        **{f"PF_INPUT_ARTIFACT_{name.upper()}": text for name, text in inputs.items()},
        **{f"PF_OUTPUT_ARTIFACT_{name.upper()}": text for name, text in outputs.items()},
    }


def command_of(node: PlanNode, known: Mapping[str, Value]) -> str:
    """A template of which nothing is known (the step's artifacts, while it is only fingerprinted) stays as it is."""
    return spell(fill(node.command, own_lookup(known)))
