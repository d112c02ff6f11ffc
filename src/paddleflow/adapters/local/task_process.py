"""From fork to exec: how a task's main process comes to be. Host side: light.

The child waits until it is told to go; if its supervisor dies first it reads end of file and leaves without having
executed anything. That is what makes "never started" a fact and not a guess.
"""

from __future__ import annotations

import os
import resource
import signal

from paddleflow.adapters.local import layout, namespaces
from paddleflow.adapters.local.cgroups import TaskCgroups
from paddleflow.adapters.local.spec import TaskSpec

_GO = b"g"
_LONGEST_PROBLEM = 4096


class TaskProcess:
    """A forked child that has not executed anything yet, and the three pipes to it."""

    __slots__ = ("_go_fd", "output_fd", "pid", "problem_fd")

    def __init__(self, spec: TaskSpec, task_directory: str, cgroups: TaskCgroups | None, lock: int) -> None:
        """Fork. The supervisor's lock must not live on in the child: it says that the supervisor is alive."""
        go_read, self._go_fd = os.pipe()
        self.output_fd, output_write = os.pipe()
        self.problem_fd, problem_write = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            for fd in (lock, self._go_fd, self.output_fd, self.problem_fd):
                os.close(fd)
            _run_child(spec, task_directory, cgroups, (go_read, output_write, problem_write))
        for fd in (go_read, output_write, problem_write):
            os.close(fd)
        for fd in (self.output_fd, self.problem_fd):
            os.set_blocking(fd, False)

    def go(self) -> None:
        os.write(self._go_fd, _GO)
        os.close(self._go_fd)

    def read_problem(self) -> str:
        """Why the program could not be executed; empty once it was."""
        return os.read(self.problem_fd, _LONGEST_PROBLEM).decode(errors="replace")


def _run_child(spec: TaskSpec, task_directory: str, cgroups: TaskCgroups | None, pipes: tuple[int, int, int]) -> None:
    """Never returns: ends in exec, or in an exit after telling the problem."""
    go, output, problem = pipes
    try:
        os.setsid()
        _restore_signals()
        if os.read(go, 1) != _GO:
            os._exit(127)
        _attach_standard_files(output)
        os.umask(0o022)
        if cgroups:
            cgroups.enter()
        if spec.mounts:
            namespaces.show_mounts(spec.mounts, f"{task_directory}/{layout.NEW_ROOT}")
        os.chdir(spec.work_dir)
        if spec.cgroup_parents is None and spec.memory_bytes:
            resource.setrlimit(resource.RLIMIT_DATA, (spec.memory_bytes, spec.memory_bytes))
        _execute(spec)
    except Exception as error:  # noqa: BLE001 - nothing may unwind past a fork
        # Whatever it was, the supervisor tells it as the end of the task.
        os.write(problem, str(error).encode(errors="replace")[:_LONGEST_PROBLEM])
    finally:
        os._exit(127)


def _execute(spec: TaskSpec) -> None:
    try:
        os.execvpe(spec.argv[0], spec.argv, spec.env)
    except OSError as error:
        # The search along PATH would name the last place it looked at instead of what was asked for.
        raise OSError(error.errno, error.strerror, spec.argv[0]) from error


def _restore_signals() -> None:
    """Ignored signals stay ignored across exec, those of the server's parent too: SIGHUP under nohup, SIGINT in the
    background of a shell. A task begins with the defaults."""
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_DFL)
    signal.set_wakeup_fd(-1)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _attach_standard_files(output: int) -> None:
    null = os.open("/dev/null", os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
