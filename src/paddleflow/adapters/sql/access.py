"""Users and grants: rows and repositories."""

from __future__ import annotations

from dataclasses import replace

from sqlalchemy import bindparam, select

from paddleflow.adapters.sql.session import Session, page_of
from paddleflow.adapters.sql.statements import Row, Statement, delete_by, insert_row, select_by, update_version
from paddleflow.adapters.sql.tables import grants, users
from paddleflow.adapters.sql.values import from_micros, to_micros
from paddleflow.domain.ids import ROOT, GrantId, UserName
from paddleflow.domain.queries import Page, PageRequest
from paddleflow.domain.users import Grant, ResourceType, User

_USER_BY_NAME = select_by(users, "name")
_ADD_USER = insert_row(users)
_SAVE_USER = update_version(users, "name")
_DELETE_USER = delete_by(users, "name")
_PAGE_USERS = Statement(
    select(users)
    .where(users.c.seq > bindparam("after"), users.c.name != ROOT)
    .order_by(users.c.seq)
    .limit(bindparam("limit"))
)


def _user(row: Row) -> User:
    seq, name, password_hash, token_epoch, created_at, updated_at, version = row
    return User(
        name=name,
        password_hash=password_hash,
        token_epoch=token_epoch,
        created_at=from_micros(created_at),
        updated_at=from_micros(updated_at),
        seq=seq,
        version=version,
    )


def _user_row(user: User, version: int) -> dict[str, object]:
    return {
        "name": user.name,
        "password_hash": user.password_hash,
        "token_epoch": user.token_epoch,
        "created_at": to_micros(user.created_at),
        "updated_at": to_micros(user.updated_at),
        "version": version,
    }


class SqlUsers:
    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    def find(self, name: UserName) -> User | None:
        row = self._session.row(_USER_BY_NAME, {"name": name})
        return None if row is None else _user(row)

    def add(self, user: User) -> User:
        seq = self._session.insert(_ADD_USER, _user_row(user, 1), kind="user", name=user.name)
        return replace(user, seq=seq, version=1)

    def save(self, user: User) -> User:
        version = user.version + 1
        self._session.save(_SAVE_USER, _user_row(user, version), kind="user", name=user.name, seen=user.version)
        return replace(user, version=version)

    def delete(self, name: UserName) -> None:
        self._session.change(_DELETE_USER, {"name": name})

    def page(self, request: PageRequest) -> Page[User]:
        rows = self._session.rows(_PAGE_USERS, {"after": request.after, "limit": request.limit + 1})
        return page_of([_user(row) for row in rows], request)


_GRANT_KEY = ("user_name", "resource_type", "resource_id")
_GRANT_BY_KEY = select_by(grants, *_GRANT_KEY)
_ADD_GRANT = insert_row(grants)
_DELETE_GRANT = delete_by(grants, *_GRANT_KEY)
_DELETE_OF_USER = delete_by(grants, "user_name")
_DELETE_OF_RESOURCE = delete_by(grants, "resource_type", "resource_id")
_GRANTS_OF_USER = Statement(select(grants).where(grants.c.user_name == bindparam("user_name")).order_by(grants.c.seq))
_ALL_GRANTS = select(grants).where(grants.c.seq > bindparam("after")).order_by(grants.c.seq).limit(bindparam("limit"))
_PAGE_GRANTS = Statement(_ALL_GRANTS)
_PAGE_GRANTS_OF_USER = Statement(_ALL_GRANTS.where(grants.c.user_name == bindparam("user_name")))


def _grant(row: Row) -> Grant:
    seq, id, user_name, resource_type, resource_id, created_at, updated_at = row
    return Grant(
        id=GrantId(id),
        user=user_name,
        resource_type=ResourceType(resource_type),
        resource_id=resource_id,
        created_at=from_micros(created_at),
        updated_at=from_micros(updated_at),
        seq=seq,
    )


class SqlGrants:
    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    def find(self, user: UserName, resource_type: ResourceType, resource_id: str) -> Grant | None:
        row = self._session.row(_GRANT_BY_KEY, _grant_key(user, resource_type, resource_id))
        return None if row is None else _grant(row)

    def add(self, grant: Grant) -> Grant:
        row = {
            "id": grant.id,
            **_grant_key(grant.user, grant.resource_type, grant.resource_id),
            "created_at": to_micros(grant.created_at),
            "updated_at": to_micros(grant.updated_at),
        }
        name = f"{grant.user}/{grant.resource_type.value}/{grant.resource_id}"
        return replace(grant, seq=self._session.insert(_ADD_GRANT, row, kind="grant", name=name))

    def delete(self, user: UserName, resource_type: ResourceType, resource_id: str) -> None:
        self._session.change(_DELETE_GRANT, _grant_key(user, resource_type, resource_id))

    def delete_of_user(self, user: UserName) -> None:
        self._session.change(_DELETE_OF_USER, {"user_name": user})

    def delete_of_resource(self, resource_type: ResourceType, resource_id: str) -> None:
        self._session.change(_DELETE_OF_RESOURCE, {"resource_type": resource_type.value, "resource_id": resource_id})

    def of_user(self, user: UserName) -> tuple[Grant, ...]:
        return tuple(_grant(row) for row in self._session.rows(_GRANTS_OF_USER, {"user_name": user}))

    def page(self, user: UserName | None, request: PageRequest) -> Page[Grant]:
        bounds = {"after": request.after, "limit": request.limit + 1}
        if user is None:
            rows = self._session.rows(_PAGE_GRANTS, bounds)
        else:
            rows = self._session.rows(_PAGE_GRANTS_OF_USER, {**bounds, "user_name": user})
        return page_of([_grant(row) for row in rows], request)


def _grant_key(user: UserName, resource_type: ResourceType, resource_id: str) -> dict[str, object]:
    return {"user_name": user, "resource_type": resource_type.value, "resource_id": resource_id}
