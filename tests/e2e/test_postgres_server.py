"""The real server on a real PostgreSQL: the same jobs, and two servers that do not do the same work twice."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.e2e.servers import Server
from tests.postgres import PostgresServer, postgres_server

pytestmark = pytest.mark.timeout(600)

__all__ = ["postgres_server"]

KINDS = ["JobSubmitted", "JobAdmitted", "JobStarted", "JobFinished"]


@pytest.fixture
def two_servers(tmp_path: Path, postgres_server: PostgresServer) -> Iterator[tuple[Server, Server]]:
    url = postgres_server.empty_schema()
    with ExitStack() as started:
        first = Server(tmp_path / "first", None, "--database", url).wait_ready()
        started.callback(first.stop)
        (tmp_path / "second").mkdir(mode=0o700)
        shutil.copy(tmp_path / "first" / "installation.key", tmp_path / "second" / "installation.key")
        second = Server(tmp_path / "second", None, "--database", url).wait_ready()
        started.callback(second.stop)
        yield first, second


def test_two_servers_on_one_database(two_servers: tuple[Server, Server], tmp_path: Path) -> None:
    first, second = two_servers
    ids = [f"shared-{number}" for number in range(8)]
    for number, job_id in enumerate(ids):
        body = {"id": job_id, "command": f"echo ran >> {tmp_path / job_id}; sleep 0.2"}
        status, answer = (first, second)[number % 2].call("POST", "/job/single", body)
        assert status == 200, answer
    for job_id in ids:
        second.wait_for(lambda job_id=job_id: second.job(job_id)["status"] == "succeeded", f"the end of {job_id}")
        assert (tmp_path / job_id).read_text() == "ran\n"
        _, answer = first.call("GET", f"/event?follow=false&subject={job_id}")
        assert [event["kind"] for event in answer["eventList"]] == KINDS
    assert second.call("GET", "/user", token=first.token)[0] == 200, "servers with one key accept each other's tokens"
