"""What went wrong elsewhere, rebuilt here: each case is a thread in which users of another scheduler were hurt.

Every step is checked by the same rules as the random histories, so a case shows what is special about it and no more.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from random import Random

import pytest

from paddleflow.domain.ids import JobId
from paddleflow.domain.jobs import Priority
from paddleflow.domain.queues import QueuePolicy
from paddleflow.domain.resources import GPU, Resources
from paddleflow.scheduling.decide import decide
from paddleflow.scheduling.reasons import WaitKind
from tests.properties.histories import a_node, a_queue, amounts
from tests.properties.scenes import Scene, admitted, evicted, reserved
from tests.properties.scheduling_checks import told


def gpus(count: int) -> Resources:
    return Resources({GPU: count})


def boxes(count: int, each: int = 8) -> list:
    return [a_node(f"n{index}", 64, each) for index in range(count)]


# Evictions that come back.


def test_kueue_14543_the_one_it_was_freed_for_starts_and_not_the_victim() -> None:
    """Under fair sharing a preempted workload was admitted again before the one it had made room for, over and over."""
    scene = Scene(boxes(1), [a_queue("mine", least=gpus(8)), a_queue("theirs")])
    scene.run(scene.job("v", "theirs", gpus(8)), "n0")
    scene.submit(scene.job("x", "mine", gpus(8)))
    assert evicted(scene.step()) == {"v"}
    scene.leave("v")
    assert admitted(scene.step()) == {"x"}
    scene.rest()
    assert scene.running == {"x"}
    assert scene.evictions == {"v": 1}


def test_kueue_14543_a_right_that_came_from_an_own_victim_goes_with_it() -> None:
    """Preempting inside one's own queue lowers its use, and with that made others' workloads look fair to take; the own
    victim was then spared, and the two sides took turns for ever."""
    nodes = [a_node("n0", 5), a_node("n1", 4, labels={"zone": "b"})]
    scene = Scene(nodes, [a_queue("mine", least=amounts(5)), a_queue("theirs")])
    scene.run(scene.job("own", "mine", amounts(1), elastic=(2, 3, 4, 5)), *["n0"] * 5)
    scene.run(scene.job("v", "theirs", amounts(4)), "n1")
    scene.submit(scene.job("x", "mine", amounts(3), selector={"zone": "b"}))
    # Only with three of its own workers gone is the queue within its guarantee: they go with v, or nobody does.
    assert evicted(scene.step()) == {"v"}
    assert scene.size("own") == 2
    scene.rest()
    assert scene.nodes_of("x") == ["n1"]
    assert scene.evictions == {"v": 1}


def test_kueue_13662_room_that_is_freed_in_parts_is_kept_until_the_last_part() -> None:
    """Of two victims one was gone early; its share of the room was handed straight back to it, so the preemptor never
    saw both at once."""
    scene = Scene(boxes(2, 4), [a_queue("a"), a_queue("b", least=gpus(8))])
    for name, node in (("a1", "n0"), ("a2", "n1")):
        scene.run(scene.job(name, "a", gpus(4)), node)
    scene.submit(scene.job("x", "b", gpus(4), 2))
    assert evicted(scene.step()) == {"a1", "a2"}
    scene.leave("a1")
    assert not scene.step().changes_anything
    assert scene.waiting == {"a1", "x"}
    scene.leave("a2")
    assert admitted(scene.step()) == {"x"}
    scene.rest()
    assert scene.evictions == {"a1": 1, "a2": 1}


def test_kueue_7101_only_the_job_within_the_guarantee_evicts_and_only_once() -> None:
    """Of four waiting jobs of falling size the fitting one was not let in, and the smallest set off more than thirty
    preemptions of the same victim."""
    scene = Scene(boxes(1), [a_queue("one", least=gpus(4)), a_queue("two", least=gpus(4))])
    for index in range(4):
        scene.run(scene.job(f"g{index}", "one", gpus(1), 2), "n0", "n0")
    for size in (6, 5, 4, 3):
        scene.submit(scene.job(f"w{size}", "two", gpus(1), size))
    scene.rest()
    assert "w4" in scene.running
    assert scene.waiting >= {"w6", "w5", "w3"}
    assert len(scene.evictions) == 2
    assert set(scene.evictions.values()) == {1}


def test_kueue_3779_two_guaranteed_jobs_take_one_borrower_each() -> None:
    """Best-effort workloads of two tenants and a guaranteed queue preempted each other without end."""
    queues = [a_queue("sure", least=gpus(4)), a_queue("a"), a_queue("b")]
    scene = Scene(boxes(1), queues)
    for name in ("a1", "b1", "b2", "a2"):
        scene.run(scene.job(name, name[0], gpus(2)), "n0")
    for name in ("sure1", "sure2"):
        scene.submit(scene.job(name, "sure", gpus(2)))
        scene.rest()
    assert scene.running >= {"sure1", "sure2"}
    assert len(scene.evictions) == 2
    assert set(scene.evictions.values()) == {1}


def test_kueue_6763_equal_candidates_are_told_apart_by_order_of_arrival_alone() -> None:
    """Which of several equal workloads was preempted depended on the order of a hash table, so two replicas disagreed
    and a restart chose differently."""
    choices = set()
    for order in permutations(range(4)):
        scene = Scene(boxes(2, 4), [a_queue("a"), a_queue("b", least=gpus(4))])
        jobs = [scene.job(f"a{index}", "a", gpus(2)) for index in range(4)]
        for index in order:
            scene.run(jobs[index], f"n{index % 2}")
        scene.submit(scene.job("x", "b", gpus(2)))
        choices.add(frozenset(evicted(scene.step())))
    assert choices == {frozenset({"a3"})}, "the last that came, whatever the order of the books"


def test_kueue_6947_a_job_that_can_never_start_does_not_cost_anybody_anything() -> None:
    """A workload larger than its queue's quota stood first in line: one behind it evicted for its own guarantee,
    yielded to the large one, and the victim was back the next cycle."""
    scene = Scene(boxes(1, 3), [a_queue("a", least=gpus(3)), a_queue("b")])
    scene.run(scene.job("v", "b", gpus(1)), "n0")
    scene.submit(scene.job("four", "a", gpus(1), 4), scene.job("three", "a", gpus(1), 3))
    scene.rest()
    assert scene.running == {"three"}
    assert scene.evictions == {"v": 1}


def test_kueue_15211_room_that_comes_anyway_is_counted_before_anybody_is_asked() -> None:
    """New victims were chosen while others were already on their way out."""
    scene = Scene(boxes(2, 4), [a_queue("a"), a_queue("b", least=gpus(4))])
    for name, node in (("a1", "n0"), ("a2", "n1")):
        scene.run(scene.job(name, "a", gpus(4)), node)
    stopped = scene.world.lives[JobId("a1")]
    stopped.state = type(stopped.state).LEAVING
    scene.world.ledger.leave(JobId("a1"))
    scene.submit(scene.job("x", "b", gpus(4)))
    decisions = scene.step()
    assert not decisions.evictions
    assert reserved(decisions) == {"x"}, "it has the right to more, so what comes is its own"
    scene.rest()
    assert scene.running == {"a2", "x"}


def test_volcano_4947_a_victim_is_not_first_in_line_for_what_it_just_lost() -> None:
    """An evicted queue's share fell to nothing, which put it ahead of everybody in the very next cycle."""
    queues = [a_queue("a", weight=9), a_queue("b", least=gpus(4), weight=1)]
    scene = Scene(boxes(1, 4), queues)
    scene.run(scene.job("v", "a", gpus(4), priority=Priority.VERY_HIGH), "n0")
    scene.submit(scene.job("x", "b", gpus(4), priority=Priority.VERY_LOW))
    scene.step()
    scene.leave("v")
    assert admitted(scene.step()) == {"x"}
    scene.rest()
    assert scene.waiting == {"v"}


def test_volcano_4949_a_victim_queue_below_its_guarantee_does_not_take_back() -> None:
    """Evicting a large job left its queue below what it deserved, so that queue reclaimed in turn, and so on."""
    scene = Scene(boxes(1, 10), [a_queue("a", least=gpus(5)), a_queue("b", least=gpus(5))])
    scene.run(scene.job("big", "a", gpus(1), 10), *["n0"] * 10)
    scene.submit(scene.job("x", "b", gpus(1), 5))
    scene.rest()
    assert scene.running == {"x"}
    assert scene.waiting == {"big"}
    # What is within its guarantee has its place all the same, and costs nobody his.
    scene.submit(scene.job("small", "a", gpus(1), 5))
    scene.rest()
    assert scene.running == {"x", "small"}
    assert scene.evictions == {"big": 1}


def test_volcano_3729_two_queues_that_both_want_more_than_half_come_to_rest() -> None:
    """Two queues with equal shares evicted each other's tasks in a loop, because each was now below its share."""
    scene = Scene(boxes(1, 10), [a_queue("a", least=gpus(5)), a_queue("b", least=gpus(5))])
    for index in range(3):
        scene.run(scene.job(f"a{index}", "a", gpus(3)), "n0")
    for index in range(3):
        scene.submit(scene.job(f"b{index}", "b", gpus(3)))
    scene.rest()
    assert set(scene.evictions.values()) <= {1}
    assert any(name.startswith("b") for name in scene.running)
    assert any(name.startswith("a") for name in scene.running)


# Too many victims, or for nothing.


def test_volcano_5994_one_gpu_costs_one_job() -> None:
    """One pod was short of room, ten were evicted for it."""
    scene = Scene(boxes(2, 5), [a_queue("a"), a_queue("b", least=gpus(1))])
    for index in range(10):
        scene.run(scene.job(f"a{index}", "a", gpus(1)), f"n{index % 2}")
    scene.submit(scene.job("x", "b", gpus(1)))
    assert len(evicted(scene.step())) == 1


def test_volcano_3673_nobody_goes_for_a_gang_that_still_would_not_fit() -> None:
    """Evictions were carried out one by one and not taken back when the gang turned out not to fit after all."""
    scene = Scene(boxes(3, 4), [a_queue("a"), a_queue("safe", least=gpus(4)), a_queue("b", least=gpus(12))])
    for name, queue, node in (("a1", "a", "n0"), ("a2", "a", "n1"), ("kept", "safe", "n2")):
        scene.run(scene.job(name, queue, gpus(4)), node)
    scene.submit(scene.job("x", "b", gpus(4), 3))
    decisions = scene.step()
    assert not decisions.changes_anything
    reason = decisions.reason_of(scene.world.lives[JobId("x")].waiting)
    assert reason is not None and reason.kind is WaitKind.NO_ROOM


def test_kueue_5243_victims_are_chosen_on_one_node_where_the_task_then_fits() -> None:
    """Eight pods on four nodes were preempted for a pod of eight GPUs, which then fitted on none of the nodes."""
    scene = Scene(boxes(4), [a_queue("a"), a_queue("b", least=gpus(8))])
    for index in range(16):
        scene.run(scene.job(f"a{index}", "a", gpus(2)), f"n{index % 4}")
    scene.submit(scene.job("x", "b", gpus(8)))
    victims = evicted(scene.step())
    assert len(victims) == 4
    assert len({scene.nodes_of(name)[0] for name in victims}) == 1
    scene.rest()
    assert "x" in scene.running


# A reason, and the right one.


def test_kueue_4329_when_quota_says_yes_and_nodes_say_no_the_nodes_are_named() -> None:
    """There was quota enough and no node large enough; the workload was admitted by quota and hung for ever."""
    scene = Scene(boxes(3), [a_queue("a", least=gpus(12), most=gpus(24)), a_queue("b")])
    for index in range(3):
        scene.run(scene.job(f"b{index}", "a", gpus(4)), f"n{index}")
    scene.submit(scene.job("x", "b", gpus(5), 2))
    decisions = scene.step()
    assert not decisions.changes_anything
    reason = decisions.reason_of(scene.world.lives[JobId("x")].waiting)
    assert reason is not None and reason.kind is WaitKind.NO_ROOM
    assert (reason.numbers["tasks"], reason.numbers["fit"], reason.numbers["resource"]) == (2, 0, GPU)


# Heads of lines.


def test_kueue_6143_a_victim_that_will_not_die_blocks_nobody_else() -> None:
    """A pod stuck in terminating blocked the whole queue behind the workload that waited for its room."""
    scene = Scene(boxes(2, 4), [a_queue("a"), a_queue("b", least=gpus(8))])
    scene.run(scene.job("stuck", "a", gpus(4)), "n0")
    scene.run(scene.job("ends", "a", gpus(4)), "n1")
    scene.submit(scene.job("x", "b", gpus(4)))
    (victim,) = evicted(scene.step())
    other = ({"stuck", "ends"} - {victim}).pop()
    scene.end(other)
    scene.submit(scene.job("y", "b", gpus(2)), scene.job("z", "a", gpus(2)))
    assert admitted(scene.step()) == {"y", "z"}, "and the room of the stuck one is still kept for x"
    scene.leave(victim)
    assert admitted(scene.step()) == {"x"}


def test_kueue_9345_everybody_who_fits_starts_in_one_cycle_and_in_fair_order() -> None:
    """Only one workload of each queue was looked at in a cycle, so the outcome depended on the number of cycles."""
    scene = Scene(boxes(1), [a_queue("a"), a_queue("b")])
    for queue in "ab":
        scene.submit(*(scene.job(f"{queue}{index}", queue, gpus(1)) for index in range(8)))
    started = admitted(scene.step())
    assert len(started) == 8
    assert sum(name.startswith("a") for name in started) == 4


def test_volcano_3003_one_job_that_cannot_reclaim_does_not_hide_the_next() -> None:
    """When the first job of a queue had no victims, the other jobs of that queue were not looked at any more."""
    scene = Scene(boxes(1, 4), [a_queue("a"), a_queue("b", least=gpus(2))])
    scene.run(scene.job("v", "a", gpus(4)), "n0")
    scene.submit(scene.job("large", "b", gpus(4)), scene.job("small", "b", gpus(2)))
    assert reserved(scene.step()) == {"small"}


def test_kai_1750_a_protected_queue_does_not_hide_one_that_borrows() -> None:
    """Reclaim began with a queue of low priority that was within its quota, found nothing to take and gave up, though a
    sibling far over its quota was there."""
    queues = [
        a_queue("org", least=gpus(6)),
        a_queue("starved", least=gpus(4), parent="org"),
        a_queue("batch", parent="org"),
        a_queue("protected", least=gpus(2)),
    ]
    scene = Scene(boxes(1), queues)
    scene.run(scene.job("safe", "protected", gpus(2), priority=Priority.VERY_LOW), "n0")
    for index in range(3):
        scene.run(scene.job(f"batch{index}", "batch", gpus(2), priority=Priority.VERY_HIGH), "n0")
    scene.submit(scene.job("x", "starved", gpus(4)))
    victims = evicted(scene.step())
    assert len(victims) == 2
    assert all(name.startswith("batch") for name in victims)


def test_volcano_2772_a_gang_preempts_one_large_job() -> None:
    """A more urgent job of two tasks could not preempt a less urgent one of a single large task."""
    scene = Scene(boxes(1), [a_queue("q", policies=(QueuePolicy.PREEMPT,))])
    scene.run(scene.job("low", "q", gpus(8), priority=Priority.LOW), "n0")
    scene.submit(scene.job("high", "q", gpus(2), 2, priority=Priority.HIGH))
    assert evicted(scene.step()) == {"low"}
    scene.rest()
    assert scene.running == {"high"}


# Doomed jobs and old ones.


def test_kai_2074_a_job_that_fails_at_every_start_lets_others_pass_meanwhile() -> None:
    """A pod whose binding was refused each time was placed first in every cycle, and nobody else got the room."""
    scene = Scene(boxes(1, 4), [a_queue("q")])
    doomed = scene.job("doomed", "q", gpus(4), priority=Priority.VERY_HIGH)
    later = scene.job("later", "q", gpus(4))
    scene.submit(doomed, later)
    assert admitted(scene.step()) == {"doomed"}
    scene.end("doomed")
    scene.submit(replace(doomed, not_before=scene.world.now + 10))
    decisions = scene.step()
    assert admitted(decisions) == {"later"}
    assert decisions.wake_at == scene.world.now + 10
    reason = decisions.reason_of(scene.world.lives[JobId("doomed")].waiting)
    assert reason is not None and reason.kind is WaitKind.BACKING_OFF


def test_dstack_4246_waiting_long_never_makes_a_job_wait_longer() -> None:
    """Attempts to find room were spaced out more and more, so whoever had waited longest looked least often and lost to
    newcomers."""
    scene = Scene(boxes(1, 4), [a_queue("q")])
    scene.run(scene.job("first", "q", gpus(4)), "n0")
    scene.submit(scene.job("old", "q", gpus(4)))
    for index in range(20):
        scene.world.pass_time(600)
        scene.submit(scene.job(f"young{index}", "q", gpus(4)))
        assert not scene.step().admissions
    scene.end("first")
    assert admitted(scene.step()) == {"old"}


def test_hami_116_two_gangs_never_hold_half_of_what_they_need() -> None:
    """Several gangs got part of their pods each and waited for the rest for ever."""
    scene = Scene(boxes(2, 4), [a_queue("a"), a_queue("b")])
    scene.submit(scene.job("one", "a", gpus(2), 3), scene.job("two", "b", gpus(2), 3))
    assert admitted(scene.step()) == {"one"}
    assert not scene.step().changes_anything
    scene.end("one")
    assert admitted(scene.step()) == {"two"}


# Elastic jobs.


def test_volcano_4666_sizes_are_those_the_model_accepts() -> None:
    """Users wanted two, four or eight workers and never three; any number was given."""
    scene = Scene(boxes(1, 7), [a_queue("q")])
    scene.submit(scene.job("e", "q", gpus(1), elastic=(1, 2, 4, 8)))
    scene.step()
    assert scene.size("e") == 4
    scene.submit(scene.job("x", "q", gpus(4)))
    decisions = scene.step()
    assert not decisions.evictions
    assert scene.size("e") == 2


def test_edl_one_job_grows_to_the_whole_cluster_and_rests() -> None:
    """EDL grew by one measure and shrank by a stricter one: given a spare GPU it went on adding and removing one."""
    scene = Scene(boxes(1, 10), [a_queue("q")])
    scene.run(scene.job("e", "q", gpus(1), elastic=tuple(range(1, 21))), "n0")
    scene.rest()
    assert scene.size("e") == 10
    scene.world.pass_time(10_000)
    assert not scene.step().changes_anything


def test_edl_growth_goes_to_whoever_has_least() -> None:
    """EDL sorted once and then dealt one trainer to everybody in turn, so the rich got as much as the poor."""
    scene = Scene(boxes(1, 18), [a_queue("q")])
    for name, size in (("poor", 2), ("rich", 11)):
        scene.run(scene.job(name, "q", gpus(1), elastic=tuple(range(1, 21))), *["n0"] * size)
    scene.rest()
    assert (scene.size("poor"), scene.size("rich")) == (7, 11)


def test_edl_shrinking_takes_from_whoever_has_most() -> None:
    """EDL took one trainer from each in turn, down to the poorest; its design said only from the most fulfilled."""
    scene = Scene(boxes(1, 24), [a_queue("q")])
    for name, size in (("a", 18), ("b", 4), ("c", 2)):
        scene.run(scene.job(name, "q", gpus(1), elastic=tuple(range(2, 21))), *["n0"] * size)
    scene.submit(scene.job("x", "q", gpus(4)))
    scene.step()
    assert [scene.size(name) for name in "abc"] == [14, 4, 2]


def test_edl_a_node_with_one_idle_core_takes_one_worker() -> None:
    """EDL added to a node's idle cores what it had just given away, so a single core was promised to eight trainers."""
    nodes = [a_node("n0", 1), a_node("n1", 3)]
    scene = Scene(nodes, [a_queue("q")])
    scene.run(scene.job("full", "q", amounts(3)), "n1")
    scene.submit(scene.job("e", "q", amounts(1), elastic=tuple(range(1, 9))))
    scene.step()
    assert scene.nodes_of("e") == ["n0"]


@pytest.mark.parametrize(
    ("cores", "cards", "busy", "each", "size", "most", "grows_to"),
    [
        (4, 0, amounts(1), amounts(1), 1, 3, 3),
        (3, 0, amounts(1), amounts(1), 1, 3, 2),
        (3, 0, amounts(2), amounts(1), 1, 3, 1),
        (4, 10, amounts(2, 8), amounts(1, 1), 1, 3, 2),
        (3, 10, amounts(1, 9), amounts(1, 1), 1, 3, 1),
    ],
)
def test_edl_vectors(
    cores: int, cards: int, busy: Resources, each: Resources, size: int, most: int, grows_to: int
) -> None:
    """EDL's own examples, with the job's present workers counted as used and the whole cluster to be filled."""
    scene = Scene([a_node("n0", cores, cards)], [a_queue("q")])
    scene.run(scene.job("other", "q", busy), "n0")
    scene.run(scene.job("e", "q", each, elastic=tuple(range(1, most + 1))), *["n0"] * size)
    scene.rest()
    assert scene.size("e") == grows_to


def test_edl_order_of_growth_is_by_fulfilment() -> None:
    """EDL's sort example: of jobs at two workers each, the one that may have twenty is poorer than that of ten, and one
    that has all it may have gets nothing."""
    scene = Scene(boxes(1, 7), [a_queue("q")])
    for name, most in (("a", 2), ("b", 20), ("c", 10)):
        scene.run(scene.job(name, "q", gpus(1), elastic=tuple(range(1, most + 1))), "n0", "n0")
    scene.step()
    assert [scene.size(name) for name in "abc"] == [2, 3, 2]


def test_the_books_told_in_any_order_decide_alike() -> None:
    """One decision of a busy scene, told to ledgers in ten different orders."""
    scene = Scene(boxes(3, 4), [a_queue("a"), a_queue("b", least=gpus(6)), a_queue("c", least=gpus(2))])
    for index in range(6):
        scene.run(scene.job(f"a{index}", "a", gpus(2)), f"n{index % 3}")
    scene.submit(scene.job("x", "b", gpus(2), 3), scene.job("y", "c", gpus(1), 2))
    outcomes = [decide(scene.world.fresh_ledger(Random(seed)), scene.world.now) for seed in range(10)]
    assert all(told(each) == told(outcomes[0]) for each in outcomes)
    assert outcomes[0].evictions
