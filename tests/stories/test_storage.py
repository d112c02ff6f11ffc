"""Stories of filesystems and what belongs to them: links, mounts, caches, snapshots; told on the platform in memory."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from paddleflow.adapters.identity import open_sealed_plan
from paddleflow.domain.commands import (
    CacheSettings,
    CloseMount,
    CreateCacheConfig,
    CreateFilesystem,
    CreateGrant,
    CreateLink,
    CreateSnapshot,
    DeleteCacheConfig,
    DeleteFilesystem,
    DeleteGrant,
    DeleteLink,
    DeleteSnapshot,
    DeleteUser,
    OpenMount,
    ReportCache,
    SubmitJob,
    UpdateCacheConfig,
    UpdateFilesystem,
)
from paddleflow.domain.errors import Conflict, Denied, Duplicate, InUse, Invalid, NotFound, Unauthenticated, Unavailable
from paddleflow.domain.events import EventKind
from paddleflow.domain.filesystems import Filesystem
from paddleflow.domain.ids import FilesystemId, JobId, MountId, SnapshotId, UserName
from paddleflow.domain.jobs import FsRef, JobSpec, JobStatus
from paddleflow.domain.mounts import REPORT_LIFE, SEEN_WITHIN, TOKEN_LIFE
from paddleflow.domain.queries import PageRequest
from paddleflow.domain.snapshots import SnapshotKind, SnapshotState
from paddleflow.domain.storages import Storage
from paddleflow.domain.users import Actor
from paddleflow.engine.mounts import OpenedMount
from paddleflow.testing.builders import a_member, a_node, resources
from paddleflow.testing.platform import ROOT_ACTOR, InMemoryPlatform
from tests.waiting import DEADLINE_S

SECRET = "wJalrXUtnFEMI-a-real-secret"
KEYS = {"accessKey": "AK", "secretKey": SECRET, "endpoint": "s3.example.org"}
DATA, DISK = FilesystemId("fs-alice-data"), FilesystemId("fs-alice-disk")


@pytest.fixture
def platform() -> InMemoryPlatform:
    return InMemoryPlatform([a_node("node-1", resources("4", "32Gi")), a_node("node-2", resources("8", "32Gi"))])


@pytest.fixture
def alice(platform: InMemoryPlatform) -> Actor:
    alice = platform.a_user("alice", "default-queue")
    platform.storage.create_filesystem(alice, CreateFilesystem(name="data", url="s3://bucket/x", properties=KEYS))
    return alice


def stored(platform: InMemoryPlatform, fs_id: FilesystemId = DATA) -> Filesystem:
    with platform.store.read() as view:
        found = view.filesystems.find(fs_id)
    assert found is not None
    return found


def everything_stored(platform: InMemoryPlatform) -> str:
    """Rows and events, as text."""
    with platform.store.read() as view:
        events = view.events.after(0, 10_000)
        rows = (stored(platform), view.links.of_filesystem(DISK))
    return repr(events) + repr(rows) + repr([dict(link.properties) for link in rows[1]])


# Filesystems


def test_a_storage_is_reached_before_it_is_registered_and_its_secret_is_sealed(
    platform: InMemoryPlatform, alice: Actor
) -> None:
    (checked,) = platform.storages.checked
    assert checked.properties["secretKey"] == SECRET, "it is checked with the real credentials"
    assert stored(platform).properties["secretKey"].startswith("sealed:")
    assert SECRET not in everything_stored(platform)
    platform.storages.failure = Denied(f"signature of {SECRET} does not match")
    with pytest.raises(Invalid) as caught:
        platform.storage.create_filesystem(alice, CreateFilesystem(name="bad", url="s3://b2/x", properties=KEYS))
    assert caught.value.code == "ConnectivityFailed"
    assert "does not match" in caught.value.message
    assert SECRET not in caught.value.message
    with platform.store.read() as view:
        assert view.filesystems.find(FilesystemId("fs-alice-bad")) is None


def test_nobody_makes_the_platform_call_a_storage_for_another(platform: InMemoryPlatform, alice: Actor) -> None:
    platform.storages.checked.clear()
    with pytest.raises(Denied):
        platform.storage.create_filesystem(
            alice, CreateFilesystem(name="f", url="s3://bucket/x", properties=KEYS, owner="root")
        )
    assert platform.storages.checked == []


def test_an_update_may_leave_the_secret_as_it_is_unless_the_address_changes(
    platform: InMemoryPlatform, alice: Actor
) -> None:
    platform.storages.checked.clear()
    sent = {**KEYS, "secretKey": "******", "region": "eu"}
    platform.storage.update_filesystem(alice, UpdateFilesystem(name="data", url="s3://bucket/y", properties=sent))
    assert platform.storages.checked[0].properties["secretKey"] == SECRET
    now = stored(platform)
    assert (now.sub_path, now.properties["region"]) == ("/y", "eu")
    assert now.properties["secretKey"].startswith("sealed:")
    elsewhere = {**sent, "endpoint": "evil.example.org"}
    platform.storages.checked.clear()
    with pytest.raises(Invalid, match="give the secret again"):
        platform.storage.update_filesystem(
            alice, UpdateFilesystem(name="data", url="s3://bucket/y", properties=elsewhere)
        )
    assert platform.storages.checked == [], "nothing was sent there"


def test_the_same_creation_sent_twice_is_one(platform: InMemoryPlatform, alice: Actor) -> None:
    command = CreateFilesystem(name="again", url="s3://bucket/z", properties=KEYS)
    first = platform.storage.create_filesystem(alice, command, idempotency_key="k")
    assert platform.storage.create_filesystem(alice, command, idempotency_key="k") == first
    other = replace(command, properties={**KEYS, "region": "eu"})
    with pytest.raises(Conflict):
        platform.storage.create_filesystem(alice, other, idempotency_key="k")


# Links


@pytest.fixture
def linked(platform: InMemoryPlatform, alice: Actor) -> CreateLink:
    platform.ask(CreateFilesystem(name="disk", url="local:///mnt/disk"), alice)
    filesystem = stored(platform, DISK)
    platform.files.write(filesystem, "dir/file", b"x")
    platform.files.make_directory(filesystem, "dir/empty")
    link = CreateLink(fs_name="disk", fs_path="/dir/link", url="s3://other/y", properties=KEYS)
    platform.storage.create_link(alice, link)
    return link


def test_a_link_hangs_at_an_empty_place_of_a_directory(
    platform: InMemoryPlatform, alice: Actor, linked: CreateLink
) -> None:
    platform.storage.create_link(alice, replace(linked, fs_path="/dir/empty"))
    platform.storage.create_link(alice, replace(linked, fs_path="//top/"))
    _, page = platform.storage_reads.links(alice, "", "disk", PageRequest())
    assert [link.fs_path for link in page.rows] == ["/dir/link", "/dir/empty", "/top"]
    assert SECRET not in everything_stored(platform)
    for path, code in {
        "/dir/link": "LinkPathExist",
        "/dir/link/below": "LinkPathExist",
        "/dir": "LinkPathExist",
        "/none/x": "LinkFileSystemPathNotExist",
        "/dir/file/x": "LinkFileSystemPathNotExist",
        "/dir/file": "LinkPathMustBeEmpty",
        "relative": "InvalidArguments",
    }.items():
        with pytest.raises((Invalid, Duplicate)) as caught:
            platform.storage.create_link(alice, replace(linked, fs_path=path))
        assert caught.value.code == code, path
    with pytest.raises(Invalid) as caught:
        platform.storage.create_link(alice, replace(linked, fs_path="/new", url="glusterfs://h:v"))
    assert caught.value.code == "InvalidLinkURL"
    platform.storages.failure = Unavailable("no answer")
    with pytest.raises(Invalid) as caught:
        platform.storage.create_link(alice, replace(linked, fs_path="/new"))
    assert caught.value.code == "ConnectivityFailed"


def test_a_full_directory_is_no_place_for_a_link(platform: InMemoryPlatform, alice: Actor, linked: CreateLink) -> None:
    platform.files.write(stored(platform, DISK), "full/file", b"x")
    with pytest.raises(Invalid) as caught:
        platform.storage.create_link(alice, replace(linked, fs_path="/full"))
    assert caught.value.code == "LinkPathMustBeEmpty"


def test_a_link_goes_by_itself_or_with_its_filesystem(
    platform: InMemoryPlatform, alice: Actor, linked: CreateLink
) -> None:
    platform.ask(DeleteLink(fs_name="disk", fs_path="/dir/link"), alice)
    with pytest.raises(NotFound):
        platform.ask(DeleteLink(fs_name="disk", fs_path="/dir/link"), alice)
    platform.storage.create_link(alice, linked)
    platform.ask(DeleteFilesystem(name="disk"), alice)
    with platform.store.read() as view:
        assert view.links.of_filesystem(DISK) == ()


# Mounts


def opened(platform: InMemoryPlatform, actor: Actor, **more: Any) -> OpenedMount:
    return platform.mounts.open(actor, OpenMount(fs_id=DATA, **more))


def plan_of(platform: InMemoryPlatform, token: str) -> Any:
    return json.loads(open_sealed_plan(token, platform.mounts.access(token).sealed))


def test_a_mount_gets_its_plan_encrypted_for_its_token_alone(
    platform: InMemoryPlatform, alice: Actor, linked: CreateLink
) -> None:
    platform.ask(CreateCacheConfig(fs_name="data", settings=CacheSettings(cache_dir="/c", quota=5)), alice)
    mount = opened(platform, alice, node="node-1", read_only=True)
    access = platform.mounts.access(mount.token)
    assert SECRET not in repr(access)
    plan = json.loads(open_sealed_plan(mount.token, access.sealed))
    assert plan["storage"]["properties"]["secretKey"] == SECRET
    assert (plan["fsID"], plan["readOnly"], plan["snapshot"], plan["links"]) == (DATA, True, None, [])
    assert (plan["cache"]["cacheDir"], plan["cache"]["quota"]) == ("/c", 5)
    other = platform.mounts.open(alice, OpenMount(fs_id=DISK))
    (link,) = plan_of(platform, other.token)["links"]
    assert (link["fsPath"], link["storage"]["properties"]["secretKey"]) == ("/dir/link", SECRET)
    with pytest.raises(Invalid):
        open_sealed_plan(other.token, access.sealed)
    assert SECRET not in everything_stored(platform)
    assert mount.token not in everything_stored(platform)


def test_a_token_ends_unless_it_is_renewed_in_time(platform: InMemoryPlatform, alice: Actor) -> None:
    token = opened(platform, alice).token
    for _ in range(5):
        platform.pass_time(TOKEN_LIFE.total_seconds() * 0.8)
        token = platform.mounts.access(token).token
    platform.pass_time(TOKEN_LIFE.total_seconds() + 1)
    with pytest.raises(Unauthenticated, match="expired"):
        platform.mounts.access(token)
    with pytest.raises(InUse):
        platform.ask(DeleteFilesystem(name="data"), alice)
    platform.pass_time(SEEN_WITHIN.total_seconds())
    assert platform.storage_reads.mounts(alice, "", "data")[1] == ()
    platform.ask(DeleteFilesystem(name="data"), alice)


@pytest.mark.parametrize(
    "break_it", [lambda t: t[:-1] + "0g"[t[-1] == "0"], lambda t: "x" + t, lambda t: "", lambda t: "ä.1.2"]
)
def test_a_forged_token_is_refused(platform: InMemoryPlatform, alice: Actor, break_it: Any) -> None:
    token = opened(platform, alice).token
    with pytest.raises(Unauthenticated):
        platform.mounts.access(break_it(token))
    mount_id, expiry, secret = token.split(".")
    with pytest.raises(Unauthenticated):
        platform.mounts.access(f"{mount_id}.{int(expiry) + 1}.{secret}")


def test_whoever_may_use_a_filesystem_may_mount_it_and_for_no_longer(platform: InMemoryPlatform, alice: Actor) -> None:
    bobby = platform.a_user("bobby")
    with pytest.raises(Denied):
        opened(platform, bobby)
    grant = {"user": UserName("bobby"), "resource_type": "fs", "resource_id": DATA}
    platform.ask(CreateGrant(**grant))  # type: ignore[arg-type]
    token = opened(platform, bobby).token
    assert plan_of(platform, token)["fsName"] == "data"
    platform.ask(DeleteGrant(**grant))  # type: ignore[arg-type]
    with pytest.raises(Denied):
        platform.mounts.access(token)
    token = opened(platform, ROOT_ACTOR).token
    assert plan_of(platform, token)["username"] == "alice"


def test_the_mounts_of_a_user_who_is_gone_are_refused(platform: InMemoryPlatform, alice: Actor) -> None:
    platform.a_user("bobby")
    platform.ask(CreateGrant(user=UserName("bobby"), resource_type="fs", resource_id=DATA))
    token = opened(platform, Actor(name=UserName("bobby"))).token
    platform.ask(DeleteUser(name=UserName("bobby")))
    with pytest.raises((Unauthenticated, Denied)):
        platform.mounts.access(token)


def test_a_mounted_filesystem_stays_where_it_is(platform: InMemoryPlatform, alice: Actor) -> None:
    mount = opened(platform, alice, node="node-1")
    moved = UpdateFilesystem(name="data", url="s3://elsewhere/x", properties=KEYS)
    for command in (
        DeleteFilesystem(name="data"),
        moved,
        CreateCacheConfig(fs_name="data", settings=CacheSettings()),
    ):
        with pytest.raises(InUse, match="node-1"):
            platform.ask(command, alice)
    platform.ask(replace(moved, url="s3://bucket/x", properties={**KEYS, "secretKey": "rotated"}), alice)
    assert plan_of(platform, mount.token)["storage"]["properties"]["secretKey"] == "rotated"
    platform.mounts.close(mount.token)
    with pytest.raises(Unauthenticated, match="closed"):
        platform.mounts.access(mount.token)
    platform.ask(moved, alice)
    platform.ask(DeleteFilesystem(name="data"), alice)


def test_a_mount_is_closed_by_its_user_the_owner_or_root(platform: InMemoryPlatform, alice: Actor) -> None:
    bobby = platform.a_user("bobby")
    mount = opened(platform, alice).mount_id
    with pytest.raises(Denied):
        platform.ask(CloseMount(id=mount), bobby)
    platform.ask(CloseMount(id=mount), alice)
    with pytest.raises(NotFound):
        platform.ask(CloseMount(id=mount), alice)


def test_a_cache_configuration_is_made_changed_and_deleted(platform: InMemoryPlatform, alice: Actor) -> None:
    settings = CacheSettings(cache_dir="/c", meta_driver="disk", block_size=4096)
    with pytest.raises(NotFound):
        platform.ask(UpdateCacheConfig(fs_name="data", settings=settings), alice)
    platform.ask(CreateCacheConfig(fs_name="data", settings=settings), alice)
    with pytest.raises(Duplicate):
        platform.ask(CreateCacheConfig(fs_name="data", settings=settings), alice)
    platform.ask(UpdateCacheConfig(fs_name="data", settings=CacheSettings(block_size=0, debug=True)), alice)
    with pytest.raises(Invalid):
        platform.ask(UpdateCacheConfig(fs_name="data", settings=CacheSettings(cache_dir="")), alice)
    _, config = platform.storage_reads.cache_config(alice, "", "data")
    assert (config.cache_dir, config.meta_driver, config.block_size, config.debug) == ("/c", "disk", 0, True)
    platform.ask(DeleteCacheConfig(fs_name="data"), alice)
    with pytest.raises(NotFound):
        platform.storage_reads.cache_config(alice, "", "data")


# Where data is


def reads_data(platform: InMemoryPlatform, alice: Actor, **more: Any) -> JobId:
    member = replace(a_member(resources("1")), fs=FsRef(name="data"), **more)
    return platform.submit_spec(SubmitJob(spec=JobSpec(members=(member,))), alice)


def tell_cached(platform: InMemoryPlatform, mount: OpenedMount, node: str, cached: int, **more: Any) -> None:
    report = ReportCache(id=mount.mount_id, node=node, cached_bytes=cached, **more)
    platform.mounts.report(mount.token, report)


def test_a_job_goes_to_the_node_that_has_its_data(platform: InMemoryPlatform, alice: Actor) -> None:
    assert platform.job(reads_data(platform, alice)).placements[0].node == "node-1", "packed, where nothing is known"
    mount = opened(platform, alice)
    tell_cached(platform, mount, "node-2", 900, total_bytes=1000)
    job = reads_data(platform, alice)
    assert platform.job(job).placements[0].node == "node-2"
    assert "node-2 has about 90% of its data in its cache" in platform.reads.why(alice, job).sentence
    other = platform.submit(resources("1"), actor=alice)
    assert platform.job(other).placements[0].node == "node-1", "a job without that data is packed as ever"
    platform.pass_time(REPORT_LIFE.total_seconds() + 1)
    assert platform.job(reads_data(platform, alice)).placements[0].node == "node-1", "an old report counts no more"


def test_the_node_with_the_data_is_not_waited_for(platform: InMemoryPlatform, alice: Actor) -> None:
    filling = platform.submit(resources("8"), actor=alice)
    assert platform.job(filling).placements[0].node == "node-2"
    tell_cached(platform, opened(platform, alice), "node-2", 900)
    job = reads_data(platform, alice)
    assert platform.job(job).placements[0].node == "node-1"
    assert "cache" not in platform.reads.why(alice, job).sentence


def test_a_job_that_waits_hears_of_caches_that_fill(platform: InMemoryPlatform, alice: Actor) -> None:
    filling = [platform.submit(resources("4"), actor=alice) for _ in range(3)]
    job = reads_data(platform, alice)
    assert platform.job(job).status is JobStatus.INIT
    mount = opened(platform, alice)
    platform.pass_time(60)
    tell_cached(platform, mount, "node-2", 900)
    on_one = next(each for each in filling if platform.job(each).placements[0].node == "node-1")
    on_two = next(each for each in filling if platform.job(each).placements[0].node == "node-2")
    for each in (on_one, on_two):
        platform.runtime.finish(platform.job(each).placements[0].task_id, 0)
    platform.settle()
    assert platform.job(job).placements[0].node == "node-2"


def test_a_mount_reports_on_itself_alone_and_sensibly(platform: InMemoryPlatform, alice: Actor) -> None:
    mount, other = opened(platform, alice, node="node-1"), opened(platform, alice)
    with pytest.raises(Denied):
        platform.mounts.report(mount.token, ReportCache(id=other.mount_id, node="node-1"))
    for wrong in (
        {"cached_bytes": -1},
        {"prefixes": {"a": -1}},
        {"prefixes": {f"p{n}": 1 for n in range(101)}},
        {"node": "n" * 300},
    ):
        with pytest.raises(Invalid) as caught:
            fields: dict[str, Any] = {"node": "", **wrong}
            platform.mounts.report(mount.token, ReportCache(id=mount.mount_id, **fields))
        assert "field" in caught.value.details
    with pytest.raises(Invalid, match="name the node"):
        platform.mounts.report(other.token, ReportCache(id=other.mount_id, node=""))
    tell_cached(platform, mount, "", 100, hits=3, misses=1, hit_bytes=75, miss_bytes=25)
    _, (cache,) = platform.storage_reads.caches(alice, "", "data")
    assert (cache.node, cache.cached_bytes, cache.hit_ratio) == ("node-1", 100, 0.75)
    _, live = platform.storage_reads.mounts(alice, "", "data")
    assert [each.cache is not None for each in live] == [True, False]


# Snapshots


def taken(platform: InMemoryPlatform, alice: Actor, **more: Any) -> SnapshotId:
    answer = platform.ask(CreateSnapshot(fs_name="data", **more), alice)
    platform.settle()
    return SnapshotId(str(answer["snapshotID"]))


def state_of(platform: InMemoryPlatform, alice: Actor, snapshot: SnapshotId) -> SnapshotState:
    return platform.storage_reads.snapshot(alice, "", "data", snapshot)[1].state


def test_a_snapshot_is_made_mounted_read_only_and_deleted(platform: InMemoryPlatform, alice: Actor) -> None:
    snapshot = taken(platform, alice, name="before", sub_path="/train/", copy=True)
    _, row = platform.storage_reads.snapshot(alice, "", "data", snapshot)
    assert (row.state, row.files, row.bytes) == (SnapshotState.READY, 3, 300)
    assert (row.kind, row.sub_path) == (SnapshotKind.COPY, "train")
    assert platform.storages.made[snapshot].properties["secretKey"] == SECRET
    mount = opened(platform, alice, snapshot=snapshot)
    plan = plan_of(platform, mount.token)
    assert plan["readOnly"] is True
    assert plan["snapshot"]["manifestPath"] == f".paddleflow/snapshots/{snapshot}.jsonl.gz"
    with pytest.raises(InUse):
        platform.ask(DeleteSnapshot(fs_name="data", id=snapshot), alice)
    platform.mounts.close(mount.token)
    platform.ask(DeleteSnapshot(fs_name="data", id=snapshot), alice)
    platform.settle()
    assert platform.storages.made == {}
    with pytest.raises(NotFound):
        state_of(platform, alice, snapshot)
    told = [event.kind for event in platform.story_of(snapshot)]  # type: ignore[arg-type]
    assert told == [
        EventKind.SNAPSHOT_REQUESTED,
        EventKind.SNAPSHOT_ENDED,
        EventKind.SNAPSHOT_DELETING,
        EventKind.SNAPSHOT_DELETED,
    ]


def test_a_storage_that_does_not_answer_is_tried_again(platform: InMemoryPlatform, alice: Actor) -> None:
    platform.storages.failure = Unavailable("no answer")
    snapshot = taken(platform, alice)
    assert state_of(platform, alice, snapshot) is SnapshotState.CREATING
    _, row = platform.storage_reads.snapshot(alice, "", "data", snapshot)
    assert row.files == 1, "how far it came is told"
    with pytest.raises(Conflict):
        opened(platform, alice, snapshot=snapshot)
    with pytest.raises(InUse):
        platform.ask(DeleteFilesystem(name="data"), alice)
    platform.restart()
    platform.storages.failure = None
    platform.pass_time(3)
    assert state_of(platform, alice, snapshot) is SnapshotState.READY


def test_a_snapshot_that_cannot_be_made_says_why(platform: InMemoryPlatform, alice: Actor) -> None:
    platform.storages.failure = Denied(f"{SECRET} may not list")
    snapshot = taken(platform, alice)
    _, row = platform.storage_reads.snapshot(alice, "", "data", snapshot)
    assert (row.state, row.message) == (SnapshotState.FAILED, "****** may not list")
    platform.ask(DeleteSnapshot(fs_name="data", id=snapshot), alice)
    platform.settle()
    assert state_of(platform, alice, snapshot) is SnapshotState.DELETING
    platform.storages.failure = None
    platform.pass_time(3)
    with pytest.raises(NotFound):
        state_of(platform, alice, snapshot)


@pytest.mark.parametrize("wrong", [{"sub_path": "../x"}, {"sub_path": ".paddleflow"}, {"name": "n" * 300}])
def test_what_no_snapshot_is_made_of(platform: InMemoryPlatform, alice: Actor, wrong: dict[str, Any]) -> None:
    with pytest.raises(Invalid) as caught:
        platform.ask(CreateSnapshot(fs_name="data", **wrong), alice)
    assert "field" in caught.value.details


def test_a_mount_names_a_snapshot_of_its_own_filesystem(platform: InMemoryPlatform, alice: Actor) -> None:
    platform.ask(CreateFilesystem(name="other", url="local:///mnt/x"), alice)
    snapshot = taken(platform, alice)
    with pytest.raises(Invalid):
        platform.mounts.open(alice, OpenMount(fs_id=FilesystemId("fs-alice-other"), snapshot=snapshot))
    with pytest.raises(Invalid):
        opened(platform, alice, snapshot="snap-none")
    with pytest.raises(NotFound):
        platform.ask(CloseMount(id=MountId("mount-none")), alice)


def test_one_users_silent_storages_keep_nobody_else_waiting(platform: InMemoryPlatform) -> None:
    """Two of them are waited for; what comes on top is refused at once, and others are served meanwhile."""
    alice, bella = platform.a_user("alice", "default-queue"), platform.a_user("bella", "default-queue")
    asked, silent = threading.Semaphore(0), threading.Event()
    told = platform.storages.check

    def check(storage: Storage) -> None:
        if storage.sub_path == "/silent":
            asked.release()
            silent.wait()
        told(storage)

    platform.storages.check = check  # type: ignore[method-assign]
    create = platform.storage.create_filesystem
    with ThreadPoolExecutor() as pool:
        waiting = [
            pool.submit(create, alice, CreateFilesystem(name=f"s{n}", url="s3://bucket/silent", properties=KEYS))
            for n in range(2)
        ]
        try:
            for _ in waiting:
                assert asked.acquire(timeout=DEADLINE_S)
            with pytest.raises(Unavailable, match="being tried already"):
                create(alice, CreateFilesystem(name="third", url="s3://bucket/x", properties=KEYS))
            create(bella, CreateFilesystem(name="good", url="s3://bucket/x", properties=KEYS))
        finally:
            silent.set()
        for one in waiting:
            one.result(DEADLINE_S)
    create(alice, CreateFilesystem(name="third", url="s3://bucket/x", properties=KEYS))
