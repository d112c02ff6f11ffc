"""The local runtime, with real processes, keeps the promises of the Runtime port."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddleflow.adapters.local.runtime import LocalRuntime, LocalRuntimeOptions
from paddleflow.domain.ids import JobId, TaskId
from paddleflow.domain.jobs import TaskLaunch, TaskStatus
from tests.contracts.runtime_contract import RuntimeContract, RuntimeRig

# Waits for lines on a named pipe: "exit N" ends it, anything else is written out. Each start leaves a line.
PROGRAM = """
echo started >> "$STARTS"
exec 3<>"$PIPE"
while read -r word rest <&3; do
  if [ "$word" = exit ]; then exit "$rest"; fi
  echo "$rest"
done
"""


class LocalRig(RuntimeRig):
    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._held: list[int] = []
        self.runtime: LocalRuntime = LocalRuntime(LocalRuntimeOptions(root=directory / "root"))

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
        for report in self.runtime.survey():
            self.runtime.stop(report.job_id, [report.task_id], grace_s=0)
        while any(r.status in (TaskStatus.PENDING, TaskStatus.RUNNING) for r in self.runtime.survey()):
            self.runtime.wait_reports(1)
        self.runtime.close()
        while self._held:
            os.close(self._held.pop())
        shutil.rmtree(self._directory / "root")


def _safe(task: str) -> str:
    return task.encode().hex()[:100]


class TestLocalRuntime(RuntimeContract):
    @pytest.fixture
    def rig(self, tmp_path: Path) -> Iterator[LocalRig]:
        rig = LocalRig(tmp_path)
        yield rig
        rig.close()
