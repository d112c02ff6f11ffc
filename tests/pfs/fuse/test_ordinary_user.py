"""Without root: by fusermount3, or in a user namespace. Both work, without passthrough, and say so.

Where /dev/fuse is closed to users, as on machines without the fuse package's rules, a private mount namespace gets one
that is open: that takes root to set up, and then everything runs as an ordinary user.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import paddleflow
from tests.pfs.fuse.mounting import TOY, holder_of, plan_for
from tests.pfs.programs import end, ended
from tests.waiting import wait_for

pytestmark = pytest.mark.usefixtures("as_root")

USER = 65534
AS_USER = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"]
ENVIRONMENT = {"PATH": os.environ["PATH"], "PYTHONPATH": str(Path(paddleflow.__file__).parents[1])}
OPEN_DEVICE = """
mkdir "$1/dev" && mount -t tmpfs none "$1/dev" && mknod "$1/dev/fuse" c 10 229 && chmod "$2" "$1/dev/fuse" &&
mount --bind "$1/dev/fuse" /dev/fuse && shift 2 && exec "$@"
"""


def in_namespace(where: Path, mode: str) -> list[str]:
    private = ["unshare", "--mount", "--propagation", "private"]
    return [*private, "sh", "-ec", OPEN_DEVICE, "sh", str(where), mode, *AS_USER]


def python_for_users() -> str | None:
    """One that an ordinary user can start, and from there start again: not every Python lies where everybody may go."""
    for python in (sys.executable, "/usr/bin/python3"):
        twice = ["sh", "-c", 'exec "$0" -c "import paddleflow.pfs.fuse.session"', python]
        if not subprocess.run([*AS_USER, *twice], check=False, capture_output=True, env=ENVIRONMENT).returncode:
            return python
    return None


@pytest.fixture
def place(open_path: Path) -> Path:
    if shutil.which("fusermount3") is None:
        pytest.skip("fusermount3 is not installed")
    if python_for_users() is None:
        pytest.skip("an ordinary user cannot run this program here")
    plan_for(open_path)
    for path in (open_path, *open_path.iterdir()):
        os.chown(path, USER, USER)
    return open_path


@contextmanager
def mounted(place: Path, prefix: list[str], **changes: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    python = python_for_users()
    assert python is not None
    plan = plan_for(place, front_argv=[python, str(TOY)], **changes)
    with holder_of(plan, prefix=prefix, python=python, env=ENVIRONMENT) as (holder, outcome):
        yield holder.pid, outcome
        if outcome["mounted"]:
            holder.terminate()
        assert ended(holder) == (0 if outcome["mounted"] else 1)


def inside(pid: int, program: str, *arguments: str, user_namespace: bool = False) -> None:
    """Run this as the user, where the mount is."""
    enter = ["nsenter", "--target", str(pid), "--mount"]
    enter += ["--user"] if user_namespace else AS_USER
    subprocess.run([*enter, python_for_users() or "", "-c", program, *arguments], check=True, cwd="/")


WORK = """
import os, sys
mount = sys.argv[1]
with open(mount + "/file", "wb") as file:
    file.write(b"x" * 300_000)
with open(mount + "/file", "rb") as file:
    assert file.read() == b"x" * 300_000
os.mkdir(mount + "/dir")
os.rename(mount + "/file", mount + "/dir/moved")
assert sorted(os.listdir(mount)) == ["dir"]
os.remove(mount + "/dir/moved")
os.rmdir(mount + "/dir")
"""


def test_by_the_systems_helper(place: Path) -> None:
    with mounted(place, in_namespace(place, "0666")) as (pid, outcome):
        assert outcome["mounted"], outcome
        assert outcome["way"] == "fusermount3"
        assert not outcome["passthrough"]
        assert "root" in outcome["why"]
        assert outcome["resend"]
        inside(pid, WORK, str(place / "mnt"))
        front, generation, _ = (place / "state/front.pid").read_text().split(" ", 2)
        os.kill(int(front), signal.SIGKILL)
        inside(pid, WORK, str(place / "mnt"))
        wait_for(lambda: int((place / "state/front.pid").read_text().split()[1]) > int(generation))


def test_in_use_it_stays(place: Path) -> None:
    with mounted(place, in_namespace(place, "0666")) as (pid, _):
        program = "import sys\nfile = open(sys.argv[1], 'w')\nprint('open', flush=True)\ninput()"
        enter = ["nsenter", "--target", str(pid), "--mount", *AS_USER, python_for_users() or ""]
        user = subprocess.Popen(
            [*enter, "-c", program, f"{place}/mnt/file"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/"
        )
        try:
            assert user.stdout is not None
            assert user.stdout.readline() == b"open\n"
            os.kill(pid, signal.SIGTERM)
            # The front is told last: then the holder listens again.
            wait_for(lambda: (place / "log").read_text().count("it is in use") == 2)
            wait_for(lambda: len(os.listdir(f"/proc/{pid}/task")) == 1)
            user.communicate(b"\n")
        finally:
            end(user)


def test_in_a_user_namespace(place: Path) -> None:
    own = ["unshare", "--user", "--map-root-user", "--mount"]
    if subprocess.run([*AS_USER, *own, "true"], check=False, capture_output=True).returncode:
        pytest.skip("users may not make namespaces here")
    with mounted(place, [*in_namespace(place, "0666"), *own]) as (pid, outcome):
        assert outcome["mounted"], outcome
        assert outcome["way"] == "mount"
        assert not outcome["passthrough"]
        inside(pid, WORK, str(place / "mnt"), user_namespace=True)


def test_a_closed_device_is_named(place: Path) -> None:
    with mounted(place, in_namespace(place, "0600")) as (_, outcome):
        assert not outcome["mounted"]
        assert "/dev/fuse" in outcome["error"]
        assert "fusermount3" in outcome["error"]


def test_letting_others_in_needs_the_administrators_word(place: Path) -> None:
    if "\nuser_allow_other" in Path("/etc/fuse.conf").read_text():
        pytest.skip("this machine allows it")
    with mounted(place, in_namespace(place, "0666"), allow_other=True) as (_, outcome):
        assert not outcome["mounted"]
        assert "user_allow_other in /etc/fuse.conf" in outcome["error"]
