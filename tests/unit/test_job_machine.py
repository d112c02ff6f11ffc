from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddleflow.domain import job_machine
from paddleflow.domain.converge import RuntimeCalls, next_calls
from paddleflow.domain.errors import Conflict
from paddleflow.domain.events import EventKind
from paddleflow.domain.ids import JobId, NodeName
from paddleflow.domain.job_machine import MOVES, Change
from paddleflow.domain.jobs import (
    HOLDING,
    TERMINAL,
    Elasticity,
    Job,
    JobSpec,
    JobStatus,
    Member,
    Priority,
    RunPolicy,
    Spot,
    Task,
    TaskReport,
    TaskStatus,
)
from paddleflow.testing.builders import THEN, a_job, a_member

LATER = THEN + timedelta(seconds=30)
RIVAL = JobId("job-rival")


def spots(job: Job) -> tuple[Spot, ...]:
    return tuple(Spot(role=member.role, index=index, node=NodeName("node-1")) for member, index in job.spec.slots)


class Told:
    """A job and its tasks, told one thing after the other as the platform would: what changed is kept."""

    def __init__(self, job: Job, deciders: Sequence[str] = ()) -> None:
        self.job = job
        self.tasks: dict[str, Task] = {}
        self.events: list[EventKind] = []
        self.deciders = deciders

    def keep(self, change: Change) -> Change:
        before = self.job.status
        assert change.job.status is before or change.job.status in MOVES[before], f"{before} became {change.job.status}"
        if change.job != self.job:
            assert change.events, "a job that changed is stored only when an event tells of it"
        self.job = change.job
        self.tasks |= {task.id: task for task in change.tasks}
        self.events += [event.kind for event in change.events]
        return change

    def admit(self) -> Told:
        self.keep(job_machine.admit(self.job, spots(self.job), "note", THEN))
        return self

    def start(self) -> Told:
        self.admit()
        for role, index in [(at.role, at.index) for at in self.job.placements]:
            self.see(index, TaskStatus.RUNNING, role=role)
        return self

    def see(self, index: int, status: TaskStatus, message: str = "", role: str = "worker") -> Change:
        """The newest task of this role and index is reported so."""
        task = [task for task in self.tasks.values() if (task.role, task.index) == (role, index)][-1]
        told = TaskReport(task_id=task.id, job_id=self.job.id, status=status, message=message, started_at=THEN)
        change = job_machine.report(self.job, tuple(self.tasks.values()), told, LATER, self.deciders)
        return self.keep(change)

    @property
    def workers(self) -> set[int]:
        return {at.index for at in self.job.placements if at.role == "worker"}


def told(replicas: int = 1, **policy: object) -> Told:
    spec = JobSpec(members=(a_member(replicas=replicas),), policy=RunPolicy(**policy))  # type: ignore[arg-type]
    return Told(a_job(spec=spec))


def elastic(least: int = 1, most: int = 4, sizes: tuple[int, ...] = (), **policy: object) -> Told:
    spec = JobSpec(
        members=(a_member(replicas=least),),
        elastic=Elasticity(least=least, most=most, sizes=sizes),
        policy=RunPolicy(**policy),  # type: ignore[arg-type]
    )
    return Told(a_job(spec=spec))


def grown(life: Told, to: int) -> Told:
    """Started, grown to so many workers, all of them seen running."""
    life.start()
    size = len(life.job.placements)
    add = [Spot(role="worker", index=index, node=NodeName("node-1")) for index in range(size, to)]
    life.keep(job_machine.resize(life.job, add, (), "grown", LATER))
    for index in range(size, to):
        life.see(index, TaskStatus.RUNNING)
    return life


def test_every_status_is_in_the_table_and_terminal_ones_lead_nowhere() -> None:
    assert set(MOVES) == set(JobStatus)
    assert all(not MOVES[status] for status in TERMINAL)


# Waiting and starting.


@pytest.mark.parametrize("status", [status for status in MOVES if status is not JobStatus.INIT])
def test_only_a_waiting_job_is_admitted_or_gets_room_reserved(status: JobStatus) -> None:
    job = a_job(status=status)
    with pytest.raises(Conflict, match=str(status)):
        job_machine.admit(job, spots(job), "", THEN)
    with pytest.raises(Conflict, match=str(status)):
        job_machine.reserve(job, spots(job), "", THEN)


def test_admission_places_every_task_and_tells() -> None:
    life = told(replicas=2)
    change = life.keep(job_machine.admit(life.job, spots(life.job), "host", LATER))
    assert (life.job.status, life.job.message) == (JobStatus.PENDING, "host")
    assert [(task.index, task.node, task.status) for task in change.tasks] == [
        (0, "node-1", TaskStatus.PENDING),
        (1, "node-1", TaskStatus.PENDING),
    ]
    assert life.events == [EventKind.JOB_ADMITTED]
    assert next_calls(life.job) == RuntimeCalls(launch=True)


def test_a_reservation_is_remembered_until_the_job_starts_or_loses_it() -> None:
    life = told()
    life.keep(job_machine.reserve(life.job, spots(life.job), "being freed", LATER))
    assert (life.job.status, life.job.claim, life.job.message) == (JobStatus.INIT, spots(life.job), "being freed")
    life.keep(job_machine.reserve(life.job, (), "cannot come any more", LATER))
    assert life.job.claim == ()
    life.keep(job_machine.reserve(life.job, spots(life.job), "being freed", LATER))
    life.admit()
    assert life.job.claim == ()


@pytest.mark.parametrize(
    ("seen", "end", "told_by"),
    [
        (TaskStatus.PENDING, JobStatus.PENDING, []),
        (TaskStatus.RUNNING, JobStatus.RUNNING, [EventKind.JOB_STARTED]),
        (TaskStatus.SUCCEEDED, JobStatus.SUCCEEDED, [EventKind.JOB_FINISHED]),
        (TaskStatus.FAILED, JobStatus.FAILED, [EventKind.JOB_FINISHED]),
    ],
)
def test_a_job_follows_its_task(seen: TaskStatus, end: JobStatus, told_by: list[EventKind]) -> None:
    life = told().admit()
    life.see(0, seen, "exit code 3")
    assert life.job.status is end
    assert life.events == [EventKind.JOB_ADMITTED, *told_by]
    if end in TERMINAL:
        assert life.job.activated_at == THEN, "a job that ended before it was seen running did start"
        assert life.job.message == "exit code 3"


# Ending, with several tasks.


def test_a_job_runs_when_all_of_its_tasks_run() -> None:
    life = told(replicas=2).admit()
    life.see(0, TaskStatus.RUNNING)
    assert life.job.status is JobStatus.PENDING
    life.see(1, TaskStatus.RUNNING)
    assert (life.job.status, life.job.started_at) == (JobStatus.RUNNING, LATER)


def test_a_failed_task_ends_the_others_before_it_ends_the_job() -> None:
    life = told(replicas=3).start()
    life.see(1, TaskStatus.FAILED, "exit code 3")
    assert (life.job.status, life.job.outcome) == (JobStatus.TERMINATING, JobStatus.FAILED)
    assert life.job.status in HOLDING, "what still runs still holds its room"
    assert set(next_calls(life.job).stop) == set(life.tasks), "stopping what has ended is harmless, missing one is not"
    life.see(0, TaskStatus.FAILED, "killed")
    assert life.job.status is JobStatus.TERMINATING
    life.see(2, TaskStatus.SUCCEEDED)
    assert (life.job.status, life.job.message) == (JobStatus.FAILED, "worker-1: exit code 3")
    assert next_calls(life.job) == RuntimeCalls()


def test_the_roles_that_decide_end_the_job_and_the_rest_is_stopped() -> None:
    spec = JobSpec(members=(replace(a_member(), role="ps"), a_member(replicas=2)))
    life = Told(a_job(spec=spec), deciders=("worker",)).start()
    life.see(0, TaskStatus.SUCCEEDED)
    assert life.job.status is JobStatus.RUNNING
    life.see(1, TaskStatus.SUCCEEDED, "done")
    assert (life.job.status, life.job.outcome) == (JobStatus.TERMINATING, JobStatus.SUCCEEDED)
    life.see(0, TaskStatus.FAILED, "terminated", role="ps")
    assert (life.job.status, life.job.message) == (JobStatus.SUCCEEDED, "done")


@pytest.mark.parametrize(
    ("start", "end", "told_by"),
    [
        (JobStatus.INIT, JobStatus.TERMINATED, [EventKind.JOB_FINISHED]),
        (JobStatus.PENDING, JobStatus.TERMINATING, [EventKind.JOB_STOPPING]),
        (JobStatus.RUNNING, JobStatus.TERMINATING, [EventKind.JOB_STOPPING]),
        (JobStatus.PREEMPTING, JobStatus.TERMINATING, [EventKind.JOB_STOPPING]),
    ],
)
def test_stop(start: JobStatus, end: JobStatus, told_by: list[EventKind]) -> None:
    life = Told(a_job(status=start))
    life.keep(job_machine.stop(life.job, LATER))
    assert life.job.status is end
    assert life.events == told_by
    assert (life.job.finished_at is not None) == (end in TERMINAL)
    if end not in TERMINAL:
        life.keep(job_machine.stop(life.job, LATER))
        assert life.events == told_by, "asking twice is asking once"


@pytest.mark.parametrize("status", sorted(TERMINAL))
def test_what_has_ended_cannot_be_stopped(status: JobStatus) -> None:
    with pytest.raises(Conflict):
        job_machine.stop(a_job(status=status), LATER)


@pytest.mark.parametrize("end", [TaskStatus.SUCCEEDED, TaskStatus.FAILED])
def test_a_job_being_stopped_ends_as_terminated_however_its_tasks_ended(end: TaskStatus) -> None:
    life = told(replicas=2).start()
    life.keep(job_machine.stop(life.job, LATER))
    assert len(next_calls(life.job).stop) == 2
    life.see(0, end)
    assert life.job.status is JobStatus.TERMINATING
    life.see(1, end, "stopped by request")
    assert (life.job.status, life.job.message) == (JobStatus.TERMINATED, "stopped by request")


def test_a_stop_does_not_hide_how_a_job_that_was_ending_ended() -> None:
    life = told(replicas=2).start()
    life.see(0, TaskStatus.FAILED, "exit code 3")
    life.keep(job_machine.stop(life.job, LATER))
    life.see(1, TaskStatus.FAILED)
    assert life.job.status is JobStatus.FAILED


def test_what_could_not_start_fails_at_once_alone_and_after_its_fellows_in_company() -> None:
    alone = told().admit()
    alone.keep(job_machine.fail(alone.job, "no such program", LATER))
    assert alone.job.status is JobStatus.FAILED
    team = told(replicas=2).admit()
    team.keep(job_machine.fail(team.job, "no such program", LATER))
    assert (team.job.status, team.job.outcome) == (JobStatus.TERMINATING, JobStatus.FAILED)
    team.keep(job_machine.fail(team.job, "again", LATER))
    assert team.events.count(EventKind.JOB_STOPPING) == 1


def test_one_worker_beside_those_on_their_way_out_is_not_alone() -> None:
    life = grown(elastic(), to=3)
    life.keep(job_machine.resize(life.job, (), {("worker", 1), ("worker", 2)}, "shrunk", LATER))
    life.keep(job_machine.fail(life.job, "no such program", LATER))
    assert life.job.status is JobStatus.TERMINATING, "two tasks still run and hold their room"


def test_what_runs_is_stopped_before_the_job_fails() -> None:
    life = elastic().start()
    life.keep(job_machine.fail(life.job, "a new worker could not start", LATER))
    assert (life.job.status, life.job.outcome) == (JobStatus.TERMINATING, JobStatus.FAILED)


# Evicted, and waiting again.


def test_an_evicted_job_holds_its_room_until_its_last_task_has_ended_and_waits_again() -> None:
    life = told(replicas=2).start()
    life.keep(job_machine.evict(life.job, RIVAL, "needed", LATER))
    assert (life.job.status, life.events[-1]) == (JobStatus.PREEMPTING, EventKind.JOB_EVICTING)
    assert len(next_calls(life.job).stop) == 2
    life.see(0, TaskStatus.FAILED, "terminated")
    assert life.job.status is JobStatus.PREEMPTING
    life.see(1, TaskStatus.SUCCEEDED)
    job = life.job
    assert (job.status, job.message, life.events[-1]) == (JobStatus.INIT, "needed", EventKind.JOB_REQUEUED)
    assert (job.placements, job.leaving, job.outcome, job.started_at) == ((), (), None, None)
    assert job.failures == 0, "being evicted is no failure"
    assert job.activated_at is not None, "it did run"


def test_a_job_that_does_not_wait_again_ends_as_preempted() -> None:
    life = told(requeue=False).start()
    life.keep(job_machine.evict(life.job, RIVAL, "needed", LATER))
    life.see(0, TaskStatus.FAILED)
    assert (life.job.status, life.job.message) == (JobStatus.PREEMPTED, "needed")


def test_tasks_of_a_second_attempt_are_new_ones_and_late_news_of_the_first_changes_nothing() -> None:
    life = told().start()
    first = life.job.placements[0].task_id
    life.keep(job_machine.evict(life.job, RIVAL, "needed", LATER))
    life.see(0, TaskStatus.FAILED)
    life.start()
    assert life.job.placements[0].task_id != first
    late = TaskReport(task_id=first, job_id=life.job.id, status=TaskStatus.RUNNING)
    assert not job_machine.report(life.job, tuple(life.tasks.values()), late, LATER).events
    assert life.job.status is JobStatus.RUNNING


@pytest.mark.parametrize("status", sorted(set(JobStatus) - {JobStatus.PENDING, JobStatus.RUNNING}))
def test_only_who_is_placed_and_stays_can_be_evicted(status: JobStatus) -> None:
    with pytest.raises(Conflict):
        job_machine.evict(a_job(status=status), RIVAL, "", LATER)


# Failing, and trying again.


def test_a_failed_job_starts_again_after_a_pause_that_doubles_until_its_retries_are_used_up() -> None:
    life = told(replicas=2, retries=2, backoff_s=10.0)
    for attempt, pause_s in ((2, 10), (3, 20)):
        life.start()
        life.see(0, TaskStatus.FAILED, "exit code 3")
        assert life.job.status is JobStatus.TERMINATING
        life.see(1, TaskStatus.FAILED)
        assert life.job.status is JobStatus.INIT
        assert life.job.not_before == LATER + timedelta(seconds=pause_s)
        assert f"attempt {attempt} of 3" in life.job.message
    life.start()
    assert life.job.not_before is None
    life.see(0, TaskStatus.FAILED, "exit code 3")
    life.see(1, TaskStatus.FAILED)
    assert (life.job.status, life.job.failures) == (JobStatus.FAILED, 2)


def test_the_pause_is_never_longer_than_ten_minutes() -> None:
    assert [RunPolicy(backoff_s=10).backoff_after(failures) for failures in (1, 2, 3, 7, 1000)] == [
        10,
        20,
        40,
        600,
        600,
    ]


def test_a_stop_while_a_job_winds_down_for_its_next_attempt_is_final() -> None:
    life = told(replicas=2, retries=5).start()
    life.see(0, TaskStatus.FAILED)
    assert life.job.outcome is JobStatus.INIT
    life.keep(job_machine.stop(life.job, LATER))
    life.see(1, TaskStatus.FAILED)
    assert life.job.status is JobStatus.TERMINATED


def test_a_job_over_its_deadline_fails_and_is_not_tried_again() -> None:
    life = told(retries=5, deadline_s=60.0).start()
    life.keep(job_machine.expire(life.job, LATER))
    assert (life.job.status, life.job.outcome) == (JobStatus.TERMINATING, JobStatus.FAILED)
    life.keep(job_machine.expire(life.job, LATER))
    assert life.events.count(EventKind.JOB_STOPPING) == 1
    life.see(0, TaskStatus.FAILED, "terminated")
    assert life.job.status is JobStatus.FAILED
    assert "deadline of 60 s" in life.job.message


# Growing and shrinking.


def test_workers_come_and_go_while_the_job_runs() -> None:
    life = grown(elastic(), to=3)
    assert (life.job.status, life.workers, life.job.resized_at) == (JobStatus.RUNNING, {0, 1, 2}, LATER)
    assert next_calls(life.job) == RuntimeCalls(launch=True)
    life.keep(job_machine.resize(life.job, (), {("worker", 2)}, "yields", LATER))
    leaving = [at.task_id for at in life.job.leaving]
    assert life.workers == {0, 1}
    assert next_calls(life.job).stop == tuple(leaving)
    assert set(leaving) <= life.job.task_ids, "it holds its room until it has ended"
    life.see(2, TaskStatus.FAILED, "terminated")
    assert (life.job.status, life.job.leaving) == (JobStatus.RUNNING, ())
    assert life.events[-1] is EventKind.JOB_RESIZED


def test_a_worker_that_comes_back_is_a_new_task() -> None:
    life = grown(elastic(), to=2)
    life.keep(job_machine.resize(life.job, (), {("worker", 1)}, "yields", LATER))
    add = [Spot(role="worker", index=1, node=NodeName("node-2"))]
    life.keep(job_machine.resize(life.job, add, (), "grows", LATER))
    assert len({at.task_id for at in (*life.job.placements, *life.job.leaving)}) == 3


def test_a_worker_that_is_done_already_leaves_no_room_behind_when_it_is_taken_out() -> None:
    """Its end was reported once and will not be again, so nobody may wait for it."""
    life = grown(elastic(), to=3)
    life.see(2, TaskStatus.SUCCEEDED)
    assert life.job.status is JobStatus.RUNNING
    drop = {("worker", 1), ("worker", 2)}
    life.keep(job_machine.resize(life.job, (), drop, "yields", LATER, tuple(life.tasks.values())))
    assert [at.index for at in life.job.leaving] == [1]


@pytest.mark.parametrize("status", sorted(set(JobStatus) - {JobStatus.RUNNING}))
def test_only_a_running_elastic_job_is_resized(status: JobStatus) -> None:
    spec = JobSpec(members=(a_member(),), elastic=Elasticity(least=1, most=2))
    with pytest.raises(Conflict):
        job_machine.resize(a_job(status=status, spec=spec), (), (), "", LATER)
    with pytest.raises(Conflict):
        job_machine.resize(a_job(status=JobStatus.RUNNING), (), (), "", LATER)


def test_an_elastic_job_goes_on_without_a_worker_it_can_do_without() -> None:
    life = grown(elastic(retries=2), to=3)
    life.see(1, TaskStatus.FAILED, "node lost")
    assert (life.job.status, life.workers, life.job.failures) == (JobStatus.RUNNING, {0, 2}, 1)
    assert life.job.message == "worker-1: node lost"
    assert life.events[-1] is EventKind.JOB_RESIZED


@pytest.mark.parametrize(
    ("life", "index", "why"),
    [
        (elastic(retries=2), 0, "the first worker leads the others"),
        (elastic(least=2, retries=2), 1, "it would be left with less than its least"),
        (elastic(sizes=(1, 3), retries=2), 2, "two is not a size it can live with"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_elastic_job_starts_again_when_it_cannot_do_without(life: Told, index: int, why: str) -> None:
    assert life.job.spec.elastic is not None
    grown(life, to=life.job.spec.elastic.least if "least" in why else 3)
    life.see(index, TaskStatus.FAILED)
    assert (life.job.status, life.job.outcome) == (JobStatus.TERMINATING, JobStatus.INIT), why


def test_losing_workers_uses_up_the_retries() -> None:
    life = grown(elastic(retries=1), to=4)
    life.see(3, TaskStatus.FAILED)
    assert life.job.status is JobStatus.RUNNING
    life.see(2, TaskStatus.FAILED)
    assert (life.job.status, life.job.outcome) == (JobStatus.TERMINATING, JobStatus.FAILED)


def test_an_evicted_elastic_job_waits_for_those_on_their_way_out_too() -> None:
    life = grown(elastic(), to=2)
    life.keep(job_machine.resize(life.job, (), {("worker", 1)}, "yields", LATER))
    life.keep(job_machine.evict(life.job, RIVAL, "needed", LATER))
    assert len(next_calls(life.job).stop) == 2
    life.see(0, TaskStatus.FAILED)
    assert life.job.status is JobStatus.PREEMPTING
    life.see(1, TaskStatus.FAILED)
    assert life.job.status is JobStatus.INIT


# Labels and priority.


def test_priority_changes_only_while_waiting() -> None:
    waiting = job_machine.update(a_job(), priority=Priority.HIGH, labels={}, annotations={}, now=LATER)
    assert waiting.job.priority is Priority.HIGH
    with pytest.raises(Conflict, match="running"):
        job_machine.update(a_job(status=JobStatus.RUNNING), priority=Priority.LOW, labels={}, annotations={}, now=LATER)


def test_an_empty_label_value_removes_the_label() -> None:
    job = replace(a_job(), labels={"team": "a", "keep": "b"})
    change = job_machine.update(job, priority=None, labels={"team": "", "new": "c"}, annotations={}, now=LATER)
    assert change.job.labels == {"keep": "b", "new": "c"}


# Anything, in any order.

happenings = st.lists(
    st.one_of(
        st.tuples(st.just("see"), st.integers(0, 3), st.sampled_from(list(TaskStatus))),
        st.sampled_from(["stop", "evict", "expire", "fail", "admit", "grow", "shrink"]).map(
            lambda what: (what, 0, TaskStatus.PENDING)
        ),
    ),
    max_size=25,
)


def _happen(life: Told, what: str, index: int, status: TaskStatus) -> None:
    job = life.job
    match what:
        case "see":
            if any(task.index == index for task in life.tasks.values()):
                life.see(index, status)
                again = life.see(index, status)
                assert not again.events, "a level told twice is news once"
        case "admit":
            life.admit()
        case "grow":
            free = next(index for index in range(9) if index not in life.workers)
            life.keep(job_machine.resize(job, [Spot(role="worker", index=free, node=NodeName("n"))], (), "", LATER))
        case "shrink":
            if len(life.workers) > 1:
                drop = {("worker", max(life.workers))}
                life.keep(job_machine.resize(job, (), drop, "", LATER, tuple(life.tasks.values())))
        case "stop":
            life.keep(job_machine.stop(job, LATER))
        case "evict":
            life.keep(job_machine.evict(job, RIVAL, "", LATER))
        case "expire":
            life.keep(job_machine.expire(job, LATER))
        case "fail":
            life.keep(job_machine.fail(job, "", LATER))


@given(happenings, st.integers(0, 2), st.booleans(), st.booleans())
def test_any_history_is_a_walk_through_the_table(
    walk: list[tuple[str, int, TaskStatus]], retries: int, is_elastic: bool, comes_back: bool
) -> None:
    """Lost, doubled and reordered news never make an illegal move; an end is final and told exactly once; and a job
    that is not over holds its room as long as one of its tasks runs, and never longer."""
    policy = {"retries": retries, "requeue": comes_back, "deadline_s": 60.0}
    life = elastic(**policy) if is_elastic else told(replicas=2, **policy)
    for what, index, status in walk:
        try:
            _happen(life, what, index, status)
        except Conflict:
            continue  # the move is not in the table, and nothing has changed
        job = life.job
        known = {task_id: life.tasks[task_id].status for task_id in job.task_ids}
        alive = [task for task, state in known.items() if state in (TaskStatus.PENDING, TaskStatus.RUNNING)]
        if job.status is JobStatus.INIT:
            assert not job.task_ids
        elif job.status in HOLDING:
            assert alive, f"{job.status}, and nothing of it runs any more"
        assert not (set(next_calls(job).stop) - job.task_ids)
    assert life.events.count(EventKind.JOB_FINISHED) == (1 if life.job.is_terminal else 0)


def test_the_member_of_an_elastic_worker_beyond_the_first_ones_is_known() -> None:
    spec = JobSpec(members=(Member(role="ps"), a_member()), elastic=Elasticity(least=1, most=4))
    assert spec.member_at("worker", 3) is spec.members[1]
