"""One decision at a time: what starts, where, and what the others are told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from paddleflow.domain.clusters import Node, NodeStatus
from paddleflow.domain.errors import NeverFits
from paddleflow.domain.jobs import Elasticity, FlavourRef, Job, JobSpec, JobStatus, Member, Priority, RunPolicy
from paddleflow.domain.queues import (
    ISOLATION_LABEL,
    NODE_QUOTA_LABEL,
    PHYSICAL,
    Queue,
    QueuePolicy,
    QueueStatus,
    QuotaType,
)
from paddleflow.domain.resources import NOTHING, Resources
from paddleflow.scheduling.decide import Rules, decide
from paddleflow.scheduling.decisions import Decisions
from paddleflow.scheduling.entries import waiting_of
from paddleflow.scheduling.ledger import Ledger
from paddleflow.scheduling.never import check_can_ever_fit
from paddleflow.scheduling.reasons import Reason, WaitKind
from paddleflow.testing.builders import THEN, a_job, a_member, a_node, a_queue, resources

NOW = THEN.timestamp()


def ledger_of(*jobs: Job, queues: Sequence[Queue] = (), nodes: Sequence[Node] | None = None) -> Ledger:
    ledger = Ledger()
    ledger.set_capacity(queues or (a_queue(),), (a_node(),) if nodes is None else nodes)
    for job in jobs:
        ledger.put(job)
    return ledger


def decided(*jobs: Job, queues: Sequence[Queue] = (), nodes: Sequence[Node] | None = None) -> Decisions:
    return decide(ledger_of(*jobs, queues=queues, nodes=nodes), NOW)


def admitted(decisions: Decisions) -> list[str]:
    return [admission.job_id for admission in decisions.admissions]


def nodes_of(decisions: Decisions) -> dict[str, list[str]]:
    return {each.job_id: [spot.node for spot in each.spots] for each in decisions.admissions}


def why(decisions: Decisions, job: Job) -> Reason:
    reason = decisions.reason_of(waiting_of(job))
    assert reason is not None, f"{job.id} was admitted"
    return reason


def gang(name: str, replicas: int, asking: Resources, seq: int = 1, **more: object) -> Job:
    return a_job(name, member=a_member(asking, replicas=replicas), seq=seq, **more)  # type: ignore[arg-type]


def test_priority_first_then_first_come() -> None:
    jobs = [
        a_job("late-high", priority=Priority.HIGH, seq=9),
        a_job("early-low", priority=Priority.LOW, seq=1),
        a_job("second", seq=3),
        a_job("first", seq=2),
    ]
    assert admitted(decided(*jobs)) == ["late-high", "first", "second", "early-low"]


def test_in_a_strict_queue_nobody_overtakes_but_other_queues_go_on() -> None:
    big, small, elsewhere = (
        a_job("big", asking=resources(cpu="6"), seq=2),
        a_job("small", asking=resources(cpu="1"), seq=3),
        a_job("elsewhere", queue="q2", asking=resources(cpu="1"), seq=4),
    )
    running = a_job("running", asking=resources(cpu="4"), status=JobStatus.RUNNING, node="node-1", seq=1)
    queues = (a_queue(policies=(QueuePolicy.STRICT,)), a_queue("q2"))
    decisions = decided(running, big, small, elsewhere, queues=queues)
    assert admitted(decisions) == ["elsewhere"]
    assert why(decisions, big).kind is WaitKind.NO_ROOM
    assert why(decisions, small).kind is WaitKind.BEHIND
    assert "big" in why(decisions, small).sentence


def test_in_any_other_queue_who_fits_may_pass_one_that_does_not() -> None:
    running = a_job("running", asking=resources(cpu="4"), status=JobStatus.RUNNING, node="node-1", seq=1)
    big, small = a_job("big", asking=resources(cpu="6"), seq=2), a_job("small", asking=resources(cpu="1"), seq=3)
    assert admitted(decided(running, big, small)) == ["small"]


def limited(job: Job, deadline_s: float) -> Job:
    return replace(job, spec=replace(job.spec, policy=RunPolicy(deadline_s=deadline_s)))


def test_who_passes_does_not_delay_a_promised_start() -> None:
    """``big`` can start when ``running`` reaches its deadline. What ends before that may use the room meanwhile."""
    running = limited(a_job("running", asking=resources(cpu="4"), status=JobStatus.RUNNING, node="node-1", seq=1), 100)
    big = a_job("big", asking=resources(cpu="8"), seq=2)
    long, short = a_job("long", seq=3), limited(a_job("short", seq=4), 50)
    ledger = ledger_of(running, big, long, short)
    decisions = decide(ledger, NOW)
    assert admitted(decisions) == ["short"]
    assert [(each.job_id, each.starts_by) for each in decisions.promises] == [("big", NOW + 100)]
    asked = decide(ledger, NOW, focus=long.id)
    assert why(asked, long).kind is WaitKind.WOULD_DELAY
    assert "big" in why(asked, long).sentence


def test_two_promises_are_not_made_of_the_same_room() -> None:
    running = limited(a_job("running", asking=resources(cpu="8"), status=JobStatus.RUNNING, node="node-1", seq=1), 100)
    first, second = (a_job(f"q{n}-big", queue=f"q{n}", asking=resources(cpu="8"), seq=n + 1) for n in (1, 2))
    decisions = decided(running, first, second, queues=(a_queue(), a_queue("q1"), a_queue("q2")))
    assert [each.job_id for each in decisions.promises if each.starts_by is not None] == ["q1-big"]


def test_after_patience_the_freest_node_empties_for_one_that_needs_it_whole() -> None:
    nodes = (a_node("node-1", resources("8", "32Gi")), a_node("node-2", resources("8", "32Gi")))
    held = [
        a_job("one", asking=resources(cpu="6"), status=JobStatus.RUNNING, node="node-1", seq=1),
        a_job("two", asking=resources(cpu="3"), status=JobStatus.RUNNING, node="node-2", seq=2),
    ]
    whole, small = a_job("whole", asking=resources(cpu="8"), seq=3), a_job("small", asking=resources(cpu="4"), seq=4)
    ledger = ledger_of(*held, whole, small, nodes=nodes)
    rules = Rules(patience_s=60)
    early = decide(ledger, NOW, rules)
    assert admitted(early) == ["small"]
    assert early.wake_at == NOW + 60
    late = decide(ledger, NOW + 60, rules)
    assert admitted(late) == [], "the rest of node-2 is kept"
    assert [spot.node for each in late.promises for spot in each.spots] == ["node-2"]


def test_the_queue_maximum_holds_and_says_so() -> None:
    queue = a_queue(maximum=resources(cpu="3", memory="99Gi"))
    first, second = (a_job(f"j{n}", asking=resources(cpu="2"), seq=n) for n in (1, 2))
    decisions = decided(first, second, queues=(queue,))
    assert admitted(decisions) == ["j1"]
    reason = why(decisions, second)
    assert reason.kind is WaitKind.QUEUE_AT_MAXIMUM
    assert reason.sentence == "queue default-queue may use 3 of cpu; 2 is in use and the job asks for 2"


def test_a_maximum_further_up_holds_and_is_named() -> None:
    queues = (a_queue("dept", maximum=resources("3", "99Gi")), a_queue("team", parent="dept"))
    first, second = (a_job(f"j{n}", queue="team", asking=resources(cpu="2"), seq=n) for n in (1, 2))
    decisions = decided(first, second, queues=queues)
    assert admitted(decisions) == ["j1"]
    assert why(decisions, second).numbers["quota"] == "dept"


def test_what_is_left_of_a_quota_is_kept_for_the_first_that_waits_for_it() -> None:
    queue = a_queue(maximum=resources(cpu="4", memory="99Gi"))
    running = a_job("running", asking=resources(cpu="2"), status=JobStatus.RUNNING, node="node-1", seq=1)
    first, second = a_job("first", asking=resources(cpu="4"), seq=2), a_job("second", asking=resources(cpu="2"), seq=3)
    decisions = decided(running, first, second, queues=(queue,))
    assert admitted(decisions) == []
    assert why(decisions, first).kind is WaitKind.QUEUE_AT_MAXIMUM
    assert why(decisions, second).kind is WaitKind.WOULD_DELAY, "there is quota for it, but not without delaying first"


def test_nothing_is_kept_for_a_job_that_can_never_start() -> None:
    queue = a_queue(maximum=resources(cpu="3", memory="99Gi"))
    doomed, small = a_job("doomed", asking=resources(cpu="4"), seq=1), a_job("small", asking=resources(cpu="2"), seq=2)
    assert admitted(decided(doomed, small, queues=(queue,))) == ["small"]


def test_gpus_are_given_by_index_and_never_twice() -> None:
    node = a_node(having=resources("8", "32Gi", gpus=4))
    holding = a_job("h", asking=resources(gpus=1), status=JobStatus.RUNNING, node="node-1", gpus=(1,), seq=1)
    decisions = decided(holding, *(a_job(f"j{n}", asking=resources(gpus=n), seq=n + 1) for n in (1, 2)), nodes=(node,))
    assert [admission.spots[0].gpus for admission in decisions.admissions] == [(0,), (2, 3)]


def test_small_jobs_are_packed_so_that_large_ones_find_whole_nodes() -> None:
    nodes = (a_node("node-a", resources("4", "32Gi")), a_node("node-b", resources("4", "32Gi")))
    jobs = [a_job("s1", seq=1), a_job("s2", seq=2), a_job("large", asking=resources(cpu="4"), seq=3)]
    assert nodes_of(decided(*jobs, nodes=nodes)) == {"s1": ["node-a"], "s2": ["node-a"], "large": ["node-b"]}


def test_a_queue_that_spreads_puts_each_task_where_most_is_free() -> None:
    nodes = [a_node(f"node-{n}", resources("4", "32Gi")) for n in "abc"]
    job = gang("spread", 3, resources(cpu="1"))
    found = nodes_of(decided(job, queues=(a_queue(policies=(QueuePolicy.SPREAD,)),), nodes=nodes))
    assert found == {"spread": ["node-a", "node-b", "node-c"]}


def test_a_gang_starts_whole_or_not_at_all_and_says_how_much_is_short() -> None:
    nodes = [a_node(f"node-{n}", resources("3", "32Gi")) for n in "ab"]
    five = gang("five", 5, resources(cpu="1"), seq=1)
    decisions = decided(five, gang("three", 3, resources(cpu="2"), seq=2), nodes=nodes)
    assert nodes_of(decisions) == {"five": ["node-a"] * 3 + ["node-b"] * 2}
    reason = why(decided(gang("three", 3, resources(cpu="2")), nodes=nodes), gang("three", 3, resources(cpu="2")))
    assert (reason.kind, reason.numbers["tasks"], reason.numbers["fit"]) == (WaitKind.NO_ROOM, 3, 2)


def test_roles_that_only_fit_in_one_order_are_placed_in_it() -> None:
    """The larger role would take the only node that the picky one may use."""
    nodes = (a_node("any", resources("4", "32Gi")), a_node("ssd", resources("3", "32Gi"), labels={"disk": "ssd"}))
    large = Member(role="worker", flavour=FlavourRef(resources=resources(cpu="3")))
    picky = Member(role="ps", flavour=FlavourRef(resources=resources(cpu="2")), node_selector={"disk": "ssd"})
    job = a_job("team", spec=JobSpec(members=(large, picky)))
    found = decided(job, nodes=nodes)
    assert {spot.role: spot.node for spot in found.admissions[0].spots} == {"worker": "any", "ps": "ssd"}


def test_nodes_are_chosen_by_the_labels_of_the_queue_the_task_and_the_owner() -> None:
    nodes = (
        a_node("plain", resources("8")),
        a_node("zoned", resources("8"), labels={"zone": "a"}),
        a_node("owned", resources("8"), labels={NODE_QUOTA_LABEL: "mine"}),
    )
    queues = (
        a_queue("zone-a", location={"zone": "a"}),
        a_queue("mine", location={ISOLATION_LABEL: PHYSICAL}),
        a_queue("other", location={"zone": "b"}),
    )
    jobs = [a_job(queue.name, queue=queue.name, seq=seq) for seq, queue in enumerate(queues, 1)]
    decisions = decided(*jobs, queues=queues, nodes=nodes)
    assert nodes_of(decisions) == {"zone-a": ["zoned"], "mine": ["owned"]}
    assert why(decisions, jobs[2]).kind is WaitKind.NO_NODES


@pytest.mark.parametrize(
    ("queue", "nodes", "kind"),
    [
        (a_queue(status=QueueStatus.CLOSED), (a_node(),), WaitKind.QUEUE_NOT_OPEN),
        (a_queue("other"), (a_node(),), WaitKind.QUEUE_GONE),
        (a_queue(), (), WaitKind.NO_NODES),
        (a_queue(), (a_node(status=NodeStatus.NOT_READY),), WaitKind.NO_NODES),
    ],
)
def test_each_obstacle_has_its_reason(queue: Queue, nodes: tuple[Node, ...], kind: WaitKind) -> None:
    assert why(decided(a_job(), queues=(queue,), nodes=nodes), a_job()).kind is kind


def test_a_job_that_backs_off_is_woken_for_and_lets_others_pass() -> None:
    back_at = THEN.replace(minute=5)
    waits = replace(a_job("waits", priority=Priority.HIGH), not_before=back_at)
    decisions = decided(waits, a_job("next", seq=2))
    assert admitted(decisions) == ["next"]
    assert why(decisions, waits).kind is WaitKind.BACKING_OFF
    assert decisions.wake_at == back_at.timestamp()


def test_a_capability_queue_with_nothing_written_limits_nothing() -> None:
    queue = a_queue(maximum=NOTHING, quota_type=QuotaType.CAPABILITY)
    assert admitted(decided(a_job(), queues=(queue,))) == ["job-a"]


def test_a_job_that_ended_gives_its_room_back() -> None:
    ledger = ledger_of(
        a_job("old", status=JobStatus.RUNNING, node="node-1"), nodes=[a_node(having=resources("1", "1Gi"))]
    )
    ledger.put(a_job("new", seq=2))
    assert not decide(ledger, NOW).admissions
    ledger.put(a_job("old", status=JobStatus.SUCCEEDED, node="node-1"))
    assert admitted(decide(ledger, NOW)) == ["new"]


def test_room_just_given_is_not_given_again_before_its_event_is_heard() -> None:
    ledger = ledger_of(a_job("first", seq=1), nodes=[a_node(having=resources("1", "1Gi"))])
    ledger.apply(decide(ledger, NOW), NOW)
    urgent = a_job("urgent", priority=Priority.HIGH, seq=2)
    ledger.put(urgent)
    decisions = decide(ledger, NOW)
    assert not decisions.admissions
    assert why(decisions, urgent).kind is WaitKind.NO_ROOM


def test_an_elastic_job_starts_as_large_as_there_is_room() -> None:
    spec = JobSpec(members=(a_member(resources(cpu="1")),), elastic=Elasticity(least=1, most=16, sizes=(1, 2, 4, 16)))
    decisions = decided(a_job("elastic", spec=spec))
    assert [spot.index for spot in decisions.admissions[0].spots] == [0, 1, 2, 3]


# Requests that would wait for ever.


@pytest.mark.parametrize(
    ("asking", "names"),
    [
        (resources(cpu="200"), "cpu"),
        (resources(cpu="9"), "cpu"),
        (resources(memory="33Gi"), "memory"),
        (resources(gpus=9), "nvidia.com/gpu"),
    ],
)
def test_what_can_never_fit_is_refused_and_the_limit_is_named(asking: Resources, names: str) -> None:
    with pytest.raises(NeverFits, match=names) as refused:
        check_can_ever_fit(waiting_of(a_job(asking=asking)), a_queue(), [], [a_node()])
    assert refused.value.details["resource"] == names


def test_a_limit_further_up_is_named_with_its_quota() -> None:
    quotas = [a_queue("dept", maximum=resources("3", "99Gi")), a_queue("team", parent="dept")]
    with pytest.raises(NeverFits, match="dept") as refused:
        check_can_ever_fit(waiting_of(a_job(queue="team", asking=resources(cpu="4"))), quotas[1], quotas, [a_node()])
    assert refused.value.details["queue"] == "dept"


def test_a_gang_larger_than_the_cluster_is_refused_with_what_fits() -> None:
    with pytest.raises(NeverFits, match=r"9 tasks .* room for 8"):
        check_can_ever_fit(waiting_of(gang("nine", 9, resources(cpu="1"))), a_queue(), [], [a_node()])


def test_never_is_judged_on_nodes_that_are_away_too_and_not_without_nodes() -> None:
    check_can_ever_fit(waiting_of(a_job()), a_queue(), [], [a_node(status=NodeStatus.NOT_READY)])
    check_can_ever_fit(waiting_of(a_job(asking=resources(gpus=64))), a_queue(), [], [])
