"""The one error tree.

::

    PaddleFlowError
    ├── Invalid          what was asked is malformed or breaks a rule; asking again unchanged fails again
    │   └── NeverFits    a request that no idle cluster could satisfy; names the limiting resource
    ├── Unauthenticated  no valid proof of who is asking
    ├── Denied           known, but not allowed
    ├── NotFound
    ├── Conflict         the state forbids it now
    │   ├── Duplicate    that name is taken
    │   ├── InUse        something still depends on it
    │   └── Stale        the row changed under the writer; read again and retry
    ├── TooLarge         a body or field over its limit
    └── Unavailable      a dependency did not answer (database locked, runtime gone); retryable
        └── DiskFull

Each error carries a ``code``: the stable word clients match on (the product's own list), a sentence, and
``details`` for machines. A user's failing job is not an error of ours; it is an event.
"""

from __future__ import annotations

from collections.abc import Mapping


class PaddleFlowError(Exception):
    """Root of the tree. ``code`` is what clients match on, ``message`` is what people read."""

    default_code = "InternalError"
    retryable = False

    def __init__(self, message: str, *, code: str | None = None, details: Mapping[str, object] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or self.default_code
        self.details: Mapping[str, object] = details or {}


class Invalid(PaddleFlowError):
    default_code = "InvalidArguments"


class NeverFits(Invalid):
    default_code = "JobCreateFailed"


class Unauthenticated(PaddleFlowError):
    default_code = "AuthInvalidToken"


class Denied(PaddleFlowError):
    default_code = "AccessDenied"


class NotFound(PaddleFlowError):
    default_code = "RecordNotFound"


class Conflict(PaddleFlowError):
    default_code = "ActionNotAllowed"


class Duplicate(Conflict):
    default_code = "DuplicatedName"


class InUse(Conflict):
    default_code = "ActionNotAllowed"


class Stale(Conflict):
    default_code = "ActionNotAllowed"
    retryable = True


class TooLarge(PaddleFlowError):
    default_code = "InvalidHTTPRequest"


class Unavailable(PaddleFlowError):
    default_code = "InternalError"
    retryable = True


class DiskFull(Unavailable):
    default_code = "IOOperationFailure"


def invalid_field(field: str, problem: str, *, code: str = "InvalidArguments") -> Invalid:
    """A bad field, named, in the words users of the product already match on."""
    return Invalid(f"Field[{field}] is invalid, {problem}", code=code, details={"field": field})


def not_found(kind: str, ident: str, *, code: str = "RecordNotFound") -> NotFound:
    # "resouceType" is misspelt on the wire of the original; scripts match on it.
    return NotFound(f"resouceType[{kind}] with ID[{ident}] not found", code=code, details={"kind": kind, "id": ident})


def no_access(user: str, kind: str, ident: str, *, code: str = "ActionNotAllowed") -> Denied:
    return Denied(
        f"user[{user}] has no access to resource[{kind}] with ID[{ident}]",
        code=code,
        details={"kind": kind, "id": ident},
    )
