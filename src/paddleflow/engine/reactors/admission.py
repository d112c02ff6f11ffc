"""Admission: feed → ledger → decide → AdmitJob."""

from __future__ import annotations

from collections.abc import Sequence

from paddleflow.domain.commands import AdmitJob
from paddleflow.domain.events import Event, EventKind
from paddleflow.domain.ids import JobId
from paddleflow.domain.jobs import ACTIVE
from paddleflow.domain.users import PLATFORM
from paddleflow.engine.intake import Intake
from paddleflow.ports.store import Store
from paddleflow.scheduling.decide import decide
from paddleflow.scheduling.snapshot import Ledger

_CHANGED = frozenset({EventKind.JOB_SUBMITTED, EventKind.JOB_UPDATED})
_GONE = frozenset({EventKind.JOB_FINISHED, EventKind.JOB_DELETED})
"""An end is final, so these need no second look. A job that starts or is being stopped holds what it held, and what is
admitted is admitted here."""
_CAPACITY_EVENTS = frozenset(
    {
        EventKind.QUEUE_CREATED,
        EventKind.QUEUE_UPDATED,
        EventKind.QUEUE_DELETED,
        EventKind.CLUSTER_UPDATED,
        EventKind.CLUSTER_DELETED,
        EventKind.NODES_REPORTED,
    }
)
_FREES_OR_ASKS = _CAPACITY_EVENTS | {
    EventKind.JOB_SUBMITTED,
    EventKind.JOB_FINISHED,
    EventKind.JOB_UPDATED,
}
"""What can make a decision come out differently; a job that merely started cannot."""


class Admission:
    name = "admission"
    kinds = _CHANGED | _GONE | _CAPACITY_EVENTS

    def __init__(self, *, store: Store, intake: Intake, host_note: str) -> None:
        self._store = store
        self._intake = intake
        self._host_note = host_note
        """Said in the message of every admitted job: what its runtime does with ``image``."""
        self._ledger = Ledger()

    def resync(self) -> None:
        self._ledger = load_ledger(self._store)
        self._admit()

    def react(self, events: Sequence[Event]) -> None:
        gone = {JobId(event.subject) for event in events if event.kind in _GONE}
        changed = {JobId(event.subject) for event in events if event.kind in _CHANGED} - gone
        with self._store.read() as view:
            found = {job.id: job for job in view.jobs.find_many(changed)} if changed else {}
            if any(event.kind in _CAPACITY_EVENTS for event in events):
                self._ledger.set_capacity(view.queues.all(), view.clusters.nodes())
        for job_id in gone:
            self._ledger.drop(job_id)
        for job_id in changed:
            job = found.get(job_id)
            if job is None:
                self._ledger.drop(job_id)
            else:
                self._ledger.put(job)
        if any(event.kind in _FREES_OR_ASKS for event in events):
            self._admit()

    def tick(self) -> None:
        """Nothing is left over: what could not be admitted waits for an event that frees room."""

    def _admit(self) -> None:
        """A job that was stopped or deleted since the snapshot is refused; its own event puts the ledger right."""
        decisions = decide(self._ledger.snapshot())
        admissions = [
            AdmitJob(id=admission.job_id, placements=admission.placements, message=self._host_note)
            for admission in decisions.admissions
        ]
        answers = self._intake.submit_together(admissions, PLATFORM)
        for admission, answer in zip(admissions, answers, strict=True):
            if answer is not None:
                self._ledger.admitted(admission.id, admission.placements)


def load_ledger(store: Store) -> Ledger:
    """A ledger from rows alone."""
    ledger = Ledger()
    with store.read() as view:
        ledger.set_capacity(view.queues.all(), view.clusters.nodes())
        for job in view.jobs.in_status(ACTIVE):
            ledger.put(job)
    return ledger
