"""The platform in about a minute and a half: three teams share eight simulated GPUs, and a bucket becomes a directory.

Every queue has a guarantee. What its owner does not use others borrow; when the owner comes, borrowed GPUs come back:
an elastic training gives up workers and goes on, and only what cannot shrink is evicted, waits and starts again. Real
processes, real training: the loss goes on falling while workers leave and return. Then the second act, which is in
``storage_act.py``.

Starts a server of its own in a temporary directory, shows the jobs live, and stops what it started.
"""

from __future__ import annotations

import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import storage_act
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from paddleflow import Client, PaddleFlowSDKException

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parent / "examples" / "training"
CONFIG = """
local:
  nodes:
    - {name: gpu-node, cpu: "8", memory: 16Gi, gpus: 4, count: 2}
"""
PASSWORD = "demo-password-1"
GPU = "nvidia.com/gpu"
ENDED = ("succeeded", "failed", "terminated", "preempted")
COLOURS = {
    "init": "yellow",
    "pending": "cyan",
    "running": "blue",
    "preempting": "magenta",
    "succeeded": "green",
    "failed": "red",
}


@dataclass
class Team:
    user: str
    queue: str
    client: Client


@dataclass
class Shown:
    """One row of the table."""

    job_id: str
    team: Team
    name: str
    gpus: int
    status: str = "init"
    note: str = ""
    story: list[str] = field(default_factory=list)


def main() -> int:
    console = Console()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="paddleflow-demo-") as name, server(Path(name)) as port:
        console.print(
            f"[bold]PaddleFlow[/] is up on port {port} after {time.monotonic() - began:.1f} s: "
            "2 simulated nodes with 4 GPUs each; guaranteed are 4 to vision, 2 to language, 2 to research\n"
        )
        root = connected("root", "paddleflow", port)
        teams = {
            queue: team(root, port, user, queue, guaranteed)
            for user, queue, guaranteed in (("alice", "vision", 4), ("bobby", "language", 2), ("carol", "research", 2))
        }
        show = Show(console, root, began)
        show.play(borrow(teams, Path(name)))
        trained_for(teams["research"], "elastic", 40)
        show.act("alice comes and wants what vision is guaranteed: four GPUs for one training of four tasks")
        show.play([take_back(teams["vision"])], until_ended=True)
        ok = show.tell()
        ok = storage_act.play(console, Path(name), port) and ok
    next_steps(console)
    return 0 if ok else 1


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


def team(root: Client, port: int, user: str, queue: str, guaranteed: int) -> Team:
    root.add_user(user, PASSWORD)
    most = {"cpu": "16", "mem": "32Gi", "scalarResources": {GPU: "8"}}
    least = {"cpu": "0", "mem": "0", "scalarResources": {GPU: str(guaranteed)}}
    root.add_queue(queue, "default", "default-cluster", most, least)
    root.grant_queue(user, queue)
    return Team(user=user, queue=queue, client=connected(user, PASSWORD, port))


def borrow(teams: dict[str, Team], directory: Path) -> list[Shown]:
    """Two teams take what the third does not use: an elastic training of one to six workers, and four small jobs."""
    research, language = teams["research"], teams["language"]
    script, checkpoint = EXAMPLES / "elastic_sgd.py", directory / "sgd.json"
    request = {
        "id": "elastic",
        "name": "elastic",
        "framework": "pytorch",
        "schedulingPolicy": {"queue": research.queue},
        "elastic": {"min": 1, "max": 6, "rescaleCostSeconds": 1},
        "members": [
            {
                "role": "worker",
                "replicas": 1,
                "flavour": one_gpu(),
                "command": f"python {shlex.quote(str(script))} --steps 260 --pause 0.1 --report 1"
                f" --checkpoint {shlex.quote(str(checkpoint))}",
            }
        ],
    }
    _, job_id = research.client.create_job("distributed", request)
    rows = [Shown(job_id=job_id, team=research, name="elastic", gpus=1)]
    return [*rows, *(train(language, f"finetune-{number}", 30) for number in range(1, 5))]


def one_gpu() -> dict[str, object]:
    return {"cpu": "1", "mem": "256Mi", "scalarResources": {GPU: "1"}}


def train(team: Team, name: str, steps: int) -> Shown:
    request = {
        "id": name,
        "name": name,
        "schedulingPolicy": {"queue": team.queue},
        "flavour": one_gpu(),
        "command": f"python {shlex.quote(str(HERE / 'train.py'))} {steps}",
    }
    _, job_id = team.client.create_job("single", request)
    return Shown(job_id=job_id, team=team, name=name, gpus=1)


def take_back(team: Team) -> Shown:
    command = f"python {shlex.quote(str(HERE / 'train.py'))} 12"
    request = {
        "id": "pretrain",
        "name": "pretrain",
        "framework": "pytorch",
        "schedulingPolicy": {"queue": team.queue},
        "members": [{"role": "worker", "replicas": 4, "flavour": one_gpu(), "command": command}],
    }
    _, job_id = team.client.create_job("distributed", request)
    return Shown(job_id=job_id, team=team, name="pretrain", gpus=4)


def trained_for(team: Team, job_id: str, steps: int) -> None:
    """Wait until the training has come so far."""
    for text in team.client.stream_log(job_id):
        if any(line.startswith(f"step {steps} ") for line in text.splitlines()):
            return


class Show:
    """Redraws whenever something happened, and remembers the story."""

    def __init__(self, console: Console, root: Client, began: float) -> None:
        self._console = console
        self._root = root
        self._began = began
        self._rows: dict[str, Shown] = {}
        self._after = 0
        self._first_line = False
        self._sizes: list[int] = []
        self._story: list[str] = []

    def act(self, sentence: str) -> None:
        self._console.print(f"\n[bold]{sentence}[/]\n")

    def play(self, rows: list[Shown], *, until_ended: bool = False) -> None:
        """Until everything given is running and has settled, or has ended."""
        self._rows |= {row.job_id: row for row in rows}
        live_table = Live(self._drawn(), console=self._console, refresh_per_second=8, transient=True)
        with live_table as live:
            for event in self._root.events(after=self._after):
                self._after = event.seq
                row = self._rows.get(event.subject)
                if row is not None and event.kind.startswith("Job"):
                    self._hear(row, event.kind, event.data)
                    live.update(self._drawn())
                if self._is_over(until_ended=until_ended):
                    break
        self._console.print(self._drawn())

    def _is_over(self, *, until_ended: bool) -> bool:
        wanted = ENDED if until_ended else ("running",)
        return all(row.status in wanted for row in self._rows.values())

    def _hear(self, row: Shown, kind: str, data: Mapping[str, Any]) -> None:
        row.status = str(data.get("status", row.status))
        message = str(data.get("message", ""))
        if kind == "JobResized":
            row.gpus = int(data.get("tasks", row.gpus))
            self._sizes.append(row.gpus)
        elif kind == "JobAdmitted" and row.name == "elastic":
            _, members = row.team.client.job_membership(row.job_id)
            row.gpus = len(members["tasks"])
        told = {"JobResized": message, "JobEvicting": message, "JobReserved": message, "JobRequeued": "waits again"}
        text = told.get(kind, row.status)
        line = f"{time.monotonic() - self._began:5.1f} s  {row.team.user:5} {row.name:10} {text}"
        if text and (not row.story or row.story[-1] != text):
            row.story.append(text)
            self._story.append(line)
            if not self._console.is_terminal:
                self._console.print(line, highlight=False, soft_wrap=True)
        row.note = message if kind in told else ""
        if row.status == "running" and not self._first_line:
            self._first_line = True
            first = next(iter(row.team.client.stream_log(row.job_id)), "").splitlines()[:1]
            self._console.print(f"first log line after {time.monotonic() - self._began:.1f} s: {' '.join(first)}")
        self._explain()

    def _explain(self) -> None:
        for row in self._rows.values():
            if row.status == "init" and not row.note:
                try:
                    _, why = row.team.client.why_job(row.job_id)
                except PaddleFlowSDKException:
                    continue  # it ended between the event and the question
                row.note = why.sentence

    def _drawn(self) -> Group:
        table = Table("team", "queue", "job", "GPUs", "status", "why", expand=True)
        for row in self._rows.values():
            status = Text(row.status, style=COLOURS.get(row.status, "white"))
            table.add_row(row.team.user, row.team.queue, row.name, str(row.gpus), status, row.note)
        busy = sum(row.gpus for row in self._rows.values() if row.status in ("running", "preempting", "terminating"))
        return Group(table, Text(f"GPUs in use: {'█' * busy}{'░' * (8 - busy)} {busy} of 8"))

    def tell(self) -> bool:
        """What happened, in order, and whether it is what was meant to be seen."""
        console, rows = self._console, list(self._rows.values())
        if console.is_terminal:
            console.print("\n[bold]What happened[/]")
            for line in self._story:
                console.print(line, highlight=False, soft_wrap=True)
        elastic = rows[0]
        text = "".join(elastic.team.client.stream_log(elastic.job_id, follow=False))
        console.print("\n[bold]The elastic training never stopped[/]: its loss at every change of size")
        last = ""
        for line in text.splitlines():
            words = line.split()
            if words[:1] == ["step"] and words[3] != last:
                last = words[3]
                console.print(f"  {line}", highlight=False)
        console.print(f"  {text.splitlines()[-1]}", highlight=False)
        evicted = sum(text.startswith("evicted") for row in rows for text in row.story)
        shrunk = any(later < earlier for earlier, later in zip(self._sizes, self._sizes[1:], strict=False))
        spared = not any(text.startswith("evicted") for text in elastic.story)
        console.print(
            f"\n{evicted} small jobs were evicted, waited and then ran; the elastic training shrank"
            f"{' instead' if spared else ', and was evicted all the same'}"
        )
        return all(row.status == "succeeded" for row in rows) and shrunk and spared and evicted > 0


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
