"""Real mounts for tests: a holder with the toy front, taken down whatever happens."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paddleflow.pfs.fuse import device
from paddleflow.pfs.fuse.protocol import Opcode
from tests.pfs.mounts import Watch, break_mount
from tests.waiting import wait_for

TOY = Path(__file__).parent / "toy_front.py"


@dataclass
class ToyMount:
    mountpoint: str
    root: str
    state: str
    holder: subprocess.Popen[bytes]
    outcome: dict[str, Any]
    log: str

    def front(self) -> tuple[int, int]:
        """Its pid and generation."""
        pid, generation, _ = Path(self.state, "front.pid").read_text().split(" ", 2)
        return int(pid), int(generation)

    def counts(self) -> dict[str, int]:
        numbers = json.loads(os.getxattr(self.mountpoint, "user.counts"))
        return {Opcode(code).name: number for code, number in enumerate(numbers) if number and code}

    def path(self, name: str) -> str:
        return f"{self.mountpoint}/{name}"

    def held(self) -> list[str]:
        """What the front has done and not answered: see ``toy_front``."""
        names: list[str] = json.loads(os.getxattr(self.mountpoint, "user.held"))
        return names

    def let_go(self) -> None:
        os.getxattr(self.mountpoint, "user.let_go")

    def kill_front(self) -> None:
        """And wait for the next one to have begun."""
        pid, generation = self.front()
        os.kill(pid, signal.SIGKILL)
        self.await_front(after=generation)

    def await_front(self, *, after: int) -> None:
        wait_for(lambda: self.front()[1] > after, f"a front after {after}")


def plan_for(where: Path, **changes: Any) -> dict[str, Any]:
    for name in ("mnt", "root", "state"):
        with contextlib.suppress(FileExistsError):
            os.mkdir(where / name)
    toy = {"root": str(where / "root"), "state": str(where / "state"), "secret": "hunter2"}
    plan: dict[str, Any] = {
        "mountpoint": str(where / "mnt"),
        "source": "toy",
        "front_argv": [sys.executable, str(TOY)],
        "backing_dirs": [str(where / "root")],
        "log": str(where / "log"),
        "front": toy | changes.pop("front", {}),
    }
    return plan | changes


@contextlib.contextmanager
def holder_of(plan: dict[str, Any], **popen: Any) -> Iterator[tuple[subprocess.Popen[bytes], dict[str, Any]]]:
    """A holder, and what it said of its mount; both are gone afterwards. A mount ends with its last user, and that may
    be a mount namespace that somebody else's program made meanwhile: so it is broken, which ends it for everybody."""
    reading, writing = os.pipe()
    argv = [*popen.pop("prefix", ()), popen.pop("python", sys.executable), "-m", "paddleflow.pfs.holder"]
    with os.fdopen(reading, "rb") as ready:
        holder = subprocess.Popen(argv, stdin=subprocess.PIPE, pass_fds=[writing], **popen)
        os.close(writing)
        with Watch(holder.pid) as watch:
            try:
                assert holder.stdin is not None
                with holder.stdin as stdin:
                    stdin.write(json.dumps(plan | {"ready_fd": writing}).encode())
                said = ready.readline()
                if not said:
                    log = Path(plan["log"])
                    raise AssertionError(log.read_text() if log.exists() else "it said nothing")
                yield holder, json.loads(said)
            finally:
                break_mount(Path(plan["mountpoint"]), watch)
                holder.wait()


@contextlib.contextmanager
def toy_mount(where: Path, **changes: Any) -> Iterator[ToyMount]:
    plan = plan_for(where, **changes)
    with holder_of(plan) as (holder, outcome):
        yield ToyMount(plan["mountpoint"], plan["front"]["root"], plan["front"]["state"], holder, outcome, plan["log"])
    assert not device.is_mounted(plan["mountpoint"])
