"""The client's errors, and the one table that turns an answer of the server into one of them.

Every class here is both a ``PaddleFlowSDKException``, which scripts of the product already catch, and a member of the
domain's error tree, so that ``except NotFound`` means the same on either side of the wire::

    PaddleFlowSDKException (PaddleFlowError)
    ├── InvalidError          (Invalid)
    │   └── TooLargeError     (TooLarge)
    ├── UnauthenticatedError  (Unauthenticated)
    ├── DeniedError           (Denied)
    ├── NotFoundError         (NotFound)
    ├── ConflictError         (Conflict)
    │   ├── DuplicateError    (Duplicate)
    │   └── InUseError        (InUse)
    └── UnavailableError      (Unavailable)
        └── UnreachableError  no connection, or it was lost; code "Connection Error"
"""

from __future__ import annotations

from collections.abc import Callable

from paddleflow.domain import errors as domain

CONNECTION_ERROR = "Connection Error"


class PaddleFlowSDKException(domain.PaddleFlowError):
    """What every method of the client raises. The argument order is the one scripts already use."""

    def __init__(
        self,
        code: str | None = None,
        message: str | None = None,
        requestId: str | None = None,  # noqa: N803 - the name existing scripts pass
    ) -> None:
        super().__init__(message or "", code=code)
        self.requestId = requestId
        self._given = (code, message, requestId)

    def __str__(self) -> str:
        code, message, request_id = self._given
        return f"[PaddleFlowSDKException] code:{code} message:{message} requestId:{request_id}"

    def __reduce__(self) -> tuple[type[PaddleFlowSDKException], tuple[str | None, str | None, str | None]]:
        # The default would rebuild the error from the message alone, which lands in ``code``.
        return type(self), self._given

    def get_code(self) -> str:
        return self.code

    def get_message(self) -> str:
        return self.message

    def get_request_id(self) -> str | None:
        return self.requestId


class InvalidError(PaddleFlowSDKException, domain.Invalid):
    """What was asked is malformed or breaks a rule."""


class TooLargeError(InvalidError, domain.TooLarge):
    """A body or field over its limit."""


class UnauthenticatedError(PaddleFlowSDKException, domain.Unauthenticated):
    """Not logged in, or the log-in was refused."""


class DeniedError(PaddleFlowSDKException, domain.Denied):
    """Known, but not allowed."""


class NotFoundError(PaddleFlowSDKException, domain.NotFound):
    """No such thing."""


class ConflictError(PaddleFlowSDKException, domain.Conflict):
    """The present state forbids it."""


class DuplicateError(ConflictError, domain.Duplicate):
    """That name is taken."""


class InUseError(ConflictError, domain.InUse):
    """Something still depends on it."""


class UnavailableError(PaddleFlowSDKException, domain.Unavailable):
    """The server, or something behind it, could not answer; trying again later may help."""


class UnreachableError(UnavailableError):
    """No connection to the server, or it was lost before the answer came."""


_BY_CODE: dict[str, type[PaddleFlowSDKException]] = {
    "AuthWithoutToken": UnauthenticatedError,
    "AuthInvalidToken": UnauthenticatedError,
    "AuthFailed": UnauthenticatedError,
    "AuthIllegalUser": DeniedError,
    "AccessDenied": DeniedError,
    "OnlyRootAllowed": DeniedError,
    "UserNotExist": NotFoundError,
    "UserNameDuplicated": DuplicateError,
    "QueueNameDuplicated": DuplicateError,
    "DuplicatedName": DuplicateError,
    "GrantAlreadyExist": DuplicateError,
    "QueueNameNotFound": NotFoundError,
    "GrantNotFound": NotFoundError,
    "ClusterNameNotFound": NotFoundError,
    "ClusterIdNotFound": NotFoundError,
    "ClusterNotFound": NotFoundError,
    "NamespaceNotFound": NotFoundError,
    "FileSystemNotExist": NotFoundError,
    "QueueIsInUse": InUseError,
    "FileSystemClientBusy": InUseError,
    "InvalidComputeResource": InvalidError,
}

_DECIDING: dict[int, type[PaddleFlowSDKException]] = {413: TooLargeError, 502: UnavailableError, 503: UnavailableError}
"""These statuses say what happened whatever operation met it, and so whatever its code."""

_BY_STATUS: dict[int, type[PaddleFlowSDKException]] = {
    401: UnauthenticatedError,
    403: DeniedError,
    404: NotFoundError,
    409: ConflictError,
}


def error_from_wire(status: int, code: str, message: str, request_id: str | None) -> PaddleFlowSDKException:
    """The error an answer stands for: by its code where the code says it, otherwise by the HTTP status."""
    return _class_of(status, code, message)(code, message, request_id)


def _class_of(status: int, code: str, message: str) -> Callable[[str, str, str | None], PaddleFlowSDKException]:
    if status in _DECIDING:
        return _DECIDING[status]
    if code == "ActionNotAllowed":
        # One code for two refusals; only the fixed wording of the first tells whose fault it is.
        return DeniedError if "has no access to resource" in message else ConflictError
    known = _BY_CODE.get(code) or _BY_STATUS.get(status)
    if known is not None:
        return known
    return UnavailableError if status >= 500 else InvalidError
