"""The client's calls about stored pipelines over real HTTP."""

from __future__ import annotations

import base64
import inspect
from typing import Any

import pytest

from paddleflow import Client
from paddleflow.sdk.errors import InvalidError, UnauthenticatedError
from paddleflow.sdk.pipelines import PipelineServiceApi
from tests.sdk.recorded_server import RecordedServer, error, ok
from tests.sdk.run_answers import PIPELINE, VERSION

SIGNATURES = {
    "create_pipeline": "fs_name, yaml_path, desc, username, yaml_raw",
    "list_pipeline": "user_filter, name_filter, max_keys, marker",
    "show_pipeline": "pipeline_id, fs_filter, max_keys, marker",
    "update_pipeline": "pipeline_id, fs_name, yaml_path, username, desc, yaml_raw",
    "show_pipeline_version": "pipeline_id, pipeline_version_id",
    "delete_pipeline": "pipeline_id",
    "delete_pipeline_version": "pipeline_id, pipeline_version_id",
}
MADE = {"pipelineID": "ppl-000001", "pipelineVersionID": "2", "name": "demo"}


@pytest.mark.parametrize(("method", "arguments"), SIGNATURES.items())
def test_methods_take_the_arguments_scripts_pass(method: str, arguments: str) -> None:
    names = list(inspect.signature(getattr(Client, method)).parameters)
    assert ", ".join(names[1:]) == arguments


@pytest.mark.parametrize(
    ("method", "arguments", "code"),
    [
        ("show_pipeline", ("",), "InvalidPipelineID"),
        ("delete_pipeline", ("",), "InvalidPipelineID"),
        ("update_pipeline", ("", "data", "run.yaml"), "InvalidPipelineID"),
        ("update_pipeline", ("ppl-000001", "", "run.yaml"), "InvalidFSName"),
        ("update_pipeline", ("ppl-000001", "data", ""), "InvalidYamlPath"),
        ("show_pipeline_version", ("ppl-000001", ""), "InvalidPipelineVersionID"),
        ("delete_pipeline_version", ("ppl-000001", " "), "InvalidPipelineVersionID"),
        ("create_pipeline", (" ",), "InvalidFSName"),
    ],
)
def test_what_is_empty_is_refused(client: Client, method: str, arguments: tuple[Any, ...], code: str) -> None:
    with pytest.raises(InvalidError) as caught:
        getattr(client, method)(*arguments)
    assert caught.value.get_code() == code


def test_create_and_update(server: RecordedServer, client: Client) -> None:
    server.on("POST", "/pipeline", ok(MADE, 201))
    server.on("POST", "/pipeline/ppl-000001", ok({**MADE, "pipelineVersionID": "3"}, 201))
    made = client.create_pipeline("data", "./run.yaml", "tries")
    assert made == (True, {"name": "demo", "pplID": "ppl-000001", "pplVerID": "2"})
    assert server.asked[-1].body == {"fsName": "data", "yamlPath": "./run.yaml", "desc": "tries"}
    updated = client.update_pipeline("ppl-000001", yaml_raw=b"name: demo")
    assert updated == (True, {"pipelineID": "ppl-000001", "pipelineVersionID": "3"})
    assert server.asked[-1].body == {"yamlRaw": base64.b64encode(b"name: demo").decode()}


def test_reading_and_deleting(server: RecordedServer, client: Client) -> None:
    versions = {"pplVersionList": [VERSION], "nextMarker": "m"}
    server.on("GET", "/pipeline", ok({"pipelineList": [PIPELINE]}))
    server.on("GET", "/pipeline/ppl-000001", ok({"pipeline": PIPELINE, "pplVersions": versions}))
    server.on("GET", "/pipeline/ppl-000001/2", ok({"pipeline": PIPELINE, "pipelineVersion": VERSION}))
    server.on("DELETE", "/pipeline/ppl-000001", ok())
    server.on("DELETE", "/pipeline/ppl-000001/2", ok())
    _, listed = client.list_pipeline(name_filter="demo")
    assert ([one.pipeline_id for one in listed["pipelineList"]], listed["nextMarker"]) == (["ppl-000001"], None)
    _, shown = client.show_pipeline("ppl-000001", max_keys=1)
    assert shown["pipelineInfo"] == listed["pipelineList"][0]
    assert ([one.pipeline_version_id for one in shown["pipelineVersionList"]], shown["nextMarker"]) == (["2"], "m")
    _, version = client.show_pipeline_version("ppl-000001", "2")
    assert version["pipelineVersionInfo"].pipeline_yaml == "name: demo\n"
    assert client.delete_pipeline_version("ppl-000001", "2") == (True, None)
    assert client.delete_pipeline("ppl-000001") == (True, None)


def test_the_service_class_takes_address_and_header(server: RecordedServer) -> None:
    server.on("GET", "/pipeline", ok({"pipelineList": [PIPELINE]}))
    host = f"http://127.0.0.1:{server.port}"
    _, page = PipelineServiceApi.list_pipeline(host, header={"x-pf-authorization": "mine"})
    assert page["pipelineList"][0].name == "demo"
    assert server.asked[-1].headers["x-pf-authorization"] == "mine"
    with pytest.raises(InvalidError) as caught:
        PipelineServiceApi.list_pipeline(host)
    assert caught.value.get_code() == "InvalidRequest"
    server.on("GET", "/pipeline", error(400, "AuthInvalidToken", "stale"))
    with pytest.raises(UnauthenticatedError):
        PipelineServiceApi.list_pipeline(host, header={"x-pf-authorization": "stale"})
    assert not server.calls("POST", "/login")
