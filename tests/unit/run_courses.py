"""A run without a platform around it: plans written by hand, and a store, jobs and files that are dictionaries.

Every Advance is held against what must always be true, whatever the test is about.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from paddleflow.domain.ids import CacheId, FilesystemId, JobId, RunId, UserName
from paddleflow.domain.jobs import JobStatus
from paddleflow.domain.runs import (
    NODE_DONE,
    NODE_ENDED,
    RUN_ENDED,
    ArtifactEvent,
    CacheEntry,
    Fingerprint,
    NodeKind,
    NodeStatus,
    RunNode,
    RunStatus,
    Stop,
)
from paddleflow.planning.advance import advance
from paddleflow.planning.fingerprint import seal
from paddleflow.planning.moves import (
    Advance,
    Begin,
    Fetch,
    Fetched,
    JobEnded,
    Prepare,
    Prepared,
    RunEvent,
    RunFacts,
)
from paddleflow.planning.plan import ArtifactRef, Mount, Plan, PlanNode
from paddleflow.planning.progress import Progress
from paddleflow.planning.source import Limits

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
FACTS = RunFacts(
    run_id=RunId("run-000001"),
    owner=UserName("alice"),
    source="run.yaml",
    fs_id=FilesystemId("fs-alice-data"),
    fs_name="data",
)
MAIN = Mount(name="data", mount_path="/mnt/data")


@dataclass(frozen=True)
class Written:
    """A node and what is inside it, before it knows where it is."""

    node: PlanNode
    children: tuple[Written, ...] = ()


def step(name: str, *deps: str, **more: Any) -> Written:
    more.setdefault("command", f"run {name}")
    more["inputs"] = {key: _ref(text) for key, text in more.pop("inputs", {}).items()}
    more["outputs"] = dict.fromkeys(more.pop("outputs", ()))
    return Written(PlanNode(path=name, name=name, kind=NodeKind.STEP, deps=deps, **more))


def dag(name: str, *children: Written, deps: tuple[str, ...] = (), **more: Any) -> Written:
    more["inputs"] = {key: _ref(text) for key, text in more.pop("inputs", {}).items()}
    more["outputs"] = {key: _ref(text) for key, text in more.pop("outputs", {}).items()}
    return Written(PlanNode(path=name, name=name, kind=NodeKind.DAG, deps=deps, **more), children)


def _ref(text: str) -> ArtifactRef:
    """``up.data`` is a sibling's or child's, ``.data`` the parent's."""
    node, name = text.split(".")
    return ArtifactRef(node=node, name=name)


def plan_of(*top: Written, post: Written | None = None, **more: Any) -> Plan:
    nodes: dict[str, PlanNode] = {}
    for each in top:
        _place(each, "", nodes)
    more.setdefault("main_fs", MAIN)
    if post is not None:
        path = f"post_process.{post.node.name}"
        nodes[path] = replace(post.node, path=path)
        more["post_process"] = path
    return Plan(name="demo", nodes=nodes, top=tuple(each.node.name for each in top), **more)


def _place(written: Written, parent: str, nodes: dict[str, PlanNode]) -> None:
    name = written.node.name
    path = f"{parent}.{name}" if parent else name
    children = tuple(f"{path}.{child.node.name}" for child in written.children)
    nodes[path] = replace(written.node, path=path, parent=parent, children=children)
    for child in written.children:
        _place(child, path, nodes)


def fingerprint(text: str) -> Fingerprint:
    return seal({}, {"inputs.x": text})


def entry(run_id: str = "run-000000", **outputs: str) -> CacheEntry:
    return CacheEntry(
        id=CacheId("cch-000001"),
        fingerprint=fingerprint("x"),
        run_id=RunId(run_id),
        job_id=JobId(f"job-{run_id}-x-00000000"),
        node="x",
        source="run.yaml",
        owner=FACTS.owner,
        fs_id=FACTS.fs_id,
        outputs=outputs,
        created_at=NOON,
        updated_at=NOON,
    )


@dataclass
class Course:
    plan: Plan
    limits: Limits = field(default_factory=Limits)
    facts: RunFacts = FACTS
    rows: dict[str, RunNode] = field(default_factory=dict)
    """What is stored, in the order it was first put."""
    stop: Stop = Stop.NO
    status: RunStatus = RunStatus.INITIATING
    message: str = ""
    files: dict[str, str] = field(default_factory=dict)
    """By path; one that is not there cannot be read."""
    hits: dict[str, CacheEntry] = field(default_factory=dict)
    """By key of the step."""
    broken: dict[str, str] = field(default_factory=dict)
    """Steps that cannot be prepared, and why."""
    submitted: dict[str, JobId] = field(default_factory=dict)
    asked: dict[str, Fetch | Prepare] = field(default_factory=dict)
    stopped: list[JobId] = field(default_factory=list)
    artifacts: list[ArtifactEvent] = field(default_factory=list)
    cache: list[CacheEntry] = field(default_factory=list)
    last: Advance = field(default_factory=Advance)
    now: datetime = NOON

    def __post_init__(self) -> None:
        self.progress = self._read()

    def _read(self) -> Progress:
        return Progress(self.plan, self.facts, self.limits, self.rows.values(), self.stop)

    def begin(self) -> Course:
        self.tell(Begin())
        return self

    def tell(self, *events: RunEvent) -> Advance:
        self.now += timedelta(seconds=1)
        step_forward = advance(self.plan, self.progress, events, self.now)
        self._store(step_forward)
        self.last = step_forward
        return step_forward

    def end(self, *keys: str, status: JobStatus = JobStatus.SUCCEEDED, message: str = "") -> Advance:
        return self.tell(*(JobEnded(key=key, status=status, message=message, at=self.now) for key in keys))

    def answer(self) -> Course:
        """All that was asked, again and again, until nothing is."""
        while self.asked:
            for key in list(self.asked):
                if key in self.asked:
                    self.tell(self.answer_to(self.asked.pop(key)))
        return self

    def answer_to(self, question: Fetch | Prepare) -> RunEvent:
        if isinstance(question, Prepare):
            sealed = None if question.identity is None else seal(question.identity, {})
            hit = None if sealed is None else self.hits.get(question.key)
            return Prepared(key=question.key, fingerprint=sealed, hit=hit, error=self.broken.get(question.key, ""))
        missing = [path for paths in question.paths.values() for path in paths if path not in self.files]
        if missing:
            return Fetched(
                key=question.key, error=f"failed to get the content of artifact by path[{missing[0]}] : not there"
            )
        return Fetched(
            key=question.key,
            contents={name: tuple(self.files[path] for path in paths) for name, paths in question.paths.items()},
        )

    def crash(self) -> Advance:
        """Memory is gone; what was asked is forgotten with it."""
        self.asked.clear()
        self.progress = self._read()
        return self.tell(Begin())

    def run(self) -> Course:
        """To the end, with everything succeeding."""
        if self.status is RunStatus.INITIATING:
            self.begin()
        for _ in range(100_000):
            self.answer()
            running = self.running()
            if not running:
                return self
            self.end(running[0])
        raise AssertionError("the run does not end")

    def running(self) -> list[str]:
        return [
            row.key
            for row in self.rows.values()
            if row.kind is NodeKind.STEP and row.status in (NodeStatus.RUNNING, NodeStatus.TERMINATING)
        ]

    def still_asked(self) -> dict[str, Fetch | Prepare]:
        """Without questions whose answer nobody waits for any more."""
        waiting = {row.key for row in self.rows.values() if not row.is_ended}
        loops = {key for key in self.asked if key not in self.rows and self._is_waited_for(key)}
        return {key: question for key, question in self.asked.items() if key in waiting | loops}

    def _is_waited_for(self, group: str) -> bool:
        return group in self.progress.groups and self.progress.groups[group].asked is not None

    def statuses(self) -> dict[str, str]:
        return {key: row.status.value for key, row in self.rows.items()}

    def of_status(self, *statuses: NodeStatus) -> set[str]:
        return {key for key, row in self.rows.items() if row.status in statuses}

    # What must always be true.

    def _store(self, move: Advance) -> None:
        self._check(move)
        for row in move.nodes:
            self.rows[row.key] = row
        for key, submission in move.submit:
            self.submitted[key] = JobId(submission.id)
        for question in (*move.fetch, *move.prepare):
            self.asked[question.key] = question
        self.stopped += move.stop
        self.artifacts += move.artifacts
        self.cache += move.cache
        self.status = move.status or self.status
        self.message = move.message or self.message
        self._check_stored()

    def _check(self, move: Advance) -> None:
        assert self.status not in RUN_ENDED, "an ended run moves no more"
        changed = {row.key: row for row in move.nodes}
        assert len(changed) == len(move.nodes), "each node once"
        for key, row in changed.items():
            before = self.rows.get(key)
            assert before is None or before.status not in NODE_ENDED, f"{key} ends once"
            assert (row.finished_at is not None) == row.is_ended
        for key, submission in move.submit:
            assert key not in self.submitted, f"{key} is submitted once"
            assert submission.id not in self.submitted.values()
            assert changed[key].status is NodeStatus.RUNNING
            assert changed[key].job_id == submission.id
            assert submission.id not in move.stop
        started = {key for key, row in changed.items() if row.status is NodeStatus.RUNNING and row.job_id}
        before_running = {key for key in started if key in self.submitted}
        assert started - before_running == {key for key, _ in move.submit}

    def _check_stored(self) -> None:
        assert len(self.running()) <= self.plan.parallelism
        ended = self.status in RUN_ENDED
        if ended:
            assert all(row.is_ended for row in self.rows.values()), "nothing is left when a run has ended"
            assert not self.running()

    def check_order(self, keys: Iterable[str] | None = None) -> None:
        """No step has begun before what it depends on was done, and no dag's child outside its dag."""
        groups = rows_by_group(self.rows)
        for row in [self.rows[key] for key in keys] if keys is not None else self.rows.values():
            if row.status in (NodeStatus.PENDING, NodeStatus.CANCELLED):
                continue
            if row.parent:
                assert self.rows[row.parent].started_at is not None
            node = self.plan.nodes[row.node]
            for dep in node.deps:
                path = f"{node.parent}.{dep}" if node.parent else dep
                before = groups[row.parent, path]
                assert before and all(each.status in NODE_DONE for each in before), f"{row.key} before {path}"


def rows_by_group(rows: Mapping[str, RunNode]) -> dict[tuple[str, str], list[RunNode]]:
    found: dict[tuple[str, str], list[RunNode]] = {}
    for row in rows.values():
        found.setdefault((row.parent, row.node), []).append(row)
    return found
