"""How the end of a task is told, in a status and one true sentence. Pure. Host side: light."""

from __future__ import annotations

import signal

SUCCEEDED = "succeeded"
FAILED = "failed"
NEVER_STARTED = "stopped by request before it started"


class Ending:
    """What the supervisor saw when the main process was gone."""

    __slots__ = ("exit_code", "memory_limit", "oom_kills", "signal", "stop_grace_s", "was_killed_after_grace")

    def __init__(
        self,
        *,
        wait_status: int,
        oom_kills: int = 0,
        memory_limit: str = "",
        stop_grace_s: float | None = None,
        was_killed_after_grace: bool = False,
    ) -> None:
        self.signal: int | None = None
        self.exit_code: int | None = None
        if wait_status & 0x7F:
            self.signal = wait_status & 0x7F
        else:
            self.exit_code = wait_status >> 8
        self.oom_kills = oom_kills
        self.memory_limit = memory_limit
        self.stop_grace_s = stop_grace_s
        self.was_killed_after_grace = was_killed_after_grace

    @property
    def status(self) -> str:
        return SUCCEEDED if self.exit_code == 0 and self.stop_grace_s is None else FAILED

    def describe(self) -> str:
        if self.stop_grace_s is not None:
            return self._describe_stop()
        if not self.oom_kills:
            return _how(self.exit_code, self.signal)
        memory = f"out of memory (limit {self.memory_limit})" if self.memory_limit else "out of memory"
        # A shell reports a killed child as 128 + the signal.
        if self.signal == signal.SIGKILL or self.exit_code == 128 + signal.SIGKILL:
            return f"killed: {memory}"
        return f"{_how(self.exit_code, self.signal)}; a process of the task was killed: {memory}"

    def _describe_stop(self) -> str:
        if self.was_killed_after_grace:
            return f"stopped by request, killed after {self.stop_grace_s:g} s grace"
        if self.signal == signal.SIGTERM:
            return "stopped by request (SIGTERM)"
        if self.exit_code == 0:
            return "stopped by request"
        return f"stopped by request, {_how(self.exit_code, self.signal)}"


def _how(exit_code: int | None, number: int | None) -> str:
    if number is None:
        return f"exit code {exit_code}"
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"SIGRT{number}"  # Real-time signals have no name of their own.
    return f"killed by signal {number} ({name})"
