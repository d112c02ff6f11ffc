"""Filesystems on a real S3 server: what cannot be reached is refused, and snapshots lie where they should."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.http.served import Served
from tests.objects.servers import S3Server, start_rclone_s3
from tests.waiting import wait_for


@pytest.fixture(scope="module")
def buckets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("s3") / "buckets"
    (directory / "data" / "set" / "train").mkdir(parents=True)
    (directory / "data" / "set" / "train" / "a.bin").write_bytes(b"a" * 1000)
    (directory / "data" / "set" / "b.bin").write_bytes(b"b" * 10)
    return directory


@pytest.fixture(scope="module")
def s3(buckets: Path) -> Iterator[S3Server]:
    server = start_rclone_s3(buckets)
    yield server
    server.stop()


@pytest.fixture(scope="module")
def connected(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    served = Served(tmp_path_factory.mktemp("served"), real_storages=True)
    yield served
    served.close()


def test_only_a_storage_that_answers_is_registered(connected: Served, s3: S3Server) -> None:
    good = {"name": "good", "url": "s3://data/set", "properties": s3.properties("data")}
    assert connected.root.post("/fs", good).status == 201
    wrong_key = "0" * 32
    for name, url, properties in (
        ("key", "s3://data/set", {**s3.properties("data"), "secretKey": wrong_key}),
        ("bucket", "s3://nowhere/set", s3.properties("nowhere")),
        ("address", "s3://data/set", {**s3.properties("data"), "endpoint": "http://127.0.0.1:1"}),
    ):
        answer = connected.root.post("/fs", {"name": name, "url": url, "properties": properties})
        assert (answer.status, answer.code) == (400, "ConnectivityFailed"), answer.body
        assert wrong_key not in answer.message
        assert s3.secret_key not in answer.message
        assert connected.root.get(f"/fs/{name}").status == 404


def test_a_snapshot_is_a_manifest_on_the_storage(connected: Served, s3: S3Server, buckets: Path) -> None:
    root = connected.root
    body = {"name": "kept", "url": "s3://data/set", "properties": s3.properties("data")}
    assert root.post("/fs", body).status == 201
    snapshot = root.post("/fs/kept/snapshot", {}).json["snapshotID"]

    def ended() -> Any:
        row = root.get(f"/fs/kept/snapshot/{snapshot}").json
        return row if row["state"] != "creating" else None

    row = wait_for(ended, "the snapshot is made")
    assert (row["state"], row["files"], row["bytes"]) == ("ready", 2, 1010), row
    manifest = buckets / "data" / "set" / ".paddleflow" / "snapshots" / f"{snapshot}.jsonl.gz"
    lines = [json.loads(line) for line in gzip.decompress(manifest.read_bytes()).splitlines()]
    assert {line["path"]: line.get("size") for line in lines if line.get("version")} == {
        "train/a.bin": 1000,
        "b.bin": 10,
    }
    assert root.delete(f"/fs/kept/snapshot/{snapshot}").status == 200
    wait_for(lambda: root.get(f"/fs/kept/snapshot/{snapshot}").status == 404, "it is gone")
    assert not manifest.exists()
