"""What every Runtime must do, told as tests. Subclass it and give ``rig``.

A rig hides the only things that differ: how a task is made to end, to write, and to tell what it sees.
"""

from __future__ import annotations

import abc
import threading
from functools import partial

import pytest

from paddleflow.domain.errors import Conflict, Invalid, NotFound
from paddleflow.domain.ids import JobId, NodeName, TaskId, task_id
from paddleflow.domain.jobs import TaskLaunch, TaskReport, TaskStatus, Usage
from paddleflow.ports.runtime import LogChunk, Runtime
from tests.waiting import DEADLINE_S, wait_for

ENDED = (TaskStatus.SUCCEEDED, TaskStatus.FAILED)
LOG_CAP = 4000
"""Bytes that a rig's runtime keeps of a log."""
JOB = JobId("job-0123456789abcdef")
TASK = task_id(JOB, "worker", 0)


class RuntimeRig(abc.ABC):
    runtime: Runtime
    port_room: int
    """How many ports it can give at most."""

    @abc.abstractmethod
    def make_launch(self, job: JobId, task: TaskId) -> TaskLaunch:
        """A task that runs until it is told to end."""

    @abc.abstractmethod
    def end(self, task: TaskId, exit_code: int) -> None:
        """Make a running task end by itself."""

    @abc.abstractmethod
    def write(self, task: TaskId, text: str) -> None:
        """Make a running task write to its output."""

    @abc.abstractmethod
    def times_started(self, task: TaskId) -> int:
        """How often the task has really been started."""

    @abc.abstractmethod
    def membership_seen_by(self, task: TaskId) -> tuple[int, list[str]] | None:
        """Generation and task ids as a running task reads them now; None: nothing is published."""


def told(runtime: Runtime, task: TaskId, *statuses: TaskStatus) -> TaskReport:
    """Follow the reports, from a survey on, until the task has one of the statuses."""
    latest = {report.task_id: report for report in runtime.survey()}
    while task not in latest or latest[task].status not in statuses:
        reports = runtime.wait_reports(DEADLINE_S)
        assert reports, f"{task} is {latest.get(task)}, not {statuses}, and nothing more was told"
        latest |= {report.task_id: report for report in reports}
    return latest[task]


def end_all(runtime: Runtime) -> None:
    """Whatever a test has left running."""
    for report in runtime.survey():
        runtime.stop(report.job_id, [report.task_id], grace_s=0)
    wait_for(lambda: all(report.status in ENDED for report in runtime.survey()), "the end of all tasks")


class RuntimeContract(abc.ABC):
    """Subclasses give a fixture ``rig`` that yields a RuntimeRig."""

    def start(self, rig: RuntimeRig, task: TaskId = TASK, job: JobId = JOB) -> TaskReport:
        rig.runtime.launch(rig.make_launch(job, task))
        return told(rig.runtime, task, TaskStatus.RUNNING)

    def test_a_launched_task_runs_and_its_start_is_told(self, rig: RuntimeRig) -> None:
        report = self.start(rig)
        assert report.job_id == JOB
        assert report.started_at is not None and report.finished_at is None
        assert report.exit_code is None

    @pytest.mark.parametrize(
        ("exit_code", "status"), [(0, TaskStatus.SUCCEEDED), (3, TaskStatus.FAILED), (255, TaskStatus.FAILED)]
    )
    def test_the_exit_code_decides(self, rig: RuntimeRig, exit_code: int, status: TaskStatus) -> None:
        self.start(rig)
        rig.end(TASK, exit_code)
        report = told(rig.runtime, TASK, *ENDED)
        assert (report.status, report.exit_code, report.signal) == (status, exit_code, None)
        assert report.message == f"exit code {exit_code}"
        assert report.started_at is not None and report.finished_at is not None
        assert report.started_at <= report.finished_at

    def test_launching_twice_is_one_task(self, rig: RuntimeRig) -> None:
        self.start(rig)
        rig.runtime.launch(rig.make_launch(JOB, TASK))
        rig.end(TASK, 0)
        told(rig.runtime, TASK, *ENDED)
        rig.runtime.launch(rig.make_launch(JOB, TASK))
        assert [r.status for r in rig.runtime.survey()] == [TaskStatus.SUCCEEDED]
        assert rig.times_started(TASK) == 1

    def test_launching_again_after_the_end_was_acknowledged_is_nothing(self, rig: RuntimeRig) -> None:
        self.start(rig)
        rig.end(TASK, 0)
        told(rig.runtime, TASK, *ENDED)
        rig.runtime.acknowledge(TASK)
        rig.runtime.launch(rig.make_launch(JOB, TASK))
        assert rig.runtime.survey() == []
        assert rig.times_started(TASK) == 1

    def test_concurrent_launches_are_one_task(self, rig: RuntimeRig) -> None:
        threads = [threading.Thread(target=rig.runtime.launch, args=(rig.make_launch(JOB, TASK),)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        told(rig.runtime, TASK, TaskStatus.RUNNING)
        rig.end(TASK, 0)
        told(rig.runtime, TASK, *ENDED)
        assert rig.times_started(TASK) == 1

    def test_a_stopped_task_has_failed_by_request(self, rig: RuntimeRig) -> None:
        self.start(rig)
        rig.runtime.stop(JOB, [TASK], grace_s=10)
        report = told(rig.runtime, TASK, *ENDED)
        assert report.status is TaskStatus.FAILED
        assert report.message.startswith("stopped by request")
        assert report.finished_at is not None

    def test_stopping_again_and_stopping_an_ended_task_change_nothing(self, rig: RuntimeRig) -> None:
        self.start(rig)
        rig.end(TASK, 0)
        before = told(rig.runtime, TASK, *ENDED)
        rig.runtime.stop(JOB, [TASK, TASK], grace_s=0)
        rig.runtime.stop(JOB, [TASK], grace_s=0)
        assert rig.runtime.survey() == [before]

    def test_a_task_stopped_before_its_launch_never_runs_and_has_ended(self, rig: RuntimeRig) -> None:
        rig.runtime.stop(JOB, [TASK], grace_s=10)
        report = told(rig.runtime, TASK, *ENDED)
        assert report.status is TaskStatus.FAILED
        assert report.started_at is None and report.finished_at is not None
        rig.runtime.launch(rig.make_launch(JOB, TASK))
        assert rig.runtime.survey() == [report]
        assert rig.times_started(TASK) == 0

    def test_the_end_of_a_tombstone_is_also_a_report(self, rig: RuntimeRig) -> None:
        rig.runtime.stop(JOB, [TASK], grace_s=10)
        assert [r.status for r in rig.runtime.wait_reports(DEADLINE_S)] == [TaskStatus.FAILED]

    def test_survey_tells_an_end_until_it_is_acknowledged(self, rig: RuntimeRig) -> None:
        other = task_id(JOB, "worker", 1)
        self.start(rig)
        self.start(rig, other)
        rig.end(TASK, 0)
        told(rig.runtime, TASK, *ENDED)
        assert {r.task_id for r in rig.runtime.survey()} == {TASK, other}
        rig.runtime.acknowledge(TASK)
        rig.runtime.acknowledge(TASK)
        assert {r.task_id for r in rig.runtime.survey()} == {other}
        assert rig.runtime.usage(TASK) is not None
        assert rig.runtime.read_log(JOB, TASK, 0, 10).start == 0

    def test_a_running_task_cannot_be_acknowledged_away(self, rig: RuntimeRig) -> None:
        self.start(rig)
        rig.runtime.acknowledge(TASK)
        rig.runtime.acknowledge(TaskId("nobody-knows-0"))
        assert [r.task_id for r in rig.runtime.survey()] == [TASK]

    def test_remove_forgets_an_ended_job(self, rig: RuntimeRig) -> None:
        self.start(rig)
        rig.end(TASK, 0)
        told(rig.runtime, TASK, *ENDED)
        rig.runtime.remove(JOB)
        rig.runtime.remove(JOB)
        assert rig.runtime.survey() == []
        assert rig.runtime.usage(TASK) is None
        with pytest.raises(NotFound):
            rig.runtime.read_log(JOB, TASK, 0, 10)

    def test_remove_refuses_while_a_task_lives(self, rig: RuntimeRig) -> None:
        self.start(rig)
        with pytest.raises(Conflict):
            rig.runtime.remove(JOB)
        assert [r.status for r in rig.runtime.survey()] == [TaskStatus.RUNNING]

    def test_removing_one_job_leaves_others(self, rig: RuntimeRig) -> None:
        other_job = JobId(f"{JOB}-x")
        other = task_id(other_job, "worker", 0)
        self.start(rig)
        self.start(rig, other, other_job)
        rig.end(TASK, 0)
        told(rig.runtime, TASK, *ENDED)
        rig.runtime.remove(JOB)
        assert [r.task_id for r in rig.runtime.survey()] == [other]

    def test_wake_ends_the_waiting(self, rig: RuntimeRig) -> None:
        answers: list[list[TaskReport]] = []
        waiter = threading.Thread(target=lambda: answers.append(rig.runtime.wait_reports(10 * DEADLINE_S)), daemon=True)
        waiter.start()
        rig.runtime.wake()
        waiter.join(DEADLINE_S)
        assert not waiter.is_alive()
        assert answers == [[]]

    def test_waiting_for_nothing_returns_nothing(self, rig: RuntimeRig) -> None:
        assert rig.runtime.wait_reports(0) == []

    def test_the_log_can_be_read_in_parts(self, rig: RuntimeRig) -> None:
        self.start(rig)
        rig.write(TASK, "hello world\n")
        read = rig.runtime.read_log
        whole = wait_for(lambda: _whole(read(JOB, TASK, 0, 1000), 12), "the whole log")
        assert whole == LogChunk(content=b"hello world\n", start=0, size=12)
        assert read(JOB, TASK, 6, 3) == LogChunk(content=b"wor", start=6, size=12)
        assert read(JOB, TASK, -6, 100) == LogChunk(content=b"world\n", start=6, size=12)
        assert read(JOB, TASK, -100, 5) == LogChunk(content=b"hello", start=0, size=12)
        assert read(JOB, TASK, 99, 5) == LogChunk(content=b"", start=12, size=12)
        assert read(JOB, TASK, 0, 0) == LogChunk(content=b"", start=0, size=12)

    def test_a_log_over_its_cap_keeps_its_beginning_and_its_end(self, rig: RuntimeRig) -> None:
        self.start(rig)
        lines = [f"line {number:05}\n" for number in range(2000)]
        for line in lines:
            rig.write(TASK, line)
        written = "".join(lines).encode()
        read = partial(rig.runtime.read_log, JOB, TASK)
        last = wait_for(lambda: _whole(read(-11, 100), len(written)), "the whole log")
        assert last.content == b"line 01999\n"
        ((begin, end),) = last.gaps
        assert LOG_CAP // 4 < begin < end < len(written) - LOG_CAP // 5
        assert read(0, 1 << 20).content == written[:begin]
        after = LogChunk(content=written[end:], start=end, size=len(written), gaps=last.gaps)
        for inside in (begin, begin + 1, end - 1, begin - len(written), end):
            assert read(inside, 1 << 20) == after
        assert read(begin - 1, 1 << 20).content == written[begin - 1 : begin]

    def test_the_log_of_an_unknown_task_is_not_found(self, rig: RuntimeRig) -> None:
        with pytest.raises(NotFound):
            rig.runtime.read_log(JOB, TASK, 0, 10)

    def test_usage_is_known_while_and_after_a_task_runs(self, rig: RuntimeRig) -> None:
        assert rig.runtime.usage(TASK) is None
        self.start(rig)
        assert isinstance(rig.runtime.usage(TASK), Usage)
        rig.end(TASK, 0)
        report = told(rig.runtime, TASK, *ENDED)
        assert rig.runtime.usage(TASK) == report.usage
        assert report.usage.memory_bytes == 0

    def test_an_unknown_node_is_invalid_and_leaves_no_task(self, rig: RuntimeRig) -> None:
        launch = rig.make_launch(JOB, TASK)
        elsewhere = TaskLaunch(
            task_id=TASK, job_id=JOB, node=NodeName("no-such-node"), argv=launch.argv, env=launch.env
        )
        with pytest.raises(Invalid, match="no-such-node"):
            rig.runtime.launch(elsewhere)
        assert rig.runtime.survey() == []

    @pytest.mark.parametrize("bad", ["../x", "/etc", ".hidden", "", "a/b", "a\x00b", "x" * 300])
    def test_ids_that_could_be_paths_are_refused(self, rig: RuntimeRig, bad: str) -> None:
        with pytest.raises(Invalid):
            rig.runtime.launch(rig.make_launch(JobId(bad), TaskId(f"{bad}-worker-0")))
        with pytest.raises(Invalid):
            rig.runtime.stop(JobId(bad), [], 0)
        with pytest.raises(Invalid):
            rig.runtime.remove(JobId(bad))
        with pytest.raises(Invalid):
            rig.runtime.read_log(JobId(bad), TASK, 0, 1)
        assert rig.runtime.usage(TaskId(bad)) is None

    def test_there_is_a_node_with_capacity(self, rig: RuntimeRig) -> None:
        nodes = rig.runtime.nodes()
        assert nodes and all(node.capacity.cpu_milli > 0 and node.capacity.memory_bytes > 0 for node in nodes)
        assert rig.make_launch(JOB, TASK).node in {node.name for node in nodes}


def _whole(chunk: LogChunk, size: int) -> LogChunk | None:
    return chunk if chunk.size == size else None
