"""The front is killed again and again; whoever uses the mount sees a pause and no error."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pfs.fuse.mounting import ToyMount, toy_mount, wait_for

pytestmark = [pytest.mark.usefixtures("as_root"), pytest.mark.timeout(110)]

KILLS = 20

WORK = """
import os, sys
mount, what = sys.argv[1], sys.argv[2]
want = open(sys.argv[3], "rb").read()
rounds = 0
try:
    while not os.path.exists(sys.argv[4]):
        if what == "read":
            with open(mount + "/big", "rb") as file:
                for start in range(0, len(want), 65536):
                    got = os.pread(file.fileno(), 65536, start)
                    assert got == want[start:start + 65536], (rounds, start)
        elif what == "lookup":
            for number in range(20):
                assert os.stat(f"{mount}/file{number}").st_size == number
                assert not os.path.exists(f"{mount}/absent{number}")
        elif what == "slow":
            assert os.stat(f"{mount}/slow").st_size == 3
            with open(f"{mount}/slow", "rb") as file:
                assert file.read() == b"abc"
        elif what == "open":
            for number in range(20):
                with open(f"{mount}/file{number}", "rb") as file:
                    assert file.read() == b"x" * number
        elif what == "list":
            assert len(os.listdir(mount)) >= 22
        elif what == "write":
            with open(f"{mount}/written", "wb") as file:
                file.write(want[:100_000])
            with open(f"{mount}/written", "rb") as file:
                assert file.read() == want[:100_000]
        rounds += 1
except BaseException as error:
    print(what, rounds, repr(error), flush=True)
    sys.exit(1)
print(what, rounds, "rounds", flush=True)
"""


@pytest.mark.parametrize(
    "mode",
    ["PASSTHROUGH", pytest.param("DIRECT", marks=pytest.mark.slow), pytest.param("CACHED", marks=pytest.mark.slow)],
)
def test_killed_twenty_times_under_load(tmp_path: Path, mode: str) -> None:
    with toy_mount(tmp_path, front={"mode": mode}) as mount:
        want = os.urandom(1_500_000)
        Path(mount.root, "big").write_bytes(want)
        Path(mount.root, "slow").write_bytes(b"abc")
        for number in range(20):
            Path(mount.root, f"file{number}").write_bytes(b"x" * number)
        end = tmp_path / "end"
        workers = [
            subprocess.Popen(
                [sys.executable, "-c", WORK, mount.mountpoint, what, f"{mount.root}/big", str(end)],
                stdout=subprocess.PIPE,
                text=True,
            )
            for what in ("read", "lookup", "slow", "open", "list", "write")
        ]
        for _ in range(KILLS):
            mount.kill_front()
            assert os.stat(mount.path("slow")).st_size == 3
        end.touch()
        outputs = [worker.communicate()[0] for worker in workers]
        assert [worker.returncode for worker in workers] == [0] * len(workers), outputs
        assert mount.front()[1] == KILLS


def test_open_files_keep_reading_while_nobody_serves(tmp_path: Path) -> None:
    with toy_mount(tmp_path) as mount:
        Path(mount.root, "file").write_bytes(b"content")
        fd = os.open(mount.path("file"), os.O_RDONLY)
        pid, _ = mount.front()
        os.kill(pid, signal.SIGSTOP)
        assert os.pread(fd, 7, 0) == b"content"
        os.kill(pid, signal.SIGKILL)
        assert os.pread(fd, 7, 0) == b"content"
        os.close(fd)


def test_a_file_that_stays_open_can_be_opened_again_after_a_takeover(tmp_path: Path) -> None:
    """The kernel refuses a second backing file for an open node, so the successor must know the first."""
    with toy_mount(tmp_path) as mount:
        Path(mount.root, "file").write_bytes(b"content")
        held = os.open(mount.path("file"), os.O_RDWR)
        for _ in range(3):
            mount.kill_front()
            assert Path(mount.path("file")).read_bytes() == b"content"
            assert os.pread(held, 7, 0) == b"content"
        os.pwrite(held, b"CONTENT", 0)
        os.close(held)
        mount.kill_front()
        assert Path(mount.path("file")).read_bytes() == b"CONTENT"
        assert "READ" not in mount.counts()


def test_a_call_under_way_is_answered_by_the_successor(tmp_path: Path) -> None:
    with toy_mount(tmp_path) as mount:
        Path(mount.root, "slow").write_bytes(b"abc")
        for _ in range(5):
            pid, generation = mount.front()
            os.kill(pid, signal.SIGSTOP)
            caller = subprocess.Popen([sys.executable, "-c", "import os,sys; os.stat(sys.argv[1])", mount.path("slow")])
            await_fuse(caller.pid)
            os.kill(pid, signal.SIGKILL)
            assert caller.wait(30) == 0
            mount.await_front(after=generation)


def test_making_a_directory_twice_is_making_it_once(tmp_path: Path) -> None:
    """It was made, and then the front died before it could say so."""
    with toy_mount(tmp_path) as mount:
        for number in range(5):
            caller = subprocess.Popen(
                [sys.executable, "-c", "import os,sys; os.mkdir(sys.argv[1])", mount.path(f"slow{number}")]
            )
            wait_for(Path(mount.root, f"slow{number}").exists)
            mount.kill_front()
            assert caller.wait(30) == 0
        with pytest.raises(FileExistsError):
            os.mkdir(mount.path("slow0"))


def test_quick_deaths_slow_the_restarts_down_but_never_end_them(tmp_path: Path) -> None:
    with toy_mount(tmp_path) as mount:
        for _ in range(14):
            mount.kill_front()
        assert os.listdir(mount.mountpoint) == []
        assert mount.holder.poll() is None


def await_fuse(pid: int) -> None:
    """Until this process waits for an answer of the mount."""
    wait_for(lambda: "request_wait_answer" in Path(f"/proc/{pid}/stack").read_text())


def test_the_holder_may_die_and_the_mount_lives_on(tmp_path: Path) -> None:
    with toy_mount(tmp_path) as mount:
        Path(mount.root, "file").write_bytes(b"content")
        mount.holder.kill()
        mount.holder.wait()
        assert Path(mount.path("file")).read_bytes() == b"content"
        pid, _ = mount.front()
        subprocess.run(["umount", mount.mountpoint], check=True)
        wait_for(lambda: not Path(f"/proc/{pid}").exists() or "Z" in Path(f"/proc/{pid}/stat").read_text())


def test_counts_start_anew_with_a_new_front(tmp_path: Path) -> None:
    with toy_mount(tmp_path) as mount:
        take(mount)
        before = mount.counts()["LOOKUP"]
        mount.kill_front()
        assert mount.counts().get("LOOKUP", 0) < before


def take(mount: ToyMount) -> None:
    for number in range(20):
        os.path.exists(mount.path(f"{number}"))
