"""Every possibility there is, tried: what the scheduler chose is held against it.

``Watched`` stands in for the search for room. It lets the real search run and then judges what it chose, on the books
as they were at that moment: whether every victim was rightly asked, whether any could have stayed, whether shrinking
would have done, and whether something was left undone that rights allow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import ClassVar
from unittest.mock import patch

from paddleflow.domain.ids import JobId
from paddleflow.domain.queues import Queue, QueuePolicy
from paddleflow.scheduling import decide as deciding
from paddleflow.scheduling.backfill import Kept
from paddleflow.scheduling.entries import Holding, TaskGroup
from paddleflow.scheduling.quota import Quota
from paddleflow.scheduling.reclaim import Plan, Reclaim, Shrink
from paddleflow.scheduling.rooms import Rooms

missed: Counter[str] = Counter()
"""How often trying everything found what the scheduler did not."""


def count_missed(what: str) -> bool:
    missed[what] += 1
    return True


def can_place(groups: Sequence[TaskGroup], queue: Queue, rooms: Rooms) -> bool:
    """Whether any distribution of the tasks over the nodes fits."""
    free = {name: dict(room.free) for name, room in rooms._rooms.items()}
    pools = [
        [
            name
            for name, room in rooms._rooms.items()
            if queue.may_use(room.labels)
            and all(room.labels.get(key) == value for key, value in group.selector.items())
        ]
        for group in groups
    ]

    def put(group: int, node: int, left: int) -> bool:
        if left == 0:
            group, node = group + 1, 0
            if group == len(groups):
                return True
            left = groups[group].count
            return put(group, 0, left)
        if node == len(pools[group]):
            return False
        each = groups[group].each.amounts
        room = free[pools[group][node]]
        most = min([left, *(room.get(name, 0) // units for name, units in each.items() if units > 0)])
        for count in range(max(0, most), -1, -1):
            _give(room, each, -count)
            found = put(group, node + 1, left - count)
            _give(room, each, count)
            if found:
                return True
        return False

    return not groups or put(0, 0, groups[0].count)


def _give(room: dict[str, int], each: Mapping[str, int], count: int) -> None:
    for name, units in each.items():
        room[name] = room.get(name, 0) + units * count


class Watched(Reclaim):
    """The search for room, judged."""

    tries_everything: ClassVar[bool] = False

    def plan(self, holding: Sequence[Holding], kept: Sequence[Kept]) -> Plan | None:
        plan = super().plan(holding, kept)
        mark = self._trial.mark()
        self._see_off_departing()
        self._respect(kept)
        if plan is not None:
            wrong = self._wrong_in(plan.evictions, plan.shrinks)
            assert not wrong, f"{self._job.job_id} {wrong}"
            self._check_minimal(plan)
        if type(self).tries_everything and not self.waits_for_departing and (plan is None or plan.evictions):
            self._sizes.clear()
            self._check_complete(plan, holding)
        self._trial.rollback(mark)
        return plan

    def _could_start(self) -> bool:
        if self._quota.over_maximum(self._asked) is not None:
            return False
        return can_place(self._job.groups, self._quota.queue, self._trial.rooms)

    def _may_miss(self, what: str) -> bool:
        """Only for a job of several roles: how like tasks fit is counted exactly."""
        return len(self._job.groups) > 1 and count_missed(what)

    def _quota_of(self, holding: Holding) -> Quota:
        quota = self._quotas.find(holding.queue)
        assert quota is not None
        return quota

    def _wrong_in(self, evictions: Sequence[Holding], shrinks: Sequence[Shrink]) -> str:
        """What is not right about these, each in its turn; those of the asker's own queue first, because what they free
        is its own again. Empty: nothing."""
        mark = self._trial.mark()
        try:
            for step in sorted(shrinks, key=lambda step: (step.quota is not self._quota, -step.smaller)):
                if not self._may_shrink(step):
                    return f"may not shrink {step.holding.job_id}"
                self._trial.release(step.quota, step.dropped)
            for victim in sorted(evictions, key=lambda each: each.queue != self._job.queue):
                quota = self._quota_of(victim)
                if quota is self._quota:
                    if QueuePolicy.PREEMPT not in quota.queue.policies or victim.priority >= self._job.priority:
                        return f"may not preempt {victim.job_id}"
                elif not may_take_back(self._quota, self._asked, quota):
                    return f"has no right to {victim.job_id}"
                self._trial.release(quota, victim.held)
            return ""
        finally:
            self._trial.rollback(mark)

    def _check_minimal(self, plan: Plan) -> None:
        """Without any one of them the job does not fit, or has no right to the others."""
        mark = self._trial.mark()
        for victim in plan.evictions:
            self._trial.release(self._quota_of(victim), victim.held)
        for step in plan.shrinks:
            self._trial.release(step.quota, step.dropped)
        assert self._could_start(), f"{self._job.job_id} does not fit where room is freed for it"
        for victim in plan.evictions:
            self._trial.retake(self._quota_of(victim), victim.held)
            if self._could_start():
                rest = [each for each in plan.evictions if each is not victim]
                right = not self._wrong_in(rest, plan.shrinks)
                assert not right or self._may_miss("victims"), f"{victim.job_id} goes for nothing"
            self._trial.release(self._quota_of(victim), victim.held)
        for last in last_steps(plan):
            self._trial.retake(last.quota, last.dropped)
            if self._could_start():
                left = [step for step in plan.shrinks if step is not last]
                right = not self._wrong_in(plan.evictions, left)
                assert not right or self._may_miss("shrinks"), f"{last.holding.job_id} shrinks for nothing"
            self._trial.release(last.quota, last.dropped)
        self._trial.rollback(mark)

    def _check_complete(self, plan: Plan | None, holding: Sequence[Holding]) -> None:
        """Nobody goes where shrinking would do, and nothing is left undone that rights allow."""
        shrinkable = [each for each in holding if each.elastic is not None and each.is_resizable and not each.parting]
        if len(shrinkable) > 4 or len(holding) > 7:
            return
        if self._can_shrink_enough(shrinkable, set()):
            assert plan is None or self._may_miss("shrinking would do"), "somebody goes where shrinking would do"
            assert plan is not None or count_missed("shrinking not found")
        elif plan is None and self._can_evict_enough([each for each in holding if self._may_evict(each)]):
            count_missed("evictions not found")

    def _can_shrink_enough(self, left: Sequence[Holding], seen: set[tuple[int, ...]]) -> bool:
        key = tuple(self._sizes.get(each.job_id, each.size) for each in left)
        if key in seen:
            return False
        seen.add(key)
        if self._could_start():
            return True
        for each in left:
            size = self._sizes.get(each.job_id, each.size)
            step = self._step_down(each, size)
            if step is None or not self._may_shrink(step):
                continue
            mark = self._trial.mark()
            self._trial.release(step.quota, step.dropped)
            self._sizes[each.job_id] = step.smaller
            found = self._can_shrink_enough(left, seen)
            self._sizes[each.job_id] = size
            self._trial.rollback(mark)
            if found:
                return True
        return False

    def _can_evict_enough(self, left: list[Holding]) -> bool:
        if self._could_start():
            return True
        for at, each in enumerate(left):
            if not self._may_evict(each):
                continue
            mark = self._trial.mark()
            self._trial.release(self._quota_of(each), each.held)
            # Only those to whom there is a right from the start. A victim of the asker's own queue can give it
            # a right to others; that two should go where neither alone could be asked for is not searched for.
            found = self._can_evict_enough([*left[:at], *left[at + 1 :]])
            self._trial.rollback(mark)
            if found:
                return True
        return False


def last_steps(plan: Plan) -> list[Shrink]:
    """Of every job that shrinks, its last step down."""
    found: dict[JobId, Shrink] = {}
    for step in sorted(plan.shrinks, key=lambda step: -step.smaller):
        found[step.holding.job_id] = step
    return list(found.values())


def may_take_back(asking: Quota, asked: Mapping[str, int], holder: Quota) -> bool:
    """The rule in plain words: the asker's side stays within its guarantee, the holder's is above its own all the way
    up to where the two meet."""
    common = next((quota for quota in asking.path if quota in holder.path), None)
    mine = [quota for quota in asking.path if common is None or quota not in common.path]
    theirs = [quota for quota in holder.path if common is None or quota not in common.path]
    wanted = [name for name, units in asked.items() if units > 0 and name in asking.tree.governed]
    if not mine or not theirs or not wanted:
        return False

    def stays(quota: Quota, name: str) -> int:
        return quota.used.get(name, 0) - quota.leaving.get(name, 0)

    within = all(stays(mine[-1], name) + asked[name] <= mine[-1].queue.min_resources.get(name) for name in wanted)
    above = all(any(stays(quota, name) > quota.queue.min_resources.get(name) for name in wanted) for quota in theirs)
    return within and above


@contextmanager
def watched(*, tries_everything: bool) -> Iterator[None]:
    """Every search for room in here is judged."""
    Watched.tries_everything = tries_everything
    with patch.object(deciding, "Reclaim", Watched):
        yield
