"""Somebody who tries out what is written: a home directory that names a server, and a shell that finds our programs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.servers import RUN_DEADLINE_S, Server

PROGRAMS = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
"""First of all the interpreter and the commands of this environment."""


@contextmanager
def serving(state_dir: Path) -> Iterator[Server]:
    """A server whose jobs find the interpreter of this environment as python3, and so what is installed in it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", PROGRAMS)
        server = Server(state_dir).wait_ready()
    try:
        yield server
    finally:
        server.stop()


class Reader:
    def __init__(self, home: Path, server: Server) -> None:
        self.home = home
        config = home / ".paddleflow" / "paddleflow.ini"
        config.parent.mkdir(parents=True)
        config.write_text(
            "[user]\nname = root\npassword = paddleflow\n"
            f"[server]\npaddleflow_server_host = 127.0.0.1\npaddleflow_server_port = {server.port}\n"
        )

    def start(self, argv: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            argv,
            cwd=folder,
            env={**os.environ, "HOME": str(self.home), "PATH": PROGRAMS, "PYTHONDONTWRITEBYTECODE": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=RUN_DEADLINE_S,
            check=False,
        )
