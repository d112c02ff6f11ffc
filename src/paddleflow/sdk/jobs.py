"""Jobs: submit, show, list, change, stop, and ask why one does not start."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from paddleflow.domain.jobs import TERMINAL
from paddleflow.sdk.errors import InvalidError
from paddleflow.sdk.session import Session, present, require, segment

JOB_TYPES = ("single", "distributed", "workflow")
GPU = "nvidia.com/gpu"


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

    @property
    def is_terminal(self) -> bool:
        return self.status in TERMINAL

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
        )


@dataclass(frozen=True)
class JobReason:
    """Why a job is where it is, in one sentence."""

    job_id: str
    status: str
    sentence: str
    details: dict[str, Any] = field(default_factory=dict)


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
        labels: Mapping[str, str] | None = None,
        work_dir: str | None = None,
        idempotency_key: str | None = None,
    ) -> tuple[bool, str]:
        """Run one command as a job; the id of the job. A list of words is quoted, a string is run by the shell.

        The same ``idempotency_key`` given again answers the first job's id and starts nothing.
        """
        text = command if isinstance(command, str) else shlex.join(command)
        body = present(
            command=require(text, "InvalidCommand", "command"),
            name=name,
            schedulingPolicy=present(queue=queue, priority=priority) or None,
            flavour=_flavour(flavour, cpu, memory, gpus),
            env={**(env or {}), **({"PF_WORK_DIR": work_dir} if work_dir else {})} or None,
            image=image,
            labels=labels or None,
        )
        return True, str(self._create("/job/single", body, key=idempotency_key)["id"])

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
