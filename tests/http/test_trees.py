"""Quotas in a tree, on raw HTTP: who may stand where, who takes jobs, and that a refusal changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from paddleflow.domain.clusters import Node
from paddleflow.domain.commands import ReportNodes
from paddleflow.domain.ids import DEFAULT_CLUSTER
from paddleflow.domain.users import PLATFORM
from paddleflow.testing.builders import a_node, resources
from tests.http.served import Answer, Caller, Served
from tests.waiting import wait_for

Unique = Callable[[str], str]
PARENT = "paddleflow.baidu.com/elastic-resource-quota-parent"
ISOLATION = "paddleflow.baidu.com/resource-isolation-type"


def create(root: Caller, name: str, least: str, most: str, parent: str = "", **more: Any) -> Answer:
    amounts = {"minResources": {"cpu": least}, "maxResources": {"cpu": most, "mem": "20Gi"}}
    location = {"location": {PARENT: parent}} if parent else {}
    return root.post("/queue", {"name": name, "namespace": "default", **amounts, **location, **more})


def shown(root: Caller, name: str) -> dict[str, Any]:
    answer: dict[str, Any] = root.get(f"/queue/{name}").json
    return answer


def test_a_tree_grows_and_is_taken_down(root: Caller, unique: Unique) -> None:
    parent, child, other = unique("parent"), unique("child"), unique("child")
    assert create(root, parent, "8", "16").status == 200
    job = root.submit(schedulingPolicy={"queue": parent})
    busy = create(root, child, "2", "16", parent)
    assert (busy.status, busy.code) == (400, "QueueIsInUse")
    assert job in busy.message
    assert root.get(f"/queue/{child}").code == "QueueNameNotFound", "nothing half applied"
    assert root.put(f"/job/{job}", action="stop").status == 200
    wait_for(lambda: root.status_of(job) == "terminated", f"{job} ended")
    assert create(root, child, "2", "16", parent, weight=3).status == 200
    assert (shown(root, child)["parent"], shown(root, child)["weight"]) == (parent, 3)
    assert shown(root, parent)["status"] == "closed"
    refused = root.post("/job/single", {"command": "x", "schedulingPolicy": {"queue": parent}})
    assert refused.message == f"queue[{parent}] status is closed, and only queue with open status can submit jobs"
    reopened = root.put(f"/queue/{parent}", action="open")
    assert (reopened.status, reopened.code) == (400, "QueueInvalidField")
    over = create(root, other, "7", "16", parent)
    assert (over.status, over.code) == (400, "InvalidComputeResource")
    assert "minResources.cpu" in over.message
    assert "give at most 6" in over.message
    shrunk = root.put(f"/queue/{parent}", {"minResources": {"cpu": "1"}})
    assert "give at least 2" in shrunk.message
    assert shown(root, parent)["minResources"]["cpu"] == "8"
    held = root.delete(f"/queue/{parent}")
    assert (held.status, held.code) == (400, "QueueIsInUse")
    assert child in held.message
    assert create(root, other, "0", "8", child).status == 200
    circle = root.put(f"/queue/{child}", {"location": {PARENT: other}})
    assert (circle.status, circle.code) == (400, "QueueInvalidField")
    assert f"{child} -> {other} -> {child}" in circle.message
    moved = root.put(f"/queue/{other}", {"location": {PARENT: parent}})
    assert (moved.status, moved.json["parent"]) == (200, parent)
    assert shown(root, child)["status"] == "open", "it has lost its last child"
    for name in (other, child):
        assert shown(root, parent)["status"] == "closed"
        assert root.delete(f"/queue/{name}").status == 200
    assert shown(root, parent)["status"] == "open"
    assert root.delete(f"/queue/{parent}").status == 200


def test_guarantees_end_at_the_nodes(root: Caller, unique: Unique) -> None:
    name = unique("huge")
    answer = create(root, name, "65", "100")
    assert (answer.status, answer.code) == (400, "InvalidComputeResource")
    assert "public nodes have 64" in answer.message


def test_isolation_stays_as_it_was(root: Caller, unique: Unique) -> None:
    name = unique("logical")
    assert create(root, name, "0", "1").status == 200
    answer = root.put(f"/queue/{name}", {"location": {ISOLATION: "physical"}})
    assert (answer.status, answer.code) == (400, "QueueInvalidField")
    bare = create(root, unique("own"), "0", "1", location={ISOLATION: "physical"})
    assert (bare.status, bare.code) == (400, "InvalidComputeResource")
    assert "the 0 of the nodes labelled" in bare.message


@pytest.mark.parametrize("weight", [0, -1, 10**30, "2", 1.5, True])
def test_weights(root: Caller, unique: Unique, weight: object) -> None:
    answer = create(root, unique("weighty"), "0", "1", weight=weight)
    assert answer.status == 400
    assert "weight" in answer.message


def test_a_closed_queue_accepts_and_starts_nothing(served: Served, root: Caller, alice: Caller, unique: Unique) -> None:
    name = unique("door")
    assert create(root, name, "0", "1").status == 200
    policy = {"schedulingPolicy": {"queue": name}}
    running, waiting = root.submit(**policy), root.submit(**policy)
    served.task_of(running)
    closed = root.put(f"/queue/{name}", action="close")
    assert (closed.status, closed.json["status"]) == (200, "closed")
    assert root.post("/job/single", {"command": "x", **policy}).code == "JobCreateFailed"
    assert root.status_of(running) == "running"
    served.finish(running)
    assert root.get(f"/job/{waiting}/why").json["details"]["kind"] == "QueueNotOpen"
    assert root.put(f"/queue/{name}", action="open").json["status"] == "open"
    served.finish(waiting)
    assert root.put(f"/queue/{name}", action="burn").code == "QueueActionIsNotSupported"
    assert alice.put(f"/queue/{name}", action="close").code == "OnlyRootAllowed"


def test_a_physical_quota_follows_its_nodes(fresh: Served) -> None:
    common, mine = a_node("node-1"), a_node("node-2", resources("16", "64Gi"))
    mine = replace(mine, labels={"paddleflow.baidu.com/quota": "own"})

    def report(*nodes: Node) -> None:
        fresh.runtime.set_nodes(nodes)
        fresh.platform.intake.submit(ReportNodes(cluster=DEFAULT_CLUSTER, nodes=nodes), PLATFORM)

    report(common, mine)
    assert create(fresh.root, "own", "0", "16", location={ISOLATION: "physical"}).status == 200
    told = shown(fresh.root, "own")
    assert (told["minResources"]["cpu"], told.get("parent")) == ("16", None)
    report(common, replace(mine, capacity=resources("4", "64Gi")))
    assert shown(fresh.root, "own")["minResources"]["cpu"] == "4"
