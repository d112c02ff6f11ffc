"""Stored pipelines and their versions, schedules, and the numbers ids are made of: the repositories in dictionaries."""

from __future__ import annotations

from paddleflow.adapters.memory.runs import is_among, run_rows, without_texts
from paddleflow.adapters.memory.tables import Rows, Transaction
from paddleflow.domain.catalog import Pipeline, PipelineVersion
from paddleflow.domain.errors import Conflict
from paddleflow.domain.ids import PipelineId, ScheduleId, UserName, VersionId
from paddleflow.domain.queries import Page, PageRequest, PipelineFilter, ScheduleFilter
from paddleflow.domain.runs import RUN_ACTIVE, Run
from paddleflow.domain.schedules import Schedule, ScheduleStatus


class MemoryPipelines:
    def __init__(self, transaction: Transaction) -> None:
        self._rows: Rows[Pipeline] = Rows(
            transaction,
            "pipeline",
            lambda pipeline: pipeline.id,
            also_unique=lambda pipeline: (pipeline.owner, pipeline.name),
            called=lambda pipeline: pipeline.name,
        )
        self._versions: Rows[PipelineVersion] = Rows(
            transaction, "pipeline version", lambda version: (version.pipeline_id, version.id)
        )

    def find(self, id: PipelineId) -> Pipeline | None:
        return self._rows.find(id)

    def find_named(self, owner: UserName, name: str) -> Pipeline | None:
        named = (row for row in self._rows.all() if (row.owner, row.name) == (owner, name))
        return next(named, None)

    def add(self, pipeline: Pipeline) -> Pipeline:
        return self._rows.add(pipeline)

    def save(self, pipeline: Pipeline) -> Pipeline:
        return self._rows.save(pipeline)

    def delete(self, id: PipelineId) -> None:
        self._rows.delete(id)
        self._versions.delete_where(lambda version: version.pipeline_id == id)

    def page(self, where: PipelineFilter, request: PageRequest) -> Page[Pipeline]:
        return self._rows.page(
            request, lambda row: is_among(row.owner, where.owners) and is_among(row.name, where.names)
        )

    def find_version(self, id: PipelineId, version: VersionId) -> PipelineVersion | None:
        return self._versions.find((id, version))

    def latest_version(self, id: PipelineId) -> PipelineVersion | None:
        own = self._versions_of(id)
        return own[-1] if own else None

    def add_version(self, version: PipelineVersion) -> PipelineVersion:
        if self._rows.find(version.pipeline_id) is None:
            raise Conflict(f"version [{version.id}] is of no pipeline: there is no pipeline [{version.pipeline_id}]")
        return self._versions.add(version)

    def delete_version(self, id: PipelineId, version: VersionId) -> None:
        self._versions.delete((id, version))

    def count_versions(self, id: PipelineId) -> int:
        return len(self._versions_of(id))

    def page_versions(self, id: PipelineId, fs_names: frozenset[str], request: PageRequest) -> Page[PipelineVersion]:
        return self._versions.page(request, lambda row: row.pipeline_id == id and is_among(row.fs_name, fs_names))

    def _versions_of(self, id: PipelineId) -> list[PipelineVersion]:
        return [version for version in self._versions.all() if version.pipeline_id == id]


class MemorySchedules:
    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self._rows: Rows[Schedule] = Rows(
            transaction,
            "schedule",
            lambda schedule: schedule.id,
            also_unique=lambda schedule: (schedule.owner, schedule.name),
            called=lambda schedule: schedule.name,
        )

    def find(self, id: ScheduleId) -> Schedule | None:
        return self._rows.find(id)

    def find_named(self, owner: UserName, name: str) -> Schedule | None:
        named = (row for row in self._rows.all() if (row.owner, row.name) == (owner, name))
        return next(named, None)

    def add(self, schedule: Schedule) -> Schedule:
        return self._rows.add(schedule)

    def save(self, schedule: Schedule) -> Schedule:
        return self._rows.save(schedule)

    def delete(self, id: ScheduleId) -> None:
        self._rows.delete(id)

    def page(self, where: ScheduleFilter, request: PageRequest) -> Page[Schedule]:
        return self._rows.page(request, lambda schedule: _matches(schedule, where))

    def running(self) -> tuple[Schedule, ...]:
        return tuple(row for row in self._rows.all() if row.status is ScheduleStatus.RUNNING)

    def active_runs(self, id: ScheduleId) -> tuple[Run, ...]:
        runs = run_rows(self._transaction).all()
        return tuple(without_texts(run) for run in runs if run.schedule_id == id and run.status in RUN_ACTIVE)


def _matches(schedule: Schedule, where: ScheduleFilter) -> bool:
    return (
        is_among(schedule.owner, where.owners)
        and is_among(schedule.id, where.ids)
        and is_among(schedule.name, where.names)
        and is_among(schedule.pipeline_id, where.pipelines)
        and is_among(schedule.version_id, where.versions)
        and is_among(schedule.status, where.statuses)
    )


class MemoryNumbers:
    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def next(self, kind: str) -> int:
        given = self._transaction.change("number")
        given[kind] = given.get(kind, 0) + 1
        number: int = given[kind]
        return number
