"""Jobs of several tasks, on raw HTTP: submitted, shown, started again, followed; and the questions about them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.http.served import PREFIX, Caller, Served
from tests.waiting import wait_for

Unique = Callable[[str], str]
WORKER = {"role": "worker", "replicas": 2, "command": "x"}


def submit(caller: Caller, **changes: Any) -> str:
    answer = caller.post("/job/distributed", {"framework": "paddle", "members": [WORKER], **changes})
    assert answer.status == 200, answer.body
    return str(answer.json["id"])


def team_of(caller: Caller, job: str, count: int, *, besides: list[str] | None = None) -> list[str]:
    """The tasks of the job, once so many run and they are others than ``besides``."""

    def running() -> list[str] | None:
        shown = caller.get(f"/job/{job}").json
        if shown["status"] != "running":
            return None
        runtime = shown["distributedRuntime"]
        counts = json.loads(runtime["status"])
        names = [task["name"] for task in runtime["runtimes"]][:count]
        return names if counts["running"] == count and names != besides else None

    return wait_for(running, f"{count} tasks of {job} run")


def test_a_team_is_shown_whole(served: Served, alice: Caller) -> None:
    member = {**WORKER, "nodeSelector": {}, "labels": {"a": "b"}, "schedulingPolicy": {"queue": "default-queue"}}
    job = submit(alice, members=[member], runPolicy={"retries": 2, "backoffSeconds": 0, "deadlineSeconds": 1000})
    tasks = team_of(alice, job, 2)
    shown = alice.get(f"/job/{job}").json
    assert (shown["framework"], shown["command"]) == ("paddle", "")
    assert shown["members"][0] | {"role": "worker", "replicas": 2, "labels": {"a": "b"}} == shown["members"][0]
    assert shown["runPolicy"] == {"retries": 2, "backoffSeconds": 0.0, "deadlineSeconds": 1000.0, "requeue": True}
    assert "elastic" not in shown
    assert "runtime" not in shown
    runtime = shown["distributedRuntime"]
    assert (runtime["name"], runtime["namespace"], runtime["id"]) == (job, "", job)
    status = json.loads(runtime["status"])
    assert (status["phase"], status["running"], status["failed"]) == ("running", 2, 0)
    first = runtime["runtimes"][0]
    assert (first["name"], first["role"], first["index"], first["nodeName"]) == (tasks[0], "worker", 0, "node-1")
    assert first["logURL"] == f"{PREFIX}/job/{job}/log?task={tasks[0]}"
    row = next(one for one in alice.get("/job").json["jobList"] if one["id"] == job)
    assert row == {key: value for key, value in shown.items() if key != "distributedRuntime"}
    for number, task in enumerate(tasks):
        served.runtime.write_log(task, f"I am {number}\n".encode())  # type: ignore[arg-type]
    for number, task in enumerate(tasks):
        log = alice.get(f"/job/{job}/log", task=task)
        assert (log.body, log.headers["x-log-size"]) == (f"I am {number}\n".encode(), "7")
    for task in tasks:
        served.runtime.finish(task)  # type: ignore[arg-type]
    wait_for(lambda: alice.status_of(job) == "succeeded", "the team ended")


def test_a_failed_team_starts_again_and_says_so(served: Served, alice: Caller) -> None:
    job = submit(alice, runPolicy={"retries": 1, "backoffSeconds": 0})
    first = team_of(alice, job, 2)
    served.runtime.finish(first[1], 3)  # type: ignore[arg-type]
    second = team_of(alice, job, 2, besides=first)
    assert not set(first) & set(second), "a task id never means two processes"
    shown = alice.get(f"/job/{job}").json
    assert "1 of 1 retries used" in shown["message"]
    names = [task["name"] for task in shown["distributedRuntime"]["runtimes"]]
    assert (set(names[:2]), set(names[2:])) == (set(second), set(first)), "the present attempt comes first"
    served.runtime.finish(second[0], 4)  # type: ignore[arg-type]
    wait_for(lambda: alice.status_of(job) == "failed", "no retry is left")
    assert alice.get(f"/job/{job}").json["finishTime"]


def test_a_single_job_shows_its_latest_attempt(served: Served, alice: Caller) -> None:
    job = alice.submit(runPolicy={"retries": 1, "backoffSeconds": 0})
    first = served.task_of(job)
    served.runtime.finish(first, 1)  # type: ignore[arg-type]

    def again() -> str | None:
        shown = alice.get(f"/job/{job}").json
        name: str = shown["runtime"]["name"]
        return name if shown["status"] == "running" and name != first else None

    second = wait_for(again, "the second attempt runs")
    served.runtime.write_log(second, b"again\n")  # type: ignore[arg-type]
    assert alice.get(f"/job/{job}/log").body == b"again\n"
    served.finish(job)


def test_an_elastic_team(served: Served, alice: Caller, bobby: Caller) -> None:
    elastic = {"min": 1, "max": 2, "rescaleCostSeconds": 0}
    job = submit(alice, elastic=elastic)
    shown = alice.get(f"/job/{job}").json
    assert shown["elastic"] == {"role": "worker", "rescaleCostSeconds": 0.0, "min": 1, "max": 2}
    tasks = team_of(alice, job, 2)
    membership = alice.get(f"/job/{job}/membership").json
    assert (membership["least"], membership["most"]) == (1, 2)
    assert sorted(task["id"] for task in membership["tasks"]) == sorted(tasks)
    assert bobby.get(f"/job/{job}/membership").status == 403
    for task in tasks:
        served.runtime.finish(task)  # type: ignore[arg-type]
    wait_for(lambda: alice.status_of(job) == "succeeded", "the team ended")


def test_eta(served: Served, root: Caller, alice: Caller, bobby: Caller, unique: Unique) -> None:
    queue = unique("patient")
    body = {"name": queue, "namespace": "default", "maxResources": {"cpu": "1", "mem": "1Gi"}}
    assert root.post("/queue", body).status == 200
    policy = {"schedulingPolicy": {"queue": queue}}
    running, waiting = root.submit(**policy), root.submit(**policy)
    served.task_of(running)
    told = root.get(f"/job/{waiting}/eta").json
    assert list(told) == ["jobID", "status", "low", "median", "high", "confidence", "sentence"]
    assert (told["jobID"], told["status"]) == (waiting, "init")
    assert told["sentence"]
    assert 0 <= told["confidence"] <= 1
    now = root.get(f"/job/{running}/eta").json
    assert (now["status"], now["median"]) == ("running", "")
    assert bobby.get(f"/job/{waiting}/eta").status == 403
    assert alice.get("/job/none/eta").status == 404
    for job in (running, waiting):
        served.finish(job)


def test_what_if(served: Served, root: Caller, alice: Caller, unique: Unique) -> None:
    queue = unique("narrow")
    body = {"name": queue, "namespace": "default", "maxResources": {"cpu": "1", "mem": "8Gi"}}
    assert root.post("/queue", body).status == 200
    policy = {"schedulingPolicy": {"queue": queue}}
    running, waiting = root.submit(**policy), root.submit(**policy)
    served.task_of(running)
    change = {"queues": [{"name": queue, "maxResources": {"cpu": "2"}}]}
    answer = root.post("/queue/whatIf", change)
    assert answer.status == 200, answer.body
    assert set(answer.json) == {"sentence", "start", "shrink", "grow", "evict"}
    assert answer.json["start"] == [{"jobID": waiting, "nodes": ["node-1"]}]
    assert root.status_of(waiting) == "init", "nothing is carried out"
    assert root.get(f"/queue/{queue}").json["maxResources"]["cpu"] == "1"
    asked = root.post("/queue/whatIf", {"job": {"command": "x", **policy}}).json["job"]
    assert asked["wouldStart"] is False
    assert asked["sentence"]
    free = root.post("/queue/whatIf", {"job": {"command": "x"}}).json["job"]
    assert (free["wouldStart"], free["nodes"]) == (True, ["node-1"])
    assert root.post("/queue/whatIf", {"queues": [{"name": "no-such"}]}).status == 400
    assert root.post("/queue/whatIf", {"removeNodes": ["no-such"]}).status == 400
    assert alice.post("/queue/whatIf", {}).code == "OnlyRootAllowed"
    for job in (running, waiting):
        served.finish(job)
