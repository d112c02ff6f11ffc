"""Steps as jobs: environment, scheduling knobs, mounts, policies, Ray."""

from __future__ import annotations

import re
from typing import Any

import pytest

from paddleflow import frameworks
from paddleflow.domain.commands import SubmitJob
from paddleflow.domain.ids import RunId
from paddleflow.domain.jobs import Framework, FsRef, JobKind, RunPolicy
from paddleflow.domain.names import check_job_id
from paddleflow.domain.runs import NodeStatus, RunStatus
from paddleflow.planning.plan import LoopItems, Mount, Plan, Retry
from paddleflow.planning.render import job_id_of
from tests.unit.run_courses import Course, plan_of, step

RAY = {"PF_JOB_TYPE": "distributed", "PF_JOB_FRAMEWORK": "ray", "RAY_JOB_WORKER_REPLICAS": "2"}


def submitted(plan: Plan, key: str = "a") -> SubmitJob:
    course = Course(plan).begin()
    move = course.last
    while key not in dict(move.submit):
        move = course.tell(course.answer_to(course.asked.pop(key)))
    return dict(move.submit)[key]


def job(**more: Any) -> SubmitJob:
    return submitted(plan_of(step("a", **more)))


def test_a_plain_step() -> None:
    asked = job(command="echo hi")
    member = asked.spec.members[0]
    assert asked.spec.kind is JobKind.SINGLE
    assert member.command == "echo hi"
    assert member.fs == FsRef(name="data", mount_path="/mnt/data")
    assert asked.name == "run-000001-a"
    assert re.fullmatch(r"job-run-000001-a-[0-9a-f]{8}", asked.id)
    assert (asked.queue, asked.priority, member.flavour.name) == ("", "", "")
    assert member.env == {
        "PF_RUN_ID": "run-000001",
        "PF_STEP_NAME": "a",
        "PF_USER_NAME": "alice",
        "PF_LOOP_ARGUMENT": "",
    }
    assert asked.spec.policy == RunPolicy()


def test_the_scheduling_knobs_are_environment() -> None:
    asked = job(
        env={"PF_JOB_QUEUE_NAME": "big", "PF_JOB_PRIORITY": "HIGH", "PF_JOB_FLAVOUR": "gpu", "PF_JOB_TYPE": "vcjob"}
    )
    assert (asked.queue, asked.priority) == ("big", "HIGH")
    assert asked.spec.members[0].flavour.name == "gpu"
    assert asked.spec.kind is JobKind.SINGLE
    assert asked.spec.members[0].env["PF_JOB_QUEUE_NAME"] == "big"


def test_image_mounts_retry_and_timeout() -> None:
    plan = plan_of(
        step("a", docker_env="own:1", mounts=(Mount(name="x", sub_path="s", read_only=True),), timeout_s=60.0),
        step("b", retry=Retry(times=3, backoff_s=2.0)),
        docker_env="all:1",
    )
    first, second = submitted(plan, "a").spec, submitted(plan, "b").spec
    assert first.members[0].image == "own:1"
    assert first.members[0].extra_fs == (FsRef(name="x", sub_path="s", read_only=True),)
    assert first.policy == RunPolicy(deadline_s=60.0)
    assert second.members[0].image == "all:1"
    assert second.policy == RunPolicy(retries=3, backoff_s=2.0)


def test_the_environment_of_a_step_with_artifacts_in_a_loop() -> None:
    plan = plan_of(
        step("up", outputs=("data",)),
        step(
            "a",
            "up",
            inputs={"data": "up.data"},
            outputs=("model",),
            parameters={"lr": 0.00001},
            env={"RATE": "{{lr}}", "PF_STEP_NAME": "mine", "ITEM": "{{ PF_LOOP_ARGUMENT }}"},
            command="train {{data}} {{ model }} {{lr}} {{nobody}}",
            loop=LoopItems(items=("x", [1, 2])),
        ),
    )
    course = Course(plan).run()
    row = course.rows["a[1]"]
    inside = "/mnt/data/.pipeline/run-000001/demo"
    data, model = row.env["PF_INPUT_ARTIFACT_DATA"], row.env["PF_OUTPUT_ARTIFACT_MODEL"]
    assert re.fullmatch(rf"{inside}/up-0-[0-9a-f]{{32}}/data", data)
    assert re.fullmatch(rf"{inside}/a-1-[0-9a-f]{{32}}/model", model)
    assert row.command == f"train {data} {model} 0.00001 {{{{nobody}}}}"
    assert (row.env["RATE"], row.env["PF_STEP_NAME"]) == ("0.00001", "a")
    assert (row.env["ITEM"], row.env["PF_LOOP_ARGUMENT"]) == ("[1 2]", "[1 2]")


def test_a_value_that_looks_like_a_template_is_not_looked_at_again() -> None:
    asked = job(command="echo {{a}} {{b}}", parameters={"a": "{{b}}", "b": "{{PF_RUN_ID}}"}, env={"E": "{{a}}"})
    # The parameter b speaks of the run; a speaks of nothing a parameter may speak of, and stays.
    assert asked.spec.members[0].command == "echo {{b}} run-000001"
    assert asked.spec.members[0].env["E"] == "{{b}}"


def test_a_ray_step() -> None:
    asked = job(
        command="unused",
        docker_env="ray:2",
        env={
            **RAY,
            "PF_JOB_FLAVOUR": "small",
            "RAY_JOB_ENTRY_POINT": "python train.py",
            "RAY_JOB_HEADER_FLAVOUR": "head",
            "RAY_JOB_HEADER_START_PARAMS_NUM_CPUS": "0",
            "RAY_JOB_HEADER_PRIORITY": "HIGH",
            "RAY_JOB_WORKER_IMAGE": "ray:worker",
            "RAY_JOB_WORKER_START_PARAMS_OBJECT_STORE_MEMORY": "100000000",
            "RAY_JOB_WORKER_GROUP_NAME": "crew",
        },
    )
    assert (asked.spec.kind, asked.spec.framework, asked.priority) == (JobKind.DISTRIBUTED, Framework.RAY, "HIGH")
    master, worker = asked.spec.members
    assert (master.role, master.command, master.flavour.name) == ("master", "python train.py", "head")
    assert (master.image, master.args) == ("ray:2", ("num-cpus: 0",))
    assert (worker.role, worker.replicas, worker.command, worker.name) == ("worker", 2, "", "crew")
    assert (worker.flavour.name, worker.image) == ("small", "ray:worker")
    assert worker.args == ("object-store-memory: 100000000",)
    frameworks.check(asked.spec)


def test_the_command_is_the_entry_point_of_a_ray_step_without_one() -> None:
    assert job(command="python go.py", env=RAY).spec.members[0].command == "python go.py"


@pytest.mark.parametrize(
    ("env", "why"),
    [
        ({"PF_JOB_TYPE": "spark"}, "PF_JOB_TYPE[spark] of step[a] is not supported, use single or distributed"),
        ({"PF_JOB_TYPE": "distributed"}, "PF_JOB_FRAMEWORK[] of step[a] is not supported"),
        ({**RAY, "PF_JOB_FRAMEWORK": "paddle"}, "PF_JOB_FRAMEWORK[paddle] of step[a] is not supported"),
        ({**RAY, "RAY_JOB_WORKER_REPLICAS": ""}, "RAY_JOB_WORKER_REPLICAS[] of step[a] must be a number above zero"),
        ({**RAY, "RAY_JOB_WORKER_REPLICAS": "0"}, "must be a number above zero"),
        ({**RAY, "RAY_JOB_WORKER_REPLICAS": "two"}, "must be a number above zero"),
    ],
)
def test_what_cannot_be_fails_the_step(env: dict[str, str], why: str) -> None:
    course = Course(plan_of(step("a", env=env))).begin()
    assert course.rows["a"].status is NodeStatus.FAILED
    assert why in course.rows["a"].message
    assert course.rows["a"].job_id is None
    assert course.status is RunStatus.FAILED
    assert not course.submitted


def test_job_ids_are_legal_short_and_never_used_twice() -> None:
    run = RunId("run-000001")
    plain = job_id_of(run, "Train", "sub.Train", 0, lambda _: False)
    assert plain == job_id_of(run, "Train", "sub.Train", 0, lambda _: False)
    assert re.fullmatch(r"job-run-000001-train-[0-9a-f]{8}", plain)
    bumped = job_id_of(run, "Train", "sub.Train", 0, {plain}.__contains__)
    assert bumped != plain
    assert bumped == job_id_of(run, "Train", "sub.Train", 0, {plain}.__contains__)
    long = job_id_of(RunId("run-123456789012345"), "x" * 30, "x", 99_999, lambda _: False)
    assert len(long) <= 63
    assert "-99999-" in long
    check_job_id(long)
