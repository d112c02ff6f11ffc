"""A real server and users who mean no good, or whose data is too much: the runs of the others go on all the same."""

from __future__ import annotations

import base64
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.servers import Server

HUGE = """
name: huge
cache: {enable: true, fs_scope: [{name: main, path: huge}]}
fs_options: {main_fs: {name: main}}
entry_points:
  look: {command: "true", loop_argument: [1, 2, 3, 4, 5, 6, 7, 8]}
"""
SMALL = """
name: small
fs_options: {main_fs: {name: main}}
entry_points:
  make: {command: "echo made > {{made}}", artifacts: {output: [made]}}
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    (tmp_path / "data").mkdir()
    server = Server(tmp_path / "state").wait_ready()
    server.call("POST", "/fs", {"name": "main", "url": f"local://{tmp_path / 'data'}"})
    yield server
    server.kill()


def start(server: Server, text: str) -> str:
    status, answer = server.call("POST", "/run", {"runYamlRaw": base64.b64encode(text.encode()).decode()})
    assert status == 201, answer
    return str(answer["runID"])


def ended(server: Server, run_id: str) -> dict[str, Any]:
    def look() -> dict[str, Any] | None:
        answer: dict[str, Any] = server.call("GET", f"/run/{run_id}")[1]
        return answer if answer["status"] in ("succeeded", "failed", "terminated") else None

    return dict(server.wait_for(look, f"the end of {run_id}"))


def test_files_that_take_hours_to_read_hold_up_nobody(server: Server, tmp_path: Path) -> None:
    with (tmp_path / "data/huge").open("wb") as file:
        file.truncate(1 << 40)
    huge = start(server, HUGE)
    assert ended(server, start(server, SMALL))["status"] == "succeeded"
    server.call("PUT", f"/run/{huge}?action=stop", {"stopForce": True})
    assert ended(server, huge)["status"] == "terminated"
    (tmp_path / "data/huge").write_text("small by now")
    assert ended(server, start(server, HUGE))["status"] == "succeeded", "the workers are free again"
    with (tmp_path / "data/huge").open("wb") as file:
        file.truncate(1 << 40)
    start(server, HUGE)
    server.process.send_signal(signal.SIGTERM)
    server.wait_dead()  # whatever its workers read


def test_values_made_of_values_do_not_fill_the_memory(server: Server) -> None:
    steps = ["  s0: {command: 'true', parameters: {p: xxxxxxxxxxxxxxxx}}"]
    steps += [
        f"  s{n}: {{command: 'true', deps: s{n - 1}, parameters: {{p: '{{{{s{n - 1}.p}}}}{{{{s{n - 1}.p}}}}'}}}}"
        for n in range(1, 60)
    ]
    answer = ended(server, start(server, "name: doubling\nentry_points:\n" + "\n".join(steps)))
    assert answer["status"] == "failed"
    failed = [node for (node, *_) in answer["runtime"].values() if node["status"] == "failed"]
    assert len(failed) == 1
    assert "characters once its templates are filled in" in str(failed[0])
    assert ended(server, start(server, SMALL))["status"] == "succeeded"
