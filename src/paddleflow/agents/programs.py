"""Running other programs from inside a task: start, watch, stop, and end as they ended.

Each child leads a process group of its own, so that it is told to stop once and by us, also where the runtime signals
every process of the task.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import FrameType

START_DEADLINE_S = 300.0
"""Tasks of one job start together, but images and caches make some of them late."""
_RETRY_S = 0.1
STOP_GRACE_S = 20.0


class Failed(Exception):
    """The sentence is what the task's log says before it ends."""


def say(sentence: str) -> None:
    sys.stderr.write(f"paddleflow: {sentence}\n")
    sys.stderr.flush()


class Program:
    def __init__(self, argv: Sequence[str], env: Mapping[str, str] | None = None) -> None:
        try:
            self._process = subprocess.Popen(argv, env=env, process_group=0)
        except OSError as error:
            raise Failed(f"cannot start {argv[0]}: {error.strerror}") from error
        self.fd = os.pidfd_open(self._process.pid)
        """Becomes readable when the program has ended."""

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    @property
    def exit_code(self) -> int:
        """As a shell would give it: above 128 when a signal ended the program."""
        code = self._process.wait()
        return code if code >= 0 else 128 - code

    def signal(self, number: int) -> None:
        # One that has ended already is what a signal was meant to bring about.
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def stop(self, grace_s: float = STOP_GRACE_S) -> None:
        self.signal(signal.SIGTERM)
        if not wait_ended((self,), grace_s):
            say(f"process {self._process.pid} did not end within {grace_s:g} s and is killed")
        self.signal(signal.SIGKILL)  # Also whatever the program left in its group.
        self._process.wait()


def wait_ended(programs: Sequence[Program], timeout_s: float | None = None) -> bool:
    """Until one of them has ended, or the time is up; whether one has."""
    poller = select.poll()
    for program in programs:
        poller.register(program.fd, select.POLLIN)
    return bool(poller.poll(None if timeout_s is None else timeout_s * 1000))


def on_stop_request(act: Callable[[int], None]) -> None:
    """Call ``act`` with the signal when this task is told to stop."""

    def handle(number: int, frame: FrameType | None) -> None:
        act(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, handle)


def split_endpoint(endpoint: str) -> tuple[str, int]:
    host, _, port = endpoint.rpartition(":")
    if not host or not port.isdigit():
        raise Failed(f"[{endpoint}] is not host:port")
    return host.strip("[]"), int(port)


def connect(
    endpoint: str, deadline_s: float = START_DEADLINE_S, go_on: Callable[[], bool] = lambda: True
) -> socket.socket:
    """A connection to somebody who may still be starting; ``go_on`` says whether waiting makes sense."""
    host, port = split_endpoint(endpoint)
    until = time.monotonic() + START_DEADLINE_S
    while True:
        try:
            connection = socket.create_connection((host, port), timeout=10)
        except OSError as error:
            if not go_on():
                raise Failed(f"nobody will answer at {endpoint}") from error
            if time.monotonic() > until:
                raise Failed(f"nobody answered at {endpoint} within {START_DEADLINE_S:g} s: {error}") from error
            time.sleep(_RETRY_S)
            continue
        connection.settimeout(None)
        return connection


def words_after(arguments: Sequence[str], usage: str) -> tuple[list[str], list[str]]:
    """What stands before ``--``, and the command line after it."""
    if "--" not in arguments or arguments[-1] == "--":
        raise Failed(f"usage: {usage}")
    at = list(arguments).index("--")
    return list(arguments[:at]), list(arguments[at + 1 :])


def run(main: Callable[[list[str]], int]) -> None:
    """The last line of each of these programs."""
    try:
        sys.exit(main(sys.argv[1:]))
    except Failed as problem:
        say(str(problem))
        sys.exit(1)
