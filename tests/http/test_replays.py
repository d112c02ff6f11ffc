"""What a server has run, and replays of it, on raw HTTP: a real process computes, real rows are read."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from paddleflow.domain.jobs import Priority
from paddleflow.domain.queries import MOST_REPLAYED, REPLAY_POLICIES
from paddleflow.engine import replays
from paddleflow.sdk.replays import MetricsInfo
from paddleflow.simulation.metrics import Metrics
from paddleflow.simulation.trace import TraceJob, read_trace
from tests.http.served import Answer, Caller, Served
from tests.waiting import DEADLINE_S, wait_for

Unique = Callable[[str], str]
TINY = "submit,duration,gpus\n0,100,3\n10,50,4\n20,30,1\n"
FOUR_GPUS = {"nodes": [{"gpus": 4}]}


def told(answer: Answer) -> list[TraceJob]:
    assert (answer.status, answer.headers["content-type"]) == (200, "text/csv; charset=utf-8"), answer.body
    return list(read_trace(answer.body.decode().splitlines()))


@pytest.fixture(scope="module")
def past(served: Served, alice: Caller) -> dict[str, str]:
    """A platform with a history: jobs of several kinds that ran, and some that never did or still do."""
    queue = {"name": "brief", "namespace": "default", "maxResources": {"cpu": "8", "mem": "8Gi"}}
    assert served.root.post("/queue", queue).status == 200
    flavour = {"cpu": "2", "mem": "4Gi", "scalarResources": {"nvidia.com/gpu": "1"}}
    scheduling = {"queue": "default-queue", "priority": "HIGH"}
    single = alice.submit(flavour=flavour, schedulingPolicy=scheduling, runPolicy={"deadlineSeconds": 900})
    served.finish(single)
    in_brief = served.root.submit(schedulingPolicy={"queue": "brief"})
    served.finish(in_brief, exit_code=1)
    team = served.root.post(
        "/job/distributed",
        {
            "framework": "paddle",
            "elastic": {"role": "worker", "min": 1, "max": 3},
            "members": [{"role": "worker", "replicas": 2, "command": "x", "flavour": flavour}],
        },
    ).json["id"]

    wait_for(lambda: served.root.status_of(team) == "running", "the team runs")
    assert served.root.put(f"/job/{team}", action="stop").status == 200
    wait_for(lambda: served.root.status_of(team) == "terminated", "the team was stopped")
    large = {"cpu": "20", "mem": "1Gi"}
    running = served.root.submit(flavour=large)
    served.task_of(running)
    waiting = served.root.submit(flavour=large)
    assert served.root.put(f"/job/{waiting}", action="stop").status == 200
    assert served.root.status_of(waiting) == "terminated"
    return {"single": single, "brief": in_brief, "team": team, "running": running, "waiting": waiting}


def test_the_trace_tells_what_ran(root: Caller, past: dict[str, str]) -> None:
    jobs = {job.id: job for job in told(root.get("/trace"))}
    assert list(jobs) == [past["single"], past["brief"], past["team"]], "what never ran, or still does, is not told"
    single = jobs[past["single"]]
    assert (single.gpus, single.cpu_milli, single.memory_bytes, single.tasks) == (1, 2000, 4 << 30, 1)
    assert (single.queue, single.priority, single.limit_s) == ("default-queue", Priority.HIGH, 900.0)
    team = jobs[past["team"]]
    assert (team.gpus, team.min_tasks, team.max_tasks) == (1, 1, 3)
    assert team.tasks in (1, 2, 3)
    assert jobs[past["brief"]].queue == "brief"


def test_the_trace_can_be_cut(root: Caller, past: dict[str, str]) -> None:
    assert [job.id for job in told(root.get("/trace", limit=2))] == [past["single"], past["brief"]]
    assert root.get("/trace", until=1000).body.count(b"\n") == 1, "the header alone"
    assert root.get("/trace", since=4_000_000_000).body.count(b"\n") == 1
    assert len(told(root.get("/trace", since=1000, until=4_000_000_000))) == 3
    assert len(told(root.get("/trace", clusterName="default-cluster"))) == 3
    assert root.get("/trace", clusterName="nowhere").body.count(b"\n") == 1


@pytest.mark.parametrize("query", [{"limit": "0"}, {"limit": "100001"}, {"since": "x"}, {"until": "-1"}])
def test_bad_windows_are_named(root: Caller, query: dict[str, str]) -> None:
    answer = root.get("/trace", **query)
    assert (answer.status, answer.code) == (400, "InvalidURI")
    assert next(iter(query)) in answer.message


def test_its_own_past_on_its_own_cluster(root: Caller, past: dict[str, str]) -> None:
    answer = root.post("/simulate", {"policy": "all"})
    assert answer.status == 200, answer.body
    assert [one["policy"] for one in answer.json["metrics"]] == list(REPLAY_POLICIES)
    for one in answer.json["metrics"]:
        assert (one["jobs"], one["refused"], one["unfinished"]) == (3, 0, 0), one
    first = root.post("/simulate", {"limit": 1})
    assert [one["jobs"] for one in first.json["metrics"]] == [1]
    empty = root.post("/simulate", {"until": 1000})
    assert (empty.status, "no job of cluster[default-cluster]" in empty.message) == (400, True)
    fetched = root.get("/trace").body.decode()
    again = root.post("/simulate", {"trace": fetched})
    assert again.status == 200, "what it tells, it takes"
    assert again.json["metrics"][0]["jobs"] == 3


def test_a_queue_that_is_gone_takes_part(fresh: Served) -> None:
    queue = {"name": "brief", "namespace": "default", "maxResources": {"cpu": "8", "mem": "8Gi"}}
    assert fresh.root.post("/queue", queue).status == 200
    fresh.finish(fresh.root.submit(schedulingPolicy={"queue": "brief"}))
    fresh.finish(fresh.root.submit())
    assert fresh.root.put("/queue/brief", action="close").status == 200
    assert fresh.root.delete("/queue/brief").status == 200
    answer = fresh.root.call("POST", "/simulate")
    assert answer.status == 200, answer.body
    assert answer.json["metrics"][0]["jobs"] == 2


def test_a_told_trace_on_a_described_cluster(root: Caller) -> None:
    answer = root.post("/simulate", {"trace": TINY, "cluster": FOUR_GPUS, "policy": "fifo"})
    assert answer.status == 200, answer.body
    (metrics,) = answer.json["metrics"]
    assert metrics["meanCompletionSeconds"] == pytest.approx(400 / 3)
    assert metrics["makespanSeconds"] == pytest.approx(180)
    points = answer.json["utilisation"]["fifo"]
    assert len(points) == 200
    assert points[0] == [0.0, 0.75]
    assert all(0 <= share <= 1 and at < 180 for at, share in points)


def test_the_metrics_are_all_there(root: Caller) -> None:
    (metrics,) = root.post("/simulate", {"trace": TINY, "cluster": FOUR_GPUS}).json["metrics"]
    assert len(metrics) == len(fields(Metrics))
    assert MetricsInfo.from_wire(metrics) == MetricsInfo(**metrics), "the client knows the same names"


BAD: list[tuple[dict[str, Any], list[str]]] = [
    ({"trace": "submit,duration,gpus\n0,1,1\n5,x,1\n"}, ["row 2", "column duration"]),
    ({"trace": ""}, ["no column submit"]),
    ({"trace": "submit,duration,gpus\n5,1,1\n0,1,1\n"}, ["row 2"]),
    ({"trace": 5}, ["trace"]),
    ({"trace": TINY, "cluster": {}}, ["Field[cluster.nodes]"]),
    ({"trace": TINY, "cluster": {"nodes": [{"gpu": 1}]}}, ["Field[cluster.nodes[0].gpu]"]),
    ({"trace": TINY, "cluster": {"node": []}}, ["Field[cluster.node]"]),
    ({"trace": TINY, "cluster": [1]}, ["cluster"]),
    (
        {"trace": TINY, "cluster": {"nodes": [{"gpus": 1}], "queues": [{"name": "a"}, {"name": "b"}]}},
        ["row 1", "no queue"],
    ),
    ({"trace": TINY, "cluster": FOUR_GPUS, "load": -1}, ["Field[load]"]),
    ({"trace": TINY, "cluster": FOUR_GPUS, "load": "x"}, ["load"]),
    ({"trace": TINY, "policy": "magic"}, ["Field[policy]", "backfill"]),
    ({"trace": TINY, "limit": 0}, ["Field[limit]"]),
    ({"trace": TINY, "limit": MOST_REPLAYED + 1}, ["Field[limit]", "command line"]),
    ({"trace": TINY, "since": 5}, ["Field[since]"]),
    ({"until": -5}, ["Field[until]"]),
    ({"sort": True}, ["Field[sort]"]),
    ({"trace": TINY, "cluster": FOUR_GPUS, "clusterName": "x"}, ["Field[clusterName]"]),
]


@pytest.mark.parametrize(("body", "words"), BAD)
def test_bad_questions_are_named(root: Caller, body: dict[str, Any], words: list[str]) -> None:
    answer = root.post("/simulate", body)
    assert answer.status == 400, answer.body
    assert all(word in answer.message for word in words), answer.message


def test_an_unknown_cluster(root: Caller) -> None:
    answer = root.post("/simulate", {"trace": TINY, "clusterName": "nowhere"})
    assert (answer.status, answer.code) == (400, "ClusterNotFound")


def test_too_many_jobs_are_sent_elsewhere(root: Caller) -> None:
    rows = "".join(f"{n},1,1\n" for n in range(MOST_REPLAYED + 1))
    body = {"trace": f"submit,duration,gpus\n{rows}", "cluster": FOUR_GPUS}
    answer = root.post("/simulate", body)
    assert answer.status == 400
    assert "Field[trace]" in answer.message and "command line" in answer.message
    assert root.post("/simulate", {**body, "limit": 10}).json["metrics"][0]["jobs"] == 10


def test_only_root_may_ask(alice: Caller) -> None:
    assert (alice.get("/trace").status, alice.post("/simulate", {}).status) == (403, 403)


def test_it_is_in_the_document(root: Caller) -> None:
    paths = root.call("GET", "/openapi.json", prefix="").json["paths"]
    trace = paths["/api/paddleflow/v1/trace"]["get"]
    assert list(trace["responses"]["200"]["content"]) == ["text/csv"]
    assert paths["/api/paddleflow/v1/simulate"]["post"]["x-access"] == "root"


@pytest.fixture
def endless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Replays never end by themselves, however fast the machine is: their interpreter waits for a line that nobody
    writes. Undone, they are as always."""
    os.mkfifo(tmp_path / "gate")
    interpreter = tmp_path / "held"
    interpreter.write_text(f'#!/bin/sh\nread line < "{tmp_path}/gate"\nexec "{sys.executable}" "$@"\n')
    interpreter.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(interpreter))
    return monkeypatch


class _Asking(threading.Thread):
    """A replay asked for beside the test."""

    def __init__(self, served: Served) -> None:
        super().__init__(daemon=True)
        self._served = served
        self.answer: Answer | None = None
        self.start()
        process = served.platform.reads._replays._process
        wait_for(lambda: process._running, "the replay is under way")

    def run(self) -> None:
        self.answer = self._served.root.post("/simulate", {"trace": TINY, "cluster": FOUR_GPUS})


@pytest.mark.usefixtures("endless")
def test_one_at_a_time_and_nobody_else_waits(fresh: Served) -> None:
    asking = _Asking(fresh)
    refused = fresh.root.post("/simulate", {"trace": TINY, "cluster": FOUR_GPUS})
    assert (refused.status, refused.code) == (403, "ActionNotAllowed")
    assert "another replay" in refused.message
    fresh.finish(fresh.root.submit())
    assert asking.answer is None, "a job was submitted, run and shown while the replay went on"
    fresh.platform.reads.close()
    asking.join(DEADLINE_S)
    assert asking.answer is not None
    assert (asking.answer.status, asking.answer.message) == (503, "the server is stopping"), "who waited is told"
    stopped = fresh.root.post("/simulate", {"trace": TINY, "cluster": FOUR_GPUS})
    assert (stopped.status, "stopping" in stopped.message) == (503, True)


def test_it_is_given_up_when_it_takes_too_long(fresh: Served, endless: pytest.MonkeyPatch) -> None:
    endless.setattr(replays, "_LONGEST_S", 0.3)
    answer = fresh.root.post("/simulate", {"trace": TINY, "cluster": FOUR_GPUS})
    assert answer.status == 400, answer.body
    assert "given up after 0.3 s" in answer.message
    endless.undo()
    assert fresh.root.post("/simulate", {"trace": TINY, "cluster": FOUR_GPUS}).status == 200
