"""Run a suite so that nothing it starts outlives it, even if it is killed; fail if it leaves something behind.

usage: python tests/contained.py COMMAND...

The command runs in a temporary directory of its own (TMPDIR) and, where the user may create them, in PID and mount
namespaces of its own, which the kernel ends with their first process. Without namespaces the check at the end is the
same, but a kill of this program leaves the suite running.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36
_NAMESPACES = ["unshare", "--pid", "--mount", "--fork", "--kill-child=KILL", "--mount-proc"]
_INSIDE = "--inside"
_GRACE_S = int(os.environ.get("PADDLEFLOW_TEST_GRACE_S", "60"))
"""For processes that end by themselves once their directory is gone."""


def main(words: list[str]) -> int:
    if words[0] == _INSIDE:
        return _run(words[1:])
    directory = Path(tempfile.mkdtemp(prefix="pf"))
    directory.chmod(0o1777)  # as the one it stands for: some tests act as other users
    command = [sys.executable, __file__, _INSIDE, *words]
    if _has_namespaces():
        # The namespaces end also when this program is killed.
        command = ["setpriv", "--pdeathsig", "KILL", *_NAMESPACES, *command]
    # Ctrl-C reaches the suite by itself.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with subprocess.Popen(command, env={**os.environ, "TMPDIR": str(directory)}) as suite:
        signal.signal(signal.SIGTERM, lambda *_: suite.kill())
        code = suite.wait()
    left = [entry.name for entry in directory.iterdir() if not entry.name.startswith("pytest-of-")]
    if left:
        print(f"left in the temporary directory: {', '.join(left)}", file=sys.stderr)
        code = code or 1
    if code:
        print(f"directories of failed tests: {directory}", file=sys.stderr)
    else:
        shutil.rmtree(directory)
    return code


def _has_namespaces() -> bool:
    try:
        return subprocess.run([*_NAMESPACES, "true"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


def _run(command: list[str]) -> int:
    """Adopt and reap what the suite's processes leave behind, as init does."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    # A handler, not SIG_IGN, which the suite would inherit.
    signal.signal(signal.SIGINT, lambda *_: None)
    suite = os.posix_spawnp(command[0], command, os.environ)
    code = None
    while code is None:
        pid, status = os.wait()
        if pid == suite:
            code = os.waitstatus_to_exitcode(status)
    if code < 0:
        code = 128 - code
    if not _all_end():
        for pid, words in _descendants().items():
            print(f"left running: {pid} {words}", file=sys.stderr)
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        code = code or 1
    return code


def _all_end() -> bool:
    """Whether every process that is left ends by itself. The orphans among them are children of this one."""

    def time_is_up(*_: object) -> None:
        raise TimeoutError

    signal.signal(signal.SIGALRM, time_is_up)
    signal.alarm(_GRACE_S)
    try:
        while True:
            os.wait()
    except ChildProcessError:
        return True
    except TimeoutError:
        return False
    finally:
        signal.alarm(0)


def _descendants() -> dict[int, str]:
    """Process number to command line."""
    parents, words = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                status = (entry / "stat").read_text(errors="replace")
                words[int(entry.name)] = (entry / "cmdline").read_text(errors="replace").replace("\0", " ").strip()
            except OSError:
                continue  # ended meanwhile
            parents[int(entry.name)] = int(status.rpartition(")")[2].split()[1])
    found: dict[int, str] = {}
    generation = {os.getpid()}
    while generation:
        generation = {pid for pid, parent in parents.items() if parent in generation}
        found.update((pid, words[pid]) for pid in generation)
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
