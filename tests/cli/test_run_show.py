"""``run show``: a run on one screen, whatever its steps are."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddleflow.cli.commands.run_summary import summary_lines
from paddleflow.cli.output import display_width
from paddleflow.sdk.run_views import RunInfo
from tests.cli.conftest import Paddleflow
from tests.sdk.recorded_server import RecordedServer, ok
from tests.sdk.run_answers import dag_json, run_json, step_json, timed_json, timing_json

RUN = "/run/run-000001"
ENCODED = "aW1wb3J0" * 600
DEEP = step_json("deep", key="sub.in.deep", cacheRunID="run-000000")
FAILED = run_json(
    "failed",
    runMsg="step train failed",
    parameters={"lr": 0.1, "data": "数据", "steps": [1, 2]},
    retryOf="run-000000",
    dockerEnv="image:1",
    scheduleID="schedule-000001",
    scheduledTime="2024-01-01 00:00:00",
    runtime={
        "load": [step_json("load", command=ENCODED, jobMessage="it is used again", cacheRunID="run-000000")],
        "sub": [dag_json("sub", {"in": [dag_json("sub.in", {"deep": [DEEP]})]})],
        "train": [step_json("train", "failed", command=ENCODED, jobMessage="exit code 3\n\x1b[2J")],
    },
)
TIMING = timing_json(
    timed_json("load", 0.25, 0, critical=True, reused=True),
    timed_json("sub", 0, 1, type="dag"),
    timed_json("sub.in.deep", 0, 0, reused=True),
    timed_json("train", 1.25, 62.5, critical=True, status="failed"),
    total=64.2,
)


def lines_of(run: dict[str, Any], timing: dict[str, Any], width: int | None) -> list[str]:
    return "\n".join(summary_lines(RunInfo.from_wire(run), timing, width)).split("\n")


def test_a_run_on_one_screen() -> None:
    assert lines_of(FAILED, TIMING, 80) == [
        "run          run-000001",
        "name         demo",
        "description  first try",
        "status       failed: step train failed",
        "user         root",
        "filesystem   data",
        "image        image:1",
        "created      2024-01-01 00:00:00",
        "started      2024-01-01 00:00:01",
        "ended        2024-01-01 00:00:10, after 1m04s",
        "parameters   lr=0.1, data=数据, steps=[1, 2]",
        "source       abc",
        "schedule     schedule-000001 for 2024-01-01 00:00:00",
        "retry of     run-000000",
        "reused       load, sub.in.deep of run-000000",
        "",
        "where the time went:",
        "step         status     waiting  running  total  note",
        "-----------  ---------  -------  -------  -----  -------------------------",
        "load         succeeded  0.2s     0.0s     0.2s   reused, critical",
        "sub.in.deep  succeeded  0.0s     0.0s     0.0s   reused",
        "train        failed     1.2s     1m02s    1m04s  critical, exit code 3 [2J",
        "critical path: load → train",
        "total: 1m04s",
    ]


def test_a_run_that_goes_on_and_one_that_has_not_begun() -> None:
    lines = lines_of(run_json("running"), timing_json(total=7.0), 80)
    assert "status       running" in lines
    assert lines[-3:] == [
        "started      2024-01-01 00:00:01, 7.0s ago",
        "parameters   lr=0.1",
        "source       abc",
    ]
    waiting = run_json("pending", runMsg="no room", activateTime="", parameters={})
    assert "status       pending: no room" in lines_of(waiting, timing_json(), 80)


def test_into_a_pipe_nothing_is_shortened() -> None:
    message = "exit code 3: " + "x" * 500
    run = run_json("failed", runMsg="y" * 500, runtime={"a": [step_json("a", "failed", jobMessage=message)]})
    path = [timed_json(f"s{at}", 0, 1, critical=True) for at in range(40)]
    timing = timing_json(timed_json("a", 0, 1, status="failed"), *path)
    told = "\n".join(lines_of(run, timing, None))
    assert f"status       failed: {'y' * 500}\n" in told
    assert message in told
    assert " → ".join(f"s{at}" for at in range(40)) in told
    short = "\n".join(lines_of(run, timing, 80))
    assert "critical path: s0 → s1 → s2 → s3 → s4 → s5 → … 28 more … → s34 → s35" in short
    assert "…" in next(line for line in short.split("\n") if line.endswith("y…"))


def test_of_thousands_of_steps_those_that_failed_or_took_longest_are_shown() -> None:
    steps = [timed_json(f"many[{at}]", 0, at) for at in range(3000)]
    steps[5]["status"] = "failed"
    lines = lines_of(run_json("failed"), timing_json(*steps), 80)
    shown = [line.split()[0] for line in lines if line.startswith("many")]
    assert shown == ["many[5]", *(f"many[{at}]" for at in range(2901, 3000))], "in their order"
    assert "the 100 steps that failed or took longest are shown, of 3000" in lines


TEXTS = st.text(max_size=200)


@given(TEXTS, TEXTS, TEXTS, st.integers(min_value=50, max_value=200))
def test_no_line_is_longer_than_the_terminal(name: str, message: str, value: str, width: int) -> None:
    runtime = {"a": [step_json("a", "failed", jobMessage=message)]}
    run = run_json("failed", name=name, runMsg=message, parameters={"p": value}, runtime=runtime)
    lines = lines_of(run, timing_json(timed_json("a", 0, 1, status="failed"), timed_json("b" * 90, 0, 1)), width)
    assert max(map(display_width, lines)) <= width
    assert all(line.isprintable() for line in lines)
    assert not any(line.startswith("no room") for line in lines)


def test_the_command_shows_the_short_form_and_how_to_see_more(server: RecordedServer, paddleflow: Paddleflow) -> None:
    server.on("GET", RUN, ok({**FAILED, "runYaml": "name: demo\n"}))
    server.on("GET", f"{RUN}/timing", ok(TIMING))
    code, out, err = paddleflow("run", "show", "run-000001")
    assert (code, out.splitlines()[-1]) == (0, "total: 1m04s")
    assert ENCODED[:20] not in out
    assert "{" not in out
    assert "paddleflow run show run-000001 --detail" in err
    assert ENCODED in paddleflow("run", "show", "run-000001", "--detail")[1]
    whole = json.loads(paddleflow("--output", "json", "run", "show", "run-000001")[1])[0]
    assert whole["runtime in json"]["load"][0]["command"] == ENCODED
    assert ENCODED in paddleflow("--output", "text", "run", "show", "run-000001")[1]


@pytest.mark.parametrize("source", ["name: demo\n", "name: 示例", ""])
def test_the_source_alone(server: RecordedServer, paddleflow: Paddleflow, source: str) -> None:
    server.on("GET", RUN, ok({**FAILED, "runYaml": source}))
    assert paddleflow("run", "show", "run-000001", "--yaml") == (0, source.rstrip("\n") + "\n", "")


@pytest.mark.parametrize("words", ["--output json run show r --yaml", "run show r --yaml --detail"])
def test_the_source_is_not_part_of_anything_else(paddleflow: Paddleflow, words: str) -> None:
    code, out, err = paddleflow(*words.split())
    assert (code, out) == (2, "")
    assert "leave out --detail and --output json" in err
