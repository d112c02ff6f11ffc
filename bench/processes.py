"""Child processes of the bench: output to a file, stopped by their own id, measured through /proc."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

STOP_PATIENCE_S = 15.0
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class BenchError(Exception):
    """A measurement could not be made; the sentence says why."""


class Missing(BenchError):
    """A peer is not installed here. Its figures are left out and the table says so."""


def free_ports(count: int) -> list[int]:
    """Ports nobody listens on at this moment, all different."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


def wait_until(condition: Callable[[], bool], *, what: str, timeout_s: float, every_s: float = 0.02) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise BenchError(f"waited {timeout_s:g} s for {what}")
        time.sleep(every_s)


@contextmanager
def running(argv: Sequence[str], log: Path, env: Mapping[str, str] | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """A daemon for the length of the block: TERM at the end, KILL if it does not listen."""
    with log.open("ab") as output:
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=env)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(STOP_PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def require_alive(process: subprocess.Popen[bytes], log: Path) -> None:
    code = process.poll()
    if code is not None:
        tail = log.read_text(errors="replace")[-2000:]
        raise BenchError(f"{process.args!r} ended with {code}:\n{tail}")


def resident_bytes(pid: int) -> int:
    """Memory held by a process and its descendants."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * PAGE_BYTES + sum(resident_bytes(child) for child in _children(pid))


def _children(pid: int) -> list[int]:
    found: list[int] = []
    for thread in Path(f"/proc/{pid}/task").iterdir():
        try:
            found += [int(child) for child in (thread / "children").read_text().split()]
        except FileNotFoundError:
            continue  # the thread ended between the listing and the read
    return found
