"""What a task is given, whatever its framework."""

from __future__ import annotations

from dataclasses import replace

import pytest

from paddleflow.domain.jobs import BindMount, FlavourRef, FsRef, JobKind, JobSpec, Member
from paddleflow.frameworks import check, deciders, launches_of, ports_per_task
from paddleflow.frameworks.container import argv_of, limits_of, shell_argv, work_dir_of
from paddleflow.testing.builders import a_member, resources
from tests.unit.framework_jobs import placed

DATA = FsRef(name="data", mount_path="/mnt/data", host_path="/srv/data", sub_path="train", read_only=True)


@pytest.mark.parametrize(
    ("command", "shell", "line"),
    [
        ("python train.py", "sh", "python train.py"),
        ("sh -c 'echo hi'", "sh", "echo hi"),
        ('bash -c "echo hi"', "bash", "echo hi"),
        ("bash -c [[ 1 == 1 ]]", "bash", "[[ 1 == 1 ]]"),
        ("sh -c echo", "sh", "echo"),
        ("sh -c 'echo a' 'b'", "sh", "sh -c 'echo a' 'b'"),
        ("bash run.sh", "sh", "bash run.sh"),
    ],
)
def test_a_leading_shell_is_not_run_inside_another(command: str, shell: str, line: str) -> None:
    assert shell_argv(command) == (shell, "-c", line)


def test_arguments_are_passed_and_never_spliced_into_text() -> None:
    assert argv_of(Member(command="python x.py", args=("$(id)", "b c"))) == (
        "sh",
        "-c",
        'python x.py "$@"',
        "sh",
        "$(id)",
        "b c",
    )
    assert argv_of(Member(args=("ls", "-l"))) == ("ls", "-l")


@pytest.mark.parametrize(
    ("member", "where"),
    [
        (Member(), ""),
        (Member(fs=DATA), "/mnt/data"),
        (Member(extra_fs=(DATA,)), "/mnt/data"),
        (Member(fs=DATA, env={"PF_MOUNT_PATH": "none"}), ""),
        (Member(fs=DATA, env={"PF_WORK_DIR": "/elsewhere"}), "/elsewhere"),
    ],
)
def test_the_working_directory_is_the_first_mount(member: Member, where: str) -> None:
    assert work_dir_of(member) == where


def test_limits() -> None:
    asked, limit = FlavourRef(resources=resources("1")), FlavourRef(resources=resources("2"))
    assert limits_of(Member(flavour=asked)) == asked.resources
    assert limits_of(Member(flavour=asked, limit=limit)) == limit.resources
    assert limits_of(Member(flavour=asked, env={"PF_JOB_LIMIT_FLAVOUR": "none"})).is_zero


def test_a_single_job_becomes_one_launch() -> None:
    member = replace(a_member(env={"A": "1"}), fs=DATA)
    job = placed(JobSpec(members=(member,)), gpus=2)
    (launch,) = launches_of(job, {})
    assert launch.task_id == "job-a-worker-0"
    assert launch.mounts == (BindMount(source="/srv/data/train", target="/mnt/data", read_only=True),)
    assert launch.gpus == (0, 1)
    assert launch.env["A"] == "1"
    assert launch.env["PF_WORK_DIR"] == "/mnt/data"
    assert launch.env["PF_JOB_ID"] == "job-a"
    assert launch.env["PF_JOB_MODE"] == "Pod"
    assert (launch.env["PF_TASK_ROLE"], launch.env["PF_TASK_INDEX"]) == ("worker", "0")


def test_a_single_job_needs_no_ports_and_every_role_decides() -> None:
    spec = JobSpec(members=(a_member(),))
    check(spec)
    assert ports_per_task(spec) == 0
    assert deciders(spec) == frozenset()


def test_the_user_s_environment_wins_but_not_over_which_task_it_is() -> None:
    member = a_member(
        env={
            "PF_JOB_NAME": "mine",
            "PF_JOB_PRIORITY": "",
            "EMPTY": "",
            "PF_JOB_ID": "another",
            "PF_TASK_ID": "another",
            "PF_TASK_RANK": "7",
        }
    )
    (launch,) = launches_of(placed(JobSpec(members=(member,))), {})
    assert launch.env["PF_JOB_NAME"] == "mine"
    assert launch.env["EMPTY"] == "", "an empty variable of the user's own stays"
    assert "PF_JOB_PRIORITY" not in launch.env, "an empty value takes ours away"
    assert launch.env["PF_JOB_ID"] == "job-a"
    assert launch.env["PF_TASK_ID"] == "job-a-worker-0"
    assert launch.env["PF_TASK_RANK"] == "0"


@pytest.mark.parametrize(
    "spec",
    [
        JobSpec(kind=JobKind.DISTRIBUTED, members=(a_member(),)),
        JobSpec(members=(a_member(), a_member())),
        JobSpec(members=(a_member(replicas=2),)),
    ],
)
def test_standalone_is_one_task(spec: JobSpec) -> None:
    with pytest.raises(Exception, match=r"Field\[(framework|members)\]"):
        check(spec)
