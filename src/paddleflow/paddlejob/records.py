"""What a job's status remembers from one look to the next, and how it is spelt.

Counters of pods that wait or run say what is there now. What has ended is remembered: attempts, retries, evictions,
how tasks ended, the counts of an ended job. A status is a function of what was recorded and what is seen, with no
time in it that moves by itself, so a job to which nothing happens has the same status for ever.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from paddleflow.paddlejob.actions import Json
from paddleflow.paddlejob.jobs import MOST_REPLICAS, Phase
from paddleflow.paddlejob.names import ROLES
from paddleflow.paddlejob.tasks import State, Task

MOST_EXITS = 50
MOST_REFERENCES = 100
_LONGEST_MESSAGE = 1024
_INDEXES = "succeededIndexes"
_SPAN = re.compile(r"(\d{1,6})(?:-(\d{1,6}))?")

CREATED, RUNNING, RESTARTING = "Created", "Running", "Restarting"
SUCCEEDED, FAILED, SUSPENDED, CAUTION = "Succeeded", "Failed", "Suspended", "Caution"


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    phase: Phase | None = None
    attempt: int = 0
    """Increases with every new start of the whole job, whatever its cause."""
    retries: int = 0
    """Restarts that were a task's own fault."""
    evictions: int = 0
    """Restarts that were nobody's fault."""
    restart_at: float | None = None
    started_at: float | None = None
    completed_at: float | None = None
    exits: tuple[Json, ...] = ()
    """How tasks ended that did not succeed, the newest last."""
    unlisted: tuple[str, ...] = ()
    """Pods that are still there and whose ending is remembered, but has no place among the exits."""
    succeeded: Mapping[str, frozenset[int]] = field(default_factory=dict)
    """By role, the tasks of this attempt that have succeeded, whether or not their pods are still there."""

    @property
    def known(self) -> frozenset[str]:
        """The pods whose ending is remembered."""
        return _listed(self.exits) | frozenset(self.unlisted)

    def with_exits(self, tasks: Sequence[Task], there: Iterable[Task]) -> Record:
        """``there``: whose pods can still be seen. They stay known however many ended at once: who is forgotten is
        judged again, and nobody's pod is ever replaced."""
        new = [task for task in tasks if task.uid not in self.known]
        exits = (*self.exits, *(_spell_exit(task) for task in new[:MOST_EXITS]))[-MOST_EXITS:]
        known = self.known | {task.uid for task in new}
        unlisted = {task.uid for task in there if task.uid in known} - _listed(exits)
        return replace(self, exits=exits, unlisted=tuple(sorted(unlisted)))

    def without_gone(self, tasks: Iterable[Task]) -> Record:
        """Whose pods are no longer there need not be known any more."""
        if not self.unlisted:
            return self
        there = {task.uid for task in tasks}
        return replace(self, unlisted=tuple(uid for uid in self.unlisted if uid in there))


def read_record(status: Json) -> Record:
    phase = status.get("phase")
    return Record(
        phase=Phase(phase) if phase in tuple(Phase) else None,
        attempt=int(status.get("attempt") or 0),
        retries=int(status.get("retries") or 0),
        evictions=int(status.get("evictions") or 0),
        restart_at=_read_time(status.get("restartTime")),
        started_at=_read_time(status.get("startTime")),
        completed_at=_read_time(status.get("completionTime")),
        exits=tuple(status.get("exits") or ()),
        unlisted=tuple(map(str, status.get("unlistedExits") or ())),
        succeeded={role: _read_indexes((status.get(role) or {}).get(_INDEXES)) for role in ROLES},
    )


def spell_record(record: Record) -> Json:
    """The fields that are there only when they say something."""
    fields: Json = {
        "phase": record.phase,
        "attempt": record.attempt,
        "retries": record.retries,
        "evictions": record.evictions,
        "restartTime": _spell_time(record.restart_at),
        "startTime": _spell_time(record.started_at),
        "completionTime": _spell_time(record.completed_at),
        "exits": list(record.exits),
        "unlistedExits": list(record.unlisted),
    }
    return {name: str(value) if isinstance(value, Phase) else value for name, value in fields.items() if value}


def count(tasks: Sequence[Task], namespace: str, attempt: int) -> Json:
    """Of one role. Who has succeeded is told from the attempt that is recorded with it."""
    counters: Json = {}
    for state in State:
        number = sum(1 for task in tasks if task.state is state)
        if number:
            counters[str(state)] = number
    succeeded = [task.index for task in tasks if task.state is State.SUCCEEDED and task.attempt == attempt]
    if succeeded:
        counters[_INDEXES] = _spell_indexes(succeeded)
    there = [task for task in tasks if not task.is_gone]
    if there:
        counters["refs"] = [
            {"apiVersion": "v1", "kind": "Pod", "name": task.name, "namespace": namespace, "uid": task.uid}
            for task in there[:MOST_REFERENCES]
        ]
    return counters


def count_ended(recorded: Json, tasks: Sequence[Task]) -> Json:
    """Of one role of a job that is over: its ended tasks stay counted when their pods are gone, and pods that are being
    stopped are not counted among the failed."""
    counters = {name: recorded[name] for name in ("failed", "succeeded", _INDEXES, "refs") if recorded.get(name)}
    for state in (State.PENDING, State.STARTING, State.RUNNING, State.UNKNOWN):
        number = sum(1 for task in tasks if task.state is state)
        if number:
            counters[str(state)] = number
    return counters


@dataclass(slots=True)
class Conditions:
    """The conditions of a job, to be changed. A change of ``status`` is a transition, new words are none."""

    found: dict[str, Json]
    now: float

    @classmethod
    def of(cls, status: Json, now: float) -> Conditions:
        return cls({each["type"]: each for each in status.get("conditions") or ()}, now)

    def set(self, type: str, value: bool, reason: str, message: str) -> None:
        spelt, before = str(value), self.found.get(type)
        if before is None and not value and type != RUNNING:
            return  # What never was the case needs no saying; why a job does not run yet does.
        same = before is not None and before.get("status") == spelt
        known = before.get("lastTransitionTime") if before is not None and same else None
        self.found[type] = {
            "type": type,
            "status": spelt,
            "reason": reason,
            "message": message[:_LONGEST_MESSAGE],
            "lastTransitionTime": known or _spell_time(self.now),
        }

    def holds(self, type: str) -> bool:
        return (self.found.get(type) or {}).get("status") == "True"

    def spell(self) -> list[Json]:
        return list(self.found.values())


def _listed(exits: Iterable[Json]) -> frozenset[str]:
    return frozenset(str(each.get("uid")) for each in exits)


def _spell_exit(task: Task) -> Json:
    fields: Mapping[str, object] = {
        "pod": task.name,
        "uid": task.uid,
        "attempt": task.attempt,
        "exitCode": task.exit_code,
        "reason": task.reason or ("Deleted" if task.is_leaving else "Evicted" if task.is_taken_away else "Error"),
        "message": task.message,
        "node": task.node,
    }
    return {name: value for name, value in fields.items() if value not in (None, "")}


def _spell_indexes(indexes: Iterable[int]) -> str:
    """``0-4,7``: a thousand that have finished are a few characters."""
    spans: list[list[int]] = []
    for index in sorted(indexes):
        if spans and index == spans[-1][1] + 1:
            spans[-1][1] = index
        else:
            spans.append([index, index])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in spans)


def _read_indexes(text: object) -> frozenset[int]:
    found: set[int] = set()
    for span in _SPAN.finditer(text) if isinstance(text, str) else ():
        first, last = int(span[1]), int(span[2] or span[1])
        found |= set(range(first, min(last, MOST_REPLICAS) + 1))
    return frozenset(found)


def _spell_time(moment: float | None) -> str | None:
    if moment is None:
        return None
    return datetime.fromtimestamp(int(moment), tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _read_time(text: object) -> float | None:
    if not isinstance(text, str):
        return None
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None  # Written by somebody else; it is written again when the time comes.
