"""What becomes of tasks that are lost: many at once, with their nodes, after they had finished."""

from __future__ import annotations

from typing import Any

import pytest

from paddleflow.paddlejob.records import MOST_EXITS, read_record
from tests.unit.paddlejob.makers import Cluster, manifest

MANY = 2 * MOST_EXITS + 20


def running(**given: Any) -> Cluster:
    cluster = Cluster(manifest(**given))
    cluster.start()
    assert cluster.phase == "Running"
    return cluster


@pytest.mark.parametrize("shape", [{"elastic": 1}, {"ps": 1, "intranet": "Service"}])
@pytest.mark.parametrize("how", ["evict", "fail"])
def test_more_are_lost_at_once_than_the_status_lists(shape: dict[str, Any], how: str) -> None:
    cluster = running(worker=MANY, backoffLimit=1, **shape)
    workers = {name: pod["metadata"]["uid"] for name, pod in cluster.pods.items() if "-worker-" in name}
    for name in workers:
        if how == "evict":
            cluster.evict(name)
        else:
            cluster.end(name, 1)
    cluster.settle()
    assert cluster.status.get("retries", 0) == (how == "fail"), "one trouble is counted once"
    assert cluster.status.get("evictions", 0) == (how == "evict")
    assert len(cluster.status["exits"]) == MOST_EXITS
    cluster.now += 60
    cluster.start()
    assert cluster.phase == "Running"
    assert not {pod["metadata"]["uid"] for pod in cluster.pods.values()} & set(workers.values()), "all were replaced"
    assert "unlistedExits" not in cluster.status, "who is gone need not be known"


def test_many_that_take_their_time_to_go_are_counted_once() -> None:
    cluster = running(worker=MANY, elastic=1)
    for pod in cluster.pods.values():
        pod["metadata"]["deletionTimestamp"] = "2023-11-14T22:13:20Z"
    cluster.settle()
    assert cluster.status["evictions"] == 1
    assert len(cluster.status["exits"]) + len(cluster.status["unlistedExits"]) == MANY
    cluster.pods.clear()
    cluster.start()
    assert (cluster.phase, cluster.status["evictions"]) == ("Running", 1)


def test_a_job_that_is_over_keeps_only_the_list() -> None:
    cluster = running(worker=MANY, backoffLimit=0)
    for name in cluster.pods:
        cluster.end(name, 1)
    cluster.settle()
    assert cluster.phase == "Failed"
    assert len(cluster.status["exits"]) == MOST_EXITS and "unlistedExits" not in cluster.status


@pytest.mark.parametrize(
    "shape", [{}, {"intranet": "Service"}, {"ps": 1}, {"ps": 1, "intranet": "Service"}, {"elastic": 1}]
)
def test_who_has_finished_is_not_started_again_when_the_pod_is_cleared_away(shape: dict[str, Any]) -> None:
    cluster = running(worker=3, **shape)
    for name in ("wd-worker-0", "wd-worker-2"):
        cluster.end(name)
    cluster.settle()
    others = {name: pod["metadata"]["uid"] for name, pod in cluster.pods.items()}
    for name in ("wd-worker-0", "wd-worker-2"):
        del cluster.pods[name], others[name]
    assert not cluster.settle(), "nobody misses them"
    assert {name: pod["metadata"]["uid"] for name, pod in cluster.pods.items()} == others
    assert cluster.phase == "Running"
    assert (cluster.status["worker"]["succeeded"], cluster.status["worker"]["succeededIndexes"]) == (2, "0,2")
    assert [each["name"] for each in cluster.status["worker"]["refs"]] == ["wd-worker-1"], "no pods that are not there"
    assert "evictions" not in cluster.status
    cluster.end("wd-worker-1")
    cluster.settle()
    assert cluster.phase == "Completed"
    assert cluster.status["worker"]["succeeded"] == 3


def test_a_new_attempt_begins_with_nobody_finished() -> None:
    cluster = running(worker=3)
    cluster.end("wd-worker-0")
    cluster.settle()
    cluster.end("wd-worker-1", 1)
    cluster.settle()
    assert not cluster.pods and "succeededIndexes" not in cluster.status.get("worker", {})
    cluster.now += 60
    cluster.start()
    assert (cluster.phase, cluster.status["worker"]["running"]) == ("Running", 3)


@pytest.mark.parametrize(
    ("ended", "spelt"),
    [([0], "0"), ([0, 1, 2], "0-2"), ([0, 2, 3, 5], "0,2-3,5"), ([], None)],
)
def test_who_has_finished_is_spelt_in_spans_and_read_again(ended: list[int], spelt: str | None) -> None:
    cluster = running(worker=7)
    for index in ended:
        cluster.end(f"wd-worker-{index}")
    cluster.settle()
    assert cluster.status["worker"].get("succeededIndexes") == spelt
    assert read_record(cluster.status).succeeded["worker"] == frozenset(ended)


@pytest.mark.parametrize("text", ["", "x", "1-", 7, None, "9-1"])
def test_spans_that_somebody_else_wrote_do_no_harm(text: Any) -> None:
    assert read_record({"worker": {"succeededIndexes": text}}).succeeded["worker"] <= {1}


@pytest.mark.parametrize("shape", [{}, {"elastic": 1}, {"ps": 1, "intranet": "Service"}])
def test_a_pod_that_does_not_go_is_named_with_its_node(shape: dict[str, Any]) -> None:
    cluster = running(worker=2, **shape)
    cluster.pods["wd-worker-1"]["metadata"]["deletionTimestamp"] = "2023-11-14T22:13:20Z"
    cluster.settle()
    assert cluster.phase == "Restarting"
    assert cluster.condition("Running")["message"] == "the pod wd-worker-1 on node node-1 is still being deleted"
    del cluster.pods["wd-worker-1"]
    cluster.start()
    assert (cluster.phase, cluster.condition("Running")["message"]) == ("Running", "")
