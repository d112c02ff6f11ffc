"""How runs end: failures and both strategies, stops, the post-process, restarts, size."""

from __future__ import annotations

from dataclasses import replace

import pytest

from paddleflow.domain.jobs import JobStatus
from paddleflow.domain.runs import NodeStatus, RunStatus, Stop
from paddleflow.planning.moves import Begin, JobEnded, StopAsked
from paddleflow.planning.plan import LoopArtifact, LoopItems
from tests.unit.run_courses import NOON, Course, dag, plan_of, step

TWO = LoopItems(items=("x", "y"))
FAILED = JobStatus.FAILED


def test_fail_fast_stops_everything_in_the_whole_run() -> None:
    plan = plan_of(
        step("bad"),
        step("after", "bad"),
        dag("d", step("busy"), step("later", "busy")),
        step("late", "d", loop=TWO),
        dag("unopened", step("x"), deps=("late",)),
    )
    course = Course(plan).begin()
    move = course.end("bad", status=FAILED, message="exit code 1")
    assert move.stop == (course.submitted["d.busy"],)
    assert course.statuses() == {
        "bad": "failed",
        "after": "cancelled",
        "d": "running",
        "d.busy": "terminating",
        "d.later": "cancelled",
        "late": "cancelled",
        "unopened": "cancelled",
    }
    assert course.rows["bad"].message == "exit code 1"
    assert course.rows["late"].message == "not started: bad failed"
    assert course.rows["d.busy"].message == "stopped: bad failed"
    course.end("d.busy", status=JobStatus.TERMINATED)
    assert course.rows["d.busy"].status is NodeStatus.TERMINATED
    assert course.rows["d"].status is NodeStatus.TERMINATED
    assert course.status is RunStatus.FAILED
    assert course.message == "update status to failed because some step or dag run failed: entry_points.bad"


def test_a_step_that_ends_well_although_it_was_told_to_stop_has_succeeded() -> None:
    course = Course(plan_of(step("bad"), step("busy"), step("after", "busy"))).begin()
    course.end("bad", status=FAILED)
    course.end("busy")
    assert course.statuses() == {"bad": "failed", "busy": "succeeded", "after": "cancelled"}


def test_continue_cancels_only_what_depends_on_the_failure_within_its_dag() -> None:
    plan = plan_of(
        dag("d", step("bad"), step("after", "bad"), step("later", "after"), step("other"), step("more", "other")),
        step("behind", "d"),
        step("aside"),
        step("beside", "aside"),
        strategy="continue",
    )
    course = Course(plan).begin()
    move = course.end("d.bad", status=FAILED)
    assert move.stop == ()
    assert course.of_status(NodeStatus.CANCELLED) == {"d.after", "d.later"}
    assert "behind" not in course.rows, "the dag has not ended yet"
    course.run()
    assert course.of_status(NodeStatus.FAILED) == {"d.bad", "d"}
    assert course.of_status(NodeStatus.CANCELLED) == {"d.after", "d.later", "behind"}
    assert course.of_status(NodeStatus.SUCCEEDED) == {"d.other", "d.more", "aside", "beside"}
    assert course.rows["d"].message.endswith("some step or dag run failed: d.bad")
    assert course.rows["behind"].message == "not started: d failed"
    assert course.status is RunStatus.FAILED


def test_the_other_items_of_a_loop_go_on_under_continue() -> None:
    plan = plan_of(step("a", loop=LoopItems(items=(1, 2, 3))), step("b", "a"), strategy="continue", parallelism=1)
    course = Course(plan).begin()
    course.end("a[0]", status=FAILED)
    assert course.run().statuses() == {"a[0]": "failed", "a[1]": "succeeded", "a[2]": "succeeded", "b": "cancelled"}


def test_every_failure_is_named_up_to_ten() -> None:
    plan = plan_of(*(step(f"s{number}") for number in range(12)), strategy="continue", parallelism=20)
    course = Course(plan).begin()
    course.end(*course.running(), status=FAILED)
    assert course.message.endswith("entry_points.s8, entry_points.s9 and 2 more")


@pytest.mark.parametrize("status", [JobStatus.TERMINATED, JobStatus.CANCELLED, JobStatus.PREEMPTED, JobStatus.SKIPPED])
def test_a_job_stopped_from_outside_is_a_failure(status: JobStatus) -> None:
    course = Course(plan_of(step("a"))).begin()
    course.end("a", status=status, message="by root")
    assert course.rows["a"].status is NodeStatus.FAILED
    assert course.rows["a"].message == f"its job was stopped from outside ({status}): by root"
    assert course.status is RunStatus.FAILED


def test_a_job_that_is_refused_fails_its_step() -> None:
    course = Course(plan_of(step("a"), step("b", "a"))).begin()
    course.end("a", status=FAILED, message="queue[x] does not exist")
    assert course.rows["a"].message == "queue[x] does not exist"
    assert course.status is RunStatus.FAILED


def test_what_starts_and_fails_in_the_same_moment_leaves_no_job_behind() -> None:
    """The first step is about to be submitted when the second turns out to be impossible."""
    plan = plan_of(step("good"), step("bad", env={"PF_JOB_TYPE": "nonsense"}))
    course = Course(plan).begin()
    assert course.statuses() == {"good": "cancelled", "bad": "failed"}
    assert (course.last.submit, course.last.stop, course.last.artifacts) == ((), (), ())
    assert course.rows["good"].job_id is None
    assert course.status is RunStatus.FAILED


def test_nothing_is_asked_about_what_was_cancelled_in_the_same_moment() -> None:
    plan = plan_of(
        step("up", outputs=("o",)),
        step("looped", "up", inputs={"i": "up.o"}, loop=LoopArtifact(name="i")),
        step("cached", "up", outputs=("o",)),
        step("bad", "up", env={"PF_JOB_TYPE": "nonsense"}),
    )
    course = Course(plan).begin()
    course.answer()
    move = course.end("up")
    assert (move.fetch, move.prepare) == ((), ())
    assert course.statuses() == {"up": "succeeded", "looped": "cancelled", "cached": "cancelled", "bad": "failed"}


# Stops.


def test_a_stop_stops_what_runs_and_cancels_the_rest_and_the_post_process_still_runs() -> None:
    plan = plan_of(
        step("a"), step("b", outputs=("o",)), step("c", "a"), dag("d", step("x"), deps=("c",)), post=step("bye")
    )
    course = Course(plan).begin()
    move = course.tell(StopAsked())
    assert course.status is RunStatus.TERMINATING
    assert move.stop == (course.submitted["a"],)
    assert course.statuses() == {"a": "terminating", "b": "cancelled", "c": "cancelled", "d": "cancelled"}
    course.answer()
    assert course.rows["b"].status is NodeStatus.CANCELLED, "the answer comes too late"
    course.end("a", status=JobStatus.TERMINATED)
    assert course.running() == ["post_process.bye"]
    course.end("post_process.bye")
    assert (course.status, course.message) == (RunStatus.TERMINATED, "the run was stopped")


def test_a_forced_stop_does_not_start_the_post_process() -> None:
    course = Course(plan_of(step("a"), post=step("bye"))).begin()
    course.tell(StopAsked(force=True))
    assert course.statuses() == {"a": "terminating", "post_process.bye": "cancelled"}
    course.end("a", status=JobStatus.TERMINATED)
    assert course.status is RunStatus.TERMINATED


def test_a_forced_stop_ends_the_post_process_that_a_gentle_one_leaves_alone() -> None:
    course = Course(plan_of(step("a"), post=step("bye"))).begin()
    course.end("a")
    assert course.tell(StopAsked()).stop == ()
    assert course.rows["post_process.bye"].status is NodeStatus.RUNNING
    assert course.tell(StopAsked(force=True)).stop == (course.submitted["post_process.bye"],)
    course.end("post_process.bye", status=JobStatus.TERMINATED)
    assert course.rows["post_process.bye"].status is NodeStatus.TERMINATED
    assert course.status is RunStatus.TERMINATED


def test_a_stop_that_comes_when_all_has_gone_well_changes_nothing() -> None:
    course = Course(plan_of(step("a"), post=step("bye"))).begin()
    course.end("a")
    course.tell(StopAsked())
    course.end("post_process.bye")
    assert course.status is RunStatus.SUCCEEDED


def test_a_failure_stays_a_failure_when_the_run_is_stopped() -> None:
    course = Course(plan_of(step("a"), step("b"), strategy="continue")).begin()
    course.end("a", status=FAILED)
    course.tell(StopAsked())
    course.end("b", status=JobStatus.TERMINATED)
    assert course.status is RunStatus.FAILED


def test_a_restart_does_not_forget_a_stop() -> None:
    course = Course(plan_of(step("a"), step("b", "a"), post=step("bye"))).begin()
    course.stop = Stop.GENTLE  # stored, and then the server died
    move = course.crash()
    assert move.stop == (course.submitted["a"],)
    assert course.status is RunStatus.TERMINATING
    assert course.statuses() == {"a": "terminating", "b": "cancelled"}
    again = course.crash()
    assert again.stop == (course.submitted["a"],), "told again: nobody knows whether it was heard"
    course.end("a", status=JobStatus.TERMINATED)
    course.crash()
    assert course.running() == ["post_process.bye"]
    course.end("post_process.bye")
    assert course.status is RunStatus.TERMINATED


def test_a_stop_before_anything_began() -> None:
    course = Course(plan_of(step("a"), dag("d", step("x"))), stop=Stop.FORCE).begin()
    assert course.statuses() == {"a": "cancelled", "d": "cancelled"}
    assert course.status is RunStatus.TERMINATED


def test_a_job_that_ended_before_anybody_looked_at_the_stop_was_stopped_by_it() -> None:
    course = Course(plan_of(step("a"), post=step("bye"))).begin()
    course.stop = Stop.GENTLE
    course.progress = course._read()
    course.end("a", status=JobStatus.TERMINATED)
    assert course.rows["a"].status is NodeStatus.TERMINATED
    assert course.running() == ["post_process.bye"]
    course.end("post_process.bye", status=JobStatus.TERMINATED)
    assert course.rows["post_process.bye"].status is NodeStatus.FAILED, "a gentle stop does not reach it"


# The post-process.


def test_the_post_process_runs_after_everything_whatever_came_of_it() -> None:
    course = Course(plan_of(step("a"), step("b"), post=step("bye"))).begin()
    course.end("a", status=FAILED)
    assert "post_process.bye" not in course.rows
    course.end("b", status=JobStatus.TERMINATED)
    assert course.running() == ["post_process.bye"]
    row = course.rows["post_process.bye"]
    assert (row.node, row.parent, row.env["PF_STEP_NAME"]) == ("post_process.bye", "", "bye")
    course.end("post_process.bye")
    assert course.status is RunStatus.FAILED
    assert course.message.endswith(": entry_points.a")


def test_a_failing_post_process_fails_the_run() -> None:
    course = Course(plan_of(step("a"), post=step("bye"))).begin()
    course.end("a")
    course.end("post_process.bye", status=FAILED)
    assert course.status is RunStatus.FAILED
    assert course.message.endswith(": post_process.bye")


def test_the_artifacts_of_a_post_process_have_a_place_of_their_own() -> None:
    course = Course(plan_of(step("a"), post=step("bye", outputs=("o",)))).begin()
    course.end("a")
    assert course.asked
    assert course.run().status is RunStatus.SUCCEEDED
    assert "/demo/bye-0-" in course.rows["post_process.bye"].outputs["o"]


# Restarts.


def test_a_refusal_that_was_stored_before_its_consequences_is_caught_up_with() -> None:
    course = Course(plan_of(step("a"), step("b"), step("c", "a"))).begin()
    course.rows["a"] = replace(course.rows["a"], status=NodeStatus.FAILED, job_id=None, finished_at=NOON)
    move = course.crash()
    assert move.stop == (course.submitted["b"],)
    assert course.statuses() == {"a": "failed", "b": "terminating", "c": "cancelled"}


def test_the_items_of_a_loop_keep_their_order_across_a_restart() -> None:
    plan = plan_of(
        step("a", outputs=("o",), loop=LoopItems(items=tuple(range(12)))), step("b", "a", inputs={"i": "a.o"})
    )
    course = Course(plan, rows={}).begin()
    course.answer()
    course.end(*course.running())
    course.rows = dict(sorted(course.rows.items()))
    course.crash()
    course.answer()
    course.end(*course.running())
    assert course.rows["b"].inputs["i"] == ",".join(course.rows[f"a[{number}]"].outputs["o"] for number in range(12))


def test_the_ends_of_jobs_that_came_meanwhile_are_told_with_the_beginning() -> None:
    course = Course(plan_of(step("a"), step("b", "a"), step("c"))).begin()
    course.progress = course._read()
    ends = [JobEnded(key=key, status=JobStatus.SUCCEEDED, at=NOON) for key in ("a", "c")]
    course.tell(Begin(), *ends)
    assert course.running() == ["b"]


def test_nothing_moves_after_the_end() -> None:
    course = Course(plan_of(step("a"))).begin()
    course.progress.is_fresh = False
    move = course.tell(JobEnded(key="a", status=JobStatus.SUCCEEDED, at=NOON), StopAsked(force=True))
    assert move.status is RunStatus.SUCCEEDED


# Size.


@pytest.mark.parametrize("strategy", ["fail_fast", "continue"])
def test_a_chain_of_thousands_is_cancelled_in_one_advance(strategy: str) -> None:
    count = 5_000
    chain = (step(f"s{number}", f"s{number - 1}") for number in range(1, count))
    course = Course(plan_of(step("s0"), *chain, strategy=strategy)).begin()
    move = course.end("s0", status=FAILED)
    assert len(move.nodes) == count
    assert course.status is RunStatus.FAILED


def test_a_chain_of_thousands_is_skipped_in_one_advance() -> None:
    count = 5_000
    chain = (step(f"s{number}", f"s{number - 1}", condition="1 == 2") for number in range(1, count))
    course = Course(plan_of(step("s0"), *chain)).begin()
    move = course.end("s0")
    assert len(move.nodes) == count
    assert course.status is RunStatus.SUCCEEDED


def test_the_end_of_one_item_of_many_touches_only_what_changed() -> None:
    plan = plan_of(step("a", loop=LoopItems(items=tuple(range(10_000)))), step("b", "a"), parallelism=3)
    course = Course(plan).begin()
    assert len(course.last.nodes) == 10_000
    for _ in range(5):
        move = course.end(course.running()[1])
        assert len(move.nodes) == 2, "the one that ended, and the one that takes its slot"
    stopped = course.tell(StopAsked())
    assert len(stopped.stop) == 3
    assert len(course.of_status(NodeStatus.CANCELLED)) == 10_000 - 5 - 3 + 1
