"""Commands about jobs: load, resolve names, call the job machine, save."""

from __future__ import annotations

from dataclasses import replace

from paddleflow.domain import commands, job_machine
from paddleflow.domain.access import may_use_queue, require_job
from paddleflow.domain.clusters import ClusterType
from paddleflow.domain.errors import (
    Conflict,
    Denied,
    Duplicate,
    Invalid,
    PaddleFlowError,
    Unavailable,
    invalid_field,
    not_found,
)
from paddleflow.domain.events import EventKind
from paddleflow.domain.flavours import CUSTOM
from paddleflow.domain.ids import DEFAULT_QUEUE, FlavourName, JobId, QueueName, filesystem_id
from paddleflow.domain.job_machine import Change
from paddleflow.domain.jobs import FlavourRef, FsRef, Job, JobKind, Member, Priority
from paddleflow.domain.names import (
    check_environment,
    check_job_id,
    check_labels,
    check_mount_path,
    check_sub_path,
    check_text,
)
from paddleflow.domain.queues import Queue, QueueStatus
from paddleflow.domain.resources import CPU, MEMORY, Resources
from paddleflow.engine.context import Answer, Context
from paddleflow.frameworks import supports
from paddleflow.scheduling.decide import check_can_ever_fit
from paddleflow.scheduling.snapshot import waiting_of

_FAILED = "JobCreateFailed"
"""Every refused submission answers with this code; the message says what is wrong."""

_SUBMIT_PRIORITIES = (Priority.LOW, Priority.NORMAL, Priority.HIGH)
_NAME_LIMIT = 512
_LABEL_LIMIT = 1024
_DEFAULT_AMOUNTS = {CPU: "1", MEMORY: "1Gi"}


def submit_job(ctx: Context, command: commands.SubmitJob) -> Answer:
    try:
        job = _accepted(ctx, command)
    except Unavailable:
        raise  # an outage is not a refusal
    except PaddleFlowError as error:
        # Refusals keep their kind and their details but share the one code clients know.
        raise type(error)(error.message, code=_FAILED, details=error.details) from error
    ctx.record(job_machine.submitted(ctx.uow.jobs.add(job), ctx.now).events)
    return {"id": job.id}


def _accepted(ctx: Context, command: commands.SubmitJob) -> Job:
    """The job as it will be stored, or the reason why not. Nothing is written yet."""
    if command.spec.kind is not JobKind.SINGLE or not supports(command.spec.framework):
        raise Invalid(f"{command.spec.kind} jobs are not supported by this server; single jobs are")
    queue = _open_queue(ctx, command.queue)
    job_id = JobId(check_job_id(command.id) if command.id else ctx.new_id("job", 16))
    if command.id and ctx.uow.jobs.find(job_id) is not None:
        raise Duplicate(f"job[{job_id}] already exists, choose another id")
    if command.id and ctx.uow.remains.find(job_id) is not None:
        raise Duplicate(f"job[{job_id}] was deleted and is still being cleared away, try again in a moment")
    _check_images(ctx, command, queue)
    members = tuple(_resolved(ctx, member) for member in command.spec.members)
    job = Job(
        id=job_id,
        name=check_text("name", command.name, limit=_NAME_LIMIT, code=_FAILED) or job_id,
        owner=ctx.actor.name,
        queue=queue.name,
        cluster=queue.cluster,
        priority=_priority(command.priority),
        labels=check_labels("labels", command.labels, value_limit=_LABEL_LIMIT, code=_FAILED),
        annotations=check_labels("annotations", command.annotations, value_limit=65536, code=_FAILED),
        spec=replace(command.spec, members=members),
        created_at=ctx.now,
        updated_at=ctx.now,
    )
    check_can_ever_fit(waiting_of(job), queue, ctx.uow.clusters.nodes(queue.cluster))
    return job


def _open_queue(ctx: Context, asked: str) -> Queue:
    name = QueueName(asked or DEFAULT_QUEUE)
    queue = ctx.uow.queues.find(name)
    if queue is None:
        raise Invalid(f"queue[{name[:80]}] does not exist", details={"field": "schedulingPolicy.queue"})
    if not may_use_queue(ctx.actor, name, () if ctx.actor.is_root else ctx.uow.grants.of_user(ctx.actor.name)):
        raise Denied(
            f"user[{ctx.actor.name}] has no grant for queue[{name}]; root can give one with: "
            f"paddleflow queue grant {ctx.actor.name} {name}",
        )
    if queue.status is not QueueStatus.OPEN:
        raise Invalid(f"queue[{name}] status is {queue.status}, and only queue with open status can submit jobs")
    return queue


def _check_images(ctx: Context, command: commands.SubmitJob, queue: Queue) -> None:
    """An image is required wherever one is used: everywhere but on this machine."""
    if command.spec.extension_template is not None or all(member.image for member in command.spec.members):
        return
    cluster = ctx.uow.clusters.find(queue.cluster)
    if cluster is None or cluster.type is not ClusterType.LOCAL:
        raise invalid_field("image", f"it is empty, and cluster[{queue.cluster}] runs images")


def _resolved(ctx: Context, member: Member) -> Member:
    for field, value in (("command", member.command), ("image", member.image)):
        check_text(field, value)
    for argument in member.args:
        check_text("args", argument)
    if not 0 <= member.port <= 65534:
        raise invalid_field("port", f"{member.port} is not 0 or between 1 and 65534")
    flavour = _flavour(ctx, member.flavour)
    limit = _limit(ctx, member, flavour)
    return replace(
        member,
        flavour=flavour,
        limit=limit,
        env=check_environment("env", member.env, code=_FAILED),
        fs=None if member.fs is None else _mount(ctx, "fs", member.fs),
        extra_fs=tuple(_mount(ctx, "extraFS", fs) for fs in member.extra_fs),
    )


def _flavour(ctx: Context, asked: FlavourRef) -> FlavourRef:
    """By name, or the amounts given; one CPU and 1Gi where either is missing."""
    if asked.name and asked.name != CUSTOM:
        flavour = ctx.uow.flavours.find(FlavourName(asked.name))
        if flavour is None:
            raise Invalid(
                f"get flavour[{asked.name[:80]}] failed, it does not exist", details={"field": "flavour.name"}
            )
        return FlavourRef(name=flavour.name, resources=flavour.resources)
    for name in (CPU, MEMORY):
        if asked.resources.amounts.get(name) == 0:
            raise invalid_field(f"flavour.{name}", "it must be above zero; leave it out for the default")
    amounts = Resources({**Resources.parse(_DEFAULT_AMOUNTS).amounts, **asked.resources.amounts})
    return FlavourRef(name=asked.name, resources=amounts)


def _limit(ctx: Context, member: Member, flavour: FlavourRef) -> FlavourRef | None:
    named = member.env.get("PF_JOB_LIMIT_FLAVOUR", "")
    if named.upper() == "NONE":
        return None
    asked = FlavourRef(name=named) if named else member.limit
    if asked is None or (not asked.name and asked.resources.is_zero):
        return None
    limit = _flavour(ctx, asked)
    over = flavour.resources.over_named_limit(limit.resources)
    if over is not None:
        raise invalid_field("limitFlavour", f"its {over} is below what flavour asks for")
    return limit


def _mount(ctx: Context, field: str, asked: FsRef) -> FsRef:
    fs_id = filesystem_id(ctx.actor.name, asked.name)
    filesystem = ctx.uow.filesystems.find(fs_id)
    if filesystem is None:
        raise invalid_field(f"{field}.name", f"user[{ctx.actor.name}] has no filesystem [{asked.name[:80]}]")
    target = asked.mount_path or f"/home/paddleflow/storage/mnt/{fs_id}"
    return replace(
        asked,
        id=fs_id,
        type=filesystem.type,
        host_path=filesystem.sub_path,
        mount_path=check_mount_path(f"{field}.mountPath", target, code=_FAILED),
        sub_path=check_sub_path(f"{field}.subPath", asked.sub_path, code=_FAILED),
    )


def _priority(text: str) -> Priority:
    wanted = text.upper()
    if not wanted:
        return Priority.NORMAL
    for priority in _SUBMIT_PRIORITIES:
        if priority.name == wanted:
            return priority
    raise Invalid(f"invalid job priority {text[:80]}, should be in [LOW, NORMAL, HIGH]")


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
    labels = check_labels("labels", command.labels, value_limit=_LABEL_LIMIT, code="JobInvalidField")
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
    ctx.uow.jobs.delete(job.id)
    ctx.uow.remains.add(job.id, job.cluster)
    ctx.emit(EventKind.JOB_DELETED, job.id, job.owner, status=job.status, queue=job.queue)
    return {}


def forget_remains(ctx: Context, command: commands.ForgetRemains) -> Answer:
    ctx.uow.remains.delete(command.id)
    return {}


def admit_job(ctx: Context, command: commands.AdmitJob) -> Answer:
    job = _job(ctx, command.id)
    _apply(ctx, job_machine.admit(job, command.placements, command.message, ctx.now))
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
    _apply(ctx, job_machine.report(job, ctx.uow.jobs.tasks(job.id), command.report, ctx.now))
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
