"""The scheduler itself as a policy of the loop: its own ledger, pace and ``decide``, as the platform uses them."""

from __future__ import annotations

from paddleflow.domain.ids import JobId
from paddleflow.scheduling.decide import DEFAULT_RULES, Rules, decide
from paddleflow.scheduling.decisions import Decisions
from paddleflow.scheduling.ledger import Ledger
from paddleflow.scheduling.pace import Pace
from paddleflow.simulation.cluster import Capacity
from paddleflow.simulation.workload import Submission


class OwnScheduler:
    """What the platform would do."""

    name = "paddleflow"

    def __init__(self, ledger: Ledger, rules: Rules = DEFAULT_RULES) -> None:
        self.ledger = ledger
        self._rules = rules
        self._pace = Pace()

    @classmethod
    def on(cls, capacity: Capacity) -> OwnScheduler:
        ledger = Ledger()
        ledger.set_capacity(capacity.queues, capacity.nodes)
        return cls(ledger)

    def submit(self, submission: Submission, now: float) -> None:
        self.ledger.wait(submission.entry)
        self._pace.submitted(submission.entry)

    def end(self, job_id: JobId) -> None:
        self.ledger.drop(job_id)
        self._pace.changed()

    def requeue(self, submission: Submission, now: float) -> None:
        self.ledger.wait(submission.entry)
        self._pace.changed()

    def release(self, job_id: JobId) -> None:
        self.ledger.release_leaving(job_id)
        self._pace.changed()

    def decide(self, now: float) -> Decisions:
        if not self._pace.is_due(now):
            return Decisions(wake_at=self._pace.wake_at)
        decisions = decide(self.ledger, now, self._rules)
        self.ledger.apply(decisions, now)
        self._pace.decided(decisions)
        return decisions
