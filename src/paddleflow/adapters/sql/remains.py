"""What deleted jobs left on their runtimes, and deleted runs on filesystems, until it is cleared away."""

from __future__ import annotations

from sqlalchemy import select

from paddleflow.adapters.sql.pipeline_tables import run_remains
from paddleflow.adapters.sql.session import Session, duplicate
from paddleflow.adapters.sql.statements import Statement, delete_by, insert_plain, select_by
from paddleflow.adapters.sql.tables import remains
from paddleflow.domain.ids import ClusterName, FilesystemId, JobId, RunId

_ADD = insert_plain(remains)
_FIND = select_by(remains, "job_id")
_ALL = Statement(select(remains).order_by(remains.c.job_id))
_DELETE = delete_by(remains, "job_id")


class SqlRemains:
    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    def add(self, job_id: JobId, cluster: ClusterName) -> None:
        if self._session.change(_ADD, {"job_id": job_id, "cluster": cluster}) == 0:
            raise duplicate("remains", job_id)

    def find(self, job_id: JobId) -> ClusterName | None:
        row = self._session.row(_FIND, {"job_id": job_id})
        return None if row is None else ClusterName(row[1])

    def all(self) -> tuple[tuple[JobId, ClusterName], ...]:
        return tuple((JobId(job_id), ClusterName(cluster)) for job_id, cluster in self._session.rows(_ALL, {}))

    def delete(self, job_id: JobId) -> None:
        self._session.change(_DELETE, {"job_id": job_id})


_ADD_RUN = insert_plain(run_remains)
_ALL_RUNS = Statement(select(run_remains).order_by(run_remains.c.run_id))
_DELETE_RUN = delete_by(run_remains, "run_id")


class SqlRunRemains:
    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    def add(self, run_id: RunId, fs_id: FilesystemId, path: str) -> None:
        if self._session.change(_ADD_RUN, {"run_id": run_id, "fs_id": fs_id, "path": path}) == 0:
            raise duplicate("run remains", run_id)

    def all(self) -> tuple[tuple[RunId, FilesystemId, str], ...]:
        rows = self._session.rows(_ALL_RUNS)
        return tuple((RunId(run_id), FilesystemId(fs_id), path) for run_id, fs_id, path in rows)

    def delete(self, run_id: RunId) -> None:
        self._session.change(_DELETE_RUN, {"run_id": run_id})
