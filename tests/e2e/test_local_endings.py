"""How a task of the local runtime ends, and that it is told truly: real processes, real signals, real limits."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddleflow.adapters.local import layout
from paddleflow.domain.errors import Invalid
from paddleflow.domain.ids import JobId, TaskId
from paddleflow.domain.jobs import TaskStatus
from paddleflow.domain.resources import Resources
from tests.contracts.runtime_contract import ENDED
from tests.e2e.local_host import PYTHON, LocalHost, is_gone, local_host, worker
from tests.waiting import DEADLINE_S, wait_for

EAT_MEMORY = "held = []\nwhile True: held.append(b'x' * 1_000_000)"


@pytest.fixture
def host(tmp_path: Path) -> Iterator[LocalHost]:
    with local_host(tmp_path / "root") as host:
        yield host


def need_cgroups(host: LocalHost) -> None:
    if not host.runtime.isolation.startswith("cgroup"):
        pytest.skip(f"no control group may be written here: {host.runtime.isolation_reason}")


@pytest.mark.parametrize(
    ("script", "status", "message", "exit_code", "signal"),
    [
        ("exit 0", TaskStatus.SUCCEEDED, "exit code 0", 0, None),
        ("exit 3", TaskStatus.FAILED, "exit code 3", 3, None),
        ("kill -9 $$", TaskStatus.FAILED, "killed by signal 9 (SIGKILL)", None, 9),
        ("kill -SEGV $$", TaskStatus.FAILED, "killed by signal 11 (SIGSEGV)", None, 11),
    ],
)
def test_an_end_is_told_as_it_was(
    host: LocalHost, script: str, status: TaskStatus, message: str, exit_code: int | None, signal: int | None
) -> None:
    report, _ = host.shell("job-end", script)
    assert (report.status, report.message, report.exit_code, report.signal) == (status, message, exit_code, signal)


def test_a_missing_program_is_named(host: LocalHost) -> None:
    report, _ = host.run(host.launch_of("job-none", "no-such-program", "x"))
    assert report.status is TaskStatus.FAILED
    assert report.message == "could not start: [Errno 2] No such file or directory: 'no-such-program'"
    assert report.exit_code is None and report.started_at is None


def test_a_missing_work_dir_is_refused_by_name(host: LocalHost) -> None:
    with pytest.raises(Invalid, match="/no/such/dir"):
        host.runtime.launch(host.launch_of("job-dir", "true", work_dir="/no/such/dir"))
    assert host.runtime.survey() == []


def test_out_of_memory_is_told(host: LocalHost) -> None:
    need_cgroups(host)
    launch = host.launch_of("job-oom", PYTHON, "-c", EAT_MEMORY, limits=Resources.of(memory="64Mi"))
    report, _ = host.run(launch)
    assert (report.status, report.message) == (TaskStatus.FAILED, "killed: out of memory (limit 64Mi)")
    assert 0 < report.usage.max_memory_bytes <= 64 * 1024 * 1024


def test_out_of_memory_of_a_child_is_told_when_the_shell_reports_137(host: LocalHost) -> None:
    need_cgroups(host)
    script = f'{PYTHON} -c "$EAT"; code=$?; exit $code'
    report, _ = host.shell("job-oom", script, env={"EAT": EAT_MEMORY}, limits=Resources.of(memory="64Mi"))
    assert (report.exit_code, report.message) == (137, "killed: out of memory (limit 64Mi)")


def test_the_cpu_quota_reaches_the_kernel(host: LocalHost) -> None:
    need_cgroups(host)
    script = """
    v1=$(sed -n 's/^[0-9]*:.*\\bcpu\\b[^:]*:\\(.*\\)/\\1/p' /proc/self/cgroup | head -1)
    cat /sys/fs/cgroup/cpu$v1/cpu.cfs_quota_us 2>/dev/null && cat /sys/fs/cgroup/cpu$v1/cpu.shares && exit
    cat /sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup)/cpu.max
    """
    report, log = host.shell("job-cpu", script, limits=Resources.of(cpu="500m"))
    assert report.status is TaskStatus.SUCCEEDED
    assert log.split() in (["50000", "512"], ["50000", "100000"])


def test_what_a_task_used_is_accounted(host: LocalHost) -> None:
    program = "import time\nb = b'x' * 30_000_000\nwhile time.process_time() < 0.1: pass"
    report, _ = host.run(host.launch_of("job-use", PYTHON, "-c", program))
    assert report.usage.cpu_s > 0.05
    assert report.usage.max_memory_bytes > 30_000_000
    assert host.runtime.usage(worker("job-use")) == report.usage


def test_usage_of_a_running_task_is_what_it_holds_now(host: LocalHost) -> None:
    program = "b = b'x' * 30_000_000\nprint('ready', flush=True)\nimport signal; signal.pause()"
    host.start(host.launch_of("job-now", PYTHON, "-c", program), until_it_says="ready")
    usage = host.runtime.usage(worker("job-now"))
    assert usage is not None and usage.memory_bytes > 30_000_000 and usage.cpu_s > 0


def test_a_task_that_obeys_is_stopped_gently(host: LocalHost) -> None:
    host.start(host.launch_of("job-stop", "sleep", "1000"))
    host.runtime.stop(JobId("job-stop"), [worker("job-stop")], grace_s=60)
    report = host.end_of("job-stop")
    assert (report.status, report.signal, report.message) == (TaskStatus.FAILED, 15, "stopped by request (SIGTERM)")


def test_a_stopped_task_that_exits_with_zero_did_not_succeed(host: LocalHost) -> None:
    script = "trap 'echo saving; exit 0' TERM; echo ready; while :; do sleep 0.01; done"
    host.start(host.launch_of("job-stop", "/bin/sh", "-c", script), until_it_says="ready")
    host.runtime.stop(JobId("job-stop"), [worker("job-stop")], grace_s=60)
    report = host.end_of("job-stop")
    assert (report.status, report.exit_code, report.message) == (TaskStatus.FAILED, 0, "stopped by request")
    assert "saving" in host.log("job-stop")


def test_a_task_that_ignores_term_is_killed_after_its_grace(host: LocalHost) -> None:
    script = "trap '' TERM; echo ready; while :; do sleep 0.01; done"
    host.start(host.launch_of("job-deaf", "/bin/sh", "-c", script), until_it_says="ready")
    host.runtime.stop(JobId("job-deaf"), [worker("job-deaf")], grace_s=0.25)
    report = host.end_of("job-deaf")
    assert (report.status, report.signal) == (TaskStatus.FAILED, 9)
    assert report.message == "stopped by request, killed after 0.25 s grace"


def test_a_second_stop_may_shorten_the_grace(host: LocalHost) -> None:
    script = "trap '' TERM; echo ready; while :; do sleep 0.01; done"
    host.start(host.launch_of("job-deaf", "/bin/sh", "-c", script), until_it_says="ready")
    host.runtime.stop(JobId("job-deaf"), [worker("job-deaf")], grace_s=10_000)
    host.restart()
    host.runtime.stop(JobId("job-deaf"), [worker("job-deaf")], grace_s=0)
    assert host.end_of("job-deaf").message == "stopped by request, killed after 0 s grace"


def test_the_children_of_a_stopped_shell_get_their_grace_too(host: LocalHost) -> None:
    script = """
    (trap 'sleep 0.2; echo saved; exit' TERM; echo ready; while :; do sleep 0.01; done) &
    wait
    """
    host.start(host.launch_of("job-tree", "/bin/sh", "-c", script), until_it_says="ready")
    host.runtime.stop(JobId("job-tree"), [worker("job-tree")], grace_s=60)
    assert host.end_of("job-tree").message == "stopped by request (SIGTERM)"
    assert "saved" in host.log("job-tree")


@pytest.mark.parametrize("ends", ["by itself", "by request"])
def test_nothing_survives_its_task_even_in_another_session(host: LocalHost, ends: str) -> None:
    script = """
    setsid sh -c 'trap "" TERM; echo $$; exec sleep 1000' &
    (setsid sh -c 'trap "" TERM; echo $$; exec sleep 1000' &)
    sleep 1000 & echo $!
    read line < "$GATE"
    """
    gate = host.root / "gate"
    os.mkfifo(gate)
    host.start(host.launch_of("job-leak", "/bin/sh", "-c", script, env={"GATE": str(gate)}))
    wait_for(lambda: len(host.log("job-leak").split()) == 3, "the pids of all three")
    escaped = [int(pid) for pid in host.log("job-leak").split()]
    assert not any(is_gone(pid) for pid in escaped)
    if ends == "by itself":
        gate.write_text("go\n")
    else:
        host.runtime.stop(JobId("job-leak"), [worker("job-leak")], grace_s=0.1)
    assert host.end_of("job-leak").status in ENDED
    assert all(is_gone(pid) for pid in escaped)


def test_the_environment_is_the_jobs_and_never_the_servers(host: LocalHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVER_SECRET", "42")
    program = "import os, json; print(json.dumps(dict(os.environ)))"
    _, log = host.run(host.launch_of("job-env", PYTHON, "-I", "-c", program, env={"MINE": "ü $HOME"}, gpus=(1, 3)))
    env = json.loads(log)
    home = str(host.directory("job-env") / layout.WORK)
    assert env.pop("MINE") == "ü $HOME"
    assert env.pop("CUDA_VISIBLE_DEVICES") == "1,3"
    assert env.pop("PF_MEMBERSHIP_FILE") == str(host.root / "jobs" / "job-env" / "membership.json")
    temporary = env.pop("TMPDIR")
    assert env.pop("HOME") == home
    assert os.path.realpath(temporary).startswith(str(host.directory("job-env")))
    assert len(temporary) < len(home), "sockets below it must fit into 107 bytes"
    assert set(env) <= {"PATH", "LANG", "LC_ALL", "LC_CTYPE", "USER"}


def test_a_task_without_gpus_sees_none(host: LocalHost) -> None:
    _, log = host.shell("job-gpu", 'echo "[$CUDA_VISIBLE_DEVICES]"', env={"CUDA_VISIBLE_DEVICES": "0,1"})
    assert log == "[]\n"


@pytest.fixture
def ignored_signals() -> Iterator[None]:
    """As nohup, or the background of a shell, starts a server."""
    numbers = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGRTMIN)
    before = {number: signal.signal(number, signal.SIG_IGN) for number in numbers}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("ignored_signals")
def test_a_task_inherits_no_descriptor_and_no_ignored_signal(host: LocalHost) -> None:
    script = "ls /proc/self/fd | wc -l; grep SigIgn /proc/self/status"
    _, log = host.shell("job-fds", script)
    count, ignored = log.splitlines()
    assert int(count) == 4  # The three standard ones and the directory being listed.
    of_the_c_library = 0b11 << 31  # signals 32 and 33 are its own: no program can set or reset them
    assert int(ignored.split()[1], 16) & ~of_the_c_library == 0


def test_a_log_over_its_cap_loses_its_middle(tmp_path: Path) -> None:
    with local_host(tmp_path / "root", log_cap_bytes=1000) as host:
        report, log = host.shell("job-log", "i=0; while [ $i -lt 400 ]; do echo 0123456789; i=$((i+1)); done; echo end")
        assert report.status is TaskStatus.SUCCEEDED
        assert len(log) == 500
        last = host.runtime.read_log(JobId("job-log"), worker("job-log"), -4, 10)
        assert (last.content, last.size, last.is_cut_off) == (b"end\n", 4404, False)
        assert sum(file.stat().st_size for file in host.directory("job-log").glob("log*")) <= 1000


def test_secrets_are_neither_in_process_titles_nor_readable_by_others(host: LocalHost) -> None:
    launch = host.launch_of("job-secret", "/bin/sh", "-c", "echo ready; sleep 1000", env={"TOKEN": "hunter2"})
    host.start(launch, until_it_says="ready")
    for pid in (host.supervisor_of("job-secret"), host.nursery()):
        seen = Path(f"/proc/{pid}/cmdline").read_bytes() + Path(f"/proc/{pid}/environ").read_bytes()
        assert b"hunter2" not in seen and b"sleep" not in seen and b"PATH" not in seen
    assert (host.directory("job-secret") / layout.SPEC).stat().st_mode & 0o777 == 0o600
    assert host.root.stat().st_mode & 0o777 == 0o700


def test_two_hundred_tasks_at_once(host: LocalHost) -> None:
    jobs = [f"job-{number}" for number in range(200)]
    for job in jobs:
        host.runtime.launch(host.launch_of(job, "/bin/sh", "-c", f"echo {job}"))
    ends: dict[TaskId, TaskStatus] = {}
    while len(ends) < len(jobs):
        reports = host.runtime.wait_reports(DEADLINE_S)
        assert reports, f"{len(ends)} ends were told, and nothing more"
        ends |= {r.task_id: r.status for r in reports if r.status in ENDED}
    assert set(ends.values()) == {TaskStatus.SUCCEEDED}
    for job in jobs:
        assert host.log(job) == f"{job}\n"
        host.runtime.acknowledge(worker(job))
    assert host.runtime.survey() == []


def test_removing_a_job_never_follows_its_links(host: LocalHost, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("keep me")
    host.shell(
        "job-links", 'ln -s "$OUT" link; mkdir -p a/b; ln -s "$OUT" a/b/c; chmod 0 a', env={"OUT": str(precious)}
    )
    host.runtime.remove(JobId("job-links"))
    assert (precious / "file").read_text() == "keep me"
    assert not host.directory("job-links").exists()
    assert list((host.root / layout.TRASH).iterdir()) == []
