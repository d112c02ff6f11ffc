"""Admission: feed → ledger → decide → commands. The scheduler's one connection to the world."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta

from paddleflow.domain.commands import AdmitJob, Command, EvictJob, ReserveRoom, ResizeJob
from paddleflow.domain.events import Event, EventKind
from paddleflow.domain.ids import JobId
from paddleflow.domain.jobs import ACTIVE, Job, JobStatus
from paddleflow.domain.mounts import REPORT_LIFE
from paddleflow.domain.users import PLATFORM
from paddleflow.engine.intake import Intake
from paddleflow.ports.clock import Clock
from paddleflow.ports.store import ReadView, Store
from paddleflow.scheduling.decide import DEFAULT_RULES, Rules, decide
from paddleflow.scheduling.decisions import Admission as Start
from paddleflow.scheduling.decisions import Decisions, Resize
from paddleflow.scheduling.entries import waiting_of
from paddleflow.scheduling.ledger import Ledger
from paddleflow.scheduling.locality import cached_of
from paddleflow.scheduling.pace import Pace
from paddleflow.scheduling.reasons import near_data

_CHANGED = frozenset(
    {
        EventKind.JOB_SUBMITTED,
        EventKind.JOB_UPDATED,
        EventKind.JOB_STARTED,
        EventKind.JOB_RESIZED,
        EventKind.JOB_STOPPING,
        EventKind.JOB_REQUEUED,
    }
)
_GONE = frozenset({EventKind.JOB_FINISHED, EventKind.JOB_DELETED})
"""An end is final, so these need no second look. What is admitted, reserved or evicted is so by this reactor."""
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
_FREES = _CAPACITY_EVENTS | {
    EventKind.JOB_UPDATED,
    EventKind.JOB_RESIZED,
    EventKind.JOB_REQUEUED,
    EventKind.JOB_FINISHED,
    EventKind.JOB_DELETED,
}
"""What may free room or change rights. A job that starts, or is being stopped, holds what it held."""
_DATA_EVERY = timedelta(seconds=30)
"""How often it is looked up where the data of waiting jobs is, if nothing else asks for it."""


class Admission:
    name = "admission"
    kinds = _CHANGED | _GONE | _CAPACITY_EVENTS

    def __init__(
        self, *, store: Store, intake: Intake, clock: Clock, host_note: str, rules: Rules = DEFAULT_RULES
    ) -> None:
        self._store = store
        self._intake = intake
        self._clock = clock
        self._rules = rules
        self._host_note = host_note
        """Said to every admitted job that names an image: what its runtime does with it."""
        self._ledger = Ledger()
        self._pace = Pace()
        self._cached_at: datetime | None = None
        """When it was last looked up where data is at hand."""

    def resync(self) -> None:
        self._ledger = load_ledger(self._store, self._clock.now())
        self._cached_at = self._clock.now()
        self._pace.changed()
        self._decide()

    def react(self, events: Sequence[Event]) -> None:
        gone = {JobId(event.subject) for event in events if event.kind in _GONE}
        changed = {JobId(event.subject) for event in events if event.kind in _CHANGED} - gone
        with self._store.read() as view:
            found = {job.id: job for job in view.jobs.find_many(changed)} if changed else {}
            if any(event.kind in _CAPACITY_EVENTS for event in events):
                self._ledger.set_capacity(view.queues.all(), view.clusters.nodes())
            if any(waits_for_data(job) for job in found.values()):
                self._look_for_data(view)
        for job_id in gone:
            self._ledger.drop(job_id)
        for job_id in changed:
            job = found.get(job_id)
            if job is None:
                self._ledger.drop(job_id)
            else:
                self._ledger.put(job)
                self._note(job)
        if any(event.kind in _FREES for event in events):
            self._pace.changed()
        self._decide()

    def _look_for_data(self, view: ReadView) -> None:
        now = self._cached_at = self._clock.now()
        self._ledger.set_cached(cached_of(view.cache_reports.since(now - REPORT_LIFE)))

    def _note(self, job: Job) -> None:
        """One that waits may start; one that runs may now be resized."""
        if job.status is JobStatus.INIT:
            self._pace.submitted(waiting_of(job))
        elif job.spec.elastic is not None:
            self._pace.changed()

    def tick(self) -> float | None:
        """Some decisions wait for a moment and not for an event: a back-off that ends, a size that has settled."""
        self._decide()
        wake_at = self._pace.wake_at
        return None if wake_at is None else wake_at - self._clock.now().timestamp()

    def _decide(self) -> None:
        """A job that changed since the ledger heard of it is refused; its own event puts the ledger right."""
        now = self._clock.now().timestamp()
        if not self._pace.is_due(now):
            return
        self._refresh_data()
        decisions = decide(self._ledger, now, self._rules)
        self._pace.decided(decisions)
        if not decisions.changes_anything:
            return
        first = self._starts(decisions)
        accepted = self._ask(first)
        # Nobody is disturbed for a job that does not wait any more.
        then = self._disturbances(decisions, accepted)
        accepted |= self._ask(then)
        self._ledger.apply(decisions.only(accepted), now)
        if not accepted.issuperset(decisions.subjects):
            self._pace.changed()

    def _refresh_data(self) -> None:
        """What was reported since the jobs that wait for room came; and old reports count no more."""
        looked_at = self._cached_at
        if self._ledger.waits_for_data and (looked_at is None or self._clock.now() - looked_at >= _DATA_EVERY):
            with self._store.read() as view:
                self._look_for_data(view)

    def _near_data(self, admission: Start) -> str:
        entry = self._ledger.waiting_of(admission.job_id)
        node = admission.spots[0].node
        share = 0.0 if entry is None else entry.prefers.get(node, 0.0)
        return near_data(node, share) if share else ""

    def _ask(self, asked: Mapping[JobId, Command]) -> set[JobId]:
        answers = self._intake.submit_together(list(asked.values()), PLATFORM)
        return {job_id for job_id, answer in zip(asked, answers, strict=True) if answer is not None}

    def _starts(self, decisions: Decisions) -> dict[JobId, Command]:
        asked: dict[JobId, Command] = {}
        for reservation in decisions.reservations:
            asked[reservation.job_id] = ReserveRoom(
                id=reservation.job_id, spots=reservation.spots, message=reservation.reason.sentence
            )
        for admission in decisions.admissions:
            asked[admission.job_id] = AdmitJob(
                id=admission.job_id,
                spots=admission.spots,
                image_note=self._host_note,
                placement_note=self._near_data(admission),
            )
        for resize in decisions.resizes:
            if resize.in_favour_of is None:
                asked[resize.job_id] = _resize(resize)
        return asked

    def _disturbances(self, decisions: Decisions, accepted: Collection[JobId]) -> dict[JobId, Command]:
        asked: dict[JobId, Command] = {}
        for eviction in decisions.evictions:
            if eviction.in_favour_of in accepted:
                message = f"evicted: {eviction.reason.sentence}"
                asked[eviction.job_id] = EvictJob(
                    id=eviction.job_id, in_favour_of=eviction.in_favour_of, message=message
                )
        for resize in decisions.resizes:
            if resize.in_favour_of in accepted:
                asked[resize.job_id] = _resize(resize)
        return asked


def _resize(resize: Resize) -> ResizeJob:
    dropped = tuple((spot.role, spot.index) for spot in resize.drop)
    return ResizeJob(id=resize.job_id, add=resize.add, drop=dropped, message=resize.reason.sentence)


def load_ledger(store: Store, now: datetime) -> Ledger:
    """A ledger from rows alone."""
    ledger = Ledger()
    with store.read() as view:
        ledger.set_capacity(view.queues.all(), view.clusters.nodes())
        ledger.set_cached(cached_of(view.cache_reports.since(now - REPORT_LIFE)))
        for job in view.jobs.in_status(ACTIVE):
            ledger.put(job)
    return ledger


def waits_for_data(job: Job) -> bool:
    return job.status is JobStatus.INIT and any(member.mounts for member in job.spec.members)
