"""Where a queue may stand in the tree of quotas, and what it is told when it may not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from paddleflow.domain.clusters import Node
from paddleflow.domain.errors import InUse, Invalid
from paddleflow.domain.ids import ClusterName
from paddleflow.domain.queues import ISOLATION_LABEL, NODE_QUOTA_LABEL, PARENT_LABEL, Queue, QuotaType
from paddleflow.domain.quotas import check_may_delete, check_quota_tree, children_of, guarantee_of_own_nodes, parent_of
from paddleflow.domain.resources import GPU, Resources
from paddleflow.testing.builders import a_node, a_queue


def amounts(cpu: int | None = None, gpus: int | None = None) -> Resources:
    given = {"cpu": cpu, GPU: gpus}
    return Resources.parse({name: str(value) for name, value in given.items() if value is not None})


def quota(name: str, least: int = 0, most: int = 40, parent: str = "", **changes: object) -> Queue:
    location = {PARENT_LABEL: parent} if parent else {}
    made = replace(a_queue(name), min_resources=amounts(least), max_resources=amounts(most), location=location)
    return replace(made, **changes)  # type: ignore[arg-type]


def physical(name: str, most: int) -> Queue:
    return quota(name, 0, most, location={ISOLATION_LABEL: "physical", PARENT_LABEL: "root"})


def node(name: str, cpu: int, owner: str = "") -> Node:
    return replace(a_node(name, amounts(cpu)), labels={NODE_QUOTA_LABEL: owner} if owner else {})


NODES = [node("n1", 8), node("n2", 8, "public"), node("n3", 100, "own")]
TREE = [quota("root", 16, 40), quota("a", 10, 30), quota("a1", 4, 20, "a"), quota("a2", 4, 30, "a"), quota("b", 4, 40)]


@pytest.mark.parametrize(
    "queue",
    [
        quota("new"),
        quota("new", 2, 40),
        quota("new", 2, 30, "a"),
        quota("a", 8, 30),
        quota("a", 12, 40),
        quota("a1", 6, 30, "a"),
        quota("a1", 2, 20, "b"),
        quota("root", 14, 40),
        quota("new", 0, 100, max_resources=amounts(gpus=8)),
        quota("new", 0, 0, quota_type=QuotaType.CAPABILITY),
        quota("new", 1000, 1000, cluster=ClusterName("elsewhere")),
        quota("new", weight=1_000_000),
        physical("own", 100),
    ],
)
def test_what_has_room(queue: Queue) -> None:
    accepted = check_quota_tree(queue, TREE, NODES)
    assert replace(accepted, min_resources=queue.min_resources, location=queue.location) == queue


@pytest.mark.parametrize(
    ("queue", "told"),
    [
        (quota("new", 5, 4), ["minResources.cpu", "maxResources less than minResources", "5", "4"]),
        (quota("new", min_resources=amounts(gpus=1)), [f"minResources.{GPU}", "0 allowed"]),
        (quota("new", 3), ["minResources.cpu", "queue[root]", "17 together", "has 16", "at most 2"]),
        (quota("new", 3, 30, "a"), ["minResources.cpu", "queue[a]", "11 together", "has 10", "at most 2"]),
        (quota("new", 0, 41), ["maxResources.cpu", "41", "queue[root] above it 40", "at most 40"]),
        (quota("new", 0, 31, "a"), ["maxResources.cpu", "31", "queue[a] above it 30", "at most 30"]),
        (quota("a", 7, 30), ["minResources.cpu", "a1, a2", "at least 8"]),
        (quota("a", 10, 29), ["maxResources.cpu", "queue[a2] under it", "at least 30"]),
        (quota("root", 13, 40), ["minResources.cpu", "a, b", "at least 14"]),
        (
            quota("root", 17, 40),
            ["minResources.cpu", "cluster[default-cluster]", "17 together", "have 16", "at most 16"],
        ),
        (quota("new", parent="missing"), [PARENT_LABEL, "queue[missing] does not exist"]),
        (quota("a", 10, 30, "a"), [PARENT_LABEL, "a -> a"]),
        (quota("a", 10, 30, "a1"), [PARENT_LABEL, "a -> a1 -> a"]),
        (quota("new", parent="shared"), [PARENT_LABEL, "queue[shared] is not a logical elasticQuota"]),
        (quota("new", parent="own"), [PARENT_LABEL, "queue[own] is not a logical elasticQuota"]),
        (quota("new", parent="far"), [PARENT_LABEL, "queue[far] belongs to cluster[elsewhere]"]),
        (quota("new", location={ISOLATION_LABEL: "virtual"}), [ISOLATION_LABEL, "[virtual]", "logical or physical"]),
        (physical("a", 1), [ISOLATION_LABEL, "queue[a] is logical and cannot become physical"]),
        (quota("own", 0, 1), [ISOLATION_LABEL, "queue[own] is physical and cannot become logical"]),
        (physical("own", 101), ["maxResources.cpu", "101", "the 100 of the nodes", f"{NODE_QUOTA_LABEL}=own"]),
        (physical("bare", 1), ["maxResources.cpu", "the 0 of the nodes", f"{NODE_QUOTA_LABEL}=bare"]),
        (quota("new", weight=0), ["weight", "0 is not between 1"]),
        (quota("new", weight=1_000_001), ["weight", "1000000"]),
        (quota("new", 1, quota_type=QuotaType.CAPABILITY), ["minResources is only for elasticQuota"]),
    ],
)
def test_what_has_no_room_is_told_why(queue: Queue, told: list[str]) -> None:
    elsewhere = quota("far", cluster=ClusterName("elsewhere"))
    shared = quota("shared", quota_type=QuotaType.CAPABILITY)
    with pytest.raises(Invalid) as caught:
        check_quota_tree(queue, [*TREE, elsewhere, shared, physical("own", 100)], NODES)
    for part in told:
        assert part in caught.value.message
    assert told[0].split()[0] in ("minResources", caught.value.details.get("field", "").removeprefix("location."))
    assert caught.value.code in ("InvalidComputeResource", "QueueInvalidField")


def test_a_grandchild_is_held_by_the_nearest_that_names_the_resource() -> None:
    tree = [quota("top", max_resources=amounts(gpus=4)), quota("middle", parent="top")]
    with pytest.raises(Invalid, match=r"queue\[top\] above it 4"):
        check_quota_tree(quota("leaf", parent="middle", max_resources=amounts(gpus=5)), tree, [])
    wide = quota("wide", max_resources=amounts(gpus=8))
    with pytest.raises(Invalid, match=r"queue\[wide\] may use 8 and queue\[top\] above it 4"):
        check_quota_tree(quota("middle2", parent="top"), [*tree, replace(wide, location={PARENT_LABEL: "middle2"})], [])


def test_without_a_root_the_nodes_are_the_limit() -> None:
    tree = [quota("a", 10), quota("b", 4)]
    assert check_quota_tree(quota("c", 2), tree, NODES).min_resources == amounts(2)
    with pytest.raises(Invalid, match="17 together, and its public nodes have 16; give at most 2, or add nodes"):
        check_quota_tree(quota("c", 3), tree, NODES)
    assert check_quota_tree(quota("c", 3), tree, []).min_resources == amounts(3), "no nodes known: no limit known"
    with pytest.raises(Invalid, match="13"):
        check_quota_tree(quota("root", 13), tree, NODES)
    assert check_quota_tree(quota("root", 14), tree, NODES)


def test_nodes_that_went_away_do_not_stop_the_mending() -> None:
    tree = [quota("a", 10), quota("b", 10)]
    left = [node("n1", 8)]
    assert check_quota_tree(quota("a", 9), tree, left).min_resources == amounts(9)
    assert check_quota_tree(quota("a", 10, weight=2), tree, left).weight == 2
    with pytest.raises(Invalid, match=r"minResources\.cpu"):
        check_quota_tree(quota("a", 11), tree, left)


def test_a_physical_quota_is_guaranteed_its_own_nodes() -> None:
    accepted = check_quota_tree(physical("own", 60), TREE, NODES)
    assert accepted.min_resources == amounts(60)
    assert accepted.location == {ISOLATION_LABEL: "physical"}, "it has no parent"
    assert guarantee_of_own_nodes(accepted, [node("n3", 30, "own"), node("n4", 8)]) == amounts(30)
    unknown = check_quota_tree(physical("own", 60), TREE, [])
    assert unknown.min_resources == amounts(0)


def test_a_parent_goes_last() -> None:
    by_name = {queue.name: queue for queue in TREE}
    with pytest.raises(InUse, match="parent of a1, a2"):
        check_may_delete(by_name["a"], TREE)  # type: ignore[index]
    with pytest.raises(InUse, match="parent of a, b"):
        check_may_delete(by_name["root"], TREE)  # type: ignore[index]
    check_may_delete(by_name["a1"], TREE)  # type: ignore[index]
    crowd = [quota("p"), *(quota(f"c{n:02}", parent="p") for n in range(12))]
    with pytest.raises(InUse, match="c09 and 2 more"):
        check_may_delete(crowd[0], crowd)


def test_the_root_of_another_cluster_is_nobodys_parent_here() -> None:
    far = quota("root", cluster=ClusterName("elsewhere"))
    here = quota("q")
    assert parent_of(here, [far, here]) is None
    assert children_of(far, [far, here]) == ()
    assert parent_of(here, [quota("root"), here]) == quota("root")
