"""Stored pipelines and versions on raw HTTP."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.http.pipelines import TWO_STEPS, a_filesystem, encoded, shown
from tests.http.served import Answer, Caller

Unique = Callable[[str], str]

PIPELINE = {"pipelineID", "name", "desc", "username", "createTime", "updateTime"}
VERSION = {
    *("pipelineVersionID", "pipelineID", "fsName", "yamlPath", "pipelineYaml", "username", "createTime", "updateTime"),
}


def text_of(name: str) -> str:
    return TWO_STEPS.replace("pair", name)


def create(caller: Caller, name: str, **more: object) -> Answer:
    return caller.post("/pipeline", {"yamlRaw": encoded(text_of(name)), **more})


def made(caller: Caller, name: str) -> str:
    answer = create(caller, name)
    assert answer.status == 201, answer.body
    return str(answer.json["pipelineID"])


def test_a_pipeline_is_kept_changed_run_and_deleted(alice: Caller, unique: Unique) -> None:
    name = unique("kept")
    answer = create(alice, name, desc="first words")
    assert answer.status == 201, answer.body
    assert set(answer.json) == {"pipelineID", "pipelineVersionID", "name"}
    ppl_id = answer.json["pipelineID"]
    assert ppl_id.startswith("ppl-")
    assert (answer.json["pipelineVersionID"], answer.json["name"]) == ("1", name)

    changed = text_of(name).replace("rate: 0.5", "rate: 0.9")
    updated = alice.post(f"/pipeline/{ppl_id}", {"yamlRaw": encoded(changed)})
    assert (updated.status, updated.json) == (201, {"pipelineID": ppl_id, "pipelineVersionID": "2"})

    detail = alice.get(f"/pipeline/{ppl_id}").json
    assert set(detail) == {"pipeline", "pplVersions"}
    assert set(detail["pipeline"]) == PIPELINE
    assert (detail["pipeline"]["desc"], detail["pipeline"]["username"]) == ("first words", "alice")
    versions = detail["pplVersions"]["pplVersionList"]
    assert [version["pipelineVersionID"] for version in versions] == ["1", "2"]
    assert set(versions[0]) == VERSION
    assert versions[1]["pipelineYaml"] == changed

    one = alice.get(f"/pipeline/{ppl_id}/2").json
    assert one == {"pipeline": detail["pipeline"], "pipelineVersion": versions[1]}

    newest = alice.post("/run", {"pipelineID": ppl_id})
    older = alice.post("/run", {"pipelineID": ppl_id, "pipelineVersionID": "1"})
    assert shown(alice, newest.json["runID"])["source"] == f"{ppl_id}-2"
    assert shown(alice, older.json["runID"])["source"] == f"{ppl_id}-1"

    assert alice.delete(f"/pipeline/{ppl_id}/1").status == 200
    last = alice.delete(f"/pipeline/{ppl_id}/2")
    assert (last.status, last.code) == (403, "ActionNotAllowed")
    third = alice.post(f"/pipeline/{ppl_id}", {"yamlRaw": encoded(changed)})
    assert third.json.get("pipelineVersionID") == "3", "ids are not given twice"
    gone = alice.delete(f"/pipeline/{ppl_id}")
    assert (gone.status, gone.body) == (200, b"")
    assert alice.get(f"/pipeline/{ppl_id}").code == "PipelineNotFound"


def test_a_pipeline_on_a_filesystem(alice: Caller, unique: Unique, tmp_path: Path) -> None:
    fs_name, name = unique("disk"), unique("onfs")
    directory = a_filesystem(alice, fs_name, tmp_path)
    (directory / "run.yaml").write_text(text_of(name))
    answer = alice.post("/pipeline", {"fsName": fs_name})
    assert answer.status == 201, answer.body
    version = alice.get(f"/pipeline/{answer.json['pipelineID']}/1").json["pipelineVersion"]
    assert (version["fsName"], version["yamlPath"]) == (fs_name, "./run.yaml")
    url = f"/pipeline/{answer.json['pipelineID']}"
    assert alice.get(url, fsFilter=f"{fs_name},x").json["pplVersions"]["pplVersionList"] == [version]
    assert alice.get(url, fsFilter="elsewhere").json["pplVersions"]["pplVersionList"] == []


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"yamlRaw": "%%"}, "Decode base64"),
        ({"yamlRaw": "/w=="}, "MalformedYaml"),
        ({"yamlRaw": encoded(TWO_STEPS), "yamlPath": "./run.yaml"}, "InvalidArguments"),
        ({"yamlRaw": encoded(TWO_STEPS), "fsName": "x"}, "InvalidArguments"),
        ({"yamlRaw": encoded(TWO_STEPS), "desc": "x" * 257}, "InvalidArguments"),
        ({"yamlRaw": encoded("name: x")}, "InvalidPipeline"),
        ({}, "InvalidArguments"),
        ({"yamlRaw": encoded(TWO_STEPS), "username": "root"}, "AuthIllegalUser"),
        ({"yamlRaw": 1}, "MalformedJSON"),
    ],
)
def test_what_cannot_be_kept_is_refused(alice: Caller, body: object, code: str) -> None:
    answer = alice.post("/pipeline", body)
    assert (answer.status, answer.code) == (400, code), answer.body
    assert answer.message


def test_names_are_the_owners(alice: Caller, bobby: Caller, unique: Unique) -> None:
    name = unique("mine")
    ppl_id = made(alice, name)
    again = create(alice, name)
    assert (again.status, again.code) == (400, "DuplicatedName")
    assert create(bobby, name).status == 201
    other = alice.post(f"/pipeline/{ppl_id}", {"yamlRaw": encoded(text_of(unique("other")))})
    assert other.status == 400
    for answer in (
        bobby.get(f"/pipeline/{ppl_id}"),
        bobby.get(f"/pipeline/{ppl_id}/1"),
        bobby.delete(f"/pipeline/{ppl_id}"),
        bobby.delete(f"/pipeline/{ppl_id}/1"),
        bobby.post(f"/pipeline/{ppl_id}", {"yamlRaw": encoded(text_of(name))}),
        bobby.post("/run", {"pipelineID": ppl_id}),
    ):
        assert (answer.status, answer.code) == (403, "AccessDenied")
    assert bobby.get("/pipeline", userFilter="alice").code == "AccessDenied"


def test_lists_are_filtered_and_paged(alice: Caller, root: Caller, unique: Unique) -> None:
    names = [unique("paged") for _ in range(3)]
    ids = [made(alice, name) for name in names]
    wanted = ",".join(names)
    found = root.get("/pipeline", userFilter="alice", nameFilter=wanted).json
    assert [row["pipelineID"] for row in found["pipelineList"]] == ids
    assert set(found["pipelineList"][0]) == PIPELINE
    page = alice.get("/pipeline", nameFilter=wanted, maxKeys=2).json
    assert page["isTruncated"]
    rest = alice.get("/pipeline", nameFilter=wanted, maxKeys=2, marker=page["nextMarker"]).json
    assert [row["pipelineID"] for row in rest["pipelineList"]] == ids[2:]
    assert not rest["isTruncated"]


@pytest.mark.parametrize("path", ["/pipeline/ppl-999999", "/pipeline/ppl-999999/1"])
def test_what_is_not_there(alice: Caller, path: str) -> None:
    for answer in (alice.get(path), alice.delete(path)):
        assert (answer.status, answer.code) == (404, "PipelineNotFound")
