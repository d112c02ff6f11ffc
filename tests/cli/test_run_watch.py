"""``run watch``: the rows of the drawing, what is said where there is no terminal, and how the end is told."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from paddleflow.cli.durations import spelt_seconds, spelt_whole_seconds
from paddleflow.cli.run_screen import Counter, Drawing, chosen
from paddleflow.cli.run_tree import ServerClock, TreeRow, progress, tree_rows
from paddleflow.sdk.client import Client
from paddleflow.sdk.run_views import RunInfo
from tests.cli.conftest import Paddleflow
from tests.sdk.recorded_server import Answer, Asked, RecordedServer, event_bytes, ok
from tests.sdk.run_answers import dag_json, graph_json, node_json, run_json, step_json, timing_json

RUN = "/run/run-000001"


def wide_run(status: str = "running", **more: Any) -> dict[str, Any]:
    """A fork into a loop and a dag; one item of the loop has failed."""
    items = [step_json("many", "succeeded", key=f"many[{at}]") for at in range(36)]
    items.append(step_json("many", "failed", key="many[36]", jobMessage="exit code 3\nsee \x1b[2Jthe log"))
    items += [step_json("many", "pending", key=f"many[{at}]", jobMessage="no room") for at in range(37, 100)]
    inner = {"a": [step_json("a", "running", key="sub.a")]}
    nodes = [
        node_json("load", "succeeded", startTime="2024-01-01 00:00:01", endTime="2024-01-01 00:00:04"),
        node_json("many", "failed", {"failed": 1, "succeeded": 36, "pending": 63}, startTime="2024-01-01 00:00:04"),
        node_json("sub", "running", type="dag", startTime="2024-01-01 00:00:04"),
        node_json("sub.a", "running", startTime="2024-01-01 00:00:05"),
        node_json("sub.b", "pending"),
        node_json("train", "pending"),
        node_json("post_process.notify", "pending", parent=""),
    ]
    graph = graph_json(
        nodes, ("load", "many"), ("load", "sub"), ("sub.a", "sub.b"), ("many", "train"), ("sub", "train")
    )
    runtime = {"load": [step_json("load")], "many": items, "sub": [dag_json("sub", inner, "running")]}
    return run_json(status, runtime=runtime, graph=graph, **more)


def test_rows_are_drawn_with_loops_counted() -> None:
    rows = tree_rows(RunInfo.from_wire(wide_run()))
    assert [(row.lanes, row.name, row.status, row.counter) for row in rows] == [
        ("●  ", "load", "succeeded", ""),
        ("├─●", "many", "failed", "37/100"),
        ("● │", "sub", "running", ""),
        ("│ │   ●", "a", "running", ""),
        ("│ │   ●", "b", "pending", ""),
        ("╰─●", "train", "pending", ""),
        ("●", "notify", "pending", ""),
    ]
    assert {row.path: row.message for row in rows if row.message} == {"many": "exit code 3 see [2Jthe log"}


def test_a_row_says_why_all_of_it_was_skipped() -> None:
    why = "its condition is false"
    runtime = {
        "none": [],
        "off": [step_json("off", "skipped", jobMessage=why)],
        "some": [step_json("some", key="some[0]"), step_json("some", "skipped", key="some[1]", jobMessage=why)],
    }
    nodes = [
        node_json("none", "skipped"),
        node_json("off", "skipped"),
        node_json("some", "succeeded", {"succeeded": 1, "skipped": 1}),
    ]
    rows = tree_rows(RunInfo.from_wire(run_json(runtime=runtime, graph=graph_json(nodes))))
    assert [(row.name, row.message) for row in rows] == [
        ("none", "the loop has no items, so there is nothing to run"),
        ("off", why),
        ("some", ""),
    ]


def test_progress_counts_steps() -> None:
    assert progress(RunInfo.from_wire(wide_run())) == (38, 105)


def test_the_drawing_on_a_terminal(server: RecordedServer) -> None:
    server.on("GET", f"{RUN}/timing", ok(timing_json(total=64.0)))
    console = Console(file=io.StringIO(), width=100, height=40, force_terminal=True, color_system=None)
    with Client("127.0.0.1", "root", "paddleflow", server.port) as client:
        client.login("root", "paddleflow")
        drawing = Drawing(client, "run-000001", console)
        drawing.look(RunInfo.from_wire(wide_run()))
        drawing.close()
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "run-000001 demo running  38/105 steps  1m0" in text
    assert "✔   load" in text
    assert "├─✘ many   37/100  failed" in text
    assert "exit code 3 see [2Jthe log" in text
    assert "│ │   ● a" in text
    assert " 3s" in text, "the time an ended step took"
    assert "1m00s" in text, "what still runs is counted by the server's clock"


@pytest.mark.parametrize("room", [1, 2, 5, 50])
def test_what_moves_is_shown_when_there_is_no_room_for_all(room: int) -> None:
    def row(path: str, status: str, ended: str = "") -> TreeRow:
        return TreeRow(path=path, lanes="●", name=path, status=status, counter="", started="", ended=ended, message="")

    rows = [row(f"done{at}", "succeeded", "x") for at in range(10)]
    rows += [row("runs", "running"), *(row(f"waits{at}", "pending") for at in range(10)), row("bad", "failed", "x")]
    shown = [one.path for one in chosen(rows, room)]
    assert len(shown) <= max(1, room)
    assert shown == [one.path for one in rows if one.path in shown], "in their order"
    assert "runs" in shown
    if room == 5:
        assert shown == ["runs", "waits0", "waits1", "bad"]


def test_the_counter_on_a_terminal() -> None:
    console = Console(file=io.StringIO(), width=100, force_terminal=True, color_system=None)
    counter = Counter(console)
    counter.look(RunInfo.from_wire(wide_run()))
    counter.close()
    assert "run-000001 running: 38 of 105 steps ended" in console.file.getvalue()  # type: ignore[attr-defined]


def follow(server: RecordedServer, *runs: dict[str, Any]) -> None:
    def events(asked: Asked) -> Answer:
        if asked.query.get("follow") == "false":
            return ok({"eventList": [], "lastSeq": 0})
        return Answer(body=event_bytes(int(asked.query["after"]) + 1, "RunAdvanced", "run-000001"))

    server.on("GET", "/event", events)
    server.on("GET", RUN, *map(ok, runs))


@pytest.mark.parametrize(("end", "code"), [("succeeded", 0), ("failed", 1), ("terminated", 1)])
def test_watch_tells_changes_in_lines(server: RecordedServer, paddleflow: Paddleflow, end: str, code: int) -> None:
    begun = run_json(
        "running",
        runtime={"load": [step_json("load", "running", jobMessage="runs here")], "b": [step_json("b", "pending")]},
    )
    done = {"load": [step_json("load")], "b": [step_json("b", "failed", jobMessage="exit code 1")]}
    follow(server, begun, run_json(end, runtime=done, runMsg="it is over"))
    got, out, err = paddleflow("run", "watch", "run-000001")
    assert (got, out.splitlines()) == (
        code,
        [
            "run-000001 running",
            "load running",
            "load succeeded",
            "b failed: exit code 1",
            f"run-000001 {end}: it is over",
        ],
    )
    hint = ["see what its steps said with: paddleflow log run run-000001"] if end == "failed" else []
    assert err.splitlines() == [f"run-000001 {end} in 9s: 1 of 1 steps ended; it is over", *hint]


def test_what_holds_others_begins_before_them_and_ends_after(server: RecordedServer, paddleflow: Paddleflow) -> None:
    def run(status: str) -> dict[str, Any]:
        inner = dag_json("sub.deep", {"a": [step_json("a", status, key="sub.deep.a")], "none": []}, status)
        runtime = {"sub": [dag_json("sub", {"deep": [inner]}, status)], "empty": []}
        return run_json(status, runtime=runtime, postProcess={"told": step_json("post_process.told", status)})

    follow(server, run("running"), run("succeeded"))
    _, out, _ = paddleflow("run", "watch", "run-000001")
    nothing = "skipped: the loop has no items, so there is nothing to run"
    begun = ["run-000001", "sub", "sub.deep", "sub.deep.a", "post_process.told"]
    assert out.splitlines() == [
        *(f"{key} running" for key in begun[:4]),
        f"sub.deep.none[] {nothing}",
        f"empty[] {nothing}",
        "post_process.told running",
        *(f"{key} succeeded" for key in ("sub.deep.a", "sub.deep", "sub", "post_process.told", "run-000001")),
    ]


def test_watch_as_json_lines(server: RecordedServer, paddleflow: Paddleflow) -> None:
    follow(server, run_json("succeeded"))
    _, out, _ = paddleflow("--output", "json", "run", "watch", "run-000001")
    assert [json.loads(line) for line in out.splitlines()] == [
        {"key": "load", "status": "succeeded", "message": ""},
        {"key": "run-000001", "status": "succeeded", "message": ""},
    ]


def test_create_and_wait(server: RecordedServer, paddleflow: Paddleflow) -> None:
    server.on("POST", "/run", ok({"runID": "run-000001"}, 201))
    said = "run[data] create success with run id[run-000001]\n"
    follow(server, run_json("pending"), run_json("running"), run_json("failed"))
    code, out, err = paddleflow("run", "create", "-f", "data", "--wait")
    assert (code, out) == (1, said)
    assert err.splitlines()[:2] == ["run-000001 pending", "run-000001 running"]
    follow(server, run_json("succeeded"))
    code, out, _ = paddleflow("run", "create", "-f", "data", "--watch")
    assert (code, out) == (0, said + "load succeeded\nrun-000001 succeeded\n")


def test_watch_of_nothing(paddleflow: Paddleflow, server: RecordedServer, tmp_path: Path) -> None:
    server.on("GET", "/event", ok({"eventList": [], "lastSeq": 0}))
    assert paddleflow("run", "watch", "run-000009")[0] == 5


def test_the_clock_counts_on() -> None:
    clock = ServerClock()
    assert clock.seconds("2024-01-01 00:00:10", "", 100.0) is None
    assert clock.seconds("2024-01-01 00:00:10", "2024-01-01 00:01:15", 100.0) == 65.0
    clock.set("2024-01-01 00:00:00", 30.0, 100.0)
    assert clock.is_set
    assert clock.seconds("2024-01-01 00:00:10", "", 105.0) == 25.0
    assert clock.seconds("2024-01-01 01:00:00", "", 105.0) == 0.0
    assert clock.seconds("", "", 105.0) is None
    assert clock.seconds("yesterday", "", 105.0) is None


@pytest.mark.parametrize(
    ("seconds", "spelt"),
    [
        (0, "0.0s"),
        (0.44, "0.4s"),
        (9.94, "9.9s"),
        (9.96, "10s"),
        (59.4, "59s"),
        (59.6, "1m00s"),
        (3599.6, "1h00m"),
        (7620, "2h07m"),
    ],
)
def test_seconds_are_spelt_shortly(seconds: float, spelt: str) -> None:
    assert spelt_seconds(seconds) == spelt


@pytest.mark.parametrize(
    ("seconds", "spelt"), [(0.9, "<1s"), (1.0, "1s"), (9.99, "9s"), (10.0, "10s"), (61.0, "1m01s")]
)
def test_whole_seconds(seconds: float, spelt: str) -> None:
    assert spelt_whole_seconds(seconds) == spelt
