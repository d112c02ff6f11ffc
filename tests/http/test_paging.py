"""Pages under filters, markers, and requests sent twice."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.http.served import Caller, Served
from tests.waiting import wait_for

Unique = Callable[[str], str]


def pages(caller: Caller, path: str, key: str, size: int, **query: object) -> list[list[dict[str, object]]]:
    found: list[list[dict[str, object]]] = []
    marker: dict[str, object] = {}
    while True:
        answer = caller.get(path, maxKeys=size, **query, **marker)
        assert answer.status == 200, answer.body
        body = answer.json
        assert body["maxKeys"] == size
        assert body["isTruncated"] == ("nextMarker" in body)
        found.append(body[key])
        if not body["isTruncated"]:
            return found
        assert len(body[key]) == size
        marker = {"marker": body["nextMarker"]}


@pytest.fixture(scope="module")
def jobs(served: Served, alice: Caller, bobby: Caller) -> list[str]:
    """Alice's and Bobby's jobs alternate; every third of Alice's is labelled."""
    mine = []
    for number in range(9):
        labels = {"third": "yes"} if number % 3 == 0 else {"third": "no"}
        mine.append(alice.submit(labels=labels))
        bobby.submit(labels=labels)
    for job in mine[:4]:
        served.finish(job)
    return mine


@pytest.mark.parametrize("size", [1, 2, 3, 9, 50])
def test_pages_hold_every_row_once_and_the_newest_first(alice: Caller, jobs: list[str], size: int) -> None:
    found = pages(alice, "/job", "jobList", size)
    assert [job["id"] for page in found for job in page] == jobs[::-1]
    assert all(found), "a truncated page is followed by one with rows"


def test_pages_under_filters(served: Served, alice: Caller, jobs: list[str]) -> None:
    labelled = pages(alice, "/job", "jobList", 1, labels='{"third":"yes"}')
    assert [job["id"] for page in labelled for job in page] == jobs[::3][::-1]
    ended = pages(alice, "/job", "jobList", 2, status="succeeded")
    assert [job["id"] for page in ended for job in page] == jobs[:4][::-1]
    both = alice.get("/job", status="succeeded,failed,terminated", labels='{"third":"yes"}').json["jobList"]
    assert [job["id"] for job in both] == [jobs[3], jobs[0]]
    assert alice.get("/job", queue="none").json["jobList"] == []
    assert len(alice.get("/job", queue="default-queue").json["jobList"]) == 9
    assert alice.get("/job", timestamp=4_000_000_000).json["jobList"] == []
    assert len(alice.get("/job", timestamp=1).json["jobList"]) == 9
    wait_for(lambda: alice.status_of(jobs[-1]) == "running", "the last runs")
    assert len(alice.get("/job", startTime="2020-01-01 00:00:00").json["jobList"]) == 9
    assert alice.get("/job", startTime="2099-01-01 00:00:00").json["jobList"] == []


def test_other_lists_page_too(served: Served, root: Caller, unique: Unique) -> None:
    names = [unique("many") for _ in range(5)]
    for name in names:
        assert root.post("/flavour", {"name": name, "cpu": "1", "mem": "1Gi"}).status == 200
        assert root.post("/queue", {"name": name, "namespace": "default"}).status == 200
        assert root.post("/user", {"username": name, "password": "secret1"}).status == 200
    for path, key, query in (
        ("/flavour", "flavourList", {"name": "many"}), ("/queue", "queueList", {}), ("/user", "userList", {}),
    ):  # fmt: skip
        rows = [row["name"] for page in pages(root, path, key, 2, **query) for row in page]
        assert [name for name in rows if name in names] == names
        assert len(rows) == len(set(rows))


def test_markers_are_bound_and_sealed(root: Caller, jobs: list[str]) -> None:
    marker = root.get("/job", maxKeys=1).json["nextMarker"]
    assert int(marker, 16)
    last = "0" if marker[-1] != "0" else "1"
    for path, used in (("/queue", marker), ("/job", marker[:-1] + last), ("/job", "1"), ("/job", marker + "00")):
        answer = root.get(path, marker=used)
        assert (answer.status, answer.code) == (400, "InvalidMarker")


def test_the_same_request_twice_is_one_request(alice: Caller, root: Caller, unique: Unique) -> None:
    body = {"command": "true"}
    key = unique("key")
    first = alice.post("/job/single", body, Idempotency_Key=key)
    second = alice.post("/job/single", body, Idempotency_Key=key)
    assert (first.status, first.json) == (second.status, second.json)
    other = alice.post("/job/single", {**body, "command": "false"}, Idempotency_Key=key)
    assert (other.status, other.code) == (400, "InvalidArguments")
    assert root.post("/job/single", body, Idempotency_Key=key).json["id"] != first.json["id"]
    name = unique("once")
    for path, made in (
        ("/queue", {"name": name, "namespace": "default"}),
        ("/flavour", {"name": name, "cpu": "1", "mem": "1Gi"}),
        ("/user", {"username": name, "password": "secret1"}),
        ("/fs", {"name": name, "url": "local:///mnt/x"}),
        ("/cluster", {"clusterName": name, "endpoint": "x", "clusterType": "Local"}),
        ("/grant", {"userName": name, "resourceType": "queue", "resourceID": "default-queue"}),
    ):
        key = unique("key")
        answers = [root.post(path, made, Idempotency_Key=key) for _ in range(2)]
        assert answers[0].status in (200, 201), f"{path}: {answers[0].body!r}"
        assert (answers[0].status, answers[0].body) == (answers[1].status, answers[1].body)
    assert alice.post("/job/single", body, Idempotency_Key="k" * 300).status == 400
