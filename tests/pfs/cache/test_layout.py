"""The formats: what was packed is parsed, and nothing else is."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddleflow.pfs.backstage import ObjectVersion
from paddleflow.pfs.cache import layout
from paddleflow.pfs.cache.layout import Stamp

texts = st.text(max_size=300) | st.just("x\udcff\udc80y") | st.just("k" * 5000)
versions = st.builds(ObjectVersion, texts, texts, texts, st.integers(0, 2**63 - 1))
names = st.binary(min_size=16, max_size=16).map(bytes.hex)
u64 = st.integers(0, 2**64 - 1)
NAME = "3/0f4dd00fb32a3e95557ede786f2b0ff"
PACKED = 0xA4A80197471E323


@given(versions, st.integers(1, 2**31), names, st.binary(max_size=100))
def test_a_header_comes_back(version: ObjectVersion, chunk_size: int, name: str, behind: bytes) -> None:
    header, packed = layout.pack_header(version, chunk_size, name)
    assert layout.parse_header(packed + behind) == header
    assert header.version == version and len(packed) == header.size and not header.size % 16


@given(versions, names, st.data())
def test_a_changed_header_is_none(version: ObjectVersion, name: str, data: st.DataObject) -> None:
    _, packed = layout.pack_header(version, 4096, name)
    at = data.draw(st.integers(0, len(packed) - 1))
    bit = data.draw(st.integers(0, 7))
    changed = packed[:at] + bytes([packed[at] ^ (1 << bit)]) + packed[at + 1 :]
    assert layout.parse_header(changed) is None
    assert layout.parse_header(packed[: data.draw(st.integers(0, len(packed) - 1))]) is None


@given(st.binary(max_size=500))
def test_garbage_is_no_header(garbage: bytes) -> None:
    assert layout.parse_header(garbage) is None
    assert layout.parse_header(layout.MAGIC + garbage) is None


def test_a_key_may_be_longer_than_one_read(tmp_path: os.PathLike[str]) -> None:
    header, packed = layout.pack_header(ObjectVersion("s", "k" * 60_000, "v", 5), 4096, "ab" * 16)
    path = os.path.join(tmp_path, "sidecar")
    with open(path, "wb") as file:
        file.write(packed + bytes(200))
    with open(path, "rb") as file:
        assert layout.read_header(file.fileno())[1] == header
    with pytest.raises(ValueError, match="65,535"):
        layout.pack_header(ObjectVersion("s", "k" * 70_000, "v", 5), 4096, "ab" * 16)


@given(u64, u64, u64, u64, st.integers(0, 55), st.integers(0, 7))
def test_a_stamp_counts_in_its_boot_and_unchanged(
    ino: int, size: int, mtime: int, ctime: int, at: int, bit: int
) -> None:
    stamp = Stamp(layout.boot_id(), ino, size, mtime, ctime)
    packed = layout.pack_stamp(stamp)
    assert len(packed) == layout.STAMP_SIZE
    assert layout.parse_stamp(b"xyz" + packed, 3) == stamp
    changed = packed[:at] + bytes([packed[at] ^ (1 << bit)]) + packed[at + 1 :]
    assert layout.parse_stamp(changed) is None
    assert layout.parse_stamp(layout.pack_stamp(stamp._replace(boot=b"another boot...."))) is None
    assert layout.parse_stamp(bytes(layout.STAMP_SIZE)) is None
    assert layout.parse_stamp(packed[:20]) is None


@given(st.integers(0, 2**40), u64, st.integers(1, 2**63), st.integers(0, 23), st.integers(0, 7))
def test_a_record_counts_whole_for_its_chunk_and_since(
    index: int, checksum: int, sealed_at: int, at: int, bit: int
) -> None:
    packed = layout.pack_record(index, checksum, sealed_at)
    record = layout.RECORD.unpack(packed)
    assert layout.is_sealed(index, record, sealed_at - 1)
    assert not layout.is_sealed(index, record, sealed_at), "it was there before"
    assert not layout.is_sealed(index + 1, record, sealed_at - 1)
    torn = packed[:at] + bytes([packed[at] ^ (1 << bit)]) + packed[at + 1 :]
    assert not layout.is_sealed(index, layout.RECORD.unpack(torn), sealed_at - 1)


def test_names_do_not_change() -> None:
    """Another release must find what this one cached."""
    version = ObjectVersion("0123456789abcdef", "train/ä\udcff.jpg", '"etag"', 100)
    assert layout.name_of(version) == NAME
    assert layout.name_of(ObjectVersion("0123456789abcdef", "train/ä\udcff.jpg", '"etag"', 101)) != NAME
    packed = layout.pack_header(version, 1 << 20, "ab" * 16)[1]
    assert layout.checksum(packed) == PACKED, "this format has another name now: change FORMAT with it"


def test_the_boot_is_the_kernels() -> None:
    with open("/proc/sys/kernel/random/boot_id") as file:
        assert layout.boot_id().hex() == file.read().strip().replace("-", "")


@given(st.integers(0, 10**9))
def test_space_comes_in_blocks(size: int) -> None:
    assert layout.blocks(size) % layout.BLOCK == 0
    assert size <= layout.blocks(size) < size + layout.BLOCK
