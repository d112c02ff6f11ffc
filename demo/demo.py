"""The platform in under a minute: two teams, two queues, a dozen real jobs, eight simulated GPUs.

Starts a server of its own in a temporary directory, shows the jobs live, and stops what it started.
"""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from paddleflow import Client, PaddleFlowSDKException

HERE = Path(__file__).resolve().parent
CONFIG = """
local:
  nodes:
    - {name: gpu-node, cpu: "8", memory: 16Gi, gpus: 4, count: 2}
"""
PASSWORD = "demo-password-1"
COLOURS = {"init": "yellow", "pending": "cyan", "running": "blue", "succeeded": "green", "failed": "red"}


@dataclass
class Team:
    user: str
    queue: str
    gpus: int
    client: Client


@dataclass
class Shown:
    """One row of the table."""

    job_id: str
    team: Team
    name: str
    gpus: int
    priority: str
    status: str = "init"
    note: str = ""
    seen: list[str] = field(default_factory=list)


def main() -> int:
    console = Console()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="paddleflow-demo-") as directory, server(Path(directory)) as port:
        console.print(
            f"[bold]PaddleFlow[/] is up on port {port} after {time.monotonic() - began:.1f} s: "
            "2 simulated nodes with 4 GPUs each"
        )
        root = connected("root", "paddleflow", port)
        teams = [team(root, port, "alice", "vision", 5), team(root, port, "bobby", "language", 4)]
        rows = [submit(t, *work) for work in workload() for t in teams]
        console.print(f"{len(rows)} jobs submitted by 2 teams; queue vision may use 5 GPUs, language 4\n")
        follow(console, root, rows, began)
        summary(console, root, rows)
    next_steps(console)
    return 0 if all(row.status == "succeeded" for row in rows) else 1


@contextmanager
def server(directory: Path) -> Iterator[int]:
    """A real server, as a user would start it."""
    config = directory / "paddleflow.yaml"
    config.write_text(CONFIG)
    port = free_port()
    command = [sys.executable, "-m", "paddleflow", "serve", "--port", str(port), "--config", str(config)]
    with (directory / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "--state-dir", str(directory / "state")], stdout=log, stderr=subprocess.STDOUT
        )
    try:
        wait_until_ready(process, port, directory / "server.log")
        yield port
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=30)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until_ready(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=30):
                return
        except OSError:
            time.sleep(0.05)
    sys.exit(f"the server did not start:\n{log.read_text()}")


def connected(user: str, password: str, port: int) -> Client:
    client = Client("127.0.0.1", user, password, port)
    client.login(user, password)
    return client


def team(root: Client, port: int, user: str, queue: str, gpus: int) -> Team:
    root.add_user(user, PASSWORD)
    limits = {"cpu": "16", "mem": "32Gi", "scalarResources": {"nvidia.com/gpu": str(gpus)}}
    root.add_queue(queue, "default", "default-cluster", limits)
    root.grant_queue(user, queue)
    return Team(user=user, queue=queue, gpus=gpus, client=connected(user, PASSWORD, port))


def workload() -> list[tuple[str, int, int, str]]:
    """Name, GPUs, training steps, priority."""
    return [
        ("pretrain", 4, 14, "NORMAL"),
        ("finetune-a", 1, 8, "NORMAL"),
        ("finetune-b", 1, 8, "NORMAL"),
        ("sweep-1", 2, 6, "LOW"),
        ("sweep-2", 2, 6, "LOW"),
        ("hotfix", 1, 5, "HIGH"),
    ]


def submit(team: Team, name: str, gpus: int, steps: int, priority: str) -> Shown:
    _, job_id = team.client.submit_job(
        f"python {HERE / 'train.py'} {steps}",
        queue=team.queue,
        name=f"{team.queue}-{name}",
        cpu="1",
        memory="512Mi",
        gpus=gpus,
        priority=priority,
    )
    return Shown(job_id=job_id, team=team, name=name, gpus=gpus, priority=priority)


def follow(console: Console, root: Client, rows: list[Shown], began: float) -> None:
    """Redraw whenever something happened, until every job has ended."""
    by_id = {row.job_id: row for row in rows}
    first_line: str | None = None
    with Live(drawn(rows), console=console, refresh_per_second=8, transient=not console.is_terminal) as live:
        for event in root.events(after=0):
            row = by_id.get(event.subject)
            if row is None or not event.kind.startswith("Job"):
                continue
            row.status = str(event.data.get("status", row.status))
            if not row.seen or row.seen[-1] != row.status:
                row.seen.append(row.status)
                if not console.is_terminal:
                    console.print(f"{row.team.user:6} {row.name:12} {row.status}")
            if row.status == "running" and first_line is None:
                first_line = next(iter(row.team.client.stream_log(row.job_id)), "").splitlines()[0]
                console.print(f"first log line after {time.monotonic() - began:.1f} s: {first_line}")
            explain(rows)
            live.update(drawn(rows))
            if all(row.status in ("succeeded", "failed", "terminated") for row in rows):
                return


def explain(rows: list[Shown]) -> None:
    for row in rows:
        row.note = ""
    for row in [row for row in rows if row.status == "init"][:3]:
        try:
            _, why = row.team.client.why_job(row.job_id)
        except PaddleFlowSDKException:
            continue  # it ended between the event and the question
        row.note = why.sentence


def drawn(rows: list[Shown]) -> Group:
    table = Table("team", "queue", "job", "GPUs", "priority", "status", "why", expand=True)
    for row in rows:
        status = Text(row.status, style=COLOURS.get(row.status, "white"))
        table.add_row(row.team.user, row.team.queue, row.name, str(row.gpus), row.priority, status, row.note)
    busy = sum(row.gpus for row in rows if row.status == "running")
    return Group(table, Text(f"GPUs in use: {'█' * busy}{'░' * (8 - busy)} {busy} of 8"))


def summary(console: Console, root: Client, rows: list[Shown]) -> None:
    table = Table("job", "team", "status", "accepted", "started", "finished", title="How it went")
    for row in rows:
        _, job = root.show_job(row.job_id)
        table.add_row(row.name, row.team.user, job.status, job.accept_time, job.start_time, job.finish_time)
    console.print(table)
    last = rows[-1]
    text = "".join(last.team.client.stream_log(last.job_id, follow=False)).splitlines()
    console.print(f"the last lines of {last.name}:", *text[-2:], sep="\n  ")


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
