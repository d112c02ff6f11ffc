"""The permission table, command by command."""

from __future__ import annotations

import typing

import pytest

from paddleflow.domain import commands as c
from paddleflow.domain.access import authorize, may_use_filesystem, may_use_queue
from paddleflow.domain.errors import Denied
from paddleflow.domain.filesystems import Filesystem
from paddleflow.domain.ids import (
    ROOT,
    CacheId,
    ClusterName,
    FilesystemId,
    FlavourName,
    GrantId,
    JobId,
    MountId,
    PipelineId,
    QueueName,
    RunId,
    ScheduleId,
    SnapshotId,
    UserName,
    VersionId,
)
from paddleflow.domain.jobs import JobSpec, TaskReport, TaskStatus
from paddleflow.domain.users import PLATFORM, Actor, Grant, ResourceType
from paddleflow.testing.builders import THEN

ALICE, BOSS = Actor(name=UserName("alice")), Actor(name=ROOT)
REPORT = TaskReport(task_id="t", job_id="j", status=TaskStatus.RUNNING)  # type: ignore[arg-type]

RUN, PIPELINE, SCHEDULE = RunId("run-000001"), PipelineId("ppl-000001"), ScheduleId("schedule-000001")
SNAPSHOT, MOUNT = SnapshotId("snap-1"), MountId("mount-1")

ROOT_ONLY = [
    c.CreateUser(name="bob1", password="x"),
    c.DeleteUser(name=UserName("alice")),
    c.SetPassword(name=UserName("bob1"), password="x"),
    c.CreateGrant(user=UserName("alice"), resource_type="queue", resource_id="q"),
    c.DeleteGrant(user=UserName("alice"), resource_type="queue", resource_id="q"),
    c.CreateQueue(name="q", namespace="n"),
    c.UpdateQueue(name=QueueName("q")),
    c.DeleteQueue(name=QueueName("q")),
    c.CreateCluster(name="cc", endpoint="e", type="Local"),
    c.UpdateCluster(name=ClusterName("cc")),
    c.DeleteCluster(name=ClusterName("cc")),
    c.CreateFilesystem(name="f", url="local:///a", owner="bob1"),
    c.UpdateFilesystem(name="f", url="local:///a", owner="bob1"),
    c.DeleteFilesystem(name="f", owner="bob1"),
    c.CreateLink(fs_name="f", fs_path="/l", url="local:///a", owner="bob1"),
    c.DeleteLink(fs_name="f", fs_path="/l", owner="bob1"),
    c.CreateCacheConfig(fs_name="f", settings=c.CacheSettings(), owner="bob1"),
    c.UpdateCacheConfig(fs_name="f", settings=c.CacheSettings(), owner="bob1"),
    c.DeleteCacheConfig(fs_name="f", owner="bob1"),
    c.CreateSnapshot(fs_name="f", owner="bob1"),
    c.DeleteSnapshot(fs_name="f", id=SNAPSHOT, owner="bob1"),
    c.CreateRun(name="r", source="s", text="t", plan="p", owner="bob1"),
    c.DeleteArtifact(fs_name="f", run_id=RUN, path="p", owner="bob1"),
    c.CreatePipeline(name="p", text="t", owner="bob1"),
    c.UpdatePipeline(id=PIPELINE, name="p", text="t", owner="bob1"),
    c.CreateSchedule(name="s", pipeline_id=PIPELINE, version_id=VersionId("1"), crontab="@daily", owner="bob1"),
]
ANYONE = [
    c.SetPassword(name=UserName("alice"), password="x"),
    c.CreateFlavour(name="f", cpu="1", memory="1Gi"),
    c.UpdateFlavour(name=FlavourName("f")),
    c.DeleteFlavour(name=FlavourName("f")),
    c.CreateFilesystem(name="f", url="local:///a"),
    c.UpdateFilesystem(name="f", url="local:///a"),
    c.DeleteFilesystem(name="f"),
    c.CreateLink(fs_name="f", fs_path="/l", url="local:///a"),
    c.DeleteLink(fs_name="f", fs_path="/l"),
    c.CreateCacheConfig(fs_name="f", settings=c.CacheSettings()),
    c.UpdateCacheConfig(fs_name="f", settings=c.CacheSettings()),
    c.DeleteCacheConfig(fs_name="f"),
    c.CreateSnapshot(fs_name="f"),
    c.DeleteSnapshot(fs_name="f", id=SNAPSHOT),
    c.OpenMount(fs_id=FilesystemId("fs-bob1-f")),
    c.RenewMount(id=MOUNT),
    c.CloseMount(id=MOUNT),
    c.ReportCache(id=MOUNT, node="n"),
    c.SubmitJob(spec=JobSpec(members=())),
    c.UpdateJob(id=JobId("j")),
    c.StopJob(id=JobId("j")),
    c.DeleteJob(id=JobId("j")),
    c.CreateRun(name="r", source="s", text="t", plan="p"),
    c.StopRun(id=RUN),
    c.RetryRun(id=RUN),
    c.DeleteRun(id=RUN),
    c.DeleteCacheEntry(id=CacheId("cch-000001")),
    c.DeleteArtifact(fs_name="f", run_id=RUN, path="p"),
    c.CreatePipeline(name="p", text="t"),
    c.UpdatePipeline(id=PIPELINE, name="p", text="t"),
    c.DeletePipeline(id=PIPELINE),
    c.DeletePipelineVersion(id=PIPELINE, version_id=VersionId("1")),
    c.CreateSchedule(name="s", pipeline_id=PIPELINE, version_id=VersionId("1"), crontab="@daily"),
    c.StopSchedule(id=SCHEDULE),
    c.DeleteSchedule(id=SCHEDULE),
]
PLATFORM_ONLY = [
    c.SeedInstallation(root_password="x"),
    c.AdmitJob(id=JobId("j"), spots=()),
    c.ReserveRoom(id=JobId("j"), spots=()),
    c.EvictJob(id=JobId("j"), in_favour_of=JobId("k"), message=""),
    c.ResizeJob(id=JobId("j")),
    c.ExpireJob(id=JobId("j")),
    c.FailJob(id=JobId("j"), message=""),
    c.ForgetRemains(id=JobId("j")),
    c.ReportTask(report=REPORT),
    c.ReportNodes(cluster=ClusterName("cc"), nodes=()),
    c.AdvanceRun(id=RUN, seen=1),
    c.ForgetRunRemains(id=RUN),
    c.FireSchedule(id=SCHEDULE, seen=1),
    c.ReportSnapshot(id=SNAPSHOT, files=0, bytes=0),
    c.ForgetSnapshot(id=SNAPSHOT),
]


def test_every_command_is_in_the_table() -> None:
    listed = {type(command) for command in [*ROOT_ONLY, *ANYONE, *PLATFORM_ONLY]}
    assert listed == set(typing.get_args(c.Command))


@pytest.mark.parametrize("command", ROOT_ONLY, ids=lambda command: type(command).__name__)
def test_root_only(command: c.Command) -> None:
    authorize(BOSS, command)
    with pytest.raises(Denied):
        authorize(ALICE, command)


@pytest.mark.parametrize("command", ANYONE, ids=lambda command: type(command).__name__)
def test_anyone(command: c.Command) -> None:
    authorize(ALICE, command)


@pytest.mark.parametrize("command", PLATFORM_ONLY, ids=lambda command: type(command).__name__)
def test_not_even_root_may_report_or_decide(command: c.Command) -> None:
    authorize(PLATFORM, command)
    with pytest.raises(Denied):
        authorize(BOSS, command)


def test_a_queue_is_used_by_grant() -> None:
    grant = Grant(
        id=GrantId("g"),
        user=ALICE.name,
        resource_type=ResourceType.QUEUE,
        resource_id="q",
        created_at=THEN,
        updated_at=THEN,
    )
    assert may_use_queue(ALICE, "q", [grant])
    assert not may_use_queue(ALICE, "other", [grant])
    assert may_use_queue(BOSS, "other", [])


def test_a_filesystem_is_used_by_its_owner_root_and_by_grant() -> None:
    filesystem = Filesystem(
        id=FilesystemId("fs-bob1-f"), name="f", owner=UserName("bob1"), type="local", created_at=THEN, updated_at=THEN
    )

    def grant(kind: ResourceType, resource: str) -> Grant:
        return Grant(
            id=GrantId("g"),
            user=ALICE.name,
            resource_type=kind,
            resource_id=resource,
            created_at=THEN,
            updated_at=THEN,
        )

    assert may_use_filesystem(Actor(name=UserName("bob1")), filesystem, [])
    assert may_use_filesystem(BOSS, filesystem, [])
    assert may_use_filesystem(ALICE, filesystem, [grant(ResourceType.FILESYSTEM, "fs-bob1-f")])
    assert not may_use_filesystem(ALICE, filesystem, [grant(ResourceType.FILESYSTEM, "fs-bob1-other")])
    assert not may_use_filesystem(ALICE, filesystem, [grant(ResourceType.QUEUE, "fs-bob1-f")])
    assert not may_use_filesystem(ALICE, filesystem, [])
