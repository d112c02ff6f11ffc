"""A local runtime on a root of its own, and short words for what the stories about it do."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from paddleflow.adapters.local import layout
from paddleflow.adapters.local.processes import all_processes, find_process
from paddleflow.adapters.local.runtime import LocalRuntime, LocalRuntimeOptions
from paddleflow.domain.ids import JobId, NodeName, TaskId, task_id
from paddleflow.domain.jobs import BindMount, TaskLaunch, TaskReport, TaskStatus
from paddleflow.domain.resources import NOTHING, Resources
from tests.contracts.runtime_contract import ENDED, end_all, told
from tests.waiting import wait_for

PYTHON = os.path.realpath(sys.executable)


class LocalHost:
    def __init__(self, root: Path, **options: Any) -> None:
        """``options`` are those of LocalRuntimeOptions."""
        self.root = root
        self._options = LocalRuntimeOptions(**{"root": root, "log_cap_bytes": 1024 * 1024, **options})
        self.runtime = LocalRuntime(self._options)

    def restart(self) -> None:
        """A new server on the same root."""
        self.runtime.close()
        self.restart_after_close()

    def restart_after_close(self) -> None:
        self.runtime = LocalRuntime(self._options)

    def launch_of(
        self,
        job: str,
        *argv: str,
        index: int = 0,
        node: NodeName | None = None,
        env: Mapping[str, str] | None = None,
        work_dir: str = "",
        mounts: tuple[BindMount, ...] = (),
        limits: Resources = NOTHING,
        gpus: tuple[int, ...] = (),
    ) -> TaskLaunch:
        return TaskLaunch(
            task_id=worker(job, index),
            job_id=JobId(job),
            node=node or self.runtime.nodes()[0].name,
            argv=argv,
            env=env or {},
            work_dir=work_dir,
            mounts=mounts,
            limits=limits,
            gpus=gpus,
        )

    def run(self, launch: TaskLaunch) -> tuple[TaskReport, str]:
        """Launch, wait for the end; the report and the whole log."""
        self.runtime.launch(launch)
        return told(self.runtime, launch.task_id, *ENDED), self.log_of(launch)

    def shell(self, job: str, script: str, **details: object) -> tuple[TaskReport, str]:
        return self.run(self.launch_of(job, "/bin/sh", "-c", script, **details))  # type: ignore[arg-type]

    def start(self, launch: TaskLaunch, until_it_says: str = "") -> None:
        self.runtime.launch(launch)
        told(self.runtime, launch.task_id, TaskStatus.RUNNING)
        wait_for(lambda: until_it_says in self.log_of(launch), f"[{until_it_says}] in the log")

    def end_of(self, job: str, index: int = 0) -> TaskReport:
        return told(self.runtime, worker(job, index), *ENDED)

    def log(self, job: str, index: int = 0) -> str:
        return self.runtime.read_log(JobId(job), worker(job, index), 0, 1 << 30).content.decode()

    def log_of(self, launch: TaskLaunch) -> str:
        return self.runtime.read_log(launch.job_id, launch.task_id, 0, 1 << 30).content.decode()

    def directory(self, job: str) -> Path:
        return Path(layout.task_path(str(self.root), job, worker(job)))

    def supervisor_of(self, job: str) -> int:
        """Its process number: the parent of the task's main process."""
        started = layout.read_document(f"{self.directory(job)}/{layout.STARTED}")
        assert started is not None
        main = find_process(started["pid"])
        assert main is not None
        return main.parent

    def nursery(self) -> int:
        """Its process number."""
        found = self.find_nursery()
        assert found is not None, "there is no nursery"
        return found

    def find_nursery(self) -> int | None:
        """It is the process whose current directory is the root."""
        for process in all_processes():
            try:
                directory = os.readlink(f"/proc/{process.pid}/cwd")
            except (FileNotFoundError, PermissionError, ProcessLookupError):
                continue
            if directory == str(self.root) and process.state != "Z":
                return process.pid
        return None

    def close(self) -> None:
        end_all(self.runtime)
        self.runtime.close()
        # Without its root the nursery ends by itself.
        shutil.rmtree(self.root)


def worker(job: str, index: int = 0) -> TaskId:
    return task_id(JobId(job), "worker", index)


def is_gone(pid: int) -> bool:
    process = find_process(pid)
    return process is None or process.state == "Z"


def kill_now(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: is_gone(pid), f"the end of process {pid}")


@contextmanager
def local_host(root: Path, **options: Any) -> Iterator[LocalHost]:
    host = LocalHost(root, **options)
    try:
        yield host
    finally:
        host.close()
