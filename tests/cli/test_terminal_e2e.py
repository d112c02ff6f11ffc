"""A real terminal of a set size: runs of a real server, shown on one screen."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from paddleflow.cli.output import display_width
from tests.cli.test_cli_e2e import Shell, port, shell
from tests.e2e.servers import RUN_DEADLINE_S
from tests.programs import started

pytestmark = pytest.mark.timeout(600)

__all__ = ["port", "shell"]

YAML = """\
name: two
entry_points:
  numbers:
    command: seq {{n}} > {{made}}
    parameters: {n: 10}
    artifacts: {output: [made]}
  total:
    command: wc -l {{made}}; exit 3
    artifacts: {input: {made: "{{numbers.made}}"}}
    deps: numbers
fs_options: {main_fs: {name: onscreen}}
"""
PYTHON = """\
from paddleflow.pipeline import FSOptions, Input, MainFS, Output, Pipeline, step


@step
def numbers(n: int, made: Output) -> None:
    made.write_text(str(n))


@step
def total(made: Input) -> int:
    return int(made.read_text())


@Pipeline(name="two", fs_options=FSOptions(main_fs=MainFS("onscreen")))
def two(n: int = 10) -> None:
    total(numbers(n).made)


print(two().run()[1])
"""


def on_screen(words: list[str], width: int) -> list[str]:
    """What a program shows on a terminal of 40 lines and so many columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
    env = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    seen = b""
    with started(words, stdin=theirs, stdout=theirs, stderr=theirs, env=env) as program:
        os.close(theirs)
        try:
            while chunk := os.read(ours, 65536):
                seen += chunk
        except OSError:
            pass  # how Linux says that the other end of a terminal is closed
        program.wait(RUN_DEADLINE_S)
    os.close(ours)
    assert program.returncode == 0, seen
    return seen.decode().replace("\r\n", "\n").splitlines()


@pytest.fixture
def runs(shell: Shell, tmp_path: Path) -> dict[str, str]:
    """One of YAML whose second step fails, and one of functions."""
    (tmp_path / "data").mkdir()
    shell.ok("fs", "create", "onscreen", f"local:/{tmp_path}/data")
    (tmp_path / "run.yaml").write_text(YAML)
    (tmp_path / "two.py").write_text(PYTHON)
    said = shell("run", "create", "-yr", str(tmp_path / "run.yaml"), "-p", "n=12", "--wait").out
    home = tmp_path / "home" / ".paddleflow"
    home.mkdir(parents=True)
    (home / "paddleflow.ini").write_text(shell.config.read_text())
    script = subprocess.run(
        [sys.executable, str(tmp_path / "two.py")],
        env={**os.environ, "HOME": str(home.parent)},
        capture_output=True,
        text=True,
        timeout=RUN_DEADLINE_S,
        check=True,
    )
    functions = script.stdout.split()[-1]
    shell.ok("run", "watch", functions)
    return {"yaml": re.findall(r"run-\d+", said)[0], "functions": functions}


def test_two_runs_each_on_one_screen(shell: Shell, runs: dict[str, str]) -> None:
    for width in (80, 120):
        for run in runs.values():
            lines = on_screen(shell.words("run", "show", run), width)
            assert len(lines) <= 40, lines
            assert max(map(display_width, lines)) <= width, lines
            assert "critical path: numbers → total" in lines
            assert "base64" not in "\n".join(lines)
        for words in (("run", "list"), ("job", "list"), ("queue", "list"), ("fs", "list"), ("cluster", "list")):
            lines = on_screen(shell.words(*words), width)
            assert max(map(display_width, lines)) <= width, lines
            assert "marker: None" not in lines
    failed = "\n".join(on_screen(shell.words("run", "show", runs["yaml"]), 80))
    assert re.search(r"^total +failed .* exit code 3$", failed, re.MULTILINE)
    assert "parameters   n=12\n" in failed
    assert shell.ok("run", "show", runs["yaml"], "--yaml") == YAML
    assert "base64" in shell.ok("run", "show", runs["functions"], "--yaml")
    assert "base64" not in shell.ok("run", "show", runs["functions"])
