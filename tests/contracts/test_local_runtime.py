"""The local runtime, with real processes, keeps the promises of the Runtime port."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddleflow.adapters.local.runtime import LocalRuntime, LocalRuntimeOptions
from paddleflow.domain.ids import JobId, TaskId
from paddleflow.domain.jobs import TaskLaunch
from tests.contracts.runtime_contract import LOG_CAP, RuntimeContract, RuntimeRig, end_all
from tests.contracts.runtime_teams_contract import TeamContract
from tests.port_blocks import free_block
from tests.waiting import wait_for

# Waits for lines on a named pipe: "exit N" ends it, "membership F" copies what it sees to F, anything else is written
# out. Each start leaves a line.
PROGRAM = """
echo started >> "$STARTS"
exec 3<>"$PIPE"
while read -r word rest <&3; do
  case "$word" in
    exit) exit "$rest" ;;
    membership) cat "$PF_MEMBERSHIP_FILE" > "$rest.part" 2> /dev/null; mv "$rest.part" "$rest" ;;
    *) echo "$rest" ;;
  esac
done
"""


class LocalRig(RuntimeRig):
    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._held: list[int] = []
        # Ports of its own: to look at a port is to have it for a moment.
        ports = free_block(24)
        self.port_room = len(ports)
        self.runtime: LocalRuntime = LocalRuntime(
            LocalRuntimeOptions(root=directory / "root", port_range=ports, log_cap_bytes=LOG_CAP)
        )

    def make_launch(self, job: JobId, task: TaskId) -> TaskLaunch:
        env = {"PIPE": str(self._pipe(task)), "STARTS": str(self._starts(task))}
        argv = ("/bin/sh", "-c", PROGRAM)
        return TaskLaunch(task_id=task, job_id=job, node=self.runtime.nodes()[0].name, argv=argv, env=env)

    def end(self, task: TaskId, exit_code: int) -> None:
        self._say(task, f"exit {exit_code}\n")

    def write(self, task: TaskId, text: str) -> None:
        self._say(task, f"say {text}")

    def times_started(self, task: TaskId) -> int:
        starts = self._starts(task)
        return len(starts.read_text().splitlines()) if starts.exists() else 0

    def membership_seen_by(self, task: TaskId) -> tuple[int, list[str]] | None:
        answer = self._directory / f"{_safe(task)}.membership"
        self._say(task, f"membership {answer}\n")
        wait_for(answer.exists, "the answer of the task")
        text = answer.read_text()
        answer.unlink()
        if not text:
            return None
        document = json.loads(text)
        return document["generation"], [each["id"] for each in document["tasks"]]

    def _say(self, task: TaskId, line: str) -> None:
        fd = os.open(self._pipe(task), os.O_RDWR)
        try:
            os.write(fd, line.encode())
            # Held open until the task has it: a pipe nobody has open forgets what was written.
            self._held.append(os.dup(fd))
        finally:
            os.close(fd)

    def _pipe(self, task: TaskId) -> Path:
        pipe = self._directory / f"{_safe(task)}.pipe"
        if not pipe.exists():
            os.mkfifo(pipe)
        return pipe

    def _starts(self, task: TaskId) -> Path:
        return self._directory / f"{_safe(task)}.starts"

    def close(self) -> None:
        end_all(self.runtime)
        self.runtime.close()
        while self._held:
            os.close(self._held.pop())
        shutil.rmtree(self._directory / "root")


def _safe(task: str) -> str:
    return task.encode().hex()[:100]


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[LocalRig]:
    rig = LocalRig(tmp_path)
    yield rig
    rig.close()


class TestLocalRuntime(RuntimeContract):
    pass


class TestLocalRuntimeWithTeams(TeamContract):
    pass
