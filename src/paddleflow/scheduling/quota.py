"""Who may use how much: the tree of queues, what each uses, and who has the better right to room.

Every queue is a leaf; an elastic queue may have quotas above it. ``maximum`` is a wall at every level. ``minimum`` is a
guarantee: what others have borrowed of it comes back. What is left when every guarantee is met goes by weight.

Two sides compare where their paths up the tree part: the two quotas below the common ancestor, and never the leaves
alone, so a department's guarantee is not eaten by another department's team.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from paddleflow.domain.clusters import Node
from paddleflow.domain.ids import ClusterName, QueueName
from paddleflow.domain.queues import Queue

Amounts = Mapping[str, int]


class Quota:
    """One node of the tree, with what is used under it."""

    __slots__ = (
        "kept",
        "leaving",
        "maximum",
        "minimum",
        "parent",
        "path",
        "queue",
        "tree",
        "used",
        "weight",
    )

    def __init__(self, queue: Queue, tree: ClusterTree) -> None:
        self.queue = queue
        self.tree = tree
        self.parent: Quota | None = None
        self.path: tuple[Quota, ...] = (self,)
        """From this quota up to the top."""
        self.minimum: Amounts = {name: units for name, units in queue.min_resources if units > 0}
        self.maximum: Amounts = {} if queue.is_unlimited else queue.max_resources.amounts
        self.weight = max(1, queue.weight)
        self.used: dict[str, int] = {}
        """Held and claimed, by this quota and all below it."""
        self.kept: dict[str, int] = {}
        """Set aside for a job that has to wait."""
        self.leaving: dict[str, int] = {}
        """The part of it whose holders are being stopped."""

    @property
    def name(self) -> QueueName:
        return self.queue.name

    def staying(self, name: str) -> int:
        return self.used.get(name, 0) - self.leaving.get(name, 0)

    def change(self, amounts: Amounts, sign: int) -> None:
        for quota in self.path:
            used = quota.used
            for name, units in amounts.items():
                used[name] = used.get(name, 0) + sign * units

    def change_here(self, amounts: Amounts, sign: int) -> None:
        """Kept back at this level; counted against the maximum and as use by nobody."""
        for name, units in amounts.items():
            self.kept[name] = self.kept.get(name, 0) + sign * units

    def change_leaving(self, amounts: Amounts, sign: int) -> None:
        for quota in self.path:
            leaving = quota.leaving
            for name, units in amounts.items():
                leaving[name] = leaving.get(name, 0) + sign * units

    def over_maximum(self, asked: Amounts) -> tuple[Quota, str] | None:
        """The quota on the way up, and the resource, that does not allow so much more."""
        for quota in self.path:
            used, kept = quota.used, quota.kept
            for name, most in quota.maximum.items():
                more = asked.get(name, 0)
                if more > 0 and used.get(name, 0) + kept.get(name, 0) + more > most:
                    return quota, name
        return None

    def is_within_minimum(self, asked: Amounts) -> bool:
        """Whether the guarantee covers what is used here and this on top."""
        minimum = self.minimum
        if not minimum:
            return False
        covered = False
        for name in self.tree.governed:
            more = asked.get(name, 0)
            if more > 0:
                if self.staying(name) + more > minimum.get(name, 0):
                    return False
                covered = True
        return covered

    def is_over_minimum(self, wanted: Amounts) -> bool:
        """Whether more than the guarantee is used here, of something that is wanted."""
        minimum = self.minimum
        return any(
            units > 0 and self.staying(name) > minimum.get(name, 0)
            for name, units in wanted.items()
            if name in self.tree.governed
        )

    def share(self, more: Amounts | None = None) -> float:
        """What is used beyond the guarantee, as a part of the cluster and by weight: the dominant resource counts."""
        most = 0.0
        minimum = self.minimum
        for name, capacity in self.tree.capacity.items():
            if capacity > 0:
                beyond = self.staying(name) - minimum.get(name, 0)
                if more is not None:
                    beyond += more.get(name, 0)
                if beyond > 0:
                    most = max(most, beyond / capacity)
        return most / self.weight

    def fulfilment(self) -> float:
        """How much of the guarantee is used, 0 to 1."""
        return max((self.staying(name) / least for name, least in self.minimum.items()), default=1.0)

    def below(self, ancestor: Quota | None) -> Iterator[Quota]:
        """This quota and those above it, up to but without ``ancestor``."""
        for quota in self.path:
            if quota is ancestor:
                return
            yield quota


class ClusterTree:
    """What the quotas of one cluster share."""

    def __init__(self) -> None:
        self.capacity: dict[str, int] = {}
        self.governed: set[str] = set()
        """Resources of which somebody is guaranteed some. Others are taken as they come and never reclaimed for."""


class QuotaTree:
    """All queues, each with its path to the top."""

    def __init__(self, queues: Iterable[Queue], nodes: Iterable[Node]) -> None:
        self._trees: dict[ClusterName, ClusterTree] = {}
        self._quotas: dict[QueueName, Quota] = {}
        for queue in queues:
            tree = self._trees.setdefault(queue.cluster, ClusterTree())
            self._quotas[queue.name] = Quota(queue, tree)
            tree.governed |= {name for name, units in queue.min_resources if units > 0}
        for node in nodes:
            tree = self._trees.setdefault(node.cluster, ClusterTree())
            for name, units in node.capacity if node.schedulable else ():
                tree.capacity[name] = tree.capacity.get(name, 0) + units
        for quota in self._quotas.values():
            parent = self._above(quota)
            if parent is not None and not self._is_in_circle(quota):
                quota.parent = parent
        for quota in self._quotas.values():
            quota.path = tuple(_upwards(quota))

    def _above(self, quota: Quota) -> Quota | None:
        above = quota.queue.parent
        parent = None if above is None else self._quotas.get(above)
        return parent if parent is not None and parent.queue.cluster == quota.queue.cluster else None

    def _is_in_circle(self, quota: Quota) -> bool:
        """No tree that was checked has a circle. Who stands in one all the same stands alone."""
        seen: set[QueueName] = set()
        at = self._above(quota)
        while at is not None and at is not quota and at.name not in seen:
            seen.add(at.name)
            at = self._above(at)
        return at is quota

    def find(self, name: QueueName) -> Quota | None:
        return self._quotas.get(name)

    def all(self) -> Iterable[Quota]:
        return self._quotas.values()


def _upwards(quota: Quota) -> Iterator[Quota]:
    at: Quota | None = quota
    while at is not None:
        yield at
        at = at.parent


def sides(left: Quota, right: Quota) -> tuple[Quota, Quota, Quota | None] | None:
    """The two quotas that stand for these where their paths part, and the ancestor above both; None for one queue."""
    if left is right:
        return None
    others = set(right.path)
    common = next((quota for quota in left.path if quota in others), None)
    mine = list(left.below(common))
    theirs = list(right.below(common))
    if not mine or not theirs:
        return None  # one stands above the other; a parent runs no jobs of its own
    return mine[-1], theirs[-1], common


def may_reclaim(asking: Quota, asked: Amounts, holder: Quota) -> bool:
    """Only below its guarantee may a side reclaim, and only from a side that is above its own at every level."""
    parted = sides(asking, holder)
    if parted is None:
        return False
    mine, _, common = parted
    return mine.is_within_minimum(asked) and all(quota.is_over_minimum(asked) for quota in holder.below(common))


def is_entitled(asking: Quota, asked: Amounts) -> bool:
    """Whether a guarantee at any level covers it."""
    return any(quota.is_within_minimum(asked) for quota in asking.path)


def is_fairer(asking: Quota, asked: Amounts, holder: Quota, released: Amounts) -> bool:
    """Whether giving ``released`` to the asker leaves it no better off than the holder, who keeps its guarantee."""
    parted = sides(asking, holder)
    if parted is None:
        return False
    mine, theirs, common = parted
    if not all(quota.is_over_minimum(asked) or not quota.minimum for quota in holder.below(common)):
        return False
    less = {name: -units for name, units in released.items()}
    return mine.share(asked) <= theirs.share(less)
