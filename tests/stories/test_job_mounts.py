"""Stories of jobs that use filesystems which must be mounted: waited for, shared, let go."""

from __future__ import annotations

from dataclasses import replace

import pytest

from paddleflow.domain.commands import CreateFilesystem, CreateLink, DeleteFilesystem, SubmitJob
from paddleflow.domain.errors import InUse, Invalid, Unauthenticated
from paddleflow.domain.ids import FilesystemId, JobId
from paddleflow.domain.jobs import FsRef, JobSpec, JobStatus
from paddleflow.domain.users import Actor
from paddleflow.ports.mounts import Leave
from paddleflow.testing.builders import a_member, a_node, resources
from paddleflow.testing.platform import InMemoryPlatform

KEYS = {"accessKey": "AK", "secretKey": "a-real-secret", "endpoint": "s3.example.org"}
DATA, DISK = FilesystemId("fs-alice-data"), FilesystemId("fs-alice-disk")


@pytest.fixture
def platform() -> InMemoryPlatform:
    return InMemoryPlatform([a_node("node-1", resources("8", "32Gi"))])


@pytest.fixture
def alice(platform: InMemoryPlatform) -> Actor:
    alice = platform.a_user("alice", "default-queue")
    platform.storage.create_filesystem(alice, CreateFilesystem(name="data", url="s3://bucket/x", properties=KEYS))
    platform.storage.create_filesystem(alice, CreateFilesystem(name="disk", url="local:///srv/disk"))
    return alice


def submit(platform: InMemoryPlatform, alice: Actor, *names: str, sub_path: str = "") -> JobId:
    first, *others = (FsRef(name=name, mount_path=f"/in/{name}", sub_path=sub_path) for name in names)
    member = replace(a_member(resources("1", "1Gi")), fs=first, extra_fs=tuple(others))
    return platform.submit_spec(SubmitJob(spec=JobSpec(members=(member,))), alice)


def sources(platform: InMemoryPlatform, job_id: JobId) -> list[str]:
    (launch,) = [launch for launch in platform.runtime.launches if launch.job_id == job_id]
    return [mount.source for mount in launch.mounts]


def test_a_job_finds_its_filesystem_mounted(platform: InMemoryPlatform, alice: Actor) -> None:
    job = submit(platform, alice, "data", sub_path="train")
    assert platform.job(job).status is JobStatus.RUNNING
    assert sources(platform, job) == [f"/mnt/{DATA}/train"]
    plan = platform.node_mounts.plan_of(DATA)
    assert plan["storage"]["properties"]["secretKey"] == "a-real-secret"  # type: ignore[index]


def test_a_directory_of_the_host_needs_no_mount(platform: InMemoryPlatform, alice: Actor) -> None:
    job = submit(platform, alice, "disk")
    assert sources(platform, job) == ["/srv/disk"]
    assert not platform.node_mounts.leaves


def test_two_filesystems_at_one_path_are_refused(platform: InMemoryPlatform, alice: Actor) -> None:
    data = FsRef(name="data", mount_path="/in")

    def submitted(*others: FsRef) -> JobId:
        member = replace(a_member(resources("1", "1Gi")), fs=data, extra_fs=others)
        return platform.submit_spec(SubmitJob(spec=JobSpec(members=(member,))), alice)

    for other, name in ((FsRef(name="disk", mount_path="/in/"), "disk"), (replace(data, sub_path="x"), "data/x")):
        message = rf"extraFS.mountPath.*both \[data\] and \[{name}\] would be mounted at \[/in\]"
        with pytest.raises(Invalid, match=message):
            submitted(other)
    assert submitted(data)


def test_a_directory_with_a_link_needs_one(platform: InMemoryPlatform, alice: Actor) -> None:
    platform.storage.create_link(
        alice, CreateLink(fs_name="disk", fs_path="/sets", url="s3://bucket/sets", properties=KEYS)
    )
    job = submit(platform, alice, "disk", "data")
    assert sources(platform, job) == [f"/mnt/{DISK}", f"/mnt/{DATA}"]


def test_a_job_waits_while_its_filesystem_is_being_mounted(platform: InMemoryPlatform, alice: Actor) -> None:
    platform.node_mounts.is_slow = True
    job = submit(platform, alice, "data")
    assert platform.job(job).status is JobStatus.PENDING
    platform.pass_time(1)
    assert platform.job(job).status is JobStatus.PENDING
    platform.node_mounts.is_slow = False
    platform.pass_time(1)
    assert platform.job(job).status is JobStatus.RUNNING


def test_a_job_fails_with_the_reason_where_it_cannot_be_mounted(platform: InMemoryPlatform, alice: Actor) -> None:
    platform.node_mounts.refusal = "there is no /dev/fuse"
    job = platform.job(submit(platform, alice, "data"))
    assert job.status is JobStatus.FAILED
    assert "there is no /dev/fuse" in job.message
    assert "a-real-secret" not in job.message


def test_jobs_share_a_mount_and_the_last_one_lets_it_go(platform: InMemoryPlatform, alice: Actor) -> None:
    one, two = submit(platform, alice, "data"), submit(platform, alice, "data")
    leave = platform.node_mounts.leaves[DATA]
    platform.finish(one)
    assert platform.node_mounts.leaves == {DATA: leave}
    platform.finish(two)
    platform.pass_time(15)
    assert platform.node_mounts.kept == frozenset()


def test_a_server_that_was_killed_keeps_the_mounts_of_running_jobs(platform: InMemoryPlatform, alice: Actor) -> None:
    job = submit(platform, alice, "data")
    platform.restart()
    platform.pass_time(15)
    assert platform.job(job).status is JobStatus.RUNNING
    assert platform.node_mounts.kept == {DATA}


def test_a_filesystem_that_went_while_its_job_waited_ends_that_job_alone(
    platform: InMemoryPlatform, alice: Actor
) -> None:
    platform.node_mounts.is_slow = True
    first = submit(platform, alice, "data")
    other = submit(platform, alice, "disk")
    platform.storage.delete_filesystem(alice, DeleteFilesystem(name="data"))
    platform.node_mounts.is_slow = False
    platform.pass_time(1)
    assert platform.job(first).status is JobStatus.FAILED
    assert "does not exist" in platform.job(first).message or "not found" in platform.job(first).message.lower()
    assert platform.job(other).status is JobStatus.RUNNING
    assert platform.job(submit(platform, alice, "disk")).status is JobStatus.RUNNING


def test_a_mount_kept_for_the_next_job_does_not_keep_its_filesystem(platform: InMemoryPlatform, alice: Actor) -> None:
    leave_of: dict[FilesystemId, Leave] = {}
    job = submit(platform, alice, "data")
    leave_of |= platform.node_mounts.leaves

    def farewell(fs_id: FilesystemId) -> bool:
        platform.mounts.close(leave_of[fs_id].token)
        return True

    with pytest.raises(InUse, match="/mnt/fs-alice-data"):
        platform.storage.delete_filesystem(alice, DeleteFilesystem(name="data"))
    platform.finish(job)
    platform.node_mounts.let_go = farewell
    platform.storage.delete_filesystem(alice, DeleteFilesystem(name="data"))
    assert platform.node_mounts.released == [DATA, DATA]


def test_what_an_earlier_server_mounted_is_not_counted_twice(platform: InMemoryPlatform, alice: Actor) -> None:
    submit(platform, alice, "data")
    earlier = platform.node_mounts.leaves.pop(DATA)
    platform.restart()
    submit(platform, alice, "data")
    later = platform.node_mounts.leaves[DATA]
    _, mounts = platform.storage_reads.mounts(alice, "", "data")
    assert [live.mount.id for live in mounts] == [later.mount_id]
    with pytest.raises(Unauthenticated, match="closed"):
        platform.mounts.mount_of(earlier.token)
