"""What a run may hold: values that grow by being passed on, and large ones repeated by a loop, end the node, not us."""

from __future__ import annotations

from dataclasses import replace

from paddleflow.domain.runs import NodeStatus, RunStatus, Value
from paddleflow.planning.plan import LoopItems, LoopParameter
from paddleflow.planning.progress import MOST_BULK, Progress
from paddleflow.planning.source import Limits
from paddleflow.planning.templates import LONGEST
from tests.unit.run_courses import FACTS, Course, dag, plan_of, step


def test_values_that_double_from_step_to_step_end_the_step_that_goes_too_far() -> None:
    steps = [step("s0", parameters={"p": "x" * 1024})]
    for number in range(1, 60):
        before = f"s{number - 1}"
        steps.append(step(f"s{number}", before, parameters={"p": f"{{{{{before}.p}}}}{{{{{before}.p}}}}"}))
    course = Course(plan_of(*steps)).run()
    assert course.status is RunStatus.FAILED
    row = course.rows["s8"]
    assert row.status is NodeStatus.FAILED
    assert f"more than {LONGEST} characters" in row.message
    assert "artifact" in row.message


def test_a_disabled_node_is_skipped_whatever_its_parameters_would_be() -> None:
    long: Value = "x" * LONGEST
    plan = plan_of(
        step("a", parameters={"p": long}),
        step("b", "a", parameters={"p": "{{a.p}}{{a.p}}"}, disabled=True),
        step("c", "a", parameters={"p": "{{a.p}}{{a.p}}"}, loop=LoopItems(items=())),
    )
    assert Course(plan).run().statuses() == {"a": "succeeded", "b": "skipped", "c[]": "skipped"}


def test_a_loop_that_would_repeat_a_long_parameter_too_often_is_refused_as_a_whole() -> None:
    items: Value = ["x" * 100] * 2_000
    plan = plan_of(step("a", parameters={"items": items}, loop=LoopParameter(name="items")))
    course = Course(plan, limits=Limits(loop_items=10_000, nodes=20_000)).begin()
    assert course.statuses() == {"a": "failed"}
    assert "write a long list in loop_argument itself, or read it from an artifact" in course.rows["a"].message
    few = plan_of(step("a", parameters={"items": ["x" * 100] * 200}, loop=LoopParameter(name="items")))
    assert len(Course(few).begin().rows) == 200


def test_what_rows_hold_is_counted_and_limited_for_steps_and_dags_alike() -> None:
    large: Value = "x" * (MOST_BULK // 4)
    passed = {"p": "{{PF_PARENT.p}}"}
    inner = dag("inner", step("x", parameters=passed), parameters=passed)
    course = Course(plan_of(dag("outer", inner, parameters={"p": large}), strategy="continue")).run()
    assert course.status is RunStatus.SUCCEEDED
    inner = replace(inner, children=(dag("deeper", *inner.children, parameters=passed),))
    course = Course(plan_of(dag("outer", inner, parameters={"p": large}), strategy="continue")).run()
    assert course.status is RunStatus.FAILED
    assert f"more than {MOST_BULK} characters" in course.rows["outer.inner.deeper.x"].message


def test_what_is_held_is_the_same_when_read_again() -> None:
    plan = plan_of(step("a", parameters={"p": "x" * 1000, "q": [1, ["y" * 50]]}, env={"E": "{{p}}"}), step("b", "a"))
    course = Course(plan).run()
    again = Progress(plan, FACTS, Limits(), course.rows.values())
    assert again.bulk == course.progress.bulk > 2000
