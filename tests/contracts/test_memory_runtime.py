"""The scripted runtime of the stories keeps the same promises as the real one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from paddleflow.adapters.memory.runtime import MemoryRuntime
from paddleflow.domain.clusters import Node
from paddleflow.domain.errors import Unavailable
from paddleflow.domain.ids import DEFAULT_CLUSTER, JobId, NodeName, TaskId
from paddleflow.domain.jobs import TaskLaunch, TaskStatus
from paddleflow.domain.resources import Resources
from tests.contracts.runtime_contract import ENDED, JOB, LOG_CAP, TASK, RuntimeContract, RuntimeRig, told
from tests.contracts.runtime_teams_contract import TeamContract

NODE = Node(name=NodeName("node-0"), cluster=DEFAULT_CLUSTER, capacity=Resources.of(cpu="8", memory="16Gi"))

PORT_ROOM = 24


class TickingClock:
    """Every look at it is one second later."""

    def __init__(self) -> None:
        self._now = datetime(2030, 1, 1, tzinfo=UTC)

    def now(self) -> datetime:
        self._now += timedelta(seconds=1)
        return self._now


class MemoryRig(RuntimeRig):
    def __init__(self, runtime: MemoryRuntime) -> None:
        self.runtime = self.script = runtime
        self.port_room = PORT_ROOM

    def make_launch(self, job: JobId, task: TaskId) -> TaskLaunch:
        return TaskLaunch(task_id=task, job_id=job, node=NODE.name, argv=("run",), env={})

    def end(self, task: TaskId, exit_code: int) -> None:
        self.script.finish(task, exit_code)

    def write(self, task: TaskId, text: str) -> None:
        self.script.write_log(task, text.encode())

    def times_started(self, task: TaskId) -> int:
        return sum(launch.task_id == task for launch in self.script.launches)

    def membership_seen_by(self, task: TaskId) -> tuple[int, list[str]] | None:
        (job,) = {launch.job_id for launch in self.script.launches if launch.task_id == task}
        seen = self.script.published.get(job)
        return None if seen is None else (seen.generation, [placement.task_id for placement, _ in seen.tasks])


@pytest.fixture
def rig() -> MemoryRig:
    ports = range(20000, 20000 + PORT_ROOM)
    return MemoryRig(MemoryRuntime(clock=TickingClock(), nodes=[NODE], port_range=ports, log_cap_bytes=LOG_CAP))


class TestMemoryRuntime(RuntimeContract):
    pass


class TestMemoryRuntimeWithTeams(TeamContract):
    pass


def test_a_stubborn_task_ends_when_the_story_says_so() -> None:
    rig = MemoryRig(MemoryRuntime(clock=TickingClock(), nodes=[NODE], obeys_stop=False))
    rig.runtime.launch(rig.make_launch(JOB, TASK))
    rig.runtime.stop(JOB, [TASK], grace_s=10)
    assert [r.status for r in rig.runtime.survey()] == [TaskStatus.RUNNING]
    rig.script.finish(TASK, 0)
    report = told(rig.runtime, TASK, *ENDED)
    assert (report.status, report.message) == (TaskStatus.FAILED, "stopped by request, exit code 0")


def test_a_launch_can_be_made_to_fail_once() -> None:
    rig = MemoryRig(MemoryRuntime(clock=TickingClock(), nodes=[NODE]))
    rig.script.fail_next_launch(Unavailable("not now"))
    with pytest.raises(Unavailable, match="not now"):
        rig.runtime.launch(rig.make_launch(JOB, TASK))
    rig.runtime.launch(rig.make_launch(JOB, TASK))
    assert rig.times_started(TASK) == 1
