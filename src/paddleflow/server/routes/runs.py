"""Runs: start, check, list, show, stop, try again, delete; their graph, their timing, their logs."""

from __future__ import annotations

import json
from collections.abc import Sequence

from starlette.responses import Response

from paddleflow.api.run_views import NO_GRAPH, GraphAnswer, RunViews, TimingAnswer, plan_graph
from paddleflow.api.runs import (
    CheckAnswer,
    CreateRunRequest,
    DeleteRunRequest,
    RunAnswer,
    RunDocument,
    RunIdAnswer,
    RunListAnswer,
    RunLogAnswer,
    StopRunRequest,
    WhyCachedAnswer,
    refused_action,
    run_answer,
    run_brief_answer,
    run_story,
)
from paddleflow.api.statistics import JobLogAnswer, TaskLogAnswer
from paddleflow.api.wire import Listed
from paddleflow.domain.commands import DeleteRun, RetryRun, StopRun
from paddleflow.domain.errors import not_found
from paddleflow.domain.ids import JobId, PipelineId, RunId, VersionId
from paddleflow.domain.jobs import Job
from paddleflow.domain.queries import RunFilter
from paddleflow.domain.runs import Run, RunStatus
from paddleflow.engine.logs import TaskLog
from paddleflow.engine.pipelines import RunRequest
from paddleflow.engine.run_reads import RunView
from paddleflow.planning.codec import dump_plan
from paddleflow.planning.timing import time_run
from paddleflow.server.bodies import PIPELINE_LIMIT
from paddleflow.server.call import Call, empty, reply, uri_problem
from paddleflow.server.routing import PAGE, Access, Param, Routes

routes = Routes()

_RUNS = Listed[Run]("runList", run_brief_answer)
_NEWEST_RUNS = "run, newest first"
_LARGEST_PAGE = 100
_MOST_PAGES = 10_000
_LOG_BUDGET = 16 * 1024 * 1024
"""Bytes of logs in one answer, shared by the jobs in it."""
_MOST_LOGS = 500
"""Jobs whose logs are in one answer; of the others ask for one job at a time."""


@routes.add("POST", "/run", Access.LOGIN, answer=RunIdAnswer, status=201, body_limit=PIPELINE_LIMIT, prepares=True)
def create_run(call: Call, body: CreateRunRequest) -> Response:
    """Run a pipeline: given as text, stored, or lying on a filesystem."""
    return _created(call, _asked(body))


@routes.add("POST", "/runjson", Access.LOGIN, answer=RunIdAnswer, status=201, body_limit=PIPELINE_LIMIT, prepares=True)
def create_run_by_json(call: Call, body: RunDocument) -> Response:
    """Run a pipeline given in its JSON form."""
    request = RunRequest(owner=body.username, description=body.description, document=body.document())
    return _created(call, request)


@routes.add(
    "POST",
    "/run/check",
    Access.LOGIN,
    answer=CheckAnswer,
    only_asks=True,
    body_limit=PIPELINE_LIMIT,
    prepares=True,
)
def check_run(call: Call, body: CreateRunRequest) -> Response:
    """What is wrong with a pipeline, all at once, or what it would do. Nothing is stored."""
    checked = call.services.pipelines.check(call.actor, _asked(body))
    plan = checked.plan
    return reply(
        {
            "valid": plan is not None,
            "problems": [
                {"message": problem.message, "path": problem.place, "line": problem.line}
                for problem in checked.problems
            ],
            "plan": None if plan is None else json.loads(dump_plan(plan)),
            "graph": None if plan is None else plan_graph(plan),
        }
    )


@routes.add(
    "GET",
    "/run",
    Access.LOGIN,
    answer=RunListAnswer,
    params=(
        *PAGE,
        Param(name="userFilter", about="owners; this and the other filters are words separated by commas"),
        Param(name="fsFilter", about="names of filesystems"),
        Param(name="runFilter", about="ids of runs"),
        Param(name="nameFilter"),
        Param(name="statusFilter", about=", ".join(RunStatus)),
    ),
)
def list_runs(call: Call) -> Response:
    """A user's own runs; everybody's for root. Newest first."""
    where = RunFilter(
        owners=call.owners(),
        fs_names=call.words("fsFilter"),
        ids=frozenset(map(RunId, call.words("runFilter"))),
        names=call.words("nameFilter"),
        statuses=call.choices("statusFilter", RunStatus),
    )
    request = call.page(_NEWEST_RUNS, newest_first=True)
    return call.listing(_NEWEST_RUNS, request, call.services.runs.runs(call.actor, where, request), _RUNS)


@routes.add("GET", "/run/{runID}", Access.OWNER, answer=RunAnswer)
def show_run(call: Call) -> Response:
    """A run with all its nodes."""
    view = _view(call)
    return reply(run_answer(view.run, view.plan, view.nodes, view.jobs, view.used_by))


@routes.add("GET", "/run/{runID}/graph", Access.OWNER, answer=GraphAnswer)
def show_run_graph(call: Call) -> Response:
    """The nodes of the pipeline where they stand in a drawing, with what has become of them."""
    view = _view(call)
    return reply(NO_GRAPH if view.plan is None else RunViews(view.run, view.plan, view.nodes, view.jobs).graph())


@routes.add("GET", "/run/{runID}/timing", Access.OWNER, answer=TimingAnswer)
def show_run_timing(call: Call) -> Response:
    """How long each step waited and ran, and the chain of steps that determined the end."""
    view = _view(call)
    run = view.run
    if view.plan is None:
        return reply({"runID": run.id, "status": run.status, "totalSeconds": 0.0, "steps": [], "criticalPath": []})
    timing = time_run(
        view.plan,
        view.nodes,
        view.jobs,
        began=run.activated_at or run.created_at,
        until=run.finished_at or call.services.clock.now(),
    )
    return reply(RunViews(run, view.plan, view.nodes, view.jobs).timing(timing))


@routes.add(
    "GET",
    "/run/{runID}/why-cached",
    Access.OWNER,
    answer=WhyCachedAnswer,
    params=(Param(name="step", about="its full name, such as sub.train, or its key", required=True),),
)
def explain_cache(call: Call) -> Response:
    """Why a step was taken from an earlier run, or which of its inputs has changed since."""
    run_id = call.path("runID")
    why = call.services.runs.why_cached(call.actor, RunId(run_id), call.needed("step"))
    return reply(
        {
            "runID": run_id,
            "step": why.step,
            "reused": why.reused,
            "sentence": why.sentence,
            "comparedWith": why.compared_with or "",
            "changed": [{"name": part.name, "before": part.before, "after": part.after} for part in why.changed],
        }
    )


@routes.add(
    "PUT",
    "/run/{runID}",
    Access.OWNER,
    answer=RunIdAnswer,
    body_required=False,
    params=(Param(name="action", required=True, among=("stop", "retry")),),
)
def update_run(call: Call, body: StopRunRequest) -> Response:
    """Stop it, or make a new run that keeps what has succeeded; the answer names the run or the new one."""
    run_id, action = RunId(call.path("runID")), call.text("action")
    if action == "stop":
        call.submit(StopRun(id=run_id, force=body.stopForce))
        return reply({"runID": run_id})
    if action == "retry":
        return reply({"runID": call.submit(RetryRun(id=run_id), create=True)["runID"]})
    raise refused_action(action)


@routes.add("DELETE", "/run/{runID}", Access.OWNER, body_required=False)
def delete_run(call: Call, body: DeleteRunRequest) -> Response:
    """Only once it has ended; with all it left behind."""
    call.submit(DeleteRun(id=RunId(call.path("runID")), check_cache=body.checkCache))
    return empty()


@routes.add(
    "GET",
    "/log/run/{runID}",
    Access.OWNER,
    answer=RunLogAnswer,
    params=(
        Param(name="jobID", about="this job alone"),
        Param(name="pageNo", kind="integer", low=1, high=_MOST_PAGES),
        Param(name="pageSize", kind="integer", about="lines on a page; 100 unless told", low=1, high=_LARGEST_PAGE),
        Param(name="logFilePosition", about="count pages from there; end unless told", among=("begin", "end")),
    ),
)
def show_run_log(call: Call) -> Response:
    """What happened to a run, and what its jobs have printed, page by page."""
    page_no = call.integer("pageNo", 1, low=1, high=_MOST_PAGES)
    page_size = call.integer("pageSize", _LARGEST_PAGE, low=1, high=_LARGEST_PAGE)
    position = call.text("logFilePosition") or "end"
    if position not in ("begin", "end"):
        raise uri_problem("logFilePosition", position, "choose from begin, end")
    view = _view(call)
    story = run_story(view.run, view.nodes)
    jobs = _own_jobs(view, call.text("jobID"))
    if len(jobs) > _MOST_LOGS:
        story += f"the logs of the first {_MOST_LOGS} of {len(jobs)} jobs are shown; say jobID for those of another\n"
        jobs = jobs[:_MOST_LOGS]
    logs = [_job_log(call, job, page_no, page_size, position == "end", _LOG_BUDGET // len(jobs)) for job in jobs]
    return reply({"submitLog": story, "runLog": logs, "runID": view.run.id})


def _asked(body: CreateRunRequest) -> RunRequest:
    return RunRequest(
        owner=body.username,
        fs_name=body.fsName,
        name=body.name,
        description=body.desc,
        parameters=body.values(),
        docker_env=body.dockerEnv,
        disabled=body.disabled,
        strategy=body.failureOptions.strategy,
        text=body.text(),
        pipeline_id=PipelineId(body.pipelineID) if body.pipelineID else None,
        version_id=VersionId(body.pipelineVersionID) if body.pipelineVersionID else None,
        yaml_path=body.runYamlPath,
    )


def _created(call: Call, request: RunRequest) -> Response:
    answer = call.services.pipelines.create_run(
        call.actor, request, request_id=call.request_id, idempotency_key=call.idempotency_key
    )
    return reply({"runID": answer["runID"]}, status=201)


def _view(call: Call) -> RunView:
    return call.services.runs.run(call.actor, RunId(call.path("runID")))


def _own_jobs(view: RunView, wanted: str) -> list[Job]:
    """The jobs this run started, in the order of its nodes; not those whose results it was given."""
    own = [node.job_id for node in view.nodes if node.cache_run_id is None and node.source_run is None]
    if wanted:
        if wanted not in own or JobId(wanted) not in view.jobs:
            raise not_found("job", wanted[:80], code="JobNotFound")
        return [view.jobs[JobId(wanted)]]
    return [view.jobs[job_id] for job_id in own if job_id is not None and job_id in view.jobs]


def _job_log(call: Call, job: Job, page_no: int, page_size: int, from_tail: bool, max_bytes: int) -> JobLogAnswer:
    _, logs = call.services.logs.tail_or_head(
        call.actor, job.id, lines=page_no * page_size, max_bytes=max_bytes, from_tail=from_tail
    )
    tasks = [_page_of(log, page_no, page_size, from_tail) for log in logs]
    return {"jobID": job.id, "taskList": tasks, "name": f"default/{job.id}", "type": job.spec.kind, "eventList": []}


def _page_of(log: TaskLog, page_no: int, page_size: int, from_tail: bool) -> TaskLogAnswer:
    """One page out of all pages up to it, counted from the end or from the beginning."""
    lines: Sequence[str] = log.text.splitlines(keepends=True)
    before = (page_no - 1) * page_size
    if from_tail:
        end = max(0, len(lines) - before)
        shown = lines[max(0, end - page_size) : end]
        has_more = log.has_more or end > page_size
    else:
        shown = lines[before : before + page_size]
        has_more = log.has_more
    return {
        "taskID": log.task_id,
        "logInfo": {"logContent": "".join(shown), "hasNextPage": has_more, "truncated": log.truncated},
    }
