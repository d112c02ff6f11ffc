"""Starting and finding mounts on this machine: each has a directory of its own below one of the user's.

The directory is named after the mount point, so that what an earlier mount there left unfinished is found by the next.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from paddleflow.domain.errors import Conflict, NotFound, PaddleFlowError, Unavailable
from paddleflow.pfs import control
from paddleflow.pfs.fuse import device
from paddleflow.pfs.plan import MountPlan

_READY_WITHIN_S = 60.0
_GONE_WITHIN_S = 60.0
_DESCRIPTION = "mount.json"
LOG = "mount.log"


@dataclass(frozen=True, slots=True, kw_only=True)
class MountReport:
    """How a mount came about, in words for people."""

    mountpoint: str
    pid: int
    way: str
    """``mount`` as root, ``fusermount3`` otherwise."""
    passthrough: bool
    why_not: str = ""
    """Why the kernel does not read cached files by itself."""
    resend: bool = True
    """Calls that were under way when the daemon died are answered by its successor."""
    dataset: bool = False


def state_dir_of(base: str, mountpoint: str) -> str:
    """The mount point itself is not looked at: whoever serves it may be gone."""
    above, name = os.path.split(os.path.abspath(mountpoint))
    place = os.path.join(os.path.realpath(above), name)
    return os.path.join(base, hashlib.blake2b(os.fsencode(place), digest_size=8).hexdigest())


def start_mount(plan: MountPlan, *, foreground: bool = False) -> MountReport:
    """Mount, and return when files can be used. The mount goes on by itself; Unavailable says why there is none."""
    os.makedirs(plan.state_dir, mode=0o700, exist_ok=True)
    for level in plan.levels:
        os.makedirs(level.directory, mode=0o700, exist_ok=True)
    ready, theirs = os.pipe()
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "paddleflow.pfs.holder"],
            stdin=subprocess.PIPE,
            pass_fds=[theirs],
        )
        os.close(theirs)
        assert process.stdin is not None
        with process.stdin as stdin:
            stdin.write(json.dumps(_hold_plan(plan, theirs, foreground=foreground)).encode())
        outcome = _outcome(ready, plan)
    finally:
        os.close(ready)
    if not foreground:
        process.wait()  # it has gone into the background
    if not outcome.get("mounted"):
        raise Unavailable(f"{plan.mountpoint} was not mounted: {outcome.get('error', 'no reason was given')}")
    report = MountReport(
        mountpoint=plan.mountpoint,
        pid=outcome["pid"],
        way=outcome["way"],
        passthrough=outcome["passthrough"],
        why_not=outcome["why"],
        resend=outcome["resend"],
        dataset=outcome["dataset"],
    )
    _describe(plan, report)
    return report


def _hold_plan(plan: MountPlan, ready_fd: int, *, foreground: bool) -> dict[str, Any]:
    return {
        "mountpoint": plan.mountpoint,
        "source": f"PaddleFlowFS:{plan.name}",
        "front_argv": plan.front_argv,
        "front": plan.to_json(),
        "backing_dirs": [plan.state_dir, *(level.directory for level in plan.levels)],
        "read_only": plan.options.read_only or plan.options.dataset,
        "allow_other": plan.options.allow_other,
        "dataset": plan.options.dataset,
        "passthrough": plan.options.passthrough,
        "ready_fd": ready_fd,
        "detach": not foreground,
        "log": "" if foreground else os.path.join(plan.state_dir, LOG),
    }


def _outcome(ready: int, plan: MountPlan) -> dict[str, Any]:
    said = bytearray()
    while not said.endswith(b"\n"):
        if not select.select([ready], [], [], _READY_WITHIN_S)[0]:
            raise Unavailable(
                f"{plan.mountpoint} was not mounted within {_READY_WITHIN_S:g} s; {plan.state_dir}/{LOG} may say why"
            )
        data = os.read(ready, 1 << 16)
        if not data:
            raise Unavailable(f"{plan.mountpoint} was not mounted; {plan.state_dir}/{LOG} may say why")
        said += data
    outcome: dict[str, Any] = json.loads(said)
    return outcome


def _describe(plan: MountPlan, report: MountReport) -> None:
    """For whoever lists the mounts of this user; no credential is in it."""
    path = os.path.join(plan.state_dir, _DESCRIPTION)
    with open(f"{path}.new", "w", encoding="utf-8") as file:
        json.dump({"name": plan.name, "mountpoint": plan.mountpoint, "pid": report.pid}, file)
    os.replace(f"{path}.new", path)


def running_mounts(base: str) -> Iterator[Mapping[str, Any]]:
    """The mounts of this user that answer, as they describe themselves."""
    with contextlib.suppress(FileNotFoundError):
        for name in sorted(os.listdir(base)):
            try:
                (figures,) = control.ask(os.path.join(base, name), {"do": "stats"}, silence_s=10.0)
            except PaddleFlowError:
                continue  # it ended; what it left is there for the next mount at the same place
            yield {**figures, "state_dir": os.path.join(base, name)}


def figures_of(base: str, mountpoint: str) -> Mapping[str, Any]:
    try:
        (figures,) = control.ask(state_dir_of(base, mountpoint), {"do": "stats"})
    except NotFound as error:
        raise NotFound(f"{mountpoint} is not a mount of PaddleFlow's, or it belongs to another user") from error
    return figures


def end_mount(base: str, mountpoint: str, *, force: bool = False) -> None:
    """Unmount, after everything written was uploaded. ``force`` detaches a mount that is in use."""
    state_dir = state_dir_of(base, mountpoint)
    try:
        figures = figures_of(base, mountpoint)
    except NotFound:
        if not device.is_mounted(mountpoint):
            raise
        device.detach_broken(mountpoint)  # nobody serves it any more
        return
    holder = int(figures["holder"])
    watch = os.pidfd_open(holder)
    try:
        for answer in _unmount_answers(state_dir, force=force):
            raise Conflict(str(answer))
        if not select.select([watch], [], [], _GONE_WITHIN_S)[0]:
            raise Unavailable(f"{mountpoint} is detached, and its process {holder} is still finishing its uploads")
    finally:
        os.close(watch)


def _unmount_answers(state_dir: str, *, force: bool) -> Iterator[str]:
    """The reasons why not, if any: a mount that ends says nothing more."""
    try:
        for answer in control.ask(state_dir, {"do": "unmount", "lazy": force}, silence_s=_GONE_WITHIN_S):
            yield str(answer)
    except Unavailable:
        return
    except PaddleFlowError as error:
        yield error.message


def upgrade_mount(base: str, mountpoint: str) -> None:
    """Let a new front, of the program as it is installed now, take over. Nobody notices."""
    os.kill(int(figures_of(base, mountpoint)["holder"]), signal.SIGHUP)
