"""What a server can do decides what it says it can do."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from paddleflow.adapters.identity import KeyedIdentity
from paddleflow.domain.clusters import ClusterStatus
from paddleflow.domain.commands import CreateCluster, SeedInstallation, SubmitJob
from paddleflow.domain.errors import Invalid
from paddleflow.domain.events import EventKind
from paddleflow.domain.ids import DEFAULT_CLUSTER, ClusterName, JobId
from paddleflow.domain.jobs import JobSpec, Member
from paddleflow.domain.users import PLATFORM
from paddleflow.engine.capabilities import Capabilities
from paddleflow.engine.intake import Intake
from paddleflow.testing.builders import a_node, resources
from paddleflow.testing.platform import ROOT_ACTOR, InMemoryPlatform

FAR = ClusterName("far")


@pytest.fixture
def platform() -> InMemoryPlatform:
    return InMemoryPlatform([a_node("node-1", resources("8", "32Gi"))])


@pytest.fixture
def identity() -> KeyedIdentity:
    return KeyedIdentity(b"k" * 32, token_life=timedelta(hours=1))


def a_server(platform: InMemoryPlatform, able: Capabilities, identity: KeyedIdentity) -> Intake:
    return Intake(platform.store, platform.clock, identity, able)


@pytest.fixture
def reaches_far(platform: InMemoryPlatform, identity: KeyedIdentity) -> Intake:
    return a_server(platform, replace(platform.capabilities, clusters=frozenset({DEFAULT_CLUSTER, FAR})), identity)


def status_of(platform: InMemoryPlatform, name: ClusterName) -> ClusterStatus | None:
    with platform.store.read() as view:
        cluster = view.clusters.find(name)
    return None if cluster is None else cluster.status


def test_a_cluster_is_online_where_a_runtime_starts_its_jobs(platform: InMemoryPlatform, reaches_far: Intake) -> None:
    described = CreateCluster(name=FAR, endpoint="10.0.0.1", type="Kubernetes", cluster_version="1.30")
    reaches_far.submit(described, ROOT_ACTOR)
    platform.ask(replace(described, name="unknown"))
    assert (status_of(platform, FAR), status_of(platform, ClusterName("unknown"))) == ("online", "offline")
    with pytest.raises(Invalid, match=r"cluster\[other\] cannot be online"):
        platform.ask(replace(described, name="other", status="online"))
    assert status_of(platform, ClusterName("other")) is None


def test_a_server_that_cannot_reach_it_takes_it_offline(platform: InMemoryPlatform, reaches_far: Intake) -> None:
    reaches_far.submit(
        CreateCluster(name=FAR, endpoint="10.0.0.1", type="Kubernetes", cluster_version="1.30"), ROOT_ACTOR
    )
    reaches_far.submit(SeedInstallation(root_password="any"), PLATFORM)
    assert status_of(platform, FAR) is ClusterStatus.ONLINE
    platform.ask(SeedInstallation(root_password="any"), PLATFORM)
    platform.ask(SeedInstallation(root_password="any"), PLATFORM)
    assert (status_of(platform, FAR), status_of(platform, DEFAULT_CLUSTER)) == ("offline", "online")
    with platform.store.read() as view:
        told = view.events.of_subject(FAR, 100)
    assert [event.kind for event in told].count(EventKind.CLUSTER_UPDATED) == 1


def test_an_image_is_refused_or_ignored_as_the_server_was_told(
    platform: InMemoryPlatform, identity: KeyedIdentity
) -> None:
    named = SubmitJob(spec=JobSpec(members=(Member(image="python:3.12", command="true"),)), id="job-named")
    with pytest.raises(Invalid, match=r"\[python:3.12\] would not be used"):
        platform.ask(named)
    ignores = a_server(platform, replace(platform.capabilities, ignores_images=True), identity)
    assert ignores.submit(named, ROOT_ACTOR)["id"] == JobId("job-named")
