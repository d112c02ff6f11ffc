"""Mounter: lets go of mounts that no job of this node needs any more."""

from __future__ import annotations

from collections.abc import Sequence

from paddleflow.domain.events import Event, EventKind
from paddleflow.domain.ids import ClusterName
from paddleflow.domain.jobs import HOLDING
from paddleflow.engine.job_mounts import JobMounts
from paddleflow.ports.store import Store

_AGAIN_S = 10.0


class Mounter:
    name = "mounter"
    kinds = frozenset({EventKind.JOB_FINISHED})

    def __init__(self, *, cluster: ClusterName, store: Store, mounts: JobMounts) -> None:
        self._cluster = cluster
        self._store = store
        self._mounts = mounts

    def resync(self) -> None:
        self._let_go()

    def react(self, events: Sequence[Event]) -> None:
        self._let_go()

    def tick(self) -> float | None:
        self._let_go()
        return _AGAIN_S

    def _let_go(self) -> None:
        with self._store.read() as view:
            jobs = tuple(job for job in view.jobs.in_status(HOLDING) if job.cluster == self._cluster)
        self._mounts.keep(jobs)
