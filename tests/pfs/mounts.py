"""Real mounts of real stores for tests: three processes and the kernel, taken down whatever happens."""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paddleflow.pfs import control
from paddleflow.pfs.fuse import device
from paddleflow.pfs.mounting import LOG, MountReport, start_mount
from paddleflow.pfs.options import MountOptions
from paddleflow.pfs.plan import MountPlan
from paddleflow.wiring.stores import StorePlan, cache_levels
from tests.waiting import DEADLINE_S, wait_for


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
    try:
        report = start_mount(plan)
    except BaseException:
        break_mount(mountpoint)
        raise
    with Watch(report.pid) as holder:
        try:
            yield RealMount(mountpoint, state_dir, report)
            wait_for(lambda: _has_ended_when_asked(holder), f"the mount at {mountpoint} ends")
        except BaseException:
            break_mount(mountpoint, holder)
            raise


class Watch:
    """A process that is meant even when its number has been given to another one."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._fd = os.pidfd_open(pid)

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)

    def has_ended(self) -> bool:
        return bool(select.select([self._fd], [], [], 0)[0])

    def send(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):  # it has ended
            signal.pidfd_send_signal(self._fd, number)

    def kill_with_children(self) -> None:
        family = [] if self.has_ended() else children_of(self.pid)
        self.send(signal.SIGKILL)
        for pid in family:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def children_of(pid: int) -> list[int]:
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def _has_ended_when_asked(holder: Watch) -> bool:
    """As its user ends it, so that all that was written is uploaded. Asked again: somebody else's search through /tmp
    may just be in it."""
    holder.send(signal.SIGTERM)
    return holder.has_ended()


def break_mount(mountpoint: Path, holder: Watch | None = None) -> None:
    """At once, whatever its processes are doing: whoever waits for an answer of theirs gets an error. Not even whether
    it is mounted is asked: that looks at it, and would wait too."""
    flags = device.MNT_FORCE | device.MNT_DETACH | device.UMOUNT_NOFOLLOW
    ctypes.CDLL(None).umount2(os.fsencode(mountpoint), flags)
    if holder is not None:
        holder.kill_with_children()
