"""Which step read which artifact or made it: rows and repository."""

from __future__ import annotations

from collections.abc import Sequence

from paddleflow.adapters.sql.pages import Pages
from paddleflow.adapters.sql.pipeline_tables import artifacts
from paddleflow.adapters.sql.session import Session, page_of
from paddleflow.adapters.sql.statements import Row, delete_by, upsert
from paddleflow.adapters.sql.values import from_micros, to_micros
from paddleflow.domain.ids import RunId, UserName
from paddleflow.domain.queries import ArtifactFilter, Page, PageRequest
from paddleflow.domain.runs import ArtifactEvent, ArtifactUse

_PUT = upsert(artifacts, "run_id", "job_id", "use", "name", "piece")
_DELETE = delete_by(artifacts, "owner", "fs_name", "run_id", "path")
_PAGES = Pages(artifacts)


def _event(row: Row) -> ArtifactEvent:
    seq, run_id, fs_id, fs_name, owner, path, step, job_id, use, name, piece, meta, created_at, updated_at = row
    return ArtifactEvent(
        run_id=run_id,
        fs_id=fs_id,
        fs_name=fs_name,
        owner=owner,
        path=path,
        step=step,
        job_id=job_id,
        use=ArtifactUse(use),
        name=name,
        piece=piece,
        meta=meta,
        created_at=from_micros(created_at),
        updated_at=from_micros(updated_at),
        seq=seq,
    )


def _row(event: ArtifactEvent) -> dict[str, object]:
    return {
        "run_id": event.run_id,
        "fs_id": event.fs_id,
        "fs_name": event.fs_name,
        "owner": event.owner,
        "path": event.path,
        "step": event.step,
        "job_id": event.job_id,
        "use": event.use.value,
        "name": event.name,
        "piece": event.piece,
        "meta": event.meta,
        "created_at": to_micros(event.created_at),
        "updated_at": to_micros(event.updated_at),
    }


class SqlArtifacts:
    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    def add(self, events: Sequence[ArtifactEvent]) -> None:
        if events:
            self._session.change_many(_PUT, [_row(event) for event in events])

    def page(self, where: ArtifactFilter, request: PageRequest) -> Page[ArtifactEvent]:
        rows = _PAGES.rows(
            self._session,
            request,
            owner=where.owners,
            fs_name=where.fs_names,
            run_id=where.run_ids,
            use=where.uses,
            path=where.paths,
        )
        return page_of([_event(row) for row in rows], request)

    def delete(self, owner: UserName, fs_name: str, run_id: RunId, path: str) -> int:
        return self._session.change(_DELETE, {"owner": owner, "fs_name": fs_name, "run_id": run_id, "path": path})
