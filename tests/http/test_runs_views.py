"""How the nodes of a run are shown: from rows to views and graph, without a server."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from paddleflow.api.run_views import RunViews, plan_graph
from paddleflow.api.runs import run_answer, run_story
from paddleflow.api.wire import local_time
from paddleflow.domain.ids import DEFAULT_CLUSTER, DEFAULT_QUEUE, JobId, RunId, UserName
from paddleflow.domain.jobs import Job, JobKind, JobSpec, JobStatus
from paddleflow.domain.runs import NO_ITEMS, NodeKind, NodeStatus, Run, RunNode, RunStatus
from paddleflow.planning.plan import CachePolicy, LoopItems, Mount, Plan, PlanNode, Scope

NOW = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
RUN = RunId("run-000007")
OWNER = UserName("alice")

JOB_VIEW = {
    *("jobID", "name", "type", "stepName", "parentDagID", "command", "parameters", "env", "extraFS", "startTime"),
    *("endTime", "status", "deps", "dockerEnv", "artifacts", "cache", "jobMessage", "cacheRunID", "cacheJobID"),
    *("key", "loopItem", "retries"),
}
DAG_VIEW = {
    *("id", "name", "type", "dagName", "parentDagID", "deps", "parameters", "artifacts", "startTime", "endTime"),
    *("status", "message", "entryPoints", "key", "loopItem"),
}


def a_run(status: RunStatus = RunStatus.RUNNING) -> Run:
    return Run(
        id=RUN,
        name="shown",
        owner=OWNER,
        source="x",
        text="name: shown",
        plan="{}",
        status=status,
        created_at=NOW,
        updated_at=NOW,
    )


def a_node(key: str, path: str = "", **more: object) -> RunNode:
    made = RunNode(run_id=RUN, key=key, node=path or key, kind=NodeKind.STEP)
    return replace(made, **more)  # type: ignore[arg-type]


def a_job(job_id: str, status: JobStatus = JobStatus.RUNNING) -> dict[JobId, Job]:
    job = Job(
        id=JobId(job_id),
        name="n",
        owner=OWNER,
        queue=DEFAULT_QUEUE,
        cluster=DEFAULT_CLUSTER,
        spec=JobSpec(kind=JobKind.SINGLE, members=()),
        status=status,
        failures=2,
        message="waits for room",
        created_at=NOW + timedelta(seconds=3),
        updated_at=NOW,
    )
    return {job.id: job}


STEP = PlanNode(
    path="train",
    name="train",
    kind=NodeKind.STEP,
    deps=("prepare", "fetch"),
    command="train {{lr}}",
    docker_env="image:1",
    parameters={"lr": 0.1},
    env={"A": "written"},
    cache=CachePolicy(enable=True, expires_after_s=60, scopes=(Scope(fs_name="data", path="src"),)),
    mounts=(Mount(name="data", mount_path="/data", sub_path="s", read_only=True),),
)
FETCH = PlanNode(path="fetch", name="fetch", kind=NodeKind.STEP)
PREPARE = replace(FETCH, path="prepare", name="prepare")
PLAIN = Plan(
    name="shown",
    nodes={"fetch": FETCH, "prepare": PREPARE, "train": STEP},
    top=("fetch", "prepare", "train"),
    main_fs=Mount(name="main"),
)
SUB = PlanNode(
    path="sub", name="sub", kind=NodeKind.DAG, children=("sub.fit",), loop=LoopItems(items=("a", "b")), deps=("fetch",)
)
FIT = PlanNode(path="sub.fit", name="fit", kind=NodeKind.STEP, parent="sub", loop=LoopItems(items=(1, 2)))
POST = PlanNode(path="post_process.tidy", name="tidy", kind=NodeKind.STEP)
NESTED = Plan(
    name="shown",
    nodes={"fetch": FETCH, "sub": SUB, "sub.fit": FIT, "post_process.tidy": POST},
    top=("fetch", "sub"),
    post_process="post_process.tidy",
)


def only_view(plan: Plan, node: RunNode, jobs: dict[JobId, Job]) -> Any:
    (view,) = RunViews(a_run(), plan, [node], jobs).runtime()["train"]
    return view


def test_a_step_that_has_started_shows_what_it_was_given() -> None:
    node = a_node(
        "train",
        id="job-run-000007-train-1",
        job_id=JobId("job-run-000007-train-1"),
        status=NodeStatus.RUNNING,
        command="train 0.2",
        parameters={"lr": 0.2},
        env={"A": "given"},
        inputs={"data": "in/path"},
        outputs={"model": "out/path"},
        started_at=NOW,
    )
    view = only_view(PLAIN, node, a_job("job-run-000007-train-1"))
    assert set(view) == JOB_VIEW
    assert view == {
        "jobID": "job-run-000007-train-1",
        "name": "run-000007-train",
        "type": "step",
        "stepName": "train",
        "parentDagID": "",
        "command": "train 0.2",
        "parameters": {"lr": 0.2},
        "env": {"A": "given"},
        "extraFS": [
            {"id": "fs-alice-data", "name": "data", "mountPath": "/data", "subPath": "s", "readOnly": True},
        ],
        "startTime": local_time(NOW + timedelta(seconds=3)),
        "endTime": "",
        "status": "running",
        "deps": "prepare,fetch",
        "dockerEnv": "image:1",
        "artifacts": {"input": {"data": "in/path"}, "output": {"model": "out/path"}},
        "cache": {
            "enable": True,
            "maxExpiredTime": "60",
            "fsScope": [{"name": "data", "id": "fs-alice-data", "path": "src"}],
        },
        "jobMessage": "waits for room",
        "cacheRunID": "",
        "cacheJobID": "",
        "key": "train",
        "loopItem": None,
        "retries": 2,
    }


def test_a_step_whose_turn_has_not_come_shows_what_was_written() -> None:
    view = only_view(PLAIN, a_node("train"), {})
    assert view["status"] == "pending"
    assert view["parameters"] == {"lr": 0.1}
    assert view["command"] == "train {{lr}}"


@pytest.mark.parametrize(
    ("node_status", "job_status", "shown"),
    [
        (NodeStatus.RUNNING, JobStatus.INIT, "pending"),
        (NodeStatus.RUNNING, JobStatus.PENDING, "pending"),
        (NodeStatus.RUNNING, JobStatus.RUNNING, "running"),
        (NodeStatus.TERMINATING, JobStatus.INIT, "terminating"),
        (NodeStatus.SUCCEEDED, JobStatus.SUCCEEDED, "succeeded"),
    ],
)
def test_the_job_says_whether_a_step_waits(node_status: NodeStatus, job_status: JobStatus, shown: str) -> None:
    node = a_node("train", job_id=JobId("job-1"), status=node_status, started_at=NOW)
    assert only_view(PLAIN, node, a_job("job-1", job_status))["status"] == shown


def test_a_reused_result_names_where_it_comes_from_and_not_the_times_of_that_job() -> None:
    node = a_node(
        "train",
        id="",
        job_id=JobId("job-1"),
        status=NodeStatus.SUCCEEDED,
        cache_run_id=RunId("run-000001"),
        source_run=RunId("run-000001"),
        started_at=NOW,
        finished_at=NOW,
    )
    view = only_view(PLAIN, node, a_job("job-1", JobStatus.SUCCEEDED))
    assert (view["cacheRunID"], view["cacheJobID"], view["retries"]) == ("run-000001", "job-1", 0)
    assert view["startTime"] == local_time(NOW)


def test_loops_are_lists_and_dags_hold_their_own() -> None:
    nodes = [
        a_node("fetch", status=NodeStatus.SUCCEEDED),
        a_node("sub[0]", "sub", kind=NodeKind.DAG, id="dag-0", in_loop=True, item="a", status=NodeStatus.RUNNING),
        a_node("sub[1]", "sub", kind=NodeKind.DAG, id="dag-1", in_loop=True, item="b", seq=1),
        a_node("sub[1].fit[0]", "sub.fit", parent="sub[1]", item=1, in_loop=True),
        a_node("sub[1].fit[1]", "sub.fit", parent="sub[1]", item=2, in_loop=True, seq=1),
        a_node("sub[0].fit", "sub.fit", parent="sub[0]", seq=NO_ITEMS, in_loop=True, status=NodeStatus.SKIPPED),
        a_node("post_process.tidy"),
    ]
    views = RunViews(a_run(), NESTED, nodes, {})
    runtime: dict[str, list[Any]] = views.runtime()
    assert list(runtime) == ["fetch", "sub"]
    first, second = runtime["sub"]
    assert set(first) == DAG_VIEW
    assert first["entryPoints"] == {"fit": []}, "a loop without items"
    fits = second["entryPoints"]["fit"]
    assert [fit["loopItem"] for fit in fits] == [1, 2]
    assert [fit["name"] for fit in fits] == ["run-000007-fit", "run-000007-fit-1"]
    assert {fit["parentDagID"] for fit in fits} == {"dag-1"}
    assert [dag["name"] for dag in (first, second)] == ["dag-run-000007-sub", "dag-run-000007-sub-1"]
    assert views.post_process()["tidy"]["stepName"] == "tidy"


def test_the_graph_counts_the_items_of_a_node() -> None:
    nodes = [
        a_node("fetch", status=NodeStatus.SUCCEEDED, started_at=NOW, finished_at=NOW),
        *(
            a_node(f"sub[0].fit[{seq}]", "sub.fit", parent="sub[0]", seq=seq, status=status, started_at=NOW)
            for seq, status in enumerate([NodeStatus.RUNNING, NodeStatus.SUCCEEDED, NodeStatus.SUCCEEDED])
        ),
    ]
    graph = RunViews(a_run(), NESTED, nodes, {}).graph()
    shown = {node["id"]: node for node in graph["nodes"]}
    assert list(shown) == ["fetch", "sub", "sub.fit", "post_process.tidy"]
    assert shown["sub.fit"]["items"] == {"running": 1, "succeeded": 2}
    assert shown["sub.fit"]["status"] == "running"
    assert shown["sub.fit"]["endTime"] == ""
    assert shown["fetch"]["endTime"] == local_time(NOW)
    assert shown["sub"]["status"] == "pending"
    assert graph["edges"] == [{"source": "fetch", "target": "sub"}]
    ended = RunViews(a_run(RunStatus.FAILED), NESTED, nodes[:1], {}).graph()
    assert [node["status"] for node in ended["nodes"]] == ["succeeded", "cancelled", "cancelled", "cancelled"]


def test_a_plan_that_is_not_run_has_a_graph_without_states() -> None:
    assert {node["status"] for node in plan_graph(NESTED)["nodes"]} == {""}


def test_a_skipped_tick_has_neither_nodes_nor_a_graph() -> None:
    shown = run_answer(a_run(RunStatus.SKIPPED), None, [], {}, [])
    assert (shown["runtime"], shown["postProcess"], shown["graph"]["nodes"]) == ({}, {}, [])
    assert shown["fsOptions"]["mainFS"]["name"] == ""


def test_the_story_of_a_run_is_told_in_the_order_of_time() -> None:
    later = NOW + timedelta(seconds=5)
    run = replace(a_run(RunStatus.FAILED), activated_at=NOW, finished_at=later, message="some\nstep failed")
    node = a_node(
        "train",
        status=NodeStatus.FAILED,
        message="exit code 1",
        job_id=JobId("job-1"),
        started_at=NOW + timedelta(seconds=1),
        finished_at=NOW + timedelta(seconds=2),
    )
    lines = run_story(run, [node]).splitlines()
    assert [line[20:] for line in lines] == [
        "run[run-000007] was created by user[alice]",
        "run[run-000007] began",
        "step[train] was started as job[job-1]",
        "step[train] ended as failed: exit code 1",
        "run[run-000007] ended as failed: some step failed",
    ]
