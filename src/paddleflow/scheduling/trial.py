"""Trying things out on the real books, and taking back exactly what was tried."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from paddleflow.domain.ids import NodeName
from paddleflow.domain.jobs import Spot
from paddleflow.scheduling.entries import Held, TaskGroup
from paddleflow.scheduling.placement import Shortage, place, place_some
from paddleflow.scheduling.quota import Quota
from paddleflow.scheduling.rooms import Amounts, Rooms

Mark = tuple[int, int]
_How = Callable[[Quota, Amounts, int], None]


class Trial:
    """Changes to rooms and quotas that can be rolled back to any mark."""

    def __init__(self, rooms: Rooms) -> None:
        self.rooms = rooms
        self._log: list[tuple[_How, Quota, Amounts, int]] = []

    def mark(self) -> Mark:
        return self.rooms.mark(), len(self._log)

    def rollback(self, mark: Mark) -> None:
        self.rooms.rollback(mark[0])
        while len(self._log) > mark[1]:
            how, quota, amounts, sign = self._log.pop()
            how(quota, amounts, -sign)

    def _do(self, how: _How, quota: Quota, amounts: Amounts, sign: int) -> None:
        self._log.append((how, quota, amounts, sign))
        how(quota, amounts, sign)

    def use(self, quota: Quota, amounts: Amounts, sign: int = 1) -> None:
        self._do(Quota.change, quota, amounts, sign)

    def keep(self, quota: Quota, amounts: Amounts, sign: int) -> None:
        """At this one level of the tree: what is kept at another is counted there."""
        self._do(Quota.change_here, quota, amounts, sign)

    def depart(self, quota: Quota, parts: Iterable[Held]) -> None:
        """These go on holding their room, but are on their way out."""
        for part in parts:
            self._do(Quota.change_leaving, quota, part.each.amounts, 1)

    def release(self, quota: Quota | None, parts: Iterable[Held]) -> None:
        """A quota that is gone limits nothing and counts nothing."""
        for part in parts:
            self.rooms.give(part.node, part.each.amounts, part.gpus)
            if quota is not None:
                self.use(quota, part.each.amounts, -1)

    def retake(self, quota: Quota | None, parts: Iterable[Held]) -> None:
        for part in parts:
            self.rooms.take(part.node, part.each.amounts, part.gpus)
            if quota is not None:
                self.use(quota, part.each.amounts, 1)

    def see_off(self, quota: Quota | None, parts: Sequence[Held]) -> None:
        """As if these, which are on their way out, had gone."""
        self.release(quota, parts)
        if quota is not None:
            for part in parts:
                self._do(Quota.change_leaving, quota, part.each.amounts, -1)

    def call_back(self, quota: Quota | None, parts: Sequence[Held]) -> None:
        self.retake(quota, parts)
        if quota is not None:
            for part in parts:
                self._do(Quota.change_leaving, quota, part.each.amounts, 1)

    def place(
        self, groups: Sequence[TaskGroup], quota: Quota, prefers: Mapping[NodeName, float]
    ) -> tuple[Spot, ...] | Shortage:
        return place(groups, quota.queue, self.rooms, prefers)

    def place_some(
        self, groups: Sequence[TaskGroup], quota: Quota, prefers: Mapping[NodeName, float]
    ) -> tuple[Spot, ...] | Shortage:
        """As far as there is room; what was taken for those before the one that is short stays taken."""
        order = sorted(groups, key=lambda group: (-group.each.gpus, -group.each.cpu_milli))
        return place_some(order, quota.queue, self.rooms, prefers)
