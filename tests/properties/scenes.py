"""Worlds made by hand, for cases that have a name. Every decision in them is checked as closely as in a random one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random

from paddleflow.domain.clusters import Node
from paddleflow.domain.ids import JobId, NodeName, QueueName
from paddleflow.domain.jobs import Elasticity, Priority, Spot
from paddleflow.domain.queues import Queue
from paddleflow.domain.resources import Resources
from paddleflow.scheduling.decide import Rules
from paddleflow.scheduling.decisions import Decisions
from paddleflow.scheduling.entries import TaskGroup, Waiting
from paddleflow.scheduling.ledger import held_at
from tests.properties.exhaustive import watched
from tests.properties.histories import CLUSTER, Life, State, World
from tests.properties.scheduling_checks import Care, cycle

RULES = Rules()


class Scene:
    """A world with jobs that are named, told what happens step by step."""

    def __init__(self, nodes: Sequence[Node], queues: Sequence[Queue], rules: Rules = RULES) -> None:
        self.world = World(Random(0), nodes, queues, rules)
        self.evictions: Counter[str] = Counter()
        self.history: list[Decisions] = []
        self._seq = 0

    def job(
        self,
        name: str,
        queue: str,
        each: Resources,
        count: int = 1,
        *,
        priority: Priority = Priority.NORMAL,
        elastic: tuple[int, ...] | None = None,
        limit_s: float | None = None,
        selector: Mapping[str, str] | None = None,
        not_before: float = 0.0,
        rescale_cost_s: float = 0.0,
    ) -> Waiting:
        """``elastic``: the sizes it can live with; it starts with the smallest."""
        self._seq += 1
        sizes = None
        if elastic is not None:
            sizes = Elasticity(least=elastic[0], most=elastic[-1], sizes=elastic, rescale_cost_s=rescale_cost_s)
            count = elastic[0]
        return Waiting(
            job_id=JobId(name),
            seq=self._seq,
            priority=priority,
            queue=QueueName(queue),
            cluster=CLUSTER,
            groups=(TaskGroup(role="worker", count=count, each=each, selector=selector or {}),),
            elastic=sizes,
            limit_s=limit_s,
            not_before=not_before,
        )

    def submit(self, *jobs: Waiting) -> None:
        for job in jobs:
            self.world.submit(job)

    def run(self, job: Waiting, *nodes: str) -> None:
        """The job runs already: its first task on the first of these nodes, and so on."""
        life = self.world.lives[job.job_id] = Life(replace(job, since=self.world.now))
        spots = []
        for index, name in enumerate(nodes):
            room = self.world.ledger.rooms.find(NodeName(name))
            assert room is not None
            gpus = room.idle_gpus(job.groups[0].each.gpus)
            spot = Spot(role="worker", index=index, node=NodeName(name), gpus=gpus)
            spots.append(spot)
            self.world.ledger.rooms.take(NodeName(name), {}, gpus)
        self.world.ledger.set_capacity(self.world.queues, self.world.nodes)
        life.state, life.held = State.RUNNING, held_at(job.groups, spots)
        life.started_at = life.resized_at = self.world.now - 500.0
        self.world.ledger.hold(life.holding)

    def step(self) -> Decisions:
        """Decide once, and do as decided; nobody who is told to go has gone yet."""
        with watched(tries_everything=True):
            decisions = cycle(self.world, Care.SELDOM)
        self.evictions.update(each.job_id for each in decisions.evictions)
        self.history.append(decisions)
        return decisions

    def leave(self, name: str) -> None:
        """Who was told to go has gone; one who was evicted waits again."""
        life = self.world.lives[JobId(name)]
        (self.world.leave if life.state is State.LEAVING else self.world.part)(life)

    def end(self, name: str) -> None:
        self.world.end(self.world.lives[JobId(name)])

    def rest(self, within: int = 20) -> None:
        """Go on until nothing more is decided; whoever is told to go goes."""
        for _ in range(within):
            if not self.step().changes_anything and not self.world.all_leave():
                return
            self.world.all_leave()
        raise AssertionError(f"no rest within {within} cycles")

    @property
    def running(self) -> set[str]:
        return {life.entry.job_id for life in self.world.in_state(State.RUNNING)}

    @property
    def waiting(self) -> set[str]:
        return {life.entry.job_id for life in self.world.in_state(State.WAITING)}

    def size(self, name: str) -> int:
        return len(self.world.lives[JobId(name)].held)

    def nodes_of(self, name: str) -> list[str]:
        return sorted(part.node for part in self.world.lives[JobId(name)].held)


def evicted(decisions: Decisions) -> set[str]:
    return {each.job_id for each in decisions.evictions}


def admitted(decisions: Decisions) -> set[str]:
    return {each.job_id for each in decisions.admissions}


def reserved(decisions: Decisions) -> set[str]:
    return {each.job_id for each in decisions.reservations if each.spots}
