"""Which means this host gives us to limit tasks: control groups where they may be written, else resource limits.

The decision is made once, by trying, and is visible with its reason. Server side.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

CGROUP_V1: Final = "cgroup v1"
CGROUP_V2: Final = "cgroup v2"
RLIMITS: Final = "rlimits"

_SHORTFALL = (
    "memory is limited for each process by RLIMIT_DATA (RLIMIT_AS would also count what a program merely maps, which "
    "breaks CUDA and memory-mapped files), CPU time is not limited, accounting is that of wait4"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Isolation:
    name: str
    """``cgroup v1``, ``cgroup v2`` or ``rlimits``."""
    reason: str
    cgroup_parents: Mapping[str, str] | None = None
    """For ``TaskCgroups``: the version, and the directory of each usable controller."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hierarchy:
    """One mounted cgroup hierarchy: its controllers (none for version 2) and the directory of our own group."""

    unified: bool
    controllers: frozenset[str]
    directory: str


def detect_isolation(mountinfo: str, own_cgroups: str, may_use: Callable[[str], str | None]) -> Isolation:
    """Decide from the texts of /proc/self/mountinfo and /proc/self/cgroup.

    ``may_use(directory)`` tries to make a group there and answers why it cannot, or None.
    """
    hierarchies = _hierarchies(mountinfo, own_cgroups)
    problems: list[str] = []
    usable: dict[str, str] = {}
    for hierarchy in hierarchies:
        wanted = [c for c in ("memory", "cpu", "cpuacct") if c in hierarchy.controllers]
        if hierarchy.unified or not wanted:
            continue
        problem = may_use(hierarchy.directory)
        if problem is None:
            usable |= dict.fromkeys(wanted, hierarchy.directory)
        else:
            problems.append(f"{'/'.join(wanted)}: {problem}")
    if "memory" in usable:
        return Isolation(
            name=CGROUP_V1,
            reason="; ".join([f"the {', '.join(usable)} groups may be written", *problems]),
            cgroup_parents={"version": "1", **usable},
        )
    return _detect_unified(hierarchies, may_use, problems)


def _detect_unified(
    hierarchies: list[_Hierarchy], may_use: Callable[[str], str | None], problems: list[str]
) -> Isolation:
    for hierarchy in hierarchies:
        if not hierarchy.unified:
            continue
        problem = _enable_controllers(hierarchy.directory) or may_use(hierarchy.directory)
        if problem is None:
            controllers = dict.fromkeys(("memory", "cpu"), hierarchy.directory)
            reason = f"{hierarchy.directory} is delegated to this process"
            return Isolation(name=CGROUP_V2, reason=reason, cgroup_parents={"version": "2", **controllers})
        problems.append(problem)
    why = "; ".join(problems) or "no cgroup hierarchy is mounted"
    return Isolation(name=RLIMITS, reason=f"{why}; {_SHORTFALL}")


def host_isolation() -> Isolation:
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
        mountinfo = file.read()
    with open("/proc/self/cgroup", encoding="utf-8", errors="surrogateescape") as file:
        own_cgroups = file.read()
    return detect_isolation(mountinfo, own_cgroups, _try_group)


def _try_group(directory: str) -> str | None:
    probe = f"{directory}/paddleflow-probe-{os.getpid()}-{os.urandom(4).hex()}"
    try:
        os.mkdir(probe)
        os.rmdir(probe)
    except OSError as error:
        return f"no group can be made in {directory} ({error.strerror})"
    return None


def _enable_controllers(directory: str) -> str | None:
    """Turn on memory and cpu for groups below this one; the problem, or None.

    A version 2 group hands controllers down only while it holds no process itself, so this process steps aside into
    a group of its own. That is the arrangement systemd asks of services with ``Delegate=yes``.
    """
    try:
        with open(f"{directory}/cgroup.controllers", encoding="ascii") as file:
            missing = {"memory", "cpu"} - set(file.read().split())
        if missing:
            return f"{directory} does not offer the controllers {', '.join(sorted(missing))}"
        with open(f"{directory}/cgroup.subtree_control", encoding="ascii") as file:
            if {"memory", "cpu"} <= set(file.read().split()):
                return None
        own = f"{directory}/paddleflow-server"
        os.makedirs(own, exist_ok=True)
        _write(f"{own}/cgroup.procs", str(os.getpid()))
        _write(f"{directory}/cgroup.subtree_control", "+memory +cpu")
    except OSError as error:
        return f"{directory} is not delegated to this process ({error.strerror})"
    return None


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def _hierarchies(mountinfo: str, own_cgroups: str) -> list[_Hierarchy]:
    own_paths: dict[frozenset[str], str] = {}
    for line in own_cgroups.splitlines():
        _, names, path = line.split(":", 2)
        own_paths[frozenset(filter(None, names.split(",")))] = path
    found = []
    for line in mountinfo.splitlines():
        left, _, right = line.partition(" - ")
        root, mount_point = left.split()[3:5]
        kind, _, options = right.split(" ", 2)
        if kind not in ("cgroup", "cgroup2"):
            continue
        unified = kind == "cgroup2"
        offered = frozenset(options.split(","))
        for controllers, path in own_paths.items():
            if not controllers if unified else controllers and controllers <= offered:
                directory = _inside(mount_point, root, path)
                found.append(_Hierarchy(unified=unified, controllers=controllers, directory=directory))
    return found


def _inside(mount_point: str, root: str, path: str) -> str:
    """Our group's directory. In a container only a part of the hierarchy is mounted, from ``root`` on."""
    if root != "/" and (path == root or path.startswith(f"{root}/")):
        path = path[len(root) :]
    return mount_point.rstrip("/") + ("" if path == "/" else path)
