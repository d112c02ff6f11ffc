"""The cluster a replay runs on: nodes, queues and what a disturbance costs, from a plain mapping or a few numbers.

The mapping is what a YAML or JSON file holds::

    nodes:
      - {count: 250, gpus: 8, cpus: 64, memory: 512Gi, labels: {kind: a100}}
    queues:
      - {name: research, min: {gpus: 1200}, max: {gpus: 2000}, weight: 2}
      - {name: vision, parent: research, min: {gpus: 400}}
    costs: {grace_s: 30, checkpoint_s: 600, rescale_s: 30}

Everything is checked before anything is built, and an unknown word is refused: a misspelt field that is quietly
ignored makes a simulation of something else.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from paddleflow.domain.clusters import Node
from paddleflow.domain.errors import Invalid, invalid_field
from paddleflow.domain.ids import ClusterName, NodeName, QueueName
from paddleflow.domain.names import check_labels, check_queue_name
from paddleflow.domain.queues import PARENT_LABEL, TREE_ROOT, Queue, QueuePolicy
from paddleflow.domain.resources import CPU, GPU, MEMORY, NOTHING, Resources
from paddleflow.simulation.trace import TraceJob

SIMULATED = ClusterName("simulated")
EVERYBODY = QueueName("everybody")
"""The queue of those who describe none."""
_MOST_NODES = 100_000
_SPELT = {"cpus": CPU, "memory": MEMORY, "gpus": GPU}
_DAWN = datetime.fromtimestamp(0, UTC)
"""Simulated time begins at zero; queues carry dates that nobody looks at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """What it costs to disturb a running job."""

    grace_s: float = 30.0
    """From being told to go until the room is free."""
    checkpoint_s: float | None = None
    """An evicted job goes on from its last multiple of this; None: it begins again."""
    rescale_s: float = 30.0
    """An elastic job makes no progress so long after each change of size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    nodes: tuple[Node, ...]
    queues: tuple[Queue, ...]
    costs: Costs = Costs()

    @property
    def total(self) -> Resources:
        totals: dict[str, int] = {}
        for node in self.nodes:
            for name, units in node.capacity:
                totals[name] = totals.get(name, 0) + units
        return Resources(totals)


def like_nodes(gpus: int, gpus_per_node: int) -> tuple[Node, ...]:
    """So many GPUs in nodes that are alike; CPUs and memory are not counted."""
    if gpus < 1:
        raise invalid_field("gpus", f"[{gpus}] must be at least 1")
    if gpus_per_node < 1 or gpus % gpus_per_node:
        raise invalid_field("gpus-per-node", f"[{gpus_per_node}] must be at least 1 and divide the {gpus} GPUs")
    if gpus // gpus_per_node > _MOST_NODES:
        raise invalid_field("gpus", f"[{gpus}] makes more than {_MOST_NODES} nodes")
    return tuple(_node(index, Resources({GPU: gpus_per_node}), {}) for index in range(gpus // gpus_per_node))


def one_queue() -> tuple[Queue, ...]:
    """Everybody in one line, without a limit."""
    return (_queue(EVERYBODY),)


def tenant_queues(jobs: Sequence[TraceJob], nodes: Iterable[Node]) -> tuple[Queue, ...]:
    """One elastic queue for each tenant of the trace, guaranteed half of its share of the GPU time that all of them
    demand. The rest is shared evenly among those who have work."""
    total = sum(node.capacity.gpus for node in nodes)
    demand: dict[str, float] = {}
    for job in jobs:
        if not job.queue:
            raise Invalid(
                f"row {job.row} of the trace names no tenant; give every row one, or replay without tenant queues",
                details={"row": job.row},
            )
        demand[job.queue] = demand.get(job.queue, 0.0) + job.duration_s * job.gpus * (job.tasks or 1)
    whole = sum(demand.values())
    shares = {name: total * part / whole if whole else 0.0 for name, part in sorted(demand.items())}
    return tuple(
        _queue(QueueName(name), least=Resources({GPU: math.floor(share / 2)}), most=Resources({GPU: total}))
        for name, share in shares.items()
    )


def parse_capacity(description: object) -> Capacity:
    """A described cluster; queues and costs may be left out."""
    fields = _mapping("the description", description, {"nodes", "queues", "costs"})
    nodes: list[Node] = []
    for at, item in _items("nodes", fields.get("nodes")):
        nodes += _parse_nodes(at, item, len(nodes))
    if not nodes:
        raise invalid_field("nodes", "there is none; describe at least one")
    queues = [_parse_queue(at, item) for at, item in _items("queues", fields.get("queues"))]
    _check_tree(queues)
    return Capacity(nodes=tuple(nodes), queues=tuple(queues) or one_queue(), costs=_parse_costs(fields.get("costs")))


def _parse_nodes(at: str, item: object, already: int) -> list[Node]:
    fields = _mapping(at, item, {"count", "labels", *_SPELT})
    count = _whole(f"{at}.count", fields.get("count", 1), least=1)
    if already + count > _MOST_NODES:
        raise invalid_field(f"{at}.count", f"more than {_MOST_NODES} nodes are described")
    capacity = _amounts(at, {name: fields[name] for name in _SPELT if name in fields})
    if capacity.is_zero:
        raise invalid_field(at, "the node has nothing; give gpus, cpus or memory")
    labels = _mapping(f"{at}.labels", fields.get("labels", {}), None)
    spelt = check_labels(
        f"{at}.labels", {key: str(value) for key, value in labels.items()}, value_limit=256, code="InvalidArguments"
    )
    return [_node(already + index, capacity, spelt) for index in range(count)]


def _parse_queue(at: str, item: object) -> Queue:
    fields = _mapping(at, item, {"name", "min", "max", "weight", "parent", "policies"})
    if not isinstance(fields.get("name"), str):
        raise invalid_field(f"{at}.name", "a queue needs a name")
    name = QueueName(check_queue_name(str(fields["name"])))
    parent = fields.get("parent", "")
    if not isinstance(parent, str):
        raise invalid_field(f"{at}.parent", "it must be the name of another queue")
    policies = tuple(map(str, _list(f"{at}.policies", fields.get("policies"))))
    unknown = [policy for policy in policies if policy not in set(QueuePolicy)]
    if unknown:
        raise invalid_field(f"{at}.policies", f"[{unknown[0][:40]}] is not one of {', '.join(QueuePolicy)}")
    queue = _queue(
        name,
        least=_amounts(f"{at}.min", _mapping(f"{at}.min", fields.get("min", {}), set(_SPELT))),
        most=_amounts(f"{at}.max", _mapping(f"{at}.max", fields.get("max", {}), set(_SPELT))),
        parent=parent,
    )
    over = queue.over_maximum(queue.min_resources)
    if over is not None:
        raise invalid_field(f"{at}.min", f"of {over} it is more than the queue's max")
    return replace(queue, weight=_whole(f"{at}.weight", fields.get("weight", 1), least=1), policies=policies)


def _check_tree(queues: Sequence[Queue]) -> None:
    """Names differ, parents exist, nobody is above itself, children stay within the limits of their parent."""
    by_name: dict[QueueName, Queue] = {}
    for queue in queues:
        if queue.name in by_name:
            raise invalid_field("queues", f"[{queue.name}] is there twice")
        by_name[queue.name] = queue
    promised: dict[QueueName, Resources] = {}
    for queue in queues:
        seen = {queue.name}
        above = queue.parent
        while above is not None and above in by_name:
            if above in seen:
                raise invalid_field("queues", f"[{queue.name}] has itself above it; its parents go round in a circle")
            seen.add(above)
            above = by_name[above].parent
        if above not in (None, TREE_ROOT):
            raise invalid_field("queues", f"the parent [{above}] of [{queue.name}] is not described")
        parent = by_name.get(queue.parent) if queue.parent is not None else None
        if parent is not None:
            over = parent.over_maximum(queue.max_resources)
            if over is not None:
                raise invalid_field("queues", f"the max of [{queue.name}] is over that of [{parent.name}] in {over}")
            promised[parent.name] = promised.get(parent.name, NOTHING) + queue.min_resources
    for name, total in promised.items():
        over = next((one for one, units in total if units > by_name[name].min_resources.get(one)), None)
        if over is not None:
            raise invalid_field("queues", f"the children of [{name}] are promised more {over} than its own min")


def _parse_costs(item: object) -> Costs:
    fields = _mapping("costs", item if item is not None else {}, {"grace_s", "checkpoint_s", "rescale_s"})
    plain = Costs()
    checkpoint = fields.get("checkpoint_s")
    return Costs(
        grace_s=_seconds("costs.grace_s", fields.get("grace_s", plain.grace_s)),
        checkpoint_s=None if not checkpoint else _seconds("costs.checkpoint_s", checkpoint),
        rescale_s=_seconds("costs.rescale_s", fields.get("rescale_s", plain.rescale_s)),
    )


def _node(index: int, capacity: Resources, labels: Mapping[str, str]) -> Node:
    return Node(name=NodeName(f"node-{index + 1:05}"), cluster=SIMULATED, capacity=capacity, labels=labels)


def _queue(name: QueueName, *, least: Resources = NOTHING, most: Resources = NOTHING, parent: str = "") -> Queue:
    return Queue(
        id=f"queue-{name}",
        name=name,
        namespace="simulated",
        cluster=SIMULATED,
        min_resources=least,
        max_resources=most,
        location={PARENT_LABEL: parent} if parent else {},
        created_at=_DAWN,
        updated_at=_DAWN,
    )


def _mapping(at: str, item: object, known: set[str] | None) -> dict[str, object]:
    if not isinstance(item, Mapping):
        raise invalid_field(at, "it must be a mapping of names to values")
    fields = {str(key): value for key, value in item.items()}
    unknown = sorted(fields.keys() - known) if known is not None else []
    if unknown:
        raise invalid_field(
            f"{at}.{unknown[0][:40]}", f"there is no such field; known are {', '.join(sorted(known or ()))}"
        )
    return fields


def _list(at: str, item: object) -> list[object]:
    if item is None:
        return []
    if not isinstance(item, list | tuple):
        raise invalid_field(at, "it must be a list")
    return list(item)


def _items(at: str, item: object) -> list[tuple[str, object]]:
    return [(f"{at}[{index}]", value) for index, value in enumerate(_list(at, item))]


def _whole(at: str, item: object, *, least: int) -> int:
    if isinstance(item, bool) or not isinstance(item, int) or item < least:
        raise invalid_field(at, f"[{str(item)[:40]}] must be a whole number of at least {least}")
    return item


def _seconds(at: str, item: object) -> float:
    if isinstance(item, bool) or not isinstance(item, int | float) or not math.isfinite(item) or item < 0:
        raise invalid_field(at, f"[{str(item)[:40]}] must be a number of seconds of at least 0")
    return float(item)


def _amounts(at: str, fields: Mapping[str, object]) -> Resources:
    spelt: dict[str, str] = {}
    for name, value in fields.items():
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise invalid_field(f"{at}.{name}", "it must be an amount such as 8, 500m or 64Gi")
        spelt[_SPELT[name]] = str(value)
    try:
        return Resources.parse(spelt)
    except Invalid as error:
        raise invalid_field(at, error.message) from error
