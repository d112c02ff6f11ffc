"""Numbers that ids are made of: counted up for each kind, in the transaction that uses them.

A transaction that fails gives its number back, which nobody has seen.
"""

from __future__ import annotations

from paddleflow.adapters.sql.pipeline_tables import numbers
from paddleflow.adapters.sql.session import Session
from paddleflow.adapters.sql.statements import count_up

_NEXT = count_up(numbers, "kind", "last")


class SqlNumbers:
    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    def next(self, kind: str) -> int:
        return self._session.insert(_NEXT, {"kind": kind, "last": 1}, kind="number", name=kind)
