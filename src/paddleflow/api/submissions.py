"""Jobs as they are submitted.

A single job spells its one member flat at the top level; a distributed job lists members; a workflow is a template.
Whatever is wrong with a submission is answered with the one code ``JobCreateFailed`` and names the field. Here the
shape is judged and what older clients say in other words is understood; which roles a framework needs is its own rule.
"""

# ruff: noqa: N815  the names of the fields are the names on the wire

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, ClassVar

from pydantic import Field

from paddleflow.api.wire import ResourcesRequest, WireRequest
from paddleflow.domain.commands import SubmitJob
from paddleflow.domain.errors import Invalid, invalid_field
from paddleflow.domain.ids import DEFAULT_QUEUE
from paddleflow.domain.jobs import Elasticity, FlavourRef, Framework, FsRef, JobKind, JobSpec, Member, RunPolicy

CREATE_FAILED = "JobCreateFailed"
MOST_TASKS = 4096
"""In one job: what may be asked for is bounded before anything is counted out."""

_TTL_ANNOTATION = "paddleflow/job-ttl-seconds"
_RESTART_VARIABLE = "PF_JOB_RESTART_POLICY"
_RESTARTS = {"OnFailure": 6, "Always": 6}
"""How often a job is started again that asks for it in the older way, which names no number."""
_ROLE_ALIASES = {"pworker": "worker"}
_UNSUPPORTED = ("mxnet", "aitj")
"""Frameworks that earlier releases took in and could not run."""
_TEN_YEARS_S = 10 * 365 * 86400.0


class FlavourRequest(ResourcesRequest):
    """By name, or by amounts."""

    name: str = ""

    def to_ref(self, field: str) -> FlavourRef:
        return FlavourRef(name=self.name, resources=self.parse(field, CREATE_FAILED))


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


class ElasticRequest(WireRequest):
    """How many tasks of one role the job can live with."""

    role: str = "worker"
    min: int = 0
    max: int = 0
    sizes: list[int] = Field(default_factory=list, max_length=MOST_TASKS)
    rescaleCostSeconds: float = 30.0

    def to_elasticity(self) -> Elasticity:
        if self.min < 1:
            raise _refused("elastic.min", f"{_shown(self.min)} is not at least 1; the job cannot run without any task")
        if self.max < self.min:
            raise _refused(
                "elastic.max", f"{_shown(self.max)} is below elastic.min {_shown(self.min)}; give at least that"
            )
        if self.max > MOST_TASKS:
            raise _refused("elastic.max", f"{_shown(self.max)} is above the {MOST_TASKS} tasks a job may have")
        _check_within("elastic.rescaleCostSeconds", self.rescaleCostSeconds, 0, 86400)
        return Elasticity(
            role=_ROLE_ALIASES.get(self.role, self.role),
            least=self.min,
            most=self.max,
            sizes=tuple(self.sizes),
            rescale_cost_s=self.rescaleCostSeconds,
        )


class RunPolicyRequest(WireRequest):
    """What happens when things end, early or late."""

    retries: int | None = None
    backoffSeconds: float = 10.0
    deadlineSeconds: float | None = None
    ttlSeconds: float | None = None
    graceSeconds: float | None = None
    requeue: bool = True

    def to_policy(self, annotations: Mapping[str, str], environments: Iterable[Mapping[str, str]]) -> RunPolicy:
        """What is not said here may have been said in the older ways: an annotation, a variable of a member."""
        retries = self.retries
        if retries is None:
            retries = max((_RESTARTS.get(env.get(_RESTART_VARIABLE, ""), 0) for env in environments), default=0)
        ttl_s = _annotated_ttl(annotations) if self.ttlSeconds is None else self.ttlSeconds
        _check_within("runPolicy.retries", retries, 0, 100)
        _check_within("runPolicy.backoffSeconds", self.backoffSeconds, 0, 86400)
        if self.deadlineSeconds is not None and self.deadlineSeconds <= 0:
            raise _refused("runPolicy.deadlineSeconds", "it must be above zero; leave it out for no deadline")
        _check_within("runPolicy.deadlineSeconds", self.deadlineSeconds, 0, _TEN_YEARS_S)
        _check_within("runPolicy.ttlSeconds", ttl_s, 0, _TEN_YEARS_S)
        _check_within("runPolicy.graceSeconds", self.graceSeconds, 0, 3600)
        return RunPolicy(
            retries=retries,
            backoff_s=self.backoffSeconds,
            deadline_s=self.deadlineSeconds,
            ttl_s=ttl_s,
            grace_s=self.graceSeconds,
            requeue=self.requeue,
        )


class MemberSpecRequest(WireRequest):
    """What one role runs, and on what."""

    refusal_code: ClassVar[str] = CREATE_FAILED

    flavour: FlavourRequest = FlavourRequest()
    limitFlavour: FlavourRequest | None = None
    fs: FsRequest | None = None
    extraFS: list[FsRequest] = Field(default_factory=list)
    image: str = ""
    env: dict[str, str] = Field(default_factory=dict)
    command: str = ""
    args: list[str] = Field(default_factory=list)
    port: int = 0
    nodeSelector: dict[str, str] = Field(default_factory=dict)

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
            node_selector=self.nodeSelector,
        )


class JobRequest(WireRequest):
    """What every kind of job has."""

    refusal_code: ClassVar[str] = CREATE_FAILED

    id: str = ""
    name: str = ""
    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)
    schedulingPolicy: SchedulingPolicyRequest = SchedulingPolicyRequest()
    extensionTemplate: dict[str, Any] | None = None
    elastic: ElasticRequest | None = None
    runPolicy: RunPolicyRequest = RunPolicyRequest()
    hostEnv: dict[str, str] = Field(default_factory=dict)
    """Beside ``env``, and behind it, where tasks are processes of the server's machine; nothing elsewhere."""

    def submission(
        self, kind: JobKind, members: tuple[Member, ...], framework: Framework = Framework.STANDALONE
    ) -> SubmitJob:
        if self.elastic is not None and kind is not JobKind.DISTRIBUTED:
            raise _refused("elastic", f"a {kind} job has one size; submit a distributed job, or leave it out")
        return SubmitJob(
            spec=JobSpec(
                kind=kind,
                framework=framework,
                members=members,
                # Clients send the empty object they were shown for "no template".
                extension_template=self.extensionTemplate or None,
                elastic=None if self.elastic is None else self.elastic.to_elasticity(),
                policy=self.runPolicy.to_policy(self.annotations, (member.env for member in members)),
            ),
            id=self.id,
            name=self.name,
            queue=self.schedulingPolicy.queue,
            priority=self.schedulingPolicy.priority,
            labels=self.labels,
            annotations=self.annotations,
            host_env=self.hostEnv,
        )


class SingleJobRequest(JobRequest, MemberSpecRequest):
    def to_command(self) -> SubmitJob:
        return self.submission(JobKind.SINGLE, (self.to_member("worker", 1, self.name),))


class MemberRequest(MemberSpecRequest):
    role: str = ""
    replicas: int = 1
    name: str = ""
    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)
    schedulingPolicy: SchedulingPolicyRequest | None = None
    """A member runs in the job's queue and with the job's priority; older clients say the queue here once more."""

    def checked(self, field: str, queue: str) -> Member:
        if self.replicas < 1:
            raise _refused(f"{field}.replicas", f"{_shown(self.replicas)} is not at least 1")
        asked = self.schedulingPolicy.queue if self.schedulingPolicy is not None else ""
        if asked and asked != queue:
            raise _refused(
                f"{field}.schedulingPolicy.queue",
                f"[{asked[:80]}] is not the job's queue [{queue[:80]}]; leave it out, all members run in one queue",
            )
        member = self.to_member(_ROLE_ALIASES.get(self.role, self.role), self.replicas, self.name)
        return replace(member, labels=self.labels, annotations=self.annotations)


class DistributedJobRequest(JobRequest):
    framework: str = ""
    members: list[MemberRequest] = Field(default_factory=list)

    def to_command(self) -> SubmitJob:
        framework = _framework(self.framework)
        tasks = sum(max(1, member.replicas) for member in self.members)
        if tasks > MOST_TASKS:
            raise _refused("members", f"they have {_shown(tasks)} replicas together, a job may have {MOST_TASKS} tasks")
        queue = self.schedulingPolicy.queue or DEFAULT_QUEUE
        members = tuple(member.checked(f"members[{index}]", queue) for index, member in enumerate(self.members))
        return self.submission(JobKind.DISTRIBUTED, members, framework)


class AnyJobRequest(DistributedJobRequest, SingleJobRequest):
    """A job of either kind, where no address tells which: one that lists members is distributed."""

    def to_command(self) -> SubmitJob:
        asked: type[DistributedJobRequest | SingleJobRequest] = SingleJobRequest
        if self.members or self.framework:
            asked = DistributedJobRequest
        return asked.to_command(self)


class WorkflowJobRequest(JobRequest):
    def to_command(self) -> SubmitJob:
        if not self.extensionTemplate:
            raise _refused("extensionTemplate", "a workflow needs one")
        return self.submission(JobKind.WORKFLOW, ())


def _framework(text: str) -> Framework:
    known = ", ".join(Framework)
    if text in _UNSUPPORTED:
        raise _refused("framework", f"{text} jobs cannot be run by this server; choose from {known}")
    try:
        return Framework(text)
    except ValueError:
        raise _refused("framework", f"[{text[:80]}] is not one of {known}") from None


def _annotated_ttl(annotations: Mapping[str, str]) -> float | None:
    text = annotations.get(_TTL_ANNOTATION, "")
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise _refused(f"annotations.{_TTL_ANNOTATION}", f"[{text[:80]}] is not a whole number of seconds")
    return float(text)


def _check_within(field: str, value: float | None, low: float, high: float) -> None:
    if value is not None and not low <= value <= high:
        raise _refused(field, f"{_shown(value)} is not between {low:g} and {high:g}")


def _shown(number: float) -> str:
    text = str(number)
    return text if len(text) <= 20 else text[:17] + "..."


def _refused(field: str, problem: str) -> Invalid:
    return invalid_field(field, problem, code=CREATE_FAILED)
