"""Directories shown to a task at paths of its own, and to nobody else."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddleflow.domain.errors import Invalid
from paddleflow.domain.jobs import BindMount, TaskStatus
from tests.e2e.local_host import LocalHost, local_host


@pytest.fixture
def host(tmp_path: Path) -> Iterator[LocalHost]:
    with local_host(tmp_path / "root") as host:
        yield host


@pytest.fixture
def source(tmp_path: Path) -> Path:
    source = tmp_path / "source"
    source.mkdir()
    (source / "data.txt").write_text("from the source\n")
    return source


def mounted(source: Path, target: str, *, read_only: bool = False) -> tuple[BindMount, ...]:
    return (BindMount(source=str(source), target=target, read_only=read_only),)


def test_a_missing_target_appears_in_the_task_and_only_there(host: LocalHost, source: Path, tmp_path: Path) -> None:
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    (shelf / "sibling").mkdir()
    (shelf / "sibling" / "file").write_text("sibling\n")
    (shelf / "plain").write_text("plain\n")
    (shelf / "link").symlink_to("plain")
    target = f"{shelf}/deep/mnt/fs-root-data"
    script = f"cat {target}/data.txt {shelf}/sibling/file {shelf}/plain {shelf}/link; echo new > {target}/out"
    report, log = host.shell("job-mount", script, mounts=mounted(source, target))
    assert (report.status, log) == (TaskStatus.SUCCEEDED, "from the source\nsibling\nplain\nplain\n")
    assert (source / "out").read_text() == "new\n"
    assert sorted(os.listdir(shelf)) == ["link", "plain", "sibling"]


def test_a_target_at_the_top_of_the_tree(host: LocalHost, source: Path) -> None:
    top = f"/pf-{secrets.token_hex(8)}"
    script = f"cat {top}/storage/data.txt; cat /proc/self/comm; ls -d /usr/bin; echo $(pwd); echo kept > kept"
    report, log = host.shell("job-top", script, mounts=mounted(source, f"{top}/storage"))
    assert report.status is TaskStatus.SUCCEEDED, report.message
    work = host.directory("job-top") / "work"
    assert log.splitlines() == ["from the source", "cat", "/usr/bin", str(work)]
    assert (work / "kept").read_text() == "kept\n"
    assert not os.path.lexists(top)


def test_an_existing_target_is_covered_for_the_task_only(host: LocalHost, source: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    (target / "own.txt").write_text("own")
    report, log = host.shell("job-cover", f"ls {target}", mounts=mounted(source, str(target)))
    assert (report.status, log) == (TaskStatus.SUCCEEDED, "data.txt\n")
    assert os.listdir(target) == ["own.txt"]


@pytest.mark.parametrize("kind", ["existing", "missing"])
def test_a_read_only_mount_cannot_be_written(host: LocalHost, source: Path, tmp_path: Path, kind: str) -> None:
    target = tmp_path / "shown"
    if kind == "existing":
        target.mkdir()
    script = f"cat {target}/data.txt; echo x > {target}/data.txt"
    report, log = host.shell("job-ro", script, mounts=mounted(source, str(target), read_only=True))
    assert report.status is TaskStatus.FAILED
    assert "from the source" in log and "Read-only file system" in log
    assert (source / "data.txt").read_text() == "from the source\n"


def test_several_mounts_even_one_inside_another(host: LocalHost, source: Path, tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "inner.txt").write_text("inner\n")
    (source / "sub").mkdir()
    outer_target = f"{tmp_path}/made/outer"
    mounts = (
        BindMount(source=str(inner), target=f"{outer_target}/sub"),
        BindMount(source=str(source), target=outer_target),
        BindMount(source=str(inner), target=f"{tmp_path}/made/other", read_only=True),
    )
    script = f"cat {outer_target}/data.txt {outer_target}/sub/inner.txt {tmp_path}/made/other/inner.txt"
    report, log = host.shell("job-many", script, mounts=mounts)
    assert (report.status, log) == (TaskStatus.SUCCEEDED, "from the source\ninner\ninner\n")
    assert not (tmp_path / "made").exists()


def test_the_work_dir_may_be_in_a_mount(host: LocalHost, source: Path, tmp_path: Path) -> None:
    target = f"{tmp_path}/made/up"
    report, log = host.shell("job-cwd", "cat data.txt", mounts=mounted(source, target), work_dir=target)
    assert (report.status, log) == (TaskStatus.SUCCEEDED, "from the source\n")


def test_a_work_dir_missing_in_a_mount_is_named(host: LocalHost, source: Path, tmp_path: Path) -> None:
    target = f"{tmp_path}/made/up"
    report, _ = host.shell("job-cwd", "true", mounts=mounted(source, target), work_dir=f"{target}/nowhere")
    assert report.status is TaskStatus.FAILED
    assert report.message == f"could not start: [Errno 2] No such file or directory: '{target}/nowhere'"


def test_a_source_that_is_a_link_is_followed_before_anything_is_covered(
    host: LocalHost, source: Path, tmp_path: Path
) -> None:
    link = tmp_path / "link"
    link.symlink_to(source)
    report, log = host.shell(
        "job-link", "cat $T/data.txt", mounts=mounted(link, f"{tmp_path}/a/b"), env={"T": f"{tmp_path}/a/b"}
    )
    assert (report.status, log) == (TaskStatus.SUCCEEDED, "from the source\n")


def test_a_missing_source_is_refused_by_name(host: LocalHost, tmp_path: Path) -> None:
    with pytest.raises(Invalid, match=f"{tmp_path}/gone"):
        host.runtime.launch(host.launch_of("job-gone", "true", mounts=mounted(tmp_path / "gone", "/x/y")))


def test_a_target_that_is_a_file_is_told(host: LocalHost, source: Path, tmp_path: Path) -> None:
    target = tmp_path / "file"
    target.write_text("a file")
    report, _ = host.shell("job-file", "true", mounts=mounted(source, str(target)))
    assert report.status is TaskStatus.FAILED
    assert report.message.startswith(f"could not start: cannot mount [{source}] at [{target}]")


def test_a_stopped_task_with_mounts_ends(host: LocalHost, source: Path, tmp_path: Path) -> None:
    launch = host.launch_of("job-long", "sleep", "1000", mounts=mounted(source, f"{tmp_path}/x/y"))
    host.start(launch)
    host.runtime.stop(launch.job_id, [launch.task_id], grace_s=100)
    assert host.end_of("job-long").message.startswith("stopped by request")
