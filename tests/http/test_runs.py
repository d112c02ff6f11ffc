"""Runs on raw HTTP: shapes, codes and messages as users rely on them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.http.pipelines import TWO_STEPS, a_filesystem, encoded, end, ended, shown, start, view_of
from tests.http.served import Answer, Caller, Served
from tests.waiting import wait_for

Unique = Callable[[str], str]

BRIEF = {
    *("runID", "name", "source", "username", "fsName", "description", "scheduleID", "runMsg", "status"),
    *("scheduledTime", "createTime", "activateTime", "updateTime"),
}
WHOLE = BRIEF | {
    *("fsOptions", "parameters", "runYaml", "runtime", "postProcess", "failureOptions", "dockerEnv", "disabled"),
    *("runCachedIDs", "retryOf", "finishTime", "graph"),
}
LOOPS = """
name: loops
entry_points:
  many: {command: "true", loop_argument: [1, 2]}
  none: {command: "true", loop_argument: []}
  sub:
    deps: many
    loop_argument: [a]
    entry_points:
      inner: {command: "true"}
post_process:
  tidy: {command: "true"}
"""


def test_a_run_from_text_to_its_end(served: Served, alice: Caller) -> None:
    run_id = start(alice, desc="a pair", parameters={"first.size": 7, "rate": 0.25})
    assert run_id.startswith("run-")
    end(served, alice, run_id, "first")
    end(served, alice, run_id, "second")
    assert ended(alice, run_id) == "succeeded"
    run = shown(alice, run_id)
    assert set(run) == WHOLE
    assert (run["name"], run["username"], run["description"]) == ("pair", "alice", "a pair")
    assert run["parameters"] == {"first.size": 7, "rate": 0.25}
    assert run["runYaml"] == TWO_STEPS
    assert run["failureOptions"] == {"strategy": "fail_fast"}
    assert run["activateTime"]
    first, second = run["runtime"]["first"][0], run["runtime"]["second"][0]
    assert first["parameters"] == {"size": 7, "rate": 0.25}
    assert first["env"]["SIZE"] == "7"
    assert (second["command"], second["deps"]) == ("true 7", "first")
    assert {view["status"] for view in (first, second)} == {"succeeded"}
    assert first["jobID"].startswith(f"job-{run_id}-first-")
    assert {node["id"]: node["status"] for node in run["graph"]["nodes"]} == {
        "first": "succeeded",
        "second": "succeeded",
    }


def test_loops_dags_and_post_processing_are_shown(served: Served, alice: Caller) -> None:
    run_id = start(alice, LOOPS)
    views = wait_for(
        lambda: (
            (found := shown(alice, run_id)["runtime"]).get("many") and all(v["jobID"] for v in found["many"]) and found
        ),
        "the loop has jobs",
    )
    assert [view["loopItem"] for view in views["many"]] == [1, 2]
    assert views["none"] == []
    for view in views["many"]:
        served.finish(view["jobID"])
    inner = wait_for(
        lambda: next(
            (
                view["jobID"]
                for dag in shown(alice, run_id)["runtime"].get("sub", [])
                for view in dag["entryPoints"].get("inner", [])
                if view["jobID"]
            ),
            None,
        ),
        "the inner step has a job",
    )
    served.finish(inner)
    tidy = wait_for(lambda: shown(alice, run_id)["postProcess"].get("tidy", {}).get("jobID") or None, "it tidies")
    served.finish(tidy)
    assert ended(alice, run_id) == "succeeded"
    graph = alice.get(f"/run/{run_id}/graph").json
    nodes = {node["id"]: node for node in graph["nodes"]}
    assert nodes["many"]["items"] == {"succeeded": 2}
    assert nodes["sub.inner"]["parent"] == "sub"
    assert graph["edges"] == [{"source": "many", "target": "sub"}]
    assert graph == shown(alice, run_id)["graph"]


def test_a_step_whose_job_waits_is_pending(root: Caller, unique: Unique) -> None:
    queue = unique("full")
    amounts = {"maxResources": {"cpu": "1", "mem": "4Gi"}}
    assert root.post("/queue", {"name": queue, "namespace": "default", **amounts}).status == 200
    taken = root.submit(schedulingPolicy={"queue": queue})
    text = f"name: waits\nentry_points:\n  a:\n    command: x\n    env: {{PF_JOB_QUEUE_NAME: {queue}}}\n"
    run_id = start(root, text)
    assert view_of(root, run_id, "a")["status"] == "pending"
    timing = root.get(f"/run/{run_id}/timing").json["steps"][0]
    assert timing["runningSeconds"] == 0
    assert root.put(f"/run/{run_id}", action="stop").status == 200
    assert ended(root, run_id) == "terminated"
    assert root.put(f"/job/{taken}", action="stop").status == 200


def test_a_pipeline_on_a_filesystem(served: Served, alice: Caller, unique: Unique, tmp_path: Path) -> None:
    name = unique("disk")
    directory = a_filesystem(alice, name, tmp_path / "disk")
    missing = alice.post("/run", {"fsName": name})
    assert (missing.status, missing.code) == (400, "ReadYamlFileFailed")
    (directory / "run.yaml").write_text(TWO_STEPS)
    (directory / "other.yaml").write_text(TWO_STEPS.replace("pair", "other"))
    by_default = alice.post("/run", {"fsname": name})
    assert by_default.status == 201, "keys in any case"
    named = alice.post("/run", {"fsName": name, "runYamlPath": "./other.yaml"})
    assert shown(alice, named.json["runID"])["name"] == "other"
    run = shown(alice, by_default.json["runID"])
    assert (run["source"], run["fsName"]) == ("./run.yaml", name)
    assert run["fsOptions"]["mainFS"]["id"] == f"fs-alice-{name}"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"runYamlRaw": "%%%"}, "MalformedYaml"),
        ({"runYamlRaw": "/w=="}, "MalformedYaml"),
        ({"runYamlRaw": encoded("entry_points: [")}, "InvalidPipeline"),
        ({"runYamlRaw": encoded("a: b")}, "InvalidPipeline"),
        ({"runYamlRaw": encoded("a: \x00")}, "InvalidPipeline"),
        ({}, "InvalidArguments"),
        ({"runYamlPath": "run.yaml"}, "InvalidArguments"),
        ({"runYamlRaw": encoded(TWO_STEPS), "name": "no spaces"}, "InvalidNamePattern"),
        ({"runYamlRaw": encoded(TWO_STEPS), "parameters": {"size": {"a": 1}}}, "InvalidArguments"),
        ({"runYamlRaw": encoded(TWO_STEPS), "parameters": {"size": None}}, "InvalidArguments"),
        ({"runYamlRaw": encoded(TWO_STEPS), "parameters": {"nowhere": 1}}, "InvalidPipeline"),
        ({"runYamlRaw": encoded(TWO_STEPS), "disabled": "nowhere"}, "InvalidPipeline"),
        ({"runYamlRaw": encoded(TWO_STEPS), "failureOptions": {"strategy": "hope"}}, "InvalidPipeline"),
        ({"runYamlRaw": encoded(TWO_STEPS), "fsName": "nosuch"}, "InvalidArguments"),
        ({"runYamlRaw": 5}, "MalformedJSON"),
        ({"parameters": [1]}, "MalformedJSON"),
        ({"runYamlRaw": encoded(TWO_STEPS), "username": "bobby"}, "AuthIllegalUser"),
    ],
)
def test_what_cannot_be_run_is_refused(alice: Caller, bobby: Caller, body: object, code: str) -> None:
    before = alice.get("/run", maxKeys=1000).json["runList"]
    answer = alice.post("/run", body)
    assert (answer.status, answer.code) == (400, code), answer.body
    assert answer.message
    assert alice.get("/run", maxKeys=1000).json["runList"] == before, "nothing half made"


def test_a_stored_pipeline_that_is_not_there(alice: Caller) -> None:
    answer = alice.post("/run", {"pipelineID": "ppl-999999"})
    assert (answer.status, answer.code) == (404, "PipelineNotFound")


def test_the_same_request_sent_twice_is_one_run(alice: Caller, unique: Unique) -> None:
    body, key = {"runYamlRaw": encoded(TWO_STEPS)}, unique("key")
    first, second = (alice.post("/run", body, idempotency_key=key) for _ in range(2))
    assert first.json == second.json


def test_root_runs_for_another_user(root: Caller, alice: Caller) -> None:
    run_id = start(root, username="alice")
    assert shown(alice, run_id)["username"] == "alice"


def test_runs_are_private(alice: Caller, bobby: Caller) -> None:
    run_id = start(alice)
    for answer in (
        bobby.get(f"/run/{run_id}"),
        bobby.get(f"/run/{run_id}/graph"),
        bobby.get(f"/run/{run_id}/timing"),
        bobby.get(f"/run/{run_id}/why-cached", step="first"),
        bobby.get(f"/log/run/{run_id}"),
        bobby.put(f"/run/{run_id}", action="stop"),
        bobby.put(f"/run/{run_id}", action="retry"),
        bobby.delete(f"/run/{run_id}"),
    ):
        assert (answer.status, answer.code) == (403, "AccessDenied")
    assert bobby.get("/run").json["runList"] == []
    assert bobby.get("/run", userFilter="alice").code == "AccessDenied"


@pytest.mark.parametrize("path", ["", "/graph", "/timing"])
def test_a_run_that_is_not_there(alice: Caller, path: str) -> None:
    answer = alice.get(f"/run/run-999999{path}")
    assert (answer.status, answer.code) == (404, "RunNotFound")
    assert answer.message == "resouceType[run] with ID[run-999999] not found"


def test_lists_are_filtered_and_paged(alice: Caller, root: Caller, unique: Unique) -> None:
    names = [unique("listed") for _ in range(3)]
    ids = [start(alice, name=name) for name in names][::-1]
    found = root.get("/run", userFilter="alice,nobody", nameFilter=",".join(names)).json
    assert [run["runID"] for run in found["runList"]] == ids
    assert set(found["runList"][0]) == BRIEF
    assert (found["isTruncated"], found["maxKeys"], "nextMarker" in found) == (False, 50, False)
    page = alice.get("/run", runFilter=",".join(ids), maxKeys=2).json
    assert [run["runID"] for run in page["runList"]] == ids[:2]
    rest = alice.get("/run", runFilter=",".join(ids), maxKeys=2, marker=page["nextMarker"]).json
    assert [run["runID"] for run in rest["runList"]] == ids[2:]
    assert not rest["isTruncated"]
    assert alice.get("/run", nameFilter=names[0], statusFilter="succeeded,failed").json["runList"] == []
    unknown = alice.get("/run", statusFilter="running,asleep")
    assert (unknown.code, "statusFilter[asleep]" in unknown.message) == ("InvalidURI", True)
    assert alice.get("/run", marker="zz").code == "InvalidMarker"


def test_stop_then_try_again_then_delete(served: Served, alice: Caller) -> None:
    run_id = start(alice)
    end(served, alice, run_id, "first")
    second = view_of(alice, run_id, "second")["jobID"]
    served.task_of(second)
    early = alice.delete(f"/run/{run_id}")
    assert (early.status, early.code) == (403, "ActionNotAllowed")
    assert alice.put(f"/run/{run_id}", action="retry").code == "ActionNotAllowed"
    assert alice.put(f"/run/{run_id}", action="burn").code == "InvalidArguments"
    assert alice.put(f"/run/{run_id}").code == "InvalidArguments"
    stopped = alice.put(f"/run/{run_id}", action="stop")
    assert (stopped.status, stopped.json) == (200, {"runID": run_id})
    assert ended(alice, run_id) == "terminated"
    assert alice.put(f"/run/{run_id}", {"stopForce": True}, action="stop").code == "ActionNotAllowed"
    again = alice.put(f"/run/{run_id}", action="retry")
    assert (again.status, set(again.json)) == (200, {"runID"})
    new_id = again.json["runID"]
    assert new_id != run_id
    end(served, alice, new_id, "second")
    assert ended(alice, new_id) == "succeeded"
    assert shown(alice, new_id)["retryOf"] == run_id
    removed = alice.call("DELETE", f"/run/{new_id}", {"checkCache": False})
    assert (removed.status, removed.body) == (200, b"")
    assert alice.get(f"/run/{new_id}").code == "RunNotFound"


def test_timing_and_the_critical_path(served: Served, alice: Caller) -> None:
    run_id = start(alice)
    end(served, alice, run_id, "first")
    end(served, alice, run_id, "second", exit_code=3)
    assert ended(alice, run_id) == "failed"
    timing = alice.get(f"/run/{run_id}/timing").json
    assert (timing["runID"], timing["status"]) == (run_id, "failed")
    assert timing["criticalPath"] == ["first", "second"]
    assert [step["key"] for step in timing["steps"] if step["critical"]] == ["first", "second"]
    for step in timing["steps"]:
        assert step["totalSeconds"] == pytest.approx(step["waitingSeconds"] + step["runningSeconds"], abs=0.002)
        assert step["totalSeconds"] <= timing["totalSeconds"] + 0.002


def test_a_check_tells_all_problems_and_stores_nothing(alice: Caller) -> None:
    before = alice.get("/run", maxKeys=1000).json["runList"]
    good = alice.post("/run/check", {"runYamlRaw": encoded(TWO_STEPS), "parameters": {"size": 9}})
    assert good.status == 200
    assert set(good.json) == {"valid", "problems", "plan", "graph"}
    assert (good.json["valid"], good.json["problems"]) == (True, [])
    assert [node["path"] for node in good.json["plan"]["nodes"]] == ["first", "second"]
    first, second = good.json["graph"]["nodes"]
    assert first["x"] + first["width"] < second["x"]
    bad = alice.post("/run/check", {"runYamlRaw": encoded(TWO_STEPS.replace("deps: first", "deps: nowhere"))})
    assert bad.status == 200
    assert (bad.json["valid"], bad.json["plan"], bad.json["graph"]) == (False, None, None)
    problem = bad.json["problems"][0]
    assert "wrong dep [nowhere]" in problem["message"]
    assert problem["path"].startswith("entry_points.second")
    assert problem["line"] in (9, 10)
    assert alice.post("/run/check", {"runYamlRaw": "%"}).code == "MalformedYaml"
    assert alice.get("/run", maxKeys=1000).json["runList"] == before


def test_an_image_that_no_step_would_run_in_is_refused_before_anything_runs(alice: Caller) -> None:
    before = alice.get("/run", maxKeys=1000).json["runList"]
    named = "docker_env: python:3.12\n" + TWO_STEPS.lstrip()
    refused = alice.post("/run", {"runYamlRaw": encoded(named)})
    assert (refused.status, "docker_env of step first" in refused.message) == (400, True)
    assert "local.images" in refused.message
    checked = alice.post("/run/check", {"runYamlRaw": encoded(named)}).json
    assert (checked["valid"], "[python:3.12] would not be used" in checked["problems"][0]["message"]) == (False, True)
    assert alice.post("/run/check", {"runYamlRaw": encoded(named), "disabled": "first,second"}).json["valid"]
    assert alice.get("/run", maxKeys=1000).json["runList"] == before


def test_a_run_in_its_json_form(served: Served, alice: Caller) -> None:
    body = {
        "name": "injson",
        "description": "as JSON",
        "entryPoints": {"only": {"command": "true", "env": {"A": "b"}}},
        "failureOptions": {"strategy": "continue"},
    }
    answer = alice.post("/runjson", body)
    assert answer.status == 201, answer.body
    run_id = answer.json["runID"]
    run = shown(alice, run_id)
    assert (run["name"], run["description"], run["failureOptions"]) == ("injson", "as JSON", {"strategy": "continue"})
    end(served, alice, run_id, "only")
    assert ended(alice, run_id) == "succeeded"
    assert alice.post("/runjson", {**body, "entryPionts": {}}).code == "InvalidPipeline"
    assert alice.post("/runjson", {**body, "entryPoints": 5}).code == "InvalidPipeline"
    assert alice.post("/runjson", {**body, "description": 5}).code == "MalformedJSON"


def test_logs_come_page_by_page(served: Served, alice: Caller) -> None:
    run_id = start(alice)
    job_id = view_of(alice, run_id, "first")["jobID"]
    task = served.task_of(job_id)
    served.runtime.write_log(task, b"".join(b"line %d\n" % number for number in range(1, 8)))  # type: ignore[arg-type]
    served.finish(job_id)

    def page(**query: object) -> tuple[list[str], bool]:
        answer = alice.get(f"/log/run/{run_id}", jobID=job_id, pageSize=3, **query)
        assert set(answer.json) == {"submitLog", "runLog", "runID"}
        (log,) = answer.json["runLog"]
        assert set(log) == {"jobID", "taskList", "name", "type", "eventList"}
        info = log["taskList"][0]["logInfo"]
        return info["logContent"].split("\n")[:-1], info["hasNextPage"]

    assert page(logFilePosition="begin") == (["line 1", "line 2", "line 3"], True)
    assert page(logFilePosition="begin", pageNo=3) == (["line 7"], False)
    assert page() == (["line 5", "line 6", "line 7"], True)
    assert page(pageNo=3) == (["line 1"], False)
    assert page(pageNo=4) == ([], False)
    story = alice.get(f"/log/run/{run_id}").json["submitLog"]
    assert f"run[{run_id}] was created by user[alice]" in story
    assert f"step[first] was started as job[{job_id}]" in story
    for query, code in (
        ({"pageSize": 101}, "InvalidURI"),
        ({"pageNo": 0}, "InvalidURI"),
        ({"logFilePosition": "middle"}, "InvalidURI"),
        ({"jobID": "job-elsewhere"}, "JobNotFound"),
    ):
        assert alice.get(f"/log/run/{run_id}", **query).code == code


def test_a_long_pipeline_is_taken_and_a_longer_body_is_not(alice: Caller) -> None:
    def sent(path: str, size: int) -> Answer:
        body = {"runYamlRaw": encoded(TWO_STEPS + "#" * size), "name": "long"}
        return alice.call("POST", path, raw=json.dumps(body).encode())

    assert sent("/run", 2 * 1024 * 1024).status == 201
    over = sent("/run", 5 * 1024 * 1024)
    assert (over.status, over.code) in ((400, "InvalidPipeline"), (413, "InvalidHTTPRequest"))
    assert sent("/run", 8 * 1024 * 1024).status == 413
    assert sent("/job/single", 2 * 1024 * 1024).status == 413, "others keep their limit"
