"""Users and actors. There is one administrator, ``root``; everybody else owns what they make."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from paddleflow.domain.ids import ROOT, GrantId, UserName


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    name: UserName
    password_hash: str
    token_epoch: int = 0
    """Raised when the password changes; tokens of an earlier epoch are refused."""
    created_at: datetime
    updated_at: datetime
    seq: int = 0
    """Row number, given by the store; lists are ordered and paged by it."""
    version: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """Who asks: a user, or the platform itself (a reactor, a timer)."""

    name: UserName
    is_platform: bool = False

    @property
    def is_root(self) -> bool:
        return self.is_platform or self.name == ROOT


PLATFORM = Actor(name=UserName("platform"), is_platform=True)


class ResourceType(StrEnum):
    """What a grant can open to a user."""

    QUEUE = "queue"
    USER = "user"
    FILESYSTEM = "fs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """A user may use a queue (by name), or a filesystem (by id)."""

    id: GrantId
    user: UserName
    resource_type: ResourceType
    resource_id: str
    created_at: datetime
    updated_at: datetime
    seq: int = 0
