"""What an S3 server's refusals mean, in the errors of the domain. Of an answer only its code and sentence are kept."""

from __future__ import annotations

import re
from collections.abc import Mapping

from paddleflow.adapters.objects.retry import WAIT_FIRST
from paddleflow.domain.errors import Denied, DiskFull, Invalid, NotFound, PaddleFlowError, Stale, Unavailable

_FULL = {"QuotaExceeded", "XMinioStorageFull", "InsufficientStorage", "StorageFull"}
_BUSY = {"SlowDown", "ServiceUnavailable", "InternalError", "RequestTimeout", "OperationAborted", "IncompleteBody"}
_DENIED: Mapping[str, str] = {
    "InvalidAccessKeyId": "the server does not know this access key: check accessKey",
    "SignatureDoesNotMatch": "the secret key does not belong to the access key: check secretKey",
    "RequestTimeTooSkewed": "the clock of this machine is too far from the server's",
    "ExpiredToken": "the session token has expired: get a new one",
    "InvalidToken": "the session token is not valid: check sessionToken",
    "AccessDenied": "the access key has no right to do this",
}


def error_of(status: int, headers: Mapping[str, str], body: bytes, key: str, bucket: str) -> PaddleFlowError:
    code, sentence = _find(body, "Code"), _find(body, "Message")
    told = f"{code or status}: {sentence}" if sentence else (code or f"HTTP status {status}")
    where = f"{key!r} in bucket {bucket}" if key else f"bucket {bucket}"
    details = {"status": status, "store_code": code}
    if code == "NoSuchBucket":
        return NotFound(f"there is no bucket {bucket}", details=details)
    if code in _FULL or status == 507:
        return DiskFull(f"the store is full: {told}", details=details)
    if status == 404:
        return NotFound(f"{where} is not there", details=details)
    if code in _DENIED or status in {401, 403}:
        return Denied(f"{where}: {_DENIED.get(code, _DENIED['AccessDenied'])} ({told})", details=details)
    if status == 412:
        return Stale(f"{where} is another version by now", details=details)
    if code in _BUSY or status in {408, 409, 429} or status >= 500:
        wait = headers.get("retry-after") or ""
        return Unavailable(f"{where}: {told}", details=details | ({WAIT_FIRST: int(wait)} if wait.isdigit() else {}))
    if status in {301, 302, 307, 308} or code == "AuthorizationHeaderMalformed":
        region = headers.get("x-amz-bucket-region") or _find(body, "Region")
        hint = f"the bucket is in region {region}: set region" if region else "check endpoint and region"
        return Invalid(f"{where} is not served here: {hint} ({told})", details=details)
    return Invalid(f"{where}: {told}", details=details)


def _find(body: bytes, name: str) -> str:
    """From what may be an XML document, or a page of some proxy."""
    found = re.search(rf"<{name}>([^<]{{0,300}})</{name}>", body[:10_000].decode(errors="replace"))
    # It goes into logs and onto terminals: nothing in it may begin a line or move a cursor.
    return "".join(letter if letter.isprintable() else " " for letter in found.group(1)).strip() if found else ""
