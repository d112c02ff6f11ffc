"""Servers for every test of this folder, started once each, when first wanted."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from paddleflow.adapters.objects.connections import Limits
from paddleflow.adapters.objects.endpoints import open_s3
from paddleflow.adapters.objects.retry import Patience, Retry
from paddleflow.adapters.objects.s3 import S3Store
from tests.objects.servers import S3Server, start_moto_s3, start_rclone_s3
from tests.waiting import DEADLINE_S

QUICK = Retry(patience=Patience(attempts=5, first_pause_s=0.01, longest_pause_s=0.1, deadline_s=1000))
PATIENT = Limits(connect_s=DEADLINE_S, stall_s=DEADLINE_S)
"""Nothing that works comes near it, however slow the machine."""

_roots = itertools.count()

MakeS3 = Callable[..., S3Store]


@pytest.fixture(scope="session")
def rclone_s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    directory = tmp_path_factory.mktemp("rclone")
    (directory / "buckets").mkdir()
    server = start_rclone_s3(directory / "buckets")
    try:
        server.make_bucket("bucket")
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="session")
def moto_s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    server = start_moto_s3(tmp_path_factory.mktemp("moto") / "log")
    try:
        server.make_bucket("bucket")
        yield server
    finally:
        server.stop()


@pytest.fixture
def open_rclone(rclone_s3: S3Server) -> Iterator[MakeS3]:
    yield from opener(rclone_s3)


@pytest.fixture
def open_moto(moto_s3: S3Server) -> Iterator[MakeS3]:
    yield from opener(moto_s3)


def opener(server: S3Server) -> Iterator[MakeS3]:
    """Opens stores, each in a prefix of its own unless told which; all are closed in the end."""
    with ExitStack() as stack:

        def open(
            root: str | None = None, *, limits: Limits = PATIENT, retry: Retry = QUICK, **properties: str
        ) -> S3Store:
            root = f"test {next(_roots)}/root" if root is None else root
            store = open_s3("s3", "", root, server.properties("bucket", **properties), limits=limits, retry=retry)
            stack.callback(store.close)
            return store

        yield open
