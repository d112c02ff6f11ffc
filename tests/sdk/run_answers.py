"""Answers about runs in the shapes of the wire, for tests of the client and of the command line."""

from __future__ import annotations

from typing import Any


def step_json(name: str, status: str = "succeeded", **more: Any) -> dict[str, Any]:
    return {
        "jobID": f"job-run-000001-{name}-1234",
        "name": f"run-000001-{name}",
        "type": "step",
        "stepName": name,
        "parentDagID": "",
        "command": "echo hi",
        "parameters": {"lr": 0.1},
        "env": {"PF_RUN_ID": "run-000001"},
        "extraFS": [],
        "startTime": "2024-01-01 00:00:01",
        "endTime": "2024-01-01 00:00:04",
        "status": status,
        "deps": "",
        "dockerEnv": "",
        "artifacts": {"input": {}, "output": {}},
        "cache": {"enable": False, "maxExpiredTime": "-1", "fsScope": []},
        "jobMessage": "",
        "cacheRunID": "",
        "cacheJobID": "",
        "key": name,
        "loopItem": None,
        "retries": 0,
        **more,
    }


def dag_json(name: str, entry_points: dict[str, Any], status: str = "succeeded", **more: Any) -> dict[str, Any]:
    return {
        "id": "dag-run-000001-1",
        "name": f"dag-run-000001-{name}",
        "type": "dag",
        "dagName": name,
        "parentDagID": "",
        "deps": "",
        "parameters": {},
        "artifacts": {"input": {}, "output": {}},
        "startTime": "2024-01-01 00:00:01",
        "endTime": "2024-01-01 00:00:04",
        "status": status,
        "message": "",
        "entryPoints": entry_points,
        "key": name,
        "loopItem": None,
        **more,
    }


def node_json(path: str, status: str, items: dict[str, int] | None = None, **more: Any) -> dict[str, Any]:
    parent, _, name = path.rpartition(".")
    return {
        "id": path,
        "name": name,
        "type": "step",
        "status": status,
        "x": 0,
        "y": 0,
        "width": 180,
        "height": 48,
        "layer": 0,
        "row": 0,
        "parent": parent,
        "startTime": "",
        "endTime": "",
        "items": {status: 1} if items is None else items,
        **more,
    }


def graph_json(nodes: list[dict[str, Any]], *edges: tuple[str, str]) -> dict[str, Any]:
    drawn = [{"source": source, "target": target} for source, target in edges]
    return {"nodes": nodes, "edges": drawn, "width": 0, "height": 0}


def brief_json(status: str = "running", **more: Any) -> dict[str, Any]:
    return {
        "runID": "run-000001",
        "name": "demo",
        "source": "abc",
        "username": "root",
        "fsName": "data",
        "description": "first try",
        "scheduleID": "",
        "runMsg": "",
        "status": status,
        "scheduledTime": "",
        "createTime": "2024-01-01 00:00:00",
        "activateTime": "2024-01-01 00:00:01",
        "updateTime": "2024-01-01 00:00:02",
        **more,
    }


def run_json(status: str = "running", **more: Any) -> dict[str, Any]:
    return {
        **brief_json(status),
        "fsOptions": {"mainFS": {"name": "data"}},
        "parameters": {"lr": 0.1},
        "runYaml": "name: demo\n",
        "runtime": {"load": [step_json("load")]},
        "postProcess": {},
        "failureOptions": {"strategy": "fail_fast"},
        "dockerEnv": "",
        "disabled": "",
        "runCachedIDs": "",
        "retryOf": "",
        "finishTime": "2024-01-01 00:00:10" if status in ("succeeded", "failed", "terminated") else "",
        "graph": graph_json([node_json("load", "succeeded")]),
        **more,
    }


def timing_json(*steps: dict[str, Any], total: float = 9.0) -> dict[str, Any]:
    return {
        "runID": "run-000001",
        "status": "succeeded",
        "totalSeconds": total,
        "steps": list(steps),
        "criticalPath": [step["key"] for step in steps if step["critical"]],
    }


def timed_json(key: str, waiting: float, running: float, **more: Any) -> dict[str, Any]:
    return {
        "key": key,
        "name": key,
        "type": "step",
        "status": "succeeded",
        "startTime": "2024-01-01 00:00:01",
        "endTime": "2024-01-01 00:00:04",
        "waitingSeconds": waiting,
        "runningSeconds": running,
        "totalSeconds": waiting + running,
        "reused": False,
        "critical": False,
        **more,
    }


ARTIFACT = {
    "runID": "run-000001",
    "fsname": "data",
    "username": "root",
    "artifactPath": ".pipeline/run-000001/demo/load-0-abc/out",
    "step": "load",
    "jobID": "job-run-000001-load-1234",
    "type": "output",
    "artifactName": "out",
    "meta": "",
    "createTime": "2024-01-01 00:00:04",
    "updateTime": "2024-01-01 00:00:04",
}
CACHE = {
    "cacheID": "cch-000001",
    "firstFp": "first",
    "secondFp": "second",
    "runID": "run-000001",
    "source": "abc",
    "step": "load",
    "jobID": "job-1",
    "fsname": "data",
    "username": "root",
    "expiredTime": "-1",
    "strategy": "conservative",
    "custom": "",
    "createTime": "2024-01-01 00:00:04",
    "updateTime": "2024-01-01 00:00:05",
}
PIPELINE = {
    "pipelineID": "ppl-000001",
    "name": "demo",
    "desc": "tries",
    "username": "root",
    "createTime": "2024-01-01 00:00:00",
    "updateTime": "2024-01-01 00:00:01",
}
VERSION = {
    "pipelineVersionID": "2",
    "pipelineID": "ppl-000001",
    "fsName": "data",
    "yamlPath": "./run.yaml",
    "pipelineYaml": "name: demo\n",
    "username": "root",
    "createTime": "2024-01-01 00:00:00",
    "updateTime": "2024-01-01 00:00:01",
}
SCHEDULE = {
    "scheduleID": "schedule-000001",
    "name": "nightly",
    "desc": "",
    "pipelineID": "ppl-000001",
    "pipelineVersionID": "1",
    "username": "root",
    "fsConfig": {"username": "root"},
    "crontab": "0 3 * * *",
    "timeZone": "Europe/Berlin",
    "options": {"catchup": False, "expireInterval": 0, "concurrency": 1, "concurrencyPolicy": "skip"},
    "startTime": "",
    "endTime": "",
    "createTime": "2024-01-01 00:00:00",
    "updateTime": "2024-01-01 00:00:01",
    "nextRunTime": "2024-01-02 03:00:00",
    "scheduleMsg": "",
    "status": "running",
}
