"""Artifacts and the run cache on raw HTTP: records, files, lineage, why a step ran."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.http.pipelines import WITH_ARTIFACTS, a_filesystem, end, ended, shown, start, view_of
from tests.http.served import Answer, Caller, Served
from tests.waiting import wait_for

Unique = Callable[[str], str]

EVENT = {
    *("runID", "fsname", "username", "artifactPath", "step", "jobID", "type", "artifactName", "meta"),
    *("createTime", "updateTime"),
}
CACHE = {
    *("cacheID", "firstFp", "secondFp", "runID", "source", "step", "jobID", "fsname", "username", "expiredTime"),
    *("strategy", "custom", "createTime", "updateTime"),
}
CACHED = """
name: kept
cache: {enable: true, max_expired_time: 3600}
fs_options:
  main_fs: {name: %s}
entry_points:
  think:
    command: "think {{depth}}"
    parameters: {depth: 1}
    artifacts: {output: [thought]}
"""


@dataclass
class Made:
    """A run that made an artifact and read it again."""

    run_id: str
    fs_name: str
    directory: Path
    path: str


def make(served: Served, alice: Caller, fs_name: str, directory: Path, fill: Callable[[Path], None]) -> Made:
    a_filesystem(alice, fs_name, directory)
    run_id = start(alice, WITH_ARTIFACTS % fs_name)
    path = str(view_of(alice, run_id, "make")["artifacts"]["output"]["model"])
    fill(directory / path)
    end(served, alice, run_id, "make")
    end(served, alice, run_id, "use")
    assert ended(alice, run_id) == "succeeded"
    return Made(run_id, fs_name, directory, path)


@pytest.fixture(scope="module")
def a_file(served: Served, alice: Caller, tmp_path_factory: pytest.TempPathFactory) -> Made:
    return make(served, alice, "onefile", tmp_path_factory.mktemp("fs"), lambda path: _write(path, b"x" * 700_000))


@pytest.fixture(scope="module")
def a_tree(served: Served, alice: Caller, tmp_path_factory: pytest.TempPathFactory) -> Made:
    def fill(path: Path) -> None:
        (path / "inner").mkdir(parents=True)
        _write(path / "inner" / "weights", b"heavy")
        _write(path / "größe.txt", b"")
        os.symlink("/etc/passwd", path / "link")

    return make(served, alice, "onetree", tmp_path_factory.mktemp("fs"), fill)


def ask(caller: Caller, url: str, /, **query: object) -> Answer:
    return caller.call("GET", url, query=query)


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def test_records_are_listed_and_filtered(alice: Caller, root: Caller, bobby: Caller, a_file: Made) -> None:
    def found(caller: Caller, **query: object) -> list[dict[str, Any]]:
        answer = caller.get("/artifact", **query)
        assert answer.status == 200, answer.body
        events: list[dict[str, Any]] = answer.json["artifactEventList"]
        return events

    events = sorted(found(alice, runFilter=a_file.run_id), key=lambda event: str(event["step"]))
    assert [(event["type"], event["step"]) for event in events] == [("output", "make"), ("input", "use")]
    assert all(set(event) == EVENT for event in events)
    assert {event["artifactPath"] for event in events} == {a_file.path}
    assert (events[0]["fsname"], events[0]["username"], events[0]["artifactName"]) == ("onefile", "alice", "model")
    assert found(root, userFilter="alice", fsFilter="onefile,x", typeFilter="input") == events[1:]
    assert len(found(alice, pathFilter=a_file.path, typeFilter="input,output")) == 2
    assert found(alice, pathFilter="elsewhere") == []
    assert found(bobby) == []
    assert bobby.get("/artifact", userFilter="alice").code == "AccessDenied"
    assert alice.get("/artifact", typeFilter="throughput").code == "InvalidURI"


def test_lineage_names_maker_and_readers(alice: Caller, root: Caller, bobby: Caller, a_file: Made) -> None:
    lineage = ask(alice, "/artifact/lineage", fsname="onefile", path=a_file.path).json
    assert set(lineage) == {"fsname", "path", "madeBy", "readBy"}
    assert [event["step"] for event in lineage["madeBy"]] == ["make"]
    assert [event["runID"] for event in lineage["readBy"]] == [a_file.run_id]
    assert ask(root, "/artifact/lineage", fsname="onefile", path=a_file.path, username="alice").json == lineage
    denied = ask(bobby, "/artifact/lineage", fsname="onefile", path=a_file.path, username="alice")
    assert denied.status == 403
    assert ask(alice, "/artifact/lineage", fsname="onefile").code == "InvalidURI"


def test_a_file_is_downloaded_as_it_is(alice: Caller, bobby: Caller, a_file: Made) -> None:
    answer = ask(alice, "/artifact/download", runID=a_file.run_id, path=a_file.path)
    assert answer.status == 200
    assert answer.body == b"x" * 700_000
    assert answer.headers["content-length"] == "700000"
    assert answer.headers["content-type"] == "application/octet-stream"
    assert "model" in answer.headers["content-disposition"]
    denied = ask(bobby, "/artifact/download", runID=a_file.run_id, path=a_file.path)
    assert (denied.status, denied.code) == (403, "AccessDenied")


def test_a_directory_is_downloaded_as_a_tar_without_its_links(alice: Caller, a_tree: Made) -> None:
    answer = ask(alice, "/artifact/download", runID=a_tree.run_id, path=a_tree.path)
    assert (answer.status, answer.headers["content-type"]) == (200, "application/x-tar")
    with tarfile.open(fileobj=io.BytesIO(answer.body)) as archive:
        names = sorted(archive.getnames())
        inner = archive.extractfile("model/inner/weights")
        assert inner is not None
        assert inner.read() == b"heavy"
    assert names == ["model", "model/größe.txt", "model/inner", "model/inner/weights"]
    part = ask(alice, "/artifact/download", runID=a_tree.run_id, path=f"{a_tree.path}/inner/weights")
    assert part.body == b"heavy"
    empty = ask(alice, "/artifact/download", runID=a_tree.run_id, path=f"{a_tree.path}/größe.txt")
    assert (empty.status, empty.body, empty.headers["content-length"]) == (200, b"", "0")


def test_files_are_listed(alice: Caller, bobby: Caller, a_tree: Made) -> None:
    answer = ask(alice, "/artifact/files", runID=a_tree.run_id, path=a_tree.path).json
    assert set(answer) == {"runID", "path", "fileList"}
    kinds = {entry["path"].removeprefix(a_tree.path): (entry["type"], entry["size"]) for entry in answer["fileList"]}
    assert kinds["/inner/weights"] == ("file", 5)
    assert kinds["/inner"][0] == "directory"
    assert kinds["/link"][0] == "link"
    assert ask(bobby, "/artifact/files", runID=a_tree.run_id, path=a_tree.path).status == 403


@pytest.mark.parametrize("path", ["../../etc/passwd", "/etc/passwd", "run.yaml", "", ".pipeline"])
@pytest.mark.parametrize("what", ["download", "files"])
def test_only_artifacts_of_the_run_are_given_out(alice: Caller, a_tree: Made, what: str, path: str) -> None:
    (a_tree.directory / "run.yaml").write_text("not an artifact")
    answer = ask(alice, f"/artifact/{what}", runID=a_tree.run_id, path=path)
    assert answer.status in (400, 404), answer.body


@pytest.mark.parametrize("below", ["/link", "/../../../../run.yaml", "/nothing"])
def test_no_way_leads_out_of_an_artifact(alice: Caller, a_tree: Made, below: str) -> None:
    (a_tree.directory / "run.yaml").write_text("not an artifact")
    answer = ask(alice, "/artifact/download", runID=a_tree.run_id, path=a_tree.path + below)
    assert answer.status in (400, 404), answer.body


def test_odd_names_and_odd_files_are_told_and_never_opened(
    served: Served, alice: Caller, unique: Unique, tmp_path: Path
) -> None:
    """A program may leave anything behind: names that are no text, pipes that nobody writes into, devices."""

    def fill(path: Path) -> None:
        path.mkdir(parents=True)
        os.mkfifo(path / "pipe")
        _write(path / os.fsdecode(b"bad\xff"), b"odd")

    made = make(served, alice, unique("odd"), tmp_path, fill)
    listed = ask(alice, "/artifact/files", runID=made.run_id, path=made.path)
    assert listed.status == 200, listed.body
    kinds = {entry["path"].removeprefix(made.path): entry["type"] for entry in listed.json["fileList"]}
    assert kinds == {"": "directory", "/pipe": "special", r"/bad\xff": "file"}
    pipe = ask(alice, "/artifact/download", runID=made.run_id, path=f"{made.path}/pipe")
    assert pipe.status == 400
    assert "neither a file nor a directory" in pipe.message
    for path in (made.path, f"{made.path}/."):
        whole = ask(alice, "/artifact/download", runID=made.run_id, path=path)
        assert "filename*=UTF-8''model.tar" in whole.headers["content-disposition"]
        with tarfile.open(fileobj=io.BytesIO(whole.body)) as archive:
            assert archive.getnames() == ["model", os.fsdecode(b"model/bad\xff")]


def test_records_are_forgotten_and_files_stay(served: Served, alice: Caller, unique: Unique, tmp_path: Path) -> None:
    made = make(served, alice, unique("gone"), tmp_path, lambda path: _write(path, b"stays"))
    where = {"fsname": made.fs_name, "runID": made.run_id, "path": made.path}
    for missing in where:
        rest = {name: value for name, value in where.items() if name != missing}
        assert alice.call("DELETE", "/artifact", query=rest).code == "InvalidURI"
    assert alice.call("DELETE", "/artifact", query=where).status == 200
    assert alice.get("/artifact", runFilter=made.run_id).json["artifactEventList"] == []
    again = alice.call("DELETE", "/artifact", query=where)
    assert (again.status, again.code) == (404, "ArtifactEventNotFound")
    assert (tmp_path / made.path).read_bytes() == b"stays"


def test_a_result_is_reused_and_the_cache_explains_itself(
    served: Served, alice: Caller, bobby: Caller, unique: Unique, tmp_path: Path
) -> None:
    fs_name = unique("cached")
    a_filesystem(alice, fs_name, tmp_path)
    first = start(alice, CACHED % fs_name)
    path = view_of(alice, first, "think")["artifacts"]["output"]["thought"]
    _write(tmp_path / path, b"deep")
    job_id = end(served, alice, first, "think")
    assert ended(alice, first) == "succeeded"

    (entry,) = alice.get("/runCache", fsFilter=fs_name).json["runCacheList"]
    assert set(entry) == CACHE
    assert (entry["runID"], entry["jobID"], entry["username"]) == (first, job_id, "alice")
    assert (entry["expiredTime"], entry["strategy"], entry["fsname"]) == ("3600", "conservative", fs_name)
    cache_id = entry["cacheID"]
    assert cache_id.startswith("cch-")
    assert alice.get(f"/runCache/{cache_id}").json == entry
    assert bobby.get(f"/runCache/{cache_id}").status == 403
    assert bobby.delete(f"/runCache/{cache_id}").status == 403
    assert alice.get("/runCache", runFilter="run-999999").json["runCacheList"] == []

    second = start(alice, CACHED % fs_name)
    assert ended(alice, second) == "succeeded"
    view = shown(alice, second)["runtime"]["think"][0]
    assert (view["cacheRunID"], view["cacheJobID"]) == (first, job_id)
    assert shown(alice, first)["runCachedIDs"] == second
    why = alice.get(f"/run/{second}/why-cached", step="think").json
    assert set(why) == {"runID", "step", "reused", "sentence", "comparedWith", "changed"}
    assert (why["reused"], why["comparedWith"]) == (True, first)
    in_use = alice.delete(f"/run/{first}")
    assert (in_use.status, in_use.code) == (403, "ActionNotAllowed")

    third = start(alice, CACHED % fs_name, parameters={"depth": 2})
    end(served, alice, third, "think")
    why = alice.get(f"/run/{third}/why-cached", step="think").json
    assert not why["reused"]
    changed = {part["name"]: (part["before"], part["after"]) for part in why["changed"]}
    assert changed["parameters.depth"] == ("1", "2")
    assert alice.get(f"/run/{third}/why-cached", step="dream").status == 404
    assert alice.get(f"/run/{third}/why-cached").code == "InvalidURI"

    removed = alice.delete(f"/runCache/{cache_id}")
    assert (removed.status, removed.body) == (200, b"")
    gone = alice.get(f"/runCache/{cache_id}")
    assert (gone.status, gone.code) == (404, "RunCacheNotFound")
    deleted = alice.call("DELETE", f"/run/{first}", {"checkCache": False})
    assert deleted.status == 200
    wait_for(lambda: not (tmp_path / path).exists(), "the files went with their run")
