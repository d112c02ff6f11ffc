"""``paddleflow serve`` as an administrator meets it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.servers import Server


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path / "state").wait_ready()
    yield server
    server.stop()


def attempt(*flags: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "paddleflow", "serve", *flags]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_a_second_server_on_the_same_state_is_refused(server: Server) -> None:
    done = attempt("--state-dir", str(server.state_dir), "--port", "0")
    assert done.returncode == 1
    assert "another server uses the state directory" in done.stderr


def test_a_port_that_is_taken_is_said_and_nothing_is_started(server: Server, tmp_path: Path) -> None:
    done = attempt("--state-dir", str(tmp_path / "other"), "--port", str(server.port))
    assert done.returncode == 1
    assert f"cannot listen on 127.0.0.1 port {server.port}" in done.stderr
    assert not (tmp_path / "other" / "paddleflow.db").exists()


def test_the_first_start_says_how_to_change_the_password_and_a_restart_keeps_the_new_one(server: Server) -> None:
    assert "paddleflow user set root" in server.log_text()
    assert server.call("PUT", "/user/root", {"password": "changed1"})[0] == 200
    assert server.call("GET", "/user")[0] == 400, "a token from before the change is worth nothing"
    server.stop()
    assert server.process.returncode == 0
    again = Server(server.state_dir)
    try:
        again.wait_listening()
        assert again.call("POST", "/login", {"username": "root", "password": "paddleflow"})[0] == 400
        status, answer = again.call("POST", "/login", {"username": "root", "password": "changed1"})
        assert status == 200
        assert "paddleflow user set root" not in again.log_text()
        assert answer["authorization"] not in again.log_text()
        assert "changed1" not in again.log_text()
    finally:
        again.stop()


def test_what_the_state_directory_holds_is_private(server: Server) -> None:
    assert server.state_dir.stat().st_mode & 0o077 == 0
    for path in server.state_dir.iterdir():
        assert path.stat().st_mode & 0o077 == 0, path
