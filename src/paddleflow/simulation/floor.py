"""The room of a cluster as the baselines see it: what is free on which node, found by how many GPUs are left there.

Deliberately apart from the scheduler's own rooms: a baseline that shared them would share their mistakes as well.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence

from paddleflow.domain.clusters import Node
from paddleflow.domain.ids import NodeName
from paddleflow.domain.jobs import Spot
from paddleflow.domain.resources import GPU, Resources
from paddleflow.simulation.workload import ROLE

Plan = list[tuple[int, int]]
"""Pairs of a node's number and how many tasks go there."""


class Floor:
    """Free room, kept by takes and gives. Tasks of a gang go to the fullest nodes that still fit them."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._names = [node.name for node in nodes]
        self._number: dict[NodeName, int] = {name: number for number, name in enumerate(self._names)}
        self.free: list[dict[str, int]] = [dict(node.capacity.amounts) for node in nodes]
        self._idle: list[list[int]] = [list(range(node.capacity.gpus)) for node in nodes]
        most = max(node.capacity.gpus for node in nodes)
        self._levels: list[list[int]] = [[] for _ in range(most + 1)]
        """Numbers of the nodes with exactly so many GPUs free, rising."""
        for number, node in enumerate(nodes):
            self._levels[node.capacity.gpus].append(number)

    def find(self, tasks: int, each: Resources, *, within: Sequence[Mapping[str, int]] | None = None) -> Plan | None:
        """Where so many tasks fit; with ``within`` they must fit into that room as well."""
        amounts = each.amounts
        plan: Plan = []
        left = tasks
        for level in self._levels[each.gpus :]:
            for number in level:
                room = fitting(self.free[number], amounts, left)
                if room and within is not None:
                    room = fitting(within[number], amounts, room)
                if room:
                    plan.append((number, room))
                    left -= room
                    if not left:
                        return plan
        return None

    def take(self, plan: Plan, each: Resources, first: int = 0) -> tuple[Spot, ...]:
        """The tasks' spots; ``first`` is the index of the first task."""
        spots: list[Spot] = []
        gpus = each.gpus
        for number, tasks in plan:
            idle = self._idle[number]
            for _ in range(tasks):
                chosen, idle = tuple(idle[:gpus]), idle[gpus:]
                spots.append(Spot(role=ROLE, index=first + len(spots), node=self._names[number], gpus=chosen))
            self._idle[number] = idle
            self._change(number, each, -tasks)
        return tuple(spots)

    def give(self, spots: Sequence[Spot], each: Resources) -> None:
        for spot in spots:
            number = self._number[spot.node]
            if spot.gpus:
                self._idle[number] = sorted([*self._idle[number], *spot.gpus])
            self._change(number, each, 1)

    def number_of(self, node: NodeName) -> int:
        return self._number[node]

    def _change(self, number: int, each: Resources, times: int) -> None:
        free = self.free[number]
        before = free.get(GPU, 0)
        for name, units in each:
            free[name] = free.get(name, 0) + units * times
        after = free.get(GPU, 0)
        if after != before:
            level = self._levels[before]
            del level[bisect_left(level, number)]
            insort(self._levels[after], number)


def fitting(free: Mapping[str, int], amounts: Mapping[str, int], most: int) -> int:
    """How many tasks of this size fit, up to ``most``."""
    for name, units in amounts.items():
        if units:
            most = min(most, free.get(name, 0) // units)
    return max(0, most)
