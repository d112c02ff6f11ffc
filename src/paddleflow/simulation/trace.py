"""From the lines of a CSV file to the jobs of a trace: the only place that knows what traces look like.

Three formats are told apart by their columns:

- ours: ``submit,duration,gpus`` and, if wanted, ``cpus,memory,queue,priority,tasks,min_tasks,max_tasks,limit,id``.
  GPUs, CPUs and memory are those of one task. A job without ``tasks`` is one task, cut into tasks of a whole node
  if it asks for more GPUs than a node has;
- Philly: ``timestamp,duration,num_gpus,gpu_time,cluster``, where ``cluster`` is the tenant;
- openb, the pod list: GPUs are handed out whole, so a pod that asks for part of a GPU gets one.

A trace is taken whole or not at all: the first bad value is an error that names its row, its column and the fix.
Rows out of order are refused unless sorting is asked for, whatever the format: quietly sorting hides a broken export.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise

from paddleflow.domain.errors import Invalid
from paddleflow.domain.jobs import Priority
from paddleflow.domain.resources import CPU, MEMORY, Resources

_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d{1,6})?")
_MOST_TASKS = 1_000_000
_LONGEST_S = 1e11

OWN_NEEDED = ("submit", "duration", "gpus")
OWN_OPTIONAL = ("cpus", "memory", "queue", "priority", "tasks", "min_tasks", "max_tasks", "limit", "id")
PHILLY = ("timestamp", "duration", "num_gpus", "gpu_time", "cluster")
OPENB = ("name", "cpu_milli", "memory_mib", "num_gpu", "qos", "creation_time", "deletion_time")


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceJob:
    """One job as the trace tells it. Times are in seconds since the first submission."""

    id: str
    row: int
    """Counted from 1, without the header; what errors name."""
    submit_s: float
    duration_s: float
    """How long it runs with ``tasks`` tasks."""
    gpus: int
    """Of one task."""
    cpu_milli: int = 0
    memory_bytes: int = 0
    queue: str = ""
    priority: Priority = Priority.NORMAL
    tasks: int | None = None
    """None: as many whole nodes as its GPUs need."""
    min_tasks: int | None = None
    max_tasks: int | None = None
    limit_s: float | None = None

    @property
    def is_elastic(self) -> bool:
        return self.min_tasks is not None and self.min_tasks != self.max_tasks


def read_trace(lines: Iterable[str], *, sort: bool = False, limit: int | None = None) -> tuple[TraceJob, ...]:
    """The jobs of a trace in order of submission; with ``limit`` only so many, the earliest."""
    rows = csv.reader(lines)
    try:
        header = [name.strip() for name in next(rows, [])]
        reader = _reader_of(header)
        jobs: list[TraceJob] = []
        for cells in rows:
            if not cells:
                continue  # a blank line is not a row
            if limit is not None and len(jobs) >= limit and not sort:
                break
            jobs.append(reader(_Row(len(jobs) + 1, rows.line_num, header, cells)))
    except csv.Error as error:
        raise Invalid(f"line {rows.line_num} of the trace is not CSV: {error}") from error
    if not jobs:
        raise Invalid("the trace has a header and no rows; there is nothing to replay")
    return _from_zero(_in_order(jobs, sort)[:limit])


class _Row:
    """The cells of one row by column, and the errors that name them."""

    def __init__(self, number: int, line: int, header: list[str], cells: list[str]) -> None:
        self.number = number
        self._line = line
        if len(cells) != len(header):
            raise Invalid(
                f"row {number} (line {line}) of the trace has {len(cells)} values and the header "
                f"{len(header)} columns; write an empty value for what is unknown",
                details={"row": number},
            )
        self._cells: Mapping[str, str] = dict(zip(header, cells, strict=True))

    def bad(self, column: str, problem: str) -> Invalid:
        return Invalid(
            f"row {self.number} (line {self._line}) of the trace: column {column} {problem}",
            details={"row": self.number, "column": column},
        )

    def text(self, column: str) -> str:
        return self._cells.get(column, "").strip()

    def number_of(self, column: str) -> float:
        text = self.text(column)
        if not text:
            raise self.bad(column, "is empty; give a number, or leave the row out")
        try:
            value = float(text)
        except ValueError:
            raise self.bad(column, f"is [{text[:40]}], which is not a number") from None
        if not math.isfinite(value):
            raise self.bad(column, f"is [{text[:40]}]; give a finite number, or leave the row out")
        if value < 0:
            raise self.bad(column, f"is [{text[:40]}], which is negative; it counts from zero")
        return value

    def seconds(self, column: str) -> float:
        value = self.number_of(column)
        if value > _LONGEST_S:
            raise self.bad(column, f"is [{self.text(column)[:40]}]; seconds are wanted, and that is thousands of years")
        return value

    def count(self, column: str, *, least: int = 0) -> int:
        value = self.number_of(column)
        if value != int(value) or not least <= value <= _MOST_TASKS:
            raise self.bad(column, f"is [{self.text(column)[:40]}]; give a whole number from {least} to {_MOST_TASKS}")
        return int(value)

    def moment(self, column: str) -> float:
        text = self.text(column)
        if not _MOMENT.fullmatch(text):
            return self.seconds(column)
        try:
            return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()
        except ValueError as error:
            raise self.bad(column, f"is [{text}]: {error}; give YYYY-MM-DD HH:MM:SS or seconds") from error

    def amount(self, column: str, resource: str) -> int:
        text = self.text(column)
        try:
            return Resources.parse({resource: text}).get(resource) if text else 0
        except Invalid as error:
            raise self.bad(column, f"is not an amount: {error.message}") from error


Reader = Callable[[_Row], TraceJob]


def _reader_of(header: list[str]) -> Reader:
    """Which format these columns are."""
    columns = set(header)
    if len(columns) != len(header):
        twice = next(name for name in header if header.count(name) > 1)
        raise Invalid(f"the trace's header names column {twice} twice", details={"column": twice})
    if columns.issuperset(PHILLY):
        return _philly
    if columns.issuperset(OPENB):
        return _openb
    missing = [name for name in OWN_NEEDED if name not in columns]
    if missing:
        raise Invalid(
            f"the trace has no column {', '.join(missing)}; its header must name {','.join(OWN_NEEDED)} "
            f"and may name {','.join(OWN_OPTIONAL)} (Philly's {','.join(PHILLY)} and openb's pod list are known too)",
            details={"column": missing[0]},
        )
    unknown = sorted(columns.difference(OWN_NEEDED, OWN_OPTIONAL))
    if unknown:
        raise Invalid(
            f"the trace has a column {unknown[0]}, which means nothing here; known are "
            f"{','.join((*OWN_NEEDED, *OWN_OPTIONAL))}",
            details={"column": unknown[0]},
        )
    return _own


def _own(row: _Row) -> TraceJob:
    tasks = row.count("tasks", least=1) if row.text("tasks") else None
    least, most = _bounds(row, tasks)
    job = TraceJob(
        id=row.text("id") or f"job-{row.number}",
        row=row.number,
        submit_s=row.moment("submit"),
        duration_s=row.seconds("duration"),
        gpus=row.count("gpus"),
        cpu_milli=row.amount("cpus", CPU),
        memory_bytes=row.amount("memory", MEMORY),
        queue=row.text("queue"),
        priority=_priority(row),
        tasks=tasks if tasks is not None or least is None else least,
        min_tasks=least,
        max_tasks=most,
        limit_s=row.seconds("limit") if row.text("limit") else None,
    )
    if not (job.gpus or job.cpu_milli or job.memory_bytes):
        raise row.bad("gpus", "is 0 and neither cpus nor memory is given: the job asks for nothing; give one of them")
    return job


def _bounds(row: _Row, tasks: int | None) -> tuple[int | None, int | None]:
    """The smallest and largest number of tasks; both or neither."""
    if not (row.text("min_tasks") or row.text("max_tasks")):
        return None, None
    usual = tasks if tasks is not None else 1
    least = row.count("min_tasks", least=1) if row.text("min_tasks") else usual
    most = row.count("max_tasks", least=1) if row.text("max_tasks") else max(usual, least)
    if most < least:
        raise row.bad("max_tasks", f"is {most}, which is less than min_tasks, {least}")
    if tasks is not None and not least <= tasks <= most:
        raise row.bad("tasks", f"is {tasks}, which is not between min_tasks, {least}, and max_tasks, {most}")
    return least, most


def _priority(row: _Row) -> Priority:
    text = row.text("priority")
    if not text:
        return Priority.NORMAL
    try:
        return Priority[text.upper().replace("-", "_")]
    except KeyError:
        known = ", ".join(priority.name for priority in Priority)
        raise row.bad("priority", f"is [{text[:40]}]; give one of {known}") from None


def _philly(row: _Row) -> TraceJob:
    return TraceJob(
        id=f"job-{row.number}",
        row=row.number,
        submit_s=row.moment("timestamp"),
        duration_s=row.seconds("duration"),
        gpus=row.count("num_gpus", least=1),
        queue=row.text("cluster"),
    )


def _openb(row: _Row) -> TraceJob:
    created, deleted = row.moment("creation_time"), row.moment("deletion_time")
    begun = row.moment("scheduled_time") if row.text("scheduled_time") else created
    if deleted < begun:
        raise row.bad("deletion_time", f"is {deleted:g}, which is before the pod began at {begun:g}")
    return TraceJob(
        id=row.text("name") or f"job-{row.number}",
        row=row.number,
        submit_s=created,
        duration_s=deleted - begun,
        gpus=row.count("num_gpu"),
        cpu_milli=row.count("cpu_milli"),
        memory_bytes=row.count("memory_mib") << 20,
        queue=row.text("qos").lower(),
        tasks=1,
    )


def _in_order(jobs: list[TraceJob], sort: bool) -> list[TraceJob]:
    seen: dict[str, int] = {}
    for job in jobs:
        if job.id in seen:
            raise Invalid(
                f"row {job.row} of the trace: column id is [{job.id[:80]}], as in row {seen[job.id]}; ids must differ",
                details={"row": job.row, "column": "id"},
            )
        seen[job.id] = job.row
    if sort:
        return sorted(jobs, key=lambda job: job.submit_s)
    for before, after in pairwise(jobs):
        if after.submit_s < before.submit_s:
            raise Invalid(
                f"row {after.row} of the trace is submitted before row {before.row}; "
                "sort the file by its time of submission, or pass --sort",
                details={"row": after.row},
            )
    return jobs


def _from_zero(jobs: list[TraceJob]) -> tuple[TraceJob, ...]:
    first = jobs[0].submit_s
    return tuple(replace(job, submit_s=job.submit_s - first) for job in jobs) if first else tuple(jobs)
