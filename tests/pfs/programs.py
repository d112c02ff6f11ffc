"""Programs that use a mount beside a test: they say how far they are, and are ended with the test."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.waiting import DEADLINE_S, wait_for

ROOT = Path(__file__).resolve().parents[2]


def start(started: contextlib.ExitStack, program: str, *arguments: object, **popen: Any) -> subprocess.Popen[bytes]:
    """In a process of its own, that complains on stderr. It is ended with ``started``: which is best left after the
    mount, because who waits for a mount cannot be killed."""
    argv = [sys.executable, "-c", textwrap.dedent(program), *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(argv, stderr=subprocess.PIPE, env=environment, **popen)
    started.callback(end, process)
    return process


def end(process: subprocess.Popen[Any]) -> None:
    process.kill()
    with contextlib.suppress(subprocess.TimeoutExpired):  # it waits for a mount that hangs, and ends with that
        process.communicate(timeout=DEADLINE_S)


def ended(process: subprocess.Popen[Any]) -> int:
    """How it ended."""
    wait_for(lambda: process.poll() is not None, f"{process.args} ends")
    return int(process.returncode)


def finish(users: Sequence[subprocess.Popen[bytes]]) -> None:
    """All of them end well, or the test fails with what the first one said."""
    for user in users:
        _, said = user.communicate()
        assert user.returncode == 0, said.decode()


def steps(*logs: Path) -> int:
    """How much was done by programs that write a byte for each thing they did."""
    return sum(log.stat().st_size for log in logs if log.exists())


def await_steps(users: Sequence[subprocess.Popen[bytes]], count: int, *logs: Path, deadline_s: float = 120.0) -> None:
    """Until so many things are done in all."""
    wait_for(lambda: steps(*logs) >= count or fail_with(users), f"{count} steps", deadline_s=deadline_s)


def await_more(users: Sequence[subprocess.Popen[bytes]], *logs: Path) -> None:
    """Until each has gone on for a while."""
    before = [steps(log) for log in logs]
    for count, log in zip(before, logs, strict=True):
        await_steps(users, count + 5, log)


def fail_with(users: Sequence[subprocess.Popen[bytes]]) -> None:
    """If one of them has failed already."""
    for user in users:
        if user.poll():
            said = b"".join(part or b"" for part in user.communicate())
            pytest.fail(said.decode())
