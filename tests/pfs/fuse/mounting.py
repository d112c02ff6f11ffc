"""Real mounts for tests: a holder with the toy front, taken down whatever happens."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paddleflow.pfs.fuse import device
from paddleflow.pfs.fuse.protocol import Opcode

TOY = Path(__file__).parent / "toy_front.py"
DEADLINE_S = 30.0


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

    def kill_front(self) -> None:
        """And wait for the next one to have begun."""
        pid, generation = self.front()
        os.kill(pid, signal.SIGKILL)
        self.await_front(after=generation)

    def await_front(self, *, after: int) -> None:
        wait_for(lambda: self.front()[1] > after)


def wait_for(condition: Callable[[], object], seconds: float = DEADLINE_S) -> None:
    deadline = time.monotonic() + seconds
    while True:
        with contextlib.suppress(ValueError, FileNotFoundError):
            if condition():
                return
        if time.monotonic() > deadline:
            raise AssertionError("it did not come to pass")
        time.sleep(0.005)


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


def start_holder(plan: dict[str, Any], **popen: Any) -> tuple[subprocess.Popen[bytes], dict[str, Any]]:
    reading, writing = os.pipe()
    argv = [*popen.pop("prefix", ()), popen.pop("python", sys.executable), "-m", "paddleflow.pfs.holder"]
    holder = subprocess.Popen(argv, stdin=subprocess.PIPE, pass_fds=[writing], **popen)
    os.close(writing)
    assert holder.stdin is not None
    holder.stdin.write(json.dumps(plan | {"ready_fd": writing}).encode())
    holder.stdin.close()
    with os.fdopen(reading, "rb") as ready:
        said = ready.readline()
    if not said:
        holder.wait(DEADLINE_S)
        raise AssertionError(Path(plan["log"]).read_text() if Path(plan["log"]).exists() else "it said nothing")
    return holder, json.loads(said)


@contextlib.contextmanager
def toy_mount(where: Path, **changes: Any) -> Iterator[ToyMount]:
    plan = plan_for(where, **changes)
    holder, outcome = start_holder(plan)
    mount = ToyMount(plan["mountpoint"], plan["front"]["root"], plan["front"]["state"], holder, outcome, plan["log"])
    try:
        yield mount
    finally:
        take_down(mount)
    assert not device.is_mounted(plan["mountpoint"])


def take_down(mount: ToyMount) -> None:
    """A mount ends with its last user, and that may be a mount namespace that somebody else's program made meanwhile:
    then ending its processes, which hold the only descriptor, ends it for everybody."""
    subprocess.run(["umount", "-l", mount.mountpoint], check=False, capture_output=True)
    try:
        mount.holder.wait(5.0)
    except subprocess.TimeoutExpired:
        mount.holder.kill()
        mount.holder.wait()
        with contextlib.suppress(ProcessLookupError, FileNotFoundError):
            os.kill(mount.front()[0], signal.SIGKILL)
