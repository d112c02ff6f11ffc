"""What is free on every node, kept up to date by takes and gives that undo each other exactly.

A cycle of the scheduler tries things out on the real rooms and rolls back: ``mark`` and ``rollback`` make that cost
what was tried and not what there is. Free room may fall below zero, for a claim on room that its holder has not left
yet; nothing fits there then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter

from paddleflow.domain.clusters import Node
from paddleflow.domain.ids import ClusterName, NodeName
from paddleflow.domain.queues import Queue
from paddleflow.domain.resources import Resources

Amounts = Mapping[str, int]


class NodeRoom:
    """One node: free amounts, and for each GPU how many have it or claim it."""

    __slots__ = ("busy", "capacity", "free", "labels", "name")

    def __init__(self, node: Node) -> None:
        self.name = node.name
        self.labels = node.labels
        self.capacity = node.capacity
        self.free: dict[str, int] = dict(node.capacity.amounts)
        self.busy = [0] * node.capacity.gpus

    def count_fitting(self, each: Amounts, most: int) -> int:
        """How many tasks of this size fit, up to ``most``."""
        free = self.free
        for name, units in each.items():
            if units > 0:
                found = free.get(name, 0) // units
                if found < most:
                    if found <= 0:
                        return 0
                    most = found
        return most

    def idle_gpus(self, count: int) -> tuple[int, ...]:
        """The lowest so many that nobody has."""
        chosen: list[int] = []
        for index, users in enumerate(self.busy):
            if len(chosen) == count:
                break
            if users == 0:
                chosen.append(index)
        return tuple(chosen)


class Rooms:
    """The rooms of all clusters."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        self._rooms: dict[NodeName, NodeRoom] = {}
        self._of_cluster: dict[ClusterName, list[NodeRoom]] = {}
        self._pools: dict[tuple[object, ...], list[NodeRoom]] = {}
        self.total_free: dict[ClusterName, dict[str, int]] = {}
        self._cluster: dict[NodeName, ClusterName] = {}
        self._log: list[tuple[NodeName, Amounts, tuple[int, ...], int]] = []
        # By name, so that among equal nodes it never matters in which order they were told of.
        for node in sorted(nodes, key=attrgetter("name")):
            self._cluster[node.name] = node.cluster
            if node.schedulable:
                room = NodeRoom(node)
                self._rooms[node.name] = room
                self._of_cluster.setdefault(node.cluster, []).append(room)
                totals = self.total_free.setdefault(node.cluster, {})
                for name, units in node.capacity:
                    totals[name] = totals.get(name, 0) + units

    def find(self, name: NodeName) -> NodeRoom | None:
        return self._rooms.get(name)

    def pool(self, queue: Queue, selector: Mapping[str, str]) -> Sequence[NodeRoom]:
        """The nodes that serve this queue and carry these labels."""
        key = (queue.cluster, queue.name if queue.is_physical else "", *sorted(queue.node_labels.items()), None)
        key = (*key, *sorted(selector.items()))
        found = self._pools.get(key)
        if found is None:
            found = [
                room
                for room in self._of_cluster.get(queue.cluster, ())
                if queue.may_use(room.labels)
                and all(room.labels.get(label) == value for label, value in selector.items())
            ]
            self._pools[key] = found
        return found

    def could_fit(self, cluster: ClusterName, request: Resources) -> bool:
        """False when all the room of the cluster together is too little: the cheap answer for most."""
        totals = self.total_free.get(cluster, {})
        return all(units <= totals.get(name, 0) for name, units in request.amounts.items() if units > 0)

    def take(self, node: NodeName, amounts: Amounts, gpus: tuple[int, ...] = ()) -> None:
        self._log.append((node, amounts, gpus, 1))
        self._change(node, amounts, gpus, 1)

    def give(self, node: NodeName, amounts: Amounts, gpus: tuple[int, ...] = ()) -> None:
        self._log.append((node, amounts, gpus, -1))
        self._change(node, amounts, gpus, -1)

    def mark(self) -> int:
        return len(self._log)

    def rollback(self, mark: int) -> None:
        log = self._log
        while len(log) > mark:
            node, amounts, gpus, sign = log.pop()
            self._change(node, amounts, gpus, -sign)

    def forget_log(self) -> None:
        """What was done so far is how things are."""
        self._log.clear()

    def _change(self, node: NodeName, amounts: Amounts, gpus: tuple[int, ...], sign: int) -> None:
        room = self._rooms.get(node)
        if room is None:
            return
        free = room.free
        totals = self.total_free[self._cluster[node]]
        for name, units in amounts.items():
            before = free.get(name, 0)
            after = before - sign * units
            free[name] = after
            totals[name] = totals.get(name, 0) + (after if after > 0 else 0) - (before if before > 0 else 0)
        for index in gpus:
            if index < len(room.busy):
                room.busy[index] += sign
