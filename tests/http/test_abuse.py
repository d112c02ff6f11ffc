"""What a hostile or careless client may send: always a clean refusal, never a 500."""

from __future__ import annotations

import json
import socket
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from paddleflow.adapters.sql.store import SqlStore
from tests.http.served import PREFIX, Caller, Served
from tests.waiting import DEADLINE_S, wait_for

Unique = Callable[[str], str]
MIB = 1024 * 1024


@pytest.mark.parametrize(
    "raw",
    [
        b"{",
        b'{"name": }',
        b"\xff\xfe",
        b'{"name": NaN}',
        b'{"name": 1e999}',
        b'{"name": "\\ud800"}',
        b'{"name": "a\\u0000b"}',
        b'{"x": ' + b"9" * 5000 + b"}",
        b"[" * 100_000,
        b'{"extensionTemplate": ' + b'{"a":' * 500 + b"1" + b"}" * 500 + b"}",
        b"",
        b"   ",
    ],
)
@pytest.mark.parametrize("path", ["/job/single", "/queue", "/user", "/login", "/fs"])
def test_malformed_json(root: Caller, path: str, raw: bytes) -> None:
    answer = root.call("POST", path, raw=raw)
    assert (answer.status, answer.code) == (400, "MalformedJSON")


@pytest.mark.parametrize(
    ("path", "body", "code", "field"),
    [
        ("/job/single", {"image": 5}, "JobCreateFailed", "image"),
        ("/job/single", {"flavour": {"cpu": True}}, "JobCreateFailed", "flavour.cpu"),
        ("/job/single", {"flavour": []}, "JobCreateFailed", "flavour"),
        ("/job/single", {"env": {"A": 1}}, "JobCreateFailed", "env.A"),
        ("/job/single", {"port": "80"}, "JobCreateFailed", "port"),
        ("/job/single", {"fs": {"name": "x", "readOnly": "true"}}, "JobCreateFailed", "fs.readOnly"),
        ("/job/single", {"args": "x"}, "JobCreateFailed", "args"),
        ("/queue", {"maxResources": {"scalarResources": ["gpu"]}}, "MalformedJSON", "maxResources.scalarResources"),
        ("/user", {"username": ["x"]}, "MalformedJSON", "username"),
        ("/fs", {"independentMountProcess": 1}, "MalformedJSON", "independentMountProcess"),
        ("/statistics/cardTime", {"queueNames": "q"}, "MalformedJSON", "queueNames"),
    ],
)
def test_wrong_types_name_the_field(root: Caller, path: str, body: object, code: str, field: str) -> None:
    answer = root.post(path, body)
    assert (answer.status, answer.code) == (400, code)
    assert answer.message.startswith(f"Field[{field}] is invalid, ")


@pytest.mark.parametrize("body", [[], "text", 5, True, None])
def test_a_body_that_is_no_object(root: Caller, body: object) -> None:
    assert root.call("POST", "/job/single", raw=json.dumps(body).encode()).status == 400


@pytest.mark.parametrize(
    "flavour",
    [
        {"cpu": "-1", "mem": "1Gi"},
        {"cpu": "1", "mem": "-1Gi"},
        {"cpu": "1e30", "mem": "1Gi"},
        {"cpu": "9" * 60, "mem": "1Gi"},
        {"cpu": -5, "mem": 1},
        {"cpu": "one", "mem": "1Gi"},
        {"cpu": "1", "mem": "1Gi", "scalarResources": {"nvidia.com/gpu": "-1"}},
        {"cpu": "1", "mem": "1Gi", "scalarResources": {"$(id)": "1"}},
        {"cpu": "1", "mem": "1Gi", "scalarResources": {"nvidia.com/gpu": "99"}},
    ],
)
def test_absurd_quantities(root: Caller, flavour: object) -> None:
    answer = root.post("/job/single", {"command": "true", "flavour": flavour})
    assert (answer.status, answer.code) == (400, "JobCreateFailed")


HOSTILE = ["../../etc/passwd", "a/b", "$(reboot)", "`id`", "a;b", "a b", "'", '"', "\n", "..", "é", "x" * 10_000]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names(root: Caller, name: str) -> None:
    for path, body in (
        ("/queue", {"name": name, "namespace": "default"}),
        ("/queue", {"name": "fine", "namespace": name}),
        ("/user", {"username": name, "password": "secret1"}),
        ("/fs", {"name": name, "url": "local:///mnt/x"}),
        ("/flavour", {"name": name, "cpu": "1", "mem": "1Gi"}),
        ("/cluster", {"clusterName": name, "endpoint": "x", "clusterType": "Local"}),
        ("/job/single", {"id": name, "command": "true"}),
        ("/grant", {"userName": name, "resourceType": "queue", "resourceID": name}),
    ):
        answer = root.post(path, body)
        assert answer.status in (400, 403), f"{path}: {answer.status} {answer.body!r}"


@pytest.mark.parametrize(
    "part", ["%2e%2e", "%2e%2e%2fetc", "a%2fb", "%00", "a%00b", "%ff%fe", "%ed%a0%80", "x" * 10_000]
)
def test_hostile_paths(root: Caller, part: str) -> None:
    for method, path in (
        ("GET", "/job/{}"), ("GET", "/job/{}/log"), ("GET", "/job/{}/why"), ("DELETE", "/job/{}"), ("GET", "/queue/{}"),
        ("GET", "/flavour/{}"), ("GET", "/cluster/{}"), ("GET", "/fs/{}"), ("DELETE", "/user/{}"),
        ("GET", "/statistics/job/{}"), ("GET", "/cluster/{}/nodeInfos"),
    ):  # fmt: skip
        answer = root.call(method, path.format(part))
        assert 400 <= answer.status < 500, f"{method} {path} {part}: {answer.status}"
        assert answer.code


@pytest.mark.parametrize(
    "query",
    [
        "maxKeys=0", "maxKeys=1001", "maxKeys=x", "maxKeys=-1", "maxKeys=%D9%A1", "maxKeys=" + "9" * 400,
        "timestamp=x", "timestamp=-1", "timestamp=999999999999999", "startTime=yesterday",
        "startTime=0001-01-01+00:00:00", "startTime=9999-12-31+23:59:59&x=1", "labels=5", "labels={", "labels=[1]",
        'labels={"a":1}', 'labels={"a":"\\ud800"}', "labels=" + "[" * 5000, "status=sleeping", "queue=%00", "marker=zz",
        "marker=00", "marker=" + "0" * 48,
    ],
)  # fmt: skip
def test_hostile_queries(root: Caller, query: str) -> None:
    answer = root.call("GET", f"/job?{query.replace(' ', '+').replace(chr(34), '%22').replace(chr(92), '%5C')}")
    if query.startswith("startTime=9999"):
        assert answer.status in (200, 400)
        return
    assert answer.status == 400, answer.body
    assert answer.code in ("InvalidURI", "InvalidMarker")


def test_max_keys_message(root: Caller) -> None:
    assert root.get("/job", maxKeys=1001).message == "maxKeys[1001] is invalid"


def test_long_fields(root: Caller) -> None:
    long = "x" * 130_000
    for body in (
        {"name": long}, {"command": long}, {"env": {"A": long}}, {"labels": {"a": long}}, {"labels": {long: "a"}},
        {"args": [long]}, {"image": long}, {"env": {f"A{i}": "1" for i in range(2000)}},
        {"schedulingPolicy": {"queue": long}}, {"flavour": {"name": long}},
    ):  # fmt: skip
        answer = root.post("/job/single", {"command": "true", **body})
        assert (answer.status, answer.code) == (400, "JobCreateFailed")
        assert len(answer.body) < 2000


def test_large_body_with_a_length(root: Caller) -> None:
    answer = root.call("POST", "/job/single", raw=b"x" * (10 * MIB))
    assert (answer.status, answer.code) == (413, "InvalidHTTPRequest")


def test_large_body_in_chunks(root: Caller, served: Served) -> None:
    head = (
        f"POST {PREFIX}/job/single HTTP/1.1\r\nHost: x\r\nx-pf-authorization: {root.token}\r\n"
        "Transfer-Encoding: chunked\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", served.port), timeout=DEADLINE_S) as sock:
        sock.sendall(head.encode())
        chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
        for _ in range(40):
            sock.sendall(chunk)
        sock.sendall(b"0\r\n\r\n")
        assert sock.recv(4096).startswith(b"HTTP/1.1 413 ")


def test_a_body_at_the_limit_is_read(root: Caller) -> None:
    padding = b'{"command":"true","unknown":"' + b"x" * (MIB - 60) + b'"}'
    assert len(padding) <= MIB
    assert root.call("POST", "/job/single", raw=padding).status == 200


def test_one_name_has_one_winner(root: Caller, unique: Unique) -> None:
    name = unique("race")
    start = threading.Barrier(8, timeout=DEADLINE_S)

    def create(_: int) -> int:
        start.wait()
        return root.post("/queue", {"name": name, "namespace": "default", "maxResources": {"cpu": "1"}}).status

    with ThreadPoolExecutor(8) as pool:
        statuses = sorted(pool.map(create, range(8)))
    assert statuses == [200] + [403] * 7


def make_impatient(store: SqlStore) -> None:
    """From now on it does not wait for other writers; in all else these tests wait, however slow the machine is."""
    with store.write():  # the connection is every thread's, in turns
        store._database._writer.execute("PRAGMA busy_timeout = 0")  # type: ignore[attr-defined]
    store._busy_timeout_s = 0.3


def test_a_locked_database_is_a_503(fresh: Served) -> None:
    job = fresh.root.submit()
    make_impatient(fresh.store)
    other = sqlite3.connect(fresh.database, isolation_level=None, timeout=DEADLINE_S)
    try:
        other.execute("BEGIN EXCLUSIVE")
        answers = [
            fresh.root.post("/queue", {"name": "late", "namespace": "default"}),
            fresh.root.post("/job/single", {"command": "true"}),
            fresh.root.put(f"/job/{job}", action="stop"),
            fresh.root.call("GET", "/readyz", prefix=""),
        ]
        assert [answer.status for answer in answers] == [503] * 4
        assert answers[0].headers["retry-after"]
        assert fresh.root.call("GET", "/healthz", prefix="").status == 200
    finally:
        other.execute("ROLLBACK")
        other.close()
    wait_for(lambda: fresh.root.call("GET", "/readyz", prefix="").status == 200, "the database is back")
    late = {"name": "late", "namespace": "default"}
    wait_for(lambda: fresh.root.post("/queue", late).status == 200, "it is written to again")


def test_a_defect_is_a_canned_500(fresh: Served, caplog: pytest.LogCaptureFixture) -> None:
    """A row no code of ours would write stands for a defect."""
    job = fresh.root.submit(command="echo unspeakable")
    fresh.finish(job)
    with sqlite3.connect(fresh.database, timeout=DEADLINE_S) as other:
        table = next(
            name
            for (name,) in other.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            if "spec" in {column[1] for column in other.execute(f"PRAGMA table_info({name})")}
        )
        other.execute(f"UPDATE {table} SET spec = '[\"unspeakable\"]'")
    other.close()
    answer = fresh.root.get(f"/job/{job}")
    assert (answer.status, answer.code) == (500, "InternalError")
    assert answer.message == "We encountered an internal error. Please try again."
    assert answer.json["requestID"] in caplog.text
    assert "unspeakable" not in caplog.text
