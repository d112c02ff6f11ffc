"""The first act: three teams share eight simulated GPUs.

Every team has a guarantee. What its owner does not use others borrow; when the owner comes, borrowed GPUs come back: an
elastic training gives up workers and goes on, and only what cannot shrink is evicted, waits and starts again. When the
owner is done, the workers return. Real processes, real training, shown live.
"""

from __future__ import annotations

import queue
import shlex
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from command_line import PASSWORD
from rich.console import Console, Group
from rich.live import Live
from rich.table import Column, Table
from rich.text import Text

from paddleflow import Client
from paddleflow.sdk.events import EventInfo

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parent / "examples" / "training"
TEAM_PASSWORD = "demo-password-1"
GPU = "nvidia.com/gpu"
GPUS = 8
WORKERS = 6
"""The most that the elastic job can use."""
TEAMS = {"vision": ("alice", 4), "language": ("bobby", 2), "research": ("carol", 2)}
"""The user of each team, and how many GPUs the team's queue is guaranteed."""
STEPS = 260
ENDED = ("succeeded", "failed", "terminated", "preempted")
HOLDS_GPUS = ("running", "preempting", "terminating")
TEAM_COLOURS = {"vision": "magenta", "language": "cyan", "research": "green"}
STATUS_COLOURS = {"waiting": "yellow", "evicted": "yellow", "running": "blue", "succeeded": "green", "failed": "red"}
STATUS_WORDS = {"init": "waiting", "pending": "starting", "preempting": "evicted", "terminating": "stopping"}
STORY_LINES = 5


@dataclass
class Job:
    """One row of the table."""

    id: str
    name: str
    team: str
    client: Client
    gpus: int
    status: str = "init"
    step: int = 0
    progress: str = ""
    note: str = ""
    """What was told of it last."""
    evictions: int = 0


@dataclass
class Training:
    """What the log of the elastic job says."""

    step: int = 0
    size: int = 0
    loss: str = ""
    sizes: list[tuple[int, int, str]] = field(default_factory=list)
    """At every change of size: the step, the number of workers and the loss."""

    def hear(self, step: int, size: int, loss: str) -> None:
        self.step, self.loss = step, loss
        if size != self.size:
            self.size = size
            self.sizes.append((step, size, loss))

    @property
    def came_back(self) -> bool:
        counts = [size for _, size, _ in self.sizes]
        return counts[0] > min(counts) < counts[-1]


@dataclass(frozen=True)
class Said:
    """A line of a job's log."""

    job: Job
    line: str


def play(console: Console, directory: Path, port: int) -> bool:
    """Whether what was meant to be seen was seen."""
    root = connected("root", PASSWORD, port)
    clients = {team: make_team(root, port, team) for team in TEAMS}
    guaranteed = ", ".join(f"{count} {team}" for team, (_, count) in TEAMS.items())
    console.print(f"2 simulated nodes with 4 GPUs each; guaranteed: {guaranteed}", highlight=False)
    show = Show(console, root)
    with show.live:
        show.heading("research trains with 1 to 6 workers, and language starts four small jobs")
        show.follow(borrow(clients, directory))
        show.until(show.is_under_way)
        show.heading("vision comes and wants the four GPUs that it is guaranteed")
        show.follow([take_back(clients["vision"])])
        show.until(show.is_over)
    return show.tell()


def connected(user: str, password: str, port: int) -> Client:
    client = Client("127.0.0.1", user, password, port)
    client.login(user, password)
    return client


def make_team(root: Client, port: int, team: str) -> Client:
    user, guaranteed = TEAMS[team]
    root.add_user(user, TEAM_PASSWORD)
    most = {"cpu": "16", "mem": "32Gi", "scalarResources": {GPU: str(GPUS)}}
    least = {"cpu": "0", "mem": "0", "scalarResources": {GPU: str(guaranteed)}}
    root.add_queue(team, "default", "default-cluster", most, least)
    root.grant_queue(user, team)
    return connected(user, TEAM_PASSWORD, port)


def borrow(clients: Mapping[str, Client], directory: Path) -> list[Job]:
    script, checkpoint = EXAMPLES / "elastic_sgd.py", directory / "sgd.json"
    command = f"python {shlex.quote(str(script))} --steps {STEPS} --pause 0.1 --report 1"
    request = {
        "id": "elastic",
        "name": "elastic",
        "framework": "pytorch",
        "schedulingPolicy": {"queue": "research"},
        "elastic": {"min": 1, "max": WORKERS, "rescaleCostSeconds": 1},
        "members": [
            {
                "role": "worker",
                "replicas": 1,
                "flavour": one_gpu(),
                "command": f"{command} --checkpoint {shlex.quote(str(checkpoint))}",
            }
        ],
    }
    _, job_id = clients["research"].create_job("distributed", request)
    elastic = Job(id=job_id, name="elastic", team="research", client=clients["research"], gpus=WORKERS)
    return [elastic, *(train(clients["language"], f"finetune-{number}") for number in range(1, 5))]


def one_gpu() -> dict[str, object]:
    return {"cpu": "1", "mem": "256Mi", "scalarResources": {GPU: "1"}}


def train(client: Client, name: str) -> Job:
    request = {
        "id": name,
        "name": name,
        "schedulingPolicy": {"queue": "language"},
        "flavour": one_gpu(),
        "command": f"python {shlex.quote(str(HERE / 'train.py'))} 30",
    }
    _, job_id = client.create_job("single", request)
    return Job(id=job_id, name=name, team="language", client=client, gpus=1)


def take_back(client: Client) -> Job:
    command = f"python {shlex.quote(str(HERE / 'train.py'))} 12"
    request = {
        "id": "pretrain",
        "name": "pretrain",
        "framework": "pytorch",
        "schedulingPolicy": {"queue": "vision"},
        "members": [{"role": "worker", "replicas": 4, "flavour": one_gpu(), "command": command}],
    }
    _, job_id = client.create_job("distributed", request)
    return Job(id=job_id, name="pretrain", team="vision", client=client, gpus=4)


class Show:
    """The table, redrawn whenever something happened, and what happened in sentences."""

    def __init__(self, console: Console, root: Client) -> None:
        self._console = console
        self._began = time.monotonic()
        self._jobs: dict[str, Job] = {}
        self._story: list[Text] = []
        self._at: dict[tuple[str, str], datetime] = {}
        """When each kind of event first happened to each job, by the server's clock."""
        self._happened: queue.Queue[EventInfo | Said | Exception] = queue.Queue()
        self.training = Training()
        self.live = Live(console=console, get_renderable=self._screen, refresh_per_second=8, transient=True)
        self._pump(root.events())

    @property
    def jobs(self) -> list[Job]:
        return list(self._jobs.values())

    def is_under_way(self) -> bool:
        """All run and have for a while, and the small jobs, which end first, have not: vision finds them running."""
        if any(job.status != "running" for job in self.jobs):
            return False
        return self.training.step >= 40 or any(job.step >= 12 for job in self.jobs if job.team == "language")

    def is_over(self) -> bool:
        """All have ended, and the last line of the elastic job was heard."""
        if any(job.status not in ENDED for job in self.jobs):
            return False
        return self.training.step == STEPS or self.jobs[0].status != "succeeded"

    def heading(self, sentence: str) -> None:
        self._console.print(f"\n[bold]{sentence}[/]\n", highlight=False)

    def follow(self, jobs: list[Job]) -> None:
        self._jobs |= {job.id: job for job in jobs}

    def until(self, is_over: Callable[[], bool]) -> None:
        while not is_over():
            what = self._happened.get()
            if isinstance(what, Exception):
                raise what
            if isinstance(what, Said):
                self._hear_line(what.job, what.line)
            elif what.kind.startswith("Job") and what.subject in self._jobs:
                self._at.setdefault((what.subject, what.kind), datetime.fromisoformat(what.at))
                self._hear(self._jobs[what.subject], what.kind, what.data)

    def _pump(self, source: Iterable[EventInfo | Said]) -> None:
        """Everything that the source yields is heard in ``until``; so is its failure."""

        def run() -> None:
            try:
                for what in source:
                    self._happened.put(what)
            except Exception as error:  # noqa: BLE001 - raised where it is heard
                self._happened.put(error)

        threading.Thread(target=run, daemon=True).start()

    def _hear(self, job: Job, kind: str, data: Mapping[str, Any]) -> None:
        before, job.status = job.status, str(data.get("status", job.status))
        message = str(data.get("message", ""))
        if kind == "JobAdmitted" and job.name == "elastic":
            _, members = job.client.job_membership(job.id)
            job.gpus = len(members["tasks"])
        elif kind == "JobResized":
            job.gpus = int(data["tasks"])
            self._tell(
                job, message, f" (step {self.training.step}, loss {self.training.loss})" if self.training.loss else ""
            )
        elif kind == "JobReserved" and message:
            self._tell(job, f"waits: {message}")
        elif kind == "JobEvicting":
            job.evictions += 1
            job.progress = ""
            self._tell(job, message)
        elif kind == "JobRequeued":
            _, why = job.client.why_job(job.id)
            self._tell(job, why.sentence)
        elif job.status == "running" and before != "running":
            self._pump(lines_of(job))
            again = " again" if job.evictions else ""
            self._tell(job, f"starts{again} on {job.gpus} GPU{'s' if job.gpus > 1 else ''}")
        elif job.status in ENDED and before != job.status:
            self._tell(job, f"has {job.status}")

    def _hear_line(self, job: Job, line: str) -> None:
        words = line.split()
        if words[:1] != ["step"] or "loss" not in words or job.status not in ("running", "succeeded"):
            return  # of an attempt that was evicted
        step, _, steps = words[1].partition("/")
        loss = f"{float(words[words.index('loss') + 1]):.4f}"
        if job.name == "elastic":
            step, steps = str(int(step) + 1), str(STEPS)  # it counts from 0
            self.training.hear(int(step), int(words[words.index("size") + 1]), loss)
        job.step = int(step)
        job.progress = f"step {step:>3} of {steps}, loss {loss}"

    def _tell(self, job: Job, note: str, more: str = "") -> None:
        if note == job.note:
            return  # the same event again, with its next phase
        job.note = note
        line = Text.assemble(
            f"{time.monotonic() - self._began:5.1f} s  ",
            (f"{job.name:10}", TEAM_COLOURS[job.team]),
            f"  {note}{more}",
            no_wrap=True,
            overflow="ellipsis",
        )
        self._story.append(line)
        if not self._console.is_terminal:
            self._console.print(line, soft_wrap=True)

    def _table(self) -> Table:
        table = Table("job", "team", "GPUs", "status", Column("progress", min_width=29))
        for job in self._jobs.values():
            word = STATUS_WORDS.get(job.status, job.status)
            gpus = str(job.gpus) if job.status in HOLDS_GPUS else ""
            status = Text(word, style=STATUS_COLOURS.get(word, "white"))
            table.add_row(job.name, Text(job.team, style=TEAM_COLOURS[job.team]), gpus, status, job.progress)
        return table

    def _screen(self) -> Group:
        """Of constant height, so that nothing jumps."""
        last = ([Text("")] * STORY_LINES + self._story)[-STORY_LINES:]
        return Group(self._table(), self._gpus(), *last)

    def _gpus(self) -> Text:
        """Eight GPUs, each with the first letter of the team that uses it."""
        bar = Text("GPUs in use:")
        used = 0
        for team, colour in TEAM_COLOURS.items():
            held = sum(job.gpus for job in self._jobs.values() if job.team == team and job.status in HOLDS_GPUS)
            bar.append(f" {team[0].upper()}" * held, style=colour)
            used += held
        return bar.append(" ·" * (GPUS - used)).append("   " + ", ".join(f"{team[0].upper()} {team}" for team in TEAMS))

    def tell(self) -> bool:
        """What one should remember, and whether it is what was meant to be seen."""
        failed = [job for job in self.jobs if job.status != "succeeded"]
        for job in failed:
            _, known = job.client.show_job(job.id)
            self._console.print(f"{job.name} has {known.status}: {known.message}", highlight=False)
        if failed:
            return False
        training, (elastic, *others) = self.training, self.jobs
        evicted = [job.name for job in others if job.evictions]
        waited = self._at["pretrain", "JobStarted"] - self._at["pretrain", "JobSubmitted"]
        sizes = " → ".join(str(size) for _, size, _ in training.sizes)
        smallest = min(training.sizes, key=lambda change: change[1])
        is_as_meant = training.came_back and not elastic.evictions and bool(evicted)
        self._console.print(self._table())
        self._console.print(
            "\n[bold]What to remember[/]\n"
            f"  vision got its four GPUs at once: its training started {waited.total_seconds():.2f} s after it came.\n"
            f"  The elastic training was {'never stopped' if not elastic.evictions else 'evicted all the same'}."
            f" Its workers: {sizes}.\n"
            f"  Its loss: {training.sizes[0][2]} at first, {smallest[2]} with the fewest workers,"
            f" {training.loss} at the end.\n"
            f"  {', '.join(evicted) or 'Nobody'} cannot shrink: evicted, and started again later.",
            highlight=False,
        )
        return is_as_meant


def lines_of(job: Job) -> Iterator[Said]:
    rest = ""
    for text in job.client.stream_log(job.id):
        *lines, rest = (rest + text).split("\n")
        yield from (Said(job, line) for line in lines)
