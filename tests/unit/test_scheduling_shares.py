"""Who gets how much when everybody always wants more: by weight between queues, evenly between elastic jobs."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paddleflow.domain.ids import JobId
from paddleflow.domain.queues import Queue, QueuePolicy
from paddleflow.domain.resources import GPU, Resources
from paddleflow.scheduling.decide import Rules
from tests.properties.histories import a_node, a_queue
from tests.properties.scenes import Scene


def gpus(count: int) -> Resources:
    return Resources({GPU: count})


class Flood:
    """Queues with an endless supply of jobs of one GPU; somebody ends, somebody starts."""

    def __init__(self, queues: list[Queue], leaves: str, capacity: int, seed: int = 0) -> None:
        self.scene = Scene([a_node("n0", 64, capacity)], queues, Rules())
        self.leaves = leaves.split()
        self.chance = Random(seed)
        self._made: Counter[str] = Counter()

    def run(self, rounds: int) -> dict[str, int]:
        for _ in range(rounds):
            self._top_up()
            self.scene.step()
            self.scene.world.all_leave()
            running = sorted(self.scene.running)
            for name in self.chance.sample(running, len(running) // 3):
                self.scene.end(name)
        self._top_up()
        self.scene.rest()
        return self.held()

    def held(self) -> dict[str, int]:
        found = Counter(name.split("-")[0] for name in self.scene.running)
        return {leaf: found[leaf] for leaf in self.leaves}

    def _top_up(self) -> None:
        waiting = Counter(name.split("-")[0] for name in self.scene.waiting)
        for leaf in self.leaves:
            for _ in range(len(self.scene.running) + 20 - waiting[leaf]):
                self._made[leaf] += 1
                self.scene.submit(self.scene.job(f"{leaf}-{self._made[leaf]}", leaf, gpus(1)))


@pytest.mark.parametrize(
    ("weights", "capacity", "expected"),
    [
        ((1, 1), 10, (5, 5)),
        ((1, 2), 12, (4, 8)),
        ((1, 3), 12, (3, 9)),
        ((1, 2, 3), 12, (2, 4, 6)),
    ],
)
def test_what_nobody_is_guaranteed_goes_by_weight(
    weights: tuple[int, ...], capacity: int, expected: tuple[int, ...]
) -> None:
    queues = [a_queue(f"q{index}", weight=weight) for index, weight in enumerate(weights)]
    held = Flood(queues, " ".join(queue.name for queue in queues), capacity).run(rounds=6)
    assert tuple(held.values()) == expected


def test_guarantees_come_first_and_the_rest_goes_by_weight() -> None:
    """Twenty GPUs, eight guaranteed to the first: of the other twelve it gets one part in four like its weight says."""
    queues = [a_queue("a", least=gpus(8), weight=1), a_queue("b", weight=3)]
    assert Flood(queues, "a b", 20).run(rounds=6) == {"a": 8 + 3, "b": 9}


def test_departments_share_first_and_their_teams_among_themselves() -> None:
    queues = [
        a_queue("x"),
        a_queue("x1", parent="x"),
        a_queue("x2", parent="x"),
        a_queue("x3", parent="x"),
        a_queue("y"),
        a_queue("y1", parent="y"),
    ]
    assert Flood(queues, "x1 x2 x3 y1", 12).run(rounds=6) == {"x1": 2, "x2": 2, "x3": 2, "y1": 6}


def test_a_maximum_caps_a_share_and_the_others_get_what_is_left() -> None:
    queues = [a_queue("a", weight=9, most=gpus(2)), a_queue("b"), a_queue("c")]
    assert Flood(queues, "a b c", 12).run(rounds=6) == {"a": 2, "b": 5, "c": 5}


@settings(max_examples=25)
@given(st.lists(st.integers(1, 4), min_size=2, max_size=4), st.integers(4, 24), st.integers(0, 1000))
def test_shares_are_by_weight_to_within_one_job(weights: list[int], capacity: int, seed: int) -> None:
    """Between any two queues: without its last job, neither has had more by weight than the other."""
    queues = [a_queue(f"q{index}", weight=weight) for index, weight in enumerate(weights)]
    held = Flood(queues, " ".join(queue.name for queue in queues), capacity, seed).run(rounds=5)
    assert sum(held.values()) == capacity
    pairs = list(zip(held.values(), weights, strict=True))
    for more, weight in pairs:
        for less, other in pairs:
            assert (more - 1) * other <= less * weight, f"of {capacity} by {weights}: {held}"


# Elastic jobs.


@given(st.integers(1, 5), st.integers(2, 8), st.integers(1, 30))
def test_equal_elastic_jobs_of_a_queue_differ_by_one_step_at_most(count: int, most: int, capacity: int) -> None:
    scene = Scene([a_node("n0", 64, capacity + count)], [a_queue("q")])
    for index in range(count):
        scene.run(scene.job(f"e{index}", "q", gpus(1), elastic=tuple(range(1, most + 1))), "n0")
    scene.rest()
    sizes = [scene.size(f"e{index}") for index in range(count)]
    assert max(sizes) - min(sizes) <= 1
    assert sum(sizes) == min(capacity + count, count * most)


def test_one_that_may_not_grow_yet_keeps_its_part_of_what_is_idle() -> None:
    """The second was resized a moment ago. The first is ready, and does not take everything meanwhile."""
    scene = Scene([a_node("n0", 64, 8)], [a_queue("q")])
    for name in ("ready", "fresh"):
        scene.run(scene.job(name, "q", gpus(1), elastic=tuple(range(1, 9))), "n0")
    fresh = scene.world.lives[JobId("fresh")]
    fresh.resized_at = scene.world.now
    scene.world.ledger.hold(fresh.holding)
    decisions = scene.step()
    assert (scene.size("ready"), scene.size("fresh")) == (4, 1)
    assert decisions.wake_at == scene.world.now + scene.world.rules.settle_s
    scene.world.now = decisions.wake_at
    scene.step()
    assert (scene.size("ready"), scene.size("fresh")) == (4, 4)


def test_a_newcomer_starts_with_its_part_and_not_with_everything() -> None:
    scene = Scene([a_node("n0", 64, 9)], [a_queue("q")])
    scene.run(scene.job("old", "q", gpus(1), elastic=tuple(range(1, 10))), "n0")
    old = scene.world.lives[JobId("old")]
    old.resized_at = scene.world.now
    scene.world.ledger.hold(old.holding)
    scene.submit(scene.job("new", "q", gpus(1), elastic=tuple(range(1, 10))))
    scene.step()
    assert scene.size("new") in (4, 5)


def test_a_change_of_size_has_to_pay_for_itself_before_the_next() -> None:
    """Eight workers that each lose half a minute for one more: that one needs four minutes to make up for it."""
    scene = Scene([a_node("n0", 64, 10)], [a_queue("q")])
    scene.run(scene.job("e", "q", gpus(1), elastic=(8, 9), rescale_cost_s=30.0), *["n0"] * 8)
    life = scene.world.lives[JobId("e")]
    life.resized_at = scene.world.now
    scene.world.ledger.hold(life.holding)
    decisions = scene.step()
    assert not decisions.resizes
    assert decisions.wake_at == scene.world.now + 240.0
    scene.world.now = decisions.wake_at
    assert [len(each.add) for each in scene.step().resizes] == [1]


@pytest.mark.parametrize(
    ("idle", "settle_s", "wait_s"),
    [
        (64, 60.0, 60.0),  # 30 s of 64 workers, won back by 64 more in 30 s: the settle time is longer
        (16, 60.0, 120.0),
        (1, 60.0, 1920.0),
        (16, 300.0, 300.0),
        (64, 0.0, 30.0),
    ],
)
def test_much_idle_room_is_taken_sooner_than_little(idle: int, settle_s: float, wait_s: float) -> None:
    """What counts is all that the job could take at once, and not one worker of it."""
    scene = Scene([a_node("n0", 256, 64 + idle)], [a_queue("q")], Rules(settle_s=settle_s))
    scene.run(scene.job("e", "q", gpus(1), elastic=tuple(range(1, 129)), rescale_cost_s=30.0), *["n0"] * 64)
    life = scene.world.lives[JobId("e")]
    life.resized_at = scene.world.now
    scene.world.ledger.hold(life.holding)
    decisions = scene.step()
    assert not decisions.resizes
    (pending,) = decisions.pending_growths
    assert (pending.size, pending.larger, pending.at) == (64, 64 + idle, scene.world.now + wait_s)
    assert decisions.wake_at == pending.at
    scene.world.now = pending.at
    assert [len(each.add) for each in scene.step().resizes] == [idle]


def test_a_job_that_has_all_the_room_there_is_wakes_nobody() -> None:
    scene = Scene([a_node("n0", 64, 8)], [a_queue("q")])
    scene.run(scene.job("e", "q", gpus(1), elastic=tuple(range(1, 17))), *["n0"] * 8)
    life = scene.world.lives[JobId("e")]
    life.resized_at = scene.world.now
    scene.world.ledger.hold(life.holding)
    decisions = scene.step()
    assert (decisions.pending_growths, decisions.wake_at) == ((), None)


def test_room_that_is_too_little_for_who_waits_is_used_until_there_is_enough() -> None:
    scene = Scene([a_node("n0", 64, 8)], [a_queue("q"), a_queue("other", policies=(QueuePolicy.STRICT,))])
    scene.run(scene.job("held", "q", gpus(3)), "n0")
    scene.run(scene.job("small", "q", gpus(1)), "n0")
    scene.run(scene.job("e", "q", gpus(1), elastic=(1, 2, 3, 4)), "n0")
    scene.submit(scene.job("x", "other", gpus(4)))
    scene.rest()
    assert scene.size("e") == 4, "three GPUs are too little for x"
    assert scene.waiting == {"x"}
    scene.end("small")
    scene.rest()
    assert "x" in scene.running, "the last one came, and the others came back"


def test_shrinking_goes_before_evicting_and_no_further_than_needed() -> None:
    scene = Scene([a_node("n0", 64, 8)], [a_queue("a"), a_queue("b", least=gpus(4))])
    scene.run(scene.job("rigid", "a", gpus(4)), "n0")
    scene.run(scene.job("e", "a", gpus(1), elastic=(1, 2, 3, 4)), *["n0"] * 4)
    scene.submit(scene.job("x", "b", gpus(2)))
    decisions = scene.step()
    assert not decisions.evictions
    assert scene.size("e") == 2
    scene.submit(scene.job("y", "b", gpus(2)))
    assert [each.job_id for each in scene.step().evictions] in (["rigid"], ["e"]), "now there is not enough to spare"
