"""Schedules: rows and repository."""

from __future__ import annotations

from dataclasses import replace

from sqlalchemy import bindparam, select

from paddleflow.adapters.sql.pages import Pages
from paddleflow.adapters.sql.pipeline_tables import schedules
from paddleflow.adapters.sql.runs import active_runs_of
from paddleflow.adapters.sql.session import Session, page_of
from paddleflow.adapters.sql.statements import Row, Statement, delete_by, insert_row, select_by, update_version
from paddleflow.adapters.sql.values import from_micros, from_micros_or_null, to_micros, to_micros_or_null
from paddleflow.domain.ids import ScheduleId, UserName
from paddleflow.domain.queries import Page, PageRequest, ScheduleFilter
from paddleflow.domain.runs import Run
from paddleflow.domain.schedules import ConcurrencyPolicy, Schedule, ScheduleStatus

_BY_ID = select_by(schedules, "id")
_BY_NAME = select_by(schedules, "owner", "name")
_ADD = insert_row(schedules)
_SAVE = update_version(schedules, "id")
_DELETE = delete_by(schedules, "id")
_PAGES = Pages(schedules)
_IN_STATUS = Statement(select(schedules).where(schedules.c.status == bindparam("status")).order_by(schedules.c.seq))


def _schedule(row: Row) -> Schedule:
    (
        seq,
        id,
        name,
        description,
        owner,
        pipeline_id,
        version_id,
        crontab,
        time_zone,
        starts_at,
        ends_at,
        concurrency,
        policy,
        expire_s,
        catch_up,
        status,
        message,
        next_at,
        created_at,
        updated_at,
        version,
    ) = row
    return Schedule(
        id=id,
        name=name,
        description=description,
        owner=owner,
        pipeline_id=pipeline_id,
        version_id=version_id,
        crontab=crontab,
        time_zone=time_zone,
        starts_at=from_micros_or_null(starts_at),
        ends_at=from_micros_or_null(ends_at),
        concurrency=concurrency,
        policy=ConcurrencyPolicy(policy),
        expire_s=expire_s,
        # SQLite has no booleans, only zero and one.
        catch_up=bool(catch_up),
        status=ScheduleStatus(status),
        message=message,
        next_at=from_micros_or_null(next_at),
        created_at=from_micros(created_at),
        updated_at=from_micros(updated_at),
        seq=seq,
        version=version,
    )


def _row(schedule: Schedule, version: int) -> dict[str, object]:
    return {
        "id": schedule.id,
        "name": schedule.name,
        "description": schedule.description,
        "owner": schedule.owner,
        "pipeline_id": schedule.pipeline_id,
        "version_id": schedule.version_id,
        "crontab": schedule.crontab,
        "time_zone": schedule.time_zone,
        "starts_at": to_micros_or_null(schedule.starts_at),
        "ends_at": to_micros_or_null(schedule.ends_at),
        "concurrency": schedule.concurrency,
        "policy": schedule.policy.value,
        "expire_s": schedule.expire_s,
        "catch_up": schedule.catch_up,
        "status": schedule.status.value,
        "message": schedule.message,
        "next_at": to_micros_or_null(schedule.next_at),
        "created_at": to_micros(schedule.created_at),
        "updated_at": to_micros(schedule.updated_at),
        "version": version,
    }


class SqlSchedules:
    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    def find(self, id: ScheduleId) -> Schedule | None:
        row = self._session.row(_BY_ID, {"id": id})
        return None if row is None else _schedule(row)

    def find_named(self, owner: UserName, name: str) -> Schedule | None:
        row = self._session.row(_BY_NAME, {"owner": owner, "name": name})
        return None if row is None else _schedule(row)

    def add(self, schedule: Schedule) -> Schedule:
        seq = self._session.insert(_ADD, _row(schedule, 1), kind="schedule", name=schedule.name)
        return replace(schedule, seq=seq, version=1)

    def save(self, schedule: Schedule) -> Schedule:
        version, seen = schedule.version + 1, schedule.version
        self._session.save(_SAVE, _row(schedule, version), kind="schedule", name=schedule.id, seen=seen)
        return replace(schedule, version=version)

    def delete(self, id: ScheduleId) -> None:
        self._session.change(_DELETE, {"id": id})

    def page(self, where: ScheduleFilter, request: PageRequest) -> Page[Schedule]:
        rows = _PAGES.rows(
            self._session,
            request,
            owner=where.owners,
            id=where.ids,
            name=where.names,
            pipeline_id=where.pipelines,
            version_id=where.versions,
            status=where.statuses,
        )
        return page_of([_schedule(row) for row in rows], request)

    def running(self) -> tuple[Schedule, ...]:
        rows = self._session.rows(_IN_STATUS, {"status": ScheduleStatus.RUNNING.value})
        return tuple(_schedule(row) for row in rows)

    def active_runs(self, id: ScheduleId) -> tuple[Run, ...]:
        return active_runs_of(self._session, id)
