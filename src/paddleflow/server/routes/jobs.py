"""Jobs: submit, list, show, change, stop, delete, and ask why one does not start and when it will."""

from __future__ import annotations

import json
from urllib.parse import quote

from starlette.responses import Response

from paddleflow.api.jobs import (
    EtaAnswer,
    JobAnswer,
    JobIdAnswer,
    JobListAnswer,
    MembershipAnswer,
    UpdateJobRequest,
    WhyAnswer,
    eta_answer,
    job_answer,
    job_detail_answer,
)
from paddleflow.api.submissions import DistributedJobRequest, SingleJobRequest, WorkflowJobRequest
from paddleflow.api.wire import Listed, parse_local_time
from paddleflow.domain.commands import DeleteJob, StopJob
from paddleflow.domain.errors import Denied
from paddleflow.domain.ids import JobId, QueueName
from paddleflow.domain.jobs import Job, JobStatus
from paddleflow.domain.queries import JobFilter
from paddleflow.server.call import PREFIX, Call, empty, reply, uri_problem
from paddleflow.server.routing import PAGE, Access, Param, Routes

routes = Routes()

_JOBS = Listed[Job]("jobList", job_answer)
_NEWEST_JOBS = "job, newest first"


@routes.add("POST", "/job/single", Access.LOGIN, answer=JobIdAnswer)
def create_single_job(call: Call, body: SingleJobRequest) -> Response:
    return reply(call.submit(body.to_command(), create=True))


@routes.add("POST", "/job/distributed", Access.LOGIN, answer=JobIdAnswer)
def create_distributed_job(call: Call, body: DistributedJobRequest) -> Response:
    return reply(call.submit(body.to_command(), create=True))


@routes.add("POST", "/job/workflow", Access.LOGIN, answer=JobIdAnswer)
def create_workflow_job(call: Call, body: WorkflowJobRequest) -> Response:
    return reply(call.submit(body.to_command(), create=True))


@routes.add(
    "GET",
    "/job",
    Access.LOGIN,
    answer=JobListAnswer,
    params=(
        *PAGE,
        Param(name="status", about="one status, or several separated by commas"),
        Param(name="timestamp", kind="integer", about="changed since this Unix time", low=0, high=253_000_000_000),
        Param(name="startTime", about="started at or after, YYYY-MM-DD HH:MM:SS"),
        Param(name="queue"),
        Param(name="labels", about="a JSON object; all must match"),
    ),
)
def list_jobs(call: Call) -> Response:
    """A user's own jobs; everybody's for root. Newest first."""
    started, queue = call.text("startTime"), call.text("queue")
    where = JobFilter(
        statuses=_statuses(call.text("status")),
        queue=QueueName(queue) if queue else None,
        updated_since=call.unix_time("timestamp"),
        activated_since=parse_local_time("startTime", started) if started else None,
        labels=_labels(call.text("labels")),
    )
    request = call.page(_NEWEST_JOBS, newest_first=True)
    return call.listing(_NEWEST_JOBS, request, call.services.reads.jobs(call.actor, where, request), _JOBS)


@routes.add("GET", "/job/{jobID}", Access.OWNER, answer=JobAnswer, quick=True)
def show_job(call: Call) -> Response:
    job_id = call.path("jobID")
    job, tasks = call.services.reads.job(call.actor, JobId(job_id))
    return reply(job_detail_answer(job, tasks, f"{PREFIX}/job/{quote(job_id, safe='')}/log"))


@routes.add("GET", "/job/{jobID}/why", Access.OWNER, answer=WhyAnswer)
def explain_job(call: Call) -> Response:
    """Why the job is not running, in one sentence."""
    why = call.services.reads.why(call.actor, JobId(call.path("jobID")))
    return reply(
        {"jobID": why.job.id, "status": why.job.status, "sentence": why.sentence, "details": dict(why.details)}
    )


@routes.add("GET", "/job/{jobID}/eta", Access.OWNER, answer=EtaAnswer)
def forecast_job(call: Call) -> Response:
    """When the job is expected to start, as a band that most starts fall into."""
    return reply(eta_answer(call.services.reads.eta(call.actor, JobId(call.path("jobID")))))


@routes.add("GET", "/job/{jobID}/membership", Access.OWNER, answer=MembershipAnswer)
def show_membership(call: Call) -> Response:
    """Who belongs to the job now, as its own tasks are told."""
    return reply(call.services.reads.membership(call.actor, JobId(call.path("jobID"))))


@routes.add(
    "PUT",
    "/job/{jobID}",
    Access.OWNER,
    body_required=False,
    params=(Param(name="action", required=True, among=("stop", "modify")),),
)
def update_job(call: Call, body: UpdateJobRequest) -> Response:
    """Stop it, or change its priority, labels and annotations."""
    job_id, action = call.path("jobID"), call.text("action")
    if action == "stop":
        call.submit(StopJob(id=JobId(job_id)))
    elif action == "modify":
        call.submit(body.to_command(job_id))
    else:
        raise Denied(f"action[{action[:80]}] is not one of stop, modify", code="ActionNotAllowed")
    return empty()


@routes.add("DELETE", "/job/{jobID}", Access.OWNER)
def delete_job(call: Call) -> Response:
    """Only once it has ended."""
    call.submit(DeleteJob(id=JobId(call.path("jobID"))))
    return empty()


def _statuses(text: str) -> frozenset[JobStatus]:
    try:
        return frozenset(JobStatus(word.strip()) for word in text.split(",") if word.strip())
    except ValueError:
        raise uri_problem("status", text, f"choose from {', '.join(JobStatus)}") from None


def _labels(text: str) -> dict[str, str]:
    if not text:
        return {}
    try:
        labels = json.loads(text)
    except (ValueError, RecursionError):
        labels = None
    if not isinstance(labels, dict) or not all(isinstance(value, str) for value in labels.values()):
        raise uri_problem("labels", text, 'write a JSON object of texts such as {"team":"vision"}')
    try:
        json.dumps(labels, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise uri_problem("labels", "", "it holds text that is not Unicode") from None
    return labels
