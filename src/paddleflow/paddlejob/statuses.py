"""The status of a job, whole, for each way a look at it can go."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from paddleflow.paddlejob import records
from paddleflow.paddlejob.actions import Json
from paddleflow.paddlejob.jobs import PaddleJob, Phase
from paddleflow.paddlejob.judge import Verdict
from paddleflow.paddlejob.names import LABEL_JOB, LABEL_ROLE, WORKER
from paddleflow.paddlejob.records import Conditions, Record, count, count_ended, spell_record
from paddleflow.paddlejob.tasks import State, Task

_WORKING = (State.RUNNING, State.SUCCEEDED)


def terminating_status(job: PaddleJob) -> Json:
    return {**job.status, "phase": str(Phase.TERMINATING)}


def running_status(
    job: PaddleJob, record: Record, tasks: Mapping[str, Task], now: float, leaving: Sequence[Task] = ()
) -> Json:
    """``leaving``: those of any attempt whose pods are being deleted."""
    conditions = Conditions.of(job.status, now)
    phase = _phase(job, record, tasks)
    if record.restart_at is not None and now >= record.restart_at and phase is Phase.RUNNING:
        record = replace(record, restart_at=None)
    if phase is Phase.RUNNING and record.started_at is None:
        record = replace(record, started_at=now)
    record = replace(record, phase=phase)
    conditions.set(records.CREATED, True, "Accepted", "the job is understood and its pods are looked after")
    _set_caution(job, conditions)
    conditions.set(records.SUSPENDED, phase is Phase.SUSPENDED, str(phase), "")
    conditions.set(records.RUNNING, phase is Phase.RUNNING, str(phase), _waits_for(job, phase, tasks, leaving))
    if conditions.holds(records.RESTARTING) and phase is not Phase.RESTARTING:
        conditions.set(records.RESTARTING, False, "Restarted", "its tasks have been started again")
    return _whole(job, record, tasks.values(), conditions)


def judged_status(job: PaddleJob, verdict: Verdict, tasks: Mapping[str, Task], now: float) -> Json:
    conditions = Conditions.of(job.status, now)
    phase, words = verdict.record.phase, (verdict.reason, verdict.message)
    conditions.set(records.CREATED, True, "Accepted", "the job is understood and its pods are looked after")
    _set_caution(job, conditions)
    if phase is not Phase.RUNNING or job.replaces_alone:
        conditions.set(records.RESTARTING, phase is None or not (phase.is_final or phase is Phase.SUSPENDED), *words)
    conditions.set(records.RUNNING, phase is Phase.RUNNING, *words)
    conditions.set(records.SUSPENDED, phase is Phase.SUSPENDED, *words)
    conditions.set(records.SUCCEEDED, phase is Phase.COMPLETED, *words)
    conditions.set(records.FAILED, phase is Phase.FAILED, *words)
    return _whole(job, verdict.record, tasks.values(), conditions)


def ended_status(job: PaddleJob, tasks: Sequence[Task]) -> Json:
    """As it was at the end, but for those who are still being stopped."""
    status = {**job.status, **_about(job)}
    for role in job.roles:
        counters = count_ended(job.status.get(role) or {}, [task for task in tasks if task.role == role])
        status.pop(role, None)
        if counters:
            status[role] = counters
    return status


def _phase(job: PaddleJob, record: Record, tasks: Mapping[str, Task]) -> Phase:
    """Of a job that is neither over nor to be started again."""
    if job.is_suspended:
        return Phase.SUSPENDED
    if not job.total:
        return Phase.PENDING
    if record.phase is Phase.RUNNING and not job.replaces_alone:
        # A container that the kubelet starts again, or that is not ready for a moment, does not undo the start.
        return Phase.RUNNING
    states = [task.state for task in tasks.values() if not task.is_leaving]
    working = sum(1 for state in states if state in _WORKING)
    if working >= min(job.least, _worked(job, record)):
        return Phase.RUNNING
    if record.attempt or record.retries or record.evictions:
        return Phase.RESTARTING
    return Phase.STARTING if State.STARTING in states or working else Phase.PENDING


def _worked(job: PaddleJob, record: Record) -> int:
    """How many worked when last looked at, of an elastic job that ran: while none of them is lost it goes on, whatever
    number it grows to."""
    if record.phase is not Phase.RUNNING or not job.is_elastic:
        return job.total
    recorded, worked = [job.status.get(role) or {} for role in job.roles], (*_WORKING, State.FAILED)
    return max(sum(int(each.get(str(state)) or 0) for each in recorded for state in worked), 1)


def _waits_for(job: PaddleJob, phase: Phase, tasks: Mapping[str, Task], leaving: Sequence[Task]) -> str:
    if phase is Phase.SUSPENDED:
        return ""
    if not job.total:
        return "no role has a replica"
    if leaving:
        # On a node that is not heard of it may last: people have to know which.
        node = f" on node {leaving[0].node}" if leaving[0].node else ""
        more = f", as are {len(leaving) - 1} more" if leaving[1:] else ""
        return f"the pod {leaving[0].name}{node} is still being deleted{more}"
    waiting = [task for task in tasks.values() if task.state in (State.PENDING, State.STARTING) and task.message]
    if waiting:
        return f"{waiting[0].label}: {waiting[0].message}"
    running = sum(1 for task in tasks.values() if task.state is State.RUNNING)
    return "" if phase is Phase.RUNNING else f"{running} of {job.total} tasks run"


def knows_cautions(job: PaddleJob) -> bool:
    """Whether they stand in the status already."""
    conditions = Conditions.of(job.status, 0.0)
    before = conditions.found.get(records.CAUTION) or {}
    _set_caution(job, conditions)
    return before.get("message") == (conditions.found.get(records.CAUTION) or {}).get("message")


def _set_caution(job: PaddleJob, conditions: Conditions) -> None:
    words = "; ".join(each.message for each in job.cautions)
    conditions.set(records.CAUTION, bool(words), job.cautions[0].reason if job.cautions else "None", words)


def _whole(job: PaddleJob, record: Record, tasks: Iterable[Task], conditions: Conditions) -> Json:
    by_role: dict[str, list[Task]] = {role: [] for role in job.roles}
    for task in tasks:
        by_role[task.role].append(task)
    status = {**_about(job), **spell_record(record)}
    for role, members in by_role.items():
        counters = count(members, job.namespace, record.attempt)
        if counters:
            status[role] = counters
    if WORKER in by_role:
        status["replicas"] = sum(1 for task in by_role[WORKER] if not task.is_gone)
    status["elastic"] = _elastic(job, by_role)
    status["conditions"] = conditions.spell()
    return status


def _about(job: PaddleJob) -> Json:
    about: Json = {"mode": str(job.mode)}
    if job.generation:
        about["observedGeneration"] = job.generation
    if WORKER in job.roles:
        about["selector"] = f"{LABEL_JOB}={job.name},{LABEL_ROLE}={WORKER}"
    return about


def _elastic(job: PaddleJob, by_role: Mapping[str, Sequence[Task]]) -> str:
    if not job.is_elastic:
        return "NONE"
    workers = by_role[WORKER]
    settled = len(workers) == job.roles[WORKER].replicas and all(task.state in _WORKING for task in workers)
    return "DONE" if settled else "DOING"
