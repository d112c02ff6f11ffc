"""Described clusters, tenants as queues, and what becomes of a trace on a cluster."""

from __future__ import annotations

from typing import Any

import pytest

from paddleflow.domain.errors import Invalid
from paddleflow.domain.resources import CPU, GPU
from paddleflow.simulation.cluster import (
    EVERYBODY,
    Capacity,
    Costs,
    like_nodes,
    one_queue,
    parse_capacity,
    tenant_queues,
)
from paddleflow.simulation.trace import TraceJob
from paddleflow.simulation.workload import prepare


def job(row: int = 1, **fields: Any) -> TraceJob:
    return TraceJob(**{"id": f"job-{row}", "row": row, "submit_s": 0.0, "duration_s": 10.0, "gpus": 1, **fields})


def test_a_described_cluster() -> None:
    capacity = parse_capacity(
        {
            "nodes": [
                {"count": 2, "gpus": 8, "cpus": "64", "memory": "512Gi", "labels": {"kind": "a100"}},
                {"gpus": 4},
            ],
            "queues": [
                {"name": "lab", "min": {"gpus": 8}, "max": {"gpus": 16}, "weight": 2},
                {"name": "vision", "parent": "lab", "min": {"gpus": 4}, "policies": ["strict"]},
            ],
            "costs": {"grace_s": 5, "checkpoint_s": 600},
        }
    )
    assert [node.capacity.gpus for node in capacity.nodes] == [8, 8, 4]
    assert len({node.name for node in capacity.nodes}) == 3
    assert capacity.nodes[0].labels == {"kind": "a100"}
    assert capacity.total.gpus == 20
    lab, vision = capacity.queues
    assert (lab.weight, lab.min_resources.gpus, lab.max_resources.gpus) == (2, 8, 16)
    assert (vision.parent, vision.policies) == ("lab", ("strict",))
    assert capacity.costs == Costs(grace_s=5, checkpoint_s=600, rescale_s=30)


def test_queues_may_be_left_out() -> None:
    capacity = parse_capacity({"nodes": [{"gpus": 1}]})
    assert [queue.name for queue in capacity.queues] == [EVERYBODY]


NODES = [{"gpus": 8}]
FIVE = {"gpus": 5}
BAD: list[tuple[object, str]] = [
    (None, "mapping"),
    ([], "mapping"),
    ({}, "nodes"),
    ({"nodes": {}}, "nodes.*list"),
    ({"nodes": [{}]}, r"nodes\[0\].*nothing"),
    ({"nodes": [{"gpu": 8}]}, r"nodes\[0\].gpu"),
    ({"nodes": [{"gpus": -1}]}, r"nodes\[0\].*negative"),
    ({"nodes": [{"gpus": "many"}]}, r"nodes\[0\]"),
    ({"nodes": [{"gpus": [1]}]}, r"nodes\[0\].gpus"),
    ({"nodes": [{"gpus": 1, "count": 0}]}, r"nodes\[0\].count"),
    ({"nodes": [{"gpus": 1, "count": True}]}, r"nodes\[0\].count"),
    ({"nodes": [{"gpus": 1, "count": 10**9}]}, r"nodes\[0\].count"),
    ({"nodes": NODES, "queues": [{}]}, r"queues\[0\].name"),
    ({"nodes": NODES, "queues": [{"name": "No Good"}]}, "No Good"),
    ({"nodes": NODES, "queues": [{"name": "a"}, {"name": "a"}]}, "twice"),
    ({"nodes": NODES, "queues": [{"name": "a", "min": {"gpus": 2}, "max": {"gpus": 1}}]}, r"queues\[0\].min"),
    ({"nodes": NODES, "queues": [{"name": "a", "weight": 0}]}, r"queues\[0\].weight"),
    ({"nodes": NODES, "queues": [{"name": "a", "parent": "b"}]}, r"parent \[b\].*not described"),
    ({"nodes": NODES, "queues": [{"name": "a", "parent": "b"}, {"name": "b", "parent": "a"}]}, "circle"),
    ({"nodes": NODES, "queues": [{"name": "a", "parent": "a"}]}, "circle"),
    ({"nodes": NODES, "queues": [{"name": "a", "policies": ["fast"]}]}, "fast"),
    (
        {
            "nodes": NODES,
            "queues": [{"name": "a", "max": {"gpus": 4}}, {"name": "b", "parent": "a", "max": {"gpus": 5}}],
        },
        r"\[b\] is over that of \[a\]",
    ),
    (
        {
            "nodes": NODES,
            "queues": [{"name": "a", "min": {"gpus": 4}}, {"name": "b", "parent": "a", "min": {"gpus": 5}}],
        },
        r"children of \[a\]",
    ),
    ({"nodes": NODES, "costs": {"grace_s": -1}}, "costs.grace_s"),
    ({"nodes": NODES, "costs": {"grace": 1}}, "costs.grace"),
    ({"nodes": NODES, "extra": 1}, "extra"),
]


@pytest.mark.parametrize(("description", "told"), BAD)
def test_bad_descriptions_name_the_field(description: object, told: str) -> None:
    with pytest.raises(Invalid, match=told):
        parse_capacity(description)


@pytest.mark.parametrize(("gpus", "per_node"), [(0, 8), (10, 8), (8, 0), (10**7, 1)])
def test_bad_shorthand(gpus: int, per_node: int) -> None:
    with pytest.raises(Invalid):
        like_nodes(gpus, per_node)


def test_tenants_are_guaranteed_half_of_their_share_and_may_use_everything() -> None:
    nodes = like_nodes(10, 5)
    jobs = [job(1, queue="a", duration_s=20), job(2, queue="b", duration_s=10), job(3, queue="c", duration_s=10)]
    queues = tenant_queues(jobs, nodes)
    assert {queue.name: queue.min_resources.gpus for queue in queues} == {"a": 2, "b": 1, "c": 1}
    assert all(queue.max_resources.gpus == 10 for queue in queues)
    with pytest.raises(Invalid, match="row 7"):
        tenant_queues([job(7)], nodes)


def test_large_jobs_become_gangs_of_whole_nodes() -> None:
    capacity = Capacity(nodes=like_nodes(16, 8), queues=one_queue())
    small, large, spelt = prepare([job(1, gpus=3), job(2, gpus=12), job(3, gpus=2, tasks=4)], capacity).submissions
    assert (small.tasks, small.each.gpus) == (1, 3)
    assert (large.tasks, large.each.gpus) == (2, 8)
    assert (spelt.tasks, spelt.each.gpus, spelt.work) == (4, 2, 40.0)
    assert spelt.entry.request.gpus == 8


def test_cpus_count_only_where_nodes_name_them() -> None:
    asking = job(gpus=1, cpu_milli=4000, memory_bytes=1 << 30)
    plain = prepare([asking], Capacity(nodes=like_nodes(8, 8), queues=one_queue()))
    assert plain.submissions[0].each.amounts == {GPU: 1}
    named = prepare([asking], parse_capacity({"nodes": [{"gpus": 8, "cpus": 16}]}))
    assert named.submissions[0].each.amounts == {GPU: 1, CPU: 4000}


def test_a_trace_without_gpus_is_measured_in_cpus() -> None:
    workload = prepare([job(gpus=0, cpu_milli=500)], parse_capacity({"nodes": [{"cpus": 2}]}))
    assert (workload.measured, workload.available) == (CPU, 2000)


def test_what_never_fits_is_refused() -> None:
    capacity = parse_capacity(
        {"nodes": [{"gpus": 8, "count": 2}], "queues": [{"name": "a", "max": {"gpus": 4}}, {"name": "b"}]}
    )
    jobs = [job(1, gpus=8, tasks=3, queue="b"), job(2, gpus=5, queue="a"), job(3, gpus=16, queue="b")]
    workload = prepare(jobs, capacity)
    assert [one.row for one in workload.refused] == [1, 2]
    assert [one.entry.job_id for one in workload.submissions] == ["job-3"]


def test_queues_of_the_trace_must_be_described() -> None:
    capacity = parse_capacity({"nodes": NODES, "queues": [{"name": "a"}, {"name": "b"}]})
    with pytest.raises(Invalid, match=r"row 4 .*queue \[c\]"):
        prepare([job(4, queue="c")], capacity)
    with pytest.raises(Invalid, match=r"row 4 .*no queue"):
        prepare([job(4)], capacity)


def test_load_moves_submissions() -> None:
    capacity = Capacity(nodes=like_nodes(2, 2), queues=one_queue())
    jobs = [job(1, duration_s=50), job(2, submit_s=1000.0, duration_s=50)]
    workload = prepare(jobs, capacity, load=0.5)
    # 100 GPU-seconds on two GPUs at a half: a hundred seconds.
    assert [one.at_s for one in workload.submissions] == [0.0, 100.0]
    for load in (0.0, -1.0, float("nan")):
        with pytest.raises(Invalid, match="load"):
            prepare(jobs, capacity, load=load)
    with pytest.raises(Invalid, match="at once"):
        prepare(jobs[:1], capacity, load=0.5)
