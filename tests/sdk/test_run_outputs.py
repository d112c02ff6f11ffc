"""Outputs of a run by the names of its steps: what is listed, which one a name means, and what is said where it is not
one."""

from __future__ import annotations

from typing import Any

import pytest

from paddleflow import Client
from paddleflow.sdk.errors import InvalidError, NotFoundError
from paddleflow.sdk.run_outputs import find_output, outputs_of
from paddleflow.sdk.run_views import RunInfo
from tests.sdk.recorded_server import RecordedServer, ok
from tests.sdk.run_answers import dag_json, run_json, step_json


def artifacts(**outputs: str) -> dict[str, Any]:
    return {"input": {"read": "never/listed/as/an/output"}, "output": outputs}


def path(run: str, step: str, name: str, sub_path: str = "") -> str:
    return f"{sub_path}.pipeline/{run}/demo/{step}-0-abc/{name}"


def wide_run() -> RunInfo:
    """A dag looped twice, in which a step is looped twice; a step reused, one kept by a retry, one that failed."""
    runtime: dict[str, Any] = {
        "load": [step_json("load", artifacts=artifacts(out=path("run-000001", "load", "out", "a,b/")))],
        "reused": [
            step_json("reused", cacheRunID="run-7", artifacts=artifacts(out=path("run-7", "reused", "out", "a/")))
        ],
        "kept": [step_json("kept", artifacts=artifacts(out=path("run-000000", "kept", "out")))],
        "bad": [step_json("bad", "failed", artifacts=artifacts(out=path("run-000001", "bad", "out")))],
        "none": [],
        "sub": [],
    }
    for outer in range(2):
        steps = [
            step_json(
                "many",
                key=f"sub[{outer}].many[{inner}]",
                artifacts=artifacts(piece=path("run-000001", f"many{outer}{inner}", "piece")),
            )
            for inner in range(2)
        ]
        both = ",".join(step["artifacts"]["output"]["piece"] for step in steps)
        last = step_json(
            "last", key=f"sub[{outer}].last", artifacts=artifacts(sum=path("run-000001", f"last{outer}", "sum"))
        )
        inside = {"many": steps, "last": [last]}
        given = artifacts(pieces=both, total=last["artifacts"]["output"]["sum"])
        runtime["sub"].append(dag_json("sub", inside, key=f"sub[{outer}]", artifacts=given))
    tell = step_json("tell", key="post_process.tell", artifacts=artifacts(note=path("run-000001", "tell", "note")))
    return RunInfo.from_wire(run_json("failed", runtime=runtime, postProcess={"tell": tell}))


def test_all_that_was_made_is_listed_once_with_its_maker() -> None:
    listed = outputs_of(wide_run())
    assert [(one.name, one.made_by) for one in listed] == [
        ("load.out", "run-000001"),
        ("reused.out", "run-7"),
        ("kept.out", "run-000000"),
        ("sub[0].many[0].piece", "run-000001"),
        ("sub[0].many[1].piece", "run-000001"),
        ("sub[0].last.sum", "run-000001"),
        ("sub[1].many[0].piece", "run-000001"),
        ("sub[1].many[1].piece", "run-000001"),
        ("sub[1].last.sum", "run-000001"),
        ("post_process.tell.note", "run-000001"),
    ]
    assert {one.fs_name for one in listed} == {"data"}
    assert [one.name for one in listed if not one.create_time] == ["reused.out"]


@pytest.mark.parametrize(
    ("wanted", "name"),
    [
        ("load.out", "load.out"),
        ("sub[1].many[0].piece", "sub[1].many[0].piece"),
        ("sub[1].last.sum", "sub[1].last.sum"),
        ("sub[1].total", "sub[1].last.sum"),
        ("post_process.tell.note", "post_process.tell.note"),
    ],
)
def test_a_name_means_one(wanted: str, name: str) -> None:
    assert find_output(wide_run(), wanted).name == name


@pytest.mark.parametrize(
    ("wanted", "choices"),
    [
        ("sub.last.sum", "sub[0].last.sum, sub[1].last.sum"),
        ("sub.total", "sub[0].last.sum, sub[1].last.sum"),
        ("sub[1].pieces", "sub[1].many[0].piece, sub[1].many[1].piece"),
        (
            "sub.many.piece",
            "sub[0].many[0].piece, sub[0].many[1].piece, sub[1].many[0].piece, sub[1].many[1].piece",
        ),
    ],
)
def test_a_name_that_means_several(wanted: str, choices: str) -> None:
    with pytest.raises(InvalidError) as caught:
        find_output(wide_run(), wanted)
    assert caught.value.message.endswith(f"choose one of {choices}")


@pytest.mark.parametrize("wanted", ["load", "load.model", "many.piece", "bad.out", "load.read", "none.out", ".", "sub"])
def test_a_name_that_means_none(wanted: str) -> None:
    with pytest.raises(NotFoundError, match=r"it has load\.out, reused\.out, kept\.out, "):
        find_output(wide_run(), wanted)


def test_a_run_that_made_nothing() -> None:
    with pytest.raises(NotFoundError, match="none of its steps has made any"):
        find_output(RunInfo.from_wire(run_json()), "load.out")


def test_a_long_list_is_cut() -> None:
    steps = [
        step_json("many", key=f"many[{at}]", artifacts=artifacts(out=path("run-000001", f"many{at}", "out")))
        for at in range(100)
    ]
    with pytest.raises(InvalidError, match=r"many\[19\]\.out and 80 more") as caught:
        find_output(RunInfo.from_wire(run_json(runtime={"many": steps})), "many.out")
    assert "many[20]" not in caught.value.message


def test_the_client_asks_for_the_run(server: RecordedServer, client: Client) -> None:
    load = step_json("load", artifacts=artifacts(out=path("run-000001", "load", "out")))
    server.on("GET", "/run/run-000001", ok(run_json(runtime={"load": [load]})))
    _, (only,) = client.run_outputs("run-000001")
    assert client.find_output("run-000001", "load.out") == (True, only)
    with pytest.raises(InvalidError):
        client.find_output("run-000001", " ")
