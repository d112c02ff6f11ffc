"""Killing the server, the nursery and supervisors with SIGKILL: every task still runs once, and its end is told."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import pytest

from paddleflow.adapters.local import layout
from paddleflow.adapters.local import runtime as local_runtime
from paddleflow.domain.errors import DiskFull, Unavailable
from paddleflow.domain.ids import JobId
from paddleflow.domain.jobs import TaskLaunch, TaskStatus
from tests.contracts.runtime_contract import ENDED, told
from tests.e2e.local_host import LocalHost, is_gone, kill_now, local_host, worker
from tests.programs import started
from tests.small_disk import small_disk
from tests.waiting import DEADLINE_S, wait_for

# A server reduced to one call: launches what its arguments say and, if told so, kills itself right after.
SERVER = """
import os, signal, sys
from pathlib import Path
from paddleflow.adapters.local import layout
from paddleflow.adapters.local.nursery_client import NurseryClient
from paddleflow.adapters.local.runtime import LocalRuntime, LocalRuntimeOptions
from paddleflow.domain.jobs import TaskLaunch

root, job, moment, *argv = sys.argv[1:]

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

if moment == "before-claim":
    layout.write_document_once = die
if moment == "before-mark":
    LocalRuntime._mark_live = die
if moment == "before-request":
    NurseryClient.request_supervisor = die
runtime = LocalRuntime(LocalRuntimeOptions(root=Path(root)))
node = runtime.nodes()[0].name
print("ready", flush=True)
sys.stdin.readline()
launch = TaskLaunch(task_id=f"{job}-worker-0", job_id=job, node=node, argv=tuple(argv), env={})
runtime.launch(launch)
if moment == "after-launch":
    die()
"""


@pytest.fixture
def host(tmp_path: Path) -> Iterator[LocalHost]:
    with local_host(tmp_path / "root") as host:
        yield host


def server(host: LocalHost, job: str, moment: str, *argv: str) -> AbstractContextManager[subprocess.Popen[str]]:
    return started([sys.executable, "-c", SERVER, str(host.root), job, moment, *argv], stderr=None)


def be_ready(server: subprocess.Popen[str]) -> None:
    assert server.stdout is not None
    assert server.stdout.readline() == "ready\n"


def go(server: subprocess.Popen[str]) -> None:
    assert server.stdin is not None
    server.stdin.write("go\n")
    server.stdin.flush()


def run_server(host: LocalHost, job: str, moment: str, *argv: str) -> int:
    """How it ended."""
    with server(host, job, moment, *argv) as one:
        be_ready(one)
        go(one)
        return one.wait(DEADLINE_S)


@pytest.mark.parametrize("moment", ["before-claim", "before-mark", "before-request", "after-launch"])
def test_a_server_killed_while_launching_loses_nothing_and_runs_nothing_twice(
    host: LocalHost, tmp_path: Path, moment: str
) -> None:
    witness = tmp_path / "witness"
    script = f"echo ran >> {witness}; exit 7"
    assert run_server(host, "job-crash", moment, "/bin/sh", "-c", script) == -9
    host.restart()
    # The platform does not know how far the last one came, so it launches again.
    host.runtime.launch(host.launch_of("job-crash", "/bin/sh", "-c", script))
    report = host.end_of("job-crash")
    assert (report.status, report.exit_code) == (TaskStatus.FAILED, 7)
    assert witness.read_text() == "ran\n"


@pytest.fixture
def long_patience(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """However slow the machine is, nobody asks again for a task that may be about to start; undone, they do."""
    monkeypatch.setattr(local_runtime, "_ASK_AGAIN_S", 10 * DEADLINE_S)
    return monkeypatch


def test_a_task_that_was_claimed_but_never_asked_for_is_started_by_looking(
    host: LocalHost, long_patience: pytest.MonkeyPatch
) -> None:
    assert run_server(host, "job-claimed", "before-request", "/bin/sh", "-c", "exit 0") == -9
    host.restart()
    assert [r.status for r in host.runtime.survey()] == [TaskStatus.PENDING]
    long_patience.undo()
    assert host.end_of("job-claimed").status is TaskStatus.SUCCEEDED


def test_looking_at_a_task_that_is_about_to_start_does_not_take_its_lock(
    host: LocalHost, long_patience: pytest.MonkeyPatch
) -> None:
    assert run_server(host, "job-claimed", "before-request", "/bin/sh", "-c", "exit 0") == -9
    taken: list[str] = []
    acquire = layout.acquire_lock

    def seen_acquire(path: str) -> int | None:
        taken.append(path)
        return acquire(path)

    long_patience.setattr(layout, "acquire_lock", seen_acquire)
    host.restart()
    assert [r.status for r in host.runtime.survey()] == [TaskStatus.PENDING]
    assert taken == []
    host.runtime.stop(JobId("job-claimed"), [worker("job-claimed")], grace_s=0)
    assert taken != []


def test_a_new_server_finds_the_tasks_of_a_killed_one(host: LocalHost, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    assert run_server(host, "job-long", "after-launch", "/bin/sh", "-c", f"read x < {gate}; exit 5") == -9
    host.restart()
    told(host.runtime, worker("job-long"), TaskStatus.RUNNING)
    gate.write_text("go\n")
    report = host.end_of("job-long")
    assert (report.exit_code, report.message) == (5, "exit code 5")


def test_an_end_that_nobody_heard_is_surveyed(host: LocalHost) -> None:
    host.runtime.close()
    assert run_server(host, "job-unheard", "after-launch", "/bin/sh", "-c", "exit 6") == -9
    wait_for((host.directory("job-unheard") / layout.END).exists, "the end of the task")
    host.restart_after_close()
    assert [r.exit_code for r in host.runtime.survey()] == [6]


def test_two_servers_launching_at_once_run_it_once(host: LocalHost, tmp_path: Path) -> None:
    witness = tmp_path / "witness"
    script = f"echo ran >> {witness}"
    for number in range(5):
        with ExitStack() as running:
            both = [
                running.enter_context(server(host, f"job-{number}", "never", "/bin/sh", "-c", script)) for _ in range(2)
            ]
            for one in both:
                be_ready(one)
            for one in both:
                go(one)
            assert [one.wait(DEADLINE_S) for one in both] == [0, 0]
        assert host.end_of(f"job-{number}").status is TaskStatus.SUCCEEDED
        assert len(witness.read_text().splitlines()) == number + 1


def test_a_killed_nursery_harms_no_task_and_is_replaced(host: LocalHost, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    host.start(host.launch_of("job-before", "/bin/sh", "-c", f"read x < {gate}; exit 4"))
    first = host.nursery()
    kill_now(first)
    report, _ = host.shell("job-after", "exit 0")
    assert report.status is TaskStatus.SUCCEEDED
    assert host.nursery() != first
    gate.write_text("go\n")
    assert host.end_of("job-before").exit_code == 4


def is_launched(host: LocalHost, launch: TaskLaunch) -> bool:
    """A nursery that is hardly ever idle enough to leave may do so between its start and the request for it; then the
    platform launches again."""
    try:
        host.runtime.launch(launch)
    except Unavailable as error:
        if "ended right after its start" not in error.message:
            pytest.fail(error.message)
        return False
    return True


def test_an_idle_nursery_leaves_and_tasks_go_on_and_start_all_the_same(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    with local_host(tmp_path / "root", nursery_idle_s=0.5) as host:
        before = host.launch_of("job-before", "/bin/sh", "-c", f"read x < {gate}; exit 4")
        wait_for(lambda: is_launched(host, before), "its launch")
        told(host.runtime, before.task_id, TaskStatus.RUNNING)
        for number in range(3):
            wait_for(lambda: host.find_nursery() is None, "the nursery's leaving")
            assert not (host.root / layout.NURSERY_SOCKET).exists()
            launch = host.launch_of(f"job-{number}", "/bin/sh", "-c", "exit 0")
            wait_for(lambda launch=launch: is_launched(host, launch), "its launch")  # type: ignore[misc]
            assert host.end_of(f"job-{number}").status is TaskStatus.SUCCEEDED
        gate.write_text("go\n")
        assert host.end_of("job-before").exit_code == 4


def test_a_killed_supervisor_is_noticed_and_its_task_killed(host: LocalHost) -> None:
    script = "sleep 1000 & echo $$ $!; wait"
    host.start(host.launch_of("job-orphan", "/bin/sh", "-c", script), until_it_says="\n")
    pids = [int(pid) for pid in host.log("job-orphan").split()]
    kill_now(host.supervisor_of("job-orphan"))
    report = host.end_of("job-orphan")
    assert report.status is TaskStatus.FAILED
    assert "supervisor of the task was lost" in report.message
    wait_for(lambda: all(is_gone(pid) for pid in pids), "the end of its processes")
    host.runtime.remove(JobId("job-orphan"))


def test_a_lost_supervisor_is_found_while_waiting_without_any_notice(host: LocalHost) -> None:
    host.start(host.launch_of("job-orphan", "sleep", "1000"))
    while host.runtime.wait_reports(0):
        pass
    kill_now(host.supervisor_of("job-orphan"))
    reports = host.runtime.wait_reports(DEADLINE_S)
    assert [(r.task_id, r.status) for r in reports] == [(worker("job-orphan"), TaskStatus.FAILED)]


def test_stopping_a_task_whose_supervisor_is_dead_ends_it(host: LocalHost) -> None:
    host.start(host.launch_of("job-orphan", "sleep", "1000"))
    kill_now(host.supervisor_of("job-orphan"))
    host.runtime.stop(JobId("job-orphan"), [worker("job-orphan")], grace_s=100)
    assert host.end_of("job-orphan").status is TaskStatus.FAILED


def test_a_stop_works_across_a_restart(host: LocalHost) -> None:
    host.start(host.launch_of("job-stop", "sleep", "1000"))
    host.restart()
    host.runtime.stop(JobId("job-stop"), [worker("job-stop")], grace_s=100)
    assert host.end_of("job-stop").message == "stopped by request (SIGTERM)"


def test_stop_racing_with_the_end_always_gives_one_end(host: LocalHost) -> None:
    for number in range(30):
        job = f"job-race-{number}"
        host.runtime.launch(host.launch_of(job, "/bin/true"))
        host.runtime.stop(JobId(job), [worker(job)], grace_s=5)
        report = host.end_of(job)
        assert report.exit_code == 0 or "stopped by request" in report.message
        assert report.status in ENDED
        host.runtime.acknowledge(worker(job))


def test_a_root_with_a_very_long_name_works(tmp_path: Path) -> None:
    with local_host(tmp_path / ("long" * 30) / ("longer" * 20) / "root") as host:
        host.start(host.launch_of("job-long", "sleep", "1000"))
        host.runtime.stop(JobId("job-long"), [worker("job-long")], grace_s=100)
        assert host.end_of("job-long").message == "stopped by request (SIGTERM)"


def test_a_log_goes_on_when_a_full_disk_has_room_again(tmp_path: Path) -> None:
    go = tmp_path / "go"
    os.mkfifo(go)
    with small_disk(tmp_path / "disk", "512k") as disk, local_host(disk / "root", log_cap_bytes=1 << 30) as host:
        ballast = disk / "ballast"
        ballast.write_bytes(b"x" * 100_000)
        launch = host.launch_of("job-room", "/bin/sh", "-c", f"head -c 2000000 /dev/zero; cat {go}; echo after")
        host.runtime.launch(launch)
        with go.open("w"):  # opens when the task does, which has printed all of its zeros, and holds it there
            ballast.unlink()
        assert host.end_of("job-room").exit_code == 0
        last = host.runtime.read_log(JobId("job-room"), worker("job-room"), -6, 10)
        assert (last.content, last.size, last.is_cut_off) == (b"after\n", 2_000_006, False)
        ((begin, end),) = last.gaps
        assert 0 < begin < end <= 2_000_000


def test_a_full_disk_costs_the_log_and_nothing_else(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "512k") as disk, local_host(disk / "root", log_cap_bytes=1 << 30) as host:
        report, _ = host.shell("job-full", "head -c 2000000 /dev/zero; exit 9")
        assert (report.status, report.exit_code) == (TaskStatus.FAILED, 9)
        chunk = host.runtime.read_log(JobId("job-full"), worker("job-full"), 0, 10)
        assert chunk.is_cut_off and chunk.size > 0
        with pytest.raises(DiskFull):
            host.runtime.launch(host.launch_of("job-next", "true", env={"BIG": "x" * 8000}))
        host.runtime.remove(JobId("job-full"))
        report, _ = host.shell("job-next", "exit 0")
        assert report.status is TaskStatus.SUCCEEDED
