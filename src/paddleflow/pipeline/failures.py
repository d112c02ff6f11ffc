"""The one error of the Python pipeline language: code ``PipelineDSLError``, caught as ``PaddleFlowSDKException``."""

from __future__ import annotations

from paddleflow.sdk.errors import InvalidError

DSL_ERROR = "PipelineDSLError"


def dsl_error(sentence: str) -> InvalidError:
    """What is wrong with the pipeline being built, ready to be raised."""
    return InvalidError(DSL_ERROR, sentence)
