"""Which nodes a gang goes to: all of its tasks or none.

Packing: of the nodes with room the one that would be left with the least goes first, so that large jobs find whole
nodes later. GPUs are given by index, lowest free first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from paddleflow.domain.clusters import Node
from paddleflow.domain.ids import ClusterName, NodeName, TaskId
from paddleflow.domain.jobs import Placement
from paddleflow.domain.resources import CPU, GPU, Resources
from paddleflow.scheduling.snapshot import Held


@dataclass(slots=True)
class NodeRoom:
    """What is free on one node; ``take`` and ``give_back`` are exact inverses."""

    name: NodeName
    cluster: ClusterName
    free: Resources
    gpus: list[int]

    def take(self, asked: Resources) -> tuple[int, ...]:
        self.free = self.free - asked
        count = asked.gpus
        taken, self.gpus = tuple(self.gpus[:count]), self.gpus[count:]
        return taken

    def give_back(self, asked: Resources, gpus: Sequence[int]) -> None:
        self.free = self.free + asked
        self.gpus = sorted([*self.gpus, *gpus])


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortage:
    """What stopped a placement: the resource, how much one task asks, the most that any node has, and which node."""

    resource: str
    asked: int
    most_free: int
    node: NodeName


def rooms_of(nodes: Iterable[Node], held: Iterable[Held] = ()) -> dict[NodeName, NodeRoom]:
    """Free room of every schedulable node."""
    rooms = {
        node.name: NodeRoom(node.name, node.cluster, node.capacity, list(range(node.capacity.gpus)))
        for node in nodes
        if node.schedulable
    }
    for part in held:
        room = rooms.get(part.node)
        if room is not None:
            room.free = room.free - part.resources
            room.gpus = [index for index in room.gpus if index not in part.gpus]
    return rooms


def place(tasks: Sequence[tuple[TaskId, Resources]], rooms: Sequence[NodeRoom]) -> tuple[Placement, ...] | Shortage:
    """Take room for every task, or take nothing and say what was short. ``rooms`` must not be empty."""
    taken: list[tuple[NodeRoom, Resources, Placement]] = []
    for task_id, asked in tasks:
        room = min(
            (room for room in rooms if asked.fits(room.free)),
            key=lambda room: (room.free.get(GPU), room.free.get(CPU), room.name),
            default=None,
        )
        if room is None:
            shortage = _shortage(asked, rooms)
            for room, resources, placement in reversed(taken):
                room.give_back(resources, placement.gpus)
            return shortage
        placement = Placement(task_id=task_id, node=room.name, gpus=room.take(asked))
        taken.append((room, asked, placement))
    return tuple(placement for _, _, placement in taken)


def _shortage(asked: Resources, rooms: Sequence[NodeRoom]) -> Shortage:
    """Told from the node that comes nearest: the one short of the fewest resources."""
    nearest = min(rooms, key=lambda room: (sum(units > room.free.get(name) for name, units in asked), room.name))
    lacking = asked.lacking_in(nearest.free)
    if lacking is None:
        raise ValueError("there is room after all")
    return Shortage(resource=lacking, asked=asked.get(lacking), most_free=nearest.free.get(lacking), node=nearest.name)
