"""Signature version 4: how a request proves to an S3 server that the sender has the secret key.

The secret itself never leaves this module. Pure, but for the digest functions: the time is handed in.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import quote

UNSIGNED = "UNSIGNED-PAYLOAD"
"""In place of the body's digest, where the connection itself protects the body (TLS)."""
_SERVICE = "s3"
_ALGORITHM = "AWS4-HMAC-SHA256"

Query = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Credentials:
    access_key: str
    secret_key: str = field(repr=False)
    session_token: str = field(default="", repr=False)


def encode_path(path: str) -> str:
    return quote(path, safe="/-_.~")


def encode_query(query: Query) -> str:
    pairs = sorted((quote(name, safe="-_.~"), quote(value, safe="-_.~")) for name, value in query)
    return "&".join(f"{name}={value}" for name, value in pairs)


def digest_of(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


class Signer:
    def __init__(self, credentials: Credentials, region: str) -> None:
        self._credentials = credentials
        self._region = region
        self._key_of_day: tuple[str, bytes] = ("", b"")

    def sign(
        self, method: str, path: str, query: str, headers: Mapping[str, str], body_digest: str, *, moment: str
    ) -> dict[str, str]:
        """The headers to send, all of them: those given (with lower-case names, ``host`` among them) and the proof.
        ``path`` and ``query`` are encoded already; ``moment`` is like ``20250131T235959Z``."""
        sent = dict(headers)
        sent["x-amz-date"] = moment
        sent["x-amz-content-sha256"] = body_digest
        if self._credentials.session_token:
            sent["x-amz-security-token"] = self._credentials.session_token
        names = sorted(name for name in sent if name == "host" or name.startswith("x-amz-") or name == "content-md5")
        signed_names = ";".join(names)
        listed = "".join(f"{name}:{' '.join(sent[name].split())}\n" for name in names)
        request = f"{method}\n{path}\n{query}\n{listed}\n{signed_names}\n{body_digest}"
        scope = f"{moment[:8]}/{self._region}/{_SERVICE}/aws4_request"
        text = f"{_ALGORITHM}\n{moment}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
        signature = hmac.digest(self._signing_key(moment[:8]), text.encode(), "sha256").hex()
        sent["authorization"] = (
            f"{_ALGORITHM} Credential={self._credentials.access_key}/{scope}, "
            f"SignedHeaders={signed_names}, Signature={signature}"
        )
        return sent

    def _signing_key(self, day: str) -> bytes:
        known_day, key = self._key_of_day
        if known_day != day:
            key = f"AWS4{self._credentials.secret_key}".encode()
            for part in (day, self._region, _SERVICE, "aws4_request"):
                key = hmac.digest(key, part.encode(), "sha256")
            self._key_of_day = (day, key)
        return key
