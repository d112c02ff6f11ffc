"""The EDL rule: the original's vectors, and the places where it went wrong."""

from __future__ import annotations

from typing import Any

import pytest

from paddleflow.domain.resources import GPU, NOTHING, Resources
from paddleflow.paddlejob import parse
from paddleflow.paddlejob.edl import Claim, claim_of, fair_shares, targets
from tests.unit.paddlejob.makers import Cluster, manifest, template

ONE = Resources.parse({"cpu": "1", "memory": "105M"})
ONE_WITH_GPU = Resources.parse({"cpu": "1", "memory": "105M", GPU: "1"})
ONE_NPU = Resources.parse({"cpu": "1", "example.com/npu": "1"})
NPUS = Resources.parse({"cpu": "100", "example.com/npu": "8"})
AMPLE = "1000G"


def claim(key: str = "a", *, size: int, least: int = 1, most: int, each: Resources = ONE, pending: int = 0) -> Claim:
    return Claim(key=key, each=each, size=size, least=least, most=most, pending=pending)


def of(cpu: str, gpu: str = "0", memory: str = AMPLE) -> Resources:
    return Resources.parse({"cpu": cpu, "memory": memory, GPU: gpu})


@pytest.mark.parametrize(
    ("claims", "capacity", "others", "max_load", "expected"),
    [
        ([claim(size=1, most=3)], of("4"), NOTHING, 1.0, {"a": 3}),
        ([claim(size=1, most=3)], of("3"), NOTHING, 0.8, {"a": 2}),
        ([claim(size=3, most=3)], of("3"), NOTHING, 0.8, {"a": 2}),
        ([claim(size=1, most=3, each=ONE_WITH_GPU)], of("3", "10"), of("1", "7", "0"), 1.0, {"a": 2}),
        ([claim(size=1, most=3, each=ONE_WITH_GPU)], of("2", "10"), of("0", "8", "0"), 1.0, {"a": 2}),
        ([claim(size=1, most=3)], of("10", memory="105M"), NOTHING, 1.0, {}),
        ([claim(size=6, most=3)], of("100"), NOTHING, 1.0, {"a": 3}),
        # GPUs may be filled to the last: the original added and removed one for ever.
        ([claim(size=1, most=20, each=ONE_WITH_GPU)], of("100", "10"), NOTHING, 0.97, {"a": 10}),
        # So may other devices.
        ([claim(size=1, most=20, each=ONE_NPU)], NPUS, NOTHING, 0.97, {"a": 8}),
        # Five free: all to the job that has less, the original gave two to the other.
        ([claim("a", size=2, most=20), claim("b", size=11, most=20)], of("18"), NOTHING, 1.0, {"a": 9, "b": 9}),
        # Four too many: only the richest gives.
        (
            [
                claim("a", size=18, least=2, most=20),
                claim("b", size=4, least=2, most=20),
                claim("c", size=2, least=2, most=20),
            ],
            of("20"),
            NOTHING,
            1.0,
            {"a": 7, "b": 7, "c": 6},
        ),
        # Not enough for everybody's least: nobody is taken apart.
        ([claim("a", size=2, least=2, most=4), claim("b", size=2, least=2, most=4)], of("1"), NOTHING, 1.0, {}),
    ],
)
def test_vectors(claims: list[Claim], capacity: Resources, others: Resources, max_load: float, expected: Any) -> None:
    shares = fair_shares(claims, capacity, others, max_load)
    changed = {each.key: shares[each.key] for each in claims if shares[each.key] != each.size}
    assert changed == expected


def test_a_job_grows_only_where_a_node_has_room() -> None:
    """Four cores are free, but no two on one node; the original planned as many as it liked on one."""
    big = Resources.parse({"cpu": "2"})
    rooms = [of("1")] * 4
    assert targets([claim(size=1, most=4, each=big)], of("6"), NOTHING, rooms, 1.0) == ()
    (target,) = targets([claim(size=1, most=4)], of("5"), NOTHING, [of("2")], 1.0)
    assert target.workers == 3
    assert "fair share of the cluster is 4" in target.reason


def test_who_waits_for_nodes_does_not_grow_but_shrinks() -> None:
    assert targets([claim(size=2, most=9, pending=1)], of("9"), NOTHING, [of("9")], 1.0) == ()
    (target,) = targets([claim(size=5, most=9, pending=1)], of("3"), NOTHING, [], 1.0)
    assert target.workers == 3


def job(**role: Any) -> Any:
    given = manifest()
    given["spec"]["worker"] = {"replicas": 2, "template": template(), **role}
    return given


def test_which_jobs_take_part() -> None:
    found = claim_of(parse(job(requests=1, limits=4)), 1)
    assert found is not None
    assert (found.key, found.size, found.least, found.most, found.pending) == ("team/wd", 2, 1, 4, 1)
    assert found.each == Resources.of("1", "1Gi")
    assert (found.wishes, found.queue) == ({}, "default")
    assert claim_of(parse(job()), 0) is None
    off = job(limits=4)
    off["metadata"]["annotations"] = {"paddle-autoscale": "off"}
    assert claim_of(parse(off), 0) is None
    ended = job(limits=4)
    ended["status"] = {"phase": "Completed"}
    assert claim_of(parse(ended), 0) is None
    suspended = job(limits=4)
    suspended["spec"]["suspend"] = True
    assert claim_of(parse(suspended), 0) is None


def test_a_job_whose_workers_finish_keeps_its_size() -> None:
    cluster = Cluster(job(requests=1, limits=4))
    cluster.start()
    assert claim_of(parse(cluster.job), 0) is not None
    cluster.end("wd-worker-1")
    cluster.settle()
    assert cluster.phase == "Running"
    assert claim_of(parse(cluster.job), 0) is None
