from __future__ import annotations

import pytest

from paddleflow.domain.clusters import NodeStatus
from paddleflow.domain.errors import NeverFits
from paddleflow.domain.jobs import Job, JobStatus, Priority
from paddleflow.domain.queues import Queue, QueueStatus, QuotaType
from paddleflow.domain.resources import NOTHING
from paddleflow.scheduling.decide import Decisions, check_can_ever_fit, decide
from paddleflow.scheduling.reasons import Reason, WaitKind
from paddleflow.scheduling.snapshot import Ledger, waiting_of
from paddleflow.testing.builders import a_job, a_node, a_queue, resources


def decided(*jobs: Job, queues: tuple[Queue, ...] = (a_queue(),), nodes: tuple = (a_node(),)) -> Decisions:
    ledger = Ledger()
    ledger.set_capacity(queues, nodes)
    for job in jobs:
        ledger.put(job)
    return decide(ledger.snapshot())


def admitted(decisions: Decisions) -> list[str]:
    return [admission.job_id for admission in decisions.admissions]


def why(decisions: Decisions, job: Job) -> Reason:
    reason = decisions.reason_of(waiting_of(job))
    assert reason is not None, f"{job.id} was admitted"
    return reason


def test_priority_first_then_first_come() -> None:
    jobs = [
        a_job("late-high", priority=Priority.HIGH, seq=9),
        a_job("early-low", priority=Priority.LOW, seq=1),
        a_job("second", seq=3),
        a_job("first", seq=2),
    ]
    assert admitted(decided(*jobs)) == ["late-high", "first", "second", "early-low"]


def test_nobody_overtakes_in_a_queue_but_other_queues_go_on() -> None:
    big, small, elsewhere = (
        a_job("big", asking=resources(cpu="6"), seq=2),
        a_job("small", asking=resources(cpu="1"), seq=3),
        a_job("elsewhere", queue="q2", asking=resources(cpu="1"), seq=4),
    )
    running = a_job("running", asking=resources(cpu="4"), status=JobStatus.RUNNING, node="node-1", seq=1)
    decisions = decided(running, big, small, elsewhere, queues=(a_queue(), a_queue("q2")))
    assert admitted(decisions) == ["elsewhere"]
    assert why(decisions, big).kind is WaitKind.NO_ROOM
    assert why(decisions, small).kind is WaitKind.BEHIND
    assert "big" in why(decisions, small).sentence


def test_the_queue_maximum_holds_and_says_so() -> None:
    queue = a_queue(maximum=resources(cpu="3", memory="99Gi"))
    first, second = (a_job(f"j{n}", asking=resources(cpu="2"), seq=n) for n in (1, 2))
    decisions = decided(first, second, queues=(queue,))
    assert admitted(decisions) == ["j1"]
    reason = why(decisions, second)
    assert reason.kind is WaitKind.QUEUE_AT_MAXIMUM
    assert reason.sentence == "queue default-queue may use 3 of cpu; 2 is in use and the job asks for 2"


def test_gpus_are_given_by_index_and_never_twice() -> None:
    node = a_node(having=resources("8", "32Gi", gpus=4))
    holding = a_job("h", asking=resources(gpus=1), status=JobStatus.RUNNING, node="node-1", gpus=(1,), seq=1)
    decisions = decided(holding, *(a_job(f"j{n}", asking=resources(gpus=n), seq=n + 1) for n in (1, 2)), nodes=(node,))
    assert [admission.placements[0].gpus for admission in decisions.admissions] == [(0,), (2, 3)]


def test_small_jobs_are_packed_so_that_large_ones_find_whole_nodes() -> None:
    nodes = (a_node("node-a", resources("4", "32Gi")), a_node("node-b", resources("4", "32Gi")))
    jobs = [a_job("s1", seq=1), a_job("s2", seq=2), a_job("large", asking=resources(cpu="4"), seq=3)]
    decisions = decided(*jobs, nodes=nodes)
    assert {a.job_id: a.placements[0].node for a in decisions.admissions} == {
        "s1": "node-a",
        "s2": "node-a",
        "large": "node-b",
    }


@pytest.mark.parametrize(
    ("queue", "nodes", "kind"),
    [
        (a_queue(status=QueueStatus.CLOSED), (a_node(),), WaitKind.QUEUE_NOT_OPEN),
        (a_queue("other"), (a_node(),), WaitKind.QUEUE_GONE),
        (a_queue(), (), WaitKind.NO_NODES),
        (a_queue(), (a_node(status=NodeStatus.NOT_READY),), WaitKind.NO_NODES),
    ],
)
def test_each_obstacle_has_its_reason(queue: Queue, nodes: tuple, kind: WaitKind) -> None:
    assert why(decided(a_job(), queues=(queue,), nodes=nodes), a_job()).kind is kind


def test_a_capability_queue_with_nothing_written_limits_nothing() -> None:
    queue = a_queue(maximum=NOTHING, quota_type=QuotaType.CAPABILITY)
    assert admitted(decided(a_job(), queues=(queue,))) == ["job-a"]


def test_a_job_that_ended_gives_its_room_back() -> None:
    ledger = Ledger()
    ledger.set_capacity([a_queue()], [a_node(having=resources("1", "1Gi"))])
    ledger.put(a_job("old", status=JobStatus.RUNNING, node="node-1"))
    ledger.put(a_job("new", seq=2))
    assert not decide(ledger.snapshot()).admissions
    ledger.put(a_job("old", status=JobStatus.SUCCEEDED, node="node-1"))
    assert admitted(decide(ledger.snapshot())) == ["new"]


@pytest.mark.parametrize(
    ("asking", "names"),
    [
        (resources(cpu="200"), "cpu"),
        (resources(cpu="9"), "cpu"),
        (resources(memory="33Gi"), "memory"),
        (resources(gpus=9), "nvidia.com/gpu"),
    ],
)
def test_what_can_never_fit_is_refused_and_the_limit_is_named(asking, names: str) -> None:
    with pytest.raises(NeverFits, match=names) as refused:
        check_can_ever_fit(waiting_of(a_job(asking=asking)), a_queue(), [a_node()])
    assert refused.value.details["resource"] == names


def test_never_is_judged_on_nodes_that_are_away_too_and_not_without_nodes() -> None:
    check_can_ever_fit(waiting_of(a_job()), a_queue(), [a_node(status=NodeStatus.NOT_READY)])
    check_can_ever_fit(waiting_of(a_job(asking=resources(gpus=64))), a_queue(), [])


def test_room_just_given_is_not_given_again_before_its_event_is_heard() -> None:
    ledger = Ledger()
    ledger.set_capacity([a_queue()], [a_node(having=resources("1", "1Gi"))])
    ledger.put(a_job("first", seq=1))
    (admission,) = decide(ledger.snapshot()).admissions
    ledger.admitted(admission.job_id, admission.placements)
    ledger.put(a_job("urgent", priority=Priority.HIGH, seq=2))
    decisions = decide(ledger.snapshot())
    assert not decisions.admissions
    assert why(decisions, a_job("urgent", priority=Priority.HIGH, seq=2)).kind is WaitKind.NO_ROOM
