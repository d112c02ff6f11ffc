"""Requests nobody thought of, made from the OpenAPI document, good and bad: no 500, no status the document hides."""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import (
    content_type_conformance,
    not_a_server_error,
    response_schema_conformance,
    status_code_conformance,
)

from tests.http.served import PREFIX, Served

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

Operation = schemathesis.APIOperation[Any, Any, Any, Any]

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
EXAMPLES = 12
"""For each operation and kind of data."""

NOT_HTTP = b"Invalid HTTP request received."
"""What uvicorn itself says to a header no HTTP message may have; the request never reached us."""

UNFUZZED = {f"{PREFIX}/user/{{username}}"}
"""Changing the password of root would end the log-in all other calls use."""

STREAMS = {f"{PREFIX}/event", f"{PREFIX}/job/{{jobID}}/log"}
"""Followed, these never end; they are fuzzed not followed."""


@pytest.fixture(scope="module")
def schema(served: Served) -> schemathesis.BaseSchema:
    """The document of the server under test."""
    return schemathesis.openapi.from_url(f"http://127.0.0.1:{served.port}/openapi.json")


@pytest.fixture(scope="module")
def things(served: Served) -> dict[str, str]:
    """Something to find behind every path; the job runs, as it was made before the fuzzing fills the queue."""
    job = served.root.submit()
    served.task_of(job)
    for path, body in (
        ("/queue", {"name": "thing", "namespace": "default", "maxResources": {"cpu": "1", "mem": "1Gi"}}),
        ("/flavour", {"name": "thing", "cpu": "1", "mem": "1Gi"}),
        ("/fs", {"name": "thing", "url": "local:///mnt/x"}),
        ("/cluster", {"clusterName": "thing", "endpoint": "x", "clusterType": "Local"}),
    ):
        assert served.root.post(path, body).status in (200, 201)
    return {"jobID": job, "queueName": "thing", "flavourName": "thing", "fsName": "thing", "clusterName": "thing"}


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["good", "bad"])
def test_no_request_makes_the_server_fail(
    served: Served, schema: schemathesis.BaseSchema, things: dict[str, str], mode: GenerationMode
) -> None:
    tried = 0
    for result in schema.get_all_operations():
        operation: Operation = result.ok()  # type: ignore[union-attr]
        if operation.path in UNFUZZED or not _can_be(operation, mode):
            continue
        tried += 1
        _fuzz(served, operation, mode, None)
        known = {name: thing for name, thing in things.items() if f"{{{name}}}" in operation.path}
        if known and operation.method != "delete" and mode is GenerationMode.POSITIVE:
            _fuzz(served, operation, mode, known)
    assert tried > 25
    assert served.root.get("/version").status == 200


def _can_be(operation: Operation, mode: GenerationMode) -> bool:
    """There is nothing wrong to be sent to an operation that takes nothing."""
    takes = operation.body or operation.query or operation.path_parameters
    return mode is GenerationMode.POSITIVE or bool(takes)


def _fuzz(served: Served, operation: Operation, mode: GenerationMode, paths: dict[str, str] | None) -> None:
    @given(case=operation.as_strategy(generation_mode=mode, path_parameters=paths))
    @settings(max_examples=EXAMPLES, phases=[Phase.generate, Phase.shrink], suppress_health_check=list(HealthCheck))
    def send(case: schemathesis.Case[Any]) -> None:
        if operation.path in STREAMS:
            case.query = {**(case.query or {}), "follow": "false"}
        answer = case.call(headers={"x-pf-authorization": served.root.token}, timeout=60)
        if answer.content != NOT_HTTP:
            case.validate_response(answer, checks=CHECKS)

    send()
