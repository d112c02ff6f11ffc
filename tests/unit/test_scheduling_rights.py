"""Who may take what from whom, and no more: guarantees, urgency, promises, and what was freed for somebody."""

from __future__ import annotations

from random import Random

import pytest

from paddleflow.domain.ids import JobId
from paddleflow.domain.jobs import Priority
from paddleflow.domain.queues import QueuePolicy
from paddleflow.domain.resources import GPU, Resources
from paddleflow.scheduling.decide import decide
from tests.properties.histories import State, a_node, a_queue, amounts
from tests.properties.scenes import Scene, admitted, evicted, reserved
from tests.properties.scheduling_checks import told

PREEMPT = (QueuePolicy.PREEMPT,)


def gpus(count: int) -> Resources:
    return Resources({GPU: count})


def stop(scene: Scene, name: str) -> None:
    """Told to go by its owner; it has not gone yet."""
    scene.world.lives[JobId(name)].state = State.LEAVING
    scene.world.ledger.leave(JobId(name))


# Guarantees.


@pytest.mark.parametrize(("asked", "goes"), [(4, True), (5, False)])
def test_only_what_is_guaranteed_is_taken_back(asked: int, goes: bool) -> None:
    scene = Scene([a_node("n0", 64, 8)], [a_queue("a"), a_queue("b", least=gpus(4))])
    scene.run(scene.job("v", "a", gpus(8)), "n0")
    scene.submit(scene.job("x", "b", gpus(asked)))
    assert evicted(scene.step()) == ({"v"} if goes else set())


def test_what_is_guaranteed_to_the_holder_stays() -> None:
    scene = Scene([a_node("n0", 64, 8)], [a_queue("a", least=gpus(8)), a_queue("b", least=gpus(4))])
    scene.run(scene.job("v", "a", gpus(8)), "n0")
    scene.submit(scene.job("x", "b", gpus(4)))
    assert not scene.step().changes_anything


def test_a_department_is_asked_by_what_it_uses_as_a_whole() -> None:
    """The team is over its own guarantee, but its department is not: what it borrows is lent inside the house."""
    queues = [
        a_queue("x", least=gpus(4)),
        a_queue("x1", parent="x"),
        a_queue("x2", parent="x", least=gpus(4)),
        a_queue("y", least=gpus(4)),
    ]
    scene = Scene([a_node("n0", 64, 4)], queues)
    scene.run(scene.job("v", "x1", gpus(4)), "n0")
    scene.submit(scene.job("outside", "y", gpus(4)))
    assert not scene.step().changes_anything
    scene.submit(scene.job("inside", "x2", gpus(4)))
    decisions = scene.step()
    assert (evicted(decisions), reserved(decisions)) == ({"v"}, {"inside"})


def test_what_a_queue_is_about_to_lose_does_not_count_against_its_right() -> None:
    scene = Scene([a_node("n0", 64, 4), a_node("n1", 64, 4)], [a_queue("a"), a_queue("b", least=gpus(4))])
    scene.run(scene.job("v", "a", gpus(4)), "n0")
    scene.run(scene.job("own", "b", gpus(4)), "n1")
    stop(scene, "own")
    scene.submit(scene.job("x", "b", gpus(4)))
    decisions = scene.step()
    assert reserved(decisions) == {"x"}
    assert not decisions.evictions, "its own room comes, so nobody else is asked"


def test_a_guaranteed_job_behind_one_without_room_goes_before_a_borrower() -> None:
    """Had the borrower started first, it would have been evicted in the next cycle."""
    scene = Scene([a_node("n0", 64, 4)], [a_queue("a"), a_queue("b", least=gpus(4))])
    scene.submit(scene.job("huge", "b", gpus(1), 8), scene.job("mine", "b", gpus(4)))
    scene.submit(scene.job("borrower", "a", gpus(2), priority=Priority.HIGH))
    assert admitted(scene.step()) == {"mine"}


def test_room_kept_for_a_borrower_is_given_to_a_guaranteed_job() -> None:
    nodes = [a_node("n0", 64, 4), a_node("n1", 64, 2)]
    scene = Scene(nodes, [a_queue("z"), a_queue("a"), a_queue("b", least=gpus(2))])
    scene.run(scene.job("r", "z", gpus(2), limit_s=1000.0), "n0")
    scene.run(scene.job("s", "z", gpus(1)), "n1")
    scene.submit(scene.job("borrower", "a", gpus(4), priority=Priority.HIGH))
    # Three are free in all, though on two nodes: only when it is tried is it seen that this one has no room.
    scene.submit(scene.job("split", "b", gpus(3)), scene.job("mine", "b", gpus(2)))
    decisions = scene.step()
    assert admitted(decisions) == {"mine"}
    assert all(each.starts_by is None for each in decisions.promises), "what was promised is not promised any more"


# No more than needed.


def test_a_victim_for_the_quota_is_spared_when_the_victim_for_the_node_frees_both() -> None:
    nodes = [a_node("n0", 64, 4), a_node("n1", 64, 4)]
    queues = [
        a_queue("house", most=gpus(8), least=gpus(4)),
        a_queue("a", parent="house"),
        a_queue("b", parent="house", least=gpus(4)),
        a_queue("safe", least=gpus(2)),
    ]
    scene = Scene(nodes, queues)
    scene.run(scene.job("a0", "a", gpus(4)), "n0")
    scene.run(scene.job("a1", "a", gpus(2)), "n1")
    scene.run(scene.job("kept", "safe", gpus(2)), "n1")
    scene.submit(scene.job("x", "b", gpus(4)))
    assert evicted(scene.step()) == {"a0"}


def test_a_victim_that_gave_the_right_to_another_goes_though_its_room_is_not_needed() -> None:
    """With the less urgent job of its own queue still there the queue would be over its guarantee, and could not ask
    anybody else: sparing it would make the other an eviction without a right."""
    scene = Scene([a_node("n0", 64, 6)], [a_queue("mine", least=gpus(4), policies=PREEMPT), a_queue("theirs")])
    scene.run(scene.job("low", "mine", gpus(2), priority=Priority.LOW), "n0")
    scene.run(scene.job("v", "theirs", gpus(4)), "n0")
    scene.submit(scene.job("x", "mine", gpus(2), 2, priority=Priority.HIGH))
    assert evicted(scene.step()) == {"low", "v"}


@pytest.mark.parametrize(
    ("priority", "policies", "goes"),
    [
        (Priority.HIGH, PREEMPT, True),
        (Priority.NORMAL, PREEMPT, False),
        (Priority.HIGH, (), False),
    ],
)
def test_inside_a_queue_only_the_less_urgent_go_and_only_if_the_queue_says_so(
    priority: Priority, policies: tuple[str, ...], goes: bool
) -> None:
    scene = Scene([a_node("n0", 64, 4)], [a_queue("q", policies=policies)])
    scene.run(scene.job("v", "q", gpus(4)), "n0")
    scene.submit(scene.job("x", "q", gpus(4), priority=priority))
    assert evicted(scene.step()) == ({"v"} if goes else set())


# What was promised or freed.


def test_workers_are_not_taken_from_a_job_whose_end_somebody_waits_for() -> None:
    """``big`` starts when the elastic job reaches its limit; one that took its workers now would be in the way."""
    scene = Scene([a_node("n0", 5)], [a_queue("a"), a_queue("b")])
    scene.run(scene.job("e", "a", amounts(1), elastic=(1, 2, 3, 4, 5), limit_s=1000.0), *["n0"] * 5)
    scene.submit(scene.job("big", "b", amounts(5)), scene.job("small", "a", amounts(2)))
    decisions = scene.step()
    assert [each.job_id for each in decisions.promises if each.starts_by is not None] == ["big"]
    assert not decisions.changes_anything


def test_freed_room_is_taken_only_when_the_quota_is_free_too() -> None:
    nodes = [a_node("n0", 64, 4, {"zone": "a"}), a_node("n1", 64, 4)]
    queues = [
        a_queue("house", most=gpus(5), least=gpus(4)),
        a_queue("a", parent="house"),
        a_queue("b", parent="house", least=gpus(4)),
    ]
    scene = Scene(nodes, queues)
    scene.run(scene.job("a0", "a", gpus(3)), "n0")
    scene.run(scene.job("a1", "a", gpus(2)), "n1")
    scene.submit(scene.job("x", "b", gpus(4), selector={"zone": "a"}))
    assert evicted(scene.step()) == {"a0", "a1"}
    scene.leave("a0")
    assert not scene.step().admissions, "the node is free, but the house would use six of five"
    scene.leave("a1")
    assert admitted(scene.step()) == {"x"}


def test_two_claims_on_one_node_start_as_their_own_room_comes() -> None:
    """The first need not wait for the victim of the second."""
    scene = Scene([a_node("n0", 8)], [a_queue("a"), a_queue("b", least=amounts(4)), a_queue("c", least=amounts(4))])
    for name in ("v1", "v2"):
        scene.run(scene.job(name, "a", amounts(4)), "n0")
    scene.submit(scene.job("x", "b", amounts(4)), scene.job("y", "c", amounts(4)))
    assert evicted(scene.step()) == {"v1", "v2"}
    scene.leave("v2")
    assert len(admitted(scene.step())) == 1
    scene.leave("v1")
    scene.rest()
    assert scene.running == {"x", "y"}


def test_equal_nodes_are_chosen_alike_in_whatever_order_they_are_told() -> None:
    """A job that waits for a whole node, where all of them are full: always the same one is emptied for it."""
    scene = Scene([a_node(f"n{index}", 4) for index in range(4)], [a_queue("q")])
    for index in range(4):
        scene.run(scene.job(f"j{index}", "q", amounts(4)), f"n{index}")
    scene.submit(scene.job("x", "q", amounts(4)))
    scene.world.now += scene.world.rules.patience_s
    outcomes = [decide(scene.world.fresh_ledger(Random(seed)), scene.world.now) for seed in range(10)]
    assert outcomes[0].promises
    assert all(told(each) == told(outcomes[0]) for each in outcomes)


def test_where_shrinking_uses_up_the_right_the_whole_job_is_asked_for_instead() -> None:
    """Two of the four workers are beyond the guarantee of their queue. Without them there is no right to the rest, and
    not enough room; with all of them there is both."""
    scene = Scene([a_node("n0", 64, 4)], [a_queue("a", least=gpus(2)), a_queue("b", least=gpus(3))])
    scene.run(scene.job("e", "a", gpus(1), elastic=(1, 2, 3, 4)), *["n0"] * 4)
    scene.submit(scene.job("x", "b", gpus(3)))
    decisions = scene.step()
    assert not decisions.resizes
    assert evicted(decisions) == {"e"}
