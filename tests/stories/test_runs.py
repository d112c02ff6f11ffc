"""Stories of pipelines, told on the whole platform in memory. Steps end when the story says so; nothing waits."""

from __future__ import annotations

import json

import pytest

from paddleflow.domain.commands import (
    CreateFilesystem,
    DeleteFilesystem,
    DeleteJob,
    DeleteRun,
    RetryRun,
    StopJob,
    StopRun,
    UpdateFilesystem,
)
from paddleflow.domain.errors import Conflict, Denied, InUse, Invalid, NotFound
from paddleflow.domain.filesystems import Filesystem
from paddleflow.domain.ids import JobId, PipelineId, RunId, UserName, filesystem_id
from paddleflow.domain.jobs import JobStatus
from paddleflow.domain.queries import ArtifactFilter, CacheFilter, PageRequest, RunFilter
from paddleflow.domain.runs import RunStatus
from paddleflow.engine.pipelines import PipelineRequest, RunRequest
from paddleflow.planning.source import Limits
from paddleflow.testing.builders import a_node, resources
from paddleflow.testing.platform import ROOT_ACTOR, InMemoryPlatform

EVERYTHING = PageRequest(limit=1000)

CHAIN = """
name: chain
entry_points:
  first: {command: "echo one"}
  second: {command: "echo two", deps: first}
  third: {command: "echo three", deps: second}
"""


@pytest.fixture
def platform() -> InMemoryPlatform:
    return a_platform()


def a_platform(limits: Limits | None = None) -> InMemoryPlatform:
    platform = InMemoryPlatform([a_node("node-1", resources("64", "256Gi", gpus=2))], limits=limits)
    platform.ask(CreateFilesystem(name="main", url="local:///data/main"))
    return platform


def main_fs(platform: InMemoryPlatform) -> Filesystem:
    with platform.store.read() as view:
        found = view.filesystems.find(filesystem_id(UserName("root"), "main"))
    assert found is not None
    return found


def statuses(platform: InMemoryPlatform, run_id: RunId) -> dict[str, str]:
    return {node.key: node.status for node in platform.run(run_id).nodes}


def status(platform: InMemoryPlatform, run_id: RunId) -> RunStatus:
    return platform.run(run_id).run.status


def job_of(platform: InMemoryPlatform, run_id: RunId, key: str) -> JobId:
    job_id = platform.node(run_id, key).job_id
    assert job_id is not None
    return job_id


def write_outputs(platform: InMemoryPlatform, run_id: RunId, key: str, content: str) -> None:
    """What the step's process would have written."""
    for path in platform.node(run_id, key).outputs.values():
        platform.files.write(main_fs(platform), path, content.encode())


def test_steps_run_one_after_the_other_and_the_run_succeeds(platform: InMemoryPlatform) -> None:
    run = platform.start_run(CHAIN)
    assert run == "run-000001"
    assert statuses(platform, run) == {"first": "running"}
    assert status(platform, run) is RunStatus.RUNNING
    platform.end_step(run, "first")
    assert statuses(platform, run) == {"first": "succeeded", "second": "running"}
    platform.end_step(run, "second")
    platform.end_step(run, "third")
    ended = platform.run(run).run
    assert (ended.status, ended.message) == (RunStatus.SUCCEEDED, "Run successfully")
    assert ended.finished_at is not None


def test_a_step_is_a_job_of_the_runs_owner(platform: InMemoryPlatform) -> None:
    actor = platform.a_user("alice1", "default-queue")
    run = platform.start_run(CHAIN, actor=actor)
    job = platform.job(job_of(platform, run, "first"))
    assert job.owner == "alice1"
    assert job.name == f"{run}-first"
    assert job.id.startswith(f"job-{run}-first-")
    env = job.spec.members[0].env
    assert (env["PF_RUN_ID"], env["PF_STEP_NAME"], env["PF_USER_NAME"]) == (run, "first", "alice1")


def test_a_restart_at_any_point_neither_loses_nor_repeats_a_step(platform: InMemoryPlatform) -> None:
    run = platform.start_run(CHAIN)
    jobs = []
    for key in ("first", "second", "third"):
        platform.restart()
        jobs.append(job_of(platform, run, key))
        platform.runtime.finish(platform.job(jobs[-1]).placements[0].task_id, 0)
        platform.restart()
    assert status(platform, run) is RunStatus.SUCCEEDED
    assert [job_of(platform, run, key) for key in ("first", "second", "third")] == jobs
    with platform.store.read() as view:
        assert len(view.jobs.in_status(frozenset(JobStatus))) == 3


def test_one_failure_ends_the_run_fast(platform: InMemoryPlatform) -> None:
    run = platform.start_run(
        """
name: wide
entry_points:
  bad: {command: "false"}
  other: {command: "sleep 100"}
  after: {command: "true", deps: bad}
"""
    )
    platform.end_step(run, "bad", exit_code=3)
    assert statuses(platform, run) == {"bad": "failed", "other": "terminated", "after": "cancelled"}
    ended = platform.run(run).run
    assert ended.status is RunStatus.FAILED
    assert "entry_points.bad" in ended.message
    assert platform.job(job_of(platform, run, "other")).status is JobStatus.TERMINATED


def test_with_continue_other_branches_go_on(platform: InMemoryPlatform) -> None:
    run = platform.start_run(
        """
name: wide
failure_options: {strategy: continue}
entry_points:
  bad: {command: "false"}
  other: {command: "true"}
  after: {command: "true", deps: bad}
  more: {command: "true", deps: other}
"""
    )
    platform.end_step(run, "bad", exit_code=1)
    assert status(platform, run) is RunStatus.RUNNING
    platform.end_step(run, "other")
    platform.end_step(run, "more")
    assert statuses(platform, run) == {"bad": "failed", "other": "succeeded", "after": "cancelled", "more": "succeeded"}
    assert status(platform, run) is RunStatus.FAILED


POST = """
name: post
entry_points:
  work: {command: "sleep 100"}
post_process:
  notify: {command: "echo done"}
"""


def test_the_post_process_runs_after_a_stop_but_not_after_a_forced_one(platform: InMemoryPlatform) -> None:
    run = platform.start_run(POST)
    platform.ask(StopRun(id=run))
    platform.settle()
    assert statuses(platform, run) == {"work": "terminated", "post_process.notify": "running"}
    assert status(platform, run) is RunStatus.TERMINATING
    with pytest.raises(Conflict, match="being stopped already"):
        platform.ask(StopRun(id=run))
    platform.end_step(run, "post_process.notify")
    assert status(platform, run) is RunStatus.TERMINATED

    forced = platform.start_run(POST)
    platform.ask(StopRun(id=forced, force=True))
    platform.settle()
    assert status(platform, forced) is RunStatus.TERMINATED
    assert statuses(platform, forced)["work"] == "terminated"
    assert statuses(platform, forced).get("post_process.notify", "cancelled") == "cancelled"


def test_a_stop_outlives_a_restart() -> None:
    platform = InMemoryPlatform([a_node("node-1", resources("64", "256Gi"))], obeys_stop=False)
    run = platform.start_run(CHAIN)
    platform.intake.submit(StopRun(id=run), ROOT_ACTOR)  # the server dies before anybody reacts
    platform.restart()
    assert statuses(platform, run)["first"] == "terminating"
    platform.end_step(run, "first", exit_code=143)
    assert status(platform, run) is RunStatus.TERMINATED
    assert statuses(platform, run)["second"] == "cancelled"


def test_a_step_stopped_from_outside_fails_the_run(platform: InMemoryPlatform) -> None:
    run = platform.start_run(CHAIN)
    platform.ask(StopJob(id=job_of(platform, run, "first")))
    platform.settle()
    assert status(platform, run) is RunStatus.FAILED


def test_retry_redoes_what_failed_and_keeps_what_was_done(platform: InMemoryPlatform) -> None:
    run = platform.start_run(CHAIN)
    platform.end_step(run, "first")
    kept = job_of(platform, run, "first")
    platform.end_step(run, "second", exit_code=1)
    again = RunId(str(platform.ask(RetryRun(id=run))["runID"]))
    platform.settle()
    assert again == "run-000002"
    assert statuses(platform, again) == {"first": "succeeded", "second": "running"}
    assert job_of(platform, again, "first") == kept
    platform.end_step(again, "second")
    platform.end_step(again, "third")
    assert status(platform, again) is RunStatus.SUCCEEDED
    with pytest.raises(Conflict, match="only a failed or terminated run"):
        platform.ask(RetryRun(id=again))


def test_retry_redoes_only_the_failed_items_of_loops_inside_dags(platform: InMemoryPlatform) -> None:
    run = platform.start_run(
        """
name: nested
failure_options: {strategy: continue}
entry_points:
  outer:
    loop_argument: [1, 2]
    entry_points:
      inner: {command: "echo {{PF_LOOP_ARGUMENT}}", loop_argument: [a, b]}
      after: {command: "true", deps: inner}
  last: {command: "true", deps: outer}
post_process:
  tell: {command: "true"}
"""
    )
    for key in ("outer[0].inner[0]", "outer[0].inner[1]", "outer[1].inner[0]"):
        platform.end_step(run, key)
    platform.end_step(run, "outer[1].inner[1]", exit_code=1)
    platform.end_step(run, "outer[0].after")
    platform.end_step(run, "post_process.tell")
    assert status(platform, run) is RunStatus.FAILED
    again = RunId(str(platform.ask(RetryRun(id=run))["runID"]))
    platform.settle()
    running = [key for key, state in statuses(platform, again).items() if state == "running"]
    assert running == ["outer[1]", "outer[1].inner[1]"]
    platform.end_step(again, "outer[1].inner[1]")
    platform.end_step(again, "outer[1].after")
    platform.end_step(again, "last")
    platform.end_step(again, "post_process.tell")
    assert status(platform, again) is RunStatus.SUCCEEDED


def test_a_refused_job_fails_its_step_with_the_reason(platform: InMemoryPlatform) -> None:
    run = platform.start_run('{name: q, entry_points: {a: {command: "true", env: {PF_JOB_QUEUE_NAME: nowhere}}}}')
    assert statuses(platform, run) == {"a": "failed"}
    assert "queue[nowhere] does not exist" in platform.node(run, "a").message
    assert status(platform, run) is RunStatus.FAILED


ARTIFACTS = """
name: handover
entry_points:
  make:
    command: "echo 3 > {{data}}"
    artifacts: {output: [data]}
  use:
    command: "cat {{data}}"
    deps: make
    artifacts: {input: {data: "{{make.data}}"}}
fs_options: {main_fs: {name: main}}
"""


def test_artifacts_are_handed_over_listed_and_traced(platform: InMemoryPlatform) -> None:
    run = platform.start_run(ARTIFACTS)
    path = platform.node(run, "make").outputs["data"]
    assert path.startswith(f".pipeline/{run}/handover/make-0-")
    command = platform.job(job_of(platform, run, "make")).spec.members[0].command
    assert f"/home/paddleflow/storage/mnt/fs-root-main/{path}" in command
    write_outputs(platform, run, "make", "3")
    platform.end_step(run, "make")
    assert platform.node(run, "use").inputs == {"data": path}
    env = platform.job(job_of(platform, run, "use")).spec.members[0].env
    assert env["PF_INPUT_ARTIFACT_DATA"].endswith(path)
    platform.end_step(run, "use")
    events = platform.runs.artifacts(ROOT_ACTOR, ArtifactFilter(), EVERYTHING).rows
    assert [(event.step, event.use, event.name, event.path) for event in events] == [
        ("make", "output", "data", path),
        ("use", "input", "data", path),
    ]
    lineage = platform.runs.lineage(ROOT_ACTOR, "", "main", path)
    assert [event.step for event in lineage.made_by] == ["make"]
    assert [event.step for event in lineage.read_by] == ["use"]
    download = platform.runs.download(ROOT_ACTOR, run, path)
    assert b"".join(download.chunks) == b"3"
    with pytest.raises(NotFound, match="has no artifact"):
        platform.runs.download(ROOT_ACTOR, run, ".pipeline")


def test_a_loop_over_an_artifact_and_a_condition_on_one(platform: InMemoryPlatform) -> None:
    run = platform.start_run(
        """
name: dynamic
entry_points:
  make:
    command: "echo"
    artifacts: {output: [items]}
  each:
    command: "echo {{PF_LOOP_ARGUMENT}}"
    deps: make
    artifacts: {input: {items: "{{make.items}}"}}
    loop_argument: "{{items}}"
  never:
    command: "true"
    deps: make
    artifacts: {input: {items: "{{make.items}}"}}
    condition: "'{{items}}' == 'no'"
fs_options: {main_fs: {name: main}}
"""
    )
    write_outputs(platform, run, "make", json.dumps(["x", "y"]))
    platform.end_step(run, "make")
    assert statuses(platform, run) == {
        "make": "succeeded",
        "each[0]": "running",
        "each[1]": "running",
        "never": "skipped",
    }
    commands = [platform.job(job_of(platform, run, f"each[{n}]")).spec.members[0].command for n in range(2)]
    assert commands == ["echo x", "echo y"]


def test_an_empty_loop_runs_nothing_and_its_followers_go_on(platform: InMemoryPlatform) -> None:
    run = platform.start_run(
        '{name: e, entry_points: {a: {command: "true", loop_argument: []}, b: {command: "true", deps: a}}}'
    )
    assert statuses(platform, run)["b"] == "running"
    platform.end_step(run, "b")
    assert status(platform, run) is RunStatus.SUCCEEDED


def test_a_loop_over_too_many_items_says_which_setting_limits_it() -> None:
    platform = a_platform(Limits(loop_items=3))
    with pytest.raises(Invalid, match="max_loop_items"):
        platform.start_run('{name: e, entry_points: {a: {command: "true", loop_argument: [1, 2, 3, 4]}}}')
    run = platform.start_run(
        """
name: late
entry_points:
  a:
    command: "true"
    parameters: {n: "[1, 2, 3, 4]"}
    loop_argument: "{{n}}"
"""
    )
    assert status(platform, run) is RunStatus.FAILED
    assert "max_loop_items" in platform.run(run).nodes[0].message


CACHED = """
name: cached
cache: {enable: true}
entry_points:
  make:
    command: "echo {{n}} > {{data}}"
    parameters: {n: 3}
    artifacts: {output: [data]}
  use:
    command: "cat {{data}}"
    deps: make
    artifacts: {input: {data: "{{make.data}}"}}
fs_options: {main_fs: {name: main}}
"""


def done_once(platform: InMemoryPlatform, **request: object) -> RunId:
    run = platform.start_run(CACHED, **request)
    write_outputs(platform, run, "make", "3")
    platform.end_step(run, "make")
    platform.end_step(run, "use")
    assert status(platform, run) is RunStatus.SUCCEEDED
    return run


def test_a_second_run_reuses_everything_and_says_so(platform: InMemoryPlatform) -> None:
    first = done_once(platform)
    second = platform.start_run(CACHED)
    assert status(platform, second) is RunStatus.SUCCEEDED
    node = platform.node(second, "make")
    assert (node.cache_run_id, node.job_id) == (first, job_of(platform, first, "make"))
    assert node.outputs == platform.node(first, "make").outputs
    why = platform.runs.why_cached(ROOT_ACTOR, second, "make")
    assert why.reused and why.compared_with == first
    assert platform.run(first).used_by == (second,)
    with pytest.raises(Conflict, match=second):
        platform.ask(DeleteRun(id=first))


def test_a_changed_parameter_is_named_and_unchanged_inputs_still_hit(platform: InMemoryPlatform) -> None:
    first = done_once(platform)
    second = platform.start_run(CACHED, parameters={"n": 4})
    assert statuses(platform, second) == {"make": "running"}
    why = platform.runs.why_cached(ROOT_ACTOR, second, "make")
    assert not why.reused
    assert why.compared_with == first
    assert [(part.name, part.before, part.after) for part in why.changed if part.name == "parameters.n"] == [
        ("parameters.n", "3", "4")
    ]
    # It wrote the same content, so what follows is the same as before, although the path is another.
    write_outputs(platform, second, "make", "3")
    platform.end_step(second, "make")
    assert platform.node(second, "use").cache_run_id == first
    assert status(platform, second) is RunStatus.SUCCEEDED


def test_changed_content_is_a_miss_even_with_the_same_time_stamp(platform: InMemoryPlatform) -> None:
    done_once(platform)
    third = platform.start_run(CACHED, parameters={"n": 5})
    write_outputs(platform, third, "make", "other")
    platform.end_step(third, "make")
    assert platform.node(third, "use").cache_run_id is None
    why = platform.runs.why_cached(ROOT_ACTOR, third, "use")
    assert [part.name for part in why.changed] == ["inputs.data"]


def test_a_failure_is_never_reused_and_a_missing_file_is_a_miss(platform: InMemoryPlatform) -> None:
    run = platform.start_run(CACHED)
    platform.end_step(run, "make", exit_code=1)
    assert platform.runs.caches(ROOT_ACTOR, CacheFilter(), EVERYTHING).rows == ()
    first = done_once(platform)
    platform.files.remove(main_fs(platform), platform.node(first, "make").outputs["data"])
    again = platform.start_run(CACHED)
    assert platform.node(again, "make").cache_run_id is None
    assert "gone" in platform.runs.why_cached(ROOT_ACTOR, again, "make").sentence


def test_equal_steps_at_the_same_time_compute_once(platform: InMemoryPlatform) -> None:
    first = platform.start_run(CACHED)
    second = platform.start_run(CACHED)
    waiting = platform.node(second, "make")
    assert (waiting.status, waiting.job_id) == ("pending", None)
    assert first in waiting.message
    write_outputs(platform, first, "make", "3")
    platform.end_step(first, "make")
    assert platform.node(second, "make").cache_run_id == first
    platform.end_step(first, "use")
    assert status(platform, second) is RunStatus.SUCCEEDED


def test_when_the_one_that_computes_fails_another_takes_over(platform: InMemoryPlatform) -> None:
    first, second, third = (platform.start_run(CACHED) for _ in range(3))
    platform.end_step(first, "make", exit_code=1)
    working = [run for run in (second, third) if platform.node(run, "make").job_id is not None]
    assert working == [second]
    write_outputs(platform, second, "make", "3")
    platform.end_step(second, "make")
    assert platform.node(third, "make").cache_run_id == second


def test_a_waiting_twin_survives_a_restart(platform: InMemoryPlatform) -> None:
    first, second = (platform.start_run(CACHED) for _ in range(2))
    platform.restart()
    assert platform.node(second, "make").job_id is None
    write_outputs(platform, first, "make", "3")
    platform.end_step(first, "make")
    assert platform.node(second, "make").cache_run_id == first


def test_an_expired_result_is_computed_again(platform: InMemoryPlatform) -> None:
    text = CACHED.replace("{enable: true}", "{enable: true, max_expired_time: 60}")
    first = platform.start_run(text)
    write_outputs(platform, first, "make", "3")
    platform.end_step(first, "make")
    platform.end_step(first, "use")
    platform.pass_time(59)
    assert status(platform, platform.start_run(text)) is RunStatus.SUCCEEDED
    platform.pass_time(3600)
    assert platform.node(platform.start_run(text), "make").cache_run_id is None


def test_fs_scope_content_belongs_to_the_step(platform: InMemoryPlatform) -> None:
    text = """
name: scoped
entry_points:
  train:
    command: "python train.py"
    cache: {enable: true, fs_scope: [{name: main, path: src}]}
fs_options: {main_fs: {name: main}}
"""
    platform.files.write(main_fs(platform), "src/train.py", b"print(1)")
    first = platform.start_run(text)
    platform.end_step(first, "train")
    assert status(platform, platform.start_run(text)) is RunStatus.SUCCEEDED
    platform.files.write(main_fs(platform), "src/train.py", b"print(2)")
    changed = platform.start_run(text)
    assert platform.node(changed, "train").cache_run_id is None
    assert [part.name for part in platform.runs.why_cached(ROOT_ACTOR, changed, "train").changed] == [
        "fs_scope.main:src"
    ]


def test_a_deleted_run_leaves_nothing_behind(platform: InMemoryPlatform) -> None:
    run = done_once(platform)
    job = job_of(platform, run, "make")
    path = platform.node(run, "make").outputs["data"]
    platform.ask(DeleteRun(id=run))
    platform.settle()
    with pytest.raises(NotFound):
        platform.files.entry(main_fs(platform), path)
    with pytest.raises(NotFound):
        platform.files.entry(main_fs(platform), f".pipeline/{run}")
    with platform.store.read() as view:
        assert view.jobs.find(job) is None
        assert view.run_remains.all() == ()
        assert view.artifacts.page(ArtifactFilter(), EVERYTHING).rows == ()
        assert view.cache.page(CacheFilter(), EVERYTHING).rows == ()


def test_artifacts_below_a_sub_path_are_deleted_too(platform: InMemoryPlatform) -> None:
    text = ARTIFACTS.replace("{name: main}", "{name: main, sub_path: team/a}")
    run = platform.start_run(text)
    path = platform.node(run, "make").outputs["data"]
    assert path.startswith(f"team/a/.pipeline/{run}/")
    write_outputs(platform, run, "make", "3")
    platform.end_step(run, "make")
    platform.end_step(run, "use")
    platform.ask(DeleteRun(id=run))
    platform.settle()
    with pytest.raises(NotFound):
        platform.files.entry(main_fs(platform), path)


def test_only_the_owner_sees_stops_retries_and_deletes(platform: InMemoryPlatform) -> None:
    alice, bob = platform.a_user("alice1", "default-queue"), platform.a_user("bobby1", "default-queue")
    run = platform.start_run(CHAIN, actor=alice)
    for command in (StopRun(id=run), RetryRun(id=run), DeleteRun(id=run)):
        with pytest.raises(Denied):
            platform.ask(command, bob)
    with pytest.raises(Denied):
        platform.runs.run(bob, run)
    assert platform.runs.runs(bob, RunFilter(), EVERYTHING).rows == ()
    assert [each.id for each in platform.runs.runs(alice, RunFilter(), EVERYTHING).rows] == [run]
    with pytest.raises(Denied):
        platform.desk.create_run(bob, RunRequest(text=CHAIN, owner="alice1"))


def test_what_a_run_uses_cannot_be_taken_away(platform: InMemoryPlatform) -> None:
    run = platform.start_run(ARTIFACTS)
    with pytest.raises(InUse, match=run):
        platform.ask(DeleteFilesystem(name="main"))
    with pytest.raises(InUse, match=run):
        platform.ask(UpdateFilesystem(name="main", url="local:///data/elsewhere"))
    platform.ask(UpdateFilesystem(name="main", url="local:///data/main", properties={"team": "vision"}))
    with pytest.raises(Conflict, match="stop it first"):
        platform.ask(DeleteRun(id=run))


def test_the_job_of_a_step_is_not_deleted_before_its_run_has_heard(platform: InMemoryPlatform) -> None:
    run = platform.start_run(CHAIN)
    job = job_of(platform, run, "first")
    platform.runtime.finish(platform.job(job).placements[0].task_id, 0)
    platform._observer.observe(0.0)
    with pytest.raises(Conflict, match="has not taken notice"):
        platform.ask(DeleteJob(id=job))
    platform.settle()
    platform.ask(DeleteJob(id=job))


def test_parallelism_limits_the_steps_at_work(platform: InMemoryPlatform) -> None:
    run = platform.start_run(
        '{name: p, parallelism: 2, entry_points: {a: {command: "true", loop_argument: [1, 2, 3, 4, 5]}}}'
    )
    assert list(statuses(platform, run).values()).count("running") == 2
    platform.end_step(run, "a[0]")
    assert statuses(platform, run)["a[2]"] == "running"
    assert list(statuses(platform, run).values()).count("running") == 2


def test_a_step_is_tried_again_after_its_back_off(platform: InMemoryPlatform) -> None:
    run = platform.start_run(
        '{name: r, entry_points: {a: {command: "true", retry: {times: 1, backoff: 5}, timeout: 60}}}'
    )
    job = job_of(platform, run, "a")
    assert platform.job(job).spec.policy.deadline_s == 60
    platform.end_step(run, "a", exit_code=1)
    assert statuses(platform, run) == {"a": "running"}
    platform.pass_time(6)
    platform.end_step(run, "a")
    assert status(platform, run) is RunStatus.SUCCEEDED


def test_checking_tells_every_problem_and_stores_nothing(platform: InMemoryPlatform) -> None:
    text = '{name: bad, entry_points: {a: {command: "{{nope}}", deps: ghost}, b: {command: "{{what}}"}}}'
    checked = platform.desk.check(ROOT_ACTOR, RunRequest(text=text))
    assert checked.plan is None
    assert len(checked.problems) >= 3
    good = platform.desk.check(ROOT_ACTOR, RunRequest(text=CHAIN))
    assert good.problems == ()
    assert good.plan is not None and good.plan.top == ("first", "second", "third")
    assert platform.runs.runs(ROOT_ACTOR, RunFilter(), EVERYTHING).rows == ()


def test_a_pipeline_on_the_filesystem_is_run_by_its_path(platform: InMemoryPlatform) -> None:
    platform.files.write(main_fs(platform), "run.yaml", ARTIFACTS.encode())
    answer = platform.desk.create_run(ROOT_ACTOR, RunRequest(fs_name="main"))
    platform.settle()
    run = platform.run(RunId(str(answer["runID"]))).run
    assert (run.source, run.fs_name, run.text) == ("./run.yaml", "main", ARTIFACTS)
    with pytest.raises(Invalid, match="cannot be read") as refused:
        platform.desk.create_run(ROOT_ACTOR, RunRequest(fs_name="main", yaml_path="../etc/passwd"))
    assert refused.value.code == "ReadYamlFileFailed"
    with pytest.raises(Invalid, match="has no filesystem"):
        platform.start_run(CHAIN, fs_name="nowhere")


def test_a_scope_of_the_whole_filesystem_does_not_see_the_runs_on_it(platform: InMemoryPlatform) -> None:
    text = CACHED.replace("{enable: true}", "{enable: true, fs_scope: [{name: main}]}")
    first = platform.start_run(text)
    write_outputs(platform, first, "make", "3")
    platform.end_step(first, "make")
    platform.end_step(first, "use")
    assert status(platform, platform.start_run(text)) is RunStatus.SUCCEEDED


def test_a_pipeline_may_be_kept_without_naming_its_filesystem(platform: InMemoryPlatform) -> None:
    text = ARTIFACTS.replace("fs_options: {main_fs: {name: main}}", "")
    answer = platform.desk.create_pipeline(ROOT_ACTOR, PipelineRequest(text=text))
    request = RunRequest(pipeline_id=PipelineId(str(answer["pipelineID"])), fs_name="main")
    platform.desk.create_run(ROOT_ACTOR, request)
    with pytest.raises(Invalid, match="no Fs mounted"):
        platform.desk.create_run(ROOT_ACTOR, RunRequest(pipeline_id=PipelineId(str(answer["pipelineID"]))))


def test_whoever_reads_all_pieces_of_a_loop_is_named_by_each(platform: InMemoryPlatform) -> None:
    run = platform.start_run(
        """
name: pieces
entry_points:
  make: {command: "echo > {{data}}", loop_argument: [1, 2], artifacts: {output: [data]}}
  all:
    command: "cat {{data}}"
    deps: make
    artifacts: {input: {data: "{{make.data}}"}}
fs_options: {main_fs: {name: main}}
"""
    )
    for key in ("make[0]", "make[1]"):
        platform.end_step(run, key)
    path = platform.node(run, "make[1]").outputs["data"]
    assert [event.step for event in platform.runs.lineage(ROOT_ACTOR, "", "main", path).read_by] == ["all"]


def test_the_jobs_of_a_large_run_are_cleared_away_some_at_a_time(platform: InMemoryPlatform) -> None:
    run = platform.start_run(f"{{name: many, entry_points: {{a: {{command: x, loop_argument: {list(range(120))}}}}}}}")
    for item in range(120):
        platform.end_step(run, f"a[{item}]")
    platform.ask(DeleteRun(id=run))
    left = []
    for _ in range(3):
        platform.pass_time(1)
        with platform.store.read() as view:
            left.append(len(view.remains.all()))
    assert left == sorted(left, reverse=True)
    assert left[-1] == 0


def test_a_comma_in_a_sub_path_is_no_border_between_artifacts(platform: InMemoryPlatform) -> None:
    run = platform.start_run(ARTIFACTS.replace("{name: main}", '{name: main, sub_path: "a,b"}'))
    write_outputs(platform, run, "make", "3")
    path = platform.node(run, "make").outputs["data"]
    assert b"".join(platform.runs.download(ROOT_ACTOR, run, path).chunks) == b"3"
    platform.files.write(main_fs(platform), "a/other", b"not an artifact")
    with pytest.raises(NotFound, match="has no artifact"):
        platform.runs.download(ROOT_ACTOR, run, "a/other")
