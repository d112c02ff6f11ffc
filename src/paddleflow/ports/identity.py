"""Chance and secrets: ids, password hashes, tokens, sealed values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from paddleflow.domain.ids import JobId, UserName


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenClaims:
    user: UserName
    epoch: int
    """The user's token epoch when the token was signed."""


class Identity(Protocol):
    def new_token_hex(self) -> str:
        """32 random hexadecimal digits, for ids."""
        ...

    def hash_password(self, password: str) -> str: ...

    def verify_password(self, password_hash: str, password: str) -> bool: ...

    def sign(self, claims: TokenClaims, now: datetime) -> str:
        """A token that expires."""
        ...

    def verify(self, token: str, now: datetime) -> TokenClaims:
        """Raises Unauthenticated for a forged, foreign or expired token."""
        ...

    def seal(self, secret: str) -> str:
        """Encrypt a value for storage with this installation's key."""
        ...

    def unseal(self, sealed: str) -> str: ...

    def job_secret(self, job_id: JobId) -> str:
        """A secret for the tasks of one job to know each other by: always the same for a job, and for no other."""
        ...

    def mount_secret(self, token_id: str) -> str:
        """The secret part of a mount's token, made from its open part: always the same, and only this installation
        can make it."""
        ...

    def seal_for(self, secret: str, text: str) -> str:
        """Encrypt a text for whoever has that secret."""
        ...
