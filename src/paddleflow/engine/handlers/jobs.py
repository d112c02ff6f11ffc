"""Commands about jobs: load, call the job machine, save. What a submission becomes is in ``engine.acceptance``."""

from __future__ import annotations

from paddleflow import frameworks
from paddleflow.domain import commands, job_machine
from paddleflow.domain.access import require_job
from paddleflow.domain.errors import Conflict, PaddleFlowError, Unavailable, invalid_field, not_found
from paddleflow.domain.events import EventKind
from paddleflow.domain.ids import JobId
from paddleflow.domain.job_machine import Change
from paddleflow.domain.jobs import Job, Priority
from paddleflow.domain.names import check_labels
from paddleflow.engine.acceptance import CREATE_FAILED, LABEL_LIMIT, accepted, check_fits, desk_of
from paddleflow.engine.context import Answer, Context
from paddleflow.engine.handlers.runs import refuse_while_in_run


def submit_job(ctx: Context, command: commands.SubmitJob) -> Answer:
    try:
        desk = desk_of(ctx, ctx.actor)
        job = accepted(desk, command)
        check_fits(desk, job)
    except Unavailable:
        raise  # an outage is not a refusal
    except PaddleFlowError as error:
        # Refusals keep their kind and their details but share the one code clients know.
        raise type(error)(error.message, code=CREATE_FAILED, details=error.details) from error
    ctx.record(job_machine.submitted(ctx.uow.jobs.add(job), ctx.now).events)
    return {"id": job.id}


def update_job(ctx: Context, command: commands.UpdateJob) -> Answer:
    job = _owned(ctx, command.id)
    priority = None
    if command.priority:
        try:
            priority = Priority[command.priority.upper()]
        except KeyError:
            raise invalid_field(
                "priority", "it is not one of VERY_LOW, LOW, NORMAL, HIGH, VERY_HIGH", code="JobInvalidField"
            ) from None
    labels = check_labels("labels", command.labels, value_limit=LABEL_LIMIT, code="JobInvalidField")
    annotations = check_labels("annotations", command.annotations, value_limit=65536, code="JobInvalidField")
    _apply(ctx, job_machine.update(job, priority=priority, labels=labels, annotations=annotations, now=ctx.now))
    return {}


def stop_job(ctx: Context, command: commands.StopJob) -> Answer:
    _apply(ctx, job_machine.stop(_owned(ctx, command.id), ctx.now))
    return {}


def delete_job(ctx: Context, command: commands.DeleteJob) -> Answer:
    job = _owned(ctx, command.id)
    if not job.is_terminal:
        raise Conflict(f"job {job.id} is {job.status}; stop it first, then delete it", code="ActionNotAllowed")
    refuse_while_in_run(ctx, job)
    ctx.uow.jobs.delete(job.id)
    ctx.uow.remains.add(job.id, job.cluster)
    ctx.emit(EventKind.JOB_DELETED, job.id, job.owner, status=job.status, queue=job.queue)
    return {}


def forget_remains(ctx: Context, command: commands.ForgetRemains) -> Answer:
    ctx.uow.remains.delete(command.id)
    return {}


def admit_job(ctx: Context, command: commands.AdmitJob) -> Answer:
    job = _job(ctx, command.id)
    image_note = command.image_note if any(member.image for member in job.spec.members) else ""
    notes = [note for note in (command.placement_note, image_note) if note]
    _apply(ctx, job_machine.admit(job, command.spots, "; ".join(notes), ctx.now))
    return {}


def reserve_room(ctx: Context, command: commands.ReserveRoom) -> Answer:
    _apply(ctx, job_machine.reserve(_job(ctx, command.id), command.spots, command.message, ctx.now))
    return {}


def evict_job(ctx: Context, command: commands.EvictJob) -> Answer:
    _apply(ctx, job_machine.evict(_job(ctx, command.id), command.in_favour_of, command.message, ctx.now))
    return {}


def resize_job(ctx: Context, command: commands.ResizeJob) -> Answer:
    job = _job(ctx, command.id)
    tasks = ctx.uow.jobs.tasks(job.id)
    _apply(ctx, job_machine.resize(job, command.add, command.drop, command.message, ctx.now, tasks))
    return {}


def expire_job(ctx: Context, command: commands.ExpireJob) -> Answer:
    _apply(ctx, job_machine.expire(_job(ctx, command.id), ctx.now))
    return {}


def fail_job(ctx: Context, command: commands.FailJob) -> Answer:
    job = ctx.uow.jobs.find(command.id)
    if job is not None:
        _apply(ctx, job_machine.fail(job, command.message, ctx.now))
    return {}


def report_task(ctx: Context, command: commands.ReportTask) -> Answer:
    """``known`` tells the observer whether the platform has this job at all."""
    job = ctx.uow.jobs.find(command.report.job_id)
    if job is None:
        return {"known": False}
    deciders = frameworks.deciders(job.spec)
    _apply(ctx, job_machine.report(job, ctx.uow.jobs.tasks(job.id), command.report, ctx.now, deciders))
    return {"known": True}


def _apply(ctx: Context, change: Change) -> None:
    """Write what changed: a job that moved has events to tell of it, a task that moved is listed."""
    if change.events:
        ctx.uow.jobs.save(change.job)
    if change.tasks:
        ctx.uow.jobs.put_tasks(change.tasks)
    ctx.record(change.events)


def _job(ctx: Context, job_id: JobId) -> Job:
    job = ctx.uow.jobs.find(job_id)
    if job is None:
        raise not_found("job", job_id[:80], code="JobNotFound")
    return job


def _owned(ctx: Context, job_id: JobId) -> Job:
    job = _job(ctx, job_id)
    require_job(ctx.actor, job)
    return job
