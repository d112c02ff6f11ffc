"""Runner: moves runs forward. Hears of ended jobs, asks ``planning.advance`` what follows, hands that to the intake.

It keeps the progress of every active run in memory as a fold of rows. Whenever storing a decision fails, what is in
memory is thrown away and read again; so memory is never ahead of the rows. Reading files and fingerprinting happen in
worker threads; their answers come back through an inbox, and only the reactor's own thread advances anything.
"""

from __future__ import annotations

import logging
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import TypeAlias

from paddleflow.domain.commands import AdvanceRun, ForgetRunRemains
from paddleflow.domain.errors import Invalid, NotFound, PaddleFlowError, Stale, Unavailable
from paddleflow.domain.events import Event, EventKind
from paddleflow.domain.ids import FilesystemId, JobId, RunId
from paddleflow.domain.jobs import Job, JobStatus
from paddleflow.domain.runs import RUN_ACTIVE, Fingerprint, NodeStatus, Run, RunNode, RunStatus
from paddleflow.domain.users import PLATFORM
from paddleflow.engine.intake import Intake
from paddleflow.engine.run_work import RunWork
from paddleflow.planning.advance import advance
from paddleflow.planning.codec import load_plan
from paddleflow.planning.moves import (
    Advance,
    Begin,
    Fetch,
    Fetched,
    JobEnded,
    Noted,
    Prepare,
    Prepared,
    RunEvent,
    RunFacts,
)
from paddleflow.planning.plan import Plan
from paddleflow.planning.progress import Progress
from paddleflow.planning.source import Limits
from paddleflow.ports.clock import Clock
from paddleflow.ports.store import ReadView, Store

log = logging.getLogger(__name__)

Place: TypeAlias = tuple[RunId, str]
"""A node of a run: the run, and the node's key."""
Result: TypeAlias = tuple[str, str, str, str]
"""What equal steps share: whose, on which filesystem, and both fingerprints."""


@dataclass(slots=True)
class _Course:
    """An active run as it is in memory."""

    version: int
    plan: Plan
    facts: RunFacts
    progress: Progress


class Runner:
    name = "runner"
    kinds = frozenset({EventKind.RUN_CREATED, EventKind.RUN_STOPPING, EventKind.RUN_DELETED, EventKind.JOB_FINISHED})

    def __init__(
        self,
        *,
        store: Store,
        intake: Intake,
        clock: Clock,
        work: RunWork,
        limits: Limits,
        workers: Executor,
        quick: Executor,
    ) -> None:
        self._store = store
        self._intake = intake
        self._clock = clock
        self._work = work
        self._limits = limits
        self._workers = workers
        self._quick = quick
        """For questions that need no fingerprint: the files of one user may take hours to read."""
        self.wake: Callable[[], None] = lambda: None
        """Called when an answer has come in; whoever runs the reactor's thread sets it."""
        self._courses: dict[RunId, _Course] = {}
        self._steps: dict[JobId, Place] = {}
        self._answers: deque[tuple[_Course, RunId, Prepare | Fetch, RunEvent | PaddleFlowError]] = deque()
        """From the workers. The course tells answers to a question asked before the run was read anew."""
        self._later: list[tuple[_Course, RunId, Prepare | Fetch]] = []
        """Questions whose filesystem did not answer; asked again at every tick."""
        self._computing: dict[Result, Place] = {}
        self._computed_at: dict[Place, Result] = {}
        self._waiting: dict[Result, list[tuple[_Course, RunId, Prepare]]] = defaultdict(list)
        """Steps that would compute what another is computing."""
        self._remains_left = False
        self._clearing: set[RunId] = set()
        """Deleted runs whose directories a worker is deleting."""
        self._is_abandoned = False

    def resync(self) -> None:
        for kept in (self._courses, self._steps, self._computing, self._computed_at, self._waiting):
            kept.clear()
        self._answers.clear()
        self._later.clear()
        with self._store.read() as view:
            runs = view.runs.in_status(RUN_ACTIVE)
            taken = [self._taken_up(view, run) for run in runs]
        for run, events in zip(runs, taken, strict=True):
            self._advance(run.id, events)
        self._settle_answers()
        self._clear_remains()

    def react(self, events: Sequence[Event]) -> None:
        news: dict[RunId, list[RunEvent]] = defaultdict(list)
        for event in events:
            place = self._steps.get(JobId(event.subject)) if event.kind is EventKind.JOB_FINISHED else None
            if place is not None:
                news[place[0]].append(_told_end(place[1], event))
        fresh = [RunId(e.subject) for e in events if e.kind in (EventKind.RUN_CREATED, EventKind.RUN_STOPPING)]
        if fresh:
            self._take_up_again(dict.fromkeys(fresh), news)
        for run_id, heard in news.items():
            self._advance(run_id, heard)
        self._settle_answers()
        if any(event.kind is EventKind.RUN_DELETED for event in events):
            self._clear_remains()

    def _take_up_again(self, ids: Iterable[RunId], news: dict[RunId, list[RunEvent]]) -> None:
        with self._store.read() as view:
            for run_id in ids:
                # A run that was told to stop has a new version; reading it again brings the stop along.
                run = view.runs.find(run_id)
                if run is not None and not run.is_ended:
                    news[run_id] = self._taken_up(view, run)

    def tick(self) -> None:
        later, self._later = self._later, []
        for course, run_id, question in later:
            self._ask(course, run_id, question)
        self._settle_answers()
        if self._remains_left:
            self._clear_remains()

    def abandon(self) -> None:
        """Nobody waits for the workers' answers any more: they end soon, and what they were asked is asked again."""
        self._is_abandoned = True
        self._courses.clear()

    # Taking up a run.

    def _taken_up(self, view: ReadView, run: Run) -> list[RunEvent]:
        """Read a run into memory; the events that bring it up to date."""
        self._forget(run.id)
        try:
            plan = load_plan(run.plan)
        except Invalid as error:
            log.warning("run %s cannot be continued: %s", run.id, error)
            self._give_up(run.id, run.version, view.runs.nodes(run.id), error.message)
            return []
        facts = RunFacts(run_id=run.id, owner=run.owner, source=run.source, fs_id=run.fs_id, fs_name=run.fs_name)
        progress = Progress(plan, facts, self._limits, view.runs.nodes(run.id), run.stop)
        self._courses[run.id] = _Course(version=run.version, plan=plan, facts=facts, progress=progress)
        running = dict(progress.running_jobs())
        jobs = {job.id: job for job in view.jobs.find_many(running)}
        events: list[RunEvent] = [Begin()]
        for job_id, key in running.items():
            self._steps[job_id] = (run.id, key)
            self._note_computing(run.id, progress.nodes[key])
            job = jobs.get(job_id)
            if job is None:
                gone = JobEnded(key=key, status=JobStatus.FAILED, message="its job is gone", at=self._clock.now())
                events.append(gone)
            elif job.is_terminal:
                events.append(_end_of(key, job))
        return events

    def _forget(self, run_id: RunId) -> None:
        course = self._courses.pop(run_id, None)
        if course is None:
            return
        for job_id in course.progress.running_jobs():
            self._steps.pop(job_id, None)
        for place in [place for place in self._computed_at if place[0] == run_id]:
            self._release(place)

    def _give_up(self, run_id: RunId, version: int, nodes: Iterable[RunNode], why: str) -> None:
        """End a run that cannot be continued; its jobs are stopped, the others' runs go on."""
        now = self._clock.now()
        active = [node for node in nodes if not node.is_ended]
        self._intake.submit(
            AdvanceRun(
                id=run_id,
                seen=version,
                nodes=tuple(
                    replace(node, status=NodeStatus.TERMINATED, message=why, finished_at=now) for node in active
                ),
                stop=tuple(node.job_id for node in active if node.job_id is not None),
                status=RunStatus.FAILED,
                message=f"the run cannot be continued: {why}",
            ),
            PLATFORM,
        )

    # Moving forward.

    def _advance(self, run_id: RunId, events: Sequence[RunEvent]) -> None:
        pending = list(events)
        while pending:
            course = self._courses.get(run_id)
            if course is None:
                return
            try:
                step = advance(course.plan, course.progress, pending, self._clock.now())
                pending = self._stored(run_id, course, step)
            except Stale:
                pending = self._read_again(run_id)
            except NotFound:
                self._forget(run_id)  # deleted meanwhile
                return
            except Unavailable:
                raise  # an outage concerns every run; anything else is this one's own
            except Exception as error:
                log.exception("run %s met a defect of this product and is ended", run_id)
                self._forget(run_id)
                with self._store.read() as view:
                    nodes = view.runs.nodes(run_id)
                self._give_up(run_id, course.version, nodes, f"internal error: {type(error).__name__}: {error}")
                return

    def _stored(self, run_id: RunId, course: _Course, step: Advance) -> list[RunEvent]:
        """Store the decision, then do what it asks for. What was refused comes back as events."""
        refused: dict[str, str] = {}
        if step.nodes or step.submit or step.stop or step.cache or step.artifacts or step.status is not None:
            answer = self._intake.submit(_command(run_id, course.version, step), PLATFORM)
            course.version = int(str(answer["version"]))
            told = answer["refused"]
            refused = {str(key): str(why) for key, why in told.items()} if isinstance(told, dict) else {}
        for key, submission in step.submit:
            self._steps[JobId(submission.id)] = (run_id, key)
        for node in step.nodes:
            self._note_computing(run_id, node)
            if node.is_ended:
                self._steps.pop(node.job_id or JobId(""), None)
                self._release((run_id, node.key))
        for fetch in step.fetch:
            self._ask(course, run_id, fetch)
        for prepare in step.prepare:
            self._ask(course, run_id, prepare)
        if step.status is not None and step.status not in RUN_ACTIVE:
            self._forget(run_id)
        now = self._clock.now()
        return [
            JobEnded(key=key, status=JobStatus.FAILED, message=why, at=now, refused=True)
            for key, why in refused.items()
        ]

    def _read_again(self, run_id: RunId) -> list[RunEvent]:
        with self._store.read() as view:
            run = view.runs.find(run_id)
            if run is None or run.is_ended:
                self._forget(run_id)
                return []
            return self._taken_up(view, run)

    # Asking the world.

    def _ask(self, course: _Course, run_id: RunId, question: Prepare | Fetch) -> None:
        if self._courses.get(run_id) is course:  # else: read anew since, or over; preparing would touch its files
            is_long = isinstance(question, Prepare) and question.identity is not None
            (self._workers if is_long else self._quick).submit(self._answer, course, run_id, question)

    def _answer(self, course: _Course, run_id: RunId, question: Prepare | Fetch) -> None:
        """In a worker thread: the answer, or why there is none."""
        answer: Fetched | Prepared | PaddleFlowError
        try:
            if isinstance(question, Fetch):
                answer = self._work.fetch(course.facts, question)
            else:
                answer = self._work.prepare(course.facts, question, lambda: self._courses.get(run_id) is course)
        except PaddleFlowError as error:
            answer = error
        except Exception as error:
            log.exception("run %s: preparing %s met a defect of this product", run_id, question.key)
            answer = _failed(question, f"internal error: {type(error).__name__}: {error}")
        self._answers.append((course, run_id, question, answer))
        self.wake()

    def _settle_answers(self) -> None:
        while self._answers:
            news: dict[RunId, list[RunEvent]] = defaultdict(list)
            while self._answers:
                course, run_id, question, answer = self._answers.popleft()
                if self._courses.get(run_id) is not course:
                    continue  # the run was read anew since, and has asked again
                if isinstance(answer, Unavailable):
                    log.warning("run %s: %s must wait for its filesystem: %s", run_id, question.key, answer)
                    news[run_id].append(Noted(key=question.key, message=f"waits: {answer.message}"))
                    self._later.append((course, run_id, question))
                elif isinstance(answer, PaddleFlowError):
                    news[run_id].append(_failed(question, answer.message))
                elif isinstance(answer, Prepared) and isinstance(question, Prepare):
                    news[run_id].append(self._alone_or_waiting(course, run_id, question, answer))
                else:
                    news[run_id].append(answer)
            for run_id, heard in news.items():
                self._advance(run_id, heard)

    def _alone_or_waiting(self, course: _Course, run_id: RunId, question: Prepare, answer: Prepared) -> RunEvent:
        """Of equal steps one computes and the others wait for its result."""
        if answer.fingerprint is None or answer.hit is not None:
            return answer
        result = _result(course.facts, answer.fingerprint)
        other = self._computing.get(result)
        if other is None or other == (run_id, answer.key):
            self._computing[result] = (run_id, answer.key)
            self._computed_at[run_id, answer.key] = result
            return answer
        self._waiting[result].append((course, run_id, question))
        return Noted(key=answer.key, message=f"waits for step {other[1]} of {other[0]}, which computes the same")

    def _note_computing(self, run_id: RunId, node: RunNode) -> None:
        course = self._courses.get(run_id)
        if course is None or node.fingerprint is None or node.status is not NodeStatus.RUNNING:
            return
        result = _result(course.facts, node.fingerprint)
        self._computing.setdefault(result, (run_id, node.key))
        self._computed_at[run_id, node.key] = result

    def _release(self, place: Place) -> None:
        """A step has ended or was given up: those that waited for its result look again."""
        result = self._computed_at.pop(place, None)
        if result is None or self._computing.get(result) != place:
            return
        del self._computing[result]
        for course, run_id, question in self._waiting.pop(result, ()):
            self._ask(course, run_id, question)

    # Clearing away.

    def _clear_remains(self) -> None:
        """Delete the directories of deleted runs, in the workers: one may hold millions of files. What cannot go now is
        tried again at every tick."""
        self._remains_left = False
        with self._store.read() as view:
            remains = view.run_remains.all()
        for run_id, fs_id, path in remains:
            if run_id not in self._clearing:
                self._clearing.add(run_id)
                self._workers.submit(self._clear, run_id, fs_id, path)

    def _clear(self, run_id: RunId, fs_id: FilesystemId, path: str) -> None:
        """In a worker thread."""
        try:
            self._work.clear(fs_id, path, lambda: not self._is_abandoned)
            self._intake.submit(ForgetRunRemains(id=run_id), PLATFORM)
            is_left = False
        except PaddleFlowError as error:
            log.warning("run %s was deleted, its files were not; trying again: %s", run_id, error)
            is_left = True
        except Exception:
            log.exception("run %s was deleted, its files were not; trying again", run_id)
            is_left = True
        self._clearing.discard(run_id)
        if is_left:  # said last: whoever hears of it may ask again
            self._remains_left = True


def _command(run_id: RunId, seen: int, step: Advance) -> AdvanceRun:
    return AdvanceRun(
        id=run_id,
        seen=seen,
        nodes=step.nodes,
        submit=step.submit,
        stop=step.stop,
        cache=step.cache,
        artifacts=step.artifacts,
        status=step.status,
        message=step.message,
    )


def _end_of(key: str, job: Job) -> JobEnded:
    return JobEnded(key=key, status=job.status, message=job.message, at=job.finished_at or job.updated_at)


def _told_end(key: str, event: Event) -> JobEnded:
    """An ended job stays as it ended, so the event is as good as its row."""
    data = event.data
    return JobEnded(key=key, status=JobStatus(str(data["status"])), message=str(data["message"]), at=event.at)


def _failed(question: Prepare | Fetch, why: str) -> Fetched | Prepared:
    return (Fetched if isinstance(question, Fetch) else Prepared)(key=question.key, error=why)


def _result(facts: RunFacts, fingerprint: Fingerprint) -> Result:
    return (facts.owner, facts.fs_id or "", fingerprint.first, fingerprint.second)
