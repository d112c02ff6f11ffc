"""Real mounts of real stores for tests: three processes and the kernel, taken down whatever happens."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paddleflow.pfs import control
from paddleflow.pfs.fuse import device
from paddleflow.pfs.mounting import LOG, MountReport, start_mount
from paddleflow.pfs.options import MountOptions
from paddleflow.pfs.plan import MountPlan
from paddleflow.wiring.stores import StorePlan, cache_levels

DEADLINE_S = 60.0


def why_no_mounts() -> str:
    """What keeps this machine, or this user, from mounting; empty: nothing."""
    if not os.path.exists("/dev/fuse"):
        return "there is no /dev/fuse on this machine"
    if os.geteuid() != 0:
        return "these tests mount as root; the ordinary user's way has tests of its own"
    return ""


@dataclass
class RealMount:
    path: Path
    state_dir: Path
    report: MountReport

    def figures(self) -> Mapping[str, Any]:
        (figures,) = control.ask(str(self.state_dir), {"do": "stats"}, silence_s=DEADLINE_S)
        return figures

    def kill_front(self) -> None:
        """SIGKILL, and wait until its successor answers."""
        before = self.figures()
        os.kill(before["front"], signal.SIGKILL)
        wait_for(lambda: self.figures()["generation"] > before["generation"])

    def kill_worker(self) -> None:
        os.kill(self.figures()["workers"][0], signal.SIGKILL)

    def log(self) -> str:
        return (self.state_dir / LOG).read_text()


def wait_for(condition: Callable[[], object], seconds: float = DEADLINE_S) -> None:
    deadline = time.monotonic() + seconds
    while True:
        with contextlib.suppress(Exception):
            if condition():
                return
        if time.monotonic() > deadline:
            raise AssertionError("it did not come to pass")
        time.sleep(0.01)


@contextlib.contextmanager
def mounted(where: Path, *stores: StorePlan, cache: Path | None = None, **options: Any) -> Iterator[RealMount]:
    """Mount ``stores`` (the root's first, then links) at ``where/mnt``; state and cache lie beside it."""
    mountpoint, state_dir = where / "mnt", where / "state"
    mountpoint.mkdir(parents=True, exist_ok=True)
    levels = options.pop("levels", None) or cache_levels(str(cache or where / "cache"))
    workers = options.pop("workers", 2)
    plan = MountPlan(
        name="tested",
        mountpoint=str(mountpoint),
        state_dir=str(state_dir),
        options=MountOptions(**{"uid": os.getuid(), "gid": os.getgid(), **options}),
        levels=levels,
        stores=tuple(store.to_json() for store in stores),
        front_argv=(sys.executable, "-m", "paddleflow.pfs.front"),
        worker_argv=(sys.executable, "-m", "paddleflow.wiring.storage_worker"),
        workers=workers,
    )
    report = start_mount(plan)
    watch = os.pidfd_open(report.pid)
    try:
        yield RealMount(mountpoint, state_dir, report)
    finally:
        _take_down(mountpoint, report, watch)


def _take_down(mountpoint: Path, report: MountReport, watch: int) -> None:
    import select

    try:
        os.kill(report.pid, signal.SIGTERM)
        if not select.select([watch], [], [], 10)[0]:
            with contextlib.suppress(OSError):
                device.unmount(str(mountpoint), report.way, lazy=True)
            if not select.select([watch], [], [], 20)[0]:
                _abort(mountpoint)
                signal.pidfd_send_signal(watch, signal.SIGKILL)
    except ProcessLookupError:
        pass
    finally:
        os.close(watch)


def _abort(mountpoint: Path) -> None:
    """Whoever waits for this mount gets an error: better than a suite that hangs."""
    number = device.device_of(str(mountpoint))
    if number is not None:
        Path(f"/sys/fs/fuse/connections/{os.minor(number)}/abort").write_text("1")
