"""What a mount costs: the processor time and the memory of its processes, read from /proc."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Daemons:
    """The processes of one mount: those named, and all below them. Asked each time, since they may be replaced."""

    roots: Callable[[], Sequence[int]]

    def cpu_seconds(self) -> float:
        """Used until now, by the living and by those that ended and were waited for. In hundredths of a second."""
        return sum(_cpu_seconds(pid) for pid in self._all())

    def forget_peak(self) -> None:
        """From now on the peak is that of what follows."""
        for pid in self._all():
            with suppress(FileNotFoundError, ProcessLookupError):  # it ended
                Path(f"/proc/{pid}/clear_refs").write_text("5")

    def peak_bytes(self) -> int:
        """The peaks of all processes together. They need not have come at one time: this is the most it can have been.
        Pages that processes share are counted in each."""
        return sum(_peak_bytes(pid) for pid in self._all())

    def _all(self) -> list[int]:
        found, ahead = [], list(self.roots())
        while ahead:
            pid = ahead.pop()
            if pid not in found:
                found.append(pid)
                ahead += children(pid)
        return found


def children(pid: int) -> list[int]:
    found: list[int] = []
    for thread in _threads(pid):
        try:
            found += map(int, Path(f"/proc/{pid}/task/{thread}/children").read_text().split())
        except (FileNotFoundError, ProcessLookupError):
            continue  # the thread ended between the listing and the read
    return found


def state(pid: int) -> str:
    """One letter, as ``ps`` shows it; empty when there is no such process."""
    fields = _stat(pid)
    return fields[0] if fields else ""


def _threads(pid: int) -> list[str]:
    try:
        return os.listdir(f"/proc/{pid}/task")  # noqa: PTH208  names, and a process that may be gone
    except (FileNotFoundError, ProcessLookupError):
        return []  # it ended


def _cpu_seconds(pid: int) -> float:
    """Nothing for one that ended: who waited for it has its time."""
    return sum(int(field) for field in _stat(pid)[11:15]) / _TICKS


def _stat(pid: int) -> list[str]:
    """The fields of its stat after the name, from the state on; none when it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def _peak_bytes(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0  # it ended
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))
