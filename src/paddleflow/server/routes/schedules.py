"""Schedules: cron rules that start runs."""

from __future__ import annotations

from starlette.responses import Response

from paddleflow.api.runs import run_brief_answer
from paddleflow.api.schedules import (
    CreateScheduleRequest,
    ScheduleDetailAnswer,
    ScheduleIdAnswer,
    ScheduleListAnswer,
    schedule_answer,
)
from paddleflow.api.wire import Listed
from paddleflow.domain.commands import DeleteSchedule, StopSchedule
from paddleflow.domain.ids import PipelineId, RunId, ScheduleId, VersionId
from paddleflow.domain.queries import RunFilter, ScheduleFilter
from paddleflow.domain.runs import Run, RunStatus
from paddleflow.domain.schedules import Schedule, ScheduleStatus
from paddleflow.server.call import Call, empty, reply
from paddleflow.server.routing import PAGE, Access, Param, Routes

routes = Routes()

_SCHEDULES = Listed[Schedule]("scheduleList", schedule_answer)
_RUNS = Listed[Run]("runList", run_brief_answer)
_NEWEST_RUNS = "run, newest first"


@routes.add("POST", "/schedule", Access.LOGIN, answer=ScheduleIdAnswer, status=201, prepares=True)
def create_schedule(call: Call, body: CreateScheduleRequest) -> Response:
    command = body.to_command()
    call.services.pipelines.check_runs_by_itself(call.actor, command)
    return reply(call.submit(command, create=True), status=201)


@routes.add(
    "GET",
    "/schedule",
    Access.LOGIN,
    answer=ScheduleListAnswer,
    params=(
        *PAGE,
        Param(name="userFilter", about="owners; this and the other filters are words separated by commas"),
        Param(name="pplFilter", about="ids of pipelines"),
        Param(name="pplVersionFilter", about="ids of versions"),
        Param(name="scheduleFilter", about="ids of schedules"),
        Param(name="nameFilter"),
        Param(name="statusFilter", about=", ".join(ScheduleStatus)),
    ),
)
def list_schedules(call: Call) -> Response:
    """A user's own schedules; everybody's for root. Oldest first."""
    where = ScheduleFilter(
        owners=call.owners(),
        ids=frozenset(map(ScheduleId, call.words("scheduleFilter"))),
        names=call.words("nameFilter"),
        pipelines=frozenset(map(PipelineId, call.words("pplFilter"))),
        versions=frozenset(map(VersionId, call.words("pplVersionFilter"))),
        statuses=call.choices("statusFilter", ScheduleStatus),
    )
    request = call.page("schedule")
    return call.listing("schedule", request, call.services.runs.schedules(call.actor, where, request), _SCHEDULES)


@routes.add(
    "GET",
    "/schedule/{scheduleID}",
    Access.OWNER,
    answer=ScheduleDetailAnswer,
    params=(
        *PAGE,
        Param(name="runFilter", about="ids of runs, separated by commas"),
        Param(name="statusFilter", about="of the runs, separated by commas"),
    ),
)
def show_schedule(call: Call) -> Response:
    """A schedule, and the runs it started or skipped page by page, newest first."""
    schedule = call.services.runs.schedule(call.actor, ScheduleId(call.path("scheduleID")))
    where = RunFilter(
        ids=frozenset(map(RunId, call.words("runFilter"))),
        statuses=call.choices("statusFilter", RunStatus),
        schedule=schedule.id,
    )
    request = call.page(_NEWEST_RUNS, newest_first=True)
    page = call.services.runs.runs(call.actor, where, request)
    return reply({**schedule_answer(schedule), "runs": call.listed(_NEWEST_RUNS, request, page, _RUNS)})


@routes.add("PUT", "/schedule/{scheduleID}", Access.OWNER)
def stop_schedule(call: Call) -> Response:
    """It starts no more runs; those that run go on."""
    call.submit(StopSchedule(id=ScheduleId(call.path("scheduleID"))))
    return empty()


@routes.add("DELETE", "/schedule/{scheduleID}", Access.OWNER)
def delete_schedule(call: Call) -> Response:
    """Only once it has ended or was stopped."""
    call.submit(DeleteSchedule(id=ScheduleId(call.path("scheduleID"))))
    return empty()
