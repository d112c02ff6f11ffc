"""Stored pipelines and their versions: rows and repository."""

from __future__ import annotations

from dataclasses import replace

from sqlalchemy import bindparam, func, select

from paddleflow.adapters.sql.pages import Pages
from paddleflow.adapters.sql.pipeline_tables import pipeline_versions, pipelines
from paddleflow.adapters.sql.session import Session, page_of
from paddleflow.adapters.sql.statements import Row, Statement, delete_by, insert_row, select_by, update_version
from paddleflow.adapters.sql.values import from_micros, to_micros
from paddleflow.domain.catalog import Pipeline, PipelineVersion
from paddleflow.domain.ids import PipelineId, UserName, VersionId
from paddleflow.domain.queries import Page, PageRequest, PipelineFilter

_BY_ID = select_by(pipelines, "id")
_BY_NAME = select_by(pipelines, "owner", "name")
_ADD = insert_row(pipelines)
_SAVE = update_version(pipelines, "id")
_DELETE = delete_by(pipelines, "id")
_PAGES = Pages(pipelines)

_VERSION = select_by(pipeline_versions, "pipeline_id", "id")
_ADD_VERSION = insert_row(pipeline_versions)
_DELETE_VERSION = delete_by(pipeline_versions, "pipeline_id", "id")
_VERSION_PAGES = Pages(pipeline_versions)
_of_pipeline = pipeline_versions.c.pipeline_id == bindparam("pipeline_id")
_LATEST_VERSION = Statement(
    select(pipeline_versions).where(_of_pipeline).order_by(pipeline_versions.c.seq.desc()).limit(bindparam("limit"))
)
_COUNT_VERSIONS = Statement(select(func.count()).select_from(pipeline_versions).where(_of_pipeline))


def _pipeline(row: Row) -> Pipeline:
    seq, id, name, description, owner, versions_made, created_at, updated_at, version = row
    return Pipeline(
        id=id,
        name=name,
        description=description,
        owner=owner,
        versions_made=versions_made,
        created_at=from_micros(created_at),
        updated_at=from_micros(updated_at),
        seq=seq,
        version=version,
    )


def _row(pipeline: Pipeline, version: int) -> dict[str, object]:
    return {
        "id": pipeline.id,
        "name": pipeline.name,
        "description": pipeline.description,
        "owner": pipeline.owner,
        "versions_made": pipeline.versions_made,
        "created_at": to_micros(pipeline.created_at),
        "updated_at": to_micros(pipeline.updated_at),
        "version": version,
    }


def _version(row: Row) -> PipelineVersion:
    seq, pipeline_id, id, fs_id, fs_name, yaml_path, text, digest, owner, created_at, updated_at = row
    return PipelineVersion(
        pipeline_id=pipeline_id,
        id=id,
        fs_id=fs_id,
        fs_name=fs_name,
        yaml_path=yaml_path,
        text=text,
        digest=digest,
        owner=owner,
        created_at=from_micros(created_at),
        updated_at=from_micros(updated_at),
        seq=seq,
    )


def _version_row(version: PipelineVersion) -> dict[str, object]:
    return {
        "pipeline_id": version.pipeline_id,
        "id": version.id,
        "fs_id": version.fs_id,
        "fs_name": version.fs_name,
        "yaml_path": version.yaml_path,
        "text": version.text,
        "digest": version.digest,
        "owner": version.owner,
        "created_at": to_micros(version.created_at),
        "updated_at": to_micros(version.updated_at),
    }


class SqlPipelines:
    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    def find(self, id: PipelineId) -> Pipeline | None:
        row = self._session.row(_BY_ID, {"id": id})
        return None if row is None else _pipeline(row)

    def find_named(self, owner: UserName, name: str) -> Pipeline | None:
        row = self._session.row(_BY_NAME, {"owner": owner, "name": name})
        return None if row is None else _pipeline(row)

    def add(self, pipeline: Pipeline) -> Pipeline:
        seq = self._session.insert(_ADD, _row(pipeline, 1), kind="pipeline", name=pipeline.name)
        return replace(pipeline, seq=seq, version=1)

    def save(self, pipeline: Pipeline) -> Pipeline:
        version, seen = pipeline.version + 1, pipeline.version
        self._session.save(_SAVE, _row(pipeline, version), kind="pipeline", name=pipeline.id, seen=seen)
        return replace(pipeline, version=version)

    def delete(self, id: PipelineId) -> None:
        """Versions go by their foreign key."""
        self._session.change(_DELETE, {"id": id})

    def page(self, where: PipelineFilter, request: PageRequest) -> Page[Pipeline]:
        rows = _PAGES.rows(self._session, request, owner=where.owners, name=where.names)
        return page_of([_pipeline(row) for row in rows], request)

    def find_version(self, id: PipelineId, version: VersionId) -> PipelineVersion | None:
        row = self._session.row(_VERSION, {"pipeline_id": id, "id": version})
        return None if row is None else _version(row)

    def latest_version(self, id: PipelineId) -> PipelineVersion | None:
        row = self._session.row(_LATEST_VERSION, {"pipeline_id": id, "limit": 1})
        return None if row is None else _version(row)

    def add_version(self, version: PipelineVersion) -> PipelineVersion:
        name = f"{version.pipeline_id}/{version.id}"
        seq = self._session.insert(_ADD_VERSION, _version_row(version), kind="pipeline version", name=name)
        return replace(version, seq=seq)

    def delete_version(self, id: PipelineId, version: VersionId) -> None:
        self._session.change(_DELETE_VERSION, {"pipeline_id": id, "id": version})

    def count_versions(self, id: PipelineId) -> int:
        row = self._session.row(_COUNT_VERSIONS, {"pipeline_id": id})
        return row[0] if row else 0

    def page_versions(self, id: PipelineId, fs_names: frozenset[str], request: PageRequest) -> Page[PipelineVersion]:
        rows = _VERSION_PAGES.rows(self._session, request, pipeline_id=(id,), fs_name=fs_names)
        return page_of([_version(row) for row in rows], request)
