"""Logs page-wise, and statistics."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.responses import Response

from paddleflow.api.statistics import (
    CardTimeAnswer,
    CardTimeRequest,
    JobLogAnswer,
    JobSeriesAnswer,
    JobStatisticsAnswer,
    job_card_time_answer,
    job_statistics_answer,
    queue_card_time_answer,
    task_series_answer,
)
from paddleflow.api.wire import parse_local_time
from paddleflow.domain.errors import Invalid
from paddleflow.domain.ids import JobId, QueueName
from paddleflow.domain.resources import parse_quantity
from paddleflow.server.call import Call, reply, uri_problem
from paddleflow.server.routing import Access, Param, Routes

routes = Routes()

_LINES_LIMIT = 1_000_000
_SIZE_LIMIT = 10**9
_SHOWN_LIMIT = 16 * 1024 * 1024
"""More than this is never put into one JSON answer, whatever was asked; what was left out is told as truncated."""


@routes.add(
    "GET",
    "/log/job",
    Access.OWNER,
    answer=JobLogAnswer,
    params=(
        Param(name="jobID"),
        Param(name="name", about="a job's id, for clients that do not send jobID"),
        Param(name="namespace"),
        Param(name="clusterName"),
        Param(name="type"),
        Param(name="framework"),
        Param(name="readFromTail", kind="boolean"),
        Param(name="lineLimit", kind="integer", low=1, high=_LINES_LIMIT),
        Param(name="sizeLimit", about="bytes, such as 100M"),
    ),
)
def show_job_log(call: Call) -> Response:
    """The first or last lines of every task of a job."""
    name = call.text("jobID") or call.text("name")
    if not name:
        raise uri_problem("jobID", "", "say which job")
    job, logs = call.services.logs.tail_or_head(
        call.actor,
        JobId(name),
        lines=call.integer("lineLimit", 1000, low=1, high=_LINES_LIMIT),
        max_bytes=min(_size(call.text("sizeLimit", "100M") or "100M"), _SHOWN_LIMIT),
        from_tail=call.flag("readFromTail", False),
    )
    tasks = [
        {
            "taskID": log.task_id,
            "logInfo": {"logContent": log.text, "hasNextPage": log.has_more, "truncated": log.truncated},
        }
        for log in logs
    ]
    shown = f"{call.text('namespace') or 'default'}/{job.id}"
    kind = call.text("type") or str(job.spec.kind)
    return reply({"jobID": job.id, "taskList": tasks, "name": shown, "type": kind, "eventList": []})


def _size(text: str) -> int:
    """Accepts ``100M`` and ``100MB`` alike."""
    try:
        size = int(parse_quantity(text.removesuffix("B")))
    except Invalid:
        size = 0
    if not 1 <= size <= _SIZE_LIMIT:
        raise uri_problem("sizeLimit", text, "it must be between 1 and 1G")
    return size


@routes.add("GET", "/statistics/job/{jobID}", Access.OWNER, answer=JobStatisticsAnswer, params=(Param(name="runID"),))
def show_job_statistics(call: Call) -> Response:
    """Averages over the life of the job."""
    use = call.services.statistics.job_use(call.actor, JobId(call.path("jobID")))
    return reply(job_statistics_answer(use.cpu_rate, use.memory_rate, use.memory_bytes))


@routes.add(
    "GET",
    "/statistics/jobDetail/{jobID}",
    Access.OWNER,
    answer=JobSeriesAnswer,
    params=(
        Param(name="start", kind="integer", about="Unix time", low=0, high=253_000_000_000),
        Param(name="end", kind="integer", about="Unix time", low=0, high=253_000_000_000),
        Param(name="step", kind="integer", about="seconds between two points; 60 unless told", low=1, high=10**9),
        Param(name="runID"),
    ),
)
def show_job_series(call: Call) -> Response:
    """Use over time, one series for each task and metric."""
    start, end = call.unix_time("start"), call.unix_time("end")
    if start is not None and end is not None and start > end:
        raise uri_problem("start", call.text("start"), "it lies after end")
    step_s = call.integer("step", 60, low=1, high=10**9)
    job_id = JobId(call.path("jobID"))
    _, series, truncated = call.services.statistics.series(call.actor, job_id, start, end, step_s)
    result = [
        task_series_answer(task, [(one.at.timestamp(), one.cpu_s, one.memory_bytes) for one in samples])
        for task, samples in series.items()
    ]
    return reply({"result": result, "truncated": truncated})


@routes.add(
    "GET",
    "/statistics/cardTime/{queueName}",
    Access.OWNER,
    answer=CardTimeAnswer,
    params=(Param(name="startTime", required=True), Param(name="endTime", required=True)),
)
def show_card_time(call: Call) -> Response:
    """GPU hours of a queue, for users with a grant of it."""
    return _card_time(call, [call.path("queueName")], call.text("startTime"), call.text("endTime"))


@routes.add("POST", "/statistics/cardTime", Access.OWNER, answer=CardTimeAnswer)
def query_card_time(call: Call, body: CardTimeRequest) -> Response:
    """GPU hours of several queues."""
    return _card_time(call, body.queueNames, body.startTime, body.endTime)


def _card_time(call: Call, queues: Sequence[str], start_text: str, end_text: str) -> Response:
    start, end = parse_local_time("startTime", start_text), parse_local_time("endTime", end_text)
    if start > end:
        raise uri_problem("startTime", start_text, "it lies after endTime")
    names = [QueueName(name) for name in dict.fromkeys(queues)]
    found = call.services.statistics.card_time(call.actor, names, start, end)
    data = [
        queue_card_time_answer(
            queue,
            {
                user: [job_card_time_answer(time.job, time.cards, time.hours) for time in times]
                for user, times in users.items()
            },
        )
        for queue, users in found.items()
    ]
    return reply({"data": data})
