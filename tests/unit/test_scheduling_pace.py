"""Deciding less often decides nothing differently."""

from __future__ import annotations

from dataclasses import replace

import pytest

from paddleflow.domain.jobs import JobStatus
from paddleflow.scheduling.decide import decide
from paddleflow.scheduling.decisions import Decisions
from paddleflow.scheduling.entries import waiting_of
from paddleflow.scheduling.ledger import Ledger
from paddleflow.scheduling.pace import Pace
from paddleflow.simulation.cluster import Capacity, like_nodes, tenant_queues
from paddleflow.simulation.policies import OwnScheduler
from paddleflow.simulation.simulate import simulate
from paddleflow.simulation.synthetic import Recipe, make_trace
from paddleflow.simulation.workload import prepare
from paddleflow.testing.builders import a_job, a_node, a_queue, resources


@pytest.fixture
def busy() -> tuple[Ledger, Pace]:
    """A full node, one job that waits, and a pace that knows of it."""
    ledger, pace = Ledger(), Pace()
    ledger.set_capacity([a_queue()], [a_node(having=resources("1", "1Gi"))])
    ledger.put(a_job("running", status=JobStatus.RUNNING, node="node-1"))
    ledger.put(a_job("waiting", seq=2))
    assert pace.is_due(0.0), "nothing was ever decided"
    pace.decided(decide(ledger, 0.0))
    return ledger, pace


def test_one_of_its_kind_behind_a_refused_one_changes_nothing(busy: tuple[Ledger, Pace]) -> None:
    _, pace = busy
    pace.submitted(waiting_of(a_job("another", seq=3)))
    assert not pace.is_due(1.0)


def test_another_shape_a_time_limit_or_room_that_was_freed_does(busy: tuple[Ledger, Pace]) -> None:
    _, pace = busy
    limited = replace(waiting_of(a_job("short", seq=3)), limit_s=10.0)
    for entry in (waiting_of(a_job("small", asking=resources("500m", "1Mi"), seq=4)), limited):
        pace.submitted(entry)
        assert pace.is_due(1.0)
        pace.decided(Decisions(refused={waiting_of(a_job()).kin: lambda: None}))  # type: ignore[dict-item,return-value]
    assert not pace.is_due(1.0)
    pace.changed()
    assert pace.is_due(1.0)


def test_a_moment_that_was_named_comes() -> None:
    pace = Pace()
    pace.decided(Decisions(wake_at=10.0))
    assert not pace.is_due(9.9)
    assert pace.is_due(10.0)


class Restless(Pace):
    def is_due(self, now: float) -> bool:
        return True


def test_a_replay_comes_out_the_same_as_one_that_decides_at_every_event() -> None:
    jobs = make_trace(Recipe(jobs=400, tenants=4, elastic_share=0.2), seed=5)
    capacity = Capacity(nodes=like_nodes(32, 8), queues=())
    capacity = replace(capacity, queues=tenant_queues(jobs, capacity.nodes))
    workload = prepare(jobs, capacity, load=1.1)
    calm, restless = OwnScheduler.on(capacity), OwnScheduler.on(capacity)
    restless._pace = Restless()
    assert simulate(workload, calm).outcomes == simulate(workload, restless).outcomes
