"""``paddleflow``, as the demo's administrator types it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PATIENCE_S = 120
PASSWORD = "paddleflow"


class CommandFailed(Exception):
    """The sentence says what failed and why."""


class CommandLine:
    """What it needs to know is in the demo's directory."""

    def __init__(self, directory: Path) -> None:
        self._config = directory / "client.ini"
        self._environment = {**os.environ, "XDG_STATE_HOME": str(directory / "client-state")}

    def log_in(self, port: int) -> None:
        server = f"[server]\npaddleflow_server_host = 127.0.0.1\npaddleflow_server_port = {port}\n"
        self._config.touch(mode=0o600)
        self._config.write_text(f"[user]\nname = root\npassword = {PASSWORD}\n{server}")

    def run(self, *words: str, patience_s: float = PATIENCE_S) -> str:
        argv = [sys.executable, "-m", "paddleflow", "--pf_config", str(self._config), *words]
        try:
            done = subprocess.run(
                argv,
                env=self._environment,
                capture_output=True,
                text=True,
                check=False,
                timeout=patience_s,
                start_new_session=True,  # out of reach of Ctrl-C
            )
        except subprocess.TimeoutExpired:
            raise CommandFailed(f"paddleflow {' '.join(words[:2])}: no end within {patience_s:.0f} s") from None
        if done.returncode:
            raise CommandFailed(f"paddleflow {' '.join(words[:2])}: {(done.stderr or done.stdout).strip()}")
        return done.stdout.strip()
