"""Schedules on the wire."""

# ruff: noqa: N815  the names of the fields are the names on the wire

from __future__ import annotations

from typing_extensions import TypedDict

from paddleflow.api.pipelines import checked_description
from paddleflow.api.runs import RunListAnswer
from paddleflow.api.wire import PageAnswer, WireRequest, local_time, parse_local_time
from paddleflow.domain.commands import CreateSchedule
from paddleflow.domain.errors import invalid_field
from paddleflow.domain.ids import PipelineId, VersionId
from paddleflow.domain.schedules import ConcurrencyPolicy, Schedule

_MOST = 2**31 - 1


class CreateScheduleRequest(WireRequest):
    name: str = ""
    desc: str = ""
    pipelineID: str = ""
    pipelineVersionID: str = ""
    crontab: str = ""
    timeZone: str = "UTC"
    startTime: str = ""
    endTime: str = ""
    concurrency: int = 0
    concurrencyPolicy: str = ConcurrencyPolicy.SUSPEND
    expireInterval: int = 0
    catchup: bool = True
    username: str = ""

    def to_command(self) -> CreateSchedule:
        return CreateSchedule(
            owner=self.username,
            name=self.name,
            description=checked_description(self.desc),
            pipeline_id=PipelineId(self.pipelineID),
            version_id=VersionId(self.pipelineVersionID),
            crontab=self.crontab,
            time_zone=self.timeZone or "UTC",
            starts_at=parse_local_time("startTime", self.startTime, code=_CODE) if self.startTime else None,
            ends_at=parse_local_time("endTime", self.endTime, code=_CODE) if self.endTime else None,
            concurrency=_counted("concurrency", self.concurrency),
            policy=self.concurrencyPolicy or ConcurrencyPolicy.SUSPEND,
            expire_s=_counted("expireInterval", self.expireInterval),
            catch_up=self.catchup,
        )


_CODE = "InvalidArguments"


def _counted(field: str, number: int) -> int:
    if not 0 <= number <= _MOST:
        raise invalid_field(field, f"it must be between 0 and {_MOST}")
    return number


class ScheduleIdAnswer(TypedDict):
    scheduleID: str


class FsConfigAnswer(TypedDict):
    username: str


class ScheduleOptionsAnswer(TypedDict):
    catchup: bool
    expireInterval: int
    concurrency: int
    concurrencyPolicy: str


class ScheduleAnswer(TypedDict):
    scheduleID: str
    name: str
    desc: str
    pipelineID: str
    pipelineVersionID: str
    username: str
    fsConfig: FsConfigAnswer
    crontab: str
    timeZone: str
    options: ScheduleOptionsAnswer
    startTime: str
    endTime: str
    createTime: str
    updateTime: str
    nextRunTime: str
    scheduleMsg: str
    status: str


class ScheduleListAnswer(PageAnswer):
    scheduleList: list[ScheduleAnswer]


class ScheduleDetailAnswer(ScheduleAnswer):
    runs: RunListAnswer


def schedule_answer(schedule: Schedule) -> ScheduleAnswer:
    return {
        "scheduleID": schedule.id,
        "name": schedule.name,
        "desc": schedule.description,
        "pipelineID": schedule.pipeline_id,
        "pipelineVersionID": schedule.version_id,
        "username": schedule.owner,
        "fsConfig": {"username": schedule.owner},
        "crontab": schedule.crontab,
        "timeZone": schedule.time_zone,
        "options": {
            "catchup": schedule.catch_up,
            "expireInterval": schedule.expire_s,
            "concurrency": schedule.concurrency,
            "concurrencyPolicy": schedule.policy,
        },
        "startTime": local_time(schedule.starts_at),
        "endTime": local_time(schedule.ends_at),
        "createTime": local_time(schedule.created_at),
        "updateTime": local_time(schedule.updated_at),
        "nextRunTime": local_time(schedule.next_at),
        "scheduleMsg": schedule.message,
        "status": schedule.status,
    }
