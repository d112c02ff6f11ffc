from __future__ import annotations

import pickle

import pytest

from paddleflow import PaddleFlowSDKException
from paddleflow.domain import errors as domain
from paddleflow.sdk import errors as sdk


@pytest.mark.parametrize(
    ("status", "code", "message", "expected"),
    [
        (400, "AuthFailed", "Username or password not correct", domain.Unauthenticated),
        (400, "AuthWithoutToken", "", domain.Unauthenticated),
        (400, "AuthInvalidToken", "", domain.Unauthenticated),
        (400, "AuthIllegalUser", "", domain.Denied),
        (403, "AccessDenied", "Access denied", domain.Denied),
        (403, "OnlyRootAllowed", "", domain.Denied),
        (403, "ActionNotAllowed", "user[a] has no access to resource[job] with ID[j]", domain.Denied),
        (403, "ActionNotAllowed", "The operation cannot be executed at this phase/stage", domain.Conflict),
        (404, "JobNotFound", "", domain.NotFound),
        (404, "FlavourNotFound", "", domain.NotFound),
        (400, "QueueNameNotFound", "", domain.NotFound),
        (400, "UserNotExist", "", domain.NotFound),
        (400, "DuplicatedName", "", domain.Duplicate),
        (403, "QueueNameDuplicated", "", domain.Duplicate),
        (400, "QueueIsInUse", "", domain.InUse),
        (413, "InvalidHTTPRequest", "", domain.TooLarge),
        (400, "FlavourInvalidField", "", domain.Invalid),
        (500, "InvalidComputeResource", "", domain.Invalid),
        (500, "InternalError", "", domain.Unavailable),
        (503, "SomethingNew", "", domain.Unavailable),
        (503, "QueueNameNotFound", "", domain.Unavailable),
        (418, "SomethingNew", "", domain.Invalid),
    ],
)
def test_answer_becomes_a_class_of_both_trees(
    status: int, code: str, message: str, expected: type[domain.PaddleFlowError]
) -> None:
    error = sdk.error_from_wire(status, code, message, "req-1")
    assert isinstance(error, expected)
    assert isinstance(error, PaddleFlowSDKException)
    assert (error.get_code(), error.get_message(), error.get_request_id()) == (code, message, "req-1")


def test_text_is_the_one_scripts_match_on() -> None:
    error = PaddleFlowSDKException("JobNotFound", "no job", "req-1")
    assert str(error) == "[PaddleFlowSDKException] code:JobNotFound message:no job requestId:req-1"
    assert str(PaddleFlowSDKException()) == "[PaddleFlowSDKException] code:None message:None requestId:None"


def test_error_survives_the_way_between_processes() -> None:
    error = sdk.NotFoundError("JobNotFound", "no job", "req-1")
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is sdk.NotFoundError
    assert str(copy) == str(error)


def test_old_import_paths_give_the_same_class() -> None:
    from paddleflow.common import exception
    from paddleflow.common.exception import paddleflow_sdk_exception

    assert exception.PaddleFlowSDKException is PaddleFlowSDKException
    assert paddleflow_sdk_exception.PaddleFlowSDKException is PaddleFlowSDKException
