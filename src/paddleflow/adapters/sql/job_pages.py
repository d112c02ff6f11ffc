"""Lists of jobs, fast whatever is asked: the statements behind ``Jobs.page``.

A list walks the jobs along an index, in row order or (newest first) against it, and stops when its page is full. That
is quick as long as matching rows lie close together; three kinds of filter break it, and each is answered in its own
way:

- Several statuses at once. An index knows the order of rows within one status only. So each status is walked by
  itself, no further than a full page, and the short lists are merged.
- A label, or a time. Among a hundred thousand jobs three may match, anywhere. So first a bounded count asks the
  filter's own index whether few rows match (NARROW at most). If so, those are enumerated from that index; if not,
  matches are plenty and the walk meets enough of them soon.

Planners are not relied on to find this out: SQLite keeps no statistics of its own, and PostgreSQL's lag behind.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sqlalchemy import (
    ARRAY,
    BigInteger,
    ClauseElement,
    ColumnElement,
    FromClause,
    Select,
    any_,
    bindparam,
    exists,
    func,
    literal_column,
    select,
    union_all,
)

from paddleflow.adapters.sql.columns import TEXT
from paddleflow.adapters.sql.pages import behind, edge_of
from paddleflow.adapters.sql.session import Session
from paddleflow.adapters.sql.statements import Row, Statement
from paddleflow.adapters.sql.tables import job_labels, jobs
from paddleflow.adapters.sql.values import to_micros
from paddleflow.domain.queries import JobFilter, PageRequest

NARROW = {"label": 5_000, "updated_since": 20_000, "activated_since": 20_000}
"""How many rows are few: so many are counted in a millisecond and enumerated in a few."""

_TIMES = {"updated_since": "updated_at", "activated_since": "activated_at"}
_touched = jobs.alias("touched")


@dataclass(frozen=True, slots=True)
class _Shape:
    """Everything about a filter that decides the text of its statement: which parts, not which values."""

    equal: tuple[str, ...]
    statuses: int
    times: tuple[str, ...]
    labels: int
    newest_first: bool
    narrow: str | None
    """The one filter whose few rows are enumerated: a time's name, or ``label_<n>``."""


def page_rows(session: Session, where: JobFilter, request: PageRequest) -> list[Row]:
    """Up to ``limit + 1`` rows of the jobs table, in row order or against it."""
    equal = {name: value for name in ("owner", "queue", "cluster") if (value := getattr(where, name)) is not None}
    times = {name: to_micros(value) for name in _TIMES if (value := getattr(where, name)) is not None}
    statuses = sorted(status.value for status in where.statuses)
    labels = dict(_label_parameters(where))
    narrow = _narrow(session, times, labels, count=len(where.labels))
    shape = _Shape(tuple(equal), len(statuses), tuple(times), len(where.labels), request.newest_first, narrow)
    statement = _page(shape)
    parameters: dict[str, object] = {"after": edge_of(request), "limit": request.limit + 1, **equal, **times, **labels}
    parameters.update({f"status_{n}": status for n, status in enumerate(statuses)})
    return session.rows(statement, parameters)


def _label_parameters(where: JobFilter) -> Iterator[tuple[str, str]]:
    for n, (key, value) in enumerate(where.labels.items()):
        yield f"key_{n}", key
        yield f"value_{n}", value


def _narrow(session: Session, times: dict[str, int], labels: dict[str, str], *, count: int) -> str | None:
    """The filter that fewest rows pass, among those that few pass."""
    sizes: dict[str, int] = {}
    for n in range(count):
        size = _count(session, "label", {"key_0": labels[f"key_{n}"], "value_0": labels[f"value_{n}"]})
        if size <= NARROW["label"]:
            sizes[f"label_{n}"] = size
    for name, since in times.items():
        size = _count(session, name, {name: since})
        if size <= NARROW[name]:
            sizes[name] = size
    return min(sizes, key=lambda name: sizes[name], default=None)


def _count(session: Session, name: str, parameters: dict[str, Any]) -> int:
    row = session.row(_COUNTS[name], parameters)
    return row[0] if row else 0


def _has_label(n: int) -> tuple[ColumnElement[bool], ...]:
    return (
        job_labels.c.key == bindparam(f"key_{n}", type_=TEXT),
        job_labels.c.value == bindparam(f"value_{n}", type_=TEXT),
    )


def _since(name: str, table: FromClause = jobs) -> ColumnElement[bool]:
    return table.c[_TIMES[name]] >= bindparam(name, type_=BigInteger)


def _bounded_count(query: Select[Any], name: str) -> Statement:
    few = query.limit(literal_column(str(NARROW[name] + 1))).subquery()
    return Statement(select(func.count()).select_from(few))


_COUNTS = {
    "label": _bounded_count(select(job_labels.c.job_seq).where(*_has_label(0)), "label"),
    **{name: _bounded_count(select(jobs.c.seq).where(_since(name)), name) for name in _TIMES},
}


def _among(engine: str, seqs: Select[tuple[int]]) -> ColumnElement[bool]:
    """The enumerated rows, in a form that the engine looks up one by one and does not turn back into a walk."""
    if engine == "postgresql":
        return jobs.c.seq == any_(func.array(seqs.scalar_subquery(), type_=ARRAY(BigInteger)))
    return jobs.c.seq.in_(seqs)


def _conditions(shape: _Shape, engine: str) -> list[ColumnElement[bool]]:
    """Everything but the statuses."""
    conditions: list[ColumnElement[bool]] = [behind(jobs.c.seq, shape.newest_first)]
    conditions += [jobs.c[name] == bindparam(name) for name in shape.equal]
    for name in shape.times:
        if name == shape.narrow:
            conditions.append(_among(engine, select(_touched.c.seq).where(_since(name, _touched))))
        else:
            conditions.append(_since(name))
    for n in range(shape.labels):
        if shape.narrow == f"label_{n}":
            conditions.append(_among(engine, select(job_labels.c.job_seq).where(*_has_label(n))))
        else:
            conditions.append(exists().where(job_labels.c.job_seq == jobs.c.seq, *_has_label(n)))
    return conditions


@lru_cache(maxsize=512)
def _page(shape: _Shape) -> Statement:
    def build(engine: str) -> ClauseElement:
        conditions = _conditions(shape, engine)
        if shape.narrow is None and shape.statuses > 1:
            return _merged(shape, conditions)
        if shape.statuses:
            conditions.append(jobs.c.status.in_([bindparam(f"status_{n}") for n in range(shape.statuses)]))
        return select(jobs).where(*conditions).order_by(_order(jobs.c.seq, shape)).limit(bindparam("limit"))

    return Statement(build)


def _merged(shape: _Shape, conditions: list[ColumnElement[bool]]) -> Select[Any]:
    """One short walk for each status, merged."""
    walks = [
        select(jobs.c.seq)
        .where(jobs.c.status == bindparam(f"status_{n}"), *conditions)
        .order_by(_order(jobs.c.seq, shape))
        .limit(bindparam("limit"))
        .subquery(f"walk_{n}")
        for n in range(shape.statuses)
    ]
    found = union_all(*(select(walk.c.seq) for walk in walks)).subquery("found")
    first = select(found.c.seq).order_by(_order(found.c.seq, shape)).limit(bindparam("limit"))
    return select(jobs).where(jobs.c.seq.in_(first)).order_by(_order(jobs.c.seq, shape))


def _order(seq: ColumnElement[int], shape: _Shape) -> ColumnElement[int]:
    return seq.desc() if shape.newest_first else seq
