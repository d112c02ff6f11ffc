"""Jobs: submit, show, list, change, stop, and ask why one does not start and when it will."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from paddleflow.sdk.errors import InvalidError
from paddleflow.sdk.job_filesystems import filesystem_fields
from paddleflow.sdk.session import Session, present, require, segment
from paddleflow.sdk.surroundings import surroundings
from paddleflow.sdk.words import JOB_ENDED

JOB_TYPES = ("single", "distributed", "workflow")
GPU = "nvidia.com/gpu"
_LEADERS = {"mpi": "master", "ray": "master", "spark": "driver"}
"""Frameworks whose command runs once, in a task of this role, and the others serve it; elsewhere every task runs it."""
_FOLLOWERS = {"spark": "executor"}


@dataclass(frozen=True)
class JobInfo:
    job_id: str
    job_name: str
    labels: dict[str, str]
    annotations: dict[str, str]
    username: str
    queue: str
    priority: str | None
    flavour: dict[str, Any]
    fs: dict[str, Any]
    extra_fs_list: list[dict[str, Any]]
    image: str
    env: dict[str, str]
    command: str
    args_list: list[str]
    port: int
    extension_template: dict[str, Any] | None
    framework: str | None
    member_list: list[dict[str, Any]] | None
    status: str
    message: str
    accept_time: str
    start_time: str
    finish_time: str
    runtime: dict[str, Any] | None = None
    distributed_runtime: dict[str, Any] | None = None
    workflow_runtime: dict[str, Any] | None = None
    limit_flavour: dict[str, Any] = field(default_factory=dict)
    elastic: dict[str, Any] | None = None
    run_policy: dict[str, Any] | None = None

    @property
    def is_terminal(self) -> bool:
        return self.status in JOB_ENDED

    @property
    def tasks(self) -> list[dict[str, Any]]:
        """Every task, those the job consists of now first; only where one job was asked for, not in lists."""
        if self.distributed_runtime is not None:
            return list(self.distributed_runtime.get("runtimes") or [])
        return [] if self.runtime is None else [self.runtime]

    @classmethod
    def from_wire(cls, data: Mapping[str, Any]) -> JobInfo:
        policy = data.get("schedulingPolicy") or {}
        return cls(
            job_id=data["id"],
            job_name=data.get("name", ""),
            labels=data.get("labels") or {},
            annotations=data.get("annotations") or {},
            username=data.get("UserName", ""),
            queue=policy.get("queue", ""),
            priority=policy.get("priority"),
            flavour=data.get("flavour") or {},
            fs=data.get("fs") or {},
            extra_fs_list=data.get("extraFS") or [],
            image=data.get("image", ""),
            env=data.get("env") or {},
            command=data.get("command", ""),
            args_list=data.get("args") or [],
            port=data.get("port") or 0,
            extension_template=data.get("extensionTemplate"),
            framework=data.get("framework"),
            member_list=data.get("members"),
            status=data["status"],
            message=data.get("message", ""),
            accept_time=data.get("acceptTime", ""),
            start_time=data.get("startTime", ""),
            finish_time=data.get("finishTime", ""),
            runtime=data.get("runtime"),
            distributed_runtime=data.get("distributedRuntime"),
            workflow_runtime=data.get("workflowRuntime"),
            limit_flavour=data.get("limitFlavour") or {},
            elastic=data.get("elastic"),
            run_policy=data.get("runPolicy"),
        )


@dataclass(frozen=True)
class JobReason:
    """Why a job is where it is, in one sentence."""

    job_id: str
    status: str
    sentence: str
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class JobEta:
    """When a job is expected to start, as local times; empty where that cannot be told."""

    job_id: str
    status: str
    low: str
    median: str
    high: str
    confidence: float
    sentence: str


class JobCalls(Session):
    """What the client can do with jobs."""

    def create_job(self, job_type: str, job_request: Mapping[str, Any]) -> tuple[bool, str]:
        """``job_request`` has the shape of the request body; every field of it is sent."""
        if job_type not in JOB_TYPES:
            raise InvalidError("InvalidJobType", f"job_type {job_type!r} should be one of {', '.join(JOB_TYPES)}")
        if not isinstance(job_request, Mapping):
            raise InvalidError("InvalidJobRequest", "job_request should be a dict in the shape of the request body")
        return True, str(self._create(f"/job/{job_type}", job_request)["id"])

    def submit_job(
        self,
        command: str | Sequence[str],
        *,
        queue: str | None = None,
        name: str | None = None,
        flavour: str | None = None,
        cpu: str | float | None = None,
        memory: str | None = None,
        gpus: int = 0,
        priority: str | None = None,
        env: Mapping[str, str] | None = None,
        image: str | None = None,
        fs: str | Sequence[str] = (),
        labels: Mapping[str, str] | None = None,
        work_dir: str | None = None,
        retries: int | None = None,
        deadline_s: float | None = None,
        idempotency_key: str | None = None,
    ) -> tuple[bool, str]:
        """Run one command as a job; the id of the job. A list of words is quoted, a string is run by the shell.

        On a server of this machine it runs as if started here: in this directory unless ``work_dir`` is given, with
        this process's PATH, HOME and virtual environment unless ``env`` says otherwise. The same ``idempotency_key``
        given again answers the first job's id and starts nothing.

        ``fs`` mounts filesystems, each ``NAME[/DIRECTORY][:/PATH][:ro]``: ``data:/data`` at a path of your choice,
        ``data/images:/data:ro`` one directory of it, for reading only.
        """
        body = present(
            command=_line(command),
            name=name,
            schedulingPolicy=present(queue=queue, priority=priority) or None,
            flavour=_flavour(flavour, cpu, memory, gpus),
            env=_environment(env, work_dir),
            hostEnv=surroundings(self.address, os.environ),
            image=image,
            **filesystem_fields(fs),
            labels=labels or None,
            runPolicy=present(retries=retries, deadlineSeconds=deadline_s) or None,
        )
        return True, str(self._create("/job/single", body, key=idempotency_key)["id"])

    def submit_distributed_job(
        self,
        command: str | Sequence[str],
        *,
        framework: str,
        workers: int | tuple[int, int] = 2,
        ps: int = 0,
        queue: str | None = None,
        name: str | None = None,
        flavour: str | None = None,
        cpu: str | float | None = None,
        memory: str | None = None,
        gpus: int = 0,
        priority: str | None = None,
        env: Mapping[str, str] | None = None,
        image: str | None = None,
        fs: str | Sequence[str] = (),
        labels: Mapping[str, str] | None = None,
        work_dir: str | None = None,
        retries: int | None = None,
        deadline_s: float | None = None,
        idempotency_key: str | None = None,
    ) -> tuple[bool, str]:
        """Run one command as a distributed job; the id of the job. The flavour is what each task gets.

        ``workers`` is a number, or the fewest and the most: then the job is elastic, starts with the fewest at the
        least and grows and shrinks as there is room. ``ps`` parameter servers run the same command.
        """
        least, most = (workers, workers) if isinstance(workers, int) else workers
        if not 1 <= least <= most:
            raise InvalidError("InvalidWorkers", f"workers {workers} should be a number or (fewest, most), from 1 up")
        member = present(
            flavour=_flavour(flavour, cpu, memory, gpus),
            env=_environment(env, work_dir),
            image=image,
            **filesystem_fields(fs),
        )
        role = _FOLLOWERS.get(framework, "worker")
        body = present(
            framework=require(framework, "InvalidFramework", "framework"),
            members=_members(framework, member, _line(command), most, ps),
            hostEnv=surroundings(self.address, os.environ),
            elastic={"role": role, "min": least, "max": most} if least != most else None,
            name=name,
            schedulingPolicy=present(queue=queue, priority=priority) or None,
            labels=labels or None,
            runPolicy=present(retries=retries, deadlineSeconds=deadline_s) or None,
        )
        return True, str(self._create("/job/distributed", body, key=idempotency_key)["id"])

    def show_job(self, jobid: str) -> tuple[bool, JobInfo]:
        return True, JobInfo.from_wire(self._get(job_path(jobid)))

    def why_job(self, jobid: str) -> tuple[bool, JobReason]:
        """Why the job waits, failed or was stopped."""
        data = self._get(f"{job_path(jobid)}/why")
        reason = JobReason(
            job_id=data.get("jobID", jobid),
            status=data["status"],
            sentence=data["sentence"],
            details=data.get("details") or {},
        )
        return True, reason

    def job_eta(self, jobid: str) -> tuple[bool, JobEta]:
        """When the job is expected to start."""
        data = self._get(f"{job_path(jobid)}/eta")
        eta = JobEta(
            job_id=data.get("jobID", jobid),
            status=data["status"],
            low=data.get("low", ""),
            median=data.get("median", ""),
            high=data.get("high", ""),
            confidence=float(data.get("confidence") or 0),
            sentence=data["sentence"],
        )
        return True, eta

    def job_membership(self, jobid: str) -> tuple[bool, dict[str, Any]]:
        """Who belongs to the job now, as its tasks are told: ``{"generation", "least", "most", "tasks": […]}``."""
        return True, dict(self._get(f"{job_path(jobid)}/membership"))

    def list_job(
        self,
        status: str | None = None,
        timestamp: int | str | None = None,
        start_time: str | None = None,
        queue: str | None = None,
        labels: Mapping[str, str] | None = None,
        maxkeys: int | str | None = 100,
        marker: str | None = None,
    ) -> tuple[bool, list[JobInfo], str | None]:
        params = {
            "status": status,
            "timestamp": timestamp,
            "startTime": start_time,
            "queue": queue,
            "labels": json.dumps(dict(labels)) if labels else None,
            "maxKeys": maxkeys,
            "marker": marker,
        }
        data = self._get("/job", params)
        return True, [JobInfo.from_wire(job) for job in data["jobList"]], data.get("nextMarker")

    def update_job(
        self,
        jobid: str,
        priority: str | None = None,
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
    ) -> tuple[bool, None]:
        body = present(priority=priority, labels=labels, annotations=annotations)
        self._put(job_path(jobid), body, {"action": "modify"})
        return True, None

    def stop_job(self, jobid: str) -> tuple[bool, None]:
        self._put(job_path(jobid), params={"action": "stop"})
        return True, None

    def delete_job(self, jobid: str) -> tuple[bool, None]:
        self._delete(job_path(jobid))
        return True, None


def job_path(jobid: str) -> str:
    return f"/job/{segment(require(jobid, 'InvalidJobID', 'jobid'))}"


def _line(command: str | Sequence[str]) -> str:
    text = command if isinstance(command, str) else shlex.join(command)
    return require(text, "InvalidCommand", "command")


def _environment(env: Mapping[str, str] | None, work_dir: str | None) -> dict[str, str] | None:
    return {**(env or {}), **({"PF_WORK_DIR": work_dir} if work_dir else {})} or None


def _members(framework: str, member: dict[str, object], line: str, workers: int, ps: int) -> list[dict[str, object]]:
    """Who runs what: the command once, with helpers, or on every task, as the framework has it."""
    if ps < 0:
        raise InvalidError("InvalidPS", f"ps should be zero or more, not {ps}")
    leader = _LEADERS.get(framework)
    if leader is not None:
        if ps:
            raise InvalidError("InvalidPS", f"{framework} jobs have no parameter servers; leave ps out")
        follower = _FOLLOWERS.get(framework, "worker")
        return [
            {"role": leader, "replicas": 1, "command": line, **member},
            {"role": follower, "replicas": workers, **member},
        ]
    servers = [{"role": "pserver", "replicas": ps, "command": line, **member}] if ps else []
    return [*servers, {"role": "worker", "replicas": workers, "command": line, **member}]


def _flavour(name: str | None, cpu: str | float | None, memory: str | None, gpus: int) -> dict[str, object] | None:
    """By name or by amounts, never both: the server would ignore one of them."""
    if gpus < 0:
        raise InvalidError("InvalidGPUs", f"gpus should be zero or more, not {gpus}")
    amounts = cpu is not None or memory is not None or gpus > 0
    if name and amounts:
        raise InvalidError("InvalidFlavour", "give either flavour or cpu, memory and gpus, not both")
    if name:
        return {"name": name}
    if not amounts:
        return None
    scalars = {GPU: str(gpus)} if gpus else None
    return present(cpu=str(1 if cpu is None else cpu), mem=memory or "1Gi", scalarResources=scalars)
