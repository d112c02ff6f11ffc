"""A minute with the product as a new user meets it: a server, a job, a pipeline, a mount, the demo without a terminal.

``make smoke`` runs it, from an empty home. All of it is tested in depth elsewhere; this says that it fits together.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.ports import reserve_port
from tests.waiting import wait_for

pytestmark = pytest.mark.timeout(600)

ROOT = Path(__file__).parents[2]
PROGRAMS = os.environ.get("PADDLEFLOW_SMOKE_BIN", str(Path(sys.executable).parent))
"""Of the environment that is tried: by ``make smoke`` one with the wheel in it and nothing else."""
PIPELINE = """
name: first
entry_points:
  numbers:
    command: "seq {{n}} > {{made}}"
    parameters: {n: 10}
    artifacts: {output: [made]}
  total:
    command: "awk '{s += $1} END {print s}' {{made}}"
    deps: numbers
    artifacts: {input: {made: "{{numbers.made}}"}}
cache: {enable: true}
fs_options: {main_fs: {name: mine}}
"""


@dataclass(frozen=True)
class Newcomer:
    """Somebody with an empty home and one directory of their own."""

    home: Path
    work: Path

    def environment(self) -> dict[str, str]:
        return {
            "HOME": str(self.home),
            "PATH": f"{PROGRAMS}:{os.environ['PATH']}",
            "PADDLEFLOW_PF_CONFIG": str(self.home / "config.ini"),
            "NO_COLOR": "1",
        }

    def __call__(self, *words: str) -> str:
        """What a command prints; it must end well."""
        done = subprocess.run(
            ["paddleflow", *words],
            env=self.environment(),
            cwd=self.work,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout


@pytest.fixture(scope="module")
def newcomer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Newcomer]:
    home, work, port = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("work"), reserve_port()
    (home / "config.ini").write_text(
        "[user]\nname = root\npassword = paddleflow\n"
        f"[server]\npaddleflow_server_host = 127.0.0.1\npaddleflow_server_port = {port}\n"
    )
    newcomer = Newcomer(home, work)
    log = home / "server.log"
    with log.open("wb") as output:
        server = subprocess.Popen(
            ["paddleflow", "serve", "--port", str(port)],
            env=newcomer.environment(),
            cwd=home,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )

    def answers() -> bool:
        if server.poll() is not None:
            pytest.fail(log.read_text())
        return bool(newcomer("queue", "list"))

    try:
        wait_for(answers, "the server's start")
        yield newcomer
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait()
        assert "Traceback" not in log.read_text()


def test_a_job(newcomer: Newcomer) -> None:
    (newcomer.work / "train.py").write_text("print('the loss is', 1 / 8)")
    assert "the loss is 0.125" in newcomer("job", "submit", "--watch", "--", sys.executable, "train.py")
    assert "succeeded" in newcomer("job", "list")


def test_a_pipeline_and_its_cache(newcomer: Newcomer) -> None:
    (newcomer.work / "run.yaml").write_text(PIPELINE)
    newcomer("fs", "create", "mine", f"local://{newcomer.work}")
    newcomer("run", "check", "run.yaml")
    newcomer("run", "create", "-yr", "run.yaml", "--watch")
    assert "is used again" in newcomer("run", "create", "-yr", "run.yaml", "--watch")


@pytest.mark.skipif(not os.path.exists("/dev/fuse"), reason="there is no /dev/fuse on this machine")
def test_a_mount(newcomer: Newcomer) -> None:
    (newcomer.work / "data").mkdir()
    mountpoint = newcomer.work / "mnt"
    mountpoint.mkdir()
    newcomer("fs", "create", "data", f"local://{newcomer.work}/data")
    newcomer("fs", "mount", "data", "mnt")
    try:
        (mountpoint / "notes.txt").write_text("hello")
        assert newcomer("fs", "cat", "data:/notes.txt") == "hello"
        assert (mountpoint / "notes.txt").read_text() == "hello"
    finally:
        newcomer("fs", "umount", "mnt")
    assert (newcomer.work / "data" / "notes.txt").read_text() == "hello"


def test_the_demo_without_a_terminal(newcomer: Newcomer) -> None:
    demo = subprocess.run(
        [sys.executable, ROOT / "demo" / "demo.py"],
        env=newcomer.environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert demo.returncode == 0, demo.stdout + demo.stderr
    assert "Traceback" not in demo.stdout + demo.stderr
    if os.geteuid() == 0 and os.path.exists("/dev/fuse"):
        assert "has taken over" in demo.stdout, demo.stdout
