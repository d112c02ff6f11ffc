"""When a decision is worth making: after anything that frees room or changes rights, not after every arrival.

A job that arrives behind one of its kin that was just refused would be refused as well, as long as nothing was freed
since. In a busy cluster that is most arrivals.
"""

from __future__ import annotations

from collections.abc import Collection

from paddleflow.scheduling.decisions import Decisions
from paddleflow.scheduling.entries import Waiting


class Pace:
    def __init__(self) -> None:
        self._is_due = True
        self._refused: Collection[str] = frozenset()
        self.wake_at: float | None = None
        """When a decision is due though nothing happens."""

    def submitted(self, job: Waiting) -> None:
        # One that ends at a known moment may fit in where its kin does not, and one that backs off is not one of them.
        if job.kin not in self._refused or job.limit_s is not None or job.claim or job.not_before:
            self._is_due = True

    def changed(self) -> None:
        """Room was freed, or rights changed."""
        self._is_due = True

    def is_due(self, now: float) -> bool:
        return self._is_due or (self.wake_at is not None and now >= self.wake_at)

    def decided(self, decisions: Decisions) -> None:
        """These were carried out. What was started has changed who comes next, so one more look is due."""
        self._is_due = decisions.changes_anything
        self._refused = decisions.refused
        self.wake_at = decisions.wake_at
