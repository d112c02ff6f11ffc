"""The platform in about a minute: three teams share eight simulated GPUs, and a bucket becomes a directory.

``python demo/demo.py`` plays both acts, ``python demo/demo.py sharing`` or ``storage`` one of them. Everything runs in
a temporary directory, on a server of its own.

The acts are a process of their own, in a session of its own (``show.py``). This one only waits: for their end, or for a
signal. Ctrl-C at a terminal therefore reaches nothing but this process, which ends everything else in order, however
often it is pressed (``ending.py``).
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from ending import adopt_orphans, end_everything

ACTS = ("sharing", "storage")
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


class Signals:
    """Signals become bytes in a pipe: none of them interrupts this process, wherever it is."""

    def __init__(self) -> None:
        self._pipe, write = os.pipe()
        os.set_blocking(write, False)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        for number in (*ENDING, signal.SIGCHLD):
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup and & ask for that
                signal.signal(number, lambda *_: None)

    def wait(self) -> int:
        """The next one."""
        return os.read(self._pipe, 1)[0]

    def asked_to_end(self) -> int | None:
        """The first of those that came meanwhile."""
        os.set_blocking(self._pipe, False)
        with contextlib.suppress(BlockingIOError):
            while True:
                number = self.wait()
                if number in ENDING:
                    return number
        return None


def main() -> int:
    signals = Signals()
    parser = argparse.ArgumentParser(description="Show what PaddleFlow does, in about a minute.")
    parser.add_argument("acts", nargs="*", metavar="ACT", help="sharing, storage; default: both")
    acts = parser.parse_args().acts or list(ACTS)
    if unknown := [act for act in acts if act not in ACTS]:
        parser.error(f"there is no act {unknown[0]}; there are {', '.join(ACTS)}")
    adopt_orphans()
    directory = Path(tempfile.mkdtemp(prefix="paddleflow-demo-"))
    number: int | None = None
    code = 1
    try:
        show = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("show.py")), str(directory), *acts],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        number = wait_for(show, signals)
        if number is not None:
            say("\nstopping ... ", cursor=True)
            show.kill()
        code = show.wait()
    finally:
        problems = end_everything(directory)
        number = number or signals.asked_to_end()
        if number is not None:
            say("stopped\n")
        for problem in problems:
            say(f"{problem}\n")
    if number is not None:
        return 128 + number
    return (128 - code if code < 0 else code) or (1 if problems else 0)


def wait_for(show: subprocess.Popen[bytes], signals: Signals) -> int | None:
    """The signal that came first; None: the show is over."""
    while show.poll() is None:
        number = signals.wait()
        if number in ENDING:
            return number
    return None


def say(text: str, *, cursor: bool = False) -> None:
    """The terminal may be gone, or whoever read the output."""
    show_cursor = "\x1b[?25h" if cursor and sys.stdout.isatty() else ""  # a live table had hidden it
    with contextlib.suppress(OSError):
        os.write(sys.stdout.fileno(), (show_cursor + text).encode())


if __name__ == "__main__":
    sys.exit(main())
