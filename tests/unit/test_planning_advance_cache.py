"""Results used again, results offered for use, and what happens when neither can be found out."""

from __future__ import annotations

from paddleflow.domain.jobs import JobStatus
from paddleflow.domain.runs import NodeStatus, RunStatus
from paddleflow.planning.moves import Prepare
from paddleflow.planning.plan import CachePolicy
from tests.unit.run_courses import FACTS, Course, entry, plan_of, step

CACHED = CachePolicy(enable=True, expires_after_s=60)


def test_a_result_that_is_there_ends_the_step_without_a_job() -> None:
    plan = plan_of(step("a", cache=CACHED, outputs=("o",)), step("b", "a", inputs={"i": "a.o"}), parallelism=1)
    course = Course(plan, hits={"a": entry(o=".pipeline/run-000000/demo/a-0-x/o")}).begin()
    course.answer()
    row = course.rows["a"]
    assert (row.status, row.message) == (NodeStatus.SUCCEEDED, "the result of run-000000 is used again")
    assert (row.cache_run_id, row.source_run, row.job_id) == ("run-000000", "run-000000", "job-run-000000-x-00000000")
    assert row.id.startswith("job-run-000001-a-"), "it has a name of its own"
    assert row.fingerprint is not None
    assert course.rows["b"].inputs == {"i": ".pipeline/run-000000/demo/a-0-x/o"}
    assert set(course.submitted) == {"b"}
    course.end("b")
    assert course.status is RunStatus.SUCCEEDED
    assert not course.cache, "what was taken from elsewhere is not offered again"


def test_a_miss_runs_and_is_offered_once_it_has_succeeded() -> None:
    course = Course(plan_of(step("a", cache=CACHED, outputs=("o",)))).begin()
    course.answer()
    assert course.rows["a"].fingerprint is not None
    assert not course.cache
    course.end("a")
    offered = course.cache[0]
    assert (offered.id, offered.seq, offered.node, offered.run_id) == ("", 0, "a", FACTS.run_id)
    assert (offered.job_id, offered.expires_after_s) == (course.submitted["a"], 60)
    assert offered.fingerprint == course.rows["a"].fingerprint
    assert offered.outputs == course.rows["a"].outputs
    assert (offered.owner, offered.fs_id, offered.source) == (FACTS.owner, FACTS.fs_id, FACTS.source)


def test_a_failure_is_never_offered() -> None:
    course = Course(plan_of(step("a", cache=CACHED))).begin()
    course.answer()
    course.end("a", status=JobStatus.FAILED)
    assert not course.cache


def test_a_step_that_cannot_be_prepared_fails() -> None:
    course = Course(plan_of(step("a", cache=CACHED), step("b", "a")), broken={"a": "path [x] in fs_scope is gone"})
    course.begin().answer()
    assert course.rows["a"].status is NodeStatus.FAILED
    assert course.rows["a"].message == "path [x] in fs_scope is gone"
    assert course.status is RunStatus.FAILED


def test_only_what_has_artifacts_or_a_cache_is_prepared() -> None:
    plan = plan_of(step("plain"), step("makes", outputs=("o",)), step("cached", cache=CACHED))
    course = Course(plan).begin()
    assert course.running() == ["plain"]
    makes, cached = course.asked["makes"], course.asked["cached"]
    assert isinstance(makes, Prepare)
    assert isinstance(cached, Prepare)
    assert makes.identity is None
    assert len(makes.outputs) == 1
    assert cached.identity is not None
    assert cached.outputs == ()
