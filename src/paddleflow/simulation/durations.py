"""How long jobs run, learnt from those that have ended: quantiles of the time that remains to one that still runs.

Jobs of the same queue and about the same size resemble each other; where too few of them are known, those of the same
size in all queues are taken, then all jobs. Only the recent past counts. The model is empirical: it repeats what it has
seen, and says of a job that outlives everything known that it will run as long again as it already has, which is
what heavy tails do.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Iterator

from paddleflow.domain.ids import QueueName

_KEPT = 1_000
"""Of each group of jobs, the last so many."""
_ENOUGH = 20
"""Fewer known jobs than this say too little."""
_PRIOR_S = 600.0
"""How long a job of which nothing at all is known has run at least, for the rule of heavy tails."""

_Key = tuple[QueueName | None, int | None]


class _Seen:
    """Run times of one group, in rising order, the oldest forgotten."""

    __slots__ = ("_by_age", "ordered")

    def __init__(self) -> None:
        self.ordered: list[float] = []
        self._by_age: deque[float] = deque()

    def add(self, duration_s: float) -> None:
        insort(self.ordered, duration_s)
        self._by_age.append(duration_s)
        if len(self._by_age) > _KEPT:
            del self.ordered[bisect_left(self.ordered, self._by_age.popleft())]


class Durations:
    def __init__(self) -> None:
        self._seen: dict[_Key, _Seen] = {}

    def learn(self, queue: QueueName, gpus: int, duration_s: float) -> None:
        for key in _keys(queue, gpus):
            self._seen.setdefault(key, _Seen()).add(duration_s)

    def remaining(self, queue: QueueName, gpus: int, elapsed_s: float, quantile: float) -> float:
        """How much longer a job runs that has run so long: in that part of all cases no longer than this."""
        for key in _keys(queue, gpus):
            seen = self._seen.get(key)
            if seen is None:
                continue
            first = bisect_right(seen.ordered, elapsed_s)
            count = len(seen.ordered) - first
            if count >= _ENOUGH:
                return seen.ordered[first + min(count - 1, int(quantile * count))] - elapsed_s
        return max(elapsed_s, _PRIOR_S) * (1.0 / max(1e-6, 1.0 - quantile) - 1.0)


def _keys(queue: QueueName, gpus: int) -> Iterator[_Key]:
    """The groups a job belongs to, the closest first. Sizes are grouped by powers of two."""
    size = gpus.bit_length()
    yield (queue, size)
    yield (None, size)
    yield (None, None)
