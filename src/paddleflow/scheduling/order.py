"""Who is considered next: the queue with the best right, and in it the most urgent job, then the first come.

A queue below its guarantee goes before all that are not, the emptiest first; of the rest, the one that has had the
least beyond its guarantee by weight. In a tree the comparison is made at every level on the way down, so departments
share first and their teams among themselves after. Between equals urgency counts, then who came first. A job that has
stood first for too long goes before all but those guarantees: who only borrows would be sent away again for them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from paddleflow.domain.ids import JobId
from paddleflow.scheduling.entries import Waiting
from paddleflow.scheduling.quota import Quota

Key = tuple[int, float, int, int]


class Line:
    """The waiting jobs of one queue, and how far they were looked at."""

    __slots__ = ("failures", "jobs", "position", "quota")

    def __init__(self, quota: Quota, jobs: Sequence[Waiting]) -> None:
        self.quota = quota
        self.jobs = jobs
        self.position = 0
        self.failures = 0

    @property
    def head(self) -> Waiting | None:
        return self.jobs[self.position] if self.position < len(self.jobs) else None


_Found = tuple[Key, Line, Waiting]


class Order:
    def __init__(self, lines: Iterable[Line], out_of_turn: Collection[JobId]) -> None:
        self._out_of_turn = out_of_turn
        self._lines = {line.quota: line for line in lines}
        tops: dict[Quota, None] = {}
        self._active: dict[Quota, list[Quota]] = {}
        """Of every quota, the children under which somebody waits."""
        for quota in self._lines:
            for level, above in zip(quota.path, quota.path[1:], strict=False):
                children = self._active.setdefault(above, [])
                if level not in children:
                    children.append(level)
            tops[quota.path[-1]] = None
        self._tops = list(tops)
        self._best: dict[Quota, _Found | None] = {}

    def next_line(self) -> Line | None:
        """The line whose head is considered next; None when all have been."""
        best = self._best
        found: _Found | None = None
        for top in self._tops:
            candidate = best[top] if top in best else self._find(top)
            if candidate is not None and (found is None or candidate[0] < found[0]):
                found = candidate
        return None if found is None else found[1]

    def changed(self, quota: Quota) -> None:
        """Something was used, freed or looked at in this queue."""
        for level in quota.path:
            self._best.pop(level, None)

    def _find(self, quota: Quota) -> _Found | None:
        found: _Found | None = None
        line = self._lines.get(quota)
        if line is not None and (head := line.head) is not None:
            found = (self._key(quota, head), line, head)
        for child in self._active.get(quota, ()):
            below = self._best[child] if child in self._best else self._find(child)
            if below is not None and (found is None or below[0] < found[0]):
                found = below
        if found is not None:
            found = (self._key(quota, found[2]), found[1], found[2])
        self._best[quota] = found
        return found

    def _key(self, quota: Quota, job: Waiting) -> Key:
        if quota.is_within_minimum(job.request.amounts):
            return (0, quota.fulfilment(), -job.priority, job.seq)
        share = -1.0 if job.job_id in self._out_of_turn else quota.share()
        return (1, share, -job.priority, job.seq)
