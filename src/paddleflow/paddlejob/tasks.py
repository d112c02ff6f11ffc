"""What a pod tells about its task: how far it is, where it is, how it ended and whose fault that was."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from paddleflow.paddlejob.actions import Json
from paddleflow.paddlejob.names import (
    ANNOTATION_ATTEMPT,
    ANNOTATION_MEMBERS,
    INIT_CONTAINER,
    LABEL_ROLE,
    ROLES,
    START_PREFIX,
)

MEMBERSHIP_CHANGED = (101, 102)
"""Exit codes by which Paddle's launcher asks to be started again; they are no failures."""

_TAKEN_AWAY = frozenset(
    {
        "Evicted",
        "NodeAffinity",
        "NodeLost",
        "NodeShutdown",
        "Preempting",
        "Shutdown",
        "Terminated",
        "UnexpectedAdmissionError",
    }
)
"""Reasons of a failed pod that are the cluster's doing. The kubelet's ``OutOfcpu`` and its kin count as well."""
_ORDINARY = (None, "", "ContainerCreating", "PodInitializing")
"""Why a container waits that will soon run."""
_CONFIG_ERROR = "CreateContainerConfigError"
"""How the kubelet calls our start barrier, and every other mistake of a container's environment."""
_LONGEST_MESSAGE = 300


class State(StrEnum):
    PENDING = "pending"
    STARTING = "starting"
    RUNNING = "running"
    FAILED = "failed"
    SUCCEEDED = "succeeded"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    name: str
    uid: str
    role: str
    index: int
    attempt: int
    state: State
    address: str
    node: str
    told: str
    """The members it was last told of."""
    is_leaving: bool
    """Its pod is being deleted."""
    is_taken_away: bool
    """It failed through no fault of its own."""
    is_held: bool
    """The kubelet waits for the ConfigMap."""
    is_crash_looping: bool
    restarts: int
    """Of the container that was restarted most often."""
    has_crashed: bool
    """It runs, or will, but that container's last end was a failure."""
    exit_code: int | None
    reason: str
    message: str
    is_gone: bool = False
    """Its pod is no longer there; that it succeeded is remembered."""

    @property
    def has_ended(self) -> bool:
        return self.state is State.FAILED or self.state is State.SUCCEEDED

    @property
    def has_failed(self) -> bool:
        is_excused = self.is_taken_away or self.is_leaving or self.asks_again
        return self.state is State.FAILED and not is_excused

    @property
    def asks_again(self) -> bool:
        return self.state is State.FAILED and self.exit_code in MEMBERSHIP_CHANGED

    @property
    def is_lost(self) -> bool:
        return (self.state is State.FAILED and not self.has_failed) or (self.is_leaving and not self.has_ended)

    @property
    def label(self) -> str:
        return f"{self.role}-{self.index}"

    def explain(self) -> str:
        """Of one that is not there any more, in a few words."""
        if self.is_leaving and not self.has_ended:
            return f"{self.label} was deleted"
        if self.asks_again:
            return f"{self.label} asked to be started again, with exit code {self.exit_code}"
        code = f" with exit code {self.exit_code}" if self.exit_code is not None else ""
        reason = f" ({self.reason})" if self.reason and self.reason not in ("Error", "Completed") else ""
        words = f": {self.message}" if self.message else ""
        return f"{self.label} {'was taken away' if self.is_taken_away else 'failed'}{code}{reason}{words}"


def read_tasks(pods: Iterable[Json]) -> list[Task]:
    """In the order of role and index. Pods that carry no role are not of the job's making."""
    found = [task for task in map(_read, pods) if task is not None]
    found.sort(key=lambda task: (ROLES.index(task.role), task.index))
    return found


def finished_task(name: str, role: str, index: int, attempt: int) -> Task:
    """One that has succeeded and whose pod somebody has cleared away since."""
    return Task(
        name=name,
        uid="",
        role=role,
        index=index,
        attempt=attempt,
        state=State.SUCCEEDED,
        address="",
        node="",
        told="",
        is_leaving=False,
        is_taken_away=False,
        is_held=False,
        is_crash_looping=False,
        restarts=0,
        has_crashed=False,
        exit_code=None,
        reason="",
        message="",
        is_gone=True,
    )


def _read(pod: Json) -> Task | None:
    meta, status = pod["metadata"], pod.get("status") or {}
    role = (meta.get("labels") or {}).get(LABEL_ROLE)
    index = meta["name"].rpartition("-")[2]
    if role not in ROLES or not index.isdigit():
        return None
    annotations = meta.get("annotations") or {}
    containers = status.get("containerStatuses") or ()
    phase = status.get("phase") or "Pending"
    is_held = phase == "Pending" and any(_is_barrier(waiting, meta["name"]) for waiting in _waiting(containers))
    reasons = [waiting.get("reason") for waiting in _waiting(containers)]
    restarts, last_code = _restarts(containers)
    # What an earlier operator let restart for ever is not held against the job.
    is_counted = phase in ("Pending", "Running") and ANNOTATION_ATTEMPT in annotations
    crashed = is_counted and last_code is not None and last_code not in (0, *MEMBERSHIP_CHANGED)
    code, reason, message = _ending(status, containers) if phase == "Failed" else (None, "", "")
    return Task(
        name=meta["name"],
        uid=meta["uid"],
        role=role,
        index=int(index),
        attempt=int(annotations.get(ANNOTATION_ATTEMPT) or 0),
        state=_state(phase, status, containers, is_held=is_held),
        address=status.get("podIP") or "",
        node=(pod.get("spec") or {}).get("nodeName") or "",
        told=annotations.get(ANNOTATION_MEMBERS) or "",
        is_leaving=bool(meta.get("deletionTimestamp")),
        is_taken_away=phase == "Failed" and _was_taken_away(status),
        is_held=is_held,
        is_crash_looping="CrashLoopBackOff" in reasons and last_code not in MEMBERSHIP_CHANGED,
        restarts=restarts,
        has_crashed=crashed,
        exit_code=code,
        reason=reason,
        message=message or _why_waiting(phase, status, containers, meta["name"]),
    )


def _state(phase: str, status: Json, containers: Sequence[Json], *, is_held: bool) -> State:
    if phase == "Failed":
        return State.FAILED
    if phase == "Succeeded":
        return State.SUCCEEDED
    inits = status.get("initContainerStatuses") or ()
    if phase == "Pending":
        coordinating = (each.get("state") or {} for each in inits if each["name"] == INIT_CONTAINER)
        waits_for_peers = any("running" in state for state in coordinating)
        return State.STARTING if is_held or waits_for_peers else State.PENDING
    if phase == "Running":
        is_ready = all(each.get("ready") for each in containers)
        return State.RUNNING if is_ready else State.STARTING
    return State.UNKNOWN


def _waiting(containers: Sequence[Json]) -> list[Json]:
    states = ((each.get("state") or {}).get("waiting") for each in containers)
    return [waiting for waiting in states if waiting]


def _is_barrier(waiting: Json, pod: str) -> bool:
    """Whether what is missing is the job's own ConfigMap or a key of it, in the kubelet's words."""
    if waiting.get("reason") != _CONFIG_ERROR:
        return False
    words, job = str(waiting.get("message") or "").lower(), pod.rsplit("-", 2)[0]
    is_missing = f'configmap "{job}" not found' in words or f'configmaps "{job}" not found' in words
    return is_missing or (f"key {START_PREFIX.lower()}" in words and words.endswith(f"/{job}"))


def _restarts(containers: Sequence[Json]) -> tuple[int, int | None]:
    """Of the container with most of them, and the exit code before the last one."""
    most = max(containers, key=lambda each: int(each.get("restartCount") or 0), default={})
    terminated = (most.get("lastState") or {}).get("terminated")
    code = int(terminated.get("exitCode") or 0) if terminated else None
    return int(most.get("restartCount") or 0), code


def _was_taken_away(status: Json) -> bool:
    reason = str(status.get("reason") or "")
    if reason in _TAKEN_AWAY or reason.startswith("OutOf"):
        return True
    conditions = status.get("conditions") or ()
    return any(each.get("type") == "DisruptionTarget" and each.get("status") == "True" for each in conditions)


def _ending(status: Json, containers: Sequence[Json]) -> tuple[int | None, str, str]:
    """Exit code, reason and message: of the first container that failed, else of the pod."""
    for each in (*(status.get("initContainerStatuses") or ()), *containers):
        terminated = (each.get("state") or {}).get("terminated")
        if terminated and terminated.get("exitCode"):
            reason = status.get("reason") or terminated.get("reason") or ""
            message = terminated.get("message") or status.get("message") or ""
            return int(terminated["exitCode"]), str(reason), str(message)[:_LONGEST_MESSAGE].strip()
    return None, str(status.get("reason") or ""), str(status.get("message") or "")[:_LONGEST_MESSAGE].strip()


def _why_waiting(phase: str, status: Json, containers: Sequence[Json], pod: str) -> str:
    """The scheduler's words, or what the kubelet could not do."""
    if phase not in ("Pending", "Running"):
        return ""
    for each in status.get("conditions") or ():
        if each.get("type") == "PodScheduled" and each.get("status") == "False" and each.get("message"):
            return str(each["message"])[:_LONGEST_MESSAGE]
    for each in (*(status.get("initContainerStatuses") or ()), *containers):
        waiting = (each.get("state") or {}).get("waiting") or {}
        if waiting.get("reason") not in _ORDINARY and not _is_barrier(waiting, pod):
            words = f": {waiting['message']}" if waiting.get("message") else ""
            return f"{waiting['reason']}{words}"[:_LONGEST_MESSAGE]
    return ""
