from __future__ import annotations

from dataclasses import replace

import pytest

from paddleflow.domain.jobs import BindMount, FlavourRef, FsRef, Member
from paddleflow.frameworks import launches_of
from paddleflow.frameworks.container import argv_of, limits_of, shell_line, work_dir_of
from paddleflow.testing.builders import a_job, a_member, resources

DATA = FsRef(name="data", mount_path="/mnt/data", host_path="/srv/data", sub_path="train", read_only=True)


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("python train.py", "python train.py"),
        ("sh -c 'echo hi'", "echo hi"),
        ('bash -c "echo hi"', "echo hi"),
        ("sh -c echo", "echo"),
        ("sh -c 'echo a' 'b'", "sh -c 'echo a' 'b'"),
        ("bash run.sh", "bash run.sh"),
    ],
)
def test_a_leading_shell_is_taken_off(command: str, line: str) -> None:
    assert shell_line(command) == line


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
    job = a_job(member=member, node="node-1", gpus=(3,))
    (launch,) = launches_of(job)
    assert launch.task_id == "job-a-worker-0"
    assert launch.mounts == (BindMount(source="/srv/data/train", target="/mnt/data", read_only=True),)
    assert launch.gpus == (3,)
    assert launch.env["A"] == "1"
    assert launch.env["PF_WORK_DIR"] == "/mnt/data"
    assert launch.env["PF_JOB_ID"] == "job-a"
