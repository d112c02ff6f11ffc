"""S3 on two servers that have nothing in common: the contract, and what only S3 has."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import boto3
import pytest

from paddleflow.adapters.objects.bucket import Head
from paddleflow.adapters.objects.endpoints import open_s3
from paddleflow.adapters.objects.s3 import S3Store
from paddleflow.adapters.objects.uploads import part_size, spans_of
from paddleflow.domain.errors import Stale
from paddleflow.ports.objects import ObjectStore
from tests.objects.conftest import MakeS3
from tests.objects.contract import MIB, NOT_UTF8, ObjectStoreContract, listed, put, walked
from tests.objects.servers import S3Server, start_rclone_s3


class TestOnRclone(ObjectStoreContract):
    examples = 15
    many = 1_010
    refused_names = (NOT_UTF8,)

    @pytest.fixture
    def make_store(self, open_rclone: MakeS3) -> Callable[[], ObjectStore]:
        return open_rclone

    def test_readers_see_the_old_or_the_new_content(self, store: ObjectStore) -> None:
        pytest.skip("while a file is replaced, rclone sends bytes of one version with the ETag of another")


class TestOnMoto(ObjectStoreContract):
    examples = 15
    many = 1_010
    refused_names = (NOT_UTF8,)
    lost_names = ("new\nline",)

    @pytest.fixture
    def make_store(self, open_moto: MakeS3) -> Callable[[], ObjectStore]:
        return open_moto


# What only S3 has: keys without directories, made by others.


def bare(store: S3Store, *keys: str) -> None:
    """Objects as other tools make them."""
    for key in keys:
        store._bucket.mark(store._prefix + key)


def test_prefixes_are_directories(open_moto: MakeS3) -> None:
    store = open_moto()
    bare(store, "a/b/c/file", "a/other")
    assert store.stat("a").is_directory and store.stat("a/b/c").is_directory
    assert set(listed(store, "a")) == {"a/b", "a/other"}
    assert set(walked(store)) == {"a", "a/b", "a/b/c", "a/b/c/file", "a/other"}
    store.delete("a/b/c/file")
    assert store.stat("a/b/c").is_directory, "it outlives its last file"
    store.rename("a/other", "other")
    store.remove_directory("a/b/c")
    assert store.stat("a/b").is_directory
    store.rename("a", "z")
    assert set(walked(store)) == {"z", "z/b", "other"}


def test_keys_that_no_path_can_have_are_left_out(open_moto: MakeS3) -> None:
    store = open_moto()
    bare(store, "good", "d//e", "d/f", "./x", "d/../y", "d/.pf-123", "/lead", "both", "both/below")
    assert {key: entry.is_directory for key, entry in listed(store).items()} == {
        "good": False,
        "d": True,
        "both": False,
    }
    assert set(listed(store, "d")) == {"d/f"}
    assert {key for key in walked(store) if not key.startswith("both")} == {"good", "d", "d/f"}


def test_other_tools_see_our_directories(open_moto: MakeS3, moto_s3: S3Server) -> None:
    store = open_moto("seen by others")
    store.make_directory("empty")
    put(store, "f", b"content")
    other = boto3.client(
        "s3",
        endpoint_url=moto_s3.endpoint,
        aws_access_key_id=moto_s3.access_key,
        aws_secret_access_key=moto_s3.secret_key,
        region_name="us-east-1",
    )
    found = other.list_objects_v2(Bucket="bucket", Prefix="seen by others/")["Contents"]
    assert {item["Key"]: item["Size"] for item in found} == {"seen by others/empty/": 0, "seen by others/f": 7}
    assert other.get_object(Bucket="bucket", Key="seen by others/f")["Body"].read() == b"content"
    other.put_object(Bucket="bucket", Key="seen by others/theirs/", Body=b"")
    assert store.stat("theirs").is_directory and listed(store, "theirs") == {}


def test_a_server_that_holds_no_markers_keeps_directories_too(open_rclone: MakeS3, rclone_s3: S3Server) -> None:
    store = open_rclone("no markers")
    store.make_directory("d")
    assert store.stat("d").is_directory
    assert all(not found.key.endswith("/") for found in store._bucket.list("no markers/").objects)
    assert set(walked(store)) == {"d"}
    store.remove_directory("d")
    assert store._bucket.list("no markers/").objects == []


def test_a_rename_of_more_than_a_page(open_rclone: MakeS3) -> None:
    store = open_rclone()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: bare(store, f"from/{number}"), range(1_050)))
    store.rename("from", "to")
    assert len(listed(store, "to")) == 1_050 and set(listed(store)) == {"to"}


def test_pages_come_as_they_are_asked_for(open_rclone: MakeS3, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_rclone()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: bare(store, f"d/{number:04}"), range(1_010)))
    asked = []
    ask = store._bucket.list
    monkeypatch.setattr(store._bucket, "list", lambda *args, **more: asked.append(args) or ask(*args, **more))
    pages = store.list("d")
    assert asked == []
    assert len(next(pages)) == 1_000 and len(asked) == 1
    assert len(next(pages)) == 10 and len(asked) == 2


def test_the_version_a_write_tells_is_the_one_that_is_shown(tmp_path: Path) -> None:
    """This server tells the digest of what it got and shows no ETag at all: then time and size are the version."""
    (tmp_path / "buckets" / "bucket").mkdir(parents=True)
    server = start_rclone_s3(tmp_path / "buckets", etag_hash="")
    try:
        store = open_s3("s3", "", "", server.properties("bucket"))
        for content in (b"small", b"large" * 2_000_000):
            written = put(store, "f", content)
            assert written.version == store.stat("f").version == listed(store)["f"].version
            assert store.read("f", 0, 5, version=written.version) == content[:5]
        with pytest.raises(Stale):
            store.read("f", 0, 5, version="t1-5")
        store.close()
    finally:
        server.stop()


def test_what_somebody_else_wrote_meanwhile_is_not_taken_for_ours(open_moto: MakeS3) -> None:
    """Between a write and the look at it another write comes in: our bytes must not be known by its version."""
    store, other = open_moto("race"), open_moto("race")
    look = store._bucket._find_write

    def look_late(key: str, write: str, version: str = "") -> Head | None:
        put(other, "f", b"theirs")
        return look(key, write, version)

    store._bucket._find_write = look_late  # type: ignore[method-assign]
    ours = put(store, "f", b"our own")
    assert ours.version != other.stat("f").version
    with pytest.raises(Stale):
        store.read("f", 0, 7, version=ours.version)


def test_parts_of_an_upload() -> None:
    assert part_size(1) == part_size(80_000 * MIB) == 8 * MIB
    for size in (80_000 * MIB + 1, 10**12, 5 * 10**12):
        assert part_size(size) % MIB == 0 and size <= part_size(size) * 10_000
    for size in (1, 8 * MIB, 8 * MIB + 1, 100 * MIB - 3):
        spans = spans_of(size, 8 * MIB)
        assert sum(length for _, length in spans) == size
        assert all(start + length == following for (start, length), (following, _) in pairwise(spans))


def test_large_objects_are_copied_in_parts(open_moto: MakeS3, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paddleflow.adapters.objects.s3._COPY_LIMIT", 7 * MIB)
    monkeypatch.setattr("paddleflow.adapters.objects.uploads.COPY_PART", 5 * MIB)
    store = open_moto()
    content = os.urandom(MIB) * 12
    put(store, "d/large", content)
    copied = store.copy("d/large", "copy")
    assert copied.version == store.stat("copy").version and store.read("copy", 0, 12 * MIB) == content
    store.rename("d", "moved")
    assert store.read("moved/large", 0, 12 * MIB) == content
