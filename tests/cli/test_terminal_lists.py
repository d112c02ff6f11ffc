"""Lists on a terminal: what people need, in its width. In a pipe they are as scripts know them."""

from __future__ import annotations

import io
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from paddleflow.cli.durations import spelt_span, spelt_time
from paddleflow.cli.main import run
from paddleflow.cli.output import display_width
from tests.sdk.recorded_server import RecordedServer, job_json, ok
from tests.sdk.run_answers import SCHEDULE, brief_json

Screen = Callable[..., list[str]]
TODAY = datetime(2026, 5, 6, 12)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def screen(config: Path, monkeypatch: pytest.MonkeyPatch) -> Screen:
    """Runs one command line on a terminal; the lines it shows."""

    def run_line(width: int, *words: str) -> list[str]:
        monkeypatch.setenv("COLUMNS", str(width))
        shown = Terminal()
        monkeypatch.setattr("sys.stdout", shown)
        assert run(["--pf_config", str(config), *words]) == 0
        return shown.getvalue().splitlines()

    return run_line


def job(ident: str, **more: Any) -> dict[str, Any]:
    return {**job_json(), "id": ident, "name": ident, **more}


JOBS = [
    job("job-1", status="failed", command="python  train.py\n--epochs 3", startTime="2024-01-01 00:00:01",
        finishTime="2024-01-01 00:01:06"),
    job("job-run-000001-train-0a1b2c3d", name="run-000001-train", command="eval.sh", startTime="2024-01-01 00:00:01",
        finishTime=""),
    job("job-2", name="mine", command="", members=[{"role": "worker", "command": "mpirun x"}], startTime="",
        finishTime=""),
]  # fmt: skip


def test_job_list(server: RecordedServer, screen: Screen) -> None:
    server.on("GET", "/job", ok({"jobList": JOBS, "nextMarker": ""}))
    lines = screen(120, "job", "list")
    assert lines[0].split() == ["job", "id", "name", "user", "status", "ran", "command", "queue"]
    cells = [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in lines[2:]]
    assert [row[:-1] for row in cells] == [
        ["job-1", "root", "failed", "1m05s", "python train.py --epochs 3"],
        ["job-run-000001-train-0a1b2c3d", "root", "running", "since 2024-01-01", "eval.sh"],
        ["job-2", "mine", "root", "running", "mpirun x"],
    ]
    assert screen(120, "job", "list", "-fl", "id,command")[0].split() == ["job", "id", "command"]
    for width in (60, 80, 120, 200):
        assert max(map(display_width, screen(width, "job", "list"))) <= width


def test_run_list(server: RecordedServer, screen: Screen) -> None:
    ended = {"activateTime": "2024-01-01 00:00:01", "updateTime": "2024-01-01 02:07:01"}
    listed = [
        brief_json("failed", runMsg="step train failed: " + "x" * 200, **ended),
        brief_json("succeeded", runMsg="Run successfully", **ended),
        brief_json("running", name="n" * 300),
    ]
    server.on("GET", "/run", ok({"runList": listed, "nextMarker": None}))
    lines = screen(100, "run", "list")
    assert lines[1].split() == ["run", "id", "name", "status", "took", "user", "fs", "created", "message"]
    assert lines[3].split()[2:4] == ["failed", "2h07m"]
    assert "step tr" in lines[3]
    assert "successfully" not in lines[4]
    assert lines[5].split()[2:5] == ["running", "since", "2024-01-01"]
    assert lines[5] is lines[-1], "no marker"
    assert max(map(display_width, lines)) <= 100


def test_schedule_list(server: RecordedServer, screen: Screen) -> None:
    server.on("GET", "/schedule", ok({"scheduleList": [SCHEDULE], "nextMarker": ""}))
    lines = screen(64, "schedule", "list")
    assert " ".join(lines[2].split()) == "schedule-000001 nightly running 0 3 * * * 2024-01-02"
    assert lines[3].startswith("no room for: message, pipeline id, version, user;")
    server.on("GET", "/schedule", ok({"scheduleList": [], "nextMarker": ""}))
    assert screen(120, "schedule", "list") == ["no schedule found "]


@pytest.mark.parametrize(
    ("text", "spelt"),
    [
        ("2026-05-06 14:03:22", "14:03"),
        ("2026-05-05 14:03:22", "05-05 14:03"),
        ("2025-05-06 14:03:22", "2025-05-06"),
        ("yesterday", "yesterday"),
        ("", ""),
    ],
)
def test_times_are_spelt_shortly(text: str, spelt: str) -> None:
    assert spelt_time(text, TODAY) == spelt


@pytest.mark.parametrize(
    ("started", "ended", "spelt"),
    [
        ("2026-05-06 00:00:00", "2026-05-06 00:01:05", "1m05s"),
        ("2026-05-06 00:00:00", "2026-05-06 00:00:00", "<1s"),
        ("2026-05-06 00:00:10", "2026-05-06 00:00:00", "<1s"),
        ("2026-05-06 11:30:00", "", "since 11:30"),
        ("", "2026-05-06 00:00:00", ""),
    ],
)
def test_how_long_something_took(started: str, ended: str, spelt: str) -> None:
    assert spelt_span(started, ended, TODAY) == spelt
