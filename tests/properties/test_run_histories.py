"""Random plans, random outcomes, in random orders, stopped and crashed at any moment: a run keeps its promises.

Every step ends exactly once and has at most one job; nothing begins before what it needs is done; the slots are never
exceeded; a run always ends; and where the result cannot depend on timing, it is the one worked out here by other means.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from paddleflow.domain.errors import Invalid
from paddleflow.domain.jobs import JobStatus
from paddleflow.domain.runs import (
    NODE_DONE,
    NODE_ENDED,
    RUN_ENDED,
    NodeKind,
    NodeStatus,
    RunStatus,
    Stop,
)
from paddleflow.planning.conditions import evaluate
from paddleflow.planning.moves import Advance, Begin, JobEnded, Noted, Prepare, RunEvent, StopAsked
from paddleflow.planning.plan import CachePolicy, LoopArtifact, LoopItems, LoopParameter, Plan, PlanNode
from paddleflow.planning.progress import Progress
from paddleflow.planning.retry import kept_nodes
from tests.unit.run_courses import FACTS, Course, Written, dag, entry, plan_of, rows_by_group, step

ROLL = settings(max_examples=300)
seeds = st.integers(0, 2**32)
"""Of dice: plans made by rolling them are more varied than those Hypothesis would grow from the smallest."""
CONDITIONS = ["", "", "", "1 == 1", "1 == 2", "{{p}} == 1", "{{PF_LOOP_ARGUMENT}} != 1", "{{p}} > x &&"]
ITEMS = [(), (0,), (0, 1), (0, 1, 2)]


def maybe(random: Random, one_in: int) -> bool:
    return random.randrange(one_in) == 0


def nodes_of(random: Random, depth: int, conditions: list[str]) -> list[Written]:
    made: list[Written] = []
    for number in range(random.randint(1 if depth else 0, 4)):
        name = f"n{number}"
        deps = tuple(each.node.name for each in made if maybe(random, 2))
        more: dict[str, Any] = {"parameters": {"p": random.choice([1, 2])}, "disabled": maybe(random, 10)}
        givers = [e.node.name for e in made if e.node.name in deps and "o" in e.node.outputs and _is_plain(e.node)]
        if givers and maybe(random, 2):
            more["inputs"] = {"i": f"{random.choice(givers)}.o"}
        _loop(random, more)
        more["condition"] = random.choice(conditions)
        if "inputs" in more and maybe(random, 4) and conditions != [""]:
            more["condition"] = "{{i}} != 'no'"
        if depth < 2 and maybe(random, 4):
            children = nodes_of(random, depth + 1, conditions)
            plain = [c.node.name for c in children if c.node.outputs and _is_plain(c.node)]
            outputs = {"o": f"{random.choice(plain)}.o"} if plain else {}
            made.append(dag(name, *children, deps=deps, outputs=outputs, **more))
        else:
            cache = CachePolicy(enable=maybe(random, 3))
            made.append(step(name, *deps, outputs=("o",) if maybe(random, 2) else (), cache=cache, **more))
    return made


def _is_plain(node: PlanNode) -> bool:
    """What checking allows to be referred to."""
    return not node.condition and not node.disabled


def _loop(random: Random, more: dict[str, Any]) -> None:
    items = random.choice(ITEMS)
    match random.randrange(8):
        case 0:
            more["loop"] = LoopItems(items=items)
        case 1:
            more["parameters"]["items"] = random.choice([list(items), json.dumps(items), "not a list"])
            more["loop"] = LoopParameter(name="items")
        case 2 if "inputs" in more:
            more["loop"] = LoopArtifact(name="i")


def a_plan(random: Random, conditions: list[str] = CONDITIONS) -> Plan:
    return plan_of(
        *nodes_of(random, 0, conditions),
        post=step("bye", outputs=("o",) if maybe(random, 2) else ()) if maybe(random, 2) else None,
        strategy=random.choice(["fail_fast", "continue"]),
        parallelism=random.randint(1, 3),
    )


class Anything(dict[str, str]):
    """Every file there could be: a list of two items."""

    def __contains__(self, path: object) -> bool:
        return True

    def __missing__(self, path: str) -> str:
        return "[0, 1]"


@dataclass
class Outcomes:
    """How a step ends, decided by its key alone: the same whatever happens in between."""

    seed: int
    failing: int
    """One in so many."""

    def _rolls(self, key: str, what: str, one_in: int) -> bool:
        return maybe(Random(f"{self.seed}/{what}/{key}"), one_in)

    def of_job(self, key: str) -> JobStatus:
        if self._rolls(key, "fails", self.failing):
            return JobStatus.FAILED
        return JobStatus.PREEMPTED if self._rolls(key, "is stopped", 40) else JobStatus.SUCCEEDED

    def is_hit(self, key: str) -> bool:
        return self._rolls(key, "hit", 3)

    def is_broken(self, key: str) -> bool:
        return self._rolls(key, "broken", 30)


class Hits(dict[str, Any]):
    def __init__(self, outcomes: Outcomes) -> None:
        self.outcomes = outcomes

    def get(self, key: str, default: Any = None) -> Any:
        return entry(o="somewhere/else") if self.outcomes.is_hit(key) else default


class Broken(dict[str, str]):
    def __init__(self, outcomes: Outcomes) -> None:
        self.outcomes = outcomes

    def get(self, key: str, default: Any = "") -> Any:
        return "it cannot be prepared" if self.outcomes.is_broken(key) else default


@dataclass
class History:
    random: Random
    course: Course
    outcomes: Outcomes
    crashes: bool = True
    stops: bool = True
    told: list[RunEvent] = field(default_factory=list)
    """To be told again: whoever reports may report twice."""
    unheard: dict[str, JobEnded] = field(default_factory=dict)
    """Jobs that have ended in the world, while the run has not heard of it."""

    def live(self) -> None:
        self.tell(Begin())
        for _ in range(400):
            if self.course.status in RUN_ENDED:
                return
            self.move()
        while self.course.status not in RUN_ENDED:
            self.end_or_answer()

    def move(self) -> None:
        match self.random.randrange(20):
            case 0 if self.crashes:
                self.crash()
            case 1 if self.told:
                self.tell(self.random.choice(self.told))
            case 2:
                self.tell(Noted(key=self.random.choice(["n0", "n1", "n1[0]", "n2.n0"]), message="waits for a friend"))
            case 3 if self.stops:
                force = maybe(self.random, 2)
                self.course.stop = Stop.FORCE if force or self.course.stop is Stop.FORCE else Stop.GENTLE
                if maybe(self.random, 2):
                    self.crash()  # the stop was stored, and nobody heard of it
                else:
                    self.tell(StopAsked(force=force))
            case 4 if self.course.running():
                self.job_ends(self.random.choice(self.course.running()))  # in the world only
            case _:
                self.end_or_answer()

    def end_or_answer(self) -> None:
        keys = [*self.course.asked, *self.course.running()]
        assert keys, "a run that has not ended waits for something"
        key = self.random.choice(keys)
        if key in self.course.asked:
            self.tell(self.course.answer_to(self.course.asked.pop(key)))
        else:
            self.tell(self.job_ends(key))
            self.unheard.pop(key, None)

    def job_ends(self, key: str) -> JobEnded:
        if key not in self.unheard:
            status = self.outcomes.of_job(key)
            if self.course.rows[key].status is NodeStatus.TERMINATING and maybe(self.random, 2):
                status = JobStatus.TERMINATED
            self.unheard[key] = JobEnded(key=key, status=status, message="so it went", at=self.course.now)
        return self.unheard[key]

    def crash(self) -> None:
        self.course.asked.clear()
        self.course.progress = self.course._read()
        self.tell(Begin(), *(self.unheard.pop(key) for key in list(self.unheard)))

    def tell(self, *events: RunEvent) -> Advance:
        before = set(self.course.submitted)
        move = self.course.tell(*events)
        self.told += [event for event in events if not isinstance(event, Begin | StopAsked | Noted)]
        self.course.check_order(self.course.submitted.keys() - before)
        preparing = [key for key, question in self.course.still_asked().items() if isinstance(question, Prepare)]
        assert len(preparing) + len(self.course.running()) <= self.course.plan.parallelism
        return move


def a_history(random: Random, plan: Plan, **more: Any) -> History:
    outcomes = Outcomes(seed=random.randrange(10**6), failing=random.choice([3, 10, 1000]))
    course = Course(plan, files=Anything(), hits=Hits(outcomes), broken=Broken(outcomes))
    return History(random=random, course=course, outcomes=outcomes, **more)


# The same result, worked out from the top by calling, once and in order, without any events.


@dataclass
class Oracle:
    plan: Plan
    outcomes: Outcomes
    statuses: dict[str, NodeStatus] = field(default_factory=dict)

    def frame(self, paths: tuple[str, ...], prefix: str) -> set[NodeStatus]:
        ended: dict[str, set[NodeStatus]] = {}
        for path in paths:
            node = self.plan.nodes[path]
            if all(ended[dep] <= NODE_DONE for dep in node.deps):
                ended[node.name] = self.group(node, prefix + node.name)
            else:
                ended[node.name] = {self.note(prefix + node.name, NodeStatus.CANCELLED)}
        return set().union(*ended.values())

    def group(self, node: PlanNode, key: str) -> set[NodeStatus]:
        if node.disabled:
            return {self.note(key, NodeStatus.SKIPPED)}
        if node.loop is None:
            return {self.instance(node, key, None)}
        items = self.items(node)
        if items is None:
            return {self.note(key, NodeStatus.FAILED)}
        if not items:
            return {self.note(f"{key}[]", NodeStatus.SKIPPED)}
        return {self.instance(node, f"{key}[{number}]", item) for number, item in enumerate(items)}

    def items(self, node: PlanNode) -> list[Any] | None:
        match node.loop:
            case LoopItems(items=items):
                return list(items)
            case LoopParameter():
                given = node.parameters["items"]
                if given == "not a list":
                    return None
                return given if isinstance(given, list) else json.loads(str(given))
            case _:
                raise AssertionError("how many files an artifact has is not known here")

    def instance(self, node: PlanNode, key: str, item: Any) -> NodeStatus:
        known = {"p": node.parameters["p"], "PF_LOOP_ARGUMENT": "" if item is None else item}
        try:
            goes = not node.condition or evaluate(node.condition, lambda ref: known[ref.name])
        except Invalid:
            return self.note(key, NodeStatus.FAILED)
        if not goes:
            return self.note(key, NodeStatus.SKIPPED)
        if node.kind is NodeKind.DAG:
            ended = self.frame(node.children, f"{key}.")
            # Nothing is ever stopped here, so what is not done lies behind a failure.
            return self.note(key, NodeStatus.SUCCEEDED if ended <= NODE_DONE else NodeStatus.FAILED)
        if (node.outputs or node.cache.enable) and self.outcomes.is_broken(key):
            return self.note(key, NodeStatus.FAILED)
        if node.cache.enable and self.outcomes.is_hit(key):
            return self.note(key, NodeStatus.SUCCEEDED)
        is_good = self.outcomes.of_job(key) is JobStatus.SUCCEEDED
        return self.note(key, NodeStatus.SUCCEEDED if is_good else NodeStatus.FAILED)

    def note(self, key: str, status: NodeStatus) -> NodeStatus:
        assert key not in self.statuses
        self.statuses[key] = status
        return status


def expected(plan: Plan, outcomes: Outcomes) -> dict[str, NodeStatus]:
    oracle = Oracle(plan, outcomes)
    oracle.frame(plan.top, "")
    return oracle.statuses


def is_worked_out(plan: Plan) -> bool:
    return not any(isinstance(node.loop, LoopArtifact) or "{{i}}" in node.condition for node in plan.nodes.values())


def check_ended(course: Course) -> None:
    assert all(row.status in NODE_ENDED for row in course.rows.values())
    assert set(course.submitted) <= {key for key, row in course.rows.items() if row.job_id is not None}
    groups = rows_by_group(course.rows)
    for path in course.plan.top:
        assert ("", path) in groups, "what never began is seen too"
    for row in course.rows.values():
        if row.kind is NodeKind.DAG and row.started_at is not None:
            for path in course.plan.nodes[row.node].children:
                assert (row.key, path) in groups
    course.check_order()


@ROLL
@given(seeds)
def test_a_run_always_ends_and_every_step_ends_once(seed: int) -> None:
    random = Random(seed)
    history = a_history(random, a_plan(random))
    history.live()
    check_ended(history.course)


@ROLL
@given(seeds)
def test_without_a_stop_the_result_does_not_depend_on_order_or_crashes(seed: int) -> None:
    random = Random(seed)
    plan = a_plan(random, [*CONDITIONS])
    if not is_worked_out(plan):
        return
    history = a_history(random, plan, stops=False)
    history.live()
    course, right = history.course, expected(plan, history.outcomes)
    has_failed = NodeStatus.FAILED in right.values()
    got = {key: row.status for key, row in course.rows.items() if row.node != plan.post_process}
    if plan.strategy == "continue" or not has_failed:
        assert got == right
    else:
        assert NodeStatus.FAILED in got.values()
        assert all(right[key] is NodeStatus.FAILED for key, status in got.items() if status is NodeStatus.FAILED)
    post = course.rows.get(plan.post_process)
    assert bool(plan.post_process) == (post is not None)
    is_good = not has_failed and (post is None or post.status is NodeStatus.SUCCEEDED)
    assert (course.status is RunStatus.SUCCEEDED) == is_good
    check_ended(course)


def outline(progress: Progress) -> dict[str, Any]:
    """Everything that decides what happens next."""
    frames = [*progress.frames.values(), *([] if progress.after is None else [progress.after])]
    return {
        "frames": {
            frame.key: (frame.open, frame.ended, frame.runtime, frame.row and frame.row.parameters) for frame in frames
        },
        "groups": {
            key: (group.waiting, group.is_unrolled, group.keys, group.open, group.ended)
            for key, group in progress.groups.items()
        },
        "running": progress.running,
        "ordinals": progress.ordinals,
        "size": progress.size,
        "nodes": progress.nodes,
    }


@ROLL
@given(seeds)
def test_what_is_read_from_rows_goes_on_like_what_lived_through_the_events(seed: int) -> None:
    """No artifact is looked at by a condition here: that is asked anew, and others may come first meanwhile."""
    random = Random(seed)
    plan = a_plan(random, [""])
    history = a_history(random, plan, crashes=False, stops=False)
    course = history.course

    class Compared(History):
        def tell(self, *events: RunEvent) -> Advance:
            move = super().tell(*events)
            if course.status in RUN_ENDED:
                return move
            read = Course(plan, rows=dict(course.rows))
            assert outline(read.progress) == outline(course.progress)
            taken_up = read.tell(Begin())
            assert read.asked == course.still_asked()
            assert not taken_up.submit
            assert not taken_up.nodes
            return move

    Compared(random=random, course=course, outcomes=history.outcomes, crashes=False, stops=False).live()


@ROLL
@given(seeds)
def test_a_retry_repeats_nothing_that_was_done_and_can_succeed(seed: int) -> None:
    random = Random(seed)
    plan = a_plan(random, ["", "1 == 1", "1 == 2"])
    first = a_history(random, plan)
    first.live()
    if first.course.status is RunStatus.SUCCEEDED:
        return
    new_id = type(FACTS.run_id)("run-000002")
    kept = kept_nodes(plan, first.course.rows.values(), FACTS.run_id, new_id)
    fine = Outcomes(seed=1, failing=10**9)
    fine._rolls = lambda key, what, one_in: False  # type: ignore[method-assign]
    second = Course(plan, rows={row.key: row for row in kept}, files=Anything())
    second.facts = type(FACTS)(run_id=new_id, owner=FACTS.owner, source="", fs_id=FACTS.fs_id, fs_name="data")
    second.progress = second._read()
    done = {row.key for row in kept if row.is_ended}
    again = History(random=random, course=second, outcomes=fine, stops=False)
    again.live()
    check_ended(second)
    assert not done & set(second.submitted)
    if "not a list" not in json.dumps([dict(node.parameters) for node in plan.nodes.values()]):
        assert second.status is RunStatus.SUCCEEDED
