"""Schedules: cron rules that start runs of a stored pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from paddleflow.sdk.run_views import RunInfo
from paddleflow.sdk.session import Session, present, refuse_blank, require, segment


@dataclass(frozen=True)
class ScheduleInfo:
    schedule_id: str
    name: str
    desc: str
    pipeline_id: str
    pipeline_version_id: str
    username: str
    fs_config: dict[str, Any]
    crontab: str
    options: dict[str, Any]
    start_time: str
    end_time: str
    create_time: str
    update_time: str
    next_run_time: str
    message: str
    status: str
    time_zone: str = "UTC"
    """In which ``crontab`` is read."""

    @classmethod
    def from_wire(cls, data: Mapping[str, Any]) -> ScheduleInfo:
        return cls(
            schedule_id=data["scheduleID"],
            name=data.get("name", ""),
            desc=data.get("desc", ""),
            pipeline_id=data.get("pipelineID", ""),
            pipeline_version_id=data.get("pipelineVersionID", ""),
            username=data.get("username", ""),
            fs_config=data.get("fsConfig") or {},
            crontab=data.get("crontab", ""),
            options=data.get("options") or {},
            start_time=data.get("startTime", ""),
            end_time=data.get("endTime", ""),
            create_time=data.get("createTime", ""),
            update_time=data.get("updateTime", ""),
            next_run_time=data.get("nextRunTime", ""),
            message=data.get("scheduleMsg", ""),
            status=data.get("status", ""),
            time_zone=data.get("timeZone") or "UTC",
        )


class ScheduleCalls(Session):
    """What the client can do with schedules."""

    def create_schedule(
        self,
        name: str,
        pipeline_id: str,
        pipeline_version_id: str,
        crontab: str,
        desc: str | None = None,
        start_time: str | None = None,
        end_time: str | None = None,
        concurrency: int | None = None,
        concurrency_policy: str | None = None,
        expire_interval: int | None = None,
        catchup: bool | None = None,
        username: str | None = None,
        time_zone: str | None = None,
    ) -> tuple[bool, str]:
        """Start a run of the pipeline at every tick of ``crontab``; the id of the schedule.

        ``catchup=False`` starts only the newest of the ticks missed while no server kept time; left out, all are.
        """
        body = present(
            name=require(name, "InvalidName", "name"),
            pipelineID=require(pipeline_id, "InvalidPipelineID", "pipeline_id"),
            pipelineVersionID=require(pipeline_version_id, "InvalidPipelineVersionID", "pipeline_version_id"),
            crontab=require(crontab, "InvalidCrontab", "crontab"),
            desc=desc,
            startTime=start_time,
            endTime=end_time,
            concurrency=concurrency,
            concurrencyPolicy=concurrency_policy,
            expireInterval=expire_interval,
            catchup=catchup,
            username=refuse_blank(username, "InvalidUserName", "username"),
            timeZone=time_zone,
        )
        return True, str(self._create("/schedule", body)["scheduleID"])

    def list_schedule(
        self,
        user_filter: str | None = None,
        ppl_filter: str | None = None,
        ppl_version_filter: str | None = None,
        schedule_filter: str | None = None,
        name_filter: str | None = None,
        status_filter: str | None = None,
        marker: str | None = None,
        max_keys: int | str | None = None,
    ) -> tuple[bool, dict[str, Any]]:
        """``{"scheduleList": [ScheduleInfo…], "nextMarker"}``."""
        params = {
            "userFilter": user_filter,
            "pplFilter": ppl_filter,
            "pplVersionFilter": ppl_version_filter,
            "scheduleFilter": schedule_filter,
            "nameFilter": name_filter,
            "statusFilter": status_filter,
            "marker": marker,
            "maxKeys": max_keys,
        }
        data = self._get("/schedule", params)
        found = [ScheduleInfo.from_wire(one) for one in data["scheduleList"]]
        return True, {"scheduleList": found, "nextMarker": data.get("nextMarker")}

    def show_schedule(
        self,
        schedule_id: str,
        run_filter: str | None = None,
        status_filter: str | None = None,
        marker: str | None = None,
        max_keys: int | str | None = None,
    ) -> tuple[bool, dict[str, Any]]:
        """``{"scheduleInfo", "runList": [RunInfo…], "nextMarker"}``."""
        params = {"runFilter": run_filter, "statusFilter": status_filter, "marker": marker, "maxKeys": max_keys}
        data = self._get(_path(schedule_id), params)
        runs = data.get("runs") or {}
        return True, {
            "scheduleInfo": ScheduleInfo.from_wire(data),
            "runList": [RunInfo.from_wire(one) for one in runs.get("runList") or []],
            "nextMarker": runs.get("nextMarker"),
        }

    def stop_schedule(self, schedule_id: str) -> tuple[bool, None]:
        """No further runs are started; those that were go on."""
        self._put(_path(schedule_id))
        return True, None

    def delete_schedule(self, schedule_id: str) -> tuple[bool, None]:
        self._delete(_path(schedule_id))
        return True, None


def _path(schedule_id: str) -> str:
    return f"/schedule/{segment(require(schedule_id, 'InvalidScheduleID', 'schedule_id'))}"
