"""Logs and statistics on the wire."""

# ruff: noqa: N815  the names of the fields are the names on the wire

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from pydantic import Field
from typing_extensions import TypedDict

from paddleflow.api.wire import WireRequest, local_time
from paddleflow.domain.jobs import Job
from paddleflow.domain.resources import GPU


class LogPageAnswer(TypedDict):
    logContent: str
    hasNextPage: bool
    truncated: bool


class TaskLogAnswer(TypedDict):
    taskID: str
    logInfo: LogPageAnswer


class JobLogAnswer(TypedDict):
    jobID: str
    taskList: list[TaskLogAnswer]
    name: str
    type: str
    eventList: list[str]


class JobStatisticsAnswer(TypedDict):
    metricsInfo: dict[str, str]


class SeriesAnswer(TypedDict):
    metric: str
    values: list[list[float]]


class TaskSeriesAnswer(TypedDict):
    taskName: str
    taskInfo: list[SeriesAnswer]


class JobSeriesAnswer(TypedDict):
    result: list[TaskSeriesAnswer]
    truncated: bool


class CardTimeRequest(WireRequest):
    startTime: str = ""
    endTime: str = ""
    queueNames: list[str] = Field(default_factory=list)


class JobCardTimeAnswer(TypedDict):
    jobId: str
    cardTime: float
    createTime: str
    startTime: str
    finishTime: str
    deviceCount: int


class UserCardTimeAnswer(TypedDict):
    userName: str
    jobInfoList: list[JobCardTimeAnswer]
    jobCount: int
    totalCardTime: float


class QueueCardTimeAnswer(TypedDict):
    queueName: str
    cardTime: float
    deviceType: str
    detail: list[UserCardTimeAnswer]


class CardTimeAnswer(TypedDict):
    data: list[QueueCardTimeAnswer]


def job_statistics_answer(cpu_rate: float, memory_rate: float, memory_bytes: int) -> JobStatisticsAnswer:
    return {
        "metricsInfo": {
            "cpu_usage_rate": f"{cpu_rate * 100:.2f}%",
            "memory_usage_rate": f"{memory_rate * 100:.2f}%",
            "memory_usage": f"{memory_bytes}(Bytes)",
        }
    }


def task_series_answer(task_id: str, samples: Sequence[tuple[float, float, int]]) -> TaskSeriesAnswer:
    """``samples`` are (Unix time, CPU seconds so far, bytes of memory). A rate needs two of them."""
    cpu = [
        [then, round((used - before_used) / (then - before) * 100, 2)]
        for (before, before_used, _), (then, used, _) in pairwise(samples)
        if then > before
    ]
    memory: list[list[float]] = [[at, size] for at, _, size in samples]
    series: list[Any] = [{"metric": "cpu_usage_rate", "values": cpu}, {"metric": "memory_usage", "values": memory}]
    return {"taskName": task_id, "taskInfo": series}


def job_card_time_answer(job: Job, cards: int, hours: float) -> JobCardTimeAnswer:
    return {
        "jobId": job.id,
        "cardTime": hours,
        "createTime": local_time(job.created_at),
        "startTime": local_time(job.activated_at),
        "finishTime": local_time(job.finished_at),
        "deviceCount": cards,
    }


def queue_card_time_answer(queue: str, users: dict[str, list[JobCardTimeAnswer]]) -> QueueCardTimeAnswer:
    detail: list[UserCardTimeAnswer] = [
        {
            "userName": user,
            "jobInfoList": jobs,
            "jobCount": len(jobs),
            "totalCardTime": round(sum(job["cardTime"] for job in jobs), 2),
        }
        for user, jobs in users.items()
    ]
    total = round(sum(user["totalCardTime"] for user in detail), 2)
    return {"queueName": queue, "cardTime": total, "deviceType": GPU, "detail": detail}
