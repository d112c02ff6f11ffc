"""What deleted jobs left on their runtimes, until it is cleared away."""

from __future__ import annotations

from sqlalchemy import select

from paddleflow.adapters.sql.session import Session, duplicate
from paddleflow.adapters.sql.statements import Statement, delete_by, insert_plain, select_by
from paddleflow.adapters.sql.tables import remains
from paddleflow.domain.ids import ClusterName, JobId

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
