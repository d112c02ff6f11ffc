from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddleflow.domain import job_machine
from paddleflow.domain.converge import RuntimeCall, next_call
from paddleflow.domain.errors import Conflict
from paddleflow.domain.events import EventKind
from paddleflow.domain.ids import NodeName
from paddleflow.domain.job_machine import MOVES, Change
from paddleflow.domain.jobs import TERMINAL, Job, JobStatus, Placement, Priority, Task, TaskReport, TaskStatus
from paddleflow.testing.builders import THEN, a_job, a_member

LATER = THEN + timedelta(seconds=30)


def placed(job: Job) -> tuple[Placement, ...]:
    return tuple(Placement(task_id=task_id, node=NodeName("node-1")) for task_id, _, _ in job.spec.task_slots(job.id))


def admitted(replicas: int = 1) -> tuple[Job, tuple[Task, ...]]:
    change = job_machine.admit(job := a_job(member=a_member(replicas=replicas)), placed(job), "note", THEN)
    return change.job, change.tasks


def told(task: Task, status: TaskStatus, message: str = "") -> TaskReport:
    return TaskReport(task_id=task.id, job_id=task.job_id, status=status, message=message, started_at=THEN)


def kinds(change: Change) -> list[EventKind]:
    return [event.kind for event in change.events]


def test_every_status_is_in_the_table_and_terminal_ones_lead_nowhere() -> None:
    waiting_for_the_scheduler = {JobStatus.PREEMPTING}
    assert set(MOVES) | waiting_for_the_scheduler == set(JobStatus)
    assert all(not MOVES[status] for status in TERMINAL)


@pytest.mark.parametrize("status", [status for status in MOVES if status is not JobStatus.INIT])
def test_only_a_waiting_job_is_admitted(status: JobStatus) -> None:
    job = a_job(status=status)
    with pytest.raises(Conflict, match=str(status)):
        job_machine.admit(job, placed(job), "", THEN)


def test_admission_places_every_task_and_tells() -> None:
    job = a_job()
    change = job_machine.admit(job, placed(job), "host", LATER)
    assert (change.job.status, change.job.message) == (JobStatus.PENDING, "host")
    assert [task.node for task in change.tasks] == ["node-1"]
    assert kinds(change) == [EventKind.JOB_ADMITTED]
    assert next_call(change.job) is RuntimeCall.LAUNCH


@pytest.mark.parametrize(
    ("start", "end", "told_by"),
    [
        (JobStatus.INIT, JobStatus.TERMINATED, [EventKind.JOB_FINISHED]),
        (JobStatus.PENDING, JobStatus.TERMINATING, [EventKind.JOB_STOPPING]),
        (JobStatus.RUNNING, JobStatus.TERMINATING, [EventKind.JOB_STOPPING]),
        (JobStatus.TERMINATING, JobStatus.TERMINATING, []),
    ],
)
def test_stop(start: JobStatus, end: JobStatus, told_by: list[EventKind]) -> None:
    change = job_machine.stop(a_job(status=start), LATER)
    assert change.job.status is end
    assert kinds(change) == told_by
    assert (change.job.finished_at is not None) == (end in TERMINAL)


@pytest.mark.parametrize("status", sorted(TERMINAL))
def test_what_has_ended_cannot_be_stopped(status: JobStatus) -> None:
    with pytest.raises(Conflict):
        job_machine.stop(a_job(status=status), LATER)


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
    job, tasks = admitted()
    change = job_machine.report(job, tasks, told(tasks[0], seen, "exit code 3"), LATER)
    assert change.job.status is end
    assert kinds(change) == told_by
    if end in TERMINAL:
        assert change.job.activated_at == THEN, "a job that ended before it was seen running did start"
        assert change.job.message == "exit code 3"


def test_a_job_runs_when_all_of_its_tasks_run_and_fails_with_the_first() -> None:
    job, tasks = admitted(replicas=2)
    first = job_machine.report(job, tasks, told(tasks[0], TaskStatus.RUNNING), LATER)
    assert first.job.status is JobStatus.PENDING
    both = job_machine.report(first.job, (first.tasks[0], tasks[1]), told(tasks[1], TaskStatus.RUNNING), LATER)
    assert both.job.status is JobStatus.RUNNING
    ended = job_machine.report(both.job, (first.tasks[0], both.tasks[0]), told(tasks[0], TaskStatus.FAILED), LATER)
    assert ended.job.status is JobStatus.FAILED


@pytest.mark.parametrize("end", [TaskStatus.SUCCEEDED, TaskStatus.FAILED])
def test_a_job_being_stopped_ends_as_terminated_however_its_task_ended(end: TaskStatus) -> None:
    job, tasks = admitted()
    stopping = job_machine.stop(job, LATER).job
    assert next_call(stopping) is RuntimeCall.STOP
    ignored = job_machine.report(stopping, tasks, told(tasks[0], TaskStatus.RUNNING), LATER)
    assert ignored.job.status is JobStatus.TERMINATING
    change = job_machine.report(ignored.job, ignored.tasks, told(tasks[0], end, "stopped by request"), LATER)
    assert (change.job.status, change.job.message) == (JobStatus.TERMINATED, "stopped by request")
    assert next_call(change.job) is None


def test_priority_changes_only_while_waiting() -> None:
    waiting = job_machine.update(a_job(), priority=Priority.HIGH, labels={}, annotations={}, now=LATER)
    assert waiting.job.priority is Priority.HIGH
    with pytest.raises(Conflict, match="running"):
        job_machine.update(a_job(status=JobStatus.RUNNING), priority=Priority.LOW, labels={}, annotations={}, now=LATER)


def test_an_empty_label_value_removes_the_label() -> None:
    job = replace(a_job(), labels={"team": "a", "keep": "b"})
    change = job_machine.update(job, priority=None, labels={"team": "", "new": "c"}, annotations={}, now=LATER)
    assert change.job.labels == {"keep": "b", "new": "c"}


reports = st.lists(st.tuples(st.integers(0, 1), st.sampled_from(list(TaskStatus))), max_size=12)


@given(reports, st.integers(0, 12))
def test_any_order_of_reports_is_a_walk_through_the_table(walk: list[tuple[int, TaskStatus]], stop_at: int) -> None:
    """Lost, doubled and reordered reports never make an illegal move, and an end is final and told exactly once."""
    job, tasks = admitted(replicas=2)
    known = {task.id: task for task in tasks}
    ends = 0
    for step, (index, status) in enumerate(walk):
        before = job
        if step == stop_at and not job.is_terminal:
            job = job_machine.stop(job, LATER).job
            before = job
        change = job_machine.report(job, tuple(known.values()), told(tasks[index], status), LATER)
        job = change.job
        known.update({task.id: task for task in change.tasks})
        assert job.status is before.status or job.status in MOVES[before.status]
        ends += kinds(change).count(EventKind.JOB_FINISHED)
        again = job_machine.report(job, tuple(known.values()), told(tasks[index], status), LATER)
        assert not again.events, "a level told twice is news once"
    assert ends == (1 if job.is_terminal else 0)
