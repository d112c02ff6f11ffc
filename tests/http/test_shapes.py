"""Every endpoint's request and answer as clients of the product know them, on raw HTTP."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from tests.http.served import PREFIX, Caller, Served
from tests.waiting import wait_for

LOCAL = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")
RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
Unique = Callable[[str], str]


def test_login(served: Served) -> None:
    caller = Caller(served.port)
    answer = caller.post("/login", {"username": "root", "password": "paddleflow"})
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/json"
    assert list(answer.json) == ["authorization"]
    wrong = caller.post("/login", {"username": "root", "password": "nope"})
    assert (wrong.status, wrong.code, wrong.message) == (400, "AuthFailed", "Username or password not correct")
    nobody = caller.post("/login", {"username": "nobody", "password": "nope"})
    assert (nobody.status, nobody.code) == (400, "UserNotExist")


def test_error_shape_and_request_id(root: Caller) -> None:
    answer = root.call("GET", "/job/job-none", headers={"x-pf-request-id": "mine-1"})
    assert answer.status == 404
    assert answer.headers["x-pf-request-id"] == "mine-1"
    assert answer.json == {
        "requestID": "mine-1",
        "code": "JobNotFound",
        "message": "resouceType[job] with ID[job-none] not found",
    }
    made = root.get("/version").headers["x-pf-request-id"]
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", made)
    long = root.call("GET", "/version", headers={"x-pf-request-id": "a b\tc" + "x" * 500}).headers["x-pf-request-id"]
    assert long == ("abc" + "x" * 500)[:128]


def test_unknown_route_and_method(root: Caller) -> None:
    missing = root.get("/nothing")
    assert (missing.status, missing.code, missing.message) == (404, "PathNotFound", "")
    wrong = root.call("PATCH", "/job")
    assert (wrong.status, wrong.code, wrong.message) == (405, "MethodNotAllowed", "")
    assert missing.json["requestID"] == missing.headers["x-pf-request-id"]


def test_bearer_token(root: Caller, served: Served) -> None:
    answer = Caller(served.port).call("GET", "/version", headers={"Authorization": f"Bearer {root.token}"})
    assert answer.status == 200


def test_version(root: Caller) -> None:
    answer = root.get("/version").json
    assert list(answer) == [
        "gitVersion", "gitCommit", "gitBranch", "buildDate", "goVersion", "compiler", "platform",
    ]  # fmt: skip
    assert answer["gitVersion"]


def test_users(served: Served, root: Caller, unique: Unique) -> None:
    name = unique("user")
    made = root.post("/user", {"username": name, "password": "secret1"})
    assert (made.status, made.json) == (200, {"username": name})
    again = root.post("/user", {"username": name, "password": "secret1"})
    assert (again.status, again.code) == (403, "UserNameDuplicated")
    weak = root.post("/user", {"username": unique("user"), "password": "short"})
    assert (weak.status, weak.code) == (400, "UserPasswordWeak")
    bad = root.post("/user", {"username": "a!", "password": "secret1"})
    assert (bad.status, bad.code) == (400, "InvalidNamePattern")
    listed = root.get("/user").json
    assert listed["maxKeys"] == 50
    assert listed["isTruncated"] is False
    row = next(user for user in listed["userList"] if user["name"] == name)
    assert set(row) == {"name", "createTime"}
    assert RFC3339.fullmatch(row["createTime"])
    assert "root" not in {user["name"] for user in listed["userList"]}
    assert root.get("/user", user=name).json == row
    caller = served.login(name, "secret1")
    changed = caller.put(f"/user/{name}", {"password": "secret2"})
    assert (changed.status, changed.body) == (200, b"")
    assert caller.get("/version").code == "AuthInvalidToken"
    served.login(name, "secret2")
    assert root.delete("/user/root").code == "AccessDenied"
    gone = root.delete(f"/user/{name}")
    assert (gone.status, gone.body) == (200, b"")
    assert root.delete(f"/user/{name}").code == "UserNotExist"


def test_grants(served: Served, root: Caller, unique: Unique) -> None:
    name = unique("user")
    served.a_user(name)
    # The product's own client sends the key in lower case.
    grant = {"username": name, "resourceType": "queue", "resourceID": "default-queue"}
    made = root.post("/grant", grant)
    assert made.status == 200
    assert re.fullmatch(r"grant-[0-9a-f]{8}", made.json["grantID"])
    again = root.post("/grant", grant)
    assert (again.status, again.code) == (400, "GrantAlreadyExist")
    row = root.get("/grant", username=name).json["grantList"][0]
    assert RFC3339.fullmatch(row.pop("createTime"))
    assert RFC3339.fullmatch(row.pop("updateTime"))
    assert row == {
        "grantID": made.json["grantID"], "userName": name, "resourceType": "queue", "resourceID": "default-queue",
    }  # fmt: skip
    assert root.post("/grant", {**grant, "resourceType": "x"}).code == "GrantResourceTypeNotFound"
    assert root.post("/grant", {**grant, "resourceID": "none"}).code == "QueueNameNotFound"
    assert root.post("/grant", {**grant, "username": "root"}).code == "GrantRootActionNotSupport"
    gone = root.delete("/grant", **grant)
    assert (gone.status, gone.body) == (200, b"")
    assert root.delete("/grant", **grant).code == "GrantNotFound"


def test_flavours(root: Caller, unique: Unique) -> None:
    name = unique("flavour")
    body = {"name": name, "cpu": 2, "mem": "4Gi", "scalarResources": {"nvidia.com/gpu": 1}}
    made = root.post("/flavour", body)
    assert (made.status, made.json) == (200, {"name": name})
    shown = root.get(f"/flavour/{name}").json
    assert LOCAL.fullmatch(shown.pop("createTime"))
    assert LOCAL.fullmatch(shown.pop("updateTime"))
    assert re.fullmatch(r"flavour-[0-9a-f]{8}", shown.pop("id"))
    assert shown == {"name": name, "cpu": "2", "mem": "4Gi", "scalarResources": {"nvidia.com/gpu": "1"}}
    changed = root.put(f"/flavour/{name}", {"mem": "8Gi", "scalarResources": {"example.org/x": "2"}})
    assert changed.status == 200
    assert changed.json["mem"] == "8Gi"
    assert changed.json["scalarResources"] == {"nvidia.com/gpu": "1", "example.org/x": "2"}
    assert name in {row["name"] for row in root.get("/flavour", name=name[2:]).json["flavourList"]}
    assert root.get("/flavour", name="no-such-part").json["flavourList"] == []
    assert root.post("/flavour", body).code == "DuplicatedName"
    for bad in ({"cpu": "-1"}, {"cpu": "x"}, {"mem": "0"}, {"scalarResources": {"a": "-1"}}):
        answer = root.post("/flavour", {**body, "name": unique("flavour"), **bad})
        assert (answer.status, answer.code) == (400, "FlavourInvalidField")
    gone = root.delete(f"/flavour/{name}")
    assert (gone.status, gone.body) == (200, b"")
    assert (root.get(f"/flavour/{name}").status, root.get(f"/flavour/{name}").code) == (404, "FlavourNotFound")


def test_queues(root: Caller, unique: Unique) -> None:
    name = unique("queue")
    body = {
        "name": name,
        "namespace": "default",
        "maxResources": {"cpu": "20", "mem": "20Gi", "scalarResources": {"nvidia.com/gpu": "2"}},
        "minResources": {"cpu": 1},
        "schedulingPolicy": ["priority"],
    }
    made = root.post("/queue", body)
    assert (made.status, made.json) == (200, {"name": name})
    shown = root.get(f"/queue/{name}").json
    assert LOCAL.fullmatch(shown.pop("createTime"))
    assert LOCAL.fullmatch(shown.pop("updateTime"))
    assert re.fullmatch(r"queue-[0-9a-f]{8}", shown.pop("id"))
    maximum = {"cpu": "20", "memory": "20Gi", "scalarResources": {"nvidia.com/gpu": "2"}}
    assert shown == {
        "name": name,
        "namespace": "default",
        "clusterName": "default-cluster",
        "quotaType": "elasticQuota",
        "minResources": {"cpu": "1", "memory": "0"},
        "maxResources": maximum,
        "location": {},
        "schedulingPolicy": ["priority"],
        "weight": 1,
        "parent": "root",
        "status": "open",
        "usedResources": {"cpu": "0", "memory": "0"},
        "idleResources": maximum,
    }
    listed = root.get("/queue", name=name).json
    assert [row["name"] for row in listed["queueList"]] == [name]
    assert "usedResources" not in listed["queueList"][0]
    changed = root.put(f"/queue/{name}", {"maxResources": {"cpu": "30", "scalarResources": {"nvidia.com/gpu": ""}}})
    assert changed.status == 200
    assert changed.json["maxResources"] == {"cpu": "30", "memory": "20Gi"}
    assert root.post("/queue", body).code == "QueueNameDuplicated"
    assert root.post("/queue", {**body, "name": "Bad_Name"}).code == "InvalidNamePattern"
    over = root.post("/queue", {**body, "name": unique("queue"), "minResources": {"cpu": "21"}})
    assert (over.status, over.code) == (400, "InvalidComputeResource")
    negative = root.post("/queue", {**body, "name": unique("queue"), "maxResources": {"cpu": "-1"}})
    assert (negative.status, negative.code) == (400, "InvalidComputeResource")
    assert (root.get("/queue/none").status, root.get("/queue/none").code) == (400, "QueueNameNotFound")
    assert (root.delete(f"/queue/{name}").status, root.delete(f"/queue/{name}").code) == (200, "QueueNameNotFound")


def test_queue_in_use(served: Served, root: Caller) -> None:
    job = root.submit()
    answer = root.delete("/queue/default-queue")
    assert (answer.status, answer.code) == (400, "QueueIsInUse")
    assert job in answer.message
    served.finish(job)


def test_clusters(root: Caller, unique: Unique) -> None:
    name = unique("cluster")
    body = {
        "clusterName": name, "endpoint": "10.0.0.1", "clusterType": "Kubernetes", "version": "1.30",
        "credential": "c2VjcmV0", "namespaceList": ["default"], "clusterId": "ignored",
    }  # fmt: skip
    made = root.post("/cluster", body)
    assert made.status == 200
    shown = made.json
    assert LOCAL.fullmatch(shown["createTime"])
    assert shown == {
        **shown, "clusterName": name, "description": "", "endpoint": "10.0.0.1", "source": "OnPremise",
        "clusterType": "Kubernetes", "version": "1.30", "status": "offline", "credential": "", "setting": "",
        "namespaceList": ["default"],
    }  # fmt: skip
    assert set(shown) == {
        "id", "clusterName", "description", "endpoint", "source", "clusterType", "version", "status", "credential",
        "setting", "namespaceList", "createTime", "updateTime",
    }  # fmt: skip
    assert b"c2VjcmV0" not in made.body + root.get(f"/cluster/{name}").body + root.get("/cluster").body
    assert root.get(f"/cluster/{name}").json == shown
    assert [row["clusterName"] for row in root.get("/cluster", clusterNames=f"{name},x").json["clusterList"]] == [name]
    assert [row["clusterName"] for row in root.get("/cluster", clusterStatus="offline").json["clusterList"]] == [name]
    online = root.put(f"/cluster/{name}", {"status": "online"})
    assert (online.status, online.code) == (400, "InvalidClusterStatus")
    assert "starts jobs on default-cluster only" in online.message
    assert root.post("/cluster", {**body, "clusterName": unique("cluster"), "status": "online"}).status == 400
    queue = {"name": unique("queue"), "namespace": "default", "clusterName": name, "maxResources": {"cpu": "1"}}
    refused = root.post("/queue", queue)
    assert (refused.status, refused.code) == (400, "InvalidClusterStatus")
    changed = root.put(f"/cluster/{name}", {"description": "new"})
    assert (changed.status, changed.json["description"]) == (200, "new")
    assert root.post("/cluster", {**body, "clusterName": unique("cluster"), "clusterType": "X"}).status == 400
    gone = root.delete(f"/cluster/{name}")
    assert (gone.status, gone.body) == (200, b"")
    assert root.get(f"/cluster/{name}").code == "ClusterNotFound"


def test_cluster_resources(served: Served, root: Caller) -> None:
    job = root.submit(flavour={"cpu": "2", "mem": "1Gi", "scalarResources": {"nvidia.com/gpu": "1"}})
    task = served.task_of(job)
    full = root.get("/cluster/resource", clusterNames="default-cluster").json["default-cluster"]
    assert set(full) == {"nodeList", "summary", "errMsg"}
    node = full["nodeList"][0]
    assert node == {
        "nodeName": "node-1",
        "schedulable": True,
        "total": {"cpu": "64", "memory": "256Gi", "scalarResources": {"nvidia.com/gpu": "8"}},
        "idle": {"cpu": "62", "memory": "255Gi", "scalarResources": {"nvidia.com/gpu": "7"}},
    }
    assert full["summary"] == {"total": node["total"], "idle": node["idle"]}
    query = {"clusterNames": ["default-cluster"], "pageNo": 0, "pageSize": 1000}
    table = root.post("/cluster/resource", query).json["default-cluster"]
    assert table == {
        "allocatable": {"node-1": {"cpu": "62", "memory": "255Gi", "nvidia.com/gpu": "7"}},
        "capacity": {"node-1": {"cpu": "64", "memory": "256Gi", "nvidia.com/gpu": "8"}},
        "labels": {"node-1": {"paddleflow/node-status": "Ready"}},
        "clusterName": "default-cluster",
        "clusterSource": "OnPremise",
    }
    by_queue = root.post("/cluster/resource", {"queueName": "default-queue", "labels": "a=b"}).json["default-cluster"]
    assert (by_queue["queueName"], by_queue["capacity"]) == ("default-queue", {})
    infos = root.get("/cluster/default-cluster/nodeInfos", pageNo=1, pageSize=10).json
    assert infos["totalCount"] == 1
    info = infos["nodeList"][0]
    assert (info["nodeName"], info["podsCount"], info["used"]["cpu"]) == ("node-1", 1, 2000)
    assert info["pods"][0]["podName"] == task
    assert info["pods"][0]["status"] == 1
    assert root.get("/cluster/default-cluster/nodeInfos", pageSize=101).code == "InvalidURI"
    served.finish(job)


def test_job_life(served: Served, root: Caller, alice: Caller) -> None:
    body = {
        "name": "train",
        "LABELS": {"Team": "Vision"},
        "annotations": {"note": "x"},
        "schedulingpolicy": {"Queue": "default-queue", "priority": "high"},
        "flavour": {"cpu": 1, "mem": "512Mi", "scalarResources": {"nvidia.com/gpu": "1"}},
        "env": {"Epochs": "3"},
        "command": "echo hi",
        "args": ["--x"],
        "port": 8080,
        "unknownKey": [1, 2],
        "fs": None,
    }
    made = alice.post("/job/single", body)
    assert made.status == 200
    job_id = made.json["id"]
    assert re.fullmatch(r"job-[0-9a-f]{16}", job_id)
    task = served.task_of(job_id)
    shown = alice.get(f"/job/{job_id}").json
    amounts = {"cpu": "1", "mem": "512Mi", "scalarResources": {"nvidia.com/gpu": "1"}, "name": ""}
    assert list(shown) == [
        "id", "name", "labels", "annotations", "schedulingPolicy", "UserName", "flavour", "limitFlavour", "fs",
        "extraFS", "image", "env", "command", "args", "port", "extensionTemplate", "status", "message", "acceptTime",
        "startTime", "finishTime", "runtime",
    ]  # fmt: skip
    assert {key: shown[key] for key in ("id", "name", "labels", "annotations", "UserName", "image", "env")} == {
        "id": job_id, "name": "train", "labels": {"Team": "Vision"}, "annotations": {"note": "x"},
        "UserName": "alice", "image": "", "env": {"Epochs": "3"},
    }  # fmt: skip
    assert shown["schedulingPolicy"] == {"queue": "default-queue", "priority": "HIGH"}
    assert (shown["flavour"], shown["limitFlavour"]) == (amounts, amounts)
    assert shown["fs"] == {"id": "", "name": "", "type": "", "mountPath": "", "subPath": "", "readOnly": False}
    assert (shown["command"], shown["args"], shown["port"]) == ("echo hi", ["--x"], 8080)
    assert (shown["extraFS"], shown["extensionTemplate"]) == ([], {})
    assert shown["status"] == "running"
    assert LOCAL.fullmatch(shown["acceptTime"])
    assert LOCAL.fullmatch(shown["startTime"])
    assert shown["finishTime"] == ""
    runtime = shown["runtime"]
    assert json.loads(runtime.pop("status"))["phase"] == "Running"
    assert runtime == {
        "name": task, "namespace": "", "id": task, "nodeName": "node-1", "role": "worker", "index": 0,
        "acceleratorCards": ["0"], "logURL": f"{PREFIX}/job/{job_id}/log?task={task}",
    }  # fmt: skip
    row = next(job for job in alice.get("/job").json["jobList"] if job["id"] == job_id)
    assert "runtime" not in row
    assert row == {key: value for key, value in shown.items() if key != "runtime"}
    why = alice.get(f"/job/{job_id}/why").json
    assert set(why) == {"jobID", "status", "sentence", "details"}
    assert why["sentence"] == "it is running on node-1"
    changed = alice.put(f"/job/{job_id}", {"labels": {"Team": "", "New": "1"}}, action="modify")
    assert (changed.status, changed.body) == (200, b"")
    assert alice.get(f"/job/{job_id}").json["labels"] == {"New": "1"}
    late = alice.put(f"/job/{job_id}", {"priority": "low"}, action="modify")
    assert (late.status, late.code) == (403, "ActionNotAllowed")
    early = alice.delete(f"/job/{job_id}")
    assert (early.status, early.code) == (403, "ActionNotAllowed")
    for action in ("", "restart"):
        other = alice.put(f"/job/{job_id}", action=action)
        assert (other.status, other.code) == (403, "ActionNotAllowed")
    stopped = alice.put(f"/job/{job_id}", action="stop")
    assert (stopped.status, stopped.body) == (200, b"")
    wait_for(lambda: alice.status_of(job_id) == "terminated", "the job ended")
    assert LOCAL.fullmatch(alice.get(f"/job/{job_id}").json["finishTime"])
    assert alice.put(f"/job/{job_id}", action="stop").code == "ActionNotAllowed"
    gone = alice.delete(f"/job/{job_id}")
    assert (gone.status, gone.body) == (200, b"")
    assert alice.get(f"/job/{job_id}").status == 404


def test_waiting_job_says_why(root: Caller) -> None:
    name = "tiny"
    body = {"name": name, "namespace": "default", "maxResources": {"cpu": "1", "mem": "1Gi"}}
    assert root.post("/queue", body).status == 200
    policy = {"schedulingPolicy": {"queue": name}}
    first, second = root.submit(**policy), root.submit(**policy)
    wait_for(lambda: root.status_of(first) == "running", "the first runs")
    why = root.get(f"/job/{second}/why").json
    assert why["status"] == "init"
    assert why["sentence"].startswith("it waits: queue tiny")
    assert why["details"]["kind"] == "QueueAtMaximum"
    modified = root.put(f"/job/{second}", {"priority": "VERY_HIGH"}, action="modify")
    assert modified.status == 200
    assert root.get(f"/job/{second}").json["schedulingPolicy"]["priority"] == "VERY_HIGH"
    assert root.put(f"/job/{second}", action="stop").status == 200
    assert root.status_of(second) == "terminated"


PADDLE_WORKER = {"role": "worker", "replicas": 1, "command": "true"}


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        ("/job/distributed", {"framework": "paddle", "members": [PADDLE_WORKER]}, "at least 2 of them"),
        ("/job/distributed", {"framework": "paddle", "members": [{**PADDLE_WORKER, "role": "driver"}]}, "[driver] is"),
        ("/job/distributed", {"framework": "mpi", "members": [], "elastic": {"min": 1, "max": 2}}, "members"),
        ("/job/distributed", {"framework": "mxnet", "members": []}, "mxnet"),
        ("/job/distributed", {"members": [{"replicas": 0}]}, "framework"),
        ("/job/workflow", {"extensionTemplate": {"kind": "Workflow"}}, "workflow jobs are not supported"),
        ("/job/workflow", {}, "extensionTemplate"),
        ("/job/single", {"schedulingPolicy": {"queue": "none"}}, "queue[none]"),
        ("/job/single", {"flavour": {"name": "none"}}, "flavour[none]"),
        ("/job/single", {"schedulingPolicy": {"priority": "URGENT"}}, "URGENT"),
        ("/job/single", {"fs": {"name": "none"}}, "no filesystem [none]"),
        ("/job/single", {"flavour": {"cpu": "100000", "mem": "1Gi"}}, "larger than queue"),
        ("/job/single", {"command": ""}, "Field[command] is invalid, it is empty"),
        ("/job/single", {"command": " \n"}, "Field[command] is invalid, it is blank"),
        ("/job/distributed", {"framework": "paddle", "members": [{**PADDLE_WORKER, "replicas": 2, "command": ""}]},
         "Field[members[0].command] is invalid, it is empty"),
        ("/job/single", {"image": "python:3.12"}, "[python:3.12] would not be used"),
        ("/job/single", {"command": "", "extensionTemplate": {"kind": "PyTorchJob"}}, "no Kubernetes objects"),
        ("/job/single", {"extensionTemplate": {"kind": "PyTorchJob"}}, "no Kubernetes objects"),
        ("/job/distributed", {"framework": "paddle", "members": [{**PADDLE_WORKER, "replicas": 2, "command": ""}],
                              "extensionTemplate": {"kind": "PaddleJob"}}, "no Kubernetes objects"),
    ],
)  # fmt: skip
def test_refused_submissions_share_a_code(root: Caller, path: str, body: dict[str, object], said: str) -> None:
    answer = root.post(path, {"command": "true", **body})
    assert (answer.status, answer.code) == (400, "JobCreateFailed")
    assert said in answer.message


def test_what_is_of_this_machine_goes_behind_what_the_job_says(served: Served, root: Caller) -> None:
    host_env = {"PATH": "/mine/bin:/bin", "HOME": "/home/me", "PF_WORK_DIR": "/home/me/here"}
    single = root.submit(env={"HOME": "/elsewhere", "A": "1"}, hostEnv=host_env)
    assert root.get(f"/job/{single}").json["env"] == {**host_env, "HOME": "/elsewhere", "A": "1"}
    members = [{**PADDLE_WORKER, "replicas": 2, "env": {"B": "2"}}]
    answer = root.post("/job/distributed", {"framework": "paddle", "members": members, "hostEnv": host_env})
    team = answer.json["id"]
    assert root.get(f"/job/{team}").json["members"][0]["env"] == {**host_env, "B": "2"}
    wrong = root.post("/job/single", {"command": "true", "hostEnv": {"a=b": "c"}})
    assert (wrong.status, wrong.code) == (400, "JobCreateFailed")
    root.put(f"/job/{team}", action="stop")
    served.finish(single)


def test_an_empty_template_is_none(served: Served, root: Caller) -> None:
    """Clients send back the empty object that they were shown."""
    job_id = root.submit(extensionTemplate={})
    assert root.get(f"/job/{job_id}").json["extensionTemplate"] == {}
    served.finish(job_id)


def test_filesystems(root: Caller, alice: Caller) -> None:
    body = {"name": "data", "url": "local:///mnt/data", "properties": {"a": "b"}}
    made = alice.post("/fs", body)
    assert (made.status, made.json) == (201, {"fsName": "data", "fsID": "fs-alice-data"})
    shown = alice.get("/fs/data").json
    assert shown == {
        "id": "fs-alice-data", "name": "data", "serverAddress": "", "type": "local", "subPath": "/mnt/data",
        "username": "alice", "properties": {"a": "b"}, "independentMountProcess": False,
    }  # fmt: skip
    assert root.get("/fs/data", username="alice").json == shown
    listed = alice.get("/fs").json
    assert listed == {"marker": "", "truncated": False, "nextMarker": "", "fsList": [shown]}
    assert alice.post("/fs", body).code == "DuplicatedName"
    changed = alice.put("/fs", {**body, "url": "local:///mnt/other"})
    assert (changed.status, changed.json["fsID"]) == (201, "fs-alice-data")
    assert alice.get("/fs/data").json["subPath"] == "/mnt/other"
    assert root.post("/fs", {**body, "username": "alice", "name": "more"}).json["fsID"] == "fs-alice-more"
    assert alice.post("/fs", {**body, "name": "x", "url": "nfs://host/dir"}).code == "InvalidFileSystemParamsURL"
    assert alice.post("/fs", {**body, "name": "a/b"}).code == "FileSystemNameFormatError"
    job = alice.submit(fs={"name": "data", "mountPath": "/data", "readOnly": True})
    assert alice.get(f"/job/{job}").json["fs"] == {
        "id": "fs-alice-data", "name": "data", "type": "local", "hostPath": "/mnt/other", "mountPath": "/data",
        "subPath": "", "readOnly": True,
    }  # fmt: skip
    page = alice.get("/fs", maxKeys=1).json
    assert (page["truncated"], len(page["fsList"])) == (True, 1)
    rest = alice.get("/fs", maxKeys=1, marker=page["nextMarker"]).json
    assert (rest["truncated"], rest["nextMarker"], rest["marker"]) == (False, "", page["nextMarker"])
    assert rest["fsList"][0]["name"] == "more"
    gone = alice.delete("/fs/data")
    assert (gone.status, gone.body) == (200, b"")
    missing = alice.get("/fs/data")
    assert (missing.status, missing.code) == (404, "RecordNotFound")
    assert missing.message == "username[alice] not create fsName[data]"


def test_logs_page_wise(served: Served, alice: Caller) -> None:
    job = alice.submit()
    task = served.task_of(job)
    served.runtime.write_log(task, b"one\ntwo\nthree\n")  # type: ignore[arg-type]
    answer = alice.get("/log/job", jobID=job, lineLimit=2, readFromTail="true", sizeLimit="1M")
    assert answer.json == {
        "jobID": job,
        "taskList": [
            {"taskID": task, "logInfo": {"logContent": "two\nthree\n", "hasNextPage": True, "truncated": False}}
        ],
        "name": f"default/{job}",
        "type": "single",
        "eventList": [],
    }
    by_name = alice.get("/log/job", name=job, lineLimit=1).json
    assert by_name["taskList"][0]["logInfo"]["logContent"] == "one\n"
    for bad in ({"lineLimit": 0}, {"lineLimit": 1_000_001}, {"sizeLimit": "2G"}, {"readFromTail": "maybe"}):
        assert alice.get("/log/job", jobID=job, **bad).code == "InvalidURI"
    assert alice.get("/log/job").code == "InvalidURI"
    served.finish(job)


def test_statistics(served: Served, root: Caller, alice: Caller) -> None:
    job = alice.submit(flavour={"cpu": "1", "mem": "1Gi", "scalarResources": {"nvidia.com/gpu": "2"}})
    task = served.task_of(job)
    metrics = alice.get(f"/statistics/job/{job}").json["metricsInfo"]
    assert re.fullmatch(r"\d+\.\d\d%", metrics["cpu_usage_rate"])
    assert re.fullmatch(r"\d+\(Bytes\)", metrics["memory_usage"])

    def sampled() -> object:
        result = alice.get(f"/statistics/jobDetail/{job}", step=1).json["result"]
        return result if result[0]["taskInfo"][1]["values"] else None

    series = wait_for(sampled, "a sample was taken")
    assert series[0]["taskName"] == task  # type: ignore[index]
    assert [one["metric"] for one in series[0]["taskInfo"]] == ["cpu_usage_rate", "memory_usage"]  # type: ignore[index]
    assert alice.get(f"/statistics/jobDetail/{job}", start=5, end=4).code == "InvalidURI"
    assert alice.get(f"/statistics/jobDetail/{job}", step=0).code == "InvalidURI"
    served.finish(job)
    now = datetime.now(UTC).astimezone()
    window = {
        "startTime": (now - timedelta(hours=1)).strftime("%Y-%m-%d %H:%M:%S"),
        "endTime": (now + timedelta(hours=1)).strftime("%Y-%m-%d %H:%M:%S"),
    }
    by_get = root.get("/statistics/cardTime/default-queue", **window)
    by_post = root.post("/statistics/cardTime", {**window, "queueNames": ["default-queue"]})
    assert by_get.json == by_post.json
    queue = by_get.json["data"][0]
    assert set(queue) == {"queueName", "cardTime", "deviceType", "detail"}
    user = next(one for one in queue["detail"] if one["userName"] == "alice")
    assert set(user) == {"userName", "jobInfoList", "jobCount", "totalCardTime"}
    entry = next(one for one in user["jobInfoList"] if one["jobId"] == job)
    assert set(entry) == {"jobId", "cardTime", "createTime", "startTime", "finishTime", "deviceCount"}
    assert entry["deviceCount"] == 2
    assert root.get("/statistics/cardTime/default-queue").code == "InvalidURI"
    assert root.get("/statistics/cardTime/none", **window).code == "QueueNameNotFound"


def test_health_metrics_document(served: Served, root: Caller) -> None:
    outside = Caller(served.port)
    assert outside.call("GET", "/healthz", prefix="").json == {"status": "ok"}
    assert outside.call("GET", "/readyz", prefix="").json == {"status": "ok"}
    root.submit()
    text = outside.call("GET", "/metrics", prefix="").body.decode()
    assert re.search(r'pf_jobs\{queue="default-queue",status="\w+"\} \d', text)
    found = re.search(r'pf_metric_api_duration_millisecond_count\{apiName="([^"]+)",code="404",method="GET"\}', text)
    assert found is None or "{" in found[1] or found[1] == "unknown"
    assert "process_resident_memory_bytes" in text
    assert not re.search(r"job-[0-9a-f]{16}", text)
    document = outside.call("GET", "/openapi.json", prefix="").json
    assert document["openapi"].startswith("3.")
    assert f"{PREFIX}/job/{{jobID}}" in document["paths"]
