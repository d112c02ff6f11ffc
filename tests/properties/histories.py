"""Small random worlds for the scheduler, and what happens in them.

A world is a cluster of one to four nodes, a handful of queues and the jobs that come and go. It is driven by anything
that rolls dice like ``random.Random``: plain seeds for the many histories of every run, hypothesis for those that are
to be made smaller. It carries decisions out the way the platform does, and keeps its own plain record of every job, so
that the checks never have to ask the scheduler what is true.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import Enum
from random import Random

from paddleflow.domain.clusters import Node, NodeStatus
from paddleflow.domain.ids import ClusterName, JobId, NodeName, QueueName
from paddleflow.domain.jobs import Elasticity, Priority, Spot
from paddleflow.domain.queues import (
    ISOLATION_LABEL,
    NODE_QUOTA_LABEL,
    PARENT_LABEL,
    PHYSICAL,
    Queue,
    QueuePolicy,
    QueueStatus,
    QuotaType,
)
from paddleflow.domain.resources import CPU, GPU, Resources
from paddleflow.scheduling.decide import Rules
from paddleflow.scheduling.decisions import Decisions
from paddleflow.scheduling.entries import Held, Holding, TaskGroup, Waiting
from paddleflow.scheduling.ledger import Ledger, held_at

CLUSTER = ClusterName("c")
_DAWN = datetime(2026, 1, 1, tzinfo=UTC)
_PRIORITIES = (Priority.LOW, Priority.NORMAL, Priority.NORMAL, Priority.HIGH)


def amounts(cpu: int, gpus: int = 0) -> Resources:
    return Resources({CPU: cpu * 1000, GPU: gpus} if gpus else {CPU: cpu * 1000})


def a_queue(
    name: str,
    *,
    least: Resources | None = None,
    most: Resources | None = None,
    parent: str = "",
    location: Mapping[str, str] | None = None,
    policies: tuple[str, ...] = (),
    weight: int = 1,
    kind: QuotaType = QuotaType.ELASTIC,
    status: QueueStatus = QueueStatus.OPEN,
) -> Queue:
    return Queue(
        id=name,
        name=QueueName(name),
        namespace="n",
        cluster=CLUSTER,
        quota_type=kind,
        min_resources=least or Resources({}),
        max_resources=most or Resources({}),
        location={**(location or {}), **({PARENT_LABEL: parent} if parent else {})},
        policies=policies,
        weight=weight,
        status=status,
        created_at=_DAWN,
        updated_at=_DAWN,
    )


def a_node(name: str, cpu: int, gpus: int = 0, labels: Mapping[str, str] | None = None) -> Node:
    return Node(name=NodeName(name), cluster=CLUSTER, capacity=amounts(cpu, gpus), labels=labels or {})


class State(Enum):
    WAITING = "waiting"
    RUNNING = "running"
    LEAVING = "leaving"


@dataclass
class Life:
    """The plain record of one job."""

    entry: Waiting
    """As it was submitted."""
    state: State = State.WAITING
    held: tuple[Held, ...] = ()
    parting: tuple[Held, ...] = ()
    claim: tuple[Spot, ...] = ()
    comes_back: bool = False
    """Of one that is leaving: evicted, so it waits again."""
    started_at: float = 0.0
    resized_at: float = 0.0

    @property
    def waiting(self) -> Waiting:
        return replace(self.entry, claim=self.claim)

    @property
    def holding(self) -> Holding:
        entry = self.entry
        return Holding(
            job_id=entry.job_id,
            seq=entry.seq,
            priority=entry.priority,
            queue=entry.queue,
            cluster=entry.cluster,
            groups=entry.groups,
            held=self.held,
            parting=self.parting,
            elastic=entry.elastic,
            started_at=self.started_at,
            limit_s=entry.limit_s,
            resized_at=self.resized_at,
            is_leaving=self.state is State.LEAVING,
        )

    @property
    def claimed(self) -> tuple[Held, ...]:
        return held_at(self.entry.groups, self.claim) if self.claim else ()


class World:
    def __init__(
        self,
        chance: Random,
        nodes: Iterable[Node] | None = None,
        queues: Iterable[Queue] | None = None,
        rules: Rules | None = None,
    ) -> None:
        """Whatever is not given is chosen by the dice."""
        self.chance = chance
        self.now = 1000.0
        self.rules = rules or Rules(
            patience_s=chance.choice((0.0, 50.0, 600.0)), settle_s=chance.choice((0.0, 10.0, 60.0))
        )
        self.nodes = _some_nodes(chance) if nodes is None else tuple(nodes)
        self.queues = _some_queues(chance, self.nodes) if queues is None else tuple(queues)
        parents = {queue.parent for queue in self.queues}
        self.leaves = [queue.name for queue in self.queues if queue.name not in parents]
        self.above = _paths(self.queues)
        """Of every queue: itself and the quotas above it."""
        self.lives: dict[JobId, Life] = {}
        self.ledger = Ledger()
        self.ledger.set_capacity(self.queues, self.nodes)
        self.is_disturbed = False
        """Somebody with a better right came, or capacity changed, since the last decisions."""
        self.promised: dict[JobId, float] = {}
        """By when jobs start, as they were last told."""
        self.is_recast = False
        """Capacity changed since the last decisions."""
        self._seq = 0

    def in_state(self, state: State) -> list[Life]:
        return [life for life in self.lives.values() if life.state is state]

    def fresh_ledger(self, chance: Random | None = None) -> Ledger:
        """The same world told to a new ledger, in another order if there are dice for that."""
        queues, nodes, lives = list(self.queues), list(self.nodes), list(self.lives.values())
        if chance is not None:
            for each in (queues, nodes, lives):
                chance.shuffle(each)
        ledger = Ledger()
        ledger.set_capacity(queues, nodes)
        for life in lives:
            if life.state is State.WAITING:
                ledger.wait(life.waiting)
            else:
                ledger.hold(life.holding)
        return ledger

    # What happens by itself.

    def happen(self) -> None:
        chance = self.chance
        self.pass_time(chance.choice((1.0, 5.0, 30.0, 100.0)))
        kind = chance.randrange(100)
        if kind < 46 or not self.lives:
            self.submit(_some_job(chance, self._next_seq(), self.leaves, self.queues))
        elif kind < 68:
            self._pick(State.RUNNING, self.end)
        elif kind < 88:
            self._end_some_leaving()
        elif kind < 93:
            self._stop_somebody()
        elif kind < 96:
            self._change_a_node()
        else:
            self._change_a_quota()

    def pass_time(self, seconds: float) -> None:
        """Whoever has run as long as it may is over."""
        self.now += seconds
        for life in list(self.lives.values()):
            limit = life.entry.limit_s
            if life.held and limit is not None and life.started_at + limit <= self.now:
                (self.leave if life.state is State.LEAVING else self.end)(life)

    def submit(self, entry: Waiting) -> Life:
        life = self.lives[entry.job_id] = Life(replace(entry, since=self.now))
        self.ledger.wait(life.waiting)
        self.is_disturbed = True
        return life

    def end(self, life: Life) -> None:
        """The job is over and its room is free."""
        del self.lives[life.entry.job_id]
        self.ledger.drop(life.entry.job_id)

    def leave(self, life: Life) -> None:
        """The tasks of a job on its way out have ended."""
        if not life.comes_back:
            self.end(life)
            return
        life.state, life.held, life.parting, life.comes_back = State.WAITING, (), (), False
        self.ledger.wait(life.waiting)
        self.is_disturbed = True

    def part(self, life: Life) -> None:
        """The tasks taken out of a resized job have ended."""
        life.parting = ()
        self.ledger.release_leaving(life.entry.job_id)

    def all_leave(self) -> bool:
        """Everybody who was told to go has gone; False when there was nobody."""
        leaving = self.in_state(State.LEAVING)
        parting = [life for life in self.in_state(State.RUNNING) if life.parting]
        for life in leaving:
            self.leave(life)
        for life in parting:
            self.part(life)
        return bool(leaving or parting)

    def carry_out(self, decisions: Decisions) -> None:
        for eviction in decisions.evictions:
            life = self.lives[eviction.job_id]
            life.state, life.comes_back = State.LEAVING, True
        for resize in decisions.resizes:
            life = self.lives[resize.job_id]
            gone = {(spot.role, spot.index) for spot in resize.drop}
            life.parting += tuple(part for part in life.held if (part.role, part.index) in gone)
            kept = tuple(part for part in life.held if (part.role, part.index) not in gone)
            life.held = kept + held_at(life.entry.groups, resize.add)
            life.resized_at = self.now
        for reservation in decisions.reservations:
            self.lives[reservation.job_id].claim = reservation.spots
        for admission in decisions.admissions:
            life = self.lives[admission.job_id]
            life.state, life.claim = State.RUNNING, ()
            life.held = held_at(life.entry.groups, admission.spots)
            life.started_at = life.resized_at = self.now
        self.ledger.apply(decisions, self.now)
        self.is_disturbed = self.is_recast = False

    def set_capacity(self, queues: Iterable[Queue], nodes: Iterable[Node]) -> None:
        self.queues, self.nodes = tuple(queues), tuple(nodes)
        self.above = _paths(self.queues)
        self.ledger.set_capacity(self.queues, self.nodes)
        self.is_disturbed = self.is_recast = True

    def _pick(self, state: State, then: object) -> None:
        found = self.in_state(state)
        if found and callable(then):
            then(self.chance.choice(found))

    def _end_some_leaving(self) -> None:
        parting = [life for life in self.in_state(State.RUNNING) if life.parting]
        found = self.in_state(State.LEAVING) + parting
        if found:
            life = self.chance.choice(found)
            (self.leave if life.state is State.LEAVING else self.part)(life)

    def _stop_somebody(self) -> None:
        life = self.chance.choice(list(self.lives.values()))
        if life.state is State.WAITING:
            self.end(life)
        else:
            life.state, life.comes_back = State.LEAVING, False
            self.ledger.leave(life.entry.job_id)

    def _change_a_node(self) -> None:
        at = self.chance.randrange(len(self.nodes))
        node = self.nodes[at]
        status = NodeStatus.READY if node.status is NodeStatus.NOT_READY else NodeStatus.NOT_READY
        self.set_capacity(self.queues, (*self.nodes[:at], replace(node, status=status), *self.nodes[at + 1 :]))

    def _change_a_quota(self) -> None:
        chance = self.chance
        at = chance.randrange(len(self.queues))
        queue = self.queues[at]
        match chance.randrange(4):
            case 0:
                queue = replace(queue, max_resources=amounts(chance.randrange(1, 9), chance.randrange(5)))
            case 1:
                least = Resources({CPU: chance.randrange(5) * 1000, GPU: chance.randrange(3)})
                queue = replace(queue, min_resources=least) if queue.quota_type is QuotaType.ELASTIC else queue
            case 2:
                queue = replace(queue, weight=chance.randrange(1, 4))
            case _:
                is_open = queue.status is QueueStatus.OPEN
                queue = replace(queue, status=QueueStatus.CLOSED if is_open else QueueStatus.OPEN)
        self.set_capacity((*self.queues[:at], queue, *self.queues[at + 1 :]), self.nodes)

    def _next_seq(self) -> int:
        self._seq += 1
        return self._seq


def _some_nodes(chance: Random) -> tuple[Node, ...]:
    nodes = []
    has_gpus = chance.random() < 0.7
    for index in range(chance.choice((1, 2, 2, 3, 4))):
        labels: dict[str, str] = {}
        if chance.random() < 0.3:
            labels["zone"] = chance.choice("ab")
        if index and chance.random() < 0.08:
            labels[NODE_QUOTA_LABEL] = "own"
        nodes.append(a_node(f"n{index}", chance.randrange(2, 7), chance.randrange(1, 5) if has_gpus else 0, labels))
    return tuple(nodes)


def _some_queues(chance: Random, nodes: tuple[Node, ...]) -> tuple[Queue, ...]:
    cpu = sum(node.capacity.get(CPU) for node in nodes) // 1000
    gpus = sum(node.capacity.get(GPU) for node in nodes)

    def policies() -> tuple[str, ...]:
        odds = ((QueuePolicy.PREEMPT, 0.4), (QueuePolicy.STRICT, 0.15), (QueuePolicy.SPREAD, 0.15))
        return tuple(policy for policy, odd in odds if chance.random() < odd)

    def part(whole_cpu: int, whole_gpus: int) -> tuple[int, int]:
        return chance.randrange(whole_cpu + 1), chance.randrange(whole_gpus + 1)

    def elastic(
        name: str, least: tuple[int, int], parent: str = "", location: Mapping[str, str] | None = None
    ) -> Queue:
        most = None
        if chance.random() < 0.4:
            most = amounts(least[0] + chance.randrange(1, 6), least[1] + chance.randrange(3))
        lowest = Resources({CPU: least[0] * 1000, GPU: least[1]} if chance.random() < 0.8 else {GPU: least[1]})
        weight = chance.choice((1, 1, 2, 3))
        return a_queue(
            name, least=lowest, most=most, parent=parent, policies=policies(), weight=weight, location=location
        )

    zoned = {"zone": "a"} if chance.random() < 0.08 else None
    style = chance.randrange(10)
    if style < 2:
        kind = chance.choice((QuotaType.CAPABILITY, QuotaType.ELASTIC))
        most = amounts(chance.randrange(2, 12), chance.randrange(6)) if chance.random() < 0.5 else None
        return (a_queue("q", most=most, policies=policies(), kind=kind),)
    if style < 6:
        found, left = [], (cpu, gpus)
        for index in range(chance.choice((2, 2, 3))):
            least = part(*left)
            left = (left[0] - least[0], left[1] - least[1])
            found.append(elastic(f"q{index}", least, location=zoned if index == 0 else None))
        if chance.random() < 0.3:
            found.append(a_queue("cap", kind=QuotaType.CAPABILITY, policies=policies()))
        if any(node.labels.get(NODE_QUOTA_LABEL) for node in nodes):
            found.append(a_queue("own", location={ISOLATION_LABEL: PHYSICAL}, policies=policies()))
        return tuple(found)
    found = [elastic("root", (cpu, gpus))] if chance.random() < 0.5 else []
    left = (cpu, gpus)
    for letter in "xy":
        whole = part(*left)
        left = (left[0] - whole[0], left[1] - whole[1])
        found.append(elastic(letter, whole))
        below = whole
        for index in range(chance.choice((1, 2))):
            least = part(*below)
            below = (below[0] - least[0], below[1] - least[1])
            found.append(elastic(f"{letter}{index}", least, parent=letter))
    return tuple(found)


def _some_job(chance: Random, seq: int, leaves: list[QueueName], queues: tuple[Queue, ...]) -> Waiting:
    queue = chance.choice(leaves) if chance.random() < 0.97 else chance.choice(queues).name
    each = amounts(chance.choice((1, 1, 1, 2, 3)), chance.choice((0, 0, 1, 1, 2)))
    selector = {"zone": chance.choice("ab")} if chance.random() < 0.06 else {}
    elastic: Elasticity | None = None
    style = chance.randrange(10)
    groups: tuple[TaskGroup, ...]
    if style < 5:
        groups = (TaskGroup(role="worker", count=1, each=each, selector=selector),)
    elif style < 7:
        groups = (TaskGroup(role="worker", count=chance.randrange(2, 5), each=each, selector=selector),)
    elif style < 8:
        ps = TaskGroup(role="ps", count=chance.randrange(1, 3), each=amounts(chance.randrange(1, 3)))
        groups = (ps, TaskGroup(role="worker", count=chance.randrange(1, 3), each=each, selector=selector))
    else:
        sizes = chance.choice(((), (), (1, 2, 4), (2, 4)))
        least = sizes[0] if sizes else chance.randrange(1, 3)
        most = sizes[-1] if sizes else least + chance.randrange(1, 4)
        elastic = Elasticity(least=least, most=most, sizes=sizes, rescale_cost_s=chance.choice((1.0, 30.0)))
        groups = (TaskGroup(role="worker", count=least, each=each, selector=selector),)
        if chance.random() < 0.3:
            groups = (TaskGroup(role="chief", count=1, each=amounts(1)), *groups)
    return Waiting(
        job_id=JobId(f"j{seq}"),
        seq=seq,
        priority=chance.choice(_PRIORITIES),
        queue=queue,
        cluster=CLUSTER,
        groups=groups,
        elastic=elastic,
        limit_s=chance.choice((None, None, 20.0, 100.0, 500.0)),
    )


def _paths(queues: Iterable[Queue]) -> dict[QueueName, list[QueueName]]:
    parents = {queue.name: queue.parent for queue in queues}
    found: dict[QueueName, list[QueueName]] = {}
    for name in parents:
        path = found[name] = []
        at: QueueName | None = name
        while at is not None and at in parents and at not in path:
            path.append(at)
            at = parents[at]
    return found
