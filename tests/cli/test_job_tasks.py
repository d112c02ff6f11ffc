"""Jobs of several tasks at the command line: submitted without JSON, followed with every task in its own lines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from paddleflow.cli.commands.what_if import new_nodes, queue_change
from tests.cli.conftest import Paddleflow
from tests.sdk.recorded_server import Asked, RecordedServer, event_bytes, job_json, ok


def test_run_spells_the_whole_job(
    server: RecordedServer, paddleflow: Paddleflow, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    server.on("POST", "/job/distributed", ok({"id": "job-1"}))
    monkeypatch.chdir(tmp_path)
    line = "job run -F paddle -W 2:4 --ps 1 -c 2 -q q -n train --retries 3 --deadline 60 -e A=1 -d -- python t.py -W x"
    assert paddleflow(*line.split()) == (0, "job-1\n", "")
    member = {"flavour": {"cpu": "2", "mem": "1Gi"}, "env": {"A": "1"}}
    assert server.asked[-1].body.pop("hostEnv")["PF_WORK_DIR"] == str(tmp_path)
    assert server.asked[-1].body == {
        "framework": "paddle",
        "members": [
            {"role": "pserver", "replicas": 1, "command": "python t.py -W x", **member},
            {"role": "worker", "replicas": 4, "command": "python t.py -W x", **member},
        ],
        "elastic": {"role": "worker", "min": 2, "max": 4},
        "name": "train",
        "schedulingPolicy": {"queue": "q"},
        "runPolicy": {"retries": 3, "deadlineSeconds": 60.0},
    }


@pytest.mark.parametrize(("framework", "roles"), [("mpi", ["master", "worker"]), ("spark", ["driver", "executor"])])
def test_one_task_leads_where_the_framework_has_it_so(
    server: RecordedServer, paddleflow: Paddleflow, framework: str, roles: list[str]
) -> None:
    server.on("POST", "/job/distributed", ok({"id": "job-1"}))
    assert paddleflow("job", "run", "-F", framework, "-W", "3", "-d", "--workdir", "/w", "--", "go")[0] == 0
    leader, follower = server.asked[-1].body["members"]
    assert [leader["role"], follower["role"]] == roles
    assert (leader["replicas"], leader["command"]) == (1, "go")
    assert (follower["replicas"], follower.get("command")) == (3, None)
    assert paddleflow("job", "run", "-F", framework, "--ps", "1", "-d", "--", "go")[0] == 1


@pytest.mark.parametrize("workers", ["0", "x", "4:2", "2:", ":2", "2:x", "-1"])
def test_workers_are_a_number_or_two(paddleflow: Paddleflow, workers: str) -> None:
    code, _, err = paddleflow("job", "run", "-F", "paddle", f"--workers={workers}", "--", "true")
    assert code == 2
    assert workers in err


def _team(status: str, *names: str, phases: dict[str, int] | None = None) -> dict[str, Any]:
    runtimes = [
        {"name": f"job-1-{name}", "role": name.split("-")[0], "index": int(name.split("-")[1]), "status": "{}"}
        for name in names
    ]
    counts = {"phase": status, **(phases or {"running": len(names)})}
    return job_json(status, framework="paddle", distributedRuntime={"status": json.dumps(counts), "runtimes": runtimes})


def _logs(server: RecordedServer, said: dict[str, bytes]) -> None:
    def answer(asked: Asked) -> Any:
        content = said[asked.query.get("task", "")]
        start = int(asked.query["start"])
        return ok(content[start:] if -len(content) <= start else content)

    server.on("GET", "/job/job-1/log", answer)


def _follow(server: RecordedServer, *shown: dict[str, Any]) -> None:
    def events(asked: Asked) -> Any:
        if asked.query.get("follow") == "false":
            return ok({"eventList": [], "lastSeq": 0})
        return ok(event_bytes(int(asked.query["after"]) + 1, "JobUpdated", "job-1"))

    server.on("GET", "/event", events)
    server.on("GET", "/job/job-1", *map(ok, shown))
    server.on("GET", "/job/job-1/why", ok({"jobID": "job-1", "status": "init", "sentence": "it waits"}))


def test_watch_tells_the_tasks_apart(server: RecordedServer, paddleflow: Paddleflow) -> None:
    grown = _team("running", "worker-0", "worker-1", "worker-2") | {"message": "grew to 3"}
    _follow(server, job_json("init"), _team("running", "worker-0", "worker-1"), grown, grown | {"status": "succeeded"})
    _logs(server, {"job-1-worker-0": b"a\nb", "job-1-worker-1": b"c\n", "job-1-worker-2": b"late\n"})
    code, out, err = paddleflow("job", "watch", "job-1")
    assert code == 0
    assert sorted(out.splitlines()) == ["[worker-0] a", "[worker-0] b", "[worker-1] c", "[worker-2] late"]
    assert "job-1 running: grew to 3" in err
    asked = [one.query["task"] for one in server.calls("GET", "/job/job-1/log")]
    assert sorted(asked) == ["job-1-worker-0", "job-1-worker-1", "job-1-worker-2"], "each log is followed once"


def test_logs_of_every_task_or_of_one(server: RecordedServer, paddleflow: Paddleflow) -> None:
    tasks = ("worker-0", "worker-1", "ps-0")
    server.on("GET", "/job/job-1", ok(_team("running", *tasks, phases={"running": 1, "succeeded": 1})))
    _logs(server, {"job-1-worker-0": b"a\nb\n", "job-1-worker-1": b"c\nd\n", "job-1-ps-0": b"old\n"})
    both = "[worker-0] a\n[worker-0] b\n[worker-1] c\n[worker-1] d\n"
    assert paddleflow("job", "logs", "job-1") == (0, both, ""), "tasks of earlier attempts are not among them"
    assert paddleflow("job", "logs", "job-1", "--tail", "1")[1] == "[worker-0] b\n[worker-1] d\n"
    assert sorted(paddleflow("job", "logs", "job-1", "-f")[1].splitlines()) == both.splitlines()
    assert paddleflow("job", "logs", "job-1", "--task", "worker-1")[1] == "c\nd\n"
    assert paddleflow("job", "logs", "job-1", "--task", "ps-0")[1] == "old\n"
    assert paddleflow("job", "logs", "job-1", "--task", "job-1-worker-0", "--tail", "1")[1] == "b\n"


def test_a_crowd_is_followed_in_part(server: RecordedServer, paddleflow: Paddleflow) -> None:
    names = [f"worker-{n}" for n in range(70)]
    server.on("GET", "/job/job-1", ok(_team("running", *names)))
    _logs(server, {f"job-1-{name}": b"x\n" for name in names})
    code, out, err = paddleflow("job", "logs", "job-1", "-f")
    assert (code, out.count("\n")) == (0, 64)
    assert "64 of 70 tasks" in err


def test_why_shows_the_numbers_as_tables(server: RecordedServer, paddleflow: Paddleflow) -> None:
    ahead = [{"jobID": "job-0", "cpu": "2"}, {"jobID": "job-00", "gpu": 1}]
    details = {"kind": "NoRoom", "asked": "4", "ahead": ahead, "behind": ["a", "b"], "nodes": []}
    server.on(
        "GET", "/job/job-1/why",
        ok({"jobID": "job-1", "status": "init", "sentence": "it waits: no room", "details": details}),
    )  # fmt: skip
    assert paddleflow("job", "why", "job-1")[1].splitlines() == [
        "job-1 waits: no room",
        "what    value",
        "------  -------",
        "kind    NoRoom",
        "asked   4",
        "behind  a, b",
        "",
        "ahead:",
        "jobID      cpu    gpu",
        "-------  -----  -----",
        "job-0        2",
        "job-00              1",
    ]
    told = json.loads(paddleflow("--output", "json", "job", "why", "job-1")[1])
    assert told[0]["details"] == details


def test_eta(server: RecordedServer, paddleflow: Paddleflow) -> None:
    times = {"low": "2026-01-01 10:00:00", "median": "2026-01-01 11:00:00", "high": "2026-01-01 12:00:00"}
    told = {"jobID": "job-1", "status": "init", "confidence": 0.8, "sentence": "it starts around eleven", **times}
    server.on("GET", "/job/job-1/eta", ok(told))
    code, out, _ = paddleflow("job", "eta", "job-1")
    assert (code, out.splitlines()[0]) == (0, "job-1 starts around eleven")
    assert "| job-1    | init     | 2026-01-01 10:00:00 | 2026-01-01 11:00:00 | 2026-01-01 12:00:00 |" in out
    assert json.loads(paddleflow("--output", "json", "job", "eta", "job-1")[1])[0]["confidence"] == "80%"
    server.on("GET", "/job/job-1/eta", ok({**told, "low": "", "median": "", "high": "", "sentence": "it runs"}))
    assert paddleflow("job", "eta", "job-1") == (0, "job-1 runs\n", "")


def test_what_if(server: RecordedServer, paddleflow: Paddleflow, tmp_path: Path) -> None:
    answer = {
        "sentence": "1 job would start",
        "start": [{"jobID": "job-1", "nodes": ["n1"]}],
        "shrink": [{"jobID": "job-2", "from": 4, "to": 2}],
        "grow": [],
        "evict": [],
        "job": {"wouldStart": False, "sentence": "it would wait", "nodes": [], "details": {}},
    }
    server.on("POST", "/queue/whatIf", ok(answer))
    file = tmp_path / "job.json"
    file.write_text('{"command": "true"}')
    line = f"queue what-if --queue q:maxcpu=8,weight=2 --add-nodes 2:cpu=4 --remove-node n9 --job {file}"
    code, out, _ = paddleflow(*line.split())
    assert server.asked[-1].body == {
        "queues": [{"name": "q", "maxResources": {"cpu": "8"}, "weight": 2}],
        "nodes": [{"count": 2, "cpu": "4"}],
        "removeNodes": ["n9"],
        "job": {"command": "true"},
    }
    assert code == 0
    assert out.startswith("1 job would start\nthe job: it would wait\n\nstart:\n")
    assert "evict" not in out
    assert json.loads(paddleflow("--output", "json", *line.split())[1]) == answer
    file.write_text("[]")
    assert paddleflow(*line.split())[0] == 2


@pytest.mark.parametrize(
    ("text", "change"),
    [
        ("q:maxcpu=8", {"name": "q", "maxResources": {"cpu": "8"}}),
        ("q:minmem=8Gi,maxmemory=9Gi", {"name": "q", "minResources": {"mem": "8Gi"}, "maxResources": {"mem": "9Gi"}}),
        ("q:max.nvidia.com/gpu=8", {"name": "q", "maxResources": {"scalarResources": {"nvidia.com/gpu": "8"}}}),
        ("q:weight=3", {"name": "q", "weight": 3}),
    ],
)
def test_queue_changes(text: str, change: dict[str, Any]) -> None:
    assert queue_change(text) == change


@pytest.mark.parametrize(
    ("text", "nodes"),
    [
        ("2:cpu=8,mem=1Gi", {"count": 2, "cpu": "8", "mem": "1Gi"}),
        ("1:nvidia.com/gpu=8,label.zone=a", {"count": 1, "scalarResources": {"nvidia.com/gpu": "8"},
                                             "labels": {"zone": "a"}}),
        ("1:cpu=1,cluster=c", {"count": 1, "cpu": "1", "clusterName": "c"}),
    ],
)  # fmt: skip
def test_new_nodes(text: str, nodes: dict[str, Any]) -> None:
    assert new_nodes(text) == nodes


@pytest.mark.parametrize(
    "words",
    [
        "--queue q", "--queue q:", "--queue :weight=1", "--queue q:weight=x", "--queue q:cpu=1", "--queue q:max",
        "--add-nodes 2", "--add-nodes x:cpu=1", "--add-nodes 1:cpu",
    ],
)  # fmt: skip
def test_bad_questions_are_usage_errors(paddleflow: Paddleflow, words: str) -> None:
    code, _, err = paddleflow("queue", "what-if", *words.split())
    assert code == 2
    assert words.split(maxsplit=1)[0] in err
