"""The scheduler by itself: what a decision costs, and what its decisions are worth beside simpler rules.

Processor time of this process, so that a neighbour on the machine counts for little.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

from bench.figures import Figure
from paddleflow.domain.clusters import Node
from paddleflow.domain.ids import ClusterName, JobId, NodeName, QueueName
from paddleflow.domain.queues import Queue
from paddleflow.domain.resources import CPU, GPU, MEMORY, NOTHING, Resources
from paddleflow.scheduling.decide import decide
from paddleflow.scheduling.decisions import Decisions
from paddleflow.scheduling.entries import TaskGroup, Waiting
from paddleflow.scheduling.ledger import Ledger

CLUSTER = ClusterName("c")
THEN = datetime(2026, 1, 1, tzinfo=UTC)


def figures() -> Iterator[Figure]:
    yield Figure(
        what="placing 500 gangs of 20 on 1,000 nodes, CPU",
        value=_placing(500, 20),
        unit="s",
        target=3,
        peer="Volcano's published 21 s, whole path on Kubernetes",
    )
    yield Figure(
        what="placing one gang of 10,000 on 1,000 nodes, CPU",
        value=_placing(1, 10_000),
        unit="s",
        target=5,
        peer="Volcano's published 43 s, whole path on Kubernetes",
    )
    yield Figure(
        what="taking one GPU back, 4,000 jobs running, CPU",
        value=_reclaim() * 1000,
        unit="ms",
        target=100,
        peer="KAI's published 13.9 s, whole path on Kubernetes",
    )
    yield Figure(
        what="a cycle with 10,000 waiting after one end, CPU", value=_one_change() * 1000, unit="ms", target=20
    )


def _placing(gangs: int, size: int) -> float:
    ledger = _ledger([_queue("q")], [_node(number, cores=16, gpus=0) for number in range(1000)])
    for number in range(gangs):
        ledger.wait(_job(number, "q", size, cores=1, gpus=0))
    decisions, seconds = _timed(lambda: decide(ledger, 0.0))
    placed = sum(len(admission.spots) for admission in decisions.admissions)
    if placed != gangs * size:
        raise SystemExit(f"{placed} of {gangs * size} tasks were placed")
    return seconds


def _reclaim() -> float:
    owner, borrower = _queue("owner", guaranteed_gpus=2000), _queue("borrower", guaranteed_gpus=2000)
    ledger = _ledger([owner, borrower], [_node(number, cores=64, gpus=8) for number in range(500)])
    for number in range(4000):
        ledger.wait(_job(number, "borrower", 1, cores=1, gpus=1))
    ledger.apply(decide(ledger, 0.0), 0.0)
    ledger.wait(_job(5000, "owner", 1, cores=1, gpus=1))
    decisions, seconds = _timed(lambda: decide(ledger, 100.0))
    if len(decisions.evictions) != 1:
        raise SystemExit(f"{len(decisions.evictions)} jobs were evicted for one GPU")
    return seconds


def _one_change() -> float:
    """The mean of fifty cycles, each after one job has ended; shapes are mixed and eight queues wait."""
    queues = [_queue(f"q{number}", guaranteed_gpus=500) for number in range(8)]
    ledger = _ledger(queues, [_node(number, cores=64, gpus=8) for number in range(500)])
    for number in range(4000):
        ledger.wait(_job(number, f"q{number % 8}", 1, cores=1, gpus=1))
    ledger.apply(decide(ledger, 0.0), 0.0)
    for number in range(10_000, 20_000):
        shape = (1 + number % 7, 1 + number % 3, 1 + number % 8)
        ledger.wait(_job(number, f"q{number % 8}", shape[0], cores=shape[1], gpus=shape[2]))
    total = 0.0
    for number in range(50):
        ledger.drop(JobId(f"job-{number}"))
        decisions, seconds = _timed(lambda: decide(ledger, 700.0))
        ledger.apply(decisions, 700.0)
        total += seconds
    return total / 50


def _timed(work: Callable[[], Decisions]) -> tuple[Decisions, float]:
    began = time.process_time()
    found = work()
    return found, time.process_time() - began


def _ledger(queues: list[Queue], nodes: list[Node]) -> Ledger:
    ledger = Ledger()
    ledger.set_capacity(queues, nodes)
    return ledger


def _amounts(cores: int, gpus: int) -> Resources:
    return Resources({CPU: cores * 1000, MEMORY: cores << 30, **({GPU: gpus} if gpus else {})})


def _node(number: int, *, cores: int, gpus: int) -> Node:
    return Node(name=NodeName(f"node-{number:04}"), cluster=CLUSTER, capacity=_amounts(cores, gpus))


def _queue(name: str, *, guaranteed_gpus: int = 0) -> Queue:
    return Queue(
        id=name,
        name=QueueName(name),
        namespace="default",
        cluster=CLUSTER,
        min_resources=Resources({GPU: guaranteed_gpus}) if guaranteed_gpus else NOTHING,
        created_at=THEN,
        updated_at=THEN,
    )


def _job(number: int, queue: str, tasks: int, *, cores: int, gpus: int) -> Waiting:
    group = TaskGroup(role="worker", count=tasks, each=_amounts(cores, gpus))
    return Waiting(job_id=JobId(f"job-{number}"), seq=number, queue=QueueName(queue), cluster=CLUSTER, groups=(group,))
