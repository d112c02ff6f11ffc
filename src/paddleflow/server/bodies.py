"""Request bodies: read within a limit, parsed without surprises, checked against a wire model.

Refuses, before any model sees them: bodies over the limit (without holding them in memory), JSON that is broken, nested
absurdly deep, or that carries what no text column can hold (NUL, lone surrogates) or no JSON can spell (NaN, infinity).
"""

from __future__ import annotations

import json
import math
from typing import NoReturn, TypeVar

from pydantic import ValidationError
from starlette.requests import ClientDisconnect, Request

from paddleflow.api.wire import WireRequest
from paddleflow.domain.errors import Invalid, TooLarge, invalid_field

BODY_LIMIT = 1024 * 1024
PIPELINE_LIMIT = 8 * 1024 * 1024
"""Of bodies that carry a pipeline: the longest text there may be, in base64, with room for the rest."""
_DISCARD_LIMIT = 16 * 1024 * 1024
"""How much of a refused body is read and thrown away, so that a client still sending gets to see the answer."""
_DEPTH_LIMIT = 64

Model = TypeVar("Model", bound=WireRequest)


async def read_body(request: Request, limit: int = BODY_LIMIT) -> bytes:
    """The whole body. A client that goes away half-way is answered nothing, as nobody is there."""
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and int(declared) > limit:
        if "expect" not in request.headers:
            await _discard(request)
        raise _too_large(limit)
    chunks: list[bytes] = []
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > limit:
            chunks.clear()
            await _discard(request)
            raise _too_large(limit)
        chunks.append(chunk)
    return b"".join(chunks)


async def _discard(request: Request) -> None:
    size = 0
    try:
        # The request's own stream may be half-way through already; what lies under it goes on from there.
        while size <= _DISCARD_LIMIT:
            message = await request.receive()
            size += len(message.get("body", b""))
            if message["type"] != "http.request" or not message.get("more_body", False):
                return
    except ClientDisconnect:
        return


def _too_large(limit: int) -> TooLarge:
    return TooLarge(f"the request body is over the limit of {limit} bytes", code="InvalidHTTPRequest")


def parse_json(raw: bytes) -> object:
    try:
        value: object = json.loads(raw, parse_constant=_refuse_constant, parse_float=_finite)
        _check_tree(value)
    except (ValueError, RecursionError) as error:
        raise Invalid("The JSON provided was not well-formatted", code="MalformedJSON") from error
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError("a number out of range")
    return value


def _check_tree(root: object) -> None:
    """Level by level, so that no depth can exhaust the stack."""
    level = [root]
    for _ in range(_DEPTH_LIMIT):
        below: list[object] = []
        for value in level:
            if isinstance(value, str):
                _check_text(value)
            elif isinstance(value, dict):
                below.extend(value.keys())
                below.extend(value.values())
            elif isinstance(value, list):
                below.extend(value)
        if not below:
            return
        level = below
    raise ValueError("nested too deep")


def _check_text(text: str) -> None:
    if "\x00" in text:
        raise ValueError("a NUL character")
    text.encode()  # a lone surrogate cannot be encoded: UnicodeEncodeError is a ValueError


def validated(model: type[Model], value: object) -> Model:
    """The body as its model, or an error that names the field."""
    if not isinstance(value, dict):
        raise Invalid("the request body must be a JSON object", code=model.refusal_code)
    try:
        return model.model_validate(value)
    except ValidationError as error:
        # Chained errors would carry the input, and with it perhaps a password.
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        problem = first["msg"]
    raise invalid_field(field[:200], problem[:1].lower() + problem[1:], code=model.refusal_code)
