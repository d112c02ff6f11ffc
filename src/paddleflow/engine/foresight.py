"""Why, when and what if, asked of the scheduler itself: the same code on the present rows. Nothing is carried out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from paddleflow.domain.access import require_job, require_root
from paddleflow.domain.errors import Invalid, not_found
from paddleflow.domain.ids import JobId, NodeName, QueueName, spell_id
from paddleflow.domain.jobs import Job, JobStatus
from paddleflow.domain.mounts import REPORT_LIFE
from paddleflow.domain.queries import (
    Eta,
    QueueChange,
    WhatIf,
    WhatIfAnswer,
    WouldEvict,
    WouldResize,
    WouldRun,
    WouldStart,
)
from paddleflow.domain.queues import Queue
from paddleflow.domain.quotas import check_quota_tree
from paddleflow.domain.resources import Resources, format_units
from paddleflow.domain.users import Actor
from paddleflow.engine.acceptance import Desk, accepted
from paddleflow.engine.capabilities import Capabilities
from paddleflow.engine.reactors.admission import load_ledger
from paddleflow.ports.clock import Clock
from paddleflow.ports.identity import Identity
from paddleflow.ports.store import Store
from paddleflow.scheduling.decide import Rules, decide
from paddleflow.scheduling.decisions import Decisions
from paddleflow.scheduling.entries import Waiting, waiting_of
from paddleflow.scheduling.ledger import Ledger
from paddleflow.scheduling.locality import cached_of, preferred
from paddleflow.scheduling.never import check_can_ever_fit
from paddleflow.scheduling.reasons import near_data
from paddleflow.simulation.durations import Durations
from paddleflow.simulation.forecast import Forecast, forecast_start

_SHOWN = 5
_HISTORY = 2000
"""Ended jobs from which durations are learnt."""
_ENOUGH = 10
"""With fewer a forecast would be a guess that looks like a number."""
_CYCLES = 50
"""A question is followed until nothing changes any more, or so far."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """The answer to "why is my job not running?"."""

    job: Job
    sentence: str
    details: Mapping[str, object]


class Foresight:
    def __init__(
        self, store: Store, clock: Clock, identity: Identity, capabilities: Capabilities, rules: Rules
    ) -> None:
        self._rules = rules
        self._capabilities = capabilities
        self._store = store
        self._clock = clock
        self._identity = identity

    def _job(self, actor: Actor, job_id: JobId) -> Job:
        with self._store.read() as view:
            job = view.jobs.find(job_id)
        if job is None:
            raise not_found("job", job_id[:80], code="JobNotFound")
        require_job(actor, job)
        return job

    def why(self, actor: Actor, job_id: JobId) -> Why:
        job = self._job(actor, job_id)
        if job.status is not JobStatus.INIT:
            growth, details = self._pending_growth(job)
            return Why(
                job=job,
                sentence=_told(job) + growth + self._near_data(job),
                details={"status": job.status, "message": job.message, **details},
            )
        ledger = load_ledger(self._store, self._clock.now())
        decisions = decide(ledger, self._now(), self._rules, focus=job_id)
        entry = waiting_of(job)
        reason = decisions.reason_of(entry)
        if reason is None:
            return Why(
                job=job, sentence="it fits and starts in a moment" + _near(ledger, decisions, job_id), details={}
            )
        details = {"kind": reason.kind, **reason.numbers, **_surroundings(ledger, entry)}
        sentence = f"it waits: {reason.sentence}"
        starts_by = next((kept.starts_by for kept in decisions.promises if kept.job_id == job_id), None)
        if starts_by is not None:
            latest = datetime.fromtimestamp(starts_by, UTC)
            details["startsBy"] = latest.isoformat(timespec="seconds")
            wait = _span((latest - self._clock.now()).total_seconds())
            sentence += f"; by the time limits of what runs it starts in {wait} at the latest"
        return Why(job=job, sentence=sentence, details=details)

    def _pending_growth(self, job: Job) -> tuple[str, dict[str, object]]:
        """Of an elastic job that could grow and has to keep its size for a while: to what, and when."""
        elastic = job.spec.elastic
        if job.status is not JobStatus.RUNNING or elastic is None:
            return "", {}
        now = self._clock.now()
        decisions = decide(load_ledger(self._store, now), now.timestamp(), self._rules)
        growth = next((each for each in decisions.pending_growths if each.job_id == job.id), None)
        if growth is None:
            return "", {}
        moment = datetime.fromtimestamp(growth.at, UTC)
        sentence = (
            f"; it has {growth.size} of at most {elastic.most} {elastic.role}s and may grow to {growth.larger}"
            f" in {_span(growth.at - now.timestamp())}"
        )
        return sentence, {"growsTo": growth.larger, "growsAt": moment.isoformat(timespec="seconds")}

    def _near_data(self, job: Job) -> str:
        """Of a job on its node: how much of its data that node has now."""
        entry = waiting_of(job)
        if job.status not in (JobStatus.PENDING, JobStatus.RUNNING) or not entry.data or not job.placements:
            return ""
        with self._store.read() as view:
            reports = view.cache_reports.since(self._clock.now() - REPORT_LIFE)
        node = job.placements[0].node
        share = preferred(entry, cached_of(reports)).get(node, 0.0)
        return f"; {near_data(node, share)}" if share else ""

    def eta(self, actor: Actor, job_id: JobId) -> Eta:
        job = self._job(actor, job_id)
        if job.status is not JobStatus.INIT:
            return Eta(job_id=job.id, status=job.status, sentence=_told(job))
        durations, learnt = self._durations()
        if learnt < _ENOUGH:
            return Eta(
                job_id=job.id,
                status=job.status,
                sentence=f"too few jobs have succeeded here to tell how long such jobs run: {learnt} of {_ENOUGH}",
            )
        forecast = forecast_start(
            load_ledger(self._store, self._clock.now()), job_id, self._now(), durations, rules=self._rules
        )
        return _eta(job, forecast, self._clock.now())

    def _durations(self) -> tuple[Durations, int]:
        """Learnt from the jobs that ended last, and from how many."""
        with self._store.read() as view:
            ended = view.jobs.ended_last(_HISTORY)
        durations, learnt = Durations(), 0
        for job in ended:
            began, finished = job.started_at or job.activated_at, job.finished_at
            if began is not None and finished is not None and job.status is JobStatus.SUCCEEDED:
                asked = job.held if job.placements else job.spec.request
                durations.learn(job.queue, asked.gpus, (finished - began).total_seconds())
                learnt += 1
        return durations, learnt

    def what_if(self, actor: Actor, question: WhatIf) -> WhatIfAnswer:
        require_root(actor)
        ledger = load_ledger(self._store, self._clock.now())
        queues = {queue.name: queue for queue in ledger.queues.values()}
        for change in question.queues:
            queues[change.name] = _changed(queues, change)
        kept = [node for node in ledger.nodes if node.name not in question.without_nodes]
        _check_nodes({node.name for node in ledger.nodes}, question.without_nodes)
        nodes = [*kept, *question.nodes]
        for change in question.queues:
            queue = queues[change.name]
            # With the queue as it is now: what was allowed before is judged by what it was.
            others = [*(each for each in queues.values() if each.name != queue.name), ledger.queues[change.name]]
            check_quota_tree(queue, others, [node for node in nodes if node.cluster == queue.cluster])
        ledger.set_capacity(queues.values(), nodes)
        uprooted = _uproot(ledger, set(question.without_nodes))
        asked = None if question.job is None else self._hypothetical(actor, question, ledger)
        if asked is not None:
            ledger.wait(asked)
        return _Story(ledger, self._now(), self._rules).told(asked, uprooted)

    def _hypothetical(self, actor: Actor, question: WhatIf, ledger: Ledger) -> Waiting:
        assert question.job is not None
        with self._store.read() as view:
            desk = Desk(
                rows=view,
                actor=actor,
                now=self._clock.now(),
                new_id=self._new_id,
                capabilities=self._capabilities,
            )
            job = accepted(desk, question.job)
        last = max((entry.seq for line in ledger.waiting.values() for entry in line), default=0)
        entry = replace(ledger.entry_of(job), seq=last + 1)
        check_can_ever_fit(entry, ledger.queues[entry.queue], list(ledger.queues.values()), ledger.nodes)
        return entry

    def _new_id(self, prefix: str, digits: int) -> str:
        return spell_id(prefix, self._identity.new_token_hex(), digits)

    def _now(self) -> float:
        return self._clock.now().timestamp()


class _Story:
    """What follows from a ledger if nobody does anything: cycle after cycle until it is quiet."""

    def __init__(self, ledger: Ledger, now: float, rules: Rules) -> None:
        self._rules = rules
        self._ledger = ledger
        self._now = now
        self._starts: dict[JobId, tuple[NodeName, ...]] = {}
        self._evicted: dict[JobId, JobId] = {}
        self._sizes: dict[JobId, tuple[int, int]] = {}

    def told(self, asked: Waiting | None, uprooted: Sequence[JobId]) -> WhatIfAnswer:
        decisions = self._run(asked)
        resized = [(job_id, before, after) for job_id, (before, after) in self._sizes.items() if before != after]
        answer = WhatIfAnswer(
            sentence="",
            starts=tuple(WouldStart(job_id=job_id, nodes=nodes) for job_id, nodes in self._starts.items()),
            shrinks=tuple(WouldResize(job_id=j, before=b, after=a) for j, b, a in resized if a < b),
            grows=tuple(WouldResize(job_id=j, before=b, after=a) for j, b, a in resized if a > b),
            evictions=tuple(WouldEvict(job_id=j, in_favour_of=other) for j, other in self._evicted.items()),
            job=None if asked is None else self._fate(asked, decisions),
        )
        return replace(answer, sentence=_summary(answer, uprooted))

    def _run(self, asked: Waiting | None) -> Decisions:
        focus = None if asked is None else asked.job_id
        decisions = decide(self._ledger, self._now, self._rules, focus=focus)
        for _ in range(_CYCLES):
            if not decisions.changes_anything:
                break
            self._note(decisions)
            self._ledger.apply(decisions, self._now)
            self._let_go(decisions)
            decisions = decide(self._ledger, self._now, self._rules, focus=focus)
        return decisions

    def _note(self, decisions: Decisions) -> None:
        for admission in decisions.admissions:
            self._starts[admission.job_id] = tuple(spot.node for spot in admission.spots)
        for eviction in decisions.evictions:
            self._evicted[eviction.job_id] = eviction.in_favour_of
            self._starts.pop(eviction.job_id, None)
        for resize in decisions.resizes:
            before = self._ledger.holding[resize.job_id].size
            first = self._sizes.get(resize.job_id, (before, before))[0]
            self._sizes[resize.job_id] = (first, before + len(resize.add) - len(resize.drop))

    def _let_go(self, decisions: Decisions) -> None:
        """Those told to go have gone, and wait again."""
        for resize in decisions.resizes:
            self._ledger.release_leaving(resize.job_id)
        for eviction in decisions.evictions:
            requeue(self._ledger, eviction.job_id, self._now)

    def _fate(self, asked: Waiting, decisions: Decisions) -> WouldRun:
        nodes = self._starts.get(asked.job_id)
        if nodes is not None:
            freed = [job_id for job_id, other in self._evicted.items() if other == asked.job_id]
            where = ", ".join(dict.fromkeys(nodes))
            sentence = f"it would start on {where}" + (f" once {_listed(freed)} had gone" if freed else "")
            share = asked.prefers.get(nodes[0], 0.0)
            sentence += f": {near_data(nodes[0], share)}" if share else ""
            return WouldRun(starts=True, sentence=sentence, nodes=nodes)
        reason = decisions.reason_of(asked)
        if reason is None:
            return WouldRun(starts=False, sentence="it would wait")
        details = {"kind": reason.kind, **reason.numbers}
        return WouldRun(starts=False, sentence=f"it would wait: {reason.sentence}", details=details)


def requeue(ledger: Ledger, job_id: JobId, now: float) -> None:
    """What held room waits for it again, in its old place."""
    held = ledger.holding_of(job_id)
    if held is not None:
        ledger.wait(
            Waiting(
                job_id=held.job_id,
                seq=held.seq,
                priority=held.priority,
                queue=held.queue,
                cluster=held.cluster,
                groups=held.groups,
                elastic=held.elastic,
                since=now,
                limit_s=held.limit_s,
            )
        )


def _uproot(ledger: Ledger, lost: set[NodeName]) -> list[JobId]:
    """Jobs with a task on a node that would be gone have to start again elsewhere."""
    uprooted = [
        each.job_id
        for each in ledger.holding.values()
        if any(part.node in lost for part in (*each.held, *each.parting))
    ]
    for job_id in uprooted:
        requeue(ledger, job_id, ledger.holding[job_id].started_at)
    return uprooted


def _changed(queues: Mapping[QueueName, Queue], change: QueueChange) -> Queue:
    queue = queues.get(change.name)
    if queue is None:
        raise Invalid(f"queue[{change.name[:80]}] does not exist", details={"field": "queues.name"})

    def overlaid(old: Resources, new: Resources | None) -> Resources:
        return old if new is None else Resources({**old.amounts, **new.amounts})

    return replace(
        queue,
        max_resources=overlaid(queue.max_resources, change.max_resources),
        min_resources=overlaid(queue.min_resources, change.min_resources),
        weight=queue.weight if change.weight is None else change.weight,
    )


def _check_nodes(known: set[NodeName], named: Iterable[NodeName]) -> None:
    for name in named:
        if name not in known:
            raise Invalid(f"node[{name[:80]}] does not exist", details={"field": "removeNodes"})


def _surroundings(ledger: Ledger, entry: Waiting) -> dict[str, object]:
    """The numbers behind a sentence: every quota on the way up, the freest nodes, and who is ahead."""
    quota = ledger.quotas.find(entry.queue)
    rows: list[dict[str, object]] = []
    for level in quota.path if quota is not None else ():
        for name, _ in entry.request:
            row: dict[str, object] = {"quota": level.name, "resource": name}
            row["used"] = format_units(name, level.used.get(name, 0))
            if name in level.minimum:
                row["min"] = format_units(name, level.minimum[name])
            if name in level.maximum:
                row["max"] = format_units(name, level.maximum[name])
            row["asked"] = format_units(name, entry.request.get(name))
            rows.append(row)
    rooms = ledger.rooms.pool(ledger.queues[entry.queue], {}) if entry.queue in ledger.queues else ()
    freest = sorted(rooms, key=lambda room: [-room.free.get(name, 0) for name, _ in reversed(list(entry.request))])
    nodes = [
        {"node": room.name, **{name: format_units(name, max(0, room.free.get(name, 0))) for name, _ in entry.request}}
        for room in freest[:_SHOWN]
    ]
    line = ledger.waiting.get(entry.queue, [])
    ahead = [each.job_id for each in line if each.rank < entry.rank]
    return {"quotas": rows, "freestNodes": nodes, "ahead": ahead[:_SHOWN], "aheadCount": len(ahead)}


def _eta(job: Job, forecast: Forecast, now: datetime) -> Eta:
    low, median, high = (
        None if moment is None else datetime.fromtimestamp(moment, UTC)
        for moment in (forecast.low, forecast.median, forecast.high)
    )
    if median is None:
        return Eta(
            job_id=job.id, status=job.status, low=low, confidence=forecast.confidence, sentence="not in the near future"
        )
    wait = _span((median - now).total_seconds())
    latest = f"at most {_span((high - now).total_seconds())}" if high is not None else "perhaps much longer"
    sure = f"{forecast.confidence:.0%} of such forecasts come true"
    return Eta(
        job_id=job.id,
        status=job.status,
        low=low,
        median=median,
        high=high,
        confidence=forecast.confidence,
        sentence=f"it is expected to start in about {wait}, {latest}; {sure}",
    )


def _span(seconds: float) -> str:
    seconds = max(0.0, seconds)
    for size, name in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {name}"
    return f"{seconds:.0f} seconds"


def _summary(answer: WhatIfAnswer, uprooted: Sequence[JobId]) -> str:
    parts = []
    if uprooted:
        parts.append(f"{_listed(uprooted)} would lose their nodes")
    if answer.starts:
        parts.append(f"{_listed([each.job_id for each in answer.starts])} would start")
    if answer.shrinks:
        parts.append(f"{_listed([each.job_id for each in answer.shrinks])} would shrink")
    if answer.grows:
        parts.append(f"{_listed([each.job_id for each in answer.grows])} would grow")
    if answer.evictions:
        parts.append(f"{_listed([each.job_id for each in answer.evictions])} would be evicted")
    if answer.job is not None and not answer.job.starts:
        parts.append(f"the new job: {answer.job.sentence}")
    return "; ".join(parts) if parts else "nothing would change"


def _listed(jobs: Sequence[JobId]) -> str:
    shown = ", ".join(jobs[:3])
    return shown if len(jobs) <= 3 else f"{shown} and {len(jobs) - 3} more"


def _near(ledger: Ledger, decisions: Decisions, job_id: JobId) -> str:
    """Where it starts, if that was chosen by where its data is."""
    entry = ledger.waiting_of(job_id)
    node = next((each.spots[0].node for each in decisions.admissions if each.job_id == job_id), None)
    share = 0.0 if entry is None or node is None else entry.prefers.get(node, 0.0)
    return f" on {node}: {near_data(node, share)}" if node is not None and share else ""


def _told(job: Job) -> str:
    nodes = ", ".join(sorted({placement.node for placement in job.placements}))
    note = f" ({job.message})" if job.message and job.spec.elastic is not None else ""
    match job.status:
        case JobStatus.PENDING:
            return f"it was admitted to {nodes} and is being started"
        case JobStatus.RUNNING:
            return f"it is running on {nodes}{note}"
        case JobStatus.TERMINATING if job.outcome in (JobStatus.INIT, JobStatus.FAILED, JobStatus.SUCCEEDED):
            return f"its tasks are being stopped: {job.message}"
        case JobStatus.TERMINATING:
            return "it was asked to stop and has not ended yet"
        case JobStatus.PREEMPTING:
            return f"it is being taken off its nodes: {job.message}"
        case _:
            return f"it has {job.status}" + (f": {job.message}" if job.message else "")
