"""What /proc tells about processes: who is whose descendant, when one began, what a session uses. Host side: light."""

from __future__ import annotations

import os

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Process:
    """One line of /proc/<pid>/stat, as far as anybody here needs it."""

    __slots__ = ("cpu_s", "parent", "pid", "resident_bytes", "session", "start_ticks", "state")

    def __init__(self, pid: int, fields: list[bytes]) -> None:
        self.pid = pid
        self.state = fields[0].decode()
        self.parent = int(fields[1])
        self.session = int(fields[3])
        self.cpu_s = sum(int(ticks) for ticks in fields[11:15]) / _TICKS_PER_S
        self.start_ticks = int(fields[19])
        self.resident_bytes = int(fields[21]) * _PAGE_BYTES


def find_process(pid: int) -> Process | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            line = file.read()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The name is in parentheses and may itself contain spaces and parentheses; the last one closes it.
    return Process(pid, line[line.rindex(b")") + 2 :].split())


def all_processes() -> list[Process]:
    found = (find_process(int(name)) for name in os.listdir("/proc") if name.isdigit())
    return [process for process in found if process is not None]


def descendants(ancestor: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for process in all_processes():
        children.setdefault(process.parent, []).append(process.pid)
    found: list[int] = []
    waiting = [ancestor]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def session_members(session: int, began_ticks: int) -> list[Process]:
    """The processes of a session whose leader began then.

    The kernel does not hand out a number again while a session still uses it. If the leader is alive with another
    start time, the session is over and the number belongs to a stranger; nothing older than the leader is ever ours.
    """
    leader = find_process(session)
    if leader is not None and leader.start_ticks != began_ticks:
        return []
    return [p for p in all_processes() if p.session == session and p.start_ticks >= began_ticks]


def boot_id() -> str:
    """Start times and process numbers mean something only within one boot."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()
