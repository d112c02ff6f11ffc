"""Which nodes a gang goes to: all of its tasks or none.

Tasks that are alike are counted into nodes, not searched for one by one, so a gang costs as much as there are nodes.
Packing puts a gang on as few nodes as it can, and what is left over on the node it fits most tightly, so that large
jobs find whole nodes later; nodes that have the job's data at hand go first. Spreading is the opposite: the emptiest
node first, one task at a time. GPUs are given by index, lowest free first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heapreplace

from paddleflow.domain.ids import NodeName
from paddleflow.domain.jobs import Spot
from paddleflow.domain.queues import Queue, QueuePolicy
from paddleflow.domain.resources import CPU, GPU
from paddleflow.scheduling.entries import TaskGroup
from paddleflow.scheduling.rooms import NodeRoom, Rooms


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortage:
    """What stopped a placement: of which tasks how many fit, and at the nearest node what was short."""

    group: TaskGroup
    fitting: int
    nodes: int
    """How many nodes were looked at."""
    resource: str = ""
    asked: int = 0
    most_free: int = 0
    node: NodeName | None = None

    @property
    def role(self) -> str:
        return self.group.role

    @property
    def wanted(self) -> int:
        return self.group.count


def place(
    groups: Sequence[TaskGroup], queue: Queue, rooms: Rooms, prefers: Mapping[NodeName, float]
) -> tuple[Spot, ...] | Shortage:
    """Take room for every task, or take nothing and say what was short.

    Like tasks are counted, so for one group this finds room whenever there is some. Of several groups the one that
    found none is tried first the next time, until each has had its turn; only what fits in some such order is found.
    """
    mark = rooms.mark()
    # The largest first: what is small still fits between them.
    order = sorted(groups, key=lambda group: (-group.each.gpus, -group.each.cpu_milli))
    first_short: Shortage | None = None
    for _ in order:
        found = place_some(order, queue, rooms, prefers)
        if not isinstance(found, Shortage):
            return found
        rooms.rollback(mark)
        if first_short is None:
            first_short = found
        if found.group is order[0]:
            break
        order = [found.group, *(group for group in order if group is not found.group)]
    assert first_short is not None
    return first_short


def place_some(
    groups: Sequence[TaskGroup], queue: Queue, rooms: Rooms, prefers: Mapping[NodeName, float]
) -> tuple[Spot, ...] | Shortage:
    """Take room for one group after the other; those before the one that is short keep theirs."""
    spots: list[Spot] = []
    fill = _spread if QueuePolicy.SPREAD in queue.policies else _pack
    for group in groups:
        chosen = fill(group, rooms.pool(queue, group.selector), prefers)
        if isinstance(chosen, Shortage):
            return chosen
        index = group.first
        amounts, gpus_each = group.each.amounts, group.each.gpus
        for room, count in chosen:
            for _ in range(count):
                gpus = room.idle_gpus(gpus_each) if gpus_each else ()
                rooms.take(room.name, amounts, gpus)
                spots.append(Spot(role=group.role, index=index, node=room.name, gpus=gpus))
                index += 1
    spots.sort(key=lambda spot: (spot.role, spot.index))
    return tuple(spots)


_Chosen = list[tuple[NodeRoom, int]]


def _pack(group: TaskGroup, pool: Sequence[NodeRoom], prefers: Mapping[NodeName, float]) -> _Chosen | Shortage:
    each, wanted = group.each.amounts, group.count
    fitting = [(room, count) for room in pool if (count := room.count_fitting(each, wanted))]
    if sum(count for _, count in fitting) < wanted:
        return _shortage(group, pool, sum(count for _, count in fitting))
    if wanted == 1:
        return [min(fitting, key=lambda found: _tightness(found[0], prefers))]
    fitting.sort(key=lambda found: (-prefers.get(found[0].name, 0.0), -found[1], _tightness(found[0], prefers)))
    chosen: _Chosen = []
    for position, (room, count) in enumerate(fitting):
        if count >= wanted:
            rest = [found for found in fitting[position:] if found[1] >= wanted]
            chosen.append((min(rest, key=lambda found: _tightness(found[0], prefers))[0], wanted))
            break
        chosen.append((room, count))
        wanted -= count
        if not wanted:
            break
    return chosen


def _tightness(room: NodeRoom, prefers: Mapping[NodeName, float]) -> tuple[float, int, int, str]:
    free = room.free
    return (-prefers.get(room.name, 0.0) if prefers else 0.0, free.get(GPU, 0), free.get(CPU, 0), room.name)


def _spread(group: TaskGroup, pool: Sequence[NodeRoom], prefers: Mapping[NodeName, float]) -> _Chosen | Shortage:
    each, wanted = group.each.amounts, group.count
    fitting = [(room, count) for room in pool if (count := room.count_fitting(each, wanted))]
    if sum(count for _, count in fitting) < wanted:
        return _shortage(group, pool, sum(count for _, count in fitting))

    def emptiness(room: NodeRoom, taken: int) -> tuple[float, float, float]:
        left_gpus = room.free.get(GPU, 0) - taken * group.each.gpus
        left_cpu = room.free.get(CPU, 0) - taken * group.each.cpu_milli
        return (-prefers.get(room.name, 0.0), -left_gpus / (room.capacity.gpus or 1), -left_cpu)

    heap = [(emptiness(room, 0), room.name, room, 0, count) for room, count in fitting]
    heapify(heap)
    given: dict[NodeName, tuple[NodeRoom, int]] = {}
    full = (float("inf"),) * 3
    for _ in range(wanted):
        _, name, room, taken, count = heap[0]
        given[name] = (room, taken + 1)
        key = emptiness(room, taken + 1) if taken + 1 < count else full
        heapreplace(heap, (key, name, room, taken + 1, count))
    return list(given.values())


def _shortage(group: TaskGroup, pool: Sequence[NodeRoom], fitting: int) -> Shortage:
    """Told from the node that comes nearest: the one short of the fewest resources, and of those the freest."""
    if not pool:
        return Shortage(group=group, fitting=fitting, nodes=0)
    each = group.each.amounts

    def distance(room: NodeRoom) -> tuple[int, int, int, str]:
        short = sum(units > room.free.get(name, 0) for name, units in each.items())
        return (short or len(each), -room.free.get(GPU, 0), -room.free.get(CPU, 0), room.name)

    nearest = min(pool, key=distance)
    lacking = next((name for name, units in each.items() if units > max(0, nearest.free.get(name, 0))), "")
    return Shortage(
        group=group,
        fitting=fitting,
        nodes=len(pool),
        resource=lacking,
        asked=each.get(lacking, 0),
        most_free=max(0, nearest.free.get(lacking, 0)),
        node=nearest.name,
    )
