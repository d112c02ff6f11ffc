"""What this platform has run, as a trace; and any trace replayed by its scheduler. Nothing is carried out.

A replay runs in a process of its own, one at a time, and within bounds of jobs and time: a server has other things to
do. Whoever wants more replays on the command line, where it costs nobody else anything.
"""

from __future__ import annotations

import io
import pickle
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace

from paddleflow.domain.access import require_root
from paddleflow.domain.errors import Conflict, Invalid, NotFound, PaddleFlowError, Unavailable, invalid_field
from paddleflow.domain.jobs import TERMINAL, Job
from paddleflow.domain.queries import MOST_REPLAYED, JobFilter, PageRequest, PastJobs, ReplayQuestion
from paddleflow.domain.users import Actor
from paddleflow.engine.replay_process import Replayed, Work, replayed
from paddleflow.ports.store import Store
from paddleflow.simulation.cluster import Capacity, parse_capacity
from paddleflow.simulation.history import needs_tasks, past_job, present_capacity, spell_history
from paddleflow.simulation.trace import TraceJob, read_trace

_MODULE = replayed.__module__
_PAGE = 500
"""Jobs read in one transaction, so that a long history holds up nobody."""
_LONGEST_S = 45.0
"""Clients wait a minute for an answer."""
_ELSEWHERE = "paddleflow simulate, on the command line, has no such limit: it computes on your own machine"


class Replays:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._turn = threading.Lock()
        self._process = _Process()

    def trace(self, actor: Actor, where: PastJobs) -> str:
        """Jobs that have run and ended, as a trace in order of submission."""
        require_root(actor)
        return spell_history(self._past(where))

    def replay(self, actor: Actor, question: ReplayQuestion) -> tuple[Replayed, ...]:
        require_root(actor)
        # Described before anything is read: a mistake in it is told at once.
        described = None if question.description is None else _described(question.description)
        jobs = self._own_jobs(question) if question.trace is None else _told_jobs(question.trace, question)
        capacity = self._present(question, jobs) if described is None else described
        work = Work(jobs=jobs, capacity=capacity, load=question.load, policies=question.policies)
        if not self._turn.acquire(blocking=False):
            raise Conflict("another replay is under way; ask again when it has ended, or use the command line")
        try:
            return self._process.run(work)
        finally:
            self._turn.release()

    def close(self) -> None:
        """End what is under way; whoever waits for it is told so."""
        self._process.close()

    def _own_jobs(self, question: ReplayQuestion) -> tuple[TraceJob, ...]:
        limit = question.limit or MOST_REPLAYED + 1
        past = self._past(replace(question.past, cluster=question.cluster, limit=limit))
        if not past:
            raise Invalid(
                f"no job of cluster[{question.cluster[:80]}] has run and ended in that time; give a trace instead",
                details={"field": "trace"},
            )
        if question.limit is None:
            _check_count("limit", len(past))
        return read_trace(io.StringIO(spell_history(past), newline=""))

    def _present(self, question: ReplayQuestion, jobs: tuple[TraceJob, ...]) -> Capacity:
        name = question.cluster
        with self._store.read() as view:
            if view.clusters.find(name) is None:
                raise NotFound(f"cluster[{name[:80]}] does not exist", code="ClusterNotFound")
            nodes, queues = view.clusters.nodes(name), view.queues.all()
        # A trace from elsewhere names queues from elsewhere: that is an error it is told of, row by row.
        return present_capacity(name, nodes, queues, jobs if question.trace is None else ())

    def _past(self, where: PastJobs) -> list[TraceJob]:
        found: list[TraceJob] = []
        for job in self._ended(where):
            found.append(job)
            if len(found) >= where.limit:
                break
        # Rows are numbered as they are written; with several servers their clocks may tell another order.
        return sorted(found, key=lambda job: job.submit_s)

    def _ended(self, where: PastJobs) -> Iterator[TraceJob]:
        """Page by page; of each job only what a trace tells is kept."""
        # A job is updated after it was submitted, so this passes all that are wanted and is quick for a late ``since``.
        chosen = JobFilter(statuses=TERMINAL, cluster=where.cluster, updated_since=where.since)
        after: int | None = 0
        while after is not None:
            with self._store.read() as view:
                page = view.jobs.page(chosen, PageRequest(limit=_PAGE, after=after))
                told = [
                    past_job(job, view.jobs.tasks(job.id) if needs_tasks(job) else ())
                    for job in page.rows
                    if _is_within(job, where)
                ]
            after = page.next_after
            yield from (job for job in told if job is not None)


class _Process:
    """The one replay that may be under way, and its end."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # closing may be interrupted by a signal that closes
        self._running: subprocess.Popen[bytes] | None = None
        self._closed = False

    def run(self, work: Work) -> tuple[Replayed, ...]:
        with self._start() as process:
            try:
                output, _ = process.communicate(pickle.dumps(work), timeout=_LONGEST_S)
            except subprocess.TimeoutExpired:
                raise Invalid(
                    f"the replay was given up after {_LONGEST_S:g} s; give fewer jobs or policies. {_ELSEWHERE}"
                ) from None
            finally:
                process.kill()  # nothing, if it has ended
                with self._lock:
                    self._running = None
        if self._closed:
            raise _stopping()
        if process.returncode:
            raise Unavailable(f"the replay's process ended early, with {process.returncode}")
        answer: tuple[Replayed, ...] | PaddleFlowError = pickle.loads(output)  # noqa: S301  our own process wrote it
        if isinstance(answer, PaddleFlowError):
            raise answer
        return answer

    def close(self) -> None:
        with self._lock:
            self._closed = True
            if self._running is not None:
                self._running.kill()

    def _start(self) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._closed:
                raise _stopping()
            try:
                self._running = subprocess.Popen(
                    [sys.executable, "-P", "-c", f"from {_MODULE} import main; main()"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    start_new_session=True,  # Ctrl-C is for the server, which ends this one in order
                )
            except OSError as error:
                raise Unavailable(f"the replay's process cannot be started: {error}") from error
            return self._running


def _stopping() -> Unavailable:
    return Unavailable("the server is stopping")


def _is_within(job: Job, where: PastJobs) -> bool:
    return (where.since is None or job.created_at >= where.since) and (
        where.until is None or job.created_at < where.until
    )


def _told_jobs(trace: str, question: ReplayQuestion) -> tuple[TraceJob, ...]:
    jobs = read_trace(io.StringIO(trace, newline=""), sort=question.sort, limit=question.limit or MOST_REPLAYED + 1)
    if question.limit is None:
        _check_count("trace", len(jobs))
    return jobs


def _check_count(field: str, count: int) -> None:
    if count > MOST_REPLAYED:
        raise invalid_field(
            field, f"there are more than {MOST_REPLAYED} jobs; set limit to take the first ones. {_ELSEWHERE}"
        )


def _described(description: Mapping[str, object]) -> Capacity:
    """What is wrong with it is told by the field of the request it stands in."""
    try:
        return parse_capacity(description)
    except Invalid as error:
        field = str(error.details.get("field", "")).removeprefix("the description").removeprefix(".")
        named = f"cluster.{field}" if field else "cluster"
        problem = error.message.partition(" is invalid, ")[2] or error.message
        raise invalid_field(named, problem) from error
