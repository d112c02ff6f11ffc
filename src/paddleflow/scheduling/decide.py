"""One cycle: a snapshot in, decisions with reasons out.

Order is priority, then first come, over all queues. Within a queue nobody is overtaken: once a job of a queue has to
wait for room, those behind it wait too, so a large job is never starved by a stream of small ones.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import heapify, heappop, heapreplace

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
class Blocked:
    """The first job of a queue that has to wait, and why. Those behind it wait for it."""

    job: Waiting
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Decisions:
    admissions: tuple[Admission, ...] = ()
    blocked: Mapping[QueueName, Blocked] = field(default_factory=dict)

    def reason_of(self, job: Waiting) -> Reason | None:
        """Why this job waits; None when it was admitted."""
        head = self.blocked.get(job.queue)
        if head is None or job.rank < head.job.rank:
            return None
        if job.job_id == head.job.job_id:
            return head.reason
        return reasons.behind(head.job.job_id, job.queue, head.reason)


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

    def consider(self, job: Waiting) -> tuple[Placement, ...] | Reason:
        reason = self._quota(job)
        if reason is not None:
            return reason
        found = self._place(job)
        if not isinstance(found, Reason):
            self.used[job.queue] = self.used[job.queue] + job.request
        return found

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
    """Costs what is admitted and how many queues there are, not how many jobs wait behind."""
    cycle = _Cycle(snapshot)
    admissions: list[Admission] = []
    blocked: dict[QueueName, Blocked] = {}
    heads = [(line[0].rank, 0, line) for line in snapshot.waiting.values()]
    heapify(heads)
    while heads:
        _, position, line = heads[0]
        job = line[position]
        outcome = cycle.consider(job)
        if isinstance(outcome, Reason):
            blocked[job.queue] = Blocked(job=job, reason=outcome)
            heappop(heads)
            continue
        admissions.append(Admission(job_id=job.job_id, placements=outcome))
        if position + 1 < len(line):
            heapreplace(heads, (line[position + 1].rank, position + 1, line))
        else:
            heappop(heads)
    return Decisions(admissions=tuple(admissions), blocked=blocked)


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
