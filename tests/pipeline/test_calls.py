"""``run``, ``create`` and ``update``: what reaches the server, and as whom."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddleflow.common.exception import PaddleFlowSDKException
from paddleflow.documents import load
from paddleflow.pipeline import DAG, ContainerStep, Pipeline
from paddleflow.sdk.profile import find_profile
from tests.sdk.recorded_server import RecordedServer, ok, running


@pytest.fixture
def server() -> Iterator[RecordedServer]:
    with running() as recorded:
        yield recorded


@pytest.fixture
def config(server: RecordedServer, tmp_path: Path) -> str:
    path = tmp_path / "paddleflow.ini"
    path.write_text(
        "[user]\nname = maria\npassword = 50%off\n"
        f"[server]\npaddleflow_server_host = 127.0.0.1\npaddleflow_server_port = {server.port}\n"
    )
    return str(path)


def pipeline() -> Pipeline:
    def build() -> None:
        ContainerStep("PF")
        with DAG("d"):
            ContainerStep("ENTRY")

    return Pipeline(name="mine")(build)()


def test_run(server: RecordedServer, config: str) -> None:
    server.on("POST", "/run", ok({"runID": "run-000001"}, 201))
    made = pipeline()
    given = made.run(
        config, "other", "fs", "named", "why", disabled=["PF-ENTRY-POINT.d.ENTRY", made.entry_points["PF"]]
    )
    assert given == (True, "run-000001")
    (login,) = server.calls("POST", "/login")
    assert (login.body["username"], login.body["password"]) == ("maria", "50%off")
    (asked,) = server.calls("POST", "/run")
    assert load(base64.b64decode(asked.body.pop("runYamlRaw")).decode()).value == made.compile()
    assert asked.body == {
        "fsName": "fs",
        "username": "other",
        "name": "named",
        "desc": "why",
        "disabled": "d.ENTRY,PF",
    }


def test_create_and_update(server: RecordedServer, config: str) -> None:
    stored = {"pipelineID": "ppl-000001", "pipelineVersionID": "1", "name": "mine"}
    server.on("POST", "/pipeline", ok(stored, 201))
    server.on("POST", "/pipeline/ppl-000001", ok({**stored, "pipelineVersionID": "2"}, 201))
    made = pipeline()
    assert made.create(config, desc="first") == (True, {"name": "mine", "pplID": "ppl-000001", "pplVerID": "1"})
    assert made.update("ppl-000001", config, desc="second")[1]["pipelineVersionID"] == "2"
    for path, desc in (("/pipeline", "first"), ("/pipeline/ppl-000001", "second")):
        (asked,) = server.calls("POST", path)
        assert load(base64.b64decode(asked.body["yamlRaw"]).decode()).value == made.compile()
        assert asked.body["desc"] == desc


def test_disabling_what_is_not_there(config: str, server: RecordedServer) -> None:
    with pytest.raises(PaddleFlowSDKException, match=r"disabled component\[ENTRY\] is not in Pipeline\[mine\]"):
        pipeline().run(config, disabled=["ENTRY"])
    assert not server.asked


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "no config file"),
        ("not an ini", "not an ini file"),
        ("[user]\nname=x\n", "no user or server conf"),
        ("[user]\nname=x\n[server]\n", "no name or password"),
        ("[user]\nname=x\npassword=y\n[server]\n", "no paddleflow_server_host"),
        ("[user]\nname=x\npassword=y\n[server]\npaddleflow_server_host=h\npaddleflow_server_port=x\n", "65535"),
    ],
)
def test_a_wrong_configuration(tmp_path: Path, text: str | None, words: str) -> None:
    path = tmp_path / "x.ini"
    if text is not None:
        path.write_text(text)
    with pytest.raises(PaddleFlowSDKException, match=words):
        pipeline().run(str(path))


def test_without_a_file_it_is_the_server_on_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("PADDLEFLOW_PF_CONFIG", raising=False)
    profile = find_profile()
    assert (profile.host, profile.port, profile.user) == ("127.0.0.1", 8999, "root")
    assert "password" not in repr(profile)
    (tmp_path / ".paddleflow").mkdir()
    (tmp_path / ".paddleflow" / "paddleflow.ini").write_text(
        "[user]\nname=x\npassword=y\n[server]\npaddleflow_server_host=h\n"
    )
    assert (find_profile().host, find_profile().port) == ("h", 8999)


def test_the_file_is_that_of_the_environment_as_for_the_command_line(
    server: RecordedServer, config: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.on("POST", "/run", ok({"runID": "run-000001"}, 201))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PADDLEFLOW_PF_CONFIG", config)
    assert pipeline().run() == (True, "run-000001")
    (login,) = server.calls("POST", "/login")
    assert login.body["username"] == "maria"
    with pytest.raises(PaddleFlowSDKException, match="no config file"):
        pipeline().run(str(tmp_path / "another.ini"))
