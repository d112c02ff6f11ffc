"""Whatever is accepted, in whatever order, the tree of quotas keeps its promises."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from paddleflow.domain.errors import InUse, Invalid
from paddleflow.domain.queues import ISOLATION_LABEL, NODE_QUOTA_LABEL, PARENT_LABEL, PHYSICAL, Queue
from paddleflow.domain.quotas import check_may_delete, check_quota_tree
from paddleflow.domain.resources import GPU, NOTHING, Resources
from paddleflow.testing.builders import a_node, a_queue

NAMES = ["root", "a", "b", "c", "d"]
NODES = [
    replace(a_node("n1", Resources({"cpu": 6, GPU: 3}))),
    replace(a_node("n2", Resources({"cpu": 4})), labels={NODE_QUOTA_LABEL: "d"}),
]
CAPACITY = Resources({"cpu": 6, GPU: 3})
OWNED = Resources({"cpu": 4})

few = st.integers(0, 4)
named = st.lists(st.sampled_from(["cpu", GPU]), min_size=1, unique=True)


@st.composite
def wishes(draw: st.DrawFn) -> tuple:
    """Mostly sensible, so that many are accepted and the tree gets deep: the least is seldom above the most."""
    name = draw(st.sampled_from(NAMES))
    most = {resource: draw(few) + draw(few) for resource in draw(named)}
    least = {resource: min(draw(few), units) for resource, units in most.items()}
    if draw(st.integers(0, 9)) == 0:
        least[GPU] = draw(few)
    location = {}
    if draw(st.integers(0, 3)):
        location[PARENT_LABEL] = draw(st.sampled_from([*NAMES, "nobody"]))
    if draw(st.integers(0, 9)) == 0:
        location[ISOLATION_LABEL] = PHYSICAL
    return "put", name, Resources(least), Resources(most), location


deletions = st.tuples(st.just("delete"), st.sampled_from(NAMES))
steps = st.lists(st.one_of(wishes(), wishes(), wishes(), deletions), min_size=10, max_size=40)


@settings(max_examples=300)
@given(steps)
def test_accepted_changes_keep_the_tree_whole(history: list[tuple]) -> None:
    stored: dict[str, Queue] = {}
    for step in history:
        if step[0] == "delete":
            gone = stored.get(step[1])
            if gone is not None:
                try:
                    check_may_delete(gone, stored.values())
                except InUse:
                    continue
                del stored[step[1]]
        else:
            _, name, least, most, location = step
            wanted = replace(a_queue(name), min_resources=least, max_resources=most, location=location)
            try:
                stored[name] = check_quota_tree(wanted, stored.values(), NODES)
            except Invalid:
                continue
        check(stored)


def check(stored: dict[str, Queue]) -> None:
    """The rules once more, written down the long way and for the whole tree at once."""
    tops = []
    for queue in stored.values():
        for resource in ("cpu", GPU):
            assert queue.min_resources.get(resource) <= queue.max_resources.get(resource)
        if queue.location.get(ISOLATION_LABEL) == PHYSICAL:
            assert PARENT_LABEL not in queue.location
            owned = OWNED if queue.name == "d" else NOTHING
            assert queue.max_resources.fits(owned)
            continue
        line = ancestors(queue, stored)
        if not line:
            tops.append(queue)
        for upper in line:
            for resource, most in upper.max_resources:
                assert queue.max_resources.get(resource) <= most
        below = [other for other in stored.values() if parent_name(other) == queue.name and other is not queue]
        for resource in ("cpu", GPU):
            assert sum(child.min_resources.get(resource) for child in below) <= queue.min_resources.get(resource)
    for resource in ("cpu", GPU):
        assert sum(top.min_resources.get(resource) for top in tops) <= CAPACITY.get(resource)


def parent_name(queue: Queue) -> str | None:
    if queue.name == "root" or queue.location.get(ISOLATION_LABEL) == PHYSICAL:
        return None
    return queue.location.get(PARENT_LABEL, "root")


def ancestors(queue: Queue, stored: dict[str, Queue]) -> list[Queue]:
    line: list[Queue] = []
    name = parent_name(queue)
    while name in stored and stored[name].location.get(ISOLATION_LABEL) != PHYSICAL:
        assert len(line) < len(stored), "the tree has a circle"
        line.append(stored[name])
        name = parent_name(stored[name])
    assert name in (None, "root"), "every parent but the root exists"
    return line
