"""One task's guardian: starts it, keeps its log, ends it when asked, and writes down how it ended. Host side: light.

A supervisor is a fork of the nursery. It holds the task's lock for life, needs neither the nursery nor the platform,
and as a subreaper it is the parent every orphan of the task falls back to, so that nothing of the task survives it.
"""

from __future__ import annotations

import codecs
import contextlib
import errno
import os
import select
import signal
import socket
import time

from paddleflow.adapters.local import kernel, layout, processes
from paddleflow.adapters.local.cgroups import TaskCgroups
from paddleflow.adapters.local.endings import FAILED, NEVER_STARTED, Ending
from paddleflow.adapters.local.logs import LogSink
from paddleflow.adapters.local.spec import TaskSpec
from paddleflow.adapters.local.task_process import TaskProcess

_CHUNK_BYTES = 65536
_KILL_PATIENCE_S = 10.0
_RETRY_LATER = (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM)


def warm_up() -> None:
    """In the nursery, before any fork: load what every supervisor and every task would otherwise load for itself."""
    import warnings  # noqa: F401 - os.execvpe imports it, in the child, each time

    codecs.lookup("ascii")
    processes.boot_id()
    processes.find_process(os.getpid())


def supervise(address: str) -> None:
    """Look after the task ``<job>/<task>``, if nobody does or did. The current directory is the runtime root."""
    try:
        os.chdir(f"{layout.JOBS}/{address}")
        lock = layout.acquire_lock(layout.LOCK)
    except FileNotFoundError:
        return  # Removed while the request was on its way.
    if lock is None or os.path.exists(layout.END) or os.path.exists(layout.STARTED):
        return
    document = layout.read_document(layout.SPEC)
    if document is None:
        return
    kernel.set_process_name("pf-supervisor")
    kernel.become_subreaper()
    try:
        _Supervisor(address, TaskSpec.from_document(document), lock).run()
    except OSError as error:
        if os.path.exists(layout.STARTED) or error.errno in _RETRY_LATER:
            # Started: the platform finds the lock free and cleans up. Not started: it asks again later.
            raise
        layout.write_end(".", {"status": FAILED, "message": f"could not start: {error}", "finished_at": time.time()})
    layout.notify(layout.ROOT_FROM_TASK, address)


def _outlast_shutdown() -> None:
    """When everybody on the host is told to end, the supervisor goes last. Called after the fork: a child that ignores
    TERM, if only for a moment, could miss the order to stop."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


class _Supervisor:
    def __init__(self, address: str, spec: TaskSpec, lock: int) -> None:
        self._address = address
        self._spec = spec
        self._lock = lock
        self._control = _bind_control()
        self._cgroups = TaskCgroups(spec.cgroup_parents, spec.cgroup_name) if spec.cgroup_parents else None
        self._wait_status: int | None = None
        self._has_children = True
        self._cpu_s = 0.0
        self._max_memory_bytes = 0
        self._problem = ""
        self._stop_grace_s: float | None = None
        self._kill_at: float | None = None
        self._was_killed_after_grace = False

    def run(self) -> None:
        layout.reserve_end(".")
        if os.path.exists(layout.STOP):
            self._write_end({"status": FAILED, "message": NEVER_STARTED})
            return
        self._log = LogSink(layout.LOG, self._spec.log_cap_bytes)
        child_died = _wakeup_on_child_death()
        try:
            self._prepare_cgroups()
            self._task = TaskProcess(self._spec, os.getcwd(), self._cgroups, self._lock)
            _outlast_shutdown()
            self._start()
        except OSError:
            # A child that was forked never got its word to go and leaves by itself: the attempt can be repeated.
            if self._cgroups:
                self._cgroups.remove()
            raise
        self._watch(child_died)
        self._kill_everything(child_died)
        self._drain_output()
        self._finish()

    def _prepare_cgroups(self) -> None:
        if not self._cgroups:
            return
        self._cgroups.create()
        if self._spec.memory_bytes:
            self._cgroups.limit_memory(self._spec.memory_bytes)
        if self._spec.cpu_milli:
            self._cgroups.limit_cpu(self._spec.cpu_milli, self._spec.host_cpus)

    def _start(self) -> None:
        pid = self._task.pid
        process = processes.find_process(pid)
        self._started_at = time.time()
        layout.write_document(
            layout.STARTED,
            {
                "pid": pid,
                "start_ticks": process.start_ticks if process else 0,
                "boot_id": processes.boot_id(),
                "started_at": self._started_at,
            },
        )
        self._task.go()
        layout.notify(layout.ROOT_FROM_TASK, self._address)

    def _watch(self, child_died: int) -> None:
        """Until the main process is gone, and after a stop until all are gone or the grace period is over."""
        poller = select.poll()
        for fd in (child_died, self._control.fileno(), self._task.output_fd, self._task.problem_fd):
            poller.register(fd, select.POLLIN)
        while self._wait_status is None or (self._kill_at is not None and self._has_children):
            if self._kill_at is not None and time.monotonic() >= self._kill_at:
                self._was_killed_after_grace = True
                return
            for fd, _ in poller.poll(self._poll_timeout_ms()):
                if fd == child_died:
                    os.read(fd, 512)
                    self._reap()
                elif fd == self._control.fileno():
                    self._control.recv(16)
                    self._reap()
                    self._obey_stop()
                elif fd == self._task.problem_fd:
                    self._problem = self._task.read_problem()
                    poller.unregister(fd)
                elif not self._pump():
                    poller.unregister(fd)

    def _poll_timeout_ms(self) -> float | None:
        return None if self._kill_at is None else max(0.0, self._kill_at - time.monotonic()) * 1000 + 1

    def _pump(self) -> bool:
        """Move what is there from the task to its log; False at the end of its output."""
        try:
            content = os.read(self._task.output_fd, _CHUNK_BYTES)
        except BlockingIOError:
            return True
        self._log.write(content)
        return bool(content)

    def _reap(self) -> None:
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                self._has_children = False
                return
            if pid == 0:
                return
            self._cpu_s += usage.ru_utime + usage.ru_stime
            self._max_memory_bytes = max(self._max_memory_bytes, usage.ru_maxrss * 1024)
            if pid == self._task.pid:
                self._wait_status = status

    def _obey_stop(self) -> None:
        """Begin to stop, or shorten the grace period of a stop under way. After the end there is nothing to obey."""
        order = layout.read_document(layout.STOP)
        if order is None or (self._wait_status is not None and self._stop_grace_s is None):
            return
        grace_s = float(order["grace_s"])
        kill_at = time.monotonic() + grace_s
        if self._kill_at is None or kill_at < self._kill_at:
            self._kill_at, self._stop_grace_s = kill_at, grace_s
        self._signal_group(signal.SIGTERM)

    def _signal_group(self, number: int) -> None:
        # The group may not exist yet (the child is about to make it) or no longer.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._task.pid, number)
        if self._wait_status is None:
            os.kill(self._task.pid, number)

    def _kill_everything(self, child_died: int) -> None:
        """Leave no process of the task behind, wherever it has hidden."""
        self._reap()
        deadline = time.monotonic() + _KILL_PATIENCE_S
        while self._has_children and time.monotonic() < deadline:
            if self._cgroups:
                self._cgroups.kill()
            for pid in processes.descendants(os.getpid()):
                # It may have ended meanwhile, or be a set-user-id program of another user, which is not ours to kill.
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            if select.select([child_died], [], [], 0.05)[0]:
                os.read(child_died, 512)
            self._pump()
            self._reap()

    def _drain_output(self) -> None:
        """What the task wrote last. Nobody of the task lives any more, so an empty pipe is the end."""
        while select.select([self._task.output_fd], [], [], 0)[0] and self._pump():
            pass
        self._log.close()

    def _finish(self) -> None:
        if not self._problem:
            with contextlib.suppress(BlockingIOError):
                self._problem = self._task.read_problem()
        oom_kills = 0
        if self._cgroups:
            oom_kills = self._cgroups.oom_kills()
            self._cpu_s = self._cgroups.cpu_s() or self._cpu_s
            self._max_memory_bytes = self._cgroups.max_memory_bytes() or self._max_memory_bytes
            self._cgroups.remove()
        ending = Ending(
            wait_status=signal.SIGKILL if self._wait_status is None else self._wait_status,
            oom_kills=oom_kills,
            memory_limit=self._spec.memory_text,
            stop_grace_s=self._stop_grace_s,
            was_killed_after_grace=self._was_killed_after_grace,
        )
        end: dict[str, object] = {"status": ending.status, "message": ending.describe()}
        if self._problem:
            end = {"status": FAILED, "message": f"could not start: {self._problem}"}
        elif ending.signal is None:
            end["exit_code"] = ending.exit_code
        else:
            end["signal"] = ending.signal
        self._write_end(
            {
                **end,
                "started_at": None if self._problem else self._started_at,
                "cpu_s": self._cpu_s,
                "max_memory_bytes": self._max_memory_bytes,
            }
        )

    def _write_end(self, document: dict[str, object]) -> None:
        # The end is the last thing done here: from then on the directory may be deleted at any moment.
        self._control.close()
        os.unlink(layout.CONTROL_SOCKET)
        layout.write_end(".", {**document, "finished_at": time.time()})


def _bind_control() -> socket.socket:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(layout.CONTROL_SOCKET)
    control = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    control.bind(layout.CONTROL_SOCKET)
    os.chmod(layout.CONTROL_SOCKET, 0o600)
    return control


def _wakeup_on_child_death() -> int:
    """A descriptor that becomes readable when a child dies."""
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    return read_end
