"""Things that should not be, and are: the scheduler goes on, and says what is wrong."""

from __future__ import annotations

from dataclasses import replace

import pytest

from paddleflow.domain.clusters import NodeStatus
from paddleflow.domain.ids import JobId, NodeName, QueueName
from paddleflow.domain.jobs import Spot
from paddleflow.domain.queues import QueueStatus
from paddleflow.domain.resources import CPU, GPU, Resources
from paddleflow.scheduling.decide import decide
from paddleflow.scheduling.entries import TaskGroup
from paddleflow.scheduling.ledger import Ledger
from paddleflow.scheduling.reasons import WaitKind
from tests.properties.histories import State, a_node, a_queue, amounts
from tests.properties.scenes import Scene, admitted, evicted


def gpus(count: int) -> Resources:
    return Resources({GPU: count})


def reason_kind(scene: Scene, name: str) -> WaitKind:
    reason = scene.history[-1].reason_of(scene.world.lives[JobId(name)].waiting)
    assert reason is not None
    return reason.kind


def test_a_parent_that_does_not_exist_is_no_parent() -> None:
    scene = Scene([a_node("n0", 4)], [a_queue("orphan", parent="nobody", least=amounts(2)), a_queue("b")])
    scene.run(scene.job("v", "b", amounts(4)), "n0")
    scene.submit(scene.job("x", "orphan", amounts(2)))
    assert evicted(scene.step()) == {"v"}


def test_quotas_that_stand_under_each_other_stand_alone() -> None:
    queues = [a_queue("a", parent="b", most=amounts(3)), a_queue("b", parent="a", most=amounts(3)), a_queue("c")]
    queues.append(a_queue("d", parent="a"))
    scene = Scene([a_node("n0", 12)], queues)
    scene.world.above = {queue.name: [queue.name] for queue in queues} | {
        QueueName("d"): [QueueName("d"), QueueName("a")]
    }
    scene.submit(*(scene.job(f"{queue}{n}", queue, amounts(1)) for n in range(4) for queue in "abcd"))
    started = admitted(scene.step())
    assert sum(name[0] in "ad" for name in started) == 3
    assert sum(name[0] == "b" for name in started) == 3
    assert sum(name[0] == "c" for name in started) == 4


def test_a_quota_that_is_its_own_parent() -> None:
    scene = Scene([a_node("n0", 8)], [a_queue("a", parent="a", least=amounts(4))])
    scene.submit(scene.job("x", "a", amounts(4)))
    assert admitted(scene.step()) == {"x"}


def test_a_node_that_goes_under_a_claim_sets_the_job_free_to_look_elsewhere() -> None:
    nodes = [a_node("n0", 4, 4), a_node("n1", 4, 4)]
    scene = Scene(nodes, [a_queue("a"), a_queue("b", least=gpus(4))])
    scene.run(scene.job("a0", "a", gpus(4)), "n0")
    scene.run(scene.job("a1", "a", gpus(4)), "n1")
    scene.submit(scene.job("x", "b", gpus(4)))
    (victim,) = evicted(scene.step())
    (lost,) = scene.nodes_of(victim)
    gone = [replace(node, status=NodeStatus.NOT_READY) if node.name == lost else node for node in nodes]
    scene.world.set_capacity(scene.world.queues, gone)
    decisions = scene.step()
    (other,) = {"a0", "a1"} - {victim}
    assert evicted(decisions) == {other}
    assert all(spot.node != lost for each in decisions.reservations for spot in each.spots)


@pytest.mark.parametrize(
    "queues", [[a_queue("a")], [a_queue("a"), a_queue("b", least=gpus(4), status=QueueStatus.CLOSED)]]
)
def test_a_queue_that_goes_or_closes_under_a_claim_gives_the_room_back(queues: list) -> None:
    scene = Scene([a_node("n0", 4, 4)], [a_queue("a"), a_queue("b", least=gpus(4))])
    scene.run(scene.job("v", "a", gpus(4)), "n0")
    scene.submit(scene.job("x", "b", gpus(4)))
    scene.step()
    # The checks of a scene look every queue up; here one is gone, so the ledger is asked directly.
    ledger = scene.world.ledger
    ledger.set_capacity(queues, scene.world.nodes)
    ledger.wait(replace(scene.world.lives[JobId("v")].entry, claim=()))
    decisions = decide(ledger, scene.world.now)
    assert [each.spots for each in decisions.reservations] == [()]
    assert admitted(decisions) == {"v"}


def test_a_claim_on_a_gpu_that_the_node_no_longer_has_is_given_up() -> None:
    scene = Scene([a_node("n0", 4, 4)], [a_queue("q")])
    job = scene.job("x", "q", gpus(2))
    spot = Spot(role="worker", index=0, node=NodeName("n0"), gpus=(2, 3))
    scene.submit(job)
    scene.world.lives[job.job_id].claim = (spot,)
    scene.world.ledger.wait(scene.world.lives[job.job_id].waiting)
    scene.world.set_capacity(scene.world.queues, [a_node("n0", 4, 2)])
    decisions = scene.step()
    assert [each.spots[0].gpus for each in decisions.admissions] == [(0, 1)]
    assert not decisions.reservations, "what it takes at once it need not be told to give up first"


def test_a_node_that_comes_back_smaller_than_what_runs_on_it_takes_nothing_more() -> None:
    scene = Scene([a_node("n0", 4, 4)], [a_queue("q")])
    scene.run(scene.job("big", "q", gpus(4)), "n0")
    scene.world.ledger.set_capacity(scene.world.queues, [a_node("n0", 4, 2)])
    scene.world.ledger.wait(scene.job("x", "q", gpus(1)))
    assert not decide(scene.world.ledger, scene.world.now).changes_anything


@pytest.mark.parametrize("name", ["example.com/quantum", GPU])
def test_a_resource_that_no_node_has_is_waited_for_and_named(name: str) -> None:
    scene = Scene([a_node("n0", 4)], [a_queue("q")])
    scene.submit(scene.job("x", "q", Resources({CPU: 1000, name: 1})), scene.job("y", "q", amounts(1)))
    decisions = scene.step()
    assert admitted(decisions) == {"y"}
    reason = decisions.reason_of(scene.world.lives[JobId("x")].waiting)
    assert reason is not None
    assert (reason.kind, reason.numbers["resource"], reason.numbers["free"]) == (WaitKind.NO_ROOM, name, "0")


@pytest.mark.parametrize("each", [Resources({}), Resources({CPU: 0, GPU: 0})])
def test_a_request_for_nothing_starts_on_a_full_node_and_not_without_one(each: Resources) -> None:
    scene = Scene([a_node("n0", 1)], [a_queue("q", most=amounts(1))])
    scene.run(scene.job("full", "q", amounts(1)), "n0")
    scene.submit(scene.job("x", "q", each), scene.job("gang", "q", each, 3))
    assert admitted(scene.step()) == {"x", "gang"}
    nowhere = Scene([], [a_queue("q")])
    nowhere.submit(nowhere.job("x", "q", each))
    assert not nowhere.step().changes_anything
    assert reason_kind(nowhere, "x") is WaitKind.NO_NODES


def test_a_gang_of_none_is_nobody_and_starts_at_once() -> None:
    scene = Scene([a_node("n0", 1)], [a_queue("q")])
    job = scene.job("x", "q", amounts(1))
    scene.submit(replace(job, groups=(TaskGroup(role="worker", count=0, each=amounts(1)),)))
    assert admitted(scene.step()) == {"x"}


def test_a_minimum_above_the_maximum_and_above_the_cluster() -> None:
    scene = Scene([a_node("n0", 4)], [a_queue("a", least=amounts(100), most=amounts(2)), a_queue("b")])
    scene.run(scene.job("v", "b", amounts(4)), "n0")
    scene.submit(scene.job("x", "a", amounts(2)), scene.job("y", "a", amounts(2)))
    scene.rest()
    assert "x" in scene.running
    assert "y" in scene.waiting, "a maximum is a wall, whatever is guaranteed"


def test_a_queue_of_a_cluster_that_has_no_nodes() -> None:
    elsewhere = replace(a_queue("far"), cluster="elsewhere")
    scene = Scene([a_node("n0", 4)], [a_queue("q"), elsewhere])
    scene.submit(replace(scene.job("x", "far", amounts(1)), cluster="elsewhere"))
    assert not scene.step().changes_anything
    assert reason_kind(scene, "x") is WaitKind.NO_NODES


def test_a_queue_that_is_not_there_keeps_its_jobs_waiting_and_others_going() -> None:
    ledger = Ledger()
    ledger.set_capacity([a_queue("q")], [a_node("n0", 4)])
    scene = Scene([a_node("n0", 4)], [a_queue("q")])
    lost, fine = scene.job("lost", "gone", amounts(1)), scene.job("fine", "q", amounts(1))
    ledger.wait(lost)
    ledger.wait(fine)
    decisions = decide(ledger, 0.0)
    assert admitted(decisions) == {"fine"}
    reason = decisions.reason_of(lost)
    assert reason is not None and reason.kind is WaitKind.QUEUE_GONE


def test_what_runs_in_a_queue_that_is_gone_still_holds_its_node() -> None:
    scene = Scene([a_node("n0", 4)], [a_queue("q"), a_queue("b", least=amounts(4))])
    scene.run(scene.job("old", "q", amounts(4)), "n0")
    ledger = scene.world.ledger
    ledger.set_capacity([a_queue("b", least=amounts(4))], scene.world.nodes)
    ledger.wait(scene.job("x", "b", amounts(4)))
    assert not decide(ledger, scene.world.now).changes_anything, "nobody knows whose right it is, so it stays"
    ledger.leave(JobId("old"))
    assert decide(ledger, scene.world.now) is not None
    ledger.drop(JobId("old"))
    assert admitted(decide(ledger, scene.world.now)) == {"x"}


def test_a_job_whose_time_is_long_over_is_taken_to_end_now() -> None:
    scene = Scene([a_node("n0", 4)], [a_queue("q")])
    scene.run(scene.job("late", "q", amounts(4), limit_s=1.0), "n0")
    scene.submit(scene.job("x", "q", amounts(4)))
    assert [each.starts_by for each in scene.step().promises] == [scene.world.now]


def test_thousands_of_equal_jobs() -> None:
    ledger = Ledger()
    ledger.set_capacity([a_queue("q"), a_queue("p")], [a_node(f"n{index}", 8) for index in range(4)])
    scene = Scene([], [])
    jobs = [scene.job(f"j{index}", "pq"[index % 2], amounts(1)) for index in range(5000)]
    for job in jobs:
        ledger.wait(job)
    decisions = decide(ledger, 0.0)
    assert len(decisions.admissions) == 32
    ledger.apply(decisions, 0.0)
    assert ledger.waiting_count == 5000 - 32
    assert not decide(ledger, 0.0).changes_anything
    for job in jobs:
        ledger.drop(job.job_id)
    assert ledger.waiting_count == 0
    assert not ledger.waiting


def test_jobs_with_the_same_number_are_told_apart() -> None:
    ledger = Ledger()
    ledger.set_capacity([a_queue("q")], [a_node("n0", 4)])
    scene = Scene([], [])
    jobs = [replace(scene.job(name, "q", amounts(1)), seq=7) for name in "cab"]
    for job in jobs:
        ledger.wait(job)
    ledger.drop(JobId("c"))
    assert [job.job_id for job in ledger.waiting[QueueName("q")]] == ["a", "b"]


def test_a_victim_that_is_told_to_go_twice_goes_once() -> None:
    scene = Scene([a_node("n0", 4, 4)], [a_queue("a"), a_queue("b", least=gpus(4))])
    scene.run(scene.job("v", "a", gpus(4)), "n0")
    scene.submit(scene.job("x", "b", gpus(4)))
    decisions = scene.step()
    scene.world.ledger.apply(decisions, scene.world.now)
    assert scene.world.lives[JobId("v")].state is State.LEAVING
    assert not scene.step().changes_anything
