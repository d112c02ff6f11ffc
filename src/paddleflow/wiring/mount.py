"""A filesystem becomes a mount on this machine: leave from the server, caches as configured, three processes.

What a mount is told itself goes before the filesystem's cache configuration, and that before the defaults.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from paddleflow.domain.errors import invalid_field
from paddleflow.pfs.fuse import device
from paddleflow.pfs.mounting import MountReport as Started
from paddleflow.pfs.mounting import end_mount, figures_of, start_mount, state_dir_of
from paddleflow.pfs.options import MountOptions
from paddleflow.pfs.plan import MountPlan
from paddleflow.sdk.client import Client
from paddleflow.wiring.mount_access import Granted, ask_leave, give_back
from paddleflow.wiring.stores import cache_levels

_READ_ONLY_TTL_S = 60.0
_DATASET_TTL_S = 3600.0
_MODULE = (sys.executable, "-m")


@dataclass(frozen=True, slots=True, kw_only=True)
class MountRequest:
    """What whoever mounts may say; None: as configured, or the default."""

    username: str | None = None
    """The filesystem's owner, if it is another."""
    snapshot: str | None = None
    read_only: bool = False
    dataset: bool = False
    write_back: bool = False
    allow_other: bool = False
    passthrough: bool = True
    cache_dir: str = ""
    cache_size: int = 0
    memory_cache_size: int = 0
    meta_ttl: float | None = None
    negative_ttl: float | None = None
    small_file: int | None = None
    uid: int | None = None
    gid: int | None = None
    file_mode: int | None = None
    dir_mode: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MountReport:
    """How it was mounted, in words."""

    how: str
    passthrough: bool
    reasons: tuple[str, ...] = field(default=())
    pid: int


def state_base(environ: Mapping[str, str] = os.environ) -> str:
    """Where this user's mounts keep what must survive them."""
    given = environ.get("XDG_STATE_HOME", "")
    base = Path(given) if given.startswith("/") else Path.home() / ".local" / "state"
    return str(base / "paddleflow" / "mounts")


def mount_filesystem(client: Client, fs_name: str, mountpoint: str, request: MountRequest) -> MountReport:
    """Mount with the rights of the client's user. The mount goes on when this process ends."""
    read_only = request.read_only or request.dataset or request.snapshot is not None
    _check_place(mountpoint)
    granted = ask_leave(
        client,
        fs_name,
        username=request.username,
        read_only=read_only,
        snapshot=request.snapshot,
        mountpoint=mountpoint,
    )
    try:
        started = start_mount(plan_of(granted, mountpoint, request, state_base()))
    except BaseException:
        give_back(granted.access)
        raise
    return told(started)


def plan_of(granted: Granted, mountpoint: str, request: MountRequest, base: str) -> MountPlan:
    cache = granted.cache
    return MountPlan(
        name=granted.fs_id,
        mountpoint=str(Path(mountpoint).absolute()),
        state_dir=state_dir_of(base, mountpoint),
        options=options_of(request, granted),
        levels=cache_levels(
            request.cache_dir or str(cache.get("cacheDir") or ""),
            request.cache_size or int(cache.get("quota") or 0),
            request.memory_cache_size,
        ),
        stores=tuple(store.to_json() for store in granted.stores),
        access=granted.access,
        front_argv=(*_MODULE, "paddleflow.pfs.front"),
        worker_argv=(*_MODULE, "paddleflow.wiring.storage_worker"),
    )


def options_of(request: MountRequest, granted: Granted) -> MountOptions:
    properties = granted.stores[0].properties
    read_only = granted.read_only or request.read_only or request.dataset
    ttl = _DATASET_TTL_S if request.dataset else _READ_ONLY_TTL_S if read_only else MountOptions().meta_ttl
    given = {
        "meta_ttl": request.meta_ttl if request.meta_ttl is not None else ttl,
        "negative_ttl": request.negative_ttl,
        "small_file": request.small_file,
        "uid": request.uid if request.uid is not None else _number(properties, "owner", os.getuid()),
        "gid": request.gid if request.gid is not None else _number(properties, "group", os.getgid()),
        "file_mode": request.file_mode if request.file_mode is not None else _mode(properties, "fileMode"),
        "dir_mode": request.dir_mode if request.dir_mode is not None else _mode(properties, "dirMode"),
    }
    return MountOptions(
        read_only=read_only,
        dataset=request.dataset,
        write_back=request.write_back,
        allow_other=request.allow_other,
        passthrough=request.passthrough,
        **{name: value for name, value in given.items() if value is not None},  # type: ignore[arg-type]
    )


def _number(properties: Mapping[str, str], name: str, otherwise: int) -> int:
    """Owners are numbers on a mount; a name says nothing on another machine."""
    text = properties.get(name, "")
    return int(text) if text.isdecimal() else otherwise


def _mode(properties: Mapping[str, str], name: str) -> int | None:
    """Digits as ``chmod`` takes them; the original took the same bits in decimal, which is told by its size."""
    text = properties.get(name, "")
    if not text.isdecimal():
        return None
    is_octal = all(digit in "01234567" for digit in text) and int(text, 8) <= 0o7777
    return int(text, 8 if is_octal else 10) & 0o7777


def told(started: Started) -> MountReport:
    reasons = []
    if not started.passthrough:
        reasons.append(f"cached files are read through the daemon: {started.why_not}")
    if not started.resend:
        reasons.append("calls under way when the daemon dies wait until they are killed: Linux 6.9 or newer is needed")
    by = "by root" if started.way == "mount" else f"by {started.way}"
    return MountReport(
        how=f"{by}, holder process {started.pid}",
        passthrough=started.passthrough,
        reasons=tuple(reasons),
        pid=started.pid,
    )


def _check_place(mountpoint: str) -> None:
    """Before anybody is asked for leave. A broken mount that is in the way is no directory either, and is cleared."""
    if not device.is_mounted(mountpoint) and not Path(mountpoint).is_dir():
        raise invalid_field("path", f"{mountpoint} is not a directory; make it first")
    device.clear_place(mountpoint)


def unmount(mountpoint: str, force: bool) -> None:
    end_mount(state_base(), mountpoint, force=force)


def mount_stats(mountpoint: str) -> Mapping[str, Any]:
    figures = dict(figures_of(state_base(), mountpoint))
    figures.pop("done", None)
    return figures
