"""Who is entitled to how much, and how far from it a queue was while it had work waiting.

The entitlement of an instant: every queue's demand is what it holds and what its waiting jobs ask for, at most its
maximum. Each gets its guarantee as far as it demands it; what is left goes to those who demand more, in proportion to
their weights, until they have what they demand. In a tree this is done among siblings, from the top down.

The share deviation of a queue is the mean over the time in which some job of it waits of
``|held - entitled| / available``. It measures the outcome and not the intention: room that a large gang cannot use
because it is scattered counts as well.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from paddleflow.domain.ids import QueueName
from paddleflow.domain.queues import Queue


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What one of several siblings may have."""

    demand: float
    least: float = 0.0
    weight: float = 1.0


def divide(amount: float, claims: Sequence[Claim]) -> list[float]:
    """Guarantees first, then the rest by weight; nobody gets more than it demands, nothing demanded is left over."""
    given = [min(claim.demand, claim.least) for claim in claims]
    rest = amount - sum(given)
    if rest <= 0:
        total = sum(given)
        return [part * amount / total if total else 0.0 for part in given]
    hungry = [index for index, claim in enumerate(claims) if claim.demand > given[index]]
    while hungry and rest > 1e-9:
        weight = sum(claims[index].weight for index in hungry)
        level = min(rest / weight, *((claims[index].demand - given[index]) / claims[index].weight for index in hungry))
        for index in hungry:
            given[index] += level * claims[index].weight
        rest -= level * weight
        hungry = [index for index in hungry if claims[index].demand - given[index] > 1e-9]
    return given


@dataclass(slots=True)
class _Branch:
    """One queue in the tree; the sums are of itself and everything below it."""

    queue: Queue | None
    least: float
    most: float
    children: list[_Branch] = field(default_factory=list)
    own: float = 0.0
    demand: float = 0.0
    entitled: float = 0.0

    def gather(self) -> float:
        self.demand = min(self.most, self.own + sum(child.gather() for child in self.children))
        return self.demand

    def spread(self, amount: float) -> None:
        self.entitled = amount
        if not self.children:
            return
        # A queue with children may have jobs of its own; they are one more child without a guarantee.
        claims = [Claim(demand=child.demand, least=child.least, weight=child.weight) for child in self.children]
        parts = divide(amount, [*claims, Claim(demand=self.own)])
        for child, part in zip(self.children, parts, strict=False):
            child.spread(part)
        self.entitled = parts[-1]

    @property
    def weight(self) -> float:
        return 1.0 if self.queue is None else float(self.queue.weight)


class ShareMeter:
    """Follows the queues of one replay."""

    def __init__(self, queues: Sequence[Queue], measured: str, available: float) -> None:
        self._available = available
        self._branches: dict[QueueName, _Branch] = {
            queue.name: _Branch(
                queue,
                float(queue.min_resources.get(measured)),
                float(queue.max_resources.amounts.get(measured, math.inf)) if not queue.is_unlimited else math.inf,
            )
            for queue in queues
        }
        self._root = _Branch(None, 0.0, available)
        for queue in queues:
            above = self._branches.get(queue.parent) if queue.parent is not None else None
            (above or self._root).children.append(self._branches[queue.name])
        self._apart: dict[QueueName, float] = {}
        self._weighted = dict.fromkeys(self._branches, 0.0)
        self._time = dict.fromkeys(self._branches, 0.0)

    def look(self, held: Mapping[QueueName, int], waiting: Mapping[QueueName, int]) -> None:
        """From now on queues hold and wait for so much of the measured resource."""
        backlogged = [name for name, units in waiting.items() if units > 0]
        self._apart = {}
        if not backlogged:
            return
        for name, branch in self._branches.items():
            branch.own = held[name] + waiting[name]
        self._root.gather()
        self._root.spread(min(self._available, self._root.demand))
        for name in backlogged:
            self._apart[name] = abs(held[name] - self._branches[name].entitled) / self._available

    def pass_time(self, seconds: float) -> None:
        """It stays as it was at the last look for so long."""
        for name, apart in self._apart.items():
            self._weighted[name] += apart * seconds
            self._time[name] += seconds

    def deviation(self) -> dict[QueueName, float]:
        """Of each queue that ever had work waiting."""
        return {name: self._weighted[name] / time for name, time in self._time.items() if time > 0}

    def mean_deviation(self) -> float:
        """Over queues, each weighed by the time it had work waiting."""
        total = sum(self._time.values())
        return sum(self._weighted.values()) / total if total else 0.0
