"""Leaving out parts of components: a full name goes through references, as it does in what runs."""

from __future__ import annotations

import textwrap

import pytest

from paddleflow.documents import load
from paddleflow.planning.check import problems
from paddleflow.planning.compile import compile_plan
from paddleflow.planning.parse import parse
from paddleflow.planning.source import Limits, Overrides, Source

PIPELINE = """
name: shop
fs_options: {main_fs: {name: work}}
entry_points:
  first: {reference: {component: both}}
  second: {deps: first, reference: {component: alias}}
  around: {entry_points: {inner: {reference: {component: both}}}}
components:
  alias: {reference: {component: both}}
  both:
    artifacts: {output: {kept: "{{keep.out}}"}}
    entry_points:
      wash: {command: wash, parameters: {heat: 40}}
      dry: {deps: wash, command: "dry {{heat}}", parameters: {heat: "{{wash.heat}}"}}
      fold: {deps: dry, command: fold}
      keep: {deps: fold, command: "keep {{out}}", artifacts: {output: [out]}}
post_process: {lamp: {command: lamp off}}
"""


def source(disabled: str) -> Source:
    document = load(textwrap.dedent(PIPELINE) + f"disabled: {disabled}\n")
    return parse(document.value, document.lines)


def off(disabled: str) -> set[str]:
    plan = compile_plan(source(disabled), Overrides(), Limits())
    return {path for path, node in plan.nodes.items() if node.disabled}


@pytest.mark.parametrize(
    ("disabled", "expected"),
    [
        ("first.fold", {"first.fold"}),
        ("second.fold", {"second.fold"}),
        ("around.inner.fold", {"around.inner.fold"}),
        ("first.fold, second.fold", {"first.fold", "second.fold"}),
        ("'first.wash,first.dry'", {"first.wash", "first.dry"}),
        ("'first,first.wash'", {"first", "first.wash"}),
        ("'around,around.inner.keep'", {"around", "around.inner.keep"}),
        ("lamp", {"post_process.lamp"}),
    ],
)
def test_a_part_of_a_component_is_left_out_where_it_is_named_and_nowhere_else(
    disabled: str, expected: set[str]
) -> None:
    assert off(disabled) == expected


@pytest.mark.parametrize(
    ("disabled", "expected"),
    [
        ("first.wash", "disabled component[first.wash] is refered by [first.dry]"),
        ("second.keep", "disabled component[second.keep] is refered by [second]"),
        ("around.inner.wash", "disabled component[around.inner.wash] is refered by [around.inner.dry]"),
        ("'first.fold,first.fold'", "disabled component[first.fold] is set repeatedly!"),
        ("first.fold.wash", "disabled component[first.fold.wash] not existed!"),
        ("both.wash", "disabled component[both.wash] not existed!"),
        ("first..fold", "disabled component[first..fold] not existed!"),
        ("first.", "disabled component[first.] not existed!"),
        ("lamp.switch", "disabled component[lamp.switch] not existed!"),
    ],
)
def test_what_cannot_be_left_out(disabled: str, expected: str) -> None:
    found = [problem.message for problem in problems(source(disabled), Overrides(), Limits())]
    assert [message.partition(", did you mean")[0] for message in found] == [expected]


def test_components_that_refer_to_themselves_are_refused_and_not_followed_for_ever() -> None:
    document = load("name: p\ndisabled: a.b.c\nentry_points: {a: {reference: {component: x}}}\n")
    value = document.value
    assert isinstance(value, dict)
    value["components"] = {"x": {"entry_points": {"b": {"reference": {"component": "x"}}}}}
    found = [problem.message for problem in problems(parse(value), Overrides(), Limits())]
    assert "components reference is not acyclic" in found
