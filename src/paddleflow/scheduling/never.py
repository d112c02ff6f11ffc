"""What would wait for ever is refused at the door, with the limit it runs into."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from paddleflow.domain.clusters import Node, NodeStatus
from paddleflow.domain.errors import NeverFits
from paddleflow.domain.queues import Queue
from paddleflow.domain.resources import format_units
from paddleflow.scheduling.entries import Waiting
from paddleflow.scheduling.placement import Shortage, place
from paddleflow.scheduling.rooms import Rooms


def check_can_ever_fit(job: Waiting, queue: Queue, quotas: Sequence[Queue], nodes: Sequence[Node]) -> None:
    """Refuse a request that would wait for ever: over a maximum on the way up, or too large for the cluster when idle.

    A cluster that has not told of any node yet refuses nothing.
    """
    for level in _levels(queue, quotas):
        over = level.over_maximum(job.request)
        if over is not None:
            asked, most = format_units(over, job.request.get(over)), format_units(over, level.max_resources.get(over))
            raise NeverFits(
                f"the flavour[{over}: {asked}] is larger than queue's [{over}: {most}]"
                + ("" if level is queue else f" (quota {level.name}, above queue {queue.name})"),
                details={"resource": over, "asked": asked, "maximum": most, "queue": level.name},
            )
    # A node that is away today may be back tomorrow: "never" is judged on all of them.
    idle = [replace(node, status=NodeStatus.READY) for node in nodes if node.cluster == job.cluster]
    if not idle:
        return
    found = place(job.groups, queue, Rooms(idle), {})
    if isinstance(found, Shortage):
        raise NeverFits(_never(job, found), details={"resource": found.resource, "node": found.node or ""})


def _levels(queue: Queue, quotas: Sequence[Queue]) -> list[Queue]:
    by_name = {each.name: each for each in quotas}
    levels = [queue]
    while (above := levels[-1].parent) is not None and above in by_name and by_name[above] not in levels:
        levels.append(by_name[above])
    return levels


def _never(job: Waiting, short: Shortage) -> str:
    if not short.nodes:
        return f"the request can never fit: no node of cluster {job.cluster} serves queue {job.queue} with such labels"
    asked, most = format_units(short.resource, short.asked), format_units(short.resource, short.most_free)
    if short.wanted == 1:
        return (
            f"the request can never fit cluster {job.cluster}: it asks for {asked} of {short.resource}, "
            f"and node {short.node}, the nearest, has {most} in all"
        )
    return (
        f"the request can never fit cluster {job.cluster}: {short.wanted} tasks ({short.role}) must start together, "
        f"and the cluster has room for {short.fitting} when idle"
    )
