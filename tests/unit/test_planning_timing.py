"""Where the time of a run went: tables of nodes with times, and the path that determined the end."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from paddleflow.domain.ids import DEFAULT_CLUSTER, DEFAULT_QUEUE, JobId, RunId, UserName
from paddleflow.domain.jobs import Job, JobKind, JobSpec
from paddleflow.domain.runs import NodeKind, NodeStatus, RunNode
from paddleflow.planning.plan import Plan
from paddleflow.planning.timing import critical_path, time_run
from tests.unit.test_planning_layout import plan_of

BEGAN = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
RUN = RunId("run-000001")


def at(seconds: float | None) -> datetime | None:
    return None if seconds is None else BEGAN + timedelta(seconds=seconds)


def moment(seconds: float) -> datetime:
    return BEGAN + timedelta(seconds=seconds)


def node(key: str, start: float | None, end: float | None, **more: object) -> RunNode:
    path = str(more.pop("path", key))
    status = more.pop("status", NodeStatus.RUNNING if end is None else NodeStatus.SUCCEEDED)
    made = RunNode(
        run_id=RUN,
        key=key,
        node=path,
        kind=NodeKind.STEP,
        job_id=JobId(f"job-{key}"),
        status=NodeStatus(str(status)),
        started_at=at(start),
        finished_at=at(end),
    )
    return replace(made, **more)  # type: ignore[arg-type]


def dag(key: str, start: float, end: float | None, **more: object) -> RunNode:
    return node(key, start, end, kind=NodeKind.DAG, job_id=None, **more)


def job(key: str, ran_from: float | None) -> tuple[JobId, Job]:
    made = Job(
        id=JobId(f"job-{key}"),
        name=key,
        owner=UserName("root"),
        queue=DEFAULT_QUEUE,
        cluster=DEFAULT_CLUSTER,
        spec=JobSpec(kind=JobKind.SINGLE, members=()),
        created_at=BEGAN,
        activated_at=at(ran_from),
        updated_at=BEGAN,
    )
    return made.id, made


DIAMOND = plan_of({"a": ([], None), "b": (["a"], None), "c": (["a"], None), "d": (["b", "c"], None)})
NESTED = plan_of(
    {
        "a": ([], None),
        "sub": (["a"], {"x": ([], None), "y": (["x"], None)}),
        "z": (["sub"], None),
    }
)
ENDING = plan_of({"a": ([], None), "b": ([], None)}, post_process="notify")

PATHS = [
    pytest.param(DIAMOND, [], [], id="nothing has started"),
    pytest.param(
        DIAMOND,
        [node("a", 0, 5), node("b", 5, 30), node("c", 5, 20), node("d", 30, 40)],
        ["a", "b", "d"],
        id="the slower branch",
    ),
    pytest.param(
        DIAMOND,
        [node("a", 0, 5), node("b", 5, 30), node("c", 5, None)],
        ["a", "c"],
        id="what still runs ends last",
    ),
    pytest.param(
        DIAMOND,
        [
            node("a", 0, 5),
            node("b", 5, 30, status="failed"),
            node("c", 5, 31, status="terminated"),
            node("d", 31, 31, status="cancelled"),
        ],
        ["a", "c"],
        id="what never started determines nothing",
    ),
    pytest.param(
        NESTED,
        [
            node("a", 0, 5),
            dag("sub", 5, 50),
            node("sub.x", 5, 20, parent="sub"),
            node("sub.y", 20, 50, parent="sub"),
            node("z", 50, 51),
        ],
        ["a", "sub.x", "sub.y", "z"],
        id="through a dag and out of it",
    ),
    pytest.param(
        NESTED,
        [
            node("a", 0, 5),
            dag("sub[0]", 5, 20, path="sub", in_loop=True),
            node("sub[0].x", 5, 10, parent="sub[0]", path="sub.x"),
            node("sub[0].y", 10, 20, parent="sub[0]", path="sub.y"),
            dag("sub[1]", 5, 40, path="sub", in_loop=True, seq=1),
            node("sub[1].x", 5, 39, parent="sub[1]", path="sub.x"),
            node("sub[1].y", 39, 40, parent="sub[1]", path="sub.y"),
            node("z", 40, 41),
        ],
        ["a", "sub[1].x", "sub[1].y", "z"],
        id="the slowest item of a loop, within its own item",
    ),
    pytest.param(
        ENDING,
        [node("a", 0, 5), node("b", 0, 9), node("post_process.notify", 9, 10)],
        ["b", "post_process.notify"],
        id="post-processing waited for the last",
    ),
]


@pytest.mark.parametrize(("plan", "nodes", "wanted"), PATHS)
def test_the_critical_path(plan: Plan, nodes: list[RunNode], wanted: list[str]) -> None:
    assert list(critical_path(plan, nodes, until=moment(60))) == wanted


TIMES = [
    pytest.param(node("b", 5, 30), job("b", 12), (7.0, 18.0), id="waits in its queue, then runs"),
    pytest.param(node("b", 9, 30), job("b", 12), (7.0, 18.0), id="waiting for a place counts as waiting"),
    pytest.param(node("b", 5, None), job("b", 12), (7.0, 48.0), id="still runs"),
    pytest.param(node("b", 5, None), job("b", None), (55.0, 0.0), id="still waits"),
    pytest.param(node("b", 5, 9, status="terminated"), job("b", None), (4.0, 0.0), id="stopped before it ran"),
    pytest.param(node("b", 5, 30), job("b", 2), (0.0, 25.0), id="a clock that is behind"),
    pytest.param(node("b", 5, 6, cache_run_id=RunId("run-000000")), job("b", -50), (1.0, 0.0), id="reused"),
    pytest.param(node("b", None, None, status="pending"), job("b", None), (0.0, 0.0), id="its turn has not come"),
    pytest.param(node("b", 5, 5, status="skipped", job_id=None), job("x", 5), (0.0, 0.0), id="skipped"),
    pytest.param(node("b", 5, 8, job_id=None), job("x", 5), (0.0, 3.0), id="its job is gone"),
]


@pytest.mark.parametrize(("timed", "its_job", "wanted"), TIMES)
def test_waiting_and_running(timed: RunNode, its_job: tuple[JobId, Job], wanted: tuple[float, float]) -> None:
    timing = time_run(DIAMOND, [node("a", 0, 5), timed], dict([its_job]), began=BEGAN, until=moment(60))
    found = timing.nodes["b"]
    assert (found.waiting_s, found.running_s) == wanted
    assert found.total_s == sum(wanted)
    assert found.is_reused == (timed.cache_run_id is not None)
    assert timing.total_s == 60.0


def test_a_node_inside_a_dag_waits_from_the_start_of_its_dag() -> None:
    nodes = [node("a", 0, 5), dag("sub", 7, 20), node("sub.x", 9, 20, parent="sub")]
    timing = time_run(NESTED, nodes, dict([job("sub.x", 10)]), began=BEGAN, until=moment(20))
    assert timing.nodes["sub.x"].waiting_s == 3.0
    assert timing.nodes["sub"].waiting_s == 2.0
    assert timing.nodes["sub"].running_s == 13.0


def test_post_processing_waits_for_the_last_of_all() -> None:
    nodes = [node("a", 0, 5), node("b", 0, 9), node("post_process.notify", 10, 12)]
    timing = time_run(ENDING, nodes, dict([job("post_process.notify", 11)]), began=BEGAN, until=moment(12))
    assert timing.nodes["post_process.notify"].waiting_s == 2.0
