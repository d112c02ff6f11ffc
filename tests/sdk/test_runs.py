"""The client's calls about runs over real HTTP: what is sent, what is made of the answers, how an end is waited for."""

from __future__ import annotations

import base64
import inspect
from pathlib import Path
from typing import Any

import pytest

from paddleflow import Client
from paddleflow.domain.errors import NotFound
from paddleflow.sdk.errors import InvalidError, UnavailableError
from paddleflow.sdk.run_views import DagInfo, JobInfo
from tests.sdk.recorded_server import Answer, Asked, RecordedServer, error, event_bytes, ok
from tests.sdk.run_answers import ARTIFACT, CACHE, brief_json, dag_json, run_json, step_json

SIGNATURES = {
    "create_run": "fs_name, username, run_name, desc, run_yaml_path, run_yaml_raw, pipeline_id, pipeline_version_id, "
    "param, disabled, docker_env, failure_options",
    "list_run": "fs_name, username, run_id, run_name, status, maxsize, marker",
    "show_run": "run_id",
    "stop_run": "run_id, force",
    "retry_run": "run_id",
    "delete_run": "run_id, check_cache",
    "list_artifact": "user_filter, fs_filter, run_filter, type_filter, path_filter, maxkeys, marker",
    "list_cache": "user_filter, fs_filter, run_filter, max_keys, marker",
    "show_cache": "cache_id",
    "delete_cache": "cache_id",
    "show_log": "run_id, job_id, page_size, page_no, log_file_position",
}


@pytest.mark.parametrize(("method", "arguments"), SIGNATURES.items())
def test_methods_take_the_arguments_scripts_pass(method: str, arguments: str) -> None:
    names = list(inspect.signature(getattr(Client, method)).parameters)
    assert ", ".join(names[1:]) == arguments


EMPTY: list[tuple[str, tuple[Any, ...], str]] = [
    ("show_run", ("",), "InvalidRunID"),
    ("stop_run", (" ",), "InvalidRunID"),
    ("retry_run", ("",), "InvalidRunID"),
    ("delete_run", ("",), "InvalidRunID"),
    ("run_graph", ("",), "InvalidRunID"),
    ("show_log", ("",), "InvalidRunID"),
    ("list_run", (" ",), "InvalidFSName"),
    ("list_run", (None, " "), "InvalidUserName"),
    ("list_run", (None, None, " "), "InvalidRunID"),
    ("list_run", (None, None, None, " "), "InvalidRunName"),
    ("create_run", ("data", " "), "InvalidUserName"),
    ("create_run", ("data", None, " "), "InvalidRunName"),
    ("show_cache", ("",), "InvalidCacheID"),
    ("delete_cache", ("",), "InvalidCacheID"),
    ("why_cached", ("run-000001", ""), "InvalidStep"),
    ("artifact_lineage", ("", "x"), "InvalidFSName"),
    ("download_artifact", ("run-000001", ""), "InvalidPath"),
]


@pytest.mark.parametrize(("method", "arguments", "code"), EMPTY)
def test_what_is_empty_is_refused_before_it_is_sent(
    server: RecordedServer, client: Client, method: str, arguments: tuple[Any, ...], code: str
) -> None:
    with pytest.raises(InvalidError) as caught:
        getattr(client, method)(*arguments)
    assert caught.value.get_code() == code
    assert [one.path for one in server.asked] == ["/login"]


def test_create_run_sends_the_text_and_only_what_was_given(server: RecordedServer, client: Client) -> None:
    server.on("POST", "/run", ok({"runID": "run-000001"}, 201))
    assert client.create_run("data", run_yaml_raw=b"name: demo\n", param={"lr": 0.1}) == (True, "run-000001")
    asked = server.calls("POST", "/run")[0]
    assert asked.body == {
        "fsName": "data",
        "runYamlRaw": base64.b64encode(b"name: demo\n").decode(),
        "parameters": {"lr": 0.1},
    }
    assert asked.headers["idempotency-key"]


@pytest.mark.parametrize("disabled", ["a,b.c", ["a", "b.c"]])
@pytest.mark.parametrize("failure", ["continue", {"strategy": "continue"}])
def test_create_run_takes_names_as_a_list_or_a_text(
    server: RecordedServer, client: Client, disabled: Any, failure: Any
) -> None:
    server.on("POST", "/run", ok({"runID": "run-000001"}, 201))
    client.create_run(pipeline_id="ppl-000001", disabled=disabled, failure_options=failure)
    assert server.asked[-1].body == {
        "pipelineID": "ppl-000001",
        "disabled": "a,b.c",
        "failureOptions": {"strategy": "continue"},
    }


def test_create_run_wants_parameters_by_name(client: Client) -> None:
    with pytest.raises(InvalidError) as caught:
        client.create_run("data", param="lr=1")
    assert caught.value.get_code() == "InvalidParam"


def test_check_run_asks_with_the_same_body(server: RecordedServer, client: Client) -> None:
    told = {"valid": False, "problems": [{"message": "no", "path": "", "line": 1}], "plan": None, "graph": None}
    server.on("POST", "/run/check", ok(told))
    assert client.check_run(fs_name="data", run_yaml_raw="name: demo") == (True, told)
    assert server.asked[-1].body["fsName"] == "data"


def test_list_run(server: RecordedServer, client: Client) -> None:
    server.on("GET", "/run", ok({"runList": [brief_json()], "nextMarker": "m"}))
    _, page = client.list_run("data", run_id="run-000001,run-000002", status="running", marker="x")
    (run,) = page["runList"]
    assert (run.run_id, run.fs_name, run.description, run.activate_time) == (
        "run-000001",
        "data",
        "first try",
        "2024-01-01 00:00:01",
    )
    assert page["nextMarker"] == "m"
    assert server.asked[-1].query == {
        "fsFilter": "data",
        "runFilter": "run-000001,run-000002",
        "statusFilter": "running",
        "maxKeys": "100",
        "marker": "x",
    }


def test_show_run_tells_steps_from_dags(server: RecordedServer, client: Client) -> None:
    inner = {"train": [step_json("train", key="sub.train[0]"), step_json("train", "failed", key="sub.train[1]")]}
    runtime = {"load": [step_json("load")], "sub": [dag_json("sub", inner)], "none": []}
    server.on("GET", "/run/run-000001", ok(run_json(runtime=runtime, postProcess={"notify": step_json("notify")})))
    _, run = client.show_run("run-000001")
    (load,), (sub,) = run.runtime["load"], run.runtime["sub"]
    assert isinstance(load, JobInfo)
    assert isinstance(sub, DagInfo)
    assert run.runtime["none"] == []
    assert [step.status for step in sub.entry_points["train"]] == ["succeeded", "failed"]
    assert load.get_dict()["jobID"] == "job-run-000001-load-1234"
    whole = sub.get_dict()
    assert (whole["dagID"], whole["entryPoints"]["train"][1]["status"]) == ("dag-run-000001-1", "failed")
    assert run.post_process["notify"].step_name == "notify"


def test_stop_retry_and_delete(server: RecordedServer, client: Client) -> None:
    server.on("PUT", "/run/run-000001", ok({"runID": "run-000002"}))
    server.on("DELETE", "/run/run-000001", ok())
    assert client.stop_run("run-000001", force=True) == (True, None)
    assert (server.asked[-1].query, server.asked[-1].body) == ({"action": "stop"}, {"stopForce": True})
    assert client.retry_run("run-000001") == (True, "run-000002")
    assert server.asked[-1].query == {"action": "retry"}
    assert client.delete_run("run-000001") == (True, None)
    assert server.asked[-1].body is None
    client.delete_run("run-000001", check_cache=False)
    assert server.asked[-1].body == {"checkCache": False}


def test_artifacts_keep_step_and_type_apart(server: RecordedServer, client: Client) -> None:
    server.on("GET", "/artifact", ok({"artifactEventList": [ARTIFACT]}))
    _, page = client.list_artifact(run_filter="run-000001", type_filter="output")
    (one,) = page["artifactList"]
    assert (one.step, one.type, one.artifact_name) == ("load", "output", "out")
    assert page["nextMarker"] is None
    server.on("GET", "/artifact/lineage", ok({"madeBy": [ARTIFACT], "readBy": []}))
    _, lineage = client.artifact_lineage("data", "x/y")
    assert ([one.run_id for one in lineage["madeBy"]], lineage["readBy"]) == (["run-000001"], [])


def test_cache(server: RecordedServer, client: Client) -> None:
    server.on("GET", "/runCache", ok({"runCacheList": [CACHE], "nextMarker": "m"}))
    server.on("GET", "/runCache/cch-000001", ok(CACHE))
    server.on("DELETE", "/runCache/cch-000001", ok())
    _, page = client.list_cache(fs_filter="data", max_keys=5)
    assert ([one.cache_id for one in page["runCacheList"]], page["nextMarker"]) == (["cch-000001"], "m")
    assert client.show_cache("cch-000001")[1] == page["runCacheList"][0]
    assert client.delete_cache("cch-000001") == (True, None)


def test_show_log_lists_every_task(server: RecordedServer, client: Client) -> None:
    def task(name: str) -> dict[str, Any]:
        return {"taskID": name, "logInfo": {"logContent": f"hi from {name}", "hasNextPage": True, "truncated": False}}

    answer = {
        "submitLog": "began\n",
        "runLog": [{"jobID": "job-1", "taskList": [task("a"), task("b")]}, {"jobID": "job-2", "taskList": []}],
        "runID": "run-000001",
    }
    server.on("GET", "/log/run/run-000001", ok(answer))
    _, page = client.show_log("run-000001", page_size=10, page_no=2, log_file_position="begin")
    assert page["submitLog"] == "began\n"
    assert [(one.runid, one.jobid, one.taskid, one.pageno, one.pagesize) for one in page["runLog"]] == [
        ("run-000001", "job-1", "a", 2, 10),
        ("run-000001", "job-1", "b", 2, 10),
    ]
    assert server.asked[-1].query == {"pageSize": "10", "pageNo": "2", "logFilePosition": "begin"}


def events_of(server: RecordedServer, stream: bytes) -> None:
    def answer(asked: Asked) -> Answer:
        return ok({"eventList": [], "lastSeq": 7}) if asked.query.get("follow") == "false" else Answer(body=stream)

    server.on("GET", "/event", answer)


def test_wait_run_hears_of_the_end(server: RecordedServer, client: Client) -> None:
    events_of(server, event_bytes(8, "RunFinished", "run-000001"))
    server.on("GET", "/run/run-000001", ok(run_json("running")), ok(run_json("succeeded")))
    _, run = client.wait_run("run-000001", timeout=60)
    assert run.status == "succeeded"
    asked = next(one for one in server.calls("GET", "/event") if "after" in one.query)
    assert asked.query == {"subject": "run-000001", "kinds": "RunFinished,RunDeleted", "after": "7"}


def test_wait_run_of_an_ended_run_does_not_listen(server: RecordedServer, client: Client) -> None:
    events_of(server, b"")
    server.on("GET", "/run/run-000001", ok(run_json("failed")))
    assert client.wait_run("run-000001")[1].status == "failed"
    assert not [one for one in server.calls("GET", "/event") if "after" in one.query]


def test_wait_run_gives_up(server: RecordedServer, client: Client) -> None:
    events_of(server, b": nothing happens\n\n")
    server.on("GET", "/run/run-000001", ok(run_json("running")))
    with pytest.raises(UnavailableError) as caught:
        client.wait_run("run-000001", timeout=0.05)
    assert caught.value.get_code() == "Timeout"
    assert "still running" in caught.value.message


def test_wait_run_tells_when_the_run_is_gone(server: RecordedServer, client: Client) -> None:
    events_of(server, event_bytes(8, "RunDeleted", "run-000001"))
    server.on("GET", "/run/run-000001", ok(run_json("running")), error(404, "RunNotFound", "RunID not found"))
    with pytest.raises(NotFound):
        client.wait_run("run-000001", timeout=60)


def test_wait_run_raises_what_the_stream_raises(server: RecordedServer, client: Client) -> None:
    def answer(asked: Asked) -> Answer:
        if asked.query.get("follow") == "false":
            return ok({"eventList": [], "lastSeq": 7})
        return error(403, "AccessDenied", "no")

    server.on("GET", "/event", answer)
    server.on("GET", "/run/run-000001", ok(run_json("running")))
    with pytest.raises(Exception, match="AccessDenied"):
        client.wait_run("run-000001", timeout=60)


def test_watch_run_looks_when_the_run_or_its_jobs_move(server: RecordedServer, client: Client) -> None:
    stream = event_bytes(8, "JobStarted", "job-elsewhere") + event_bytes(9, "JobStarted", "job-run-000001-load-1")
    events_of(server, stream)
    server.on("GET", "/run/run-000001", ok(run_json("pending")), ok(run_json("running")), ok(run_json("succeeded")))
    assert [run.status for run in client.watch_run("run-000001")] == ["pending", "running", "succeeded"]


def test_download(server: RecordedServer, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = bytes(range(256)) * 1000
    server.on("GET", "/artifact/download", Answer(body=content, headers={"content-type": "application/octet-stream"}))
    told: list[tuple[int, int | None]] = []
    target = tmp_path / "copy"
    _, written = client.download_artifact("run-000001", "a/out", target, lambda *seen: told.append(seen))
    assert (written, target.read_bytes()) == (str(target), content)
    assert told[-1] == (len(content), len(content))
    assert server.asked[-1].query == {"runID": "run-000001", "path": "a/out"}

    monkeypatch.chdir(tmp_path)
    server.on("GET", "/artifact/download", Answer(body=b"tar", headers={"content-type": "application/x-tar"}))
    assert client.download_artifact("run-000001", "a/models/")[1] == "models.tar"
    assert client.download_artifact("run-000001", "a/..")[1] == "artifact.tar"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["artifact.tar", "copy", "models.tar"]


def test_download_leaves_nothing_half_done(server: RecordedServer, client: Client, tmp_path: Path) -> None:
    server.on("GET", "/artifact/download", Answer(body=b"part", lose_connection=True))
    with pytest.raises(UnavailableError):
        client.download_artifact("run-000001", "a/out", tmp_path / "copy")
    assert list(tmp_path.iterdir()) == []
    server.on("GET", "/artifact/download", Answer(body=b"whole"))
    with pytest.raises(InvalidError) as caught:
        client.download_artifact("run-000001", "a/out", tmp_path / "missing" / "copy")
    assert caught.value.get_code() == "InvalidTarget"


def test_download_of_an_empty_file(server: RecordedServer, client: Client, tmp_path: Path) -> None:
    server.on("GET", "/artifact/download", Answer(body=b""))
    client.download_artifact("run-000001", "a/out", tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == b""
