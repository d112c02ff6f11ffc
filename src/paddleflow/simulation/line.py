"""Jobs that wait in one line, grouped by kind: where one of a kind finds no room none of them does.

That is what keeps the baselines quick: trying ten thousand waiting jobs costs what trying their few kinds costs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from paddleflow.domain.ids import JobId
from paddleflow.simulation.workload import Submission


class Line:
    def __init__(self) -> None:
        self._kinds: dict[int, dict[JobId, Submission]] = {}

    def __bool__(self) -> bool:
        return bool(self._kinds)

    def add(self, submission: Submission) -> None:
        """At the end: jobs are added in the order they were submitted."""
        self._kinds.setdefault(submission.kind, {})[submission.entry.job_id] = submission

    def remove(self, submission: Submission) -> None:
        of_kind = self._kinds[submission.kind]
        del of_kind[submission.entry.job_id]
        if not of_kind:
            del self._kinds[submission.kind]

    def head(self, without: Collection[int] = ()) -> Submission | None:
        """The first, but for those of some kinds."""
        firsts = (next(iter(jobs.values())) for kind, jobs in self._kinds.items() if kind not in without)
        return min(firsts, key=by_seq, default=None)

    def firsts(self) -> list[Submission]:
        """One of each kind."""
        return [next(iter(jobs.values())) for jobs in self._kinds.values()]

    def of_kind(self, kind: int) -> Iterable[Submission]:
        return self._kinds[kind].values()


def by_seq(submission: Submission) -> int:
    return submission.entry.seq
