"""A step that is about to start, as the job that runs it.

Scheduling knobs are environment variables of the step, as users of the product know them: ``PF_JOB_QUEUE_NAME``,
``PF_JOB_PRIORITY``, ``PF_JOB_FLAVOUR`` and so on; ``PF_JOB_LIMIT_FLAVOUR``, ``PF_WORK_DIR`` and the like are read from
the environment by whoever accepts and launches the job. Whether a queue or flavour exists is not known here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import replace

from paddleflow.domain.commands import SubmitJob
from paddleflow.domain.errors import Invalid
from paddleflow.domain.ids import JobId, RunId
from paddleflow.domain.jobs import FlavourRef, Framework, FsRef, JobKind, JobSpec, Member, RunPolicy
from paddleflow.domain.runs import RunNode
from paddleflow.planning.plan import Mount, Plan, PlanNode
from paddleflow.planning.source import RAY_ENTRY_POINT

_JOB_ID_LIMIT = 63
_SINGLE = frozenset({"", "single", "vcjob"})
_HEADER_PARAMETERS = "RAY_JOB_HEADER_START_PARAMS_"
_WORKER_PARAMETERS = "RAY_JOB_WORKER_START_PARAMS_"


def job_id_of(run_id: RunId, step: str, key: str, seq: int, is_taken: Callable[[JobId], bool]) -> JobId:
    """``job-<run>-<step>[-<seq>]-<8 hex>``: the same for the same node, unless another node has it already."""
    number = f"-{seq}" if seq > 0 else ""
    for attempt in range(1, 1_000_000):
        digest = _digest(run_id, key, "" if attempt == 1 else str(attempt))[:8]
        room = _JOB_ID_LIMIT - len(f"job-{run_id}-{number}-{digest}")
        name = JobId(f"job-{run_id}-{step[:room]}{number}-{digest}".lower())
        if not is_taken(name):
            return name
    raise AssertionError("a million job ids of one run begin alike")


def submission_of(plan: Plan, node: PlanNode, row: RunNode) -> SubmitJob:
    """``row`` has its command, environment and job id. Raises Invalid when the step asks for what cannot be."""
    env = row.env
    return SubmitJob(
        spec=_spec(plan, node, row),
        id=row.job_id or "",
        name=f"{row.run_id}-{node.name}-{row.seq}" if row.seq > 0 else f"{row.run_id}-{node.name}",
        queue=env.get("PF_JOB_QUEUE_NAME", ""),
        priority=_first(env, "PF_JOB_PRIORITY", "RAY_JOB_HEADER_PRIORITY", "RAY_JOB_WORKER_PRIORITY"),
        labels={"paddleflow-run-id": row.run_id},
    )


def _spec(plan: Plan, node: PlanNode, row: RunNode) -> JobSpec:
    kind, framework = row.env.get("PF_JOB_TYPE", ""), row.env.get("PF_JOB_FRAMEWORK", "")
    policy = RunPolicy(retries=node.retry.times, backoff_s=node.retry.backoff_s, deadline_s=node.timeout_s)
    if kind in _SINGLE:
        return JobSpec(members=(_member(plan, node, row),), policy=policy)
    if kind != "distributed":
        raise Invalid(f"PF_JOB_TYPE[{kind[:80]}] of step[{node.name}] is not supported, use single or distributed")
    if framework != Framework.RAY:
        raise Invalid(
            f"PF_JOB_FRAMEWORK[{framework[:80]}] of step[{node.name}] is not supported: a distributed step needs ray; "
            "leave PF_JOB_TYPE out to run it as a single job"
        )
    return JobSpec(
        kind=JobKind.DISTRIBUTED, framework=Framework.RAY, members=_ray_members(plan, node, row), policy=policy
    )


def _member(plan: Plan, node: PlanNode, row: RunNode) -> Member:
    return Member(
        flavour=FlavourRef(name=row.env.get("PF_JOB_FLAVOUR", "")),
        fs=None if plan.main_fs is None else _fs(plan.main_fs),
        extra_fs=tuple(_fs(mount) for mount in node.mounts),
        image=node.docker_env or plan.docker_env,
        env=row.env,
        command=row.command,
    )


def _ray_members(plan: Plan, node: PlanNode, row: RunNode) -> tuple[Member, Member]:
    """The head runs the entry point (else the step's command); the workers are nodes that join it."""
    env = row.env
    member = _member(plan, node, row)
    master = replace(
        member,
        role="master",
        command=env.get(RAY_ENTRY_POINT, "") or row.command,
        flavour=FlavourRef(name=_first(env, "RAY_JOB_HEADER_FLAVOUR", "PF_JOB_FLAVOUR")),
        image=env.get("RAY_JOB_HEADER_IMAGE", "") or member.image,
        args=_start_parameters(env, _HEADER_PARAMETERS),
    )
    worker = replace(
        member,
        role="worker",
        name=env.get("RAY_JOB_WORKER_GROUP_NAME", ""),
        replicas=_replicas(node, env.get("RAY_JOB_WORKER_REPLICAS", "")),
        command="",
        flavour=FlavourRef(name=_first(env, "RAY_JOB_WORKER_FLAVOUR", "PF_JOB_FLAVOUR")),
        image=env.get("RAY_JOB_WORKER_IMAGE", "") or member.image,
        args=_start_parameters(env, _WORKER_PARAMETERS),
    )
    return master, worker


def _replicas(node: PlanNode, text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 6 and int(text) > 0):
        raise Invalid(f"RAY_JOB_WORKER_REPLICAS[{text[:80]}] of step[{node.name}] must be a number above zero")
    return int(text)


def _start_parameters(env: Mapping[str, str], prefix: str) -> tuple[str, ...]:
    """``RAY_JOB_HEADER_START_PARAMS_NUM_CPUS=2`` is the parameter ``num-cpus: 2`` of ``ray start``."""
    return tuple(
        f"{name.removeprefix(prefix).lower().replace('_', '-')}: {value}"
        for name, value in sorted(env.items())
        if name.startswith(prefix)
    )


def _fs(mount: Mount) -> FsRef:
    return FsRef(name=mount.name, mount_path=mount.mount_path, sub_path=mount.sub_path, read_only=mount.read_only)


def _first(env: Mapping[str, str], *names: str) -> str:
    return next((env[name] for name in names if env.get(name)), "")


def _digest(*texts: str) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()
