"""A real server that kills itself with SIGKILL at a chosen moment of a job's or a run's life.

It is the server users run (the same wiring, store, runtime and HTTP), with one seam wrapped from outside: the moment is
either an event just committed, or a call to the runtime just made, or a transaction just about to commit;
``after-commit:RunAdvanced@3`` is the third of its kind.

Usage: python killable_server.py STATE_DIR PORT MOMENT
"""

from __future__ import annotations

import os
import signal
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from paddleflow.adapters.local.runtime import LocalRuntime
from paddleflow.adapters.sql.store import SqlStore
from paddleflow.domain.events import Event
from paddleflow.domain.ids import DEFAULT_CLUSTER, JobId, TaskId
from paddleflow.domain.jobs import TaskLaunch, TaskReport
from paddleflow.ports.store import UnitOfWork
from paddleflow.settings import Settings
from paddleflow.wiring import platform, serve
from paddleflow.wiring.server_files import EveryonesFiles


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class DyingRuntime(LocalRuntime):
    """Dies around the calls that touch the world."""

    moment = ""

    def launch(self, launch: TaskLaunch) -> None:
        if self.moment == "before-launch":
            die()
        super().launch(launch)
        if self.moment == "after-launch":
            die()

    def stop(self, job_id: JobId, task_ids: Sequence[TaskId], grace_s: float) -> None:
        if self.moment == "before-stop":
            die()
        super().stop(job_id, task_ids, grace_s)
        if self.moment == "after-stop":
            die()

    def wait_reports(self, timeout_s: float) -> list[TaskReport]:
        reports = super().wait_reports(timeout_s)
        if self.moment == "report-received" and any(report.finished_at for report in reports):
            die()
        return reports

    def acknowledge(self, task_id: TaskId) -> None:
        if self.moment == "before-acknowledge":
            die()
        super().acknowledge(task_id)


class DyingStore(SqlStore):
    """Dies before or after the commit of a chosen event."""

    moment = ""
    _seen: ClassVar[Counter[str]] = Counter()

    def _has_come(self, place: str, kinds: list[str]) -> bool:
        for kind in kinds:
            self._seen[f"{place}:{kind}"] += 1
            if self.moment in (f"{place}:{kind}", f"{place}:{kind}@{self._seen[f'{place}:{kind}']}"):
                return True
        return False

    @contextmanager
    def write(self) -> Iterator[UnitOfWork]:
        appended: list[str] = []
        with super().write() as uow:
            append = uow.events.append

            def remember(event: Event) -> Event:
                appended.append(event.kind)
                return append(event)

            yield Watched(uow, remember)
            if self._has_come("before-commit", appended):
                die()
        if self._has_come("after-commit", appended):
            die()


class Watched:
    """A unit of work whose appended events are noticed; everything else is its own."""

    def __init__(self, uow: Any, append: Any) -> None:
        self._uow = uow
        self.events = _Appender(uow.events, append)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._uow, name)


class _Appender:
    def __init__(self, events: Any, append: Any) -> None:
        self._events = events
        self.append = append

    def __getattr__(self, name: str) -> Any:
        return getattr(self._events, name)


def connect(settings: Settings, state_dir: Path) -> platform.Outside:
    outside = platform.connect_outside(settings, state_dir)
    outside.store.close()
    store = DyingStore(platform.database_url(settings, state_dir))
    return replace(
        outside,
        store=store,
        files=EveryonesFiles(store, outside.identity),
        runtimes={DEFAULT_CLUSTER: DyingRuntime(platform.local_options(settings, state_dir))},
    )


def main() -> int:
    state_dir, port, moment = sys.argv[1:4]
    DyingRuntime.moment = DyingStore.moment = moment
    return serve.serve({"state_dir": state_dir, "port": int(port), "log_level": "warning"}, connect=connect)


if __name__ == "__main__":
    sys.exit(main())
