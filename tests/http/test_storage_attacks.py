"""Storage routes in bad hands: other users' filesystems, and input that nobody means."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.http.served import Caller, Served

SECRET = "unspeakable-secret-9"
S3 = {"accessKey": "AK", "secretKey": SECRET, "endpoint": "s3.example.org"}
Unique = Callable[[str], str]


@pytest.fixture
def bucket(alice: Caller, unique: Unique) -> str:
    name = unique("bucket")
    assert alice.post("/fs", {"name": name, "url": "s3://data/set", "properties": S3}).status == 201
    assert alice.post("/fsCache", {"fsName": name, "quota": 10}).status == 201
    return name


def routes_of(name: str, snapshot: str, mount: str, owner: str) -> list[tuple[str, str, Any]]:
    """Every route about a filesystem, asked on behalf of ``owner``."""
    whose = f"?username={owner}" if owner else ""
    also = f"&username={owner}" if owner else ""
    link = {"fsName": name, "fsPath": "/x", "url": "s3://mine/x", "properties": S3, "username": owner}
    return [
        ("GET", f"/fs/{name}{whose}", None),
        ("PUT", "/fs", {"name": name, "url": "s3://mine/x", "properties": S3, "username": owner}),
        ("DELETE", f"/fs/{name}{whose}", None),
        ("POST", "/link", link),
        ("GET", f"/link/{name}{whose}", None),
        ("GET", f"/link/{name}?fsPath=/x{also}", None),
        ("DELETE", f"/link/{name}?fsPath=/x{also}", None),
        ("POST", "/fsMount", {"fsName": name, "username": owner}),
        ("POST", "/fsMount", {"fsName": name, "username": owner, "snapshot": snapshot}),
        ("GET", f"/fsMount?fsName={name}{also}", None),
        ("POST", "/fsCache", {"fsName": name, "username": owner, "quota": 1}),
        ("GET", f"/fsCache/{name}{whose}", None),
        ("PUT", f"/fsCache/{name}", {"username": owner, "quota": 1}),
        ("DELETE", f"/fsCache/{name}{whose}", None),
        ("GET", f"/fsCache/stats/{name}{whose}", None),
        ("POST", f"/fs/{name}/snapshot", {"username": owner}),
        ("GET", f"/fs/{name}/snapshot{whose}", None),
        ("GET", f"/fs/{name}/snapshot/{snapshot}{whose}", None),
        ("DELETE", f"/fs/{name}/snapshot/{snapshot}{whose}", None),
        ("DELETE", f"/fsMount/{mount}", None),
    ]


def test_nobody_reaches_what_is_anothers(served: Served, alice: Caller, bobby: Caller, bucket: str) -> None:
    snapshot = alice.post(f"/fs/{bucket}/snapshot", {}).json["snapshotID"]
    mount = alice.post("/fsMount", {"fsName": bucket}).json["mountID"]
    calls = len(served.storages.checked)
    before = alice.get(f"/fs/{bucket}").json, alice.get(f"/fsCache/{bucket}").json
    for owner in ("alice", ""):
        for method, path, body in routes_of(bucket, snapshot, mount, owner):
            answer = bobby.call(method, path, body)
            assert answer.status in (400, 403, 404), (method, path, answer.status, answer.body)
            assert SECRET.encode() not in answer.body
            assert b"token" not in answer.body.lower()
    assert (alice.get(f"/fs/{bucket}").json, alice.get(f"/fsCache/{bucket}").json) == before
    assert [each["mountID"] for each in alice.get(f"/fsMount?fsName={bucket}").json["mountList"]] == [mount]
    assert len(served.storages.checked) == calls, "the platform called a storage for somebody who may not ask it to"
    assert alice.call("DELETE", f"/fsMount/{mount}").status == 200


HUGE, DEEP = "x" * 3_000_000, "/d" * 100_000
NAMES = ["../x", "a/b", "..", ".", "a b", "ä", "", "x" * 64, "%00", "a\u2028b", "fs\nname", "-" * 63]


@pytest.mark.parametrize("name", NAMES)
def test_odd_names_of_filesystems(alice: Caller, name: str) -> None:
    answer = alice.post("/fs", {"name": name, "url": "local:///tmp/odd"})
    if set(name) == {"-"}:  # ugly, and allowed
        assert answer.status in (201, 400)
        return
    assert answer.status == 400, answer.body


WRONG: list[dict[str, object]] = [
    {"properties": {f"p{n}": "v" for n in range(10_000)}},
    {"properties": {**S3, "x": HUGE}},
    {"properties": {**S3, HUGE: "x"}},
    {"properties": {**S3, "a\x00b": "c"}},
    {"properties": {**S3, "x": "\ud800"}},
    {"properties": {**S3, "x": 3}},
    {"properties": {**S3, "x": None}},
    {"properties": "text"},
    {"url": "s3://" + HUGE},
    {"url": "s3://bucket" + DEEP},
    {"url": "s3://bucket/../../etc"},
    {"url": "local://" + "/root" + "/keys"},
    {"url": "local:////root"},
    {"url": "local:///./root"},
    {"url": "local:///x/../root"},
    {"url": "local:///"},
    {"url": "file:///etc/passwd"},
    {"url": ["s3://x"]},
    {"properties": {**S3, "endpoint": "http://user:pw@host"}},
    {"properties": {**S3, "endpoint": "http://host/\r\nx: y"}},
    {"properties": {**S3, "endpoint": "gopher://host"}},
]


@pytest.mark.parametrize("wrong", WRONG, ids=range(len(WRONG)))
def test_input_that_nobody_means(alice: Caller, unique: Unique, wrong: dict[str, object]) -> None:
    body = {"name": unique("odd"), "url": "s3://data/set", "properties": S3, **wrong}
    answer = alice.post("/fs", body)
    assert 400 <= answer.status < 500, answer.body[:300]
    assert len(answer.body) < 2000
    assert SECRET.encode() not in answer.body


REPORTS: list[Any] = [
    {"versions": {f"/p{n}": 1 for n in range(50_000)}},
    {"versions": {HUGE: 1}},
    {"versions": {"/p": -1}},
    {"versions": {"/p": 2**63}},
    {"versions": {"/p": "NaN"}},
    {"versions": {"/p\x00": 1}},
    {"bytes": -1},
    {"bytes": 10**400},
    {"hits": 1.5},
    {"hits": float("nan")},
    {"hits": float("inf")},
    {"mountID": "mount-of-somebody-else"},
    {"mountID": HUGE},
]


@pytest.mark.parametrize("wrong", REPORTS, ids=range(len(REPORTS)))
def test_reports_that_nobody_means(alice: Caller, bucket: str, wrong: dict[str, object]) -> None:
    opened = alice.post("/fsMount", {"fsName": bucket, "node": "n"}).json
    mount = Caller(alice.port)
    report = {"node": "n", "mounts": [{"mountID": opened["mountID"], "fsID": opened["fsID"], **wrong}]}
    headers = {"x-pf-mount-token": opened["token"]}
    answer = mount.call("POST", "/fsCache/report", report, headers=headers)
    assert 400 <= answer.status < 500, answer.body[:300]
    assert len(answer.body) < 2000
    assert alice.get(f"/fsCache/stats/{bucket}").status == 200
    mount.call("DELETE", "/fsMount", headers=headers)


SETTINGS: list[dict[str, object]] = [
    {"quota": -1},
    {"quota": 2**63},
    {"blockSize": 10**300},
    {"metaDriver": HUGE},
    {"cacheDir": "relative"},
    {"cacheDir": "/a/../../etc"},
    {"cacheDir": "/" + HUGE},
    {"cacheDir": "/a\x00b"},
    {"extraConfig": {f"k{n}": "v" for n in range(1000)}},
    {"resource": {"cpuLimit": "NaN"}},
    {"resource": {"memoryLimit": "-1Gi"}},
    {"resource": {"memoryLimit": "9" * 5000}},
    {"nodeTaintToleration": {"k": HUGE}},
]


@pytest.mark.parametrize("wrong", SETTINGS, ids=range(len(SETTINGS)))
def test_cache_settings_that_nobody_means(alice: Caller, bucket: str, wrong: dict[str, object]) -> None:
    answer = alice.call("PUT", f"/fsCache/{bucket}", wrong)
    assert 400 <= answer.status < 500, answer.body[:300]
    assert len(answer.body) < 2000


@pytest.mark.parametrize(
    "path", ["", "/", "//", "x", "/..", "/a/../b", "/.paddleflow", "/.paddleflow/x", DEEP, "/a\x00"]
)
def test_places_where_no_link_can_be(alice: Caller, bucket: str, path: str) -> None:
    answer = alice.post("/link", {"fsName": bucket, "fsPath": path, "url": "s3://b2/x", "properties": S3})
    assert 400 <= answer.status < 500, answer.body[:300]
    assert json.loads(answer.body)["message"]


@pytest.mark.parametrize("query", ["maxKeys=-1", "maxKeys=1e9", "maxKeys=NaN", "marker=x", "marker=" + "A" * 5000])
def test_pages_that_nobody_means(alice: Caller, bucket: str, query: str) -> None:
    for path in ("/fs", f"/link/{bucket}", f"/fs/{bucket}/snapshot"):
        answer = alice.get(f"{path}?{query}")
        assert answer.status < 500, answer.body[:300]
