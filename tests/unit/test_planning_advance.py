"""How a run goes forward: order, slots, values, dags, loops, conditions, what is skipped."""

from __future__ import annotations

from typing import Any

import pytest

from paddleflow.domain.jobs import JobStatus
from paddleflow.domain.runs import NO_ITEMS, NodeStatus, RunStatus
from paddleflow.planning.moves import Begin, Fetch, Fetched, Noted
from paddleflow.planning.plan import LoopArtifact, LoopItems, LoopParameter
from paddleflow.planning.source import Limits
from tests.unit.run_courses import FACTS, Course, dag, plan_of, step

TWO = LoopItems(items=("x", "y"))


def test_steps_run_one_after_the_other() -> None:
    course = Course(plan_of(step("a"), step("b", "a"), step("c", "a", "b"))).begin()
    assert course.status is RunStatus.RUNNING
    assert course.running() == ["a"]
    assert set(course.rows) == {"a"}, "what waits for others has no row yet"
    course.end("a")
    assert course.running() == ["b"]
    course.end("b")
    assert course.running() == ["c"]
    course.end("c")
    assert (course.status, course.message) == (RunStatus.SUCCEEDED, "Run successfully")


def test_a_row_tells_when_it_started_and_ended() -> None:
    course = Course(plan_of(step("a"))).begin()
    begun = course.now
    ended = course.end("a").nodes[0]
    assert ended.started_at == begun
    assert ended.finished_at == begun, "when the job says it ended"
    assert ended.id == ended.job_id == course.submitted["a"]


def test_nothing_to_run_succeeds_at_once() -> None:
    assert Course(plan_of()).begin().status is RunStatus.SUCCEEDED
    course = Course(plan_of(step("a", disabled=True), step("b", "a", disabled=True))).begin()
    assert course.status is RunStatus.SUCCEEDED
    assert {(row.status, row.message) for row in course.rows.values()} == {(NodeStatus.SKIPPED, "disabled")}


def test_a_disabled_dag_or_loop_is_one_skipped_row_and_counts_as_done() -> None:
    plan = plan_of(dag("d", step("x"), disabled=True, loop=TWO), step("a", "d"))
    course = Course(plan).run()
    assert course.statuses() == {"d": "skipped", "a": "succeeded"}


def test_slots_are_given_in_the_order_of_the_plan_and_the_items() -> None:
    plan = plan_of(step("a", loop=LoopItems(items=(1, 2, 3))), step("b"), parallelism=2)
    course = Course(plan).begin()
    assert course.running() == ["a[0]", "a[1]"]
    assert course.of_status(NodeStatus.PENDING) == {"a[2]", "b"}
    course.end("a[1]")
    assert course.running() == ["a[0]", "a[2]"]
    course.end("a[0]", "a[2]")
    assert course.running() == ["b"]


def test_a_step_that_is_being_prepared_holds_a_slot() -> None:
    plan = plan_of(step("a", outputs=("o",)), step("b"), parallelism=1)
    course = Course(plan).begin()
    assert set(course.asked) == {"a"}
    assert not course.running()
    course.answer()
    assert course.running() == ["a"]


def test_dags_do_not_hold_slots() -> None:
    plan = plan_of(dag("d", dag("e", step("a"))), parallelism=1)
    course = Course(plan).begin()
    assert course.running() == ["d.e.a"]
    course.end("d.e.a")
    assert course.status is RunStatus.SUCCEEDED
    assert course.rows["d.e"].id.startswith("dag-run-000001-")
    assert course.rows["d.e.a"].parent == "d.e"
    assert course.rows["d.e"].job_id is None


# Values.


def test_parameters_flow_down_with_their_types() -> None:
    plan = plan_of(
        step("up", parameters={"list": [1, [2]], "rate": 0.5}),
        step(
            "a",
            "up",
            parameters={
                "same": "{{up.list}}",
                "text": "is {{ up.list }} {{up.rate}}",
                "who": "{{PF_USER_NAME}}/{{PF_STEP_NAME}}/{{PF_RUN_ID}}",
                "item": "<{{PF_LOOP_ARGUMENT}}>",
                "mine": "{{same}}",
            },
            loop=TWO,
        ),
    )
    course = Course(plan).run()
    assert course.rows["a[1]"].parameters == {
        "same": [1, [2]],
        "text": "is [1 [2]] 0.5",
        "who": "alice/a/run-000001",
        "item": "<>",
        "mine": "{{same}}",
    }


def test_a_dag_hands_its_parameters_item_and_inputs_to_its_children() -> None:
    plan = plan_of(
        step("up", outputs=("o",)),
        dag(
            "d",
            step(
                "a",
                inputs={"i": ".in"},
                parameters={
                    "lr": "{{PF_PARENT.lr}}",
                    "item": "{{PF_PARENT.PF_LOOP_ARGUMENT}}",
                    "same": "{{PF_LOOP_ARGUMENT}}",
                },
            ),
            deps=("up",),
            inputs={"in": "up.o"},
            parameters={"lr": 7},
            loop=LoopItems(items=([1], 2)),
        ),
    )
    course = Course(plan).run()
    assert course.rows["d[0].a"].parameters == {"lr": 7, "item": [1], "same": [1]}
    assert course.rows["d[1].a"].parameters["item"] == 2
    assert course.rows["d[0].a"].inputs == {"i": course.rows["up"].outputs["o"]}


def test_outputs_of_a_loop_are_joined_through_dags() -> None:
    plan = plan_of(
        dag("d", step("a", outputs=("o",), loop=TWO), outputs={"all": "a.o"}, loop=TWO),
        step("b", "d", inputs={"i": "d.all"}),
    )
    course = Course(plan).run()
    made = [course.rows[f"d[{i}].a[{j}]"].outputs["o"] for i in (0, 1) for j in (0, 1)]
    assert course.rows["b"].inputs["i"] == ",".join(made)
    assert len(set(made)) == 4
    assert course.rows["d[1]"].outputs["all"] == ",".join(made[2:])


def test_parameters_of_a_skipped_node_can_be_used() -> None:
    plan = plan_of(
        step("up", condition="1 == 2", parameters={"p": 5}),
        step("none", loop=LoopItems(items=()), parameters={"p": 6}),
        step("a", "up", "none", parameters={"p": "{{up.p}}", "q": "{{none.p}}"}),
    )
    course = Course(plan).run()
    assert course.rows["a"].parameters == {"p": 5, "q": 6}


def test_an_output_that_was_never_made_fails_the_dag() -> None:
    plan = plan_of(dag("d", step("a", outputs=("o",), condition="1 == 2"), outputs={"x": "a.o"}))
    course = Course(plan).run()
    assert course.rows["d"].status is NodeStatus.FAILED
    assert "output artifact [x] of dag[d] cannot be found: [a.o] was not made" in course.rows["d"].message
    assert course.message == "update status to failed because some step or dag run failed: entry_points.d"


def test_an_input_that_was_never_made_fails_the_step() -> None:
    plan = plan_of(step("up", outputs=("o",), condition="1 == 2"), step("a", "up", inputs={"i": "up.o"}))
    course = Course(plan).run()
    assert course.rows["a"].status is NodeStatus.FAILED
    assert "input artifact [i] of component[a] cannot be found" in course.rows["a"].message


# Loops.


def test_keys_items_and_job_names_of_a_loop() -> None:
    plan = plan_of(dag("sub", step("train", loop=LoopItems(items=("x", 2.5))), loop=LoopItems(items=(1, 2))))
    course = Course(plan).begin()
    assert set(course.running()) == {f"sub[{i}].train[{j}]" for i in (0, 1) for j in (0, 1)}
    row = course.rows["sub[1].train[1]"]
    assert (row.seq, row.item, row.in_loop, row.node, row.parent) == (1, 2.5, True, "sub.train", "sub[1]")
    names = {key: submission.name for key, submission in course.last.submit}
    assert names["sub[1].train[0]"] == "run-000001-train"
    assert names["sub[1].train[1]"] == "run-000001-train-1"
    assert len(set(course.submitted.values())) == 4


def test_what_follows_a_loop_waits_for_all_its_items() -> None:
    course = Course(plan_of(step("a", loop=TWO), step("b", "a"))).begin()
    course.end("a[1]")
    assert "b" not in course.rows
    course.end("a[0]")
    assert course.running() == ["b"]


def test_an_empty_loop_runs_nothing_and_counts_as_done() -> None:
    plan = plan_of(step("a", loop=LoopItems(items=()), outputs=("o",)), step("b", "a", inputs={"i": "a.o"}))
    course = Course(plan).run()
    row = course.rows["a[]"]
    assert (row.status, row.seq, row.in_loop) == (NodeStatus.SKIPPED, NO_ITEMS, True)
    assert row.message == "the loop has no items, so there is nothing to run"
    assert course.rows["b"].status is NodeStatus.SUCCEEDED
    assert course.rows["b"].inputs == {"i": ""}
    assert not course.artifacts, "nothing was made and nothing read"


@pytest.mark.parametrize("value", [[1, "b", [2]], '[1, "b", [2]]', "{{up.list}}"])
def test_a_loop_over_a_parameter(value: Any) -> None:
    plan = plan_of(
        step("up", parameters={"list": [1, "b", [2]]}),
        step("a", "up", parameters={"items": value}, loop=LoopParameter(name="items")),
    )
    course = Course(plan).run()
    assert [course.rows[f"a[{number}]"].item for number in range(3)] == [1, "b", [2]]


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("[1, 2", "loopArgument [[1, 2] unmarshal to list failed, error: "),
        ("7", "loopArgument [7] unmarshal to list failed, error: it is not a list"),
        ("[NaN]", "NaN is not a number that JSON knows"),
        ('["\\ud800"]', "each one in list loopArgument should be int or float or string"),
        ('["\\u0000"]', "each one in list loopArgument should be int or float or string"),
        ('[{"a": 1}]', "each one in list loopArgument should be int or float or string"),
        ("[null]", "each one in list loopArgument should be int or float or string"),
        ("[" * 100_000, "unmarshal to list failed"),
        ("[" * 40 + "]" * 40, "each one in list loopArgument should be int or float or string"),
        ("[" + "1" * 10_000 + "]", "unmarshal to list failed"),
        (7, "loopArgument can only be string or list type"),
    ],
)
def test_a_loop_over_nonsense_fails_the_node(value: Any, why: str) -> None:
    plan = plan_of(step("a", parameters={"items": value}, loop=LoopParameter(name="items")))
    course = Course(plan).begin()
    assert course.statuses() == {"a": "failed"}
    assert why in course.rows["a"].message
    assert len(course.rows["a"].message) < 400
    assert course.status is RunStatus.FAILED


def test_a_loop_over_an_artifact_reads_it_first() -> None:
    plan = plan_of(step("up", outputs=("o",)), step("a", "up", inputs={"i": "up.o"}, loop=LoopArtifact(name="i")))
    course = Course(plan).begin()
    course.answer()
    course.end("up")
    path = course.rows["up"].outputs["o"]
    assert course.asked == {"a": Fetch(key="a", paths={"i": (path,)}, limit=1024 * 1024)}
    course.files[path] = ' ["x", 2]\n'
    course.answer()
    assert course.running() == ["a[0]", "a[1]"]
    assert course.rows["a[1]"].item == 2


def test_a_loop_over_the_artifacts_of_a_loop_strings_them_together() -> None:
    plan = plan_of(
        step("up", outputs=("o",), loop=TWO), step("a", "up", inputs={"i": "up.o"}, loop=LoopArtifact(name="i"))
    )
    course = Course(plan).begin()
    course.answer()
    course.end("up[0]", "up[1]")
    for number, content in enumerate(["[1]", "[2, 3]"]):
        course.files[course.rows[f"up[{number}]"].outputs["o"]] = content
    course.answer()
    assert [course.rows[f"a[{number}]"].item for number in range(3)] == [1, 2, 3]


def test_an_artifact_that_cannot_be_read_fails_the_node() -> None:
    plan = plan_of(step("up", outputs=("o",)), step("a", "up", inputs={"i": "up.o"}, loop=LoopArtifact(name="i")))
    course = Course(plan).run()
    assert course.rows["a"].status is NodeStatus.FAILED
    assert course.rows["a"].message.startswith("failed to get the content of artifact by path[")


def test_limits_of_loops_name_the_setting() -> None:
    plan = plan_of(step("a", loop=LoopItems(items=tuple(range(11)))))
    course = Course(plan, limits=Limits(loop_items=10)).begin()
    assert course.statuses() == {"a": "failed"}
    assert "11 items, more than the 10 that the setting pipelines.max_loop_items allows" in course.rows["a"].message


def test_limits_of_runs_count_what_is_inside_dags() -> None:
    items = LoopItems(items=tuple(range(5)))
    plan = plan_of(dag("d", step("a"), step("b", "a", loop=items), loop=items), strategy="continue")
    # 3 in the plan, 4 more items of 3 each: 15; then each loop inside brings 4 more.
    assert Course(plan, limits=Limits(nodes=35)).run().status is RunStatus.SUCCEEDED
    tight = Course(plan, limits=Limits(nodes=34)).run()
    assert tight.of_status(NodeStatus.FAILED) == {"d[4].b", "d[4]"}
    assert "35 nodes, more than the 34 that the setting pipelines.max_nodes allows" in tight.rows["d[4].b"].message
    refused = Course(plan, limits=Limits(nodes=14)).run()
    assert refused.statuses() == {"d": "failed"}


# Conditions.


@pytest.mark.parametrize(
    ("condition", "status"),
    [
        ("{{p}} > 3", "succeeded"),
        ("{{p}} > 10", "skipped"),
        ("{{PF_STEP_NAME}} == a && {{PF_USER_NAME}} == 'alice'", "succeeded"),
        ("{{PF_LOOP_ARGUMENT}} == ''", "succeeded"),
        ("{{p}}", "failed"),
        ("{{nobody}} == 1", "failed"),
        ("{{p}} == 5 ||", "failed"),
    ],
)
def test_a_condition_decides(condition: str, status: str) -> None:
    course = Course(plan_of(step("a", condition=condition, parameters={"p": 5}), step("b", "a"))).run()
    assert course.rows["a"].status == status
    assert course.rows["b"].status == ("cancelled" if status == "failed" else "succeeded")
    if status == "skipped":
        assert course.rows["a"].message == "the result of condition for step[a] is false, skip running"
        assert course.rows["a"].job_id is None


def test_a_condition_is_judged_for_each_item() -> None:
    plan = plan_of(step("a", condition="{{PF_LOOP_ARGUMENT}} != 2", loop=LoopItems(items=(1, 2, 3))))
    assert Course(plan).run().statuses() == {"a[0]": "succeeded", "a[1]": "skipped", "a[2]": "succeeded"}


def test_a_dag_with_a_false_condition_does_not_open() -> None:
    course = Course(plan_of(dag("d", step("a"), condition="1 == 2"))).run()
    assert course.statuses() == {"d": "skipped"}
    assert course.rows["d"].message == "the result of condition for dag[d] is false, skip running"


def test_a_condition_on_an_artifact_reads_it_once_for_all_items() -> None:
    plan = plan_of(
        step("up", outputs=("o",)),
        step("a", "up", inputs={"i": "up.o"}, condition="{{i}} > 0.5", loop=TWO),
    )
    course = Course(plan).begin()
    course.answer()
    course.end("up")
    path = course.rows["up"].outputs["o"]
    assert course.last.fetch == (Fetch(key="a", paths={"i": (path,)}, limit=1024),)
    assert course.of_status(NodeStatus.PENDING) == {"a[0]", "a[1]"}
    course.files[path] = "0.7\n"
    course.answer()
    assert course.running() == ["a[0]", "a[1]"]


def test_the_content_of_an_artifact_is_a_value_and_no_expression() -> None:
    plan = plan_of(step("up", outputs=("o",)), step("a", "up", inputs={"i": "up.o"}, condition="{{i}} == yes"))
    course = Course(plan).begin()
    course.answer()
    course.end("up")
    course.files[course.rows["up"].outputs["o"]] = "1 == 1 || no"
    assert course.run().rows["a"].status is NodeStatus.SKIPPED


def test_contents_of_a_looped_artifact_are_joined_for_a_condition() -> None:
    plan = plan_of(
        step("up", outputs=("o",), loop=TWO), step("a", "up", inputs={"i": "up.o"}, condition="{{i}} == 'l,r'")
    )
    course = Course(plan).begin()
    course.answer()
    course.end("up[0]", "up[1]")
    for number, content in enumerate([" l\n", "r"]):
        course.files[course.rows[f"up[{number}]"].outputs["o"]] = content
    assert course.run().rows["a"].status is NodeStatus.SUCCEEDED


# Answers and events nobody waits for.


def test_answers_that_come_twice_or_late_change_nothing() -> None:
    plan = plan_of(step("a", outputs=("o",)), step("b"))
    course = Course(plan).begin()
    answer = course.answer_to(course.asked.pop("a"))
    course.tell(answer)
    assert course.tell(answer).nodes == ()
    assert course.tell(Fetched(key="a", contents={})).nodes == ()
    assert course.tell(Fetched(key="nobody", error="x")).nodes == ()
    course.end("a")
    assert course.end("a", status=JobStatus.FAILED).nodes == ()
    assert course.end("nobody").nodes == ()


def test_a_note_is_shown_while_a_step_waits_and_gone_when_it_starts() -> None:
    course = Course(plan_of(step("a", outputs=("o",)))).begin()
    course.tell(Noted(key="a", message="waits for step a of run-000000"))
    assert course.rows["a"].message == "waits for step a of run-000000"
    course.answer()
    assert (course.rows["a"].status, course.rows["a"].message) == (NodeStatus.RUNNING, "")
    assert course.tell(Noted(key="a", message="too late")).nodes == ()
    assert course.tell(Noted(key="nobody", message="x")).nodes == ()


def test_beginning_again_asks_again_and_repeats_nothing() -> None:
    plan = plan_of(step("a", outputs=("o",)), step("b"), step("c", "b"))
    course = Course(plan).begin()
    asked = dict(course.asked)
    again = course.tell(Begin())
    assert {question.key: question for question in again.prepare} == asked
    assert (again.nodes, again.submit, again.status) == ((), (), RunStatus.RUNNING)
    after_crash = course.crash()
    assert {question.key: question for question in after_crash.prepare} == asked
    assert (after_crash.nodes, after_crash.submit) == ((), ())
    assert course.progress.running_jobs() == {course.submitted["b"]: "b"}
    assert course.run().status is RunStatus.SUCCEEDED


def test_artifacts_are_recorded_when_read_and_when_made() -> None:
    plan = plan_of(step("up", outputs=("o",)), step("a", "up", inputs={"i": "up.o"}))
    course = Course(plan).begin()
    course.answer()
    assert not course.artifacts
    course.end("up")
    made, read = sorted(course.artifacts, key=lambda event: event.use, reverse=True)
    assert (made.use, made.step, made.name, made.job_id) == ("output", "up", "o", course.submitted["up"])
    assert (read.use, read.step, read.name, read.job_id) == ("input", "a", "i", course.submitted["a"])
    assert made.path == read.path == course.rows["up"].outputs["o"]
    assert (made.run_id, made.fs_id, made.owner) == (FACTS.run_id, FACTS.fs_id, FACTS.owner)
