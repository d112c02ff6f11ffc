"""The process that keeps the mount: how it begins, what it says, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from paddleflow.domain.errors import Invalid
from paddleflow.pfs.fuse import device
from paddleflow.pfs.holder import HoldPlan
from tests.pfs.fuse.mounting import ToyMount, holder_of, plan_for, toy_mount
from tests.pfs.mounts import Watch, break_mount
from tests.pfs.programs import ended
from tests.waiting import wait_for

pytestmark = pytest.mark.usefixtures("as_root")


def is_running(pid: int) -> bool:
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False


def memory_kb(pid: int) -> int:
    (line,) = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS")]
    return int(line.split()[1])


def test_it_is_small_and_named(tmp_path: Path) -> None:
    with toy_mount(tmp_path) as mount:
        assert memory_kb(mount.holder.pid) < 20_000
        assert Path(f"/proc/{mount.holder.pid}/comm").read_text() == "pfs-holder\n"
        assert mount.outcome == {
            "mounted": True,
            "pid": mount.holder.pid,
            "way": "mount",
            "passthrough": True,
            "why": "",
            "resend": True,
            "dataset": False,
        }


def test_the_mount_says_what_it_is(tmp_path: Path) -> None:
    with toy_mount(tmp_path, source="bucket/data", allow_other=True) as mount:
        (line,) = [line for line in Path("/proc/mounts").read_text().splitlines() if mount.mountpoint in line]
        source, _, kind, options, *_ = line.split()
        assert (source, kind) == ("bucket/data", "fuse.paddleflow")
        assert {"nosuid", "nodev", "allow_other", "default_permissions"} <= set(options.split(","))


def test_others_may_come_in_only_when_allowed(open_path: Path) -> None:
    look = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "ls", str(open_path / "mnt")]
    with toy_mount(open_path):
        assert subprocess.run(look, check=False, capture_output=True).returncode != 0
    with toy_mount(open_path, allow_other=True):
        assert subprocess.run(look, check=False, capture_output=True).returncode == 0


def test_no_secret_in_arguments_or_environment(tmp_path: Path) -> None:
    with toy_mount(tmp_path) as mount:
        assert "hunter2" in Path(mount.state, "front.pid").read_text(), "the front has it"
        for pid in (mount.holder.pid, mount.front()[0]):
            for name in ("cmdline", "environ"):
                assert b"hunter2" not in Path(f"/proc/{pid}/{name}").read_bytes()
    assert "hunter2" not in Path(mount.log).read_text()


def test_a_renewed_plan_reaches_the_next_front(tmp_path: Path) -> None:
    with toy_mount(tmp_path) as mount:
        os.kill(mount.front()[0], signal.SIGUSR2)
        wait_for(lambda: "the plan was renewed" in Path(mount.log).read_text())
        mount.kill_front()
        assert "newer" in Path(mount.state, "front.pid").read_text()


def test_a_new_version_takes_over_without_a_trace(tmp_path: Path) -> None:
    with toy_mount(tmp_path) as mount:
        Path(mount.root, "file").write_bytes(b"content")
        held = os.open(mount.path("file"), os.O_RDONLY)
        for generation in range(3):
            os.kill(mount.holder.pid, signal.SIGHUP)
            mount.await_front(after=generation)
            assert Path(mount.path("file")).read_bytes() == b"content"
            assert os.pread(held, 7, 0) == b"content"
        os.close(held)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_told_to_end_it_unmounts(tmp_path: Path, number: int) -> None:
    with toy_mount(tmp_path) as mount:
        front, _ = mount.front()
        mount.holder.send_signal(number)
        assert ended(mount.holder) == 0
        assert not device.is_mounted(mount.mountpoint)
        assert not is_running(front)


def await_refusal(mount: ToyMount, number: int) -> None:
    """Told by the holder and by the front. The thread that tried is over then: while it lives, nobody else is."""
    wait_for(lambda: Path(mount.log).read_text().count("it is in use") == 2 * number)
    wait_for(lambda: len(os.listdir(f"/proc/{mount.holder.pid}/task")) == 1)


def test_in_use_it_stays(tmp_path: Path) -> None:
    with toy_mount(tmp_path) as mount:
        Path(mount.root, "file").write_bytes(b"content")
        held = os.open(mount.path("file"), os.O_RDONLY)
        mount.holder.terminate()
        await_refusal(mount, 1)
        assert Path(mount.path("file")).read_bytes() == b"content"
        os.kill(mount.front()[0], signal.SIGUSR1)
        await_refusal(mount, 2)
        assert mount.holder.poll() is None
        os.close(held)
        os.kill(mount.front()[0], signal.SIGUSR1)
        assert ended(mount.holder) == 0


def test_in_use_it_is_detached_when_that_was_wished(tmp_path: Path) -> None:
    with toy_mount(tmp_path, lazy=True) as mount:
        Path(mount.root, "file").write_bytes(b"content")
        held = os.open(mount.path("file"), os.O_RDONLY)
        mount.holder.terminate()
        wait_for(lambda: not device.is_mounted(mount.mountpoint))
        assert os.pread(held, 7, 0) == b"content"
        assert os.fstat(held).st_size == 7, "it is still served"
        assert mount.holder.poll() is None
        os.close(held)
        assert ended(mount.holder) == 0


def test_unmounted_by_somebody_else_it_ends(tmp_path: Path) -> None:
    with toy_mount(tmp_path) as mount:
        front, _ = mount.front()
        subprocess.run(["umount", mount.mountpoint], check=True)
        assert ended(mount.holder) == 0
        assert not is_running(front)


def test_unmounted_while_no_front_runs_it_ends(tmp_path: Path) -> None:
    with toy_mount(tmp_path) as mount:
        front, _ = mount.front()
        mount.holder.send_signal(signal.SIGSTOP)
        os.kill(front, signal.SIGKILL)
        subprocess.run(["umount", "-l", mount.mountpoint], check=True)
        mount.holder.send_signal(signal.SIGCONT)
        assert ended(mount.holder) == 0


def test_a_front_that_does_not_end_is_ended(tmp_path: Path) -> None:
    with toy_mount(tmp_path, grace_s=0.2) as mount:
        os.kill(mount.front()[0], signal.SIGSTOP)
        mount.holder.terminate()
        assert ended(mount.holder) == 0


def test_a_front_that_gives_a_reason_is_quoted(tmp_path: Path) -> None:
    plan = plan_for(tmp_path, front={"fails": "the store does not know this key"})
    with holder_of(plan) as (holder, outcome):
        assert outcome == {"mounted": False, "error": "the store does not know this key"}
        assert ended(holder) == 1
        assert not device.is_mounted(plan["mountpoint"])


def test_a_front_that_does_not_start_is_given_up(tmp_path: Path) -> None:
    plan = plan_for(tmp_path, front_argv=[sys.executable, "-c", "raise SystemExit('no good')"])
    with holder_of(plan) as (holder, outcome):
        assert not outcome["mounted"]
        assert "does not start" in outcome["error"]
        assert ended(holder) == 1
        assert not device.is_mounted(plan["mountpoint"])
    assert "no good" in Path(plan["log"]).read_text()


def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    plan = plan_for(tmp_path, front_argv=["/nonexistent/program"])
    with holder_of(plan) as (holder, outcome):
        assert outcome["error"].startswith("/nonexistent/program")
        assert ended(holder) == 1
        assert not device.is_mounted(plan["mountpoint"])


def test_a_mount_that_cannot_be_is_explained(tmp_path: Path) -> None:
    plan = plan_for(tmp_path)
    (tmp_path / "mnt" / "something").touch()
    with holder_of(plan) as (holder, outcome):
        assert not outcome["mounted"]
        assert "not empty" in outcome["error"]
        assert ended(holder) == 1


def test_in_the_background_it_is_a_session_of_its_own(tmp_path: Path) -> None:
    plan = plan_for(tmp_path, detach=True)
    with holder_of(plan) as (holder, outcome), Watch(outcome["pid"]) as watch:
        try:
            assert ended(holder) == 0
            assert outcome["pid"] != holder.pid
            assert os.getsid(outcome["pid"]) == outcome["pid"]
            assert os.readlink(f"/proc/{outcome['pid']}/fd/0") == os.devnull
            assert os.listdir(plan["mountpoint"]) == []
            watch.send(signal.SIGTERM)
            wait_for(watch.has_ended)
            assert not device.is_mounted(plan["mountpoint"])
        finally:
            break_mount(Path(plan["mountpoint"]), watch)


def test_an_unprivileged_front_has_its_files_registered_by_the_holder(open_path: Path) -> None:
    plan_for(open_path)
    os.chown(open_path / "state", 65534, 65534)
    with toy_mount(open_path, front={"unprivileged": True}) as mount:
        Path(mount.root, "file").write_bytes(b"content")
        for _ in range(2):
            assert Path(mount.path("file")).read_bytes() == b"content"
        assert "READ" not in mount.counts()
        (uids,) = [
            line.split()[1:]
            for line in Path(f"/proc/{mount.front()[0]}/status").read_text().splitlines()
            if line.startswith("Uid")
        ]
        assert set(uids) == {"65534"}


@pytest.mark.parametrize("missing", ["mountpoint", "source", "front_argv", "front"])
def test_a_plan_without_a_part_names_it(missing: str) -> None:
    plan = {"mountpoint": "/mnt", "source": "x", "front_argv": ["x"], "front": {}}
    del plan[missing]
    with pytest.raises(Invalid, match=rf"\[{missing}\]"):
        HoldPlan.from_json(json.dumps(plan))


def test_a_plan_that_is_no_json_is_refused() -> None:
    with pytest.raises(Invalid, match="JSON on standard input"):
        HoldPlan.from_json("mountpoint: /mnt")
