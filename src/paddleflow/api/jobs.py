"""Jobs on the wire, as they are shown and changed; how they are submitted is in ``submissions``.

A single job spells its one member flat at the top level; any other lists its members and leaves the flat fields empty.
What an ordinary job does not have (elasticity, a policy of its own) is not shown.
"""

# ruff: noqa: N815  the names of the fields are the names on the wire

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar, NotRequired
from urllib.parse import quote

from pydantic import Field
from typing_extensions import TypedDict

from paddleflow.api.wire import PageAnswer, WireRequest, local_time
from paddleflow.domain.commands import UpdateJob
from paddleflow.domain.ids import JobId
from paddleflow.domain.jobs import (
    Elasticity,
    FlavourRef,
    FsRef,
    Job,
    JobKind,
    JobStatus,
    Member,
    RunPolicy,
    Task,
    TaskStatus,
)
from paddleflow.domain.queries import Eta
from paddleflow.domain.resources import CPU, MEMORY, format_units


class UpdateJobRequest(WireRequest):
    refusal_code: ClassVar[str] = "JobInvalidField"

    priority: str | None = None
    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)

    def to_command(self, job_id: str) -> UpdateJob:
        return UpdateJob(id=JobId(job_id), priority=self.priority, labels=self.labels, annotations=self.annotations)


class JobIdAnswer(TypedDict):
    id: str


class JobFlavourAnswer(TypedDict):
    cpu: str
    mem: str
    scalarResources: NotRequired[dict[str, str]]
    name: str


class FsAnswer(TypedDict):
    id: str
    name: str
    type: str
    hostPath: NotRequired[str]
    mountPath: str
    subPath: str
    readOnly: bool


class SchedulingPolicyAnswer(TypedDict):
    queue: str
    priority: str


class MemberAnswer(TypedDict):
    role: str
    replicas: int
    name: str
    flavour: JobFlavourAnswer
    limitFlavour: JobFlavourAnswer
    fs: FsAnswer
    extraFS: list[FsAnswer]
    image: str
    env: dict[str, str]
    command: str
    args: list[str]
    port: int
    labels: dict[str, str]
    annotations: dict[str, str]
    nodeSelector: NotRequired[dict[str, str]]


class ElasticAnswer(TypedDict):
    role: str
    min: int
    max: int
    sizes: NotRequired[list[int]]
    rescaleCostSeconds: float


class RunPolicyAnswer(TypedDict):
    retries: int
    backoffSeconds: float
    deadlineSeconds: NotRequired[float]
    ttlSeconds: NotRequired[float]
    graceSeconds: NotRequired[float]
    requeue: bool


class RuntimeAnswer(TypedDict):
    name: str
    namespace: str
    id: str
    status: str
    """JSON text."""
    nodeName: str
    role: str
    index: int
    acceleratorCards: NotRequired[list[str]]
    logURL: str


class DistributedRuntimeAnswer(TypedDict):
    name: str
    namespace: str
    id: str
    status: str
    """JSON text."""
    runtimes: list[RuntimeAnswer]
    """The tasks the job consists of now, then those it consisted of before."""


class JobAnswer(TypedDict):
    id: str
    name: str
    labels: dict[str, str]
    annotations: dict[str, str]
    schedulingPolicy: SchedulingPolicyAnswer
    UserName: str
    flavour: JobFlavourAnswer
    limitFlavour: JobFlavourAnswer
    fs: FsAnswer
    extraFS: list[FsAnswer]
    image: str
    env: dict[str, str]
    command: str
    args: list[str]
    port: int
    nodeSelector: NotRequired[dict[str, str]]
    extensionTemplate: dict[str, Any]
    framework: NotRequired[str]
    members: NotRequired[list[MemberAnswer]]
    elastic: NotRequired[ElasticAnswer]
    runPolicy: NotRequired[RunPolicyAnswer]
    status: str
    message: str
    acceptTime: str
    startTime: str
    finishTime: str
    runtime: NotRequired[RuntimeAnswer]
    distributedRuntime: NotRequired[DistributedRuntimeAnswer]


class JobListAnswer(PageAnswer):
    jobList: list[JobAnswer]


class WhyAnswer(TypedDict):
    jobID: str
    status: str
    sentence: str
    details: dict[str, Any]


class EtaAnswer(TypedDict):
    jobID: str
    status: str
    low: str
    median: str
    high: str
    confidence: float
    sentence: str


class MembershipTaskAnswer(TypedDict):
    id: str
    role: str
    index: int
    rank: NotRequired[int]
    host: NotRequired[str]
    ports: NotRequired[list[int]]


class MembershipAnswer(TypedDict):
    generation: int
    least: int
    most: int
    tasks: list[MembershipTaskAnswer]


def eta_answer(eta: Eta) -> EtaAnswer:
    return {
        "jobID": eta.job_id,
        "status": eta.status,
        "low": local_time(eta.low),
        "median": local_time(eta.median),
        "high": local_time(eta.high),
        "confidence": eta.confidence,
        "sentence": eta.sentence,
    }


def _flavour_answer(flavour: FlavourRef) -> JobFlavourAnswer:
    resources = flavour.resources
    answer = JobFlavourAnswer(
        cpu=format_units(CPU, resources.cpu_milli), mem=format_units(MEMORY, resources.memory_bytes), name=flavour.name
    )
    scalars = resources.scalars
    if scalars:
        answer["scalarResources"] = {key: format_units(key, units) for key, units in scalars.items()}
    return answer


_NO_FS = FsRef(name="")


def _fs_answer(fs: FsRef) -> FsAnswer:
    answer = FsAnswer(
        id=fs.id, name=fs.name, type=fs.type, mountPath=fs.mount_path, subPath=fs.sub_path, readOnly=fs.read_only
    )
    if fs.host_path:
        answer["hostPath"] = fs.host_path
    return answer


def _member_answer(member: Member) -> MemberAnswer:
    answer: MemberAnswer = {
        "role": member.role,
        "replicas": member.replicas,
        "name": member.name,
        "flavour": _flavour_answer(member.flavour),
        "limitFlavour": _flavour_answer(member.limit or member.flavour),
        "fs": _fs_answer(member.fs or _NO_FS),
        "extraFS": [_fs_answer(fs) for fs in member.extra_fs],
        "image": member.image,
        "env": dict(member.env),
        "command": member.command,
        "args": list(member.args),
        "port": member.port,
        "labels": dict(member.labels),
        "annotations": dict(member.annotations),
    }
    if member.node_selector:
        answer["nodeSelector"] = dict(member.node_selector)
    return answer


def _elastic_answer(elastic: Elasticity) -> ElasticAnswer:
    answer = ElasticAnswer(
        role=elastic.role, min=elastic.least, max=elastic.most, rescaleCostSeconds=elastic.rescale_cost_s
    )
    if elastic.sizes:
        answer["sizes"] = list(elastic.sizes)
    return answer


def _policy_answer(policy: RunPolicy) -> RunPolicyAnswer:
    answer = RunPolicyAnswer(retries=policy.retries, backoffSeconds=policy.backoff_s, requeue=policy.requeue)
    if policy.deadline_s is not None:
        answer["deadlineSeconds"] = policy.deadline_s
    if policy.ttl_s is not None:
        answer["ttlSeconds"] = policy.ttl_s
    if policy.grace_s is not None:
        answer["graceSeconds"] = policy.grace_s
    return answer


_NO_MEMBER = Member()
_USUAL_POLICY = RunPolicy()


def _message(job: Job) -> str:
    """A job that waits for its next attempt says so itself; any other is told how many it has used up."""
    if not job.failures or JobStatus.INIT in (job.status, job.outcome):
        return job.message
    used = f"{job.failures} of {job.spec.policy.retries} retries used"
    return f"{job.message}; {used}" if job.message else used


def job_answer(job: Job) -> JobAnswer:
    """As lists show it. A job of one member spells it flat; any other leaves the flat fields empty."""
    spec = job.spec
    single = spec.kind is JobKind.SINGLE
    flat = spec.members[0] if single else _NO_MEMBER
    flavour = _flavour_answer(flat.flavour)
    answer = JobAnswer(
        id=job.id,
        name=job.name,
        labels=dict(job.labels),
        annotations=dict(job.annotations),
        schedulingPolicy={"queue": job.queue, "priority": job.priority.name},
        UserName=job.owner,
        flavour=flavour,
        # Without a limit of its own the request is the limit, and is shown as such.
        limitFlavour=flavour if flat.limit is None else _flavour_answer(flat.limit),
        fs=_fs_answer(flat.fs or _NO_FS),
        extraFS=[_fs_answer(fs) for fs in flat.extra_fs],
        image=flat.image,
        env=dict(flat.env),
        command=flat.command,
        args=list(flat.args),
        port=flat.port,
        extensionTemplate=dict(spec.extension_template or {}),
        status=job.status,
        message=_message(job),
        acceptTime=local_time(job.created_at),
        startTime=local_time(job.activated_at),
        finishTime=local_time(job.finished_at),
    )
    if flat.node_selector:
        answer["nodeSelector"] = dict(flat.node_selector)
    if not single:
        answer["framework"] = spec.framework
        answer["members"] = [_member_answer(member) for member in spec.members]
    if spec.elastic is not None:
        answer["elastic"] = _elastic_answer(spec.elastic)
    if spec.policy is not _USUAL_POLICY and spec.policy != _USUAL_POLICY:
        answer["runPolicy"] = _policy_answer(spec.policy)
    return answer


def job_detail_answer(job: Job, tasks: Sequence[Task], log_url: str) -> JobAnswer:
    """As it is shown alone: with the tasks that run it, once it has any."""
    answer = job_answer(job)
    if not tasks:
        return answer
    runtimes = [_runtime_answer(task, log_url) for task in _latest_first(job, tasks)]
    if job.spec.kind is JobKind.SINGLE:
        answer["runtime"] = runtimes[0]
    else:
        answer["distributedRuntime"] = {
            "name": job.id,
            "namespace": "",
            "id": job.id,
            "status": json.dumps(_distributed_status(job, tasks)),
            "runtimes": runtimes,
        }
    return answer


_LONG_AGO = datetime.min.replace(tzinfo=UTC)


def _latest_first(job: Job, tasks: Sequence[Task]) -> list[Task]:
    """The tasks the job consists of now, in order; then those of the past, the latest first."""
    places = {placement.task_id: place for place, placement in enumerate(job.placements)}
    now = sorted((task for task in tasks if task.id in places), key=lambda task: places[task.id])
    past = [task for task in tasks if task.id not in places]
    return now + sorted(past, key=lambda task: task.started_at or _LONG_AGO, reverse=True)


def _distributed_status(job: Job, tasks: Sequence[Task]) -> dict[str, object]:
    """How many of the present tasks are how far."""
    present = {placement.task_id for placement in job.placements}
    counted = Counter(task.status for task in tasks if task.id in present)
    return {"phase": job.status, "generation": job.generation, **{status: counted[status] for status in TaskStatus}}


_PHASES = {
    TaskStatus.PENDING: "Pending",
    TaskStatus.RUNNING: "Running",
    TaskStatus.SUCCEEDED: "Succeeded",
    TaskStatus.FAILED: "Failed",
}


def _runtime_answer(task: Task, log_url: str) -> RuntimeAnswer:
    status: dict[str, object] = {"phase": _PHASES[task.status], "message": task.message}
    if task.exit_code is not None:
        status["exitCode"] = task.exit_code
    if task.signal is not None:
        status["signal"] = task.signal
    status["startTime"] = local_time(task.started_at)
    status["finishTime"] = local_time(task.finished_at)
    answer = RuntimeAnswer(
        name=task.id,
        namespace="",
        id=task.id,
        status=json.dumps(status),
        nodeName=task.node,
        role=task.role,
        index=task.index,
        logURL=f"{log_url}?task={quote(task.id, safe='')}",
    )
    if task.gpus:
        answer["acceleratorCards"] = [str(card) for card in task.gpus]
    return answer
