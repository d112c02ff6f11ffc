"""Plays the acts: ``python show.py DIRECTORY ACT...``. Started by ``demo.py``, which ends what is started here."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import sharing_act
import storage_act
from rich.console import Console

CONFIG = """
local:
  nodes:
    - {name: gpu-node, cpu: "8", memory: 16Gi, gpus: 4, count: 2}
scheduler:
  settle_s: 3  # a minute by default: longer than this demo
"""


def main() -> int:
    directory, acts = Path(sys.argv[1]), sys.argv[2:]
    console = Console()
    began = time.monotonic()
    port = start_server(directory)
    console.print(f"[bold]PaddleFlow[/] is up on port {port} after {time.monotonic() - began:.1f} s", highlight=False)
    ok = True
    if "sharing" in acts:
        ok = sharing_act.play(console, directory, port)
    if "storage" in acts:
        ok = storage_act.play(console, directory, port) and ok
    next_steps(console)
    return 0 if ok else 1


def start_server(directory: Path) -> int:
    """A real server, as a user would start it. Its port."""
    config, log, port = directory / "paddleflow.yaml", directory / "server.log", free_port()
    config.write_text(CONFIG)
    command = [sys.executable, "-m", "paddleflow", "serve", "--port", str(port), "--config", str(config)]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, "--state-dir", str(directory / "state")], stdout=output, stderr=subprocess.STDOUT
        )
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=30):
                return port
        except OSError:
            time.sleep(0.05)
    sys.exit(f"the server did not start:\n{log.read_text()}")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def next_steps(console: Console) -> None:
    tool = Path(sys.executable).with_name("paddleflow")
    shown = tool.relative_to(Path.cwd()) if tool.is_relative_to(Path.cwd()) else tool
    if shutil.which("paddleflow") == str(tool):
        shown = Path("paddleflow")
    console.print(
        "\n[bold]Now your own:[/]\n"
        f"  {shown} serve &\n"
        f"  {shown} job submit --watch -- python -c 'print(\"hello\")'\n"
        f"  {shown} job list\n"
        f"  {shown} --help",
        highlight=False,
    )


if __name__ == "__main__":
    sys.exit(main())
