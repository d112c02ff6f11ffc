"""SIGKILL at chosen and at arbitrary moments of a run, then a new server on the same state: every step runs exactly
once, its artifacts are there, and the run ends as it would have ended without."""

from __future__ import annotations

import base64
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from tests.e2e.servers import RUN_DEADLINE_S, Server

pytestmark = pytest.mark.timeout(600)

KEY = "the-one-run"
PIPELINE = """
name: counted
parallelism: 4
entry_points:
  make:
    command: "echo make >> {ran}; echo '[1, 2, 3]' > {{{{items}}}}"
    artifacts: {{output: [items]}}
  each:
    deps: make
    artifacts: {{input: {{items: "{{{{make.items}}}}"}}}}
    parameters: {{mark: each}}
    loop_argument: "{{{{items}}}}"
    command: "echo {{{{mark}}}}-{{{{PF_LOOP_ARGUMENT}}}} >> {ran}"
  sub:
    deps: each
    entry_points:
      left: {{command: "echo left >> {ran}"}}
      right: {{command: "echo right >> {ran}", deps: left}}
  never: {{command: "echo never >> {ran}", deps: sub, condition: "1 > 2"}}
post_process:
  last: {{command: "echo last >> {ran}"}}
fs_options: {{main_fs: {{name: main}}}}
"""
ALL = ["each-1", "each-2", "each-3", "last", "left", "make", "right"]


class Story:
    def __init__(self, tmp_path: Path) -> None:
        self.state = tmp_path / "state"
        self.ran = tmp_path / "ran"
        self.data = tmp_path / "data"
        self.data.mkdir()
        self.started = ExitStack()

    def start(self, moment: str = "") -> Server:
        script = Path(__file__).with_name("killable_server.py")
        server = Server(self.state, [sys.executable, str(script), str(self.state), "{port}", moment])
        self.started.callback(server.stop)
        return server.wait_ready()

    def submit(self, server: Server) -> str:
        server.call("POST", "/fs", {"name": "main", "url": f"local://{self.data}"}, key="the-fs")
        text = PIPELINE.format(ran=self.ran)
        body = {"runYamlRaw": base64.b64encode(text.encode()).decode()}
        status, answer = server.call("POST", "/run", body, key=KEY)
        assert status == 201, answer
        return str(answer["runID"])

    def wait_end(self, server: Server, run_id: str) -> str:
        def ended() -> str:
            status, answer = server.call("GET", f"/run/{run_id}")
            assert status == 200, answer
            return answer["status"] if answer["status"] in ("succeeded", "failed", "terminated") else ""

        return str(server.wait_for(ended, f"the end of {run_id}", deadline_s=RUN_DEADLINE_S))

    def check(self, server: Server, run_id: str) -> None:
        assert self.wait_end(server, run_id) == "succeeded"
        assert sorted(self.ran.read_text().split()) == ALL
        _, answer = server.call("GET", f"/event?follow=false&subject={run_id}")
        kinds = [event["kind"] for event in answer["eventList"]]
        assert (kinds.count("RunCreated"), kinds.count("RunFinished")) == (1, 1)


@pytest.fixture
def story(tmp_path: Path) -> Iterator[Story]:
    story = Story(tmp_path)
    with story.started:
        yield story


@pytest.mark.slow
@pytest.mark.parametrize(
    "moment",
    [
        "before-commit:RunCreated",
        "after-commit:RunCreated",
        "before-commit:RunAdvanced@1",
        "after-commit:RunAdvanced@1",
        "after-commit:JobFinished@1",
        "before-commit:RunAdvanced@3",
        "before-commit:RunFinished",
    ],
)
def test_killed_at_a_moment_of_a_run(story: Story, moment: str) -> None:
    server = story.start(moment)
    with suppress(ConnectionError):  # it may die of this very request
        story.submit(server)
    server.wait_dead()
    assert server.process.returncode == -9
    server = story.start()
    story.check(server, story.submit(server))  # the same key: the same run


@pytest.mark.slow
def test_killed_again_and_again_while_a_run_fans_out(story: Story) -> None:
    ran = story.ran
    text = f"""
name: many
parallelism: 8
entry_points:
  each:
    command: "echo {{{{PF_LOOP_ARGUMENT}}}} >> {ran}"
    loop_argument: {list(range(60))}
  after: {{command: "echo after >> {ran}", deps: each}}
"""
    server = story.start()
    body = {"runYamlRaw": base64.b64encode(text.encode()).decode()}
    status, answer = server.call("POST", "/run", body, key=KEY)
    assert status == 201, answer
    for enough in (5, 20, 40):
        server.wait_for(
            lambda enough=enough: len(ran.read_text().split()) >= enough, f"{enough} steps", deadline_s=RUN_DEADLINE_S
        )
        server.kill()
        server = story.start()
    assert story.wait_end(server, answer["runID"]) == "succeeded"
    lines = ran.read_text().split()
    assert sorted(lines[:-1], key=int) == [str(number) for number in range(60)]
    assert lines[-1] == "after"
