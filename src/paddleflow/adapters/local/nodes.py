"""What this host has to offer, as one node. Server side."""

from __future__ import annotations

import os
import platform
import re
import socket
from pathlib import Path

from paddleflow.domain.clusters import Node
from paddleflow.domain.ids import ClusterName, NodeName
from paddleflow.domain.resources import CPU, GPU, MEMORY, Resources

_GPU_DEVICE = re.compile(r"nvidia\d+")


def host_name() -> NodeName:
    return NodeName(socket.gethostname())


def host_node(cluster: ClusterName) -> Node:
    amounts = {CPU: _cpu_milli(), MEMORY: _memory_bytes()}
    gpus = sum(1 for name in os.listdir("/dev") if _GPU_DEVICE.fullmatch(name))
    if gpus:
        amounts[GPU] = gpus
    name = host_name()
    labels = {"kubernetes.io/hostname": name, "kubernetes.io/arch": platform.machine(), "kubernetes.io/os": "linux"}
    return Node(name=name, cluster=cluster, capacity=Resources(amounts), address="127.0.0.1", labels=labels)


def _cpu_milli() -> int:
    """The CPUs this process may run on, or less if its control group has a quota."""
    allowed = len(os.sched_getaffinity(0)) * 1000
    for directory in _own_directories("cpu"):
        quota = _cpu_quota_milli(directory)
        if quota is not None:
            allowed = min(allowed, quota)
    return allowed


def _cpu_quota_milli(directory: Path) -> int | None:
    unified = _read(directory / "cpu.max")
    if unified is not None:
        quota, _, period = unified.partition(" ")
    else:
        quota, period = _read(directory / "cpu.cfs_quota_us") or "-1", _read(directory / "cpu.cfs_period_us") or "0"
    if quota in ("max", "-1"):
        return None
    return int(quota) * 1000 // int(period)


def _memory_bytes() -> int:
    """The host's memory, or less if a control group above this process has a limit."""
    found = re.search(r"^MemTotal:\s+(\d+) kB", Path("/proc/meminfo").read_text(encoding="ascii"), re.MULTILINE)
    if found is None:
        raise RuntimeError("/proc/meminfo has no MemTotal")
    total = int(found[1]) * 1024
    for directory in _own_directories("memory"):
        for name in ("memory.max", "memory.limit_in_bytes"):
            limit = _read(directory / name)
            if limit is not None and limit != "max":
                total = min(total, int(limit))
    return total


def _own_directories(controller: str) -> list[Path]:
    """Our control group and those above it, in whichever hierarchy holds the controller."""
    found = []
    for line in Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            base = Path("/sys/fs/cgroup") / controllers
        elif not controllers:
            base = Path("/sys/fs/cgroup")
        else:
            continue
        own = base / path.lstrip("/")
        found += [own, *(above for above in own.parents if above.is_relative_to(base))]
    return found


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        return None
