"""What a result depends on: what changes a fingerprint, what does not, and what may be shown of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from paddleflow.domain.runs import Fingerprint
from paddleflow.planning.fingerprint import changed, identity, seal
from paddleflow.planning.moves import Prepare
from paddleflow.planning.plan import CachePolicy, LoopItems, Mount, Plan, Scope
from tests.unit.run_courses import FACTS, Course, plan_of, step

CACHED = CachePolicy(enable=True)


def question(plan: Plan, key: str = "a", run_id: str = "run-000001") -> Prepare:
    course = Course(plan, facts=replace(FACTS, run_id=type(FACTS.run_id)(run_id)))
    course.begin()
    while key not in course.asked:
        course.answer()
        if not course.running():
            break
        course.end(*course.running())
    asked = course.asked[key]
    assert isinstance(asked, Prepare)
    return asked


def of(plan: Plan, key: str = "a", run_id: str = "run-000001") -> Fingerprint:
    asked = question(plan, key, run_id)
    assert asked.identity is not None
    return seal(asked.identity, {})


def cached(**more: Any) -> Plan:
    plan_words = {key: more.pop(key) for key in ("docker_env", "main_fs") if key in more}
    return plan_of(step("a", cache=CACHED, **more), **plan_words)


BASE: dict[str, Any] = {
    "command": "train {{lr}} {{out}}",
    "parameters": {"lr": 0.1},
    "outputs": ("out",),
    "env": {"K": "v"},
}


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        ({"command": "train {{lr}} {{out}} now"}, ("command",)),
        ({"parameters": {"lr": 0.2}}, ("command", "parameters.lr")),
        ({"parameters": {"lr": 0.1, "more": 1}}, ("parameters.more",)),
        ({"env": {"K": "w"}}, ("env.K",)),
        ({"env": {}}, ("env.K",)),
        ({"docker_env": "image:2"}, ("docker_env",)),
        ({"outputs": ("out", "log")}, ("outputs",)),
        ({"mounts": (Mount(name="more"),)}, ("extra_fs",)),
        ({"main_fs": Mount(name="data", mount_path="/elsewhere")}, ("main_fs",)),
    ],
)
def test_what_changes_a_fingerprint(change: dict[str, Any], parts: tuple[str, ...]) -> None:
    before, after = of(cached(**BASE)), of(cached(**{**BASE, **change}))
    assert changed(before, after) == parts
    assert before.first != after.first


def test_another_run_of_the_same_is_equal() -> None:
    """Paths of artifacts and the system parameters in the environment differ, and do not matter."""
    assert of(cached(**BASE)) == of(cached(**BASE), run_id="run-000002")
    assert of(cached(env={"PF_RUN_ID": "mine"})).first == of(cached()).first


def test_where_the_inputs_lie_does_not_matter_what_they_are_called_does() -> None:
    def plan(name: str) -> Plan:
        return plan_of(
            step("up", outputs=("o",)),
            step("a", "up", cache=CACHED, inputs={name: "up.o"}, command="cat {{i}} $PF_INPUT_ARTIFACT_I"),
        )

    assert of(plan("i")).first == of(plan("i"), run_id="run-000009").first
    assert changed(of(plan("i")), of(plan("j"))) == ("inputs",)


def test_the_paths_to_look_at_are_asked_for() -> None:
    scopes = (Scope(fs_name="data", path="src"),)
    plan = plan_of(
        step("up", outputs=("o",), loop=LoopItems(items=(1, 2))),
        step("a", "up", cache=replace(CACHED, scopes=scopes), inputs={"i": "up.o"}, outputs=("x",)),
    )
    asked = question(plan)
    assert asked.scopes == scopes
    assert [path.split("/")[3][:4] for path in asked.inputs["i"]] == ["up-0", "up-1"]
    assert len(asked.outputs) == 1 and asked.outputs[0].endswith("/x")


def test_items_of_a_loop_are_told_apart_even_if_only_the_environment_knows_them() -> None:
    plan = plan_of(step("a", cache=CACHED, command="echo $PF_LOOP_ARGUMENT", loop=LoopItems(items=("x", "y"))))
    assert changed(of(plan, "a[0]"), of(plan, "a[1]")) == ("loop_argument",)


def test_contents_are_the_second_half() -> None:
    one = seal({}, {"inputs.i": "aa", "fs_scope.data:/src": "cc"})
    other = seal({}, {"inputs.i": "bb", "fs_scope.data:/src": "cc"})
    assert one.first == other.first
    assert one.second != other.second
    assert changed(one, other) == ("inputs.i",)
    assert changed(one, one) == ()
    assert seal({}, {"fs_scope.data:/src": "cc", "inputs.i": "aa"}) == one


def test_values_are_shown_shortened_and_the_environment_never() -> None:
    plan = cached(command="x" * 500, parameters={"lr": 0.00001}, env={"SECRET": "hunter2"})
    parts = of(plan).parts
    assert len(parts["command"].shown) == 200
    assert parts["parameters.lr"].shown == "0.00001"
    assert parts["env.SECRET"].shown == ""
    assert "hunter2" not in str(parts)


def test_the_identity_does_not_depend_on_the_order_of_what_was_written() -> None:
    node = step("a").node
    words: dict[str, Any] = {"command": "c", "item": None}
    one = identity(plan_of(), node, env={"A": "1", "B": "2"}, parameters={"x": 1, "y": 2}, **words)
    other = identity(plan_of(), node, env={"B": "2", "A": "1"}, parameters={"y": 2, "x": 1}, **words)
    assert seal(one, {}) == seal(other, {})


def test_a_parameter_counts_as_the_text_that_reaches_the_step() -> None:
    assert of(cached(**BASE)) == of(cached(**{**BASE, "parameters": {"lr": "0.1"}}))
