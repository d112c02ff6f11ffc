"""The OpenAPI document, made from the declared endpoints so that it cannot say anything else than they do.

Made when first asked for: a server that nobody asks should not start slower for it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from pydantic import TypeAdapter

from paddleflow.api.platform import ErrorAnswer
from paddleflow.server.routing import Access, Endpoint

_SCHEMES = {
    "token": {"type": "apiKey", "in": "header", "name": "x-pf-authorization"},
    "bearer": {"type": "http", "scheme": "bearer"},
}
_MOUNT_SCHEMES = {"mountToken": {"type": "apiKey", "in": "header", "name": "x-pf-mount-token"}}
_ERRORS = {
    400: "The request is malformed, breaks a rule, or proves nobody's identity",
    403: "Not allowed to this user, or not now",
    404: "No such thing",
    413: "The body is too large",
    500: "A defect of the server",
    503: "Something the server depends on does not answer; try again",
}
Json = dict[str, Any]


def document_of(endpoints: Sequence[Endpoint], version: str) -> Json:
    schemas = _Schemas(endpoints)
    paths: dict[str, Json] = {}
    for endpoint in endpoints:
        paths.setdefault(endpoint.full_path, {})[endpoint.method.lower()] = _operation(endpoint, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": "PaddleFlow", "version": version},
        "paths": paths,
        "components": {"schemas": schemas.definitions, "securitySchemes": _SCHEMES | _MOUNT_SCHEMES},
    }


class _Schemas:
    """The JSON schema of every body and answer, named ones once and by reference."""

    def __init__(self, endpoints: Sequence[Endpoint]) -> None:
        shapes: dict[str, tuple[str, Any, Any]] = {"error": ("error", "serialization", TypeAdapter(ErrorAnswer))}
        for endpoint in endpoints:
            if endpoint.answer is not None:
                key = f"answer {endpoint.name}"
                shapes[key] = (key, "serialization", TypeAdapter(endpoint.answer))
            if endpoint.body is not None:
                key = f"body {endpoint.name}"
                shapes[key] = (key, "validation", TypeAdapter(endpoint.body))
        made, rest = TypeAdapter.json_schemas(list(shapes.values()), ref_template="#/components/schemas/{model}")
        self._by_key = {key: schema for (key, _), schema in made.items()}
        self.definitions: Json = rest.get("$defs", {})

    def of(self, key: str) -> Json:
        return {"application/json": {"schema": self._by_key[key]}}


def _operation(endpoint: Endpoint, schemas: _Schemas) -> Json:
    operation: Json = {
        "operationId": endpoint.name,
        "summary": endpoint.summary,
        "x-access": endpoint.access.value,
        "parameters": _parameters(endpoint),
        "responses": _responses(endpoint, schemas),
    }
    if endpoint.access is not Access.PUBLIC:
        schemes = _MOUNT_SCHEMES if endpoint.access is Access.MOUNT else _SCHEMES
        operation["security"] = [{name: []} for name in schemes]
    if endpoint.body is not None:
        operation["requestBody"] = {
            "required": endpoint.body_required,
            "content": schemas.of(f"body {endpoint.name}"),
        }
    return operation


def _parameters(endpoint: Endpoint) -> list[Json]:
    named = re.findall(r"\{(\w+)\}", endpoint.path)
    in_path = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}} for name in named
    ]
    in_query = [
        {
            "name": param.name,
            "in": "query",
            "required": param.required,
            "description": param.about,
            "schema": param.schema(),
        }
        for param in endpoint.params
    ]
    return in_path + in_query


def _responses(endpoint: Endpoint, schemas: _Schemas) -> Json:
    """Every status the endpoint may answer with."""
    content: Json = {}
    if endpoint.answer is not None:
        content |= schemas.of(f"answer {endpoint.name}")
    for media in (endpoint.media, endpoint.also_media):
        if media and media != "application/json":
            content[media] = {"schema": {"type": "string"}}
    success: Json = {"description": "Done"}
    if content:
        success["content"] = content
    responses: Json = {str(endpoint.status): success}
    if not endpoint.prefixed:
        return responses | {"503": {"description": _ERRORS[503]}}
    for status, about in _ERRORS.items():
        if status != 413 or endpoint.body is not None:
            responses[str(status)] = {"description": about, "content": schemas.of("error")}
    return responses
