"""The log of events: appended to by one transaction at a time, read in order by everybody.

A reader follows the log by asking for what comes after the last number it saw. If two transactions could append at
once, the one with the higher number might commit first; a reader would then pass the lower number before it became
visible, and never see it. So an appending transaction excludes every other until it has committed: SQLite has one
writer at a time anyway, and on PostgreSQL every write transaction first takes one advisory lock (postgres.py). Under
that lock the next number is simply one more than the last, so a transaction that fails leaves no hole behind.
"""

from __future__ import annotations

from dataclasses import replace

from sqlalchemy import bindparam, desc, func, insert, literal_column, select

from paddleflow.adapters.sql.session import Session
from paddleflow.adapters.sql.statements import Row, Statement, column_names
from paddleflow.adapters.sql.tables import events
from paddleflow.adapters.sql.values import from_micros, mapping_from_json, mapping_to_json, to_micros
from paddleflow.domain.events import Event, EventKind

_GIVEN = column_names(events, without=("seq",))
_APPEND = Statement(
    insert(events)
    .from_select(
        ("seq", *_GIVEN),
        select(
            func.coalesce(func.max(events.c.seq), literal_column("0")) + literal_column("1"),
            *(bindparam(name, type_=events.c[name].type) for name in _GIVEN),
        ),
    )
    .returning(events.c.seq)
)
_AFTER = Statement(
    select(events).where(events.c.seq > bindparam("after")).order_by(events.c.seq).limit(bindparam("limit"))
)
_LAST = Statement(select(func.max(events.c.seq)))
_OF_SUBJECT = Statement(
    select(events)
    .where(events.c.subject == bindparam("subject"))
    .order_by(desc(events.c.seq))
    .limit(bindparam("limit"))
)


def _event(row: Row) -> Event:
    seq, kind, subject, owner, data, at, cause = row
    return Event(
        kind=EventKind(kind),
        subject=subject,
        owner=owner,
        data=mapping_from_json(data),
        at=from_micros(at),
        cause=cause,
        seq=seq,
    )


class SqlEvents:
    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    def append(self, event: Event) -> Event:
        row = {
            "kind": event.kind.value,
            "subject": event.subject,
            "owner": event.owner,
            "data": mapping_to_json(event.data),
            "at": to_micros(event.at),
            "cause": event.cause,
        }
        seq = self._session.insert(_APPEND, row, kind="event", name=event.subject)
        self._session.appended.add(event.kind)
        return replace(event, seq=seq)

    def after(self, seq: int, limit: int) -> tuple[Event, ...]:
        return tuple(_event(row) for row in self._session.rows(_AFTER, {"after": seq, "limit": limit}))

    def last_seq(self) -> int:
        row = self._session.row(_LAST)
        last: int | None = row[0] if row else None
        return last or 0

    def of_subject(self, subject: str, limit: int) -> tuple[Event, ...]:
        """The latest ``limit`` of them, oldest first."""
        rows = self._session.rows(_OF_SUBJECT, {"subject": subject, "limit": limit})
        return tuple(_event(row) for row in reversed(rows))
