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
import stat
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from paddleflow.domain.errors import Conflict, Denied, NotFound, PaddleFlowError, Unavailable, invalid_field
from paddleflow.pfs import control
from paddleflow.pfs.fuse import device
from paddleflow.pfs.plan import MountPlan

_READY_WITHIN_S = 60.0
_GONE_WITHIN_S = 60.0
_DESCRIPTION = "mount.json"
_MOST_LINKS = 40
_ENDED = ("Z", "X")
"""States of a process that nobody has buried yet."""
_ESCAPES = (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\"))
"""In the kernel's table of mounts."""
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
    return os.path.join(base, hashlib.blake2b(os.fsencode(place_of(mountpoint)), digest_size=8).hexdigest())


def place_of(mountpoint: str) -> str:
    """Its one name, whatever symbolic links lead to it. The mount point itself is not looked at: whoever serves it may
    be gone; to ask whether it is a link is safe."""
    place = os.path.abspath(mountpoint)
    for _ in range(_MOST_LINKS):
        above, name = os.path.split(place)
        place = os.path.join(os.path.realpath(above), name)
        try:
            place = os.path.normpath(os.path.join(os.path.dirname(place), os.readlink(place)))
        except OSError:
            break
    return place


def start_mount(plan: MountPlan, *, foreground: bool = False) -> MountReport:
    """Mount, and return when files can be used. The mount goes on by itself; Unavailable says why there is none."""
    plan = replace(plan, mountpoint=place_of(plan.mountpoint))
    check_places(plan.mountpoint, [plan.state_dir, *(level.directory for level in plan.levels)])
    for directory in (plan.state_dir, *(level.directory for level in plan.levels)):
        own_directory(directory)
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


def check_places(mountpoint: str, ours: Sequence[str]) -> None:
    """What a mount needs to serve its files cannot lie in its own files, nor in those of another that may need it; and
    where a mount of ours is, another would vanish whenever its directory is looked up anew."""
    place = place_of(mountpoint)
    if _is_ours(os.path.dirname(place)):
        raise invalid_field("path", f"{mountpoint} lies inside another mount of PaddleFlow's: choose a place outside")
    for directory in ours:
        above = os.path.realpath(directory)
        if above == place or above.startswith(place + "/"):
            raise invalid_field("cacheDir", f"{directory} lies in {mountpoint} itself: choose a directory outside")
        if _is_ours(above):
            raise invalid_field("cacheDir", f"{directory} lies in a mount of PaddleFlow's: choose a local directory")


def _is_ours(path: str) -> bool:
    """Whether a path, which need not be there, lies in a mount of ours; nothing but the kernel's table is asked."""
    best, kind = "", ""
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as table:
        for line in table:
            fields, _, rest = line.partition(" - ")
            point = fields.split(" ")[4]
            for written, meant in _ESCAPES:
                point = point.replace(written, meant)
            above = point.rstrip("/") + "/"
            if (path + "/").startswith(above) and len(above) >= len(best):
                best, kind = above, rest.split(" ")[0]
    return kind == device.TYPE


def own_directory(directory: str) -> None:
    """Make it, or see that it is ours: in a place like /dev/shm another user may have been there first, and would read
    what we cache, and choose what we read."""
    try:
        os.makedirs(directory, mode=0o700, exist_ok=True)
    except OSError as error:
        raise Denied(f"the directory {directory} cannot be made: {error.strerror}") from error
    for status in (os.lstat(directory), os.stat(directory)):
        is_foreign = status.st_uid not in {os.geteuid(), 0}
        mode = 0 if stat.S_ISLNK(status.st_mode) else status.st_mode
        group_writes = mode & stat.S_IWGRP and status.st_gid != os.getegid()
        others_write = (mode & stat.S_IWOTH or group_writes) and not mode & stat.S_ISVTX
        if is_foreign or others_write:
            raise Denied(f"{directory} can be changed by another user: choose a directory of your own for it")


def is_held(base: str, mountpoint: str) -> bool:
    """Whether the process that keeps a mount alive is there. Nobody is asked, so it is quick whatever happened."""
    try:
        with open(os.path.join(state_dir_of(base, mountpoint), _DESCRIPTION), encoding="utf-8") as file:
            pid = int(json.load(file)["pid"])
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as process:
            name, _, rest = process.read().partition("(")[2].rpartition(")")
        return name == "pfs-holder" and rest.split()[0] not in _ENDED
    except (OSError, ValueError, KeyError, TypeError):
        return False


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
