"""One cycle: a snapshot in, decisions with reasons out.

Order is priority, then first come, over all queues. Within a queue nobody is overtaken: once a job of a queue has to
wait for room, those behind it wait too, so a large job is never starved by a stream of small ones.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from paddleflow.domain.clusters import Node, NodeStatus
from paddleflow.domain.errors import NeverFits
from paddleflow.domain.ids import ClusterName, JobId, QueueName
from paddleflow.domain.jobs import Placement
from paddleflow.domain.queues import Queue, QueueStatus
from paddleflow.domain.resources import NOTHING, Resources, format_units
from paddleflow.scheduling import reasons
from paddleflow.scheduling.placement import NodeRoom, Shortage, place, rooms_of
from paddleflow.scheduling.reasons import Reason
from paddleflow.scheduling.snapshot import Snapshot, Waiting


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    job_id: JobId
    placements: tuple[Placement, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decisions:
    admissions: tuple[Admission, ...] = ()
    waits: Mapping[JobId, Reason] = field(default_factory=dict)


class _Cycle:
    """The room that is left while one cycle hands it out."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.queues = snapshot.queues
        self.used: dict[QueueName, Resources] = defaultdict(lambda: NOTHING)
        for job in snapshot.holding:
            self.used[job.queue] = self.used[job.queue] + job.request
        rooms = rooms_of(snapshot.nodes, (part for job in snapshot.holding for part in job.held))
        self.rooms: dict[ClusterName, list[NodeRoom]] = defaultdict(list)
        for room in rooms.values():
            self.rooms[room.cluster].append(room)
        self.blocked: dict[QueueName, Reason] = {}

    def consider(self, job: Waiting) -> tuple[Placement, ...] | Reason:
        blocked = self.blocked.get(job.queue)
        if blocked is not None:
            return blocked
        reason = self._quota(job)
        if reason is None:
            found = self._place(job)
            if not isinstance(found, Reason):
                self.used[job.queue] = self.used[job.queue] + job.request
                return found
            reason = found
        self.blocked[job.queue] = reasons.behind(job.job_id, job.queue, reason)
        return reason

    def _quota(self, job: Waiting) -> Reason | None:
        queue = self.queues.get(job.queue)
        if queue is None:
            return reasons.queue_gone(job.queue)
        if queue.status is not QueueStatus.OPEN:
            return reasons.queue_not_open(queue.name, queue.status)
        used = self.used[queue.name]
        over = queue.over_maximum(used + job.request)
        if over is None:
            return None
        return reasons.queue_at_maximum(
            queue.name, over, used.get(over), queue.max_resources.get(over), job.request.get(over)
        )

    def _place(self, job: Waiting) -> tuple[Placement, ...] | Reason:
        rooms = self.rooms.get(job.cluster)
        if not rooms:
            return reasons.no_nodes(job.cluster)
        found = place(job.tasks, rooms)
        if isinstance(found, Shortage):
            return reasons.no_room(job.cluster, found.resource, found.asked, found.most_free, found.node)
        return found


def decide(snapshot: Snapshot) -> Decisions:
    cycle = _Cycle(snapshot)
    admissions: list[Admission] = []
    waits: dict[JobId, Reason] = {}
    for job in snapshot.waiting:
        outcome = cycle.consider(job)
        if isinstance(outcome, Reason):
            waits[job.job_id] = outcome
        else:
            admissions.append(Admission(job_id=job.job_id, placements=outcome))
    return Decisions(admissions=tuple(admissions), waits=waits)


def check_can_ever_fit(job: Waiting, queue: Queue, nodes: Sequence[Node]) -> None:
    """Refuse a request that would wait for ever: over the queue's maximum, or too large for the cluster when idle.

    A cluster that has not told of any node yet refuses nothing.
    """
    over = queue.over_maximum(job.request)
    if over is not None:
        asked, most = format_units(over, job.request.get(over)), format_units(over, queue.max_resources.get(over))
        raise NeverFits(
            f"the flavour[{over}: {asked}] is larger than queue's [{over}: {most}]",
            details={"resource": over, "asked": asked, "maximum": most, "queue": queue.name},
        )
    # A node that is away today may be back tomorrow: "never" is judged on all of them.
    idle = (replace(node, status=NodeStatus.READY) for node in nodes if node.cluster == job.cluster)
    rooms = list(rooms_of(idle).values())
    if not rooms:
        return
    found = place(job.tasks, rooms)
    if isinstance(found, Shortage):
        asked, most = format_units(found.resource, found.asked), format_units(found.resource, found.most_free)
        raise NeverFits(
            f"the request can never fit cluster {job.cluster}: it asks for {asked} of {found.resource}, "
            f"and node {found.node}, the nearest, has {most} in all",
            details={"resource": found.resource, "asked": asked, "maximum": most, "node": found.node},
        )
