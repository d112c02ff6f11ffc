"""The client over real HTTP: what it sends, what it makes of the answers, and what it does when they fail."""

from __future__ import annotations

import dataclasses
import inspect
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from paddleflow import Client, PaddleFlowSDKException
from paddleflow.domain.errors import NotFound
from paddleflow.sdk import transport
from paddleflow.sdk.errors import (
    DuplicateError,
    InvalidError,
    UnauthenticatedError,
    UnavailableError,
    UnreachableError,
)
from paddleflow.sdk.replays import MetricsInfo
from paddleflow.sdk.surroundings import surroundings
from tests.sdk.recorded_server import Answer, RecordedServer, error, event_bytes, job_json, lost, ok, running
from tests.waiting import DEADLINE_S

SIGNATURES = {
    "login": "user_name, password",
    "get_version": "",
    "add_user": "user_name, password",
    "del_user": "user_name",
    "update_password": "name, password",
    "list_user": "maxsize",
    "add_queue": "name, namespace, clusterName, maxResources, minResources, schedulingPolicy, location, quotaType, "
    "weight, parent",
    "update_queue": "queuename, maxResources, minResources, schedulingPolicy, location, weight, parent",
    "del_queue": "queuename",
    "grant_queue": "username, queuename",
    "ungrant_queue": "username, queuename",
    "show_queue_grant": "username, maxsize",
    "list_queue": "maxsize, marker",
    "show_queue": "queuename",
    "list_flavour": "maxsize, marker, clustername, key",
    "show_flavour": "name",
    "add_flavour": "name, cpu, memory, scalar_resources, cluster_name",
    "update_flavour": "name, cpu, memory, scalar_resources, cluster_name",
    "del_flavour": "name",
    "add_fs": "fsname, url, username, properties",
    "show_fs": "fsname, username",
    "list_fs": "username, maxsize",
    "delete_fs": "fsname, username",
    "update_fs": "fsname, url, username, properties",
    "mount": "fsname, path, mountOptions, username",
    "create_cache": "fsname, options, username",
    "update_fs_cache": "fsname, params, username",
    "delete_fs_cache": "fsname, username",
    "get_fs_cache": "fsname, username",
    "add_link": "fsname, fspath, url, username, properties",
    "delete_link": "fsname, fspath, username",
    "list_link": "fsname, username, maxsize",
    "show_link": "fsname, fspath, username",
    "create_cluster": "clustername, endpoint, clustertype, credential, description, source, setting, status, "
    "namespacelist, version",
    "list_cluster": "maxkeys, marker, clustername, clusterstatus",
    "show_cluster": "clustername",
    "delete_cluster": "clustername",
    "list_cluster_resource": "clustername",
    "list_cluster_resource_v2": "page_no, page_size, clusternames, queuenaame, labels",
    "create_job": "job_type, job_request",
    "show_job": "jobid",
    "list_job": "status, timestamp, start_time, queue, labels, maxkeys, marker",
    "update_job": "jobid, priority, labels, annotations",
    "stop_job": "jobid",
    "delete_job": "jobid",
    "show_log_by_limit": "job_id, name, namespace, cluster_name, read_from_tail, line_limit, size_limit, type, "
    "framework",
    "get_statistics": "jobid, runid",
    "get_statistics_detail": "jobid, start, end, step, runid",
    "get_cardtime_by_queue_name": "queue_names, start_time, end_time",
}


@pytest.mark.parametrize(("method", "arguments"), SIGNATURES.items())
def test_methods_take_the_arguments_scripts_pass(method: str, arguments: str) -> None:
    names = list(inspect.signature(getattr(Client, method)).parameters)
    assert ", ".join(names[1:]) == arguments


def test_import_is_lazy() -> None:
    code = (
        "import sys, paddleflow; assert 'httpx' not in sys.modules and 'paddleflow.sdk.client' not in sys.modules;"
        "paddleflow.Client; assert 'httpx' not in sys.modules and 'pydantic' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("host", "user", "password", "code"),
    [
        ("", "root", "paddleflow", "InvalidServer"),
        ("h", "", "paddleflow", "InvalidUser"),
        ("h", " ", "paddleflow", "InvalidUser"),
        ("h", "root", "", "InvalidPassWord"),
    ],
)
def test_empty_credentials_are_refused(host: str, user: str, password: str, code: str) -> None:
    with pytest.raises(InvalidError) as caught:
        Client(host, user, password)
    assert caught.value.get_code() == code


def test_login_comes_first(server: RecordedServer) -> None:
    client = Client("127.0.0.1", "root", "paddleflow", server.port)
    with pytest.raises(PaddleFlowSDKException) as caught:
        client.list_queue()
    assert caught.value.get_code() == "InvalidOperator"
    with pytest.raises(PaddleFlowSDKException):
        next(client.events())
    assert server.asked == []


def test_login_sends_the_token_afterwards(server: RecordedServer, client: Client) -> None:
    server.on("GET", "/version", ok({"gitVersion": "1"}))
    assert client.get_version() == (True, {"gitVersion": "1"})
    assert server.calls("POST", "/login")[0].body == {"username": "root", "password": "paddleflow"}
    assert server.asked[-1].headers["x-pf-authorization"] == "token-1"


@pytest.mark.parametrize("code", ["AuthFailed", "UserNotExist"])
def test_refused_login_is_unauthenticated_whatever_the_server_calls_it(server: RecordedServer, code: str) -> None:
    server.on("POST", "/login", error(400, code, "no"))
    with Client("127.0.0.1", "root", "wrong", server.port) as client, pytest.raises(UnauthenticatedError) as caught:
        client.login("root", "wrong")
    assert caught.value.get_code() == code


def test_stale_token_is_renewed_once(server: RecordedServer, client: Client) -> None:
    server.on("GET", "/user", error(400, "AuthInvalidToken", "expired"), ok({"userList": [{"name": "alice"}]}))
    assert [user.name for user in client.list_user()[1]] == ["alice"]
    assert [one.headers["x-pf-authorization"] for one in server.calls("GET", "/user")] == ["token-1", "token-2"]

    server.on("GET", "/user", error(400, "AuthInvalidToken", "expired"))
    with pytest.raises(UnauthenticatedError):
        client.list_user()
    assert len(server.calls("POST", "/login")) == 3


def test_nobody_there_is_said_at_once_with_the_address() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with Client("127.0.0.1", "root", "paddleflow", port) as client, pytest.raises(UnreachableError) as caught:
            client.login("root", "paddleflow")
    assert caught.value.get_code() == "Connection Error"
    assert f"127.0.0.1:{port}" in caught.value.get_message()


def test_a_server_that_is_just_being_started_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "START_PATIENCE_S", DEADLINE_S)
    with running(late=True) as late:
        told: list[str] = []

        def it_starts() -> None:
            told.append("waiting")
            late.start()

        with Client("127.0.0.1", "root", "paddleflow", late.port) as client:
            client.wait_for_start(it_starts)
            client.login("root", "paddleflow")
            late.on("GET", "/version", ok({"version": "1"}))
            client.get_version()
        assert told == ["waiting"]


def test_nobody_is_waited_for_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "START_PATIENCE_S", 0.0)
    told: list[str] = []
    with running(late=True) as never, Client("127.0.0.1", "root", "paddleflow", never.port) as client:
        client.wait_for_start(lambda: told.append("waiting"))
        for _ in range(2):
            with pytest.raises(UnreachableError, match="cannot reach"):
                client.login("root", "paddleflow")
    assert told == ["waiting"]


def test_create_is_repeated_with_the_same_key_when_the_connection_is_lost(
    server: RecordedServer, client: Client
) -> None:
    server.on("POST", "/job/single", lost(), lost(), ok({"id": "job-1"}))
    assert client.submit_job("true") == (True, "job-1")
    calls = server.calls("POST", "/job/single")
    assert len(calls) == 3
    assert len({one.headers["idempotency-key"] for one in calls}) == 1


def test_two_creates_have_two_keys_and_a_given_key_is_sent(server: RecordedServer, client: Client) -> None:
    server.on("POST", "/job/single", ok({"id": "job-1"}))
    client.submit_job("true")
    client.submit_job("true")
    client.submit_job("true", idempotency_key="mine")
    keys = [one.headers["idempotency-key"] for one in server.calls("POST", "/job/single")]
    assert len(set(keys)) == 3
    assert keys[-1] == "mine"


def test_busy_server_is_asked_again_where_that_is_safe(server: RecordedServer, client: Client) -> None:
    busy = error(503, "InternalError", "the database is locked")
    server.on("GET", "/job/job-1", busy, ok(job_json()))
    assert client.show_job("job-1")[1].job_id == "job-1"
    server.on("DELETE", "/job/job-1", busy, ok())
    with pytest.raises(UnavailableError):
        client.delete_job("job-1")
    server.on("GET", "/job/job-1", busy)
    with pytest.raises(UnavailableError):
        client.show_job("job-1")


def test_change_is_not_repeated(server: RecordedServer, client: Client) -> None:
    server.on("PUT", "/job/job-1", lost())
    with pytest.raises(UnreachableError):
        client.stop_job("job-1")
    assert len(server.calls("PUT", "/job/job-1")) == 1


def test_lost_reads_are_given_up_in_the_end(server: RecordedServer, client: Client) -> None:
    server.on("GET", "/job/job-1", lost())
    with pytest.raises(UnreachableError):
        client.show_job("job-1")
    assert 1 < len(server.calls("GET", "/job/job-1")) < 10


def test_error_body_becomes_the_error(server: RecordedServer, client: Client) -> None:
    server.on("GET", "/job/job-9", error(404, "JobNotFound", "resouceType[job] with ID[job-9] not found"))
    with pytest.raises(NotFound) as caught:
        client.show_job("job-9")
    assert caught.value.code == "JobNotFound"
    server.on("POST", "/flavour", error(400, "DuplicatedName", "taken"))
    with pytest.raises(DuplicateError):
        client.add_flavour("f", "1", "1Gi")


@pytest.mark.parametrize("status", [200, 502])
def test_what_is_not_json_is_not_our_server(server: RecordedServer, client: Client, status: int) -> None:
    answer = ok(b"<html>hello</html>", status)
    server.on("GET", "/version", answer)
    with pytest.raises(UnavailableError):
        client.get_version()


def test_names_are_one_segment_of_the_path(server: RecordedServer, client: Client) -> None:
    with pytest.raises(PaddleFlowSDKException):
        client.del_queue("a/../b?c")
    assert server.asked[-1].path == "/queue/a%2F..%2Fb%3Fc"


def test_create_job_sends_every_field(server: RecordedServer, client: Client) -> None:
    server.on("POST", "/job/distributed", ok({"id": "job-2"}))
    request = {
        "framework": "paddle",
        "members": [{"role": "worker", "replicas": 2, "limitFlavour": {"name": "x"}}],
        "limitFlavour": {"name": "x"},
    }
    assert client.create_job("distributed", request) == (True, "job-2")
    assert server.asked[-1].body == request
    with pytest.raises(InvalidError):
        client.create_job("nonsense", request)


@pytest.mark.parametrize(
    ("options", "body"),
    [
        ({}, {"command": "echo 'a b'"}),
        ({"flavour": "flavour1"}, {"command": "echo 'a b'", "flavour": {"name": "flavour1"}}),
        ({"cpu": 2}, {"command": "echo 'a b'", "flavour": {"cpu": "2", "mem": "1Gi"}}),
        (
            {"gpus": 2, "memory": "4Gi"},
            {
                "command": "echo 'a b'",
                "flavour": {"cpu": "1", "mem": "4Gi", "scalarResources": {"nvidia.com/gpu": "2"}},
            },
        ),
        (
            {"queue": "q", "priority": "HIGH", "work_dir": "/w", "env": {"A": "1"}, "labels": {"k": "v"}},
            {
                "command": "echo 'a b'",
                "schedulingPolicy": {"queue": "q", "priority": "HIGH"},
                "env": {"A": "1", "PF_WORK_DIR": "/w"},
                "labels": {"k": "v"},
            },
        ),
        (
            {"fs": "data"},
            {"command": "echo 'a b'", "fs": {"name": "data"}},
        ),
        (
            {"fs": ["data/a/b/:/in:ro", "more:/out", "third/x"]},
            {
                "command": "echo 'a b'",
                "fs": {"name": "data", "subPath": "a/b", "mountPath": "/in", "readOnly": True},
                "extraFS": [{"name": "more", "mountPath": "/out"}, {"name": "third", "subPath": "x"}],
            },
        ),
    ],
)
def test_submit_job_builds_the_body(
    server: RecordedServer, client: Client, options: dict[str, object], body: dict[str, object]
) -> None:
    server.on("POST", "/job/single", ok({"id": "job-1"}))
    client.submit_job(["echo", "a b"], **options)  # type: ignore[arg-type]
    sent = server.asked[-1].body
    assert sent.pop("hostEnv")["PF_WORK_DIR"] == str(Path.cwd())
    assert sent == body


def test_a_job_of_this_machine_takes_its_callers_surroundings_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shell = {"PATH": "bin:/mine/bin:/usr/bin", "HOME": "/home/me", "VIRTUAL_ENV": "/mine", "SECRET": "x"}
    path = f"/mine/bin:/usr/bin:{Path(sys.executable).parent}"
    expected = {"PATH": path, "HOME": "/home/me", "VIRTUAL_ENV": "/mine", "PF_WORK_DIR": str(tmp_path)}
    for here in ("http://127.0.0.1:8999", "http://localhost:1", "http://[::1]:80"):
        assert surroundings(here, shell) == expected
    for elsewhere in ("http://10.0.0.1:8999", "https://pf.example.com:443"):
        assert surroundings(elsewhere, shell) is None
    assert surroundings("http://127.0.0.1:1", {})["PATH"].endswith(str(Path(sys.executable).parent))  # type: ignore[index]


@pytest.mark.parametrize("options", [{"flavour": "f", "cpu": "1"}, {"flavour": "f", "gpus": 1}, {"gpus": -1}])
def test_submit_job_refuses_contradictions(client: Client, options: dict[str, object]) -> None:
    with pytest.raises(InvalidError):
        client.submit_job("true", **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("fs", ["", "data:in", "data:/in:rw", "da ta", "data:/in:ro:ro", "/data", "data:"])
def test_a_filesystem_that_cannot_be_read_is_refused(client: Client, fs: str) -> None:
    with pytest.raises(InvalidError, match="NAME"):
        client.submit_job("true", fs=fs)


def test_every_member_gets_the_filesystems(server: RecordedServer, client: Client) -> None:
    server.on("POST", "/job/distributed", ok({"id": "job-1"}))
    client.submit_distributed_job("go", framework="mpi", fs=["data:/in", "more"])
    for member in server.asked[-1].body["members"]:
        assert member["fs"] == {"name": "data", "mountPath": "/in"}
        assert member["extraFS"] == [{"name": "more"}]


def test_submit_distributed_job_builds_the_body(server: RecordedServer, client: Client) -> None:
    server.on("POST", "/job/distributed", ok({"id": "job-1"}))
    assert client.submit_distributed_job(["python", "a b.py"], framework="pytorch", workers=3) == (True, "job-1")
    assert server.asked[-1].body.pop("hostEnv")["PF_WORK_DIR"] == str(Path.cwd())
    assert server.asked[-1].body == {
        "framework": "pytorch",
        "members": [{"role": "worker", "replicas": 3, "command": "python 'a b.py'"}],
    }
    client.submit_distributed_job("go", framework="ray", workers=(1, 4), flavour="f", env={"A": "1"}, retries=2)
    del server.asked[-1].body["hostEnv"]
    assert server.asked[-1].body == {
        "framework": "ray",
        "members": [
            {"role": "master", "replicas": 1, "command": "go", "flavour": {"name": "f"}, "env": {"A": "1"}},
            {"role": "worker", "replicas": 4, "flavour": {"name": "f"}, "env": {"A": "1"}},
        ],
        "elastic": {"role": "worker", "min": 1, "max": 4},
        "runPolicy": {"retries": 2},
    }


@pytest.mark.parametrize("options", [{"workers": 0}, {"workers": (3, 2)}, {"ps": -1}, {"ps": 1}, {"framework": ""}])
def test_submit_distributed_job_refuses_what_makes_no_team(client: Client, options: dict[str, object]) -> None:
    with pytest.raises(InvalidError):
        client.submit_distributed_job("go", **{"framework": "mpi", **options})  # type: ignore[arg-type]


def test_tasks_of_a_job(server: RecordedServer, client: Client) -> None:
    tasks = [{"name": "a"}, {"name": "b"}]
    server.on("GET", "/job/job-1", ok(job_json(distributedRuntime={"runtimes": tasks}, elastic={"min": 1, "max": 2})))
    _, job = client.show_job("job-1")
    assert (job.tasks, job.elastic, job.run_policy) == (tasks, {"min": 1, "max": 2}, None)
    server.on("GET", "/job/job-1", ok(job_json(runtime={"name": "a"})), ok(job_json()))
    assert [client.show_job("job-1")[1].tasks for _ in range(2)] == [[{"name": "a"}], []]


def test_eta_membership_and_what_if(server: RecordedServer, client: Client) -> None:
    told = {
        "jobID": "job-1",
        "status": "init",
        "median": "2026-01-01 11:00:00",
        "confidence": 1,
        "sentence": "it waits",
    }
    server.on("GET", "/job/job-1/eta", ok(told))
    _, eta = client.job_eta("job-1")
    assert (eta.low, eta.median, eta.confidence, eta.sentence) == ("", "2026-01-01 11:00:00", 1.0, "it waits")
    server.on("GET", "/job/job-1/membership", ok({"generation": 2, "tasks": []}))
    assert client.job_membership("job-1") == (True, {"generation": 2, "tasks": []})
    server.on("POST", "/queue/whatIf", ok({"sentence": "nothing changes", "evict": [{"jobID": "a"}]}))
    _, answer = client.what_if(remove_nodes=["n1"])
    assert (answer.sentence, answer.evict, answer.start, answer.job) == ("nothing changes", [{"jobID": "a"}], [], None)
    assert server.asked[-1].body == {"queues": [], "nodes": [], "removeNodes": ["n1"]}


def test_the_past_and_its_replay(server: RecordedServer, client: Client) -> None:
    server.on("GET", "/trace", ok(b"submit,duration,gpus\n0,1,1\n"))
    assert client.trace(since=5, limit=7) == (True, "submit,duration,gpus\n0,1,1\n")
    assert server.asked[-1].query == {"since": "5", "limit": "7"}
    metrics = {one.name: 1 for one in dataclasses.fields(MetricsInfo)} | {"policy": "fifo", "newer": 5}
    server.on("POST", "/simulate", ok({"metrics": [metrics], "utilisation": {"fifo": [[0, 0.5], [1.5, 0]]}}))
    _, answer = client.simulate("a trace", {"nodes": []}, "fifo", load=0.9, sort=True)
    assert (answer.metrics[0].policy, answer.metrics[0].meanDelaySeconds) == ("fifo", 1)
    assert answer.utilisation == {"fifo": [(0, 0.5), (1.5, 0)]}
    body = {"trace": "a trace", "cluster": {"nodes": []}, "policy": "fifo", "load": 0.9, "sort": True}
    assert server.asked[-1].body == body
    client.simulate(cluster_name="c", since=1)
    assert server.asked[-1].body == {"policy": "paddleflow", "clusterName": "c", "since": 1}


def test_queues_in_a_tree(server: RecordedServer, client: Client) -> None:
    label = "paddleflow.baidu.com/elastic-resource-quota-parent"
    server.on("POST", "/queue", ok({"name": "q"}))
    client.add_queue("q", "ns", None, {"cpu": "1"}, location={"a": "b"}, weight=3, parent="p")
    body = server.asked[-1].body
    assert (body["weight"], body["location"]) == (3, {"a": "b", label: "p"})
    server.on("PUT", "/queue/q", ok({"name": "q"}))
    client.update_queue("q", parent="")
    assert server.asked[-1].body == {"location": {label: ""}}
    client.close_queue("q")
    assert server.asked[-1].query == {"action": "close"}
    client.open_queue("q")
    assert server.asked[-1].query == {"action": "open"}
    server.on("GET", "/queue/q", ok({"name": "q", "weight": 3, "parent": "p"}))
    _, queue = client.show_queue("q")
    assert (queue.weight, queue.parent) == (3, "p")


def test_the_end_of_a_log(server: RecordedServer, client: Client) -> None:
    server.on("GET", "/job/job-1/log", Answer(body=b"tail", headers={"X-Log-Size": "100"}))
    assert client.read_log_end("job-1", "t", 4) == (b"tail", 100)
    assert server.asked[-1].query == {"task": "t", "start": "-4", "follow": "false"}
    server.on("GET", "/job/job-1/log", ok(b"tail"), ok(b"the whole tail"))
    assert client.read_log_end("job-1", None, 4) == (b"tail", 14)


@pytest.mark.parametrize(
    ("received", "resumed"),
    [
        (b"head", 4),
        (b"the head", 8),
        (b"the head[left", 8),
        (b"the head[left out]", 100),
        (b"the head[left out]tail", 104),
        (b"the head[left out]tail..[again]", 1000),
    ],
)
def test_a_log_with_gaps_is_resumed_where_it_broke(
    server: RecordedServer, client: Client, received: bytes, resumed: int
) -> None:
    gaps = {"X-Log-Gaps": "8-100:10,106-1000:7"}
    server.on("GET", "/job/job-1/log", replace(lost(received), headers=gaps), ok(b"rest"))
    assert "".join(client.stream_log("job-1")) == received.decode() + "rest"
    assert server.asked[-1].query["start"] == str(resumed)


def test_job_attributes(server: RecordedServer, client: Client) -> None:
    server.on("GET", "/job/job-1", ok(job_json(runtime={"name": "job-1"})))
    _, job = client.show_job("job-1")
    assert (job.job_id, job.job_name, job.queue, job.priority) == ("job-1", "train", "default-queue", "NORMAL")
    assert (job.username, job.limit_flavour["cpu"], job.runtime) == ("root", "2", {"name": "job-1"})
    assert not job.is_terminal


def test_list_job_sends_filters_and_gives_the_marker(server: RecordedServer, client: Client) -> None:
    server.on("GET", "/job", ok({"maxKeys": 2, "isTruncated": True, "nextMarker": "m", "jobList": [job_json()]}))
    _, jobs, marker = client.list_job("running", labels={"a": "b"}, maxkeys=2)
    assert ([job.job_id for job in jobs], marker) == (["job-1"], "m")
    assert server.asked[-1].query == {"status": "running", "labels": '{"a": "b"}', "maxKeys": "2"}


def test_changed_own_password_keeps_the_client_going(server: RecordedServer, client: Client) -> None:
    server.on("PUT", "/user/root", ok())
    assert client.update_password("root", "newpass1") == (True, None)
    assert server.calls("POST", "/login")[-1].body == {"username": "root", "password": "newpass1"}


def test_cluster_credential_travels_encoded_and_stays_out_of_repr(server: RecordedServer, client: Client) -> None:
    server.on("POST", "/cluster", ok({"id": "cluster-1", "clusterName": "c"}))
    assert client.create_cluster("c", "http://x", "Local", b"secret")[1] == "cluster-1"
    assert server.asked[-1].body["credential"] == "c2VjcmV0"
    server.on("GET", "/cluster/c", ok({"id": "cluster-1", "clusterName": "c", "credential": "c2VjcmV0"}))
    _, cluster = client.show_cluster("c")
    assert cluster.credential == "secret"
    assert "secret" not in repr(cluster)


def test_only_queue_grants_are_shown(server: RecordedServer, client: Client) -> None:
    grants = [
        {"userName": "alice", "resourceType": "queue", "resourceID": "q"},
        {"userName": "alice", "resourceType": "fs", "resourceID": "fs-root-x"},
    ]
    server.on("GET", "/grant", ok({"grantList": grants}))
    _, found = client.show_queue_grant("alice")
    assert [(one.username, one.resourceName) for one in found] == [("alice", "q")]


def test_events_are_taken_up_after_the_last_one(server: RecordedServer, client: Client) -> None:
    first = b": heartbeat\n\n" + event_bytes(4, "JobSubmitted", "job-1") + b"id: 5\nevent: JobSta"
    server.on("GET", "/event", lost(first), ok(event_bytes(5, "JobStarted", "job-1", status="running")))
    events = client.events(3, subject="job-1", kinds=["JobSubmitted", "JobStarted"])
    got = [next(events), next(events)]
    events.close()  # type: ignore[attr-defined]
    assert [(one.seq, one.kind) for one in got] == [(4, "JobSubmitted"), (5, "JobStarted")]
    assert got[1].data == {"status": "running"}
    assert [one.query["after"] for one in server.calls("GET", "/event")] == ["3", "4"]
    assert server.asked[-1].query["kinds"] == "JobSubmitted,JobStarted"


def test_events_so_far_are_read_page_by_page(server: RecordedServer, client: Client) -> None:
    def page(seq: int, truncated: bool) -> Answer:
        told = {"seq": seq, "kind": "QueueCreated", "subject": "q", "owner": None, "at": ""}
        return ok({"eventList": [told], "lastSeq": seq, "isTruncated": truncated})

    server.on("GET", "/event", page(1, True), page(2, False))
    assert [one.seq for one in client.events(follow=False)] == [1, 2]
    assert [one.query["after"] for one in server.calls("GET", "/event")] == ["0", "1"]


def test_watch_yields_each_change_until_the_end(server: RecordedServer, client: Client) -> None:
    def answer_events(asked: object) -> object:
        query = asked.query  # type: ignore[attr-defined]
        if query.get("follow") == "false":
            return ok({"eventList": [], "lastSeq": 7})
        seq = int(query["after"]) + 1
        return ok(event_bytes(seq, "JobUpdated", "job-1"))

    server.on("GET", "/event", answer_events)  # type: ignore[arg-type]
    statuses = ["init", "init", "running", "succeeded"]
    server.on("GET", "/job/job-1", *(ok(job_json(status)) for status in statuses))
    assert [job.status for job in client.watch_job("job-1")] == ["init", "running", "succeeded"]


def test_log_is_taken_up_where_it_broke(server: RecordedServer, client: Client) -> None:
    text = "première\nsecond\n".encode()
    # Broken in the middle of a character.
    server.on("GET", "/job/job-1/log", lost(text[:5]), ok(text[5:]))
    assert "".join(client.stream_log("job-1")) == "première\nsecond\n"
    assert [one.query["start"] for one in server.calls("GET", "/job/job-1/log")] == ["0", "5"]


def test_log_pages(server: RecordedServer, client: Client) -> None:
    page = {"taskID": "t", "logInfo": {"logContent": "hi\n", "hasNextPage": True, "truncated": False}}
    server.on("GET", "/log/job", ok({"jobID": "job-1", "taskList": [page], "eventList": []}))
    _, found = client.show_log_by_limit("job-1", read_from_tail=True, line_limit=5)
    assert server.asked[-1].query == {"jobID": "job-1", "readFromTail": "true", "lineLimit": "5"}
    assert [(log.taskid, log.log_content, log.has_next_page) for log in found["logs"]] == [("t", "hi\n", True)]


def test_statistics(server: RecordedServer, client: Client) -> None:
    server.on("GET", "/statistics/job/job-1", ok({"metricsInfo": {"cpu_usage_rate": "50%"}}))
    assert client.get_statistics("job-1")[1].metrics_info == {"cpu_usage_rate": "50%"}
    series = {"taskName": "t", "taskInfo": [{"metric": "cpu", "values": [[1, 2]]}]}
    server.on("GET", "/statistics/jobDetail/job-1", ok({"result": [series], "truncated": True}))
    _, detail, truncated = client.get_statistics_detail("job-1", start=1, step=60)
    assert truncated
    assert detail.result[0].task_info[0].values == [[1, 2]]


def test_a_client_of_the_config_file(server: RecordedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(name: str, user: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(
            f"[user]\nname = {user}\npassword = 50%off\n"
            f"[server]\npaddleflow_server_host = 127.0.0.1\npaddleflow_server_port = {server.port}\n"
        )
        return path

    server.on("GET", "/version", ok({"gitVersion": "1"}))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("PADDLEFLOW_PF_CONFIG", raising=False)
    write(".paddleflow/paddleflow.ini", "home")
    named, of_environment = write("named.ini", "named"), write("environment.ini", "environment")
    with Client.from_config(named) as client:
        assert client.username == "named"
        client.get_version()
    with Client.from_config() as client:
        assert client.username == "home"
    monkeypatch.setenv("PADDLEFLOW_PF_CONFIG", str(of_environment))
    with Client.from_config() as client:
        assert client.username == "environment"
    with Client.from_config("~/named.ini") as client:
        assert client.username == "named", "what is said here goes before the environment"
    assert [one.body["password"] for one in server.calls("POST", "/login")] == ["50%off"] * 4
    with pytest.raises(PaddleFlowSDKException) as caught:
        Client.from_config(tmp_path / "none.ini")
    assert caught.value.get_code() == "InvalidConfig"
    server.on("POST", "/login", error(400, "AuthFailed", "no"))
    with pytest.raises(UnauthenticatedError):
        Client.from_config()
