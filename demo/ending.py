"""Ends everything that the demo started, in order, whatever had ended the demo itself.

What runs is read from /proc: whoever is orphaned becomes a child of this process (a subreaper), so nothing that was
started, by whatever process and however short ago, can be missed. First those who read, then the mount, then the S3
server behind it, then the platform, then all that is left. Each is asked first and killed only if it does not obey.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from command_line import CommandFailed, CommandLine

_PR_SET_CHILD_SUBREAPER = 36
_PATIENCE_S = 10
_LOOK_EVERY_S = 0.02


def adopt_orphans() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_everything(directory: Path) -> list[str]:
    """What did not end in order, or is left."""
    return [
        *_end("a reader", lambda words: "read_epoch.py" in words, signal.SIGKILL),
        # One that mounts would leave half a mount; all of them are short.
        *_end("a command", lambda words: "--pf_config" in words, None),
        *_unmount(directory),
        *_end("the S3 server", lambda words: " serve s3 " in words, signal.SIGTERM),
        *_end("the platform", lambda words: " paddleflow serve " in words, signal.SIGTERM),
        *_end("a process", lambda words: True, signal.SIGTERM),
        *_remove(directory),
    ]


def _end(name: str, is_meant: Callable[[str], bool], number: signal.Signals | None) -> list[str]:
    """Send ``number`` (None: only wait) to every process that is meant, and KILL to those that stay."""
    for how in (number, signal.SIGKILL):
        asked: set[int] = set()
        deadline = time.monotonic() + _PATIENCE_S
        while time.monotonic() < deadline:
            there = {pid for pid, words in descendants().items() if is_meant(words)}
            if not there:
                return [] if how is number else [f"{name} did not end by itself and was killed"]
            if how is not None:
                for pid in there - asked:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, how)
            asked |= there
            time.sleep(_LOOK_EVERY_S)
    left = [f"{pid} ({words})" for pid, words in descendants().items() if is_meant(words)]
    return [f"{name} is left: {', '.join(left)}"]


def descendants() -> dict[int, str]:
    """Command lines of the living processes below this one. The dead among its children are reaped."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    parents: dict[int, int] = {}
    words: dict[int, str] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            pid = int(entry.name)
            try:
                state, parent = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()[:2]
                words[pid] = (entry / "cmdline").read_text(errors="replace").replace("\0", " ")
            except OSError:
                continue  # ended meanwhile
            if state not in "ZX":
                parents[pid] = int(parent)
    found: dict[int, str] = {}
    generation = {os.getpid()}
    while generation:
        generation = {pid for pid, parent in parents.items() if parent in generation}
        found.update((pid, words[pid]) for pid in generation)
    return found


def _unmount(directory: Path) -> list[str]:
    return [problem for mountpoint in mounts_below(directory) if (problem := _unmount_one(directory, mountpoint))]


def _unmount_one(directory: Path, mountpoint: str) -> str:
    """As a user would; if that is refused by force; and at last without PaddleFlow. Empty: it went in order."""
    refusal = _refusal(directory, mountpoint, patience_s=_PATIENCE_S)
    if mountpoint not in mounts_below(directory):
        return ""
    _refusal(directory, "--force", mountpoint, patience_s=_PATIENCE_S / 4)  # it is gone long before the command is
    if mountpoint in mounts_below(directory):
        detach = ["umount", "-l"] if os.geteuid() == 0 else ["fusermount3", "-u", "-z"]
        with contextlib.suppress(OSError):  # the program is missing: the mount is reported as left
            subprocess.run([*detach, mountpoint], check=False, capture_output=True, start_new_session=True)
    return f"the mount was detached by force, because it could not be unmounted: {refusal}"


def _refusal(directory: Path, *words: str, patience_s: float) -> str:
    try:
        CommandLine(directory).run("fs", "umount", *words, patience_s=patience_s)
    except CommandFailed as error:
        return str(error)
    return ""


def mounts_below(directory: Path) -> list[str]:
    """The innermost first."""
    lines = Path("/proc/self/mounts").read_bytes().splitlines()
    points = [os.fsdecode(line.split()[1].decode("unicode_escape").encode("latin-1")) for line in lines]
    return sorted((point for point in points if point.startswith(f"{directory}/")), reverse=True)


def _remove(directory: Path) -> list[str]:
    if left := mounts_below(directory):
        return [f"left: {directory}, because {', '.join(left)} is still mounted; remove it with umount -l"]
    try:
        shutil.rmtree(directory)
    except OSError as error:
        return [f"left: {directory}, which could not be removed: {error}"]
    return []
