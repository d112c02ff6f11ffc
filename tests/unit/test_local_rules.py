"""The decisions inside the local runtime that need no process: sentences, amounts, which control groups to use."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddleflow.adapters.local import cgroups
from paddleflow.adapters.local.cgroups import TaskCgroups
from paddleflow.adapters.local.endings import Ending
from paddleflow.adapters.local.isolation import detect_isolation
from paddleflow.adapters.local.launches import check_ids
from paddleflow.domain.errors import Invalid

KILLED, TERMINATED, EXIT_3, EXIT_137 = 9, 15, 3 << 8, 137 << 8


@pytest.mark.parametrize(
    ("ending", "status", "sentence"),
    [
        (Ending(wait_status=0), "succeeded", "exit code 0"),
        (Ending(wait_status=EXIT_3), "failed", "exit code 3"),
        (Ending(wait_status=KILLED), "failed", "killed by signal 9 (SIGKILL)"),
        (Ending(wait_status=11 | 0x80), "failed", "killed by signal 11 (SIGSEGV)"),
        (Ending(wait_status=40), "failed", "killed by signal 40 (SIGRT40)"),
        (Ending(wait_status=KILLED, oom_kills=1, memory_limit="64Mi"), "failed", "killed: out of memory (limit 64Mi)"),
        (Ending(wait_status=EXIT_137, oom_kills=1), "failed", "killed: out of memory"),
        (Ending(wait_status=EXIT_137), "failed", "exit code 137"),
        (
            Ending(wait_status=EXIT_3, oom_kills=2, memory_limit="1Gi"),
            "failed",
            "exit code 3; a process of the task was killed: out of memory (limit 1Gi)",
        ),
        (Ending(wait_status=TERMINATED, stop_grace_s=10), "failed", "stopped by request (SIGTERM)"),
        (Ending(wait_status=0, stop_grace_s=10), "failed", "stopped by request"),
        (Ending(wait_status=EXIT_3, stop_grace_s=10), "failed", "stopped by request, exit code 3"),
        (
            Ending(wait_status=KILLED, stop_grace_s=10, was_killed_after_grace=True),
            "failed",
            "stopped by request, killed after 10 s grace",
        ),
    ],
)
def test_an_ending_in_words(ending: Ending, status: str, sentence: str) -> None:
    assert (ending.status, ending.describe()) == (status, sentence)


@given(st.integers(min_value=1, max_value=10**9))
def test_cpu_weights_stay_within_what_the_kernel_takes(milli: int) -> None:
    assert 2 <= cgroups.shares(milli) <= 262_144
    assert 1 <= cgroups.weight(milli) <= 10_000
    assert cgroups.quota_us(milli) >= 1_000


V1 = """31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 /docker/abc /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw"""
V1_OWN = "4:memory:/docker/abc/inner\n2:cpu,cpuacct:/user.slice\n1:name=systemd:/x\n0::/x"


def test_version_1_takes_each_controller_where_it_is_mounted() -> None:
    found = detect_isolation(V1, V1_OWN, lambda directory: None)
    assert found.name == "cgroup v1"
    assert found.cgroup_parents == {
        "version": "1",
        "memory": "/sys/fs/cgroup/memory/inner",
        "cpu": "/sys/fs/cgroup/cpu,cpuacct/user.slice",
        "cpuacct": "/sys/fs/cgroup/cpu,cpuacct/user.slice",
    }


def test_version_1_without_cpu_says_what_is_missing() -> None:
    found = detect_isolation(V1, V1_OWN, lambda d: None if "memory" in d else f"no group can be made in {d} (nope)")
    assert found.name == "cgroup v1"
    assert found.cgroup_parents == {"version": "1", "memory": "/sys/fs/cgroup/memory/inner"}
    assert "cpu/cpuacct: no group can be made in /sys/fs/cgroup/cpu,cpuacct/user.slice (nope)" in found.reason


def test_without_a_writable_group_there_are_rlimits_and_a_reason() -> None:
    found = detect_isolation(V1, V1_OWN, lambda directory: "not allowed")
    assert (found.name, found.cgroup_parents) == ("rlimits", None)
    assert "not allowed" in found.reason and "RLIMIT_DATA" in found.reason
    assert detect_isolation("", "", lambda directory: None).reason.startswith("no cgroup hierarchy is mounted")


def unified_directory(tmp_path: Path, offered: str, handed_down: str) -> tuple[Path, str, str]:
    own = tmp_path / "service"
    own.mkdir()
    (own / "cgroup.controllers").write_text(offered)
    (own / "cgroup.subtree_control").write_text(handed_down)
    return own, f"30 23 0:26 / {tmp_path} rw - cgroup2 cgroup2 rw", "0::/service"


def test_version_2_uses_a_delegated_group(tmp_path: Path) -> None:
    own, mountinfo, own_cgroups = unified_directory(tmp_path, "cpuset cpu io memory pids", "cpu memory")
    found = detect_isolation(mountinfo, own_cgroups, lambda directory: None)
    assert found.name == "cgroup v2"
    assert found.cgroup_parents == {"version": "2", "memory": str(own), "cpu": str(own)}


def test_version_2_without_the_memory_controller_is_not_used(tmp_path: Path) -> None:
    _, mountinfo, own_cgroups = unified_directory(tmp_path, "hugetlb", "")
    found = detect_isolation(mountinfo, own_cgroups, lambda directory: None)
    assert found.name == "rlimits"
    assert "does not offer the controllers cpu, memory" in found.reason


def test_the_files_of_version_2_are_written_and_read_as_the_kernel_spells_them(tmp_path: Path) -> None:
    group = tmp_path / "group"
    groups = TaskCgroups({"version": "2", "memory": str(tmp_path), "cpu": str(tmp_path)}, "group")
    groups.create()
    for name in ("memory.max", "memory.swap.max", "cpu.max", "cpu.weight"):
        (group / name).touch()
    (group / "memory.events").write_text("low 0\nhigh 0\nmax 7\noom 2\noom_kill 1\noom_group_kill 0\n")
    (group / "cpu.stat").write_text("usage_usec 1500000\nuser_usec 1\nsystem_usec 1\n")
    (group / "memory.current").write_text("4096\n")
    (group / "memory.peak").write_text("8192\n")
    groups.limit_memory(64 << 20)
    groups.limit_cpu(1500, host_cpus=2)
    assert (group / "memory.max").read_text() == "67108864"
    assert (group / "memory.swap.max").read_text() == "0"
    assert (group / "cpu.max").read_text() == "150000 100000"
    assert groups.oom_kills() == 1
    assert (groups.cpu_s(), groups.memory_bytes(), groups.max_memory_bytes()) == (1.5, 4096, 8192)


def test_a_quota_above_what_the_host_has_is_not_set(tmp_path: Path) -> None:
    groups = TaskCgroups({"version": "2", "memory": str(tmp_path), "cpu": str(tmp_path)}, "group")
    groups.create()
    (tmp_path / "group" / "cpu.weight").touch()
    groups.limit_cpu(8000, host_cpus=2)
    assert not (tmp_path / "group" / "cpu.max").exists()


def test_a_task_id_of_another_job_is_refused() -> None:
    check_ids("job-a", "job-a-worker-0")
    with pytest.raises(Invalid, match="is not a task of job"):
        check_ids("job-a", "job-b-worker-0")
