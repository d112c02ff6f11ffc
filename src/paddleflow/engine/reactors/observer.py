"""Observer: what a runtime sees becomes ReportTask and ReportNodes commands. One thread a runtime.

Order at start matters: the runtime is surveyed before anything is launched, so a job that the store believes to run and
the runtime has never heard of is lost for certain and is said to be.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from datetime import timedelta

from paddleflow.domain.commands import ReportNodes, ReportTask
from paddleflow.domain.errors import PaddleFlowError
from paddleflow.domain.ids import ClusterName, TaskId
from paddleflow.domain.jobs import HOLDING, JobStatus, TaskReport, TaskStatus
from paddleflow.domain.users import PLATFORM
from paddleflow.engine.intake import Intake
from paddleflow.engine.lease import Lease
from paddleflow.engine.reactors.loop import release_quietly
from paddleflow.ports.clock import Clock
from paddleflow.ports.runtime import Runtime
from paddleflow.ports.store import Store

log = logging.getLogger(__name__)

_WAIT_S = 5.0
_SURVEY_EVERY = timedelta(seconds=60)
_BATCH = 200
"""Reports stored in one transaction: enough to be cheap, few enough that other writers do not wait."""
_ENDED = (TaskStatus.SUCCEEDED, TaskStatus.FAILED)


class Observer:
    def __init__(
        self, *, cluster: ClusterName, runtime: Runtime, store: Store, intake: Intake, clock: Clock, lease: Lease
    ) -> None:
        self._cluster = cluster
        self._runtime = runtime
        self._store = store
        self._intake = intake
        self._clock = clock
        self._lease = lease
        self._attached = False
        """The store agrees with the runtime, and only differences need telling."""
        self._next_survey = clock.now()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"observer-{cluster}", daemon=True)

    def start(self) -> None:
        """Returns when the store agrees with what the runtime sees now, if this server is the one to tell."""
        self.attach()
        self._thread.start()

    def stop(self, timeout_s: float = 10.0) -> None:
        self._stopping.set()
        self._runtime.wake()
        self._thread.join(timeout_s)

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                if not self._attached and not self.attach():
                    self._stopping.wait(_WAIT_S)
                    continue
                self.observe(_WAIT_S)
            except PaddleFlowError as error:
                log.warning("observer of %s: %s; looking again", self._cluster, error)
                self._attached = False
                self._stopping.wait(1.0)
            except Exception:
                log.exception("observer of %s met an unexpected error; looking again", self._cluster)
                self._attached = False
                self._stopping.wait(5.0)
        release_quietly(self._lease)

    def attach(self) -> bool:
        """Bring the store in line with the runtime, once; False when another server is the one to do it."""
        if not self._lease.hold():
            return False
        self._report_nodes()
        reports = self._runtime.survey()
        self._report(reports)
        self._report_lost({report.task_id for report in reports})
        self._next_survey = self._clock.now() + _SURVEY_EVERY
        self._attached = True
        return True

    def observe(self, wait_s: float) -> None:
        """Wait for changes, tell them; now and then look at everything."""
        self._report(self._runtime.wait_reports(wait_s))
        self._attached = self._lease.hold()
        if self._attached and self._clock.now() >= self._next_survey:
            self._next_survey = self._clock.now() + _SURVEY_EVERY
            self._report_nodes()
            self._report(self._runtime.survey())

    def _report_lost(self, seen: set[TaskId]) -> None:
        with self._store.read() as view:
            # A pending job may not have been launched yet; the launcher tells its runtime again.
            begun = [job for job in view.jobs.in_status(HOLDING - {JobStatus.PENDING}) if job.cluster == self._cluster]
            tasks = [
                task
                for job in begun
                for task in view.jobs.tasks(job.id)
                if task.id in job.task_ids and task.status is not TaskStatus.PENDING
            ]
        self._report(
            [
                TaskReport(
                    task_id=task.id,
                    job_id=task.job_id,
                    status=TaskStatus.FAILED,
                    message="lost: its runtime does not know this task any more",
                    started_at=task.started_at,
                    finished_at=self._clock.now(),
                )
                for task in tasks
                if task.id not in seen and task.status not in _ENDED
            ]
        )

    def _report(self, reports: Sequence[TaskReport]) -> None:
        """All in one transaction; the runtime may forget an end once it is stored."""
        for start in range(0, len(reports), _BATCH):
            batch = reports[start : start + _BATCH]
            answers = self._intake.submit_together([ReportTask(report=report) for report in batch], PLATFORM)
            for report, answer in zip(batch, answers, strict=True):
                self._settle(report, is_known=answer is None or bool(answer["known"]))

    def _settle(self, report: TaskReport, *, is_known: bool) -> None:
        if report.status in _ENDED:
            self._runtime.acknowledge(report.task_id)
            if not is_known:
                self._runtime.remove(report.job_id)
        elif not is_known:
            log.warning("task %s runs but its job does not exist; stopping it", report.task_id)
            self._runtime.stop(report.job_id, [report.task_id], 0.0)

    def _report_nodes(self) -> None:
        self._intake.submit(ReportNodes(cluster=self._cluster, nodes=tuple(self._runtime.nodes())), PLATFORM)
