from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from paddleflow.cli.main import run
from tests.sdk.recorded_server import RecordedServer, running

Paddleflow = Callable[..., tuple[int, str, str]]


@pytest.fixture
def server() -> Iterator[RecordedServer]:
    with running() as recorded:
        yield recorded


@pytest.fixture
def config(server: RecordedServer, tmp_path: Path) -> Path:
    path = tmp_path / "paddleflow.ini"
    path.write_text(
        "[user]\nname = root\npassword = paddle%flow\n"
        f"[server]\npaddleflow_server_host = 127.0.0.1\npaddleflow_server_port = {server.port}\n"
    )
    return path


@pytest.fixture
def paddleflow(config: Path, capsys: pytest.CaptureFixture[str]) -> Paddleflow:
    """Runs one command line; its exit code, standard output and standard error."""

    def run_line(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = run(["--pf_config", str(config), *words])
        out, err = capsys.readouterr()
        return int(code), out, err

    return run_line
