"""What has become of a job: still at work, done, to be started again, or over.

The order is fixed, so the same pods always give the same answer: a job whose workers have all succeeded is completed
whatever its servers do then; else what a task did wrong counts before what was done to it, and both before the fact
that some are still waiting.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from paddleflow.paddlejob.actions import Json
from paddleflow.paddlejob.environment import members_digest
from paddleflow.paddlejob.jobs import Intranet, PaddleJob, Phase
from paddleflow.paddlejob.memberships import (
    ANNOTATION_SIZE,
    attempt_of,
    hosts_of,
    is_for_the_other,
    is_of_attempt,
    spell_size,
)
from paddleflow.paddlejob.names import ANNOTATION_MEMBERS, PS
from paddleflow.paddlejob.records import Record
from paddleflow.paddlejob.tasks import State, Task

_FIRST_DELAY_S, _LONGEST_DELAY_S = 10.0, 360.0
_FIRST_FREE_DELAY_S, _LONGEST_FREE_DELAY_S = 1.0, 60.0
_MOST_DOUBLINGS = 10
_NAMED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What is to be recorded, and why. ``reason`` is one word for machines."""

    record: Record
    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One job, its record, and the tasks of the attempt that it wants; by pod name."""

    job: PaddleJob
    record: Record
    tasks: Mapping[str, Task]
    config_map: Json | None
    now: float

    def with_exits(self, tasks: Sequence[Task]) -> Record:
        return self.record.with_exits(tasks, self.tasks.values())

    @property
    def missing(self) -> list[str]:
        return [name for _, _, name in self.job.places() if name not in self.tasks]


def judge(case: Case) -> Verdict | None:
    """None: nothing that would change the course."""
    if is_completed(case.job, case.tasks):
        return _over(case, Phase.COMPLETED, "Completed", "all tasks that decide have succeeded")
    deadline = case.job.active_deadline_s
    if deadline is not None and case.record.started_at is not None and case.now >= case.record.started_at + deadline:
        return _over(case, Phase.FAILED, "DeadlineExceeded", f"it ran longer than activeDeadlineSeconds, {deadline}")
    crashing = [task for task in case.tasks.values() if _crashes_too_often(case.job, task)]
    if crashing:
        message = f"{crashing[0].label} was restarted {crashing[0].restarts} times and fails again and again"
        return _over(case, Phase.FAILED, "BackoffLimitExceeded", message)
    if _has_turned(case):
        message = (
            f"it is {'elastic' if case.job.is_elastic else 'of fixed size'} now, and its pods were made for the other"
        )
        return _restart_free(case, case.record, "Resized", message)
    return _judge_alone(case) if case.job.is_elastic else _judge_fixed(case)


def _has_turned(case: Case) -> bool:
    """Pods of a job of fixed size have no membership to follow, those of an elastic one no list. What their ConfigMap
    holds tells which they are; so does a task that waits for a key which no elastic job has."""
    job, found = case.job, case.config_map
    if not case.tasks:
        return False
    is_ours = found is not None and is_of_attempt(found, case.record.attempt)
    if found is not None and is_ours and is_for_the_other(found, job):
        return True
    return job.is_elastic and any(task.is_held for task in case.tasks.values())


def _crashes_too_often(job: PaddleJob, task: Task) -> bool:
    """Restarts in place are retries as well, however far apart. Those of an elastic job's launcher are part of its
    work, and only the last one says what it was for: there it takes the kubelet's word for a crash loop."""
    fails = task.is_crash_looping or (task.has_crashed and not job.is_elastic)
    return fails and task.restarts > job.backoff_limit


def is_completed(job: PaddleJob, tasks: Mapping[str, Task]) -> bool:
    deciding = [name for role, _, name in job.places() if role.name in job.deciders]
    return bool(deciding) and all(name in tasks and tasks[name].state is State.SUCCEEDED for name in deciding)


def _judge_fixed(case: Case) -> Verdict | None:
    failed = [task for task in case.tasks.values() if task.has_failed]
    lost = [task for task in case.tasks.values() if task.is_lost]
    if case.job.replaces_alone and not any(task.role == PS for task in failed + lost):
        return _judge_alone(case) or _judge_addresses(case)
    if failed:
        record = case.with_exits(failed + lost)
        return _retry(case, record, failed, attempt=record.attempt + 1)
    if lost:
        return _restart_free(case, case.with_exits(lost), "TaskLost", _list(lost))
    return _judge_addresses(case)


def _judge_addresses(case: Case) -> Verdict | None:
    """Tasks hold the addresses they were started with; when those are no longer true, all start again."""
    job, found = case.job, case.config_map
    is_listed = found is not None and attempt_of(found) == case.record.attempt
    marks = found["metadata"].get("annotations") or {} if found is not None and is_listed else {}
    size = marks.get(ANNOTATION_SIZE)
    if size is not None and size != spell_size(job) and case.tasks:
        return _restart_free(case, case.record, "Resized", f"its size is now {spell_size(job)}, it was {size}")
    by_address = job.intranet is not Intranet.SERVICE
    missed = case.missing
    if job.replaces_alone:
        missed = [name for role, _, name in job.places() if role.name == PS and name not in case.tasks]
    if missed and (case.record.phase is Phase.RUNNING or (is_listed and by_address)):
        gone = ", ".join(missed[:_NAMED])
        return _restart_free(case, case.record, "TaskLost", f"the pod {gone} is gone")
    hosts = hosts_of(job, case.tasks) if by_address else None
    digest = marks.get(ANNOTATION_MEMBERS)
    if hosts is not None and digest is not None and members_digest(job, hosts) != digest:
        return _restart_free(case, case.record, "AddressChanged", "a pod has another address than its peers know")
    return None


def _judge_alone(case: Case) -> Verdict | None:
    """A task that ended is remembered here; when it is, its pod gives way to a new one."""
    known = case.record.known
    failed = [task for task in case.tasks.values() if task.has_failed and task.uid not in known]
    lost = [task for task in case.tasks.values() if task.is_lost and task.uid not in known]
    record = case.with_exits(failed + lost)
    waiting = record.restart_at is not None and case.now < record.restart_at
    if failed and not waiting:
        return _retry(case, record, failed, attempt=record.attempt)
    if failed or lost:
        record = replace(record, evictions=record.evictions + bool(lost))
        return Verdict(record=record, reason="TaskLost" if lost else "TaskFailed", message=_list(failed + lost))
    return None


def _retry(case: Case, record: Record, failed: Sequence[Task], *, attempt: int) -> Verdict:
    """Failures that come while the restart of an earlier one is awaited are part of it and are not counted again."""
    words, limit = _list(failed), case.job.backoff_limit
    if record.retries >= limit:
        message = words if limit == 0 else f"{words}; it was retried {record.retries} times"
        ended = replace(case, record=record)
        return _over(ended, Phase.FAILED, "BackoffLimitExceeded", message)
    delay = min(_FIRST_DELAY_S * 2 ** min(record.retries, _MOST_DOUBLINGS), _LONGEST_DELAY_S)
    record = replace(record, attempt=attempt, retries=record.retries + 1, restart_at=_soon(case.now, delay))
    if attempt != case.record.attempt:
        record = replace(record, phase=Phase.RESTARTING, unlisted=())
    return Verdict(record=record, reason="TaskFailed", message=f"{words}; retry {record.retries} of {limit}")


def _restart_free(case: Case, record: Record, reason: str, message: str) -> Verdict:
    evictions = record.evictions + (reason != "Resized")
    delay = 0.0
    if reason != "Resized" and record.evictions:
        delay = min(_FIRST_FREE_DELAY_S * 2 ** min(record.evictions - 1, _MOST_DOUBLINGS), _LONGEST_FREE_DELAY_S)
    restarted = replace(
        record,
        phase=Phase.RESTARTING,
        attempt=record.attempt + 1,
        evictions=evictions,
        unlisted=(),
        restart_at=_soon(case.now, delay) if delay else None,
    )
    return Verdict(record=restarted, reason=reason, message=message)


def _over(case: Case, phase: Phase, reason: str, message: str) -> Verdict:
    failed = [task for task in case.tasks.values() if task.state is State.FAILED]
    record = replace(case.with_exits(failed), phase=phase, completed_at=case.now, restart_at=None, unlisted=())
    return Verdict(record=record, reason=reason, message=message)


def _soon(now: float, delay: float) -> float:
    """Times are recorded in whole seconds."""
    return float(int(now + delay) + 1)


def _list(tasks: Sequence[Task]) -> str:
    more = f" and {len(tasks) - _NAMED} more" if len(tasks) > _NAMED else ""
    return "; ".join(task.explain() for task in tasks[:_NAMED]) + more
