"""Jobs on the wire.

A single job spells its one member flat at the top level; a distributed job lists members; a workflow is a template.
Whatever is wrong with a submission is answered with the one code ``JobCreateFailed``.
"""

# ruff: noqa: N815  the names of the fields are the names on the wire

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, ClassVar, NotRequired
from urllib.parse import quote

from pydantic import Field
from typing_extensions import TypedDict

from paddleflow.api.wire import PageAnswer, ResourcesRequest, WireRequest, local_time
from paddleflow.domain.commands import SubmitJob, UpdateJob
from paddleflow.domain.errors import Invalid, invalid_field
from paddleflow.domain.ids import JobId
from paddleflow.domain.jobs import (
    FlavourRef,
    Framework,
    FsRef,
    Job,
    JobKind,
    JobSpec,
    Member,
    Task,
    TaskStatus,
)
from paddleflow.domain.resources import CPU, MEMORY, format_units

_CREATE_FAILED = "JobCreateFailed"


class FlavourRequest(ResourcesRequest):
    """By name, or by amounts."""

    name: str = ""

    def to_ref(self, field: str) -> FlavourRef:
        return FlavourRef(name=self.name, resources=self.parse(field, _CREATE_FAILED))


class FsRequest(WireRequest):
    name: str = ""
    mountPath: str = ""
    subPath: str = ""
    readOnly: bool = False

    def to_ref(self) -> FsRef:
        return FsRef(name=self.name, mount_path=self.mountPath, sub_path=self.subPath, read_only=self.readOnly)


class SchedulingPolicyRequest(WireRequest):
    queue: str = ""
    priority: str = ""


class MemberSpecRequest(WireRequest):
    """What one role runs, and on what."""

    refusal_code: ClassVar[str] = _CREATE_FAILED

    flavour: FlavourRequest = FlavourRequest()
    limitFlavour: FlavourRequest | None = None
    fs: FsRequest | None = None
    extraFS: list[FsRequest] = Field(default_factory=list)
    image: str = ""
    env: dict[str, str] = Field(default_factory=dict)
    command: str = ""
    args: list[str] = Field(default_factory=list)
    port: int = 0

    def to_member(self, role: str, replicas: int, name: str) -> Member:
        return Member(
            role=role,
            replicas=replicas,
            name=name,
            flavour=self.flavour.to_ref("flavour"),
            limit=None if self.limitFlavour is None else self.limitFlavour.to_ref("limitFlavour"),
            # Clients send the empty object they were shown for "no filesystem".
            fs=None if self.fs is None or not self.fs.name else self.fs.to_ref(),
            extra_fs=tuple(fs.to_ref() for fs in self.extraFS),
            image=self.image,
            env=self.env,
            command=self.command,
            args=tuple(self.args),
            port=self.port,
        )


class JobRequest(WireRequest):
    """What every kind of job has."""

    refusal_code: ClassVar[str] = _CREATE_FAILED

    id: str = ""
    name: str = ""
    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)
    schedulingPolicy: SchedulingPolicyRequest = SchedulingPolicyRequest()
    extensionTemplate: dict[str, Any] | None = None

    def submission(self, spec: JobSpec) -> SubmitJob:
        return SubmitJob(
            spec=spec,
            id=self.id,
            name=self.name,
            queue=self.schedulingPolicy.queue,
            priority=self.schedulingPolicy.priority,
            labels=self.labels,
            annotations=self.annotations,
        )


class SingleJobRequest(JobRequest, MemberSpecRequest):
    def to_command(self) -> SubmitJob:
        member = self.to_member("worker", 1, self.name)
        return self.submission(
            JobSpec(kind=JobKind.SINGLE, members=(member,), extension_template=self.extensionTemplate)
        )


class MemberRequest(MemberSpecRequest):
    role: str = ""
    replicas: int = 1
    name: str = ""
    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)
    schedulingPolicy: SchedulingPolicyRequest | None = None


class DistributedJobRequest(JobRequest):
    framework: str = ""
    members: list[MemberRequest] = Field(default_factory=list)

    def to_command(self) -> SubmitJob:
        try:
            framework = Framework(self.framework)
        except ValueError:
            known = ", ".join(Framework)
            problem = f"[{self.framework[:80]}] is not one of {known}"
            raise invalid_field("framework", problem, code=_CREATE_FAILED) from None
        for member in self.members:
            if member.replicas < 1:
                raise invalid_field("members.replicas", "it must be at least 1", code=_CREATE_FAILED)
        members = tuple(member.to_member(member.role, member.replicas, member.name) for member in self.members)
        return self.submission(
            JobSpec(
                kind=JobKind.DISTRIBUTED,
                framework=framework,
                members=members,
                extension_template=self.extensionTemplate,
            )
        )


class WorkflowJobRequest(JobRequest):
    def to_command(self) -> SubmitJob:
        if not self.extensionTemplate:
            raise Invalid("Field[extensionTemplate] is invalid, a workflow needs one", code=_CREATE_FAILED)
        spec = JobSpec(kind=JobKind.WORKFLOW, members=(), extension_template=self.extensionTemplate)
        return self.submission(spec)


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
    extensionTemplate: dict[str, Any]
    framework: NotRequired[str]
    members: NotRequired[list[MemberAnswer]]
    status: str
    message: str
    acceptTime: str
    startTime: str
    finishTime: str
    runtime: NotRequired[RuntimeAnswer]


class JobListAnswer(PageAnswer):
    jobList: list[JobAnswer]


class WhyAnswer(TypedDict):
    jobID: str
    status: str
    sentence: str
    details: dict[str, Any]


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
    return {
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


_NO_MEMBER = Member()


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
        message=job.message,
        acceptTime=local_time(job.created_at),
        startTime=local_time(job.activated_at),
        finishTime=local_time(job.finished_at),
    )
    if not single:
        answer["framework"] = spec.framework
        answer["members"] = [_member_answer(member) for member in spec.members]
    return answer


def job_detail_answer(job: Job, tasks: Sequence[Task], log_url: str) -> JobAnswer:
    """As it is shown alone: with the task that runs it, once it has one."""
    answer = job_answer(job)
    if tasks and job.spec.kind is JobKind.SINGLE:
        answer["runtime"] = _runtime_answer(tasks[0], log_url)
    return answer


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
