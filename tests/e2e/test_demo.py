"""The demo, interrupted at any moment, leaves nothing behind: no process, no mount, no directory, and no traceback.

That it plays to its end is tested by ``make smoke``.
"""

from __future__ import annotations

import fcntl
import os
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.waiting import wait_for

pytestmark = pytest.mark.timeout(600)

LONGEST_S = 300.0
"""The demo takes longer than a test usually waits for anything, beside others much longer."""
DEMO = Path(__file__).parents[2] / "demo" / "demo.py"

AT_TERMINAL = """
import os, sys
os.login_tty(int(sys.argv[1]))
os.execv(sys.executable, [sys.executable, *sys.argv[2:]])
"""

needs_fuse = pytest.mark.skipif(not os.path.exists("/dev/fuse"), reason="there is no /dev/fuse on this machine")


@dataclass
class Demo:
    """In a session of its own: a signal to its group is what Ctrl-C is to a command at a terminal."""

    process: subprocess.Popen[bytes]
    temporary: Path
    log: Path

    def has_said(self, text: str) -> Callable[[], bool]:
        return lambda: self._runs() and text in self.said()

    def has_made(self, pattern: str) -> Callable[[], bool]:
        return lambda: self._runs() and any(self.temporary.glob(pattern))

    def _runs(self) -> bool:
        if self.process.poll() is not None:
            pytest.fail(f"it ended by itself: {self.said()}")
        return True

    def said(self) -> str:
        return self.log.read_text()

    def check_reach(self) -> None:
        """Ctrl-C reaches nothing but the process that ends the others."""
        for pid, words in self._processes():
            with suppress(ProcessLookupError):  # ended meanwhile
                assert pid == self.process.pid or os.getpgid(pid) != self.process.pid, f"Ctrl-C reaches {words}"

    def interrupt(self, number: signal.Signals, *, times: int) -> None:
        os.killpg(self.process.pid, number)
        for _ in range(times - 1):
            wait_for(lambda: "stopping ..." in self.said(), "the first signal's effect")
            os.killpg(self.process.pid, number)

    def is_gone_after(self, number: signal.Signals) -> None:
        assert self.process.wait() == 128 + number, self.said()
        left = self.left()
        assert not any(left.values()), left

    def left(self) -> dict[str, list[str]]:
        mounts = Path("/proc/self/mounts").read_text().splitlines()
        return {
            "processes": [f"{pid} {words}" for pid, words in self._processes()],
            "mounts": [line for line in mounts if str(self.temporary) in line],
            "files": [entry.name for entry in self.temporary.iterdir()],
        }

    def _processes(self) -> Iterator[tuple[int, str]]:
        """Whoever was told of the temporary directory, which all of the demo were."""
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                with suppress(OSError):  # ended meanwhile
                    words = (entry / "cmdline").read_bytes()
                    if os.fsencode(self.temporary) in words + (entry / "environ").read_bytes():
                        yield int(entry.name), os.fsdecode(words.replace(bytes(1), b" "))


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Demo]]:
    started: list[Demo] = []

    def start(*acts: str, terminal: int | None = None) -> Demo:
        temporary, log = tmp_path / "tmp", tmp_path / "log"
        temporary.mkdir()
        log.touch()
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-c", AT_TERMINAL, str(terminal), DEMO, *acts]
                if terminal is not None
                else [sys.executable, DEMO, *acts],
                env={**os.environ, "TMPDIR": str(temporary), "TERM": "xterm"},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=terminal is None,
                pass_fds=() if terminal is None else (terminal,),
            )
        started.append(Demo(process, temporary, log))
        return started[-1]

    yield start
    for demo in started:
        if demo.process.poll() is None:
            demo.process.terminate()
            demo.process.wait()


SIGINT, SIGTERM, SIGHUP = signal.SIGINT, signal.SIGTERM, signal.SIGHUP


@pytest.mark.parametrize(
    ("text", "number", "times"),
    [
        ("is up on port", SIGINT, 2),
        ("elastic     starts on", SIGTERM, 1),
        ("vision comes", SIGINT, 1),
        ("pretrain    starts on", SIGHUP, 2),
    ],
)
def test_interrupted_while_jobs_run(start: Callable[..., Demo], text: str, number: signal.Signals, times: int) -> None:
    demo = start("sharing")
    wait_for(demo.has_said(text), text, deadline_s=LONGEST_S)
    demo.check_reach()
    demo.interrupt(number, times=times)
    demo.is_gone_after(number)
    assert "Traceback" not in demo.said()
    assert demo.said().endswith("\nstopping ... stopped\n")


@pytest.mark.parametrize("pattern", ["paddleflow-demo-*", "*/paddleflow.yaml", "*/state"])
def test_interrupted_while_the_server_starts(start: Callable[..., Demo], pattern: str) -> None:
    demo = start()
    wait_for(demo.has_made(pattern), pattern, deadline_s=LONGEST_S)
    demo.interrupt(SIGINT, times=1)
    demo.is_gone_after(SIGINT)
    assert "Traceback" not in demo.said()
    assert demo.said().endswith("\nstopping ... stopped\n")


@needs_fuse
@pytest.mark.parametrize(
    ("pattern", "number", "times"),
    [
        ("*/storage/s3/pictures/train", SIGINT, 1),  # the data is being made
        ("*/storage/s3.log", SIGTERM, 2),  # the S3 server starts
        ("*/storage/mnt", SIGINT, 2),  # the mount begins
        ("*/storage/cache/*", SIGINT, 1),
    ],
)
def test_interrupted_while_the_mount_is_made(
    start: Callable[..., Demo], pattern: str, number: signal.Signals, times: int
) -> None:
    demo = start("storage")
    wait_for(demo.has_made(pattern), pattern, deadline_s=LONGEST_S)
    demo.interrupt(number, times=times)
    demo.is_gone_after(number)
    assert "Traceback" not in demo.said()
    assert demo.said().endswith("\nstopping ... stopped\n")


@needs_fuse
@pytest.mark.parametrize(
    ("text", "number", "times"),
    [
        ("mount success", SIGINT, 1),  # a reader reads, from S3
        ("beside the local disk", SIGHUP, 1),  # the mount's process is killed
    ],
)
def test_interrupted_while_the_mount_is_read(
    start: Callable[..., Demo], text: str, number: signal.Signals, times: int
) -> None:
    demo = start("storage")
    wait_for(demo.has_said(text), text, deadline_s=LONGEST_S)
    demo.check_reach()
    demo.interrupt(number, times=times)
    demo.is_gone_after(number)
    assert "Traceback" not in demo.said()
    assert demo.said().endswith("stopped\n")


@needs_fuse
def test_a_mount_that_somebody_else_uses_is_detached_and_the_demo_says_so(start: Callable[..., Demo]) -> None:
    demo = start("storage")
    wait_for(demo.has_said("mount success"), "the mount", deadline_s=LONGEST_S)
    (checkpoint,) = demo.temporary.glob("*/storage/mnt/checkpoint.bin")
    with checkpoint.open("rb"):
        demo.interrupt(SIGINT, times=2)
        demo.is_gone_after(SIGINT)
    assert "the mount was detached by force, because it could not be unmounted" in demo.said()
    assert "Traceback" not in demo.said()


def test_ctrl_c_at_a_terminal(start: Callable[..., Demo]) -> None:
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 24, 80, 0, 0))
    demo = start("sharing", terminal=theirs)
    os.close(theirs)
    screen = b""
    while b"GPUs in use" not in screen:
        screen += os.read(ours, 65536)
    os.write(ours, b"\x03\x03")
    with suppress(OSError):  # the terminal's last user is gone
        while more := os.read(ours, 65536):
            screen += more
    os.close(ours)
    demo.is_gone_after(SIGINT)
    assert b"Traceback" not in screen
    assert screen.rpartition(b"\x1b[?25")[2].startswith(b"h"), "the cursor is there again"
    assert screen.endswith(b"stopping ... stopped\r\n")
