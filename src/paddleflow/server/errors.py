"""The one table from errors to HTTP, and the one shape an error has on the wire.

A code decides the status where the product's own list names it, else the kind of error does. Two kinds always decide:
an outage is a 503 and an oversized body a 413, whatever operation met them.
"""

from __future__ import annotations

import json
import logging
import traceback

from starlette.responses import Response

from paddleflow.api.platform import ErrorAnswer
from paddleflow.domain.errors import (
    Conflict,
    Denied,
    Invalid,
    NotFound,
    PaddleFlowError,
    TooLarge,
    Unauthenticated,
    Unavailable,
)

log = logging.getLogger(__name__)

INTERNAL = "We encountered an internal error. Please try again."

_BY_STATUS: dict[int, str] = {
    400: """
        InappropriateJSON InvalidHTTPRequest InvalidURI MalformedJSON MalformedYaml InvalidPipeline FileTypeNotSupported
        InvalidNamePattern RequestExpired InvalidMarker InvalidScaleResource NamespaceNotFound CPUNotFound
        MemoryNotFound DuplicatedName DuplicatedContent InvalidArguments RequiredFieldEmpty UserNotExist
        UserPasswordWeak AuthWithoutToken AuthInvalidToken AuthFailed AuthIllegalUser QueueActionIsNotSupported
        QueueQuotaTypeIsNotSupported QueueNameNotFound QueueResourceNotMatch QueueIsNotClosed QueueIsInUse
        QueueInvalidField QueueUpdateFailed ReadYamlFileFailed RunNameDuplicated GrantResourceTypeNotFound GrantNotFound
        GrantAlreadyExist GrantRootActionNotSupport FlavourNameEmpty FlavourInvalidField JobInvalidField JobCreateFailed
        ClusterNameNotFound ClusterIdNotFound ClusterNotFound InvalidClusterProperties InvalidClusterCredential
        InvalidClusterStatus InvalidFileSystemParamsURL InvalidFileSystemParamsProperties InvalidState
        InvalidFileSystemMaxKeys InvalidFileSystemFsName InvalidLinkURL InvalidLinkProperties FileSystemNameFormatError
        LinkPathExist LinkFileSystemNotExist LinkFileSystemPathNotExist LinkNotExist LinkPathMustBeEmpty
        ConnectivityFailed InvalidPVClaimsParams LinkMetaPersistError InvalidComputeResource
        """,
    403: """
        AccessDenied ActionNotAllowed OnlyRootAllowed UserNameDuplicated QueueNameDuplicated FileSystemClientBusy
        FileSystemNotExist
        """,
    404: """
        InvalidVersion PathNotFound RecordNotFound ResourceNotFound RunNotFound PipelineNotFound RunCacheNotFound
        ScheduleNotFound ArtifactEventNotFound FlavourNotFound JobNotFound
        """,
    405: "MethodNotAllowed",
    500: "InternalError IOOperationFailure",
}
STATUS_OF_CODE = {code: status for status, codes in _BY_STATUS.items() for code in codes.split()}

_STATUS_OF_KIND: tuple[tuple[type[PaddleFlowError], int], ...] = (
    (Invalid, 400),
    (Unauthenticated, 400),
    (Denied, 403),
    (NotFound, 404),
    (Conflict, 403),
)


def status_of(error: PaddleFlowError) -> int:
    if isinstance(error, Unavailable):
        return 503
    if isinstance(error, TooLarge):
        return 413
    known = STATUS_OF_CODE.get(error.code)
    if known is not None:
        return known
    return next((status for kind, status in _STATUS_OF_KIND if isinstance(error, kind)), 500)


def error_response(status: int, code: str, message: str, request_id: str) -> Response:
    answer = ErrorAnswer(requestID=request_id, code=code, message=message)
    headers = {"Retry-After": "1"} if status == 503 else {"Connection": "close"} if status == 413 else None
    return Response(json.dumps(answer), status_code=status, media_type="application/json", headers=headers)


def known_error(error: PaddleFlowError, request_id: str) -> Response:
    status = status_of(error)
    if status == 500:
        return unexpected_error(error, request_id)
    if status == 503:
        log.warning("request %s could not be served: %s", request_id, error.message)
    return error_response(status, error.code, error.message, request_id)


def unexpected_error(error: BaseException, request_id: str) -> Response:
    """A defect of ours. The log gets where it happened; not the error's text, which may quote what the user sent."""
    story = [f"request {request_id} failed"]
    cause: BaseException | None = error
    while cause is not None:
        frames = "".join(traceback.format_tb(cause.__traceback__))
        story.append(f"{type(cause).__module__}.{type(cause).__qualname__}\n{frames}")
        cause = cause.__cause__ or cause.__context__
    log.error("%s", "\n".join(story))
    return error_response(500, "InternalError", INTERNAL, request_id)
