"""kill -9 of the process that answers the kernel, again and again, in front of a reader and a writer."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from bench.figures import Figure
from bench.processes import BenchError, wait_until
from bench.storage.clients import ROOT
from bench.storage.content import WrongBytes
from bench.storage.daemons import children, state
from bench.storage.stage import READ_WRITE, Kind, Side, Stage

PATIENCE_S = 60.0


@dataclass(slots=True)
class Survivor:
    name: str
    """Reader or writer."""
    process: subprocess.Popen[str]
    operations: int = 0
    told: dict[str, object] = field(default_factory=dict)

    def listen(self) -> None:
        """Until it has told everything; meant for a thread."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("{"):
                self.told = json.loads(line)
            else:
                self.operations += 1

    def moves(self, since: int) -> bool:
        if self.process.poll() is not None:
            raise BenchError(f"the {self.name} ended by itself")
        return self.operations >= since


def figures(stage: Stage, kills: int) -> Iterator[Figure]:
    """What a reader and a writer saw while the front was killed so many times."""
    side = stage.side(READ_WRITE, Kind.WRITE)
    with surviving(stage, side, "read") as reader, surviving(stage, side, "write") as writer:
        for number in range(kills):
            before = (reader.operations, writer.operations)
            further = random.randrange(1, 30)
            move_on(reader, before[0] + further)
            move_on(writer, before[1] + 1 + number % 3)
            os.kill(front(side), signal.SIGKILL)
        move_on(reader, reader.operations + 10)
        move_on(writer, writer.operations + 2)
    for one in (reader, writer):
        errors = one.told["errors"]
        assert isinstance(errors, list)
        wrong = [error for error in errors if error.startswith(WrongBytes.__name__)]
        if wrong:
            raise WrongBytes(f"{len(wrong)} times, first: {wrong[0]}")
        what = f"kill -9 of the daemon, {kills} times, before a {one.name}"
        first = f"first: {errors[0]}" if errors else f"{one.operations:,} operations, every byte compared"
        yield Figure(what=f"{what}: errors", value=len(errors), unit="", target=0, peer=first)
        yield Figure(what="the same: longest wait", value=float(str(one.told["longest_s"])), unit="s", target=2)


@contextmanager
def surviving(stage: Stage, side: Side, kind: str) -> Iterator[Survivor]:
    arguments = [kind, str(side.root), str(stage.sizes.small_count), str(stage.sizes.small_size), str(stage.filler)]
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.storage.survivor", *arguments],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    survivor = Survivor({"read": "reader", "write": "writer"}[kind], process)
    listening = threading.Thread(target=survivor.listen, daemon=True)
    listening.start()
    with ExitStack() as ending:
        ending.callback(process.wait)
        ending.callback(process.kill)
        yield survivor
        assert process.stdin is not None
        process.stdin.close()
        process.wait(PATIENCE_S)
        listening.join(PATIENCE_S)
    if not survivor.told:
        raise BenchError(f"the {survivor.name} did not live to tell")


def move_on(survivor: Survivor, until: int) -> None:
    what = f"the {survivor.name} to go on"
    wait_until(lambda: survivor.moves(until), what=what, timeout_s=PATIENCE_S, every_s=0.001)


def front(side: Side) -> int:
    """The holder's child; a new one is there as soon as the last is gone."""
    assert side.daemons is not None
    (holder,) = side.daemons.roots()
    wait_until(lambda: bool(living(holder)), what="a front", timeout_s=PATIENCE_S, every_s=0.001)
    return living(holder)[0]


def living(holder: int) -> list[int]:
    return [pid for pid in children(holder) if state(pid) not in ("Z", "X", "")]
