"""The OpenAPI document, made from the declared endpoints so that it cannot say anything else than they do."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from fastapi import FastAPI
from pydantic.json_schema import models_json_schema

from paddleflow.api.platform import ErrorAnswer
from paddleflow.server.routing import Access, Endpoint

_REF = "#/components/schemas/{model}"
_SCHEMES = {
    "token": {"type": "apiKey", "in": "header", "name": "x-pf-authorization"},
    "bearer": {"type": "http", "scheme": "bearer"},
}


def responses_of(endpoint: Endpoint) -> dict[int | str, dict[str, Any]]:
    """Every status the endpoint may answer with."""
    success: dict[str, Any] = {"description": "Done"}
    if endpoint.media != "application/json":
        success["content"] = {endpoint.media: {"schema": {"type": "string"}}}
    elif endpoint.answer is not None:
        success["model"] = endpoint.answer
    if endpoint.also_media:
        success["content"] = {endpoint.also_media: {"schema": {"type": "string"}}}
    answers: dict[int | str, dict[str, Any]] = {endpoint.status: success}
    if endpoint.prefixed:
        for status, about in _ERRORS.items():
            if status != 413 or endpoint.body is not None:
                answers[status] = {"model": ErrorAnswer, "description": about}
    else:
        answers[503] = {"description": _ERRORS[503]}
    return answers


_ERRORS = {
    400: "The request is malformed, breaks a rule, or proves nobody's identity",
    403: "Not allowed to this user, or not now",
    404: "No such thing",
    413: "The body is too large",
    500: "A defect of the server",
    503: "Something the server depends on does not answer; try again",
}


def operation_extra(endpoint: Endpoint) -> dict[str, Any]:
    """What the framework cannot see in a handler's signature."""
    parameters: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in re.findall(r"\{(\w+)\}", endpoint.path)
    ]
    parameters += [
        {
            "name": param.name,
            "in": "query",
            "required": param.required,
            "description": param.about,
            "schema": param.schema(),
        }
        for param in endpoint.params
    ]
    extra: dict[str, Any] = {"x-access": endpoint.access.value, "parameters": parameters}
    if endpoint.access is not Access.PUBLIC:
        extra["security"] = [{name: []} for name in _SCHEMES]
    if endpoint.body is not None:
        schema = {"$ref": _REF.format(model=endpoint.body.__name__)}
        extra["requestBody"] = {
            "required": endpoint.body_required,
            "content": {"application/json": {"schema": schema}},
        }
    return extra


def complete_document(app: FastAPI, endpoints: Iterable[Endpoint]) -> dict[str, Any]:
    """The framework's document, with the bodies and the way to log in that it does not know of."""
    document = app.openapi()
    bodies = {endpoint.body for endpoint in endpoints if endpoint.body is not None}
    ordered = sorted(bodies, key=lambda model: model.__name__)
    _, schema = models_json_schema([(model, "validation") for model in ordered], ref_template=_REF)
    components = document.setdefault("components", {})
    components.setdefault("schemas", {}).update(schema.get("$defs", {}))
    components["securitySchemes"] = _SCHEMES
    return document
