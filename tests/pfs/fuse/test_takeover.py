"""The front is killed again and again; whoever uses the mount sees a pause and no error."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.pfs.fuse.mounting import ToyMount, toy_mount
from tests.pfs.programs import ended, fail_with, start
from tests.waiting import wait_for

pytestmark = [pytest.mark.usefixtures("as_root"), pytest.mark.timeout(300)]

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
        elif what == "held":
            assert not os.path.exists(f"{mount}/held-lookup-{rounds}")
            with open(f"{mount}/held-open-{rounds}", "wb") as file:
                file.write(b"abc")
            with open(f"{mount}/held-open-{rounds}", "rb") as file:
                assert file.read() == b"abc"
        elif what == "open":
            for number in range(20):
                with open(f"{mount}/file{number}", "rb") as file:
                    assert file.read() == b"x" * number
        elif what == "list":
            assert len(os.listdir(mount)) >= 21
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
    """Each time with a call under way: one that the front has read, and answers no more."""
    with ExitStack() as started, toy_mount(tmp_path, front={"mode": mode}) as mount:
        want = os.urandom(1_500_000)
        Path(mount.root, "big").write_bytes(want)
        for number in range(20):
            Path(mount.root, f"file{number}").write_bytes(b"x" * number)
        end = tmp_path / "end"
        workers = [
            start(started, WORK, mount.mountpoint, what, f"{mount.root}/big", str(end), stdout=subprocess.PIPE)
            for what in ("read", "lookup", "held", "open", "list", "write")
        ]
        for _ in range(KILLS):
            wait_for(lambda: mount.held() or fail_with(workers))
            mount.kill_front()
        end.touch()
        mount.let_go()
        outputs = [worker.communicate()[0] for worker in workers]
        assert [worker.returncode for worker in workers] == [0] * len(workers), outputs
        assert mount.front()[1] == KILLS
        rounds = {line.split()[0]: int(line.split()[1]) for line in map(bytes.decode, outputs)}
        assert all(rounds.values()), rounds


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
    """One that was not read yet, and one that was."""
    program = "import os,sys; os.stat(sys.argv[1])"
    with ExitStack() as started, toy_mount(tmp_path) as mount:
        Path(mount.root, "file").touch()
        for number in range(3):
            Path(mount.root, f"held-lookup-{number}").touch()
            pid, generation = mount.front()
            os.kill(pid, signal.SIGSTOP)
            caller = start(started, program, mount.path("file"))
            await_fuse(caller.pid)
            os.kill(pid, signal.SIGKILL)
            assert ended(caller) == 0
            mount.await_front(after=generation)
            caller = start(started, program, mount.path(f"held-lookup-{number}"))
            wait_for(mount.held)
            mount.kill_front()
            assert ended(caller) == 0


def test_making_a_directory_twice_is_making_it_once(tmp_path: Path) -> None:
    """It was made, and then the front died before it could say so."""
    with ExitStack() as started, toy_mount(tmp_path) as mount:
        for number in range(5):
            name = f"held-mkdir-{number}"
            caller = start(started, "import os,sys; os.mkdir(sys.argv[1])", mount.path(name))
            wait_for(mount.held)
            assert Path(mount.root, name).is_dir()
            mount.kill_front()
            assert ended(caller) == 0
        with pytest.raises(FileExistsError):
            os.mkdir(mount.path("held-mkdir-0"))


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
