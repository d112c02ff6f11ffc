"""The control groups of one task: limits, accounting, and a list of its processes nobody can leave. Host side: light.

Version 1 has one directory for each controller, version 2 one for all. Which directories may be used is decided by
``isolation`` and handed in as a plain mapping; the task's own groups are made right below them and removed at its end.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import time

_PERIOD_US = 100_000
_SMALLEST_QUOTA_US = 1_000
_CONTROLLERS = ("memory", "cpu", "cpuacct")


def quota_us(cpu_milli: int) -> int:
    """Microseconds of CPU for each period of a tenth of a second; the kernel takes no less than one millisecond."""
    return max(_SMALLEST_QUOTA_US, cpu_milli * _PERIOD_US // 1000)


def shares(cpu_milli: int) -> int:
    """The weight of version 1: 1024 for one core, 2 at least, 262144 at most."""
    return min(262_144, max(2, cpu_milli * 1024 // 1000))


def weight(cpu_milli: int) -> int:
    """The weight of version 2, 1 to 10000, mapped linearly from the shares of version 1."""
    return 1 + (shares(cpu_milli) - 2) * 9999 // 262_142


class TaskCgroups:
    """The groups of one task. ``parents`` maps "version" and the usable controllers to directories."""

    def __init__(self, parents: dict[str, str], name: str) -> None:
        self._unified = parents["version"] == "2"
        self._paths = {c: f"{parents[c]}/{name}" for c in _CONTROLLERS if c in parents}
        self._directories = list(dict.fromkeys(self._paths.values()))

    def create(self) -> None:
        for directory in self._directories:
            # A supervisor that died before it could start the task may have left them behind, empty.
            with contextlib.suppress(FileExistsError):
                os.mkdir(directory, 0o755)

    def limit_memory(self, limit_bytes: int) -> None:
        if self._unified:
            self._write("memory", "memory.max", limit_bytes)
            self._write_if_there("memory", "memory.swap.max", 0)
        else:
            self._write("memory", "memory.limit_in_bytes", limit_bytes)
            self._write_if_there("memory", "memory.memsw.limit_in_bytes", limit_bytes)

    def limit_cpu(self, cpu_milli: int, host_cpus: int) -> None:
        """A weight always; a quota only if it is below what the host has, since above it can limit nothing."""
        if "cpu" not in self._paths:
            return
        if self._unified:
            self._write("cpu", "cpu.weight", weight(cpu_milli))
        else:
            self._write("cpu", "cpu.shares", shares(cpu_milli))
        if cpu_milli >= host_cpus * 1000:
            return
        if self._unified:
            self._write("cpu", "cpu.max", f"{quota_us(cpu_milli)} {_PERIOD_US}")
        else:
            self._write("cpu", "cpu.cfs_period_us", _PERIOD_US)
            self._write("cpu", "cpu.cfs_quota_us", quota_us(cpu_milli))

    def enter(self) -> None:
        """Move the calling process, which has one thread, into the groups.

        In version 1 through ``tasks``: to move a single thread by its own hand the kernel needs no lock over all forks
        of the host. Writing to ``cgroup.procs`` takes that lock, which costs many milliseconds while others fork.
        """
        for directory in self._directories:
            _write(f"{directory}/{'cgroup.procs' if self._unified else 'tasks'}", "0")

    def members(self) -> list[int]:
        text = _read(f"{self._paths['memory']}/cgroup.procs")
        return [int(line) for line in text.split()] if text else []

    def kill(self) -> None:
        if self._unified and os.path.exists(f"{self._paths['memory']}/cgroup.kill"):
            self._write("memory", "cgroup.kill", 1)
            return
        for pid in self.members():
            # Gone between the listing and the signal is what we want.
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def oom_kills(self) -> int:
        file = "memory.events" if self._unified else "memory.oom_control"
        return self._field(file, "memory", "oom_kill")

    def cpu_s(self) -> float | None:
        """CPU seconds used so far; None where this host does not count them for a group."""
        if self._unified:
            return self._field("cpu.stat", "memory", "usage_usec") / 1e6
        text = _read(f"{self._paths['cpuacct']}/cpuacct.usage") if "cpuacct" in self._paths else None
        return None if text is None else int(text) / 1e9

    def memory_bytes(self) -> int:
        text = _read(f"{self._paths['memory']}/{'memory.current' if self._unified else 'memory.usage_in_bytes'}")
        return int(text) if text else 0

    def max_memory_bytes(self) -> int | None:
        """The most memory held at once; None on kernels that do not record it."""
        text = _read(f"{self._paths['memory']}/{'memory.peak' if self._unified else 'memory.max_usage_in_bytes'}")
        return int(text) if text else None

    def remove(self) -> None:
        """Remove the groups, killing what is left in them. The kernel needs a moment to let go of dead processes."""
        deadline = time.monotonic() + 5
        for directory in self._directories:
            while not _try_rmdir(directory) and time.monotonic() < deadline:
                self.kill()
                time.sleep(0.002)

    def _field(self, file: str, controller: str, name: str) -> int:
        for line in (_read(f"{self._paths[controller]}/{file}") or "").splitlines():
            key, _, value = line.partition(" ")
            if key == name:
                return int(value)
        return 0

    def _write(self, controller: str, file: str, value: int | str) -> None:
        _write(f"{self._paths[controller]}/{file}", str(value))

    def _write_if_there(self, controller: str, file: str, value: int) -> None:
        if os.path.exists(f"{self._paths[controller]}/{file}"):
            self._write(controller, file, value)


def _try_rmdir(directory: str) -> bool:
    try:
        os.rmdir(directory)
    except FileNotFoundError:
        return True
    except OSError as error:
        if error.errno == errno.EBUSY:
            return False
        raise
    return True


def _write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def _read(path: str) -> str | None:
    try:
        with open(path, encoding="ascii") as file:
            return file.read()
    except OSError as error:
        # The group is gone (the task just ended) or this kernel lacks the file.
        if error.errno in (errno.ENOENT, errno.ENODEV):
            return None
        raise
