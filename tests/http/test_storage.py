"""Filesystems of every type, links, mounts, caches and snapshots on raw HTTP, as their clients know them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from paddleflow.adapters.identity import open_sealed_plan
from paddleflow.domain.errors import Denied
from tests.http.served import Answer, Caller, Served
from tests.waiting import wait_for

SECRET = "unspeakable-secret-9"
S3 = {"accessKey": "AK", "secretKey": SECRET, "endpoint": "s3.example.org"}
LOCAL_TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")
RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
Unique = Callable[[str], str]


@pytest.fixture
def bucket(alice: Caller, unique: Unique) -> str:
    name = unique("bucket")
    answer = alice.post("/fs", {"name": name, "url": "s3://data/set", "properties": S3})
    assert (answer.status, answer.json) == (201, {"fsName": name, "fsID": f"fs-alice-{name}"})
    return name


@pytest.fixture
def disk(alice: Caller, unique: Unique, tmp_path: Path) -> str:
    name = unique("disk")
    assert alice.post("/fs", {"name": name, "url": f"local://{tmp_path}"}).status == 201
    return name


@pytest.fixture
def unreachable(served: Served) -> Iterator[None]:
    served.storages.failure = Denied(f"the key {SECRET} is unknown")
    yield
    served.storages.failure = None


def mounted(caller: Caller, **body: object) -> Any:
    answer = caller.post("/fsMount", body)
    assert answer.status == 201, answer.body
    return answer.json


def with_token(caller: Caller, method: str, path: str, token: str, body: object = None) -> Answer:
    """As a mount: it has no log-in."""
    return Caller(caller.port).call(method, path, body, headers={"x-pf-mount-token": token})


def test_a_filesystem_shows_that_it_has_a_secret_and_not_which(served: Served, alice: Caller, bucket: str) -> None:
    shown = alice.get(f"/fs/{bucket}").json
    assert shown == {
        "id": f"fs-alice-{bucket}", "name": bucket, "serverAddress": "s3.example.org", "type": "s3",
        "subPath": "/set", "username": "alice", "independentMountProcess": False,
        "properties": {"accessKey": "AK", "secretKey": "******", "endpoint": "s3.example.org", "bucket": "data"},
    }  # fmt: skip
    body = {"name": bucket, "url": "s3://data/other", "properties": shown["properties"]}
    assert alice.put("/fs", body).status == 201
    assert served.storages.checked[-1].properties["secretKey"] == SECRET
    assert alice.get(f"/fs/{bucket}").json["subPath"] == "/other"
    told = alice.get("/fs").body + served.root.get("/event", after=0, follow="false").body
    assert SECRET.encode() not in told
    assert SECRET.encode() not in served.database.read_bytes()


def test_a_storage_that_cannot_be_used_is_refused(alice: Caller, unique: Unique, unreachable: None) -> None:
    answer = alice.post("/fs", {"name": unique("bad"), "url": "s3://data/set", "properties": S3})
    assert (answer.status, answer.code) == (400, "ConnectivityFailed")
    assert "is unknown" in answer.message
    assert SECRET not in answer.message


@pytest.mark.parametrize(
    ("url", "properties", "code"),
    [
        ("s3://data/x", {}, "InvalidFileSystemParamsProperties"),
        ("s3://data/x", {**S3, "endpoint": ""}, "InvalidFileSystemParamsProperties"),
        ("sftp://host/x", {"user": "u"}, "InvalidFileSystemParamsProperties"),
        ("glusterfs://h:v", {}, "InvalidFileSystemParamsURL"),
        ("afs://h/x", {"username": "u", "password": SECRET}, "InvalidFileSystemParamsURL"),
        (f"sftp://u:{SECRET}@host/x", {"user": "u", "password": "p"}, "InvalidFileSystemParamsURL"),
        ("nonsense", {}, "InvalidFileSystemParamsURL"),
    ],
)
def test_bad_storages(alice: Caller, unique: Unique, url: str, properties: dict[str, str], code: str) -> None:
    answer = alice.post("/fs", {"name": unique("bad"), "url": url, "properties": properties})
    assert (answer.status, answer.code) == (400, code)
    assert SECRET not in answer.message


def test_links(alice: Caller, root: Caller, disk: str, tmp_path: Path) -> None:
    (tmp_path / "dir" / "full").mkdir(parents=True)
    (tmp_path / "dir" / "full" / "file").write_text("x")
    body = {"fsName": disk, "fsPath": "/dir/link", "url": "s3://other/y", "properties": S3}
    made = alice.post("/link", body)
    assert (made.status, made.body) == (201, b"")
    shown = {
        "fsName": disk, "fsPath": "/dir/link", "serverAddress": "s3.example.org", "type": "s3", "username": "alice",
        "subPath": "/y", "properties": {**S3, "secretKey": "******", "bucket": "other"},
    }  # fmt: skip
    listed = alice.get(f"/link/{disk}").json
    assert listed == {"marker": "", "truncated": False, "nextMarker": "", "linkList": [shown]}
    assert root.get(f"/link/{disk}", username="alice", fsPath="/dir/link").json["linkList"] == [shown]
    assert alice.get(f"/link/{disk}", fsPath="/none").code == "LinkNotExist"
    for change, code in (
        ({"fsPath": "/dir/link"}, "LinkPathExist"),
        ({"fsPath": "/dir/link/x"}, "LinkPathExist"),
        ({"fsPath": "/dir/full"}, "LinkPathMustBeEmpty"),
        ({"fsPath": "/no/x"}, "LinkFileSystemPathNotExist"),
        ({"fsPath": "/dir/full/file/x"}, "LinkFileSystemPathNotExist"),
        ({"fsPath": "/new", "url": "x"}, "InvalidLinkURL"),
        ({"fsPath": "/new", "properties": {}}, "InvalidLinkProperties"),
        ({"fsPath": "/new", "url": "local:///mnt/x"}, "InvalidLinkProperties"),
    ):
        answer = alice.post("/link", {**body, **change})
        assert (answer.status, answer.code) == (400, code), change
    assert alice.post("/link", {**body, "fsName": "none"}).code == "RecordNotFound"
    assert alice.post("/link", {**body, "fsPath": "/second"}).status == 201
    first = alice.get(f"/link/{disk}", maxKeys=1).json
    assert first["truncated"] is True
    rest = alice.get(f"/link/{disk}", maxKeys=1, marker=first["nextMarker"]).json
    assert [row["fsPath"] for row in rest["linkList"]] == ["/second"]
    assert alice.delete(f"/link/{disk}").code == "InvalidURI"
    gone = alice.delete(f"/link/{disk}", fsPath="/dir/link")
    assert (gone.status, gone.body) == (200, b"")
    assert alice.delete(f"/link/{disk}", fsPath="/dir/link").code == "LinkNotExist"


def test_cache_configuration(alice: Caller, root: Caller, bucket: str) -> None:
    path = f"/fsCache/{bucket}"
    assert (alice.get(path).status, alice.get(path).code) == (404, "RecordNotFound")
    body = {
        "fsName": bucket, "cacheDir": "/var/cache/x", "quota": 100, "metaDriver": "disk", "blockSize": 4096,
        "debug": True, "cleanCache": True, "resource": {"cpuLimit": "1", "memoryLimit": "2Gi"},
        "nodeTaintToleration": {"a": "b"}, "extraConfig": {"k": "v"},
    }  # fmt: skip
    made = alice.post("/fsCache", body)
    assert (made.status, made.body) == (201, b"")
    shown = root.get(path, username="alice").json
    assert LOCAL_TIME.fullmatch(shown.pop("createTime"))
    assert LOCAL_TIME.fullmatch(shown.pop("updateTime"))
    assert shown == {**body, "username": "alice"}
    assert alice.post("/fsCache", body).code == "DuplicatedName"
    changed = alice.put(path, {"blockSize": 0, "resource": {"cpuLimit": 2}})
    assert (changed.status, changed.body) == (200, b"")
    assert alice.get(path).json["blockSize"] == 0
    assert alice.get(path).json["resource"] == {"cpuLimit": "2", "memoryLimit": "2Gi"}
    assert alice.get(path).json["cacheDir"] == "/var/cache/x"
    for wrong, field in (
        ({"metaDriver": "redis"}, "metaDriver"),
        ({"cacheDir": "relative"}, "cacheDir"),
        ({"cacheDir": ""}, "cacheDir"),
        ({"blockSize": -1}, "blockSize"),
        ({"resource": {"cpuLimit": "3"}}, "resource.cpuLimit"),
        ({"resource": {"memoryLimit": "9Gi"}}, "resource.memoryLimit"),
    ):
        answer = alice.put(path, wrong)
        assert (answer.status, answer.code) == (400, "InvalidArguments")
        assert field in answer.message
    mount = mounted(alice, fsName=bucket)
    assert (alice.delete(path).status, alice.delete(path).code) == (403, "ActionNotAllowed")
    assert alice.delete(f"/fsMount/{mount['mountID']}").status == 200
    gone = alice.delete(path)
    assert (gone.status, gone.body) == (200, b"")
    assert alice.delete(path).status == 404
    assert alice.post("/fsCache", {**body, "fsName": "none"}).status == 404


def test_a_mount_lives_by_its_token(alice: Caller, bobby: Caller, bucket: str) -> None:
    mount = mounted(alice, fsName=bucket, node="node-1", mountpoint="/mnt/here")
    assert re.fullmatch(r"mount-[0-9a-f]{16}", mount["mountID"])
    assert mount["fsID"] == f"fs-alice-{bucket}"
    assert RFC3339.fullmatch(mount["expiresAt"])
    access = with_token(alice, "POST", "/fsMount/access", mount["token"])
    assert access.status == 200
    assert set(access.json) == {"sealed", "token", "expiresAt"}
    assert SECRET.encode() not in access.body
    plan = json.loads(open_sealed_plan(mount["token"], access.json["sealed"]))
    assert plan["storage"] == {
        "type": "s3", "serverAddress": "s3.example.org", "subPath": "/set",
        "properties": {**S3, "bucket": "data"},
    }  # fmt: skip
    again = with_token(alice, "POST", "/fsMount/access", access.json["token"])
    assert again.status == 200
    (row,) = alice.get("/fsMount", fsName=bucket).json["mountList"]
    assert LOCAL_TIME.fullmatch(row.pop("since"))
    assert LOCAL_TIME.fullmatch(row.pop("lastSeen"))
    assert row == {
        "mountID": mount["mountID"], "fsID": mount["fsID"], "fsName": bucket, "username": "alice",
        "node": "node-1", "mountpoint": "/mnt/here", "readOnly": False, "snapshot": "", "lastReport": None,
    }  # fmt: skip
    busy = alice.delete(f"/fs/{bucket}")
    assert (busy.status, busy.code) == (403, "ActionNotAllowed")
    assert "node-1" in busy.message
    assert bobby.delete(f"/fsMount/{mount['mountID']}").status == 403
    left = with_token(alice, "DELETE", "/fsMount", again.json["token"])
    assert (left.status, left.body) == (200, b"")
    refused = with_token(alice, "POST", "/fsMount/access", again.json["token"])
    assert (refused.status, refused.code) == (400, "AuthInvalidToken")
    assert alice.delete(f"/fs/{bucket}").status == 200


def test_a_log_in_is_no_mount_token_and_the_other_way_round(alice: Caller, bucket: str) -> None:
    mount = mounted(alice, fsName=bucket)
    assert with_token(alice, "POST", "/fsMount/access", alice.token).code == "AuthInvalidToken"
    assert alice.call("POST", "/fsMount/access").code == "AuthWithoutToken"
    assert Caller(alice.port, token=mount["token"]).get("/fs").code == "AuthInvalidToken"


def test_who_may_mount(served: Served, root: Caller, alice: Caller, bobby: Caller, bucket: str) -> None:
    fs_id = f"fs-alice-{bucket}"
    refused = bobby.post("/fsMount", {"fsID": fs_id})
    assert (refused.status, refused.code) == (403, "AccessDenied")
    assert bobby.post("/fsMount", {"fsName": bucket}).status == 404
    assert bobby.post("/fsMount", {"fsName": bucket, "username": "alice"}).code == "AuthIllegalUser"
    grant = {"userName": "bobby", "resourceType": "fs", "resourceID": fs_id}
    assert root.post("/grant", grant).status == 200
    assert mounted(bobby, fsID=fs_id)["fsID"] == fs_id
    assert mounted(root, fsName=bucket, username="alice")["fsID"] == fs_id
    for body in ({}, {"fsName": "a", "fsID": "b"}):
        answer = alice.post("/fsMount", body)
        assert (answer.status, answer.code) == (400, "InvalidArguments")


def test_reports_become_statistics(alice: Caller, bobby: Caller, bucket: str) -> None:
    mount = mounted(alice, fsName=bucket, node="node-1")
    report = {
        "node": "node-1",
        "mounts": [
            {
                "fsID": mount["fsID"], "mountID": mount["mountID"], "bytes": 500, "files": 5, "totalBytes": 1000,
                "hits": 3, "misses": 1, "hitBytes": 300, "missBytes": 100, "versions": {"train": 400},
            }
        ],
    }  # fmt: skip
    told = with_token(alice, "POST", "/fsCache/report", mount["token"], report)
    assert (told.status, told.body) == (200, b"")
    stats = alice.get(f"/fsCache/stats/{bucket}").json
    (node,) = stats["nodes"]
    assert LOCAL_TIME.fullmatch(node.pop("updateTime"))
    assert node == {
        "node": "node-1", "bytes": 500, "files": 5, "totalBytes": 1000, "hits": 3, "misses": 1, "hitBytes": 300,
        "missBytes": 100, "hitRatio": 0.75, "versions": {"train": 400},
    }  # fmt: skip
    assert (stats["fsName"], stats["fsID"], stats["hitRatio"]) == (bucket, mount["fsID"], 0.75)
    assert alice.get("/fsMount", fsName=bucket).json["mountList"][0]["lastReport"]["bytes"] == 500
    for body, code in (
        ({"node": "n", "mounts": []}, "InvalidArguments"),
        ({"node": "n", "mounts": [{"mountID": "mount-other"}]}, "AccessDenied"),
        ({"node": "n", "mounts": [{"mountID": mount["mountID"], "bytes": -1}]}, "InvalidArguments"),
        ({"node": "n", "mounts": [{"mountID": mount["mountID"], "bytes": "many"}]}, "MalformedJSON"),
    ):
        assert with_token(alice, "POST", "/fsCache/report", mount["token"], body).code == code
    assert alice.post("/fsCache/report", report).code == "AuthWithoutToken"
    assert bobby.get(f"/fsCache/stats/{bucket}", username="alice").status == 403


def test_snapshots(served: Served, alice: Caller, bucket: str) -> None:
    path = f"/fs/{bucket}/snapshot"
    made = alice.post(path, {"name": "before", "subPath": "train", "copy": True})
    assert made.status == 201
    snapshot = made.json["snapshotID"]
    assert re.fullmatch(r"snap-[0-9a-f]{16}", snapshot)

    def ready() -> Any:
        row = alice.get(f"{path}/{snapshot}").json
        return row if row["state"] == "ready" else None

    row = wait_for(ready, "the snapshot is ready")
    assert LOCAL_TIME.fullmatch(row.pop("createTime"))
    assert LOCAL_TIME.fullmatch(row.pop("updateTime"))
    assert row == {
        "snapshotID": snapshot, "fsName": bucket, "fsID": f"fs-alice-{bucket}", "username": "alice",
        "name": "before", "subPath": "train", "kind": "copy", "state": "ready", "files": 3, "bytes": 300,
        "message": "",
    }  # fmt: skip
    second = alice.call("POST", path).json["snapshotID"]
    listed = alice.get(path).json
    assert [each["snapshotID"] for each in listed["snapshotList"]] == [snapshot, second]
    assert (listed["maxKeys"], listed["isTruncated"]) == (50, False)
    mount = mounted(alice, fsName=bucket, snapshot=snapshot)
    (live,) = alice.get("/fsMount", fsName=bucket).json["mountList"]
    assert (live["readOnly"], live["snapshot"]) == (True, snapshot)
    assert (alice.delete(f"{path}/{snapshot}").status, alice.delete(f"{path}/{snapshot}").code) == (
        403,
        "ActionNotAllowed",
    )
    assert alice.delete(f"/fsMount/{mount['mountID']}").status == 200
    assert alice.delete(f"{path}/{snapshot}").status == 200
    wait_for(lambda: alice.get(f"{path}/{snapshot}").status == 404, "the snapshot is gone")
    assert snapshot not in served.storages.made
    assert alice.post(path, {"subPath": "../up"}).code == "InvalidArguments"
    assert alice.post("/fsMount", {"fsName": bucket, "snapshot": "snap-none"}).code == "InvalidArguments"


def test_a_repeated_creation_is_one(alice: Caller, bucket: str) -> None:
    path = f"/fs/{bucket}/snapshot"
    first = alice.post(path, {"name": "once"}, Idempotency_Key="snap-once")
    assert alice.post(path, {"name": "once"}, Idempotency_Key="snap-once").json == first.json
    one = alice.post("/fsMount", {"fsName": bucket}, Idempotency_Key="mount-once").json
    two = alice.post("/fsMount", {"fsName": bucket}, Idempotency_Key="mount-once").json
    assert one["mountID"] == two["mountID"]
    assert len(alice.get("/fsMount", fsName=bucket).json["mountList"]) == 1
