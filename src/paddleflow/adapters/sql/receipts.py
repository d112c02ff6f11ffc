"""Receipts and leases: what keeps requests and servers from doing a thing twice."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import bindparam, delete, or_

from paddleflow.adapters.sql.session import Session, duplicate
from paddleflow.adapters.sql.statements import Statement, delete_by, insert_plain, select_by, upsert
from paddleflow.adapters.sql.tables import leases, receipts
from paddleflow.adapters.sql.values import from_micros, mapping_from_json, mapping_to_json, to_micros
from paddleflow.domain.ids import UserName
from paddleflow.ports.store import Receipt

_RECEIPT = select_by(receipts, "owner", "key")
_ADD_RECEIPT = insert_plain(receipts)
_DELETE_BEFORE = Statement(delete(receipts).where(receipts.c.at < bindparam("at")))
_ACQUIRE = upsert(
    leases,
    "name",
    where=lambda wanted: or_(leases.c.holder == wanted.holder, leases.c.expires_at <= bindparam("now")),
)
_RELEASE = delete_by(leases, "name", "holder")


class SqlReceipts:
    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    def find(self, owner: UserName, key: str) -> Receipt | None:
        row = self._session.row(_RECEIPT, {"owner": owner, "key": key})
        if row is None:
            return None
        _, _, fingerprint, answer, at = row
        return Receipt(
            owner=owner, key=key, fingerprint=fingerprint, answer=mapping_from_json(answer), at=from_micros(at)
        )

    def add(self, receipt: Receipt) -> None:
        row = {
            "owner": receipt.owner,
            "key": receipt.key,
            "fingerprint": receipt.fingerprint,
            "answer": mapping_to_json(receipt.answer),
            "at": to_micros(receipt.at),
        }
        if self._session.change(_ADD_RECEIPT, row) == 0:
            raise duplicate("receipt", receipt.key)

    def delete_before(self, at: datetime) -> int:
        return self._session.change(_DELETE_BEFORE, {"at": to_micros(at)})


class SqlLeases:
    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    def acquire(self, name: str, holder: str, now: datetime, ttl_s: float) -> bool:
        """One statement takes, renews or is refused, so two servers can never both be told yes."""
        row = {
            "name": name,
            "holder": holder,
            "expires_at": to_micros(now + timedelta(seconds=ttl_s)),
            "now": to_micros(now),
        }
        return self._session.change(_ACQUIRE, row) == 1

    def release(self, name: str, holder: str) -> None:
        self._session.change(_RELEASE, {"name": name, "holder": holder})
