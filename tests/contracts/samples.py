"""Rows to store: plain ones for examples, arbitrary ones for properties."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from paddleflow.domain.catalog import Pipeline, PipelineVersion
from paddleflow.domain.clusters import Cluster, ClusterType, Node
from paddleflow.domain.events import Event, EventKind
from paddleflow.domain.filesystems import CacheConfig, Filesystem, Link
from paddleflow.domain.flavours import Flavour
from paddleflow.domain.ids import (
    CacheId,
    FilesystemId,
    GrantId,
    JobId,
    NodeName,
    PipelineId,
    RunId,
    ScheduleId,
    TaskId,
    UserName,
    VersionId,
)
from paddleflow.domain.jobs import (
    Elasticity,
    FlavourRef,
    Framework,
    FsRef,
    Job,
    JobKind,
    JobSpec,
    JobStatus,
    Member,
    Placement,
    Priority,
    RunPolicy,
    Spot,
    Task,
)
from paddleflow.domain.mounts import CacheReport, Mount
from paddleflow.domain.queries import JobFilter
from paddleflow.domain.queues import Queue
from paddleflow.domain.resources import Resources
from paddleflow.domain.runs import (
    ArtifactEvent,
    ArtifactUse,
    CacheEntry,
    Fingerprint,
    NodeKind,
    NodeStatus,
    Part,
    Run,
    RunNode,
    RunStatus,
    Stop,
)
from paddleflow.domain.schedules import ConcurrencyPolicy, Schedule, ScheduleStatus
from paddleflow.domain.snapshots import Snapshot, SnapshotKind, SnapshotState
from paddleflow.domain.users import Grant, ResourceType, User

NOON = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def user(name: str = "alice", **changes: Any) -> User:
    fields: dict[str, Any] = {"name": name, "password_hash": "hash", "created_at": NOON, "updated_at": NOON}
    return User(**fields | changes)


def grant(user_name: str = "alice", resource_id: str = "q1", **changes: Any) -> Grant:
    fields: dict[str, Any] = {
        "id": GrantId(f"grant-{user_name}-{resource_id}"),
        "user": user_name,
        "resource_type": ResourceType.QUEUE,
        "resource_id": resource_id,
        "created_at": NOON,
        "updated_at": NOON,
    }
    return Grant(**fields | changes)


def flavour(name: str = "small", **changes: Any) -> Flavour:
    fields: dict[str, Any] = {
        "id": f"flavour-{name}",
        "name": name,
        "cpu": "1",
        "memory": "1Gi",
        "scalars": {"nvidia.com/gpu": "2"},
        "created_at": NOON,
        "updated_at": NOON,
    }
    return Flavour(**fields | changes)


def cluster(name: str = "default-cluster", **changes: Any) -> Cluster:
    fields: dict[str, Any] = {
        "id": f"cluster-{name}",
        "name": name,
        "type": ClusterType.LOCAL,
        "endpoint": "127.0.0.1",
        "namespaces": ("default", "team"),
        "created_at": NOON,
        "updated_at": NOON,
    }
    return Cluster(**fields | changes)


def node(name: str, cluster_name: str = "default-cluster", **changes: Any) -> Node:
    fields: dict[str, Any] = {
        "name": name,
        "cluster": cluster_name,
        "capacity": Resources.of(cpu="8", memory="32Gi"),
        "labels": {"zone": "a"},
    }
    return Node(**fields | changes)


def queue(name: str = "q1", **changes: Any) -> Queue:
    fields: dict[str, Any] = {
        "id": f"queue-{name}",
        "name": name,
        "namespace": "default",
        "cluster": "default-cluster",
        "max_resources": Resources.of(cpu="20", memory="200Gi"),
        "min_resources": Resources.of(cpu="500m"),
        "location": {"zone": "a"},
        "policies": ("priority", "fifo"),
        "weight": 3,
        "created_at": NOON,
        "updated_at": NOON,
    }
    return Queue(**fields | changes)


def filesystem(name: str = "data", owner: str = "alice", **changes: Any) -> Filesystem:
    fields: dict[str, Any] = {
        "id": f"fs-{owner}-{name}",
        "name": name,
        "owner": owner,
        "type": "s3",
        "server_address": "s3.example.org",
        "sub_path": "bucket/dir",
        "properties": {"region": "eu", "accessKey": "k"},
        "independent_mount_process": True,
        "created_at": NOON,
        "updated_at": NOON,
    }
    return Filesystem(**fields | changes)


def link(fs_path: str = "/linked", fs_id: str = "fs-alice-data", **changes: Any) -> Link:
    fields: dict[str, Any] = {
        "fs_id": fs_id,
        "fs_path": fs_path,
        "owner": "alice",
        "type": "s3",
        "server_address": "s3.example.org",
        "sub_path": "/dir",
        "properties": {"bucket": "b", "secretKey": "sealed:x"},
        "created_at": NOON,
        "updated_at": NOON,
    }
    return Link(**fields | changes)


def cache_config(fs_id: str = "fs-alice-data", **changes: Any) -> CacheConfig:
    fields: dict[str, Any] = {
        "fs_id": fs_id,
        "cache_dir": "/var/cache/x",
        "quota": 1 << 40,
        "meta_driver": "disk",
        "block_size": 1 << 20,
        "debug": True,
        "clean_cache": True,
        "cpu_limit": "500m",
        "memory_limit": "1Gi",
        "node_taint_toleration": {"a": "b"},
        "extra_config": {"meta-ttl": "5"},
        "created_at": NOON,
        "updated_at": NOON,
    }
    return CacheConfig(**fields | changes)


def mount(id: str = "mount-1", fs_id: str = "fs-alice-data", **changes: Any) -> Mount:
    fields: dict[str, Any] = {
        "id": id,
        "fs_id": fs_id,
        "user": "bobby",
        "node": "node-1",
        "mountpoint": "/mnt/data",
        "read_only": True,
        "snapshot": "snap-1",
        "created_at": NOON,
        "seen_at": NOON,
    }
    return Mount(**fields | changes)


def cache_report(node: str = "node-1", fs_id: str = "fs-alice-data", **changes: Any) -> CacheReport:
    fields: dict[str, Any] = {
        "fs_id": fs_id,
        "node": node,
        "mount_id": "mount-1",
        "cached_bytes": 1 << 40,
        "cached_files": 7,
        "total_bytes": 1 << 41,
        "hits": 3,
        "misses": 1,
        "hit_bytes": 300,
        "miss_bytes": 100,
        "prefixes": {"train": 5},
        "reported_at": NOON,
    }
    return CacheReport(**fields | changes)


def snapshot(id: str = "snap-1", fs_id: str = "fs-alice-data", **changes: Any) -> Snapshot:
    fields: dict[str, Any] = {
        "id": id,
        "fs_id": fs_id,
        "owner": "alice",
        "name": "before",
        "sub_path": "train",
        "kind": SnapshotKind.COPY,
        "state": SnapshotState.READY,
        "files": 3,
        "bytes": 1 << 40,
        "message": "m",
        "created_at": NOON,
        "updated_at": NOON,
    }
    return Snapshot(**fields | changes)


def job(id: str = "job-1", **changes: Any) -> Job:
    fields: dict[str, Any] = {
        "id": JobId(id),
        "name": "train",
        "owner": "alice",
        "queue": "q1",
        "cluster": "default-cluster",
        "spec": JobSpec(members=(Member(command="sleep 1", flavour=FlavourRef(name="small")),)),
        "created_at": NOON,
        "updated_at": NOON,
    }
    return Job(**fields | changes)


def task(id: str, job_id: str = "job-1", **changes: Any) -> Task:
    fields: dict[str, Any] = {"role": "worker", "index": 0, "node": "n1"}
    return Task(id=TaskId(id), job_id=JobId(job_id), **fields | changes)


def event(subject: str = "job-1", **changes: Any) -> Event:
    fields: dict[str, Any] = {
        "kind": EventKind.JOB_UPDATED,
        "subject": subject,
        "owner": UserName("alice"),
        "data": {"status": "running", "n": 1, "nested": {"list": [1, "two", None]}},
        "at": NOON,
        "cause": "request-1",
    }
    return Event(**fields | changes)


def run(id: str = "run-000001", **changes: Any) -> Run:
    fields: dict[str, Any] = {
        "id": RunId(id),
        "name": "training",
        "owner": UserName("alice"),
        "source": "run.yaml",
        "text": "name: training\n",
        "plan": '{"nodes":[]}',
        "fs_id": FilesystemId("fs-alice-data"),
        "fs_name": "data",
        "created_at": NOON,
        "updated_at": NOON,
    }
    return Run(**fields | changes)


def run_node(key: str, run_id: str = "run-000001", **changes: Any) -> RunNode:
    return RunNode(**{"run_id": RunId(run_id), "key": key, "node": key, "kind": NodeKind.STEP} | changes)


def fingerprint(first: str = "first", second: str = "second") -> Fingerprint:
    return Fingerprint(
        first=first,
        second=second,
        parts={"command": Part(digest="d1", shown="python train.py"), "inputs.data": Part(digest="d2")},
    )


def cache_entry(id: str = "cch-000001", **changes: Any) -> CacheEntry:
    fields: dict[str, Any] = {
        "id": CacheId(id),
        "fingerprint": fingerprint(),
        "run_id": RunId("run-000001"),
        "job_id": JobId("job-1"),
        "node": "train",
        "source": "run.yaml",
        "owner": UserName("alice"),
        "fs_id": FilesystemId("fs-alice-data"),
        "fs_name": "data",
        "outputs": {"model": "run-000001/train/model"},
        "expires_after_s": 600,
        "created_at": NOON,
        "updated_at": NOON,
    }
    return CacheEntry(**fields | changes)


def artifact(name: str = "model", **changes: Any) -> ArtifactEvent:
    fields: dict[str, Any] = {
        "run_id": RunId("run-000001"),
        "fs_id": FilesystemId("fs-alice-data"),
        "fs_name": "data",
        "owner": UserName("alice"),
        "path": f"run-000001/train/{name}",
        "step": "train",
        "job_id": JobId("job-1"),
        "use": ArtifactUse.OUTPUT,
        "name": name,
        "meta": "{}",
        "created_at": NOON,
        "updated_at": NOON,
    }
    return ArtifactEvent(**fields | changes)


def pipeline(id: str = "ppl-000001", **changes: Any) -> Pipeline:
    fields: dict[str, Any] = {
        "id": PipelineId(id),
        "name": f"named {id}",
        "description": "what it does",
        "owner": UserName("alice"),
        "versions_made": 1,
        "created_at": NOON,
        "updated_at": NOON,
    }
    return Pipeline(**fields | changes)


def pipeline_version(id: str = "1", pipeline_id: str = "ppl-000001", **changes: Any) -> PipelineVersion:
    fields: dict[str, Any] = {
        "pipeline_id": PipelineId(pipeline_id),
        "id": VersionId(id),
        "text": "name: training\n",
        "digest": "abc",
        "owner": UserName("alice"),
        "created_at": NOON,
        "updated_at": NOON,
    }
    return PipelineVersion(**fields | changes)


def schedule(id: str = "schedule-000001", **changes: Any) -> Schedule:
    fields: dict[str, Any] = {
        "id": ScheduleId(id),
        "name": f"named {id}",
        "owner": UserName("alice"),
        "pipeline_id": PipelineId("ppl-000001"),
        "version_id": VersionId("1"),
        "crontab": "*/5 * * * *",
        "time_zone": "Europe/Berlin",
        "starts_at": NOON,
        "concurrency": 3,
        "policy": ConcurrencyPolicy.REPLACE,
        "expire_s": 60,
        "catch_up": False,
        "next_at": at(300),
        "created_at": NOON,
        "updated_at": NOON,
    }
    return Schedule(**fields | changes)


# Anything JSON can carry, lone surrogates and NUL included: a spec is stored as JSON.
anything = st.text(max_size=20)
# What the engines can hold in a column of its own.
plain = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=20)
moments = st.datetimes(min_value=datetime(1990, 1, 1), max_value=datetime(2200, 1, 1), timezones=st.just(UTC))
pairs = st.dictionaries(anything, anything, max_size=3)
labels = st.dictionaries(plain, plain, max_size=3)
resources = st.dictionaries(anything, st.integers(0, 2**63 - 1), max_size=3).map(Resources)
flavours = st.builds(FlavourRef, name=anything, resources=resources)
fs_refs = st.builds(
    FsRef,
    name=anything,
    mount_path=anything,
    sub_path=anything,
    read_only=st.booleans(),
    id=anything,
    type=anything,
    host_path=anything,
)
members = st.builds(
    Member,
    role=anything,
    replicas=st.integers(0, 1000),
    name=anything,
    flavour=flavours,
    limit=st.none() | flavours,
    fs=st.none() | fs_refs,
    extra_fs=st.lists(fs_refs, max_size=2).map(tuple),
    image=anything,
    env=pairs,
    command=anything,
    args=st.lists(anything, max_size=3).map(tuple),
    port=st.integers(0, 65535),
    labels=pairs,
    annotations=pairs,
    node_selector=pairs,
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | anything,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(anything, inner, max_size=2),
    max_leaves=5,
)
seconds = st.floats(0, 1e6)
specs = st.builds(
    JobSpec,
    kind=st.sampled_from(JobKind),
    framework=st.sampled_from(Framework),
    members=st.lists(members, max_size=3).map(tuple),
    extension_template=st.none() | st.dictionaries(anything, json_values, max_size=2),
    elastic=st.none()
    | st.builds(
        Elasticity,
        role=anything,
        least=st.integers(1, 9),
        most=st.integers(1, 9),
        sizes=st.lists(st.integers(1, 9), max_size=3).map(tuple),
        rescale_cost_s=seconds,
    ),
    policy=st.builds(
        RunPolicy,
        retries=st.integers(0, 9),
        backoff_s=seconds,
        deadline_s=st.none() | seconds,
        ttl_s=st.none() | seconds,
        grace_s=st.none() | seconds,
        requeue=st.booleans(),
    ),
)
gpus = st.lists(st.integers(0, 64), max_size=3).map(tuple)
placements = st.builds(
    Placement,
    task_id=anything.map(TaskId),
    role=anything,
    index=st.integers(0, 99),
    node=anything.map(NodeName),
    gpus=gpus,
)
spots = st.builds(Spot, role=anything, index=st.integers(0, 99), node=anything.map(NodeName), gpus=gpus)
jobs = st.builds(
    Job,
    id=st.just(JobId("job-any")),
    name=plain,
    owner=plain,
    queue=plain,
    cluster=plain,
    priority=st.sampled_from(Priority),
    labels=labels,
    annotations=pairs,
    spec=specs,
    status=st.sampled_from(JobStatus),
    message=plain,
    placements=st.lists(placements, max_size=3).map(tuple),
    leaving=st.lists(placements, max_size=2).map(tuple),
    claim=st.lists(spots, max_size=2).map(tuple),
    outcome=st.none() | st.sampled_from(JobStatus),
    generation=st.integers(0, 9),
    failures=st.integers(0, 9),
    not_before=st.none() | moments,
    resized_at=st.none() | moments,
    started_at=st.none() | moments,
    created_at=moments,
    activated_at=st.none() | moments,
    finished_at=st.none() | moments,
    updated_at=moments,
    seq=st.just(0),
    version=st.just(0),
)

# Few values each, so that filters meet rows.
_owners = st.sampled_from(["alice", "bobby", "carol"])
_queues = st.sampled_from(["q1", "q2"])
_clusters = st.sampled_from(["c1", "c2"])
_minutes = st.integers(0, 5).map(lambda minutes: at(60 * minutes))
_few_labels = st.dictionaries(st.sampled_from(["team", "app"]), st.sampled_from(["a", "b"]), max_size=2)
_few_statuses = st.sampled_from([JobStatus.INIT, JobStatus.RUNNING, JobStatus.SUCCEEDED, JobStatus.FAILED])

listed_jobs = st.lists(
    st.fixed_dictionaries(
        {
            "owner": _owners,
            "queue": _queues,
            "cluster": _clusters,
            "status": _few_statuses,
            "labels": _few_labels,
            "updated_at": _minutes,
            "activated_at": st.none() | _minutes,
        }
    ),
    max_size=25,
)
job_filters = st.builds(
    JobFilter,
    owner=st.none() | _owners,
    statuses=st.frozensets(_few_statuses, max_size=3),
    queue=st.none() | _queues,
    cluster=st.none() | _clusters,
    updated_since=st.none() | _minutes,
    activated_since=st.none() | _minutes,
    labels=_few_labels,
)

scalars = st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | anything
values = st.recursive(st.none() | scalars, lambda inner: st.lists(inner, max_size=3), max_leaves=5)
fingerprints = st.builds(
    Fingerprint,
    first=plain,
    second=plain,
    parts=st.dictionaries(anything, st.builds(Part, digest=anything, shown=anything), max_size=3),
)
run_ids = plain.map(RunId)
runs = st.builds(
    Run,
    id=st.just(RunId("run-any")),
    name=plain,
    owner=plain.map(UserName),
    source=plain,
    text=plain,
    plan=plain,
    fs_id=st.none() | plain.map(FilesystemId),
    fs_name=plain,
    description=plain,
    parameters=st.dictionaries(anything, values, max_size=3),
    docker_env=plain,
    disabled=plain,
    strategy=plain,
    schedule_id=st.none() | plain.map(ScheduleId),
    scheduled_at=st.none() | moments,
    retry_of=st.none() | run_ids,
    status=st.sampled_from(RunStatus),
    stop=st.sampled_from(Stop),
    message=plain,
    created_at=moments,
    activated_at=st.none() | moments,
    finished_at=st.none() | moments,
    updated_at=moments,
    seq=st.just(0),
    version=st.just(0),
)
run_nodes = st.builds(
    RunNode,
    run_id=st.just(RunId("run-000001")),
    key=plain,
    node=plain,
    kind=st.sampled_from(NodeKind),
    parent=anything,
    seq=st.integers(-1, 10_000),
    item=values,
    in_loop=st.booleans(),
    id=anything,
    job_id=st.none() | plain.map(JobId),
    status=st.sampled_from(NodeStatus),
    message=anything,
    parameters=st.dictionaries(anything, values, max_size=3),
    inputs=pairs,
    outputs=pairs,
    env=pairs,
    command=anything,
    fingerprint=st.none() | fingerprints,
    cache_run_id=st.none() | run_ids,
    source_run=st.none() | run_ids,
    started_at=st.none() | moments,
    finished_at=st.none() | moments,
)
cache_entries = st.builds(
    CacheEntry,
    id=st.just(CacheId("cch-any")),
    fingerprint=fingerprints,
    run_id=st.just(RunId("run-000001")),
    job_id=plain.map(JobId),
    node=plain,
    source=plain,
    owner=plain.map(UserName),
    fs_id=st.none() | plain.map(FilesystemId),
    fs_name=plain,
    outputs=pairs,
    expires_after_s=st.integers(-1, 2**40),
    created_at=moments,
    updated_at=moments,
    seq=st.just(0),
)
schedules = st.builds(
    Schedule,
    id=st.just(ScheduleId("schedule-any")),
    name=plain,
    description=plain,
    owner=plain.map(UserName),
    pipeline_id=plain.map(PipelineId),
    version_id=plain.map(VersionId),
    crontab=plain,
    time_zone=plain,
    starts_at=st.none() | moments,
    ends_at=st.none() | moments,
    concurrency=st.integers(0, 1000),
    policy=st.sampled_from(ConcurrencyPolicy),
    expire_s=st.integers(0, 2**40),
    catch_up=st.booleans(),
    status=st.sampled_from(ScheduleStatus),
    message=plain,
    next_at=st.none() | moments,
    created_at=moments,
    updated_at=moments,
    seq=st.just(0),
    version=st.just(0),
)
