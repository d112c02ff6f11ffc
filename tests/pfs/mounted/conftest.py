"""Stores and mounts that several tests share: a mount is three processes, and starting them takes longer than most
tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddleflow.wiring.stores import StorePlan
from tests.objects.servers import S3Server, start_moto_s3, start_rclone_s3
from tests.pfs.mounted.places import Place, local_store
from tests.pfs.mounts import mounted, why_no_mounts


@pytest.fixture(autouse=True)
def can_mount() -> None:
    if why_no_mounts():
        pytest.skip(why_no_mounts())


@pytest.fixture(autouse=True)
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.fixture(scope="session")
def rclone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """Not for reading what is being overwritten: it may send one version with the ETag of another."""
    server = start_rclone_s3(tmp_path_factory.mktemp("buckets"))
    server.make_bucket("mounted")
    yield server
    server.stop()


@pytest.fixture(scope="session")
def moto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    server = start_moto_s3(tmp_path_factory.mktemp("moto") / "log")
    server.make_bucket("mounted")
    yield server
    server.stop()


@pytest.fixture
def bucket(rclone: S3Server, tmp_path: Path) -> StorePlan:
    """A place of its own in a bucket."""
    return StorePlan(
        type="s3", address=rclone.endpoint, root=f"/{tmp_path.name}", properties=rclone.properties("mounted")
    )


@pytest.fixture(scope="package")
def on_local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    if why_no_mounts():
        pytest.skip(why_no_mounts())
    where = tmp_path_factory.mktemp("on_local")
    with mounted(where, local_store(where)) as mount:
        yield Place(mount, holds_links=True)


@pytest.fixture(scope="package")
def on_s3(rclone: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    if why_no_mounts():
        pytest.skip(why_no_mounts())
    where = tmp_path_factory.mktemp("on_s3")
    plan = StorePlan(type="s3", address=rclone.endpoint, root=f"/{where.name}", properties=rclone.properties("mounted"))
    with mounted(where, plan) as mount:
        yield Place(mount, holds_links=False)


@pytest.fixture(params=["on_local", "on_s3"])
def place(request: pytest.FixtureRequest) -> Place:
    found: Place = request.getfixturevalue(request.param)
    return found
