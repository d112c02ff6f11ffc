"""Requests nobody thought of, to runs, pipelines and schedules that exist; and pipelines nobody would write."""

from __future__ import annotations

import base64
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode

from tests.http.pipelines import TWO_STEPS, WITH_ARTIFACTS, encoded, end, start
from tests.http.served import PREFIX, Caller, Served
from tests.http.test_fuzz import Operation, _fuzz
from tests.http.test_schedules import create

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

NEW = ("/run", "/pipeline", "/schedule", "/artifact", "/log/run")


@pytest.fixture(scope="module")
def things(served: Served) -> dict[str, str]:
    """Something to find behind every path."""
    root = served.root
    run_id = start(root)
    end(served, root, run_id, "first")  # the rest goes on until the fuzzing stops it
    pipeline = root.post("/pipeline", {"yamlRaw": encoded(TWO_STEPS)}).json["pipelineID"]
    schedule = create(root, "fuzzed", pipeline).json["scheduleID"]
    return {"runID": run_id, "pipelineID": pipeline, "pipelineVersionID": "1", "scheduleID": schedule}


def test_no_request_about_what_exists_makes_the_server_fail(served: Served, things: dict[str, str]) -> None:
    schema = schemathesis.openapi.from_url(f"http://127.0.0.1:{served.port}/openapi.json")
    tried = 0
    for result in schema.get_all_operations():
        operation: Operation = result.ok()  # type: ignore[union-attr]
        known = {name: thing for name, thing in things.items() if f"{{{name}}}" in operation.path}
        if operation.method == "delete" or not operation.path.startswith(tuple(PREFIX + path for path in NEW)):
            continue
        tried += 1
        _fuzz(served, operation, GenerationMode.POSITIVE, known or None)
        if operation.body or operation.query:
            _fuzz(served, operation, GenerationMode.NEGATIVE, known or None)
    assert tried > 18
    assert served.root.get(f"/run/{things['runID']}").status == 200


WORDS = st.sampled_from(
    (*"{}[]:,-&*!|>'\"%@#\n\t \x00\x7f", "\ud7ff", "\U0001f600", "{{", "}}", "..", "null", "1e999", "&a", "*a", "<<:")
)
LINES = st.sampled_from((TWO_STEPS + WITH_ARTIFACTS % "x").splitlines(keepends=True))


@given(st.lists(st.one_of(LINES, WORDS), max_size=40).map("".join))
@settings(max_examples=150, suppress_health_check=list(HealthCheck))
def test_no_pipeline_makes_the_server_fail(root: Caller, text: str) -> None:
    answer = root.post("/run/check", {"runYamlRaw": encoded(text)})
    assert answer.status in (200, 400), (answer.body, text)
    if answer.status == 200 and not answer.json["valid"]:
        assert all(problem["message"] for problem in answer.json["problems"])
        assert answer.json["problems"]


@given(st.binary(max_size=200))
@settings(max_examples=60, suppress_health_check=list(HealthCheck))
def test_no_bytes_make_the_server_fail(root: Caller, raw: bytes) -> None:
    body = {"runYamlRaw": base64.b64encode(raw).decode()}
    assert root.post("/run/check", body).status in (200, 400)
    assert root.post("/pipeline", {"yamlRaw": body["runYamlRaw"]}).status in (201, 400)


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=8,
)
PIPELINE_KEYS = """
    entryPoints components postProcess cache parallelism disabled failureOptions fsOptions env flavour queue jobType
    dockerEnv name entrypoints what
"""
NODE_KEYS = """
    command deps parameters artifacts env cache reference extraFS loopArgument condition entryPoints dockerEnv flavour
    queue jobType
"""
KEYS = st.sampled_from(PIPELINE_KEYS.split())
NODE = st.dictionaries(st.sampled_from(NODE_KEYS.split()), JSON, max_size=4)


@given(st.dictionaries(KEYS, JSON, max_size=4), st.dictionaries(st.sampled_from(["a", "b-c"]), NODE, max_size=2))
@settings(max_examples=150, suppress_health_check=list(HealthCheck))
def test_no_document_makes_the_server_fail(root: Caller, more: dict[str, Any], nodes: dict[str, Any]) -> None:
    answer = root.post("/runjson", {"entryPoints": nodes, **more})
    assert answer.status in (201, 400, 403), (answer.body, more, nodes)


@given(st.dictionaries(st.sampled_from(["size", "rate", "first.size", "first", ".", ""]) | st.text(max_size=5), JSON))
@settings(max_examples=100, suppress_health_check=list(HealthCheck))
def test_no_parameters_make_the_server_fail(root: Caller, parameters: dict[str, Any]) -> None:
    answer = root.post("/run/check", {"runYamlRaw": encoded(TWO_STEPS), "parameters": parameters})
    assert answer.status in (200, 400), (answer.body, parameters)
