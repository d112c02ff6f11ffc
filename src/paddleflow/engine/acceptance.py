"""What a submission becomes: the job as it would be stored, with every name resolved, or the reason why not.

Writes nothing, so it serves the one who submits and the one who only asks what would happen if.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from paddleflow import frameworks
from paddleflow.domain import commands
from paddleflow.domain.access import may_use_queue
from paddleflow.domain.clusters import ClusterType
from paddleflow.domain.errors import (
    Denied,
    Duplicate,
    Invalid,
    invalid_field,
)
from paddleflow.domain.flavours import CUSTOM
from paddleflow.domain.ids import DEFAULT_QUEUE, FlavourName, JobId, QueueName, filesystem_id
from paddleflow.domain.jobs import FlavourRef, FsRef, Job, JobKind, JobSpec, Member, Priority
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
from paddleflow.domain.storages import LOCAL
from paddleflow.domain.users import Actor
from paddleflow.engine.capabilities import Capabilities
from paddleflow.engine.context import Context
from paddleflow.ports.store import ReadView
from paddleflow.scheduling.entries import waiting_of
from paddleflow.scheduling.never import check_can_ever_fit

CREATE_FAILED = "JobCreateFailed"
"""Every refused submission answers with this code; the message says what is wrong."""

_SUBMIT_PRIORITIES = (Priority.LOW, Priority.NORMAL, Priority.HIGH)
_NAME_LIMIT = 512
LABEL_LIMIT = 1024
_DEFAULT_AMOUNTS = {CPU: "1", MEMORY: "1Gi"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """Where a submission is handed in: the rows it is judged by, who hands it in, and when."""

    rows: ReadView
    actor: Actor
    now: datetime
    new_id: Callable[[str, int], str]
    capabilities: Capabilities


def desk_of(ctx: Context, actor: Actor) -> Desk:
    """Of a command in its transaction; a step is handed in by the owner of its run."""
    return Desk(rows=ctx.uow, actor=actor, now=ctx.now, new_id=ctx.new_id, capabilities=ctx.capabilities)


def accepted(desk: Desk, command: commands.SubmitJob) -> Job:
    """The job as it will be stored, or the reason why not."""
    if command.spec.kind is JobKind.WORKFLOW or not frameworks.supports(command.spec.framework):
        raise Invalid(f"{command.spec.kind} jobs are not supported by this server; single and distributed jobs are")
    frameworks.check(command.spec)
    queue = _open_queue(desk, command.queue)
    job_id = JobId(check_job_id(command.id) if command.id else desk.new_id("job", 16))
    if command.id and desk.rows.jobs.find(job_id) is not None:
        raise Duplicate(f"job[{job_id}] already exists, choose another id")
    if command.id and desk.rows.remains.find(job_id) is not None:
        raise Duplicate(f"job[{job_id}] was deleted and is still being cleared away, try again in a moment")
    on_host = _check_cluster(desk, command.spec, queue)
    host_env = command.host_env if on_host else {}
    members = tuple(_resolved(desk, replace(member, env={**host_env, **member.env})) for member in command.spec.members)
    return Job(
        id=job_id,
        name=check_text("name", command.name, limit=_NAME_LIMIT, code=CREATE_FAILED) or job_id,
        owner=desk.actor.name,
        queue=queue.name,
        cluster=queue.cluster,
        priority=_priority(command.priority),
        labels=check_labels("labels", command.labels, value_limit=LABEL_LIMIT, code=CREATE_FAILED),
        annotations=check_labels("annotations", command.annotations, value_limit=65536, code=CREATE_FAILED),
        spec=replace(command.spec, members=members),
        created_at=desk.now,
        updated_at=desk.now,
    )


def check_fits(desk: Desk, job: Job) -> None:
    """Refuse what could never start however long it waited."""
    queues = desk.rows.queues.all()
    queue = next(queue for queue in queues if queue.name == job.queue)
    check_can_ever_fit(waiting_of(job), queue, queues, desk.rows.clusters.nodes(job.cluster))


def _open_queue(desk: Desk, asked: str) -> Queue:
    name = QueueName(asked or DEFAULT_QUEUE)
    queue = desk.rows.queues.find(name)
    if queue is None:
        raise Invalid(f"queue[{name[:80]}] does not exist", details={"field": "schedulingPolicy.queue"})
    if not may_use_queue(desk.actor, name, () if desk.actor.is_root else desk.rows.grants.of_user(desk.actor.name)):
        raise Denied(
            f"user[{desk.actor.name}] has no grant for queue[{name}]; root can give one with: "
            f"paddleflow queue grant {desk.actor.name} {name}",
        )
    if queue.status is not QueueStatus.OPEN:
        raise Invalid(f"queue[{name}] status is {queue.status}, and only queue with open status can submit jobs")
    return queue


def _check_cluster(desk: Desk, spec: JobSpec, queue: Queue) -> bool:
    """Whether the job's tasks will be processes of this machine.

    Refuses what the queue's cluster could not do, or would leave out without a word: this machine runs processes and
    neither images nor Kubernetes objects, other clusters run images and nothing else.
    """
    cluster = desk.rows.clusters.find(queue.cluster)
    image = next((member.image for member in spec.members if member.image), "")
    if cluster is None or cluster.type is not ClusterType.LOCAL:
        if spec.extension_template is None and not all(member.image for member in spec.members):
            raise invalid_field("image", f"it is empty, and cluster[{queue.cluster}] runs images")
        return False
    if spec.extension_template is not None:
        raise invalid_field(
            "extensionTemplate",
            f"cluster[{cluster.name}] runs processes of this machine and no Kubernetes objects; "
            "give a command instead, or a queue of a Kubernetes cluster",
        )
    if image and not desk.capabilities.can_use_image(cluster):
        raise desk.capabilities.refuse_image("image", image, cluster)
    return True


def _resolved(desk: Desk, member: Member) -> Member:
    for field, value in (("command", member.command), ("image", member.image)):
        check_text(field, value)
    for argument in member.args:
        check_text("args", argument)
    if not 0 <= member.port <= 65534:
        raise invalid_field("port", f"{member.port} is not 0 or between 1 and 65534")
    flavour = _flavour(desk, member.flavour)
    limit = _limit(desk, member, flavour)
    resolved = replace(
        member,
        flavour=flavour,
        limit=limit,
        env=check_environment("env", member.env, code=CREATE_FAILED),
        fs=None if member.fs is None else _mount(desk, "fs", member.fs),
        extra_fs=tuple(_mount(desk, "extraFS", fs) for fs in member.extra_fs),
    )
    _check_distinct_targets(resolved.mounts)
    return resolved


def _flavour(desk: Desk, asked: FlavourRef) -> FlavourRef:
    """By name, or the amounts given; one CPU and 1Gi where either is missing."""
    if asked.name and asked.name != CUSTOM:
        flavour = desk.rows.flavours.find(FlavourName(asked.name))
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


def _limit(desk: Desk, member: Member, flavour: FlavourRef) -> FlavourRef | None:
    named = member.env.get("PF_JOB_LIMIT_FLAVOUR", "")
    if named.upper() == "NONE":
        return None
    asked = FlavourRef(name=named) if named else member.limit
    if asked is None or (not asked.name and asked.resources.is_zero):
        return None
    limit = _flavour(desk, asked)
    over = flavour.resources.over_named_limit(limit.resources)
    if over is not None:
        raise invalid_field("limitFlavour", f"its {over} is below what flavour asks for")
    return limit


def _mount(desk: Desk, field: str, asked: FsRef) -> FsRef:
    fs_id = filesystem_id(desk.actor.name, asked.name)
    filesystem = desk.rows.filesystems.find(fs_id)
    if filesystem is None:
        raise invalid_field(f"{field}.name", f"user[{desk.actor.name}] has no filesystem [{asked.name[:80]}]")
    target = asked.mount_path or f"/home/paddleflow/storage/mnt/{fs_id}"
    return replace(
        asked,
        id=fs_id,
        type=filesystem.type,
        host_path=filesystem.sub_path if filesystem.type == LOCAL else "",
        mount_path=check_mount_path(f"{field}.mountPath", target, code=CREATE_FAILED),
        sub_path=check_sub_path(f"{field}.subPath", asked.sub_path, code=CREATE_FAILED),
    )


def _check_distinct_targets(mounts: tuple[FsRef, ...]) -> None:
    """Refuse a mount that would hide another one."""
    mounted: dict[str, FsRef] = {}
    for fs in mounts:
        first = mounted.setdefault(fs.mount_path, fs)
        if first != fs:
            raise invalid_field(
                "extraFS.mountPath",
                f"both [{_place(first)}] and [{_place(fs)}] would be mounted at [{fs.mount_path}], "
                "give each a mountPath of its own",
            )


def _place(fs: FsRef) -> str:
    return f"{fs.name}/{fs.sub_path}" if fs.sub_path else fs.name


def _priority(text: str) -> Priority:
    wanted = text.upper()
    if not wanted:
        return Priority.NORMAL
    for priority in _SUBMIT_PRIORITIES:
        if priority.name == wanted:
            return priority
    raise Invalid(f"invalid job priority {text[:80]}, should be in [LOW, NORMAL, HIGH]")
