"""Ids, passwords, tokens and sealed values, from this installation's own random key.

The key is 32 random bytes in a file only the owner may read, made at first start. Tokens are HS256 JWTs that expire and
carry a user name and an epoch, never a hash. Passwords are argon2id with the parameters of OWASP's low-memory profile:
a login must not cost a small server 64 MiB.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import secrets
from datetime import datetime, timedelta
from functools import lru_cache
from pathlib import Path

import argon2
import jwt

from paddleflow.domain.errors import Invalid, Unauthenticated, Unavailable
from paddleflow.domain.ids import JobId, UserName
from paddleflow.ports.identity import TokenClaims

_ISSUER = "paddleflow"
_KEY_BYTES = 32
_REMEMBERED_TOKENS = 1024


def load_or_create_key(path: Path) -> bytes:
    """The installation's key; created once, atomically, readable by its owner alone."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            key = path.read_bytes()
        else:
            key = secrets.token_bytes(_KEY_BYTES)
            with os.fdopen(fd, "wb") as file:
                file.write(key)
    except OSError as error:
        raise Unavailable(f"the installation key {path} cannot be read or made: {error}") from error
    if len(key) != _KEY_BYTES:
        raise Unavailable(f"the installation key {path} has {len(key)} bytes instead of {_KEY_BYTES}; restore it")
    return key


def _derived(key: bytes, purpose: str) -> bytes:
    """One key per purpose, so that a token can never be taken for a sealed value."""
    return hmac.new(key, purpose.encode(), hashlib.sha256).digest()


class KeyedIdentity:
    def __init__(self, key: bytes, *, token_life: timedelta) -> None:
        self._token_key = _derived(key, "tokens")
        self._job_key = _derived(key, "jobs")
        self._mount_key = _derived(key, "mounts")
        self._seal_key = base64.urlsafe_b64encode(_derived(key, "seal"))
        self._token_life = token_life
        self._signed = lru_cache(maxsize=_REMEMBERED_TOKENS)(self._check_signature)
        self._hasher = argon2.PasswordHasher(time_cost=2, memory_cost=19 * 1024, parallelism=1)

    def job_secret(self, job_id: JobId) -> str:
        return _derived(self._job_key, job_id).hex()

    def new_token_hex(self) -> str:
        return secrets.token_hex(16)

    def hash_password(self, password: str) -> str:
        return self._hasher.hash(password)

    def verify_password(self, password_hash: str, password: str) -> bool:
        try:
            return self._hasher.verify(password_hash, password)
        except (argon2.exceptions.VerifyMismatchError, argon2.exceptions.InvalidHashError):
            return False

    def sign(self, claims: TokenClaims, now: datetime) -> str:
        payload = {
            "iss": _ISSUER,
            "username": claims.user,
            "epoch": claims.epoch,
            "iat": now,
            "exp": now + self._token_life,
        }
        return jwt.encode(payload, self._token_key, algorithm="HS256")

    def verify(self, token: str, now: datetime) -> TokenClaims:
        claims, expires = self._signed(token)
        if now.timestamp() >= expires:
            raise Unauthenticated("Invalid token. Please re-login", code="AuthInvalidToken", details={"expired": True})
        return claims

    def _check_signature(self, token: str) -> tuple[TokenClaims, float]:
        """What a token of ours says and when it expires. A pure function of the token, so it is worth remembering:
        clients send the same one with every request."""
        try:
            payload = jwt.decode(
                token,
                self._token_key,
                algorithms=["HS256"],
                issuer=_ISSUER,
                # Expiry is judged at every use, by the clock we are given.
                options={"verify_exp": False, "verify_iat": False, "require": ["exp", "iss", "username", "epoch"]},
            )
            claims = TokenClaims(user=UserName(str(payload["username"])), epoch=int(payload["epoch"]))
            return claims, float(payload["exp"])
        except (jwt.InvalidTokenError, ValueError, TypeError) as error:
            raise Unauthenticated("Invalid token. Please re-login", code="AuthInvalidToken") from error

    def seal(self, secret: str) -> str:
        # Imported here: most servers never seal anything, and the import costs as much as the rest of this module.
        from cryptography.fernet import Fernet

        return Fernet(self._seal_key).encrypt(secret.encode()).decode()

    def unseal(self, sealed: str) -> str:
        from cryptography.fernet import Fernet, InvalidToken

        try:
            return Fernet(self._seal_key).decrypt(sealed.encode()).decode()
        except InvalidToken as error:
            raise Invalid("a stored secret was sealed with another installation's key") from error

    def mount_secret(self, token_id: str) -> str:
        return _derived(self._mount_key, token_id).hex()

    def seal_for(self, secret: str, text: str) -> str:
        from cryptography.fernet import Fernet

        return Fernet(_plan_key(secret)).encrypt(text.encode()).decode()


def open_sealed_plan(token: str, sealed: str) -> str:
    """What a mount is told, by the token with which it asked: the other half of ``seal_for``, for the mount's side."""
    from cryptography.fernet import Fernet, InvalidToken

    try:
        return Fernet(_plan_key(token.rpartition(".")[2])).decrypt(sealed.encode()).decode()
    except InvalidToken as error:
        raise Invalid("the mount's plan was sealed for another token") from error


def _plan_key(secret: str) -> bytes:
    return base64.urlsafe_b64encode(_derived(secret.encode(), "plan"))
