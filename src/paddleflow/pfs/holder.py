"""The process that keeps a mount alive: ``python -m paddleflow.pfs.holder``, its plan as JSON on stdin.

It mounts, keeps the /dev/fuse descriptor and the table of backing files, and starts the front, which does all the work.
When the front dies, another takes over at once: callers wait for a moment and see no error. It is small so that there
is little to go wrong: it imports next to nothing, never looks at the mount (that would be asking itself), and writes no
log but a line when something ends.

Another front stands by, with its program loaded: a takeover then takes milliseconds, also on a busy machine.

It ends when the mount is gone, whoever took it down. SIGTERM, SIGINT: unmount. SIGHUP: a new front, for a new version
of the program.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import json
import os
import select
import signal
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from paddleflow.domain.errors import Invalid, PaddleFlowError, invalid_field
from paddleflow.pfs.fuse import device, holding, negotiation
from paddleflow.pfs.fuse.negotiation import Negotiated, Stacked, Wanted

QUICK_DEATHS = 10
QUICK_S = 10.0
PAUSE_S = 0.5
FIRST_TRIES = 3
"""A front that never came to serve is tried so often before the mount is given up."""
PR_SET_NAME = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldPlan:
    mountpoint: str
    source: str
    """What ``df`` shows."""
    front_argv: tuple[str, ...]
    front: Mapping[str, Any]
    """The front's own plan; the holder does not look inside."""
    backing_dirs: tuple[str, ...] = ()
    """Where the files will lie that the kernel is to read by itself: passthrough is tried there."""
    read_only: bool = False
    allow_other: bool = False
    dataset: bool = False
    passthrough: bool = True
    ready_fd: int | None = None
    """Inherited; gets one line of JSON when the mount works or has failed."""
    detach: bool = False
    """Become a session of its own, in the background."""
    lazy: bool = False
    """On SIGTERM, a mount that is in use is detached (it ends with its last user) instead of staying."""
    grace_s: float = 30.0
    """How long the front has to finish after the mount is gone."""
    log: str = ""
    """File that the output of the holder and its fronts goes to; empty: wherever ours goes."""

    @classmethod
    def from_json(cls, text: str) -> HoldPlan:
        try:
            data = json.loads(text)
        except ValueError as error:
            raise Invalid(f"the plan of a mount must be JSON on standard input: {error}") from error
        for field in ("mountpoint", "source", "front_argv", "front"):
            if field not in data:
                raise invalid_field(field, "the plan of a mount must have it")
        known = {name: data[name] for name in cls.__dataclass_fields__ if name in data}
        known["front_argv"] = tuple(known["front_argv"])
        known["backing_dirs"] = tuple(known.get("backing_dirs", ()))
        return cls(**known | {"mountpoint": os.path.abspath(known["mountpoint"])})


def establish(plan: HoldPlan) -> tuple[device.Mounted, Negotiated]:
    """Mount and come to terms with the kernel; a cache on a stacked filesystem needs a second go, see ``Wanted``."""
    place = device.Place(
        mountpoint=plan.mountpoint,
        source=plan.source,
        read_only=plan.read_only or plan.dataset,
        allow_other=plan.allow_other,
    )
    for depth in (1, 2):
        mounted = device.mount(place)
        wanted = Wanted(dataset=plan.dataset, passthrough=plan.passthrough, stack_depth=depth)
        try:
            negotiated = negotiation.negotiate(mounted.fuse_fd, wanted, plan.backing_dirs)
        except Stacked:
            device.unmount(plan.mountpoint, mounted.way, lazy=True)
            os.close(mounted.fuse_fd)
        except BaseException:
            device.unmount(plan.mountpoint, mounted.way, lazy=True)
            raise
        else:
            number = device.device_of(plan.mountpoint)
            if number is not None:
                device.set_read_ahead(number)
            return mounted, negotiated
    raise AssertionError("a stack depth of 2 is never refused as too low")


class SignalBox:
    """Signals that came, to be looked at in the loop. Installed before anything is mounted, so that none of them ends
    us and leaves a mount behind."""

    def __init__(self) -> None:
        self.came: list[int] = []
        self.fd, self._wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
            signal.signal(number, lambda number, _: self.came.append(number))

    def wake(self) -> None:
        os.write(self._wake, b"\0")


class Holder:
    def __init__(self, plan: HoldPlan, mounted: device.Mounted, negotiated: Negotiated, signals: SignalBox) -> None:
        self._plan = plan
        self._front_plan = plan.front
        self._mounted = mounted
        self._negotiated = negotiated
        self._table_fd = holding.make_table()
        self._line: socket.socket | None = None
        self._pid = 0
        self._spare: tuple[int, socket.socket] | None = None
        self._generation = 0
        self._has_served = False
        self._failure = ""
        self._deaths: deque[float] = deque(maxlen=QUICK_DEATHS)
        self._signals = signals
        self._unmounting: threading.Thread | None = None
        self._deadline: float | None = None
        """By when the front must have ended, once the mount is gone."""

    def run(self) -> int:
        while True:
            if not self._pid:
                if self.is_over() or self._is_hopeless():
                    return self._finish()
                self._pause_if_dying_quickly()
                self._start_front()
                continue
            self._wait()
            while self._signals.came:
                self._on_signal(self._signals.came.pop(0))
            self._end_straggler()
            self._reap_spare()
            self._reap_front()

    def is_over(self) -> bool:
        """Whether the mount is gone. Asked only when no front listens: whoever polls this descriptor is woken up by
        every request."""
        gone = select.poll()
        gone.register(self._mounted.fuse_fd, 0)
        return bool(gone.poll(0))

    # The front

    def _start_front(self) -> None:
        """Hand the mount to the one that stands by, or else to a new one."""
        started = self._spare or self._start_process()
        self._spare = None
        if started is None:
            return
        self._pid, self._line = started
        document = holding.into_memory(
            {"negotiated": asdict(self._negotiated), "plan": self._front_plan, "generation": self._generation}
        )
        try:
            holding.send(self._line, {"say": "welcome"}, (self._mounted.fuse_fd, self._table_fd, document))
        except OSError as error:
            tell(f"the front ended before it was handed the mount: {error.strerror}")
        finally:
            os.close(document)
        self._generation += 1

    def _start_process(self) -> tuple[int, socket.socket] | None:
        """A front that has loaded its program and waits for its welcome."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            try:
                pid = self._spawn(theirs)
            except OSError as error:
                ours.close()
                self._not_spawned(error)
                return None
        _set_oom_score(pid, ORDINARY_OOM_SCORE)
        return pid, ours

    def _stand_by(self) -> None:
        """Start the next front now: when this one dies, callers need not wait for a program to be loaded."""
        if self._spare is None and self._unmounting is None:
            self._spare = self._start_process()

    def _dismiss_spare(self) -> None:
        if self._spare is not None:
            pid, line = self._spare
            self._spare = None
            line.close()  # it was waiting for a word, and ends without one
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)

    def _reap_spare(self) -> None:
        if self._spare is None:
            return
        pid, line = self._spare
        ended, _ = os.waitpid(pid, os.WNOHANG)
        if ended:
            self._spare = None
            line.close()

    def _spawn(self, line: socket.socket) -> int:
        # Above the number that the front will find it under, so that nothing is overwritten on the way.
        high = fcntl.fcntl(line, fcntl.F_DUPFD_CLOEXEC, holding.FRONT_FD + 1)
        try:
            return os.posix_spawnp(
                self._plan.front_argv[0],
                self._plan.front_argv,
                os.environ,
                file_actions=[(os.POSIX_SPAWN_DUP2, high, holding.FRONT_FD)],
                setpgroup=0,
                setsigmask=(),
                setsigdef=(signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE),
            )
        finally:
            os.close(high)

    def _not_spawned(self, error: OSError) -> None:
        sentence = f"{self._plan.front_argv[0]}, which is to serve the mount, cannot be started: {error.strerror}"
        if not self._has_served:
            self._failure = sentence
            return
        if self._pid:
            return  # one that would only stand by; whether it can be started matters when it is needed
        # It did start before, so there is hope: no memory for a moment, or the program is just being replaced.
        tell(sentence)
        time.sleep(PAUSE_S)

    def _reap_front(self) -> None:
        pid, status = os.waitpid(self._pid, os.WNOHANG)
        if not pid:
            return
        self._pid = 0
        if self._line is not None:
            # What it still said before it died counts.
            self._line.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                while self._hear():
                    pass
            self._hang_up()
        code = os.waitstatus_to_exitcode(status)
        if code:
            tell(f"the front ended with {code if code > 0 else signal.Signals(-code).name}")
        self._deaths.append(time.monotonic())

    def _is_hopeless(self) -> bool:
        if self._failure:
            return True
        if not self._has_served and self._generation >= FIRST_TRIES:
            self._failure = "the process that serves the mount does not start; its output says why"
            return True
        return False

    def _pause_if_dying_quickly(self) -> None:
        if len(self._deaths) == QUICK_DEATHS and self._deaths[-1] - self._deaths[0] < QUICK_S:
            time.sleep(PAUSE_S)

    # What is said

    def _wait(self) -> None:
        ready = select.poll()
        ready.register(self._signals.fd, select.POLLIN)
        if self._line is not None:
            ready.register(self._line, select.POLLIN)
        pause = None if self._deadline is None else max(0.0, self._deadline - time.monotonic()) * 1000
        for fd, _ in ready.poll(pause):
            if fd == self._signals.fd:
                os.read(self._signals.fd, 4096)
            elif self._line is not None and fd == self._line.fileno() and not self._hear():
                self._hang_up()

    def _hear(self) -> bool:
        """One message of the front; False when it is gone."""
        assert self._line is not None
        try:
            message, fds = holding.receive(self._line)
        except ConnectionError:
            return False
        if message is None:
            return False
        try:
            self._on_message(message, fds)
        finally:
            for fd in fds:
                os.close(fd)
        return True

    def _on_message(self, message: holding.Message, fds: list[int]) -> None:
        if "ask" in message:
            self._answer(message, fds)
        elif message["say"] == "serving":
            if not self._has_served:
                self._has_served = True
                report(self._plan, self._success())
            self._stand_by()
        elif message["say"] == "failed":
            self._failure = message["why"]
        elif message["say"] == "plan":
            self._front_plan = holding.from_memory(os.dup(fds[0]))
        elif message["say"] == "unmount":
            self._unmount(lazy=message["lazy"])

    def _answer(self, message: holding.Message, fds: list[int]) -> None:
        assert self._line is not None
        answer = {"errno": 0, "backing": 0}
        try:
            if message["ask"] == "open_backing":
                answer["backing"] = negotiation.open_backing(self._mounted.fuse_fd, fds[0])
            else:
                negotiation.close_backing(self._mounted.fuse_fd, message["backing"])
        except OSError as error:
            answer["errno"] = error.errno or errno.EIO
        with contextlib.suppress(ConnectionError):  # the front that asked has died: its successor asks again
            holding.send(self._line, answer)

    def _success(self) -> dict[str, Any]:
        return {
            "mounted": True,
            "pid": os.getpid(),
            "way": self._mounted.way,
            "passthrough": self._negotiated.passthrough,
            "why": self._negotiated.passthrough_why,
            "resend": self._negotiated.resend,
            "dataset": self._negotiated.dataset,
        }

    # The end

    def _on_signal(self, number: int) -> None:
        if number == signal.SIGHUP and self._pid:
            self._dismiss_spare()  # it has loaded the program as it was
            os.kill(self._pid, signal.SIGTERM)
        elif number in (signal.SIGTERM, signal.SIGINT):
            self._unmount(lazy=self._plan.lazy)

    def _unmount(self, *, lazy: bool) -> None:
        """In a thread: what is still to be written goes through the front, which may have to ask us something."""
        if self._unmounting is None or not self._unmounting.is_alive():
            self._unmounting = threading.Thread(target=self._take_down, args=(lazy,))
            self._unmounting.start()

    def _take_down(self, lazy: bool) -> None:
        try:
            device.unmount(self._plan.mountpoint, self._mounted.way, lazy=False)
            self._deadline = time.monotonic() + self._plan.grace_s
            self._signals.wake()
        except OSError as error:
            if error.errno == errno.EBUSY and lazy:
                device.unmount(self._plan.mountpoint, self._mounted.way, lazy=True)
                return
            if error.errno == errno.EINVAL:
                return  # somebody else was faster
            reason = "it is in use" if error.errno == errno.EBUSY else error.strerror
            sentence = f"{self._plan.mountpoint} cannot be unmounted: {reason}"
            tell(sentence)
            line = self._line
            if line is not None:
                with contextlib.suppress(OSError):  # the front is gone: there is nobody to tell
                    holding.send(line, {"unmount_failed": sentence})

    def _end_straggler(self) -> None:
        """What it leaves behind (uploads that were under way) the next mount of the same state finishes."""
        if self._deadline is not None and time.monotonic() >= self._deadline and self._pid:
            self._deadline = None
            tell(f"the front did not end within {self._plan.grace_s:g} s of the unmount")
            os.kill(self._pid, signal.SIGKILL)

    def _hang_up(self) -> None:
        if self._line is not None:
            self._line.close()
            self._line = None

    def _finish(self) -> int:
        self._dismiss_spare()
        if self._failure:
            with contextlib.suppress(OSError):  # it may be gone already
                device.unmount(self._plan.mountpoint, self._mounted.way, lazy=True)
            if not self._has_served:
                report(self._plan, {"mounted": False, "error": self._failure})
            tell(self._failure)
        if self._unmounting is not None:
            self._unmounting.join()
        return 1 if self._failure else 0


def report(plan: HoldPlan, outcome: Mapping[str, Any]) -> None:
    if plan.ready_fd is None:
        return
    with contextlib.suppress(OSError):  # whoever wanted to know has left
        os.write(plan.ready_fd, json.dumps(outcome).encode() + b"\n")
        os.close(plan.ready_fd)


def tell(sentence: str) -> None:
    with contextlib.suppress(OSError):  # the log's disk is full: the mount matters more
        os.write(2, f"paddleflow holder {os.getpid()}: {sentence}\n".encode())


def settle(plan: HoldPlan) -> None:
    """Become the kind of process that nothing ends by accident."""
    if plan.detach:
        if os.fork():
            os._exit(0)
        os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    if plan.log:
        log = os.open(plan.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.close(log)
    os.close(nothing)
    if plan.ready_fd is not None:
        os.set_inheritable(plan.ready_fd, False)
    os.chdir("/")
    ctypes.CDLL(None).prctl(PR_SET_NAME, b"pfs-holder", 0, 0, 0)
    _set_oom_score(os.getpid(), -900)


def _oom_score() -> int:
    try:
        with open("/proc/self/oom_score_adj", encoding="ascii") as knob:
            return int(knob.read())
    except OSError:
        return 0


ORDINARY_OOM_SCORE = _oom_score()
"""What we were started with, and what fronts get: only the holder is to be spared."""


def _set_oom_score(pid: int, score: int) -> None:
    # Only the privileged may ask to be spared; then we are no worse off than anybody.
    with contextlib.suppress(OSError), open(f"/proc/{pid}/oom_score_adj", "w", encoding="ascii") as knob:
        knob.write(str(score))


def main() -> int:
    plan = HoldPlan.from_json(sys.stdin.read())
    settle(plan)
    signals = SignalBox()
    try:
        mounted, negotiated = establish(plan)
    except PaddleFlowError as error:
        report(plan, {"mounted": False, "error": error.message, "code": error.code})
        tell(error.message)
        return 1
    return Holder(plan, mounted, negotiated, signals).run()


if __name__ == "__main__":
    sys.exit(main())
