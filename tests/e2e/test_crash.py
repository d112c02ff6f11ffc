"""SIGKILL at every moment of a job's life, then a new server on the same state: nothing is lost, nothing runs twice,
every event is there once and in order."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.e2e.servers import Server

pytestmark = pytest.mark.timeout(600)

LIVES = ["JobSubmitted", "JobAdmitted", "JobStarted", "JobFinished"]
STOPPED = ["JobSubmitted", "JobAdmitted", "JobStarted", "JobStopping", "JobFinished"]
KEY = "the-one-request"


class Story:
    """One job whose process writes a line when it starts and ends when it is told to."""

    def __init__(self, tmp_path: Path) -> None:
        self.state = tmp_path / "state"
        self.ran = tmp_path / "ran"
        self.go = tmp_path / "go"
        self.started = ExitStack()

    def start(self, moment: str = "") -> Server:
        script = Path(__file__).with_name("killable_server.py")
        server = Server(self.state, [sys.executable, str(script), str(self.state), "{port}", moment])
        self.started.callback(server.stop)
        return server.wait_ready()

    @property
    def body(self) -> dict[str, object]:
        command = f"echo ran >> {self.ran}; while [ ! -e {self.go} ]; do sleep 0.05; done"
        return {"id": "the-job", "command": command, "schedulingPolicy": {"queue": "default-queue"}}

    def submit(self, server: Server) -> None:
        status, answer = server.call("POST", "/job/single", self.body, key=KEY)
        assert (status, answer) == (200, {"id": "the-job"})

    def wait_status(self, server: Server, *wanted: str) -> str:
        def reached() -> str:
            status = str(server.job("the-job")["status"])
            return status if status in wanted else ""

        return str(server.wait_for(reached, f"status {' or '.join(wanted)}"))

    def check(self, server: Server, end: str, allowed: list[list[str]]) -> None:
        assert self.wait_status(server, "succeeded", "failed", "terminated") == end
        _, answer = server.call("GET", "/event?follow=false&subject=the-job")
        assert [event["kind"] for event in answer["eventList"]] in allowed
        numbers = [event["seq"] for event in answer["eventList"]]
        assert numbers == sorted(set(numbers))


@pytest.fixture
def story(tmp_path: Path) -> Iterator[Story]:
    story = Story(tmp_path)
    with story.started:
        yield story
        story.go.touch()


def until_dead(server: Server, act: object = None) -> None:
    """Do the thing that makes the server die; its connection may break on the way."""
    try:
        if callable(act):
            act()
    except ConnectionError:
        pass  # that is what dying looks like from here
    server.wait_dead()
    assert server.process.returncode == -9


@pytest.mark.parametrize(
    "moment",
    [
        "before-commit:JobSubmitted",
        "after-commit:JobSubmitted",
        "before-commit:JobAdmitted",
        "after-commit:JobAdmitted",
        "before-launch",
        "after-launch",
        "before-commit:JobStarted",
        "after-commit:JobStarted",
    ],
)
def test_killed_while_a_job_starts(story: Story, moment: str) -> None:
    server = story.start(moment)
    until_dead(server, lambda: story.submit(server))
    server = story.start()
    story.submit(server)  # a client that heard nothing asks again, with the same key
    story.wait_status(server, "running")
    story.go.touch()
    story.check(server, "succeeded", [LIVES])
    assert story.ran.read_text() == "ran\n"


@pytest.mark.parametrize(
    "moment", ["report-received", "before-commit:JobFinished", "after-commit:JobFinished", "before-acknowledge"]
)
def test_killed_while_a_job_finishes(story: Story, moment: str) -> None:
    server = story.start(moment)
    story.submit(server)
    story.wait_status(server, "running")
    story.go.touch()
    until_dead(server)
    story.check(story.start(), "succeeded", [LIVES])
    assert story.ran.read_text() == "ran\n"


@pytest.mark.parametrize(
    "moment", ["before-commit:JobStopping", "after-commit:JobStopping", "before-stop", "after-stop"]
)
def test_killed_while_a_job_stops(story: Story, moment: str) -> None:
    server = story.start(moment)
    story.submit(server)
    story.wait_status(server, "running")
    until_dead(server, lambda: server.call("PUT", "/job/the-job?action=stop"))
    server = story.start()
    if moment == "before-commit:JobStopping":
        assert story.wait_status(server, "running") == "running", "a stop nobody confirmed did not happen"
        server.call("PUT", "/job/the-job?action=stop")
    story.check(server, "terminated", [STOPPED])
    assert story.ran.read_text() == "ran\n"


def test_a_job_that_ends_while_no_server_lives_is_told_truthfully(story: Story) -> None:
    server = story.start()
    story.submit(server)
    story.wait_status(server, "running")
    server.kill()
    story.go.touch()
    story.check(story.start(), "succeeded", [LIVES])


def test_killed_again_and_again_under_load(story: Story) -> None:
    """Many short jobs, three deaths at arbitrary moments: each job runs exactly once."""
    counted = story.ran.parent / "counted"
    counted.mkdir()
    ids = [f"load-{number}" for number in range(30)]
    server = story.start()
    for job_id in ids:
        body = {
            "id": job_id,
            "command": f"echo ran >> {counted / job_id}",
            "flavour": {"cpu": "1", "mem": "64Mi"},
        }
        status, answer = server.call("POST", "/job/single", body, key=job_id)
        assert status == 200, answer
        if job_id in ("load-9", "load-19", "load-29"):
            server.kill()
            server = story.start()
    for job_id in ids:
        server.wait_for(lambda job_id=job_id: server.job(job_id)["status"] == "succeeded", f"the end of {job_id}")
    assert {job_id: (counted / job_id).read_text() for job_id in ids} == dict.fromkeys(ids, "ran\n")
    _, answer = server.call("GET", "/event?follow=false&kinds=JobFinished")
    assert sorted(event["subject"] for event in answer["eventList"]) == sorted(ids)
