"""What jobs and queues have used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from paddleflow.sdk.session import Session, require, segment


@dataclass(frozen=True)
class StatisticsJobInfo:
    metrics_info: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class TaskInfo:
    metric: str
    values: list[list[Any]]
    """Pairs of Unix time and value."""


@dataclass(frozen=True)
class Result:
    task_name: str
    task_info: list[TaskInfo]

    @classmethod
    def from_wire(cls, data: Mapping[str, Any]) -> Result:
        series = [TaskInfo(metric=one["metric"], values=one["values"]) for one in data.get("taskInfo") or []]
        return cls(task_name=data["taskName"], task_info=series)


@dataclass(frozen=True)
class StatisticsJobDetailInfo:
    result: list[Result]
    truncated: bool = False


@dataclass(frozen=True)
class CardTimeInfo:
    data: list[dict[str, Any]]


class StatisticsCalls(Session):
    """What the client can ask about use."""

    def get_statistics(self, jobid: str, runid: str | None = None) -> tuple[bool, StatisticsJobInfo]:
        data = self._get(f"/statistics/job/{_job(jobid)}", {"runID": runid})
        return True, StatisticsJobInfo(metrics_info=data.get("metricsInfo") or {})

    def get_statistics_detail(
        self,
        jobid: str,
        start: int | None = None,
        end: int | None = None,
        step: int | None = None,
        runid: str | None = None,
    ) -> tuple[bool, StatisticsJobDetailInfo, bool]:
        params = {"start": start, "end": end, "step": step, "runID": runid}
        data = self._get(f"/statistics/jobDetail/{_job(jobid)}", params)
        truncated = bool(data.get("truncated"))
        results = [Result.from_wire(one) for one in data.get("result") or []]
        return True, StatisticsJobDetailInfo(result=results, truncated=truncated), truncated

    def get_cardtime_by_queue_name(
        self, queue_names: Sequence[str], start_time: str, end_time: str
    ) -> tuple[bool, CardTimeInfo]:
        body = {
            "queueNames": list(queue_names),
            "startTime": require(start_time, "InvalidStartTime", "start_time"),
            "endTime": require(end_time, "InvalidEndTime", "end_time"),
        }
        # A POST that only reads: repeating it is as safe as a GET.
        data = self._call("POST", "/statistics/cardTime", body=body, repeatable=True)
        return True, CardTimeInfo(data=data.get("data") or [])


def _job(jobid: str) -> str:
    return segment(require(jobid, "InvalidJobID", "jobid"))
