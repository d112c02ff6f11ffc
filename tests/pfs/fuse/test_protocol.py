"""The layouts, byte for byte."""

from __future__ import annotations

import stat
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddleflow.pfs.attrs import Attr, Entry, Wish
from paddleflow.pfs.fuse import protocol
from paddleflow.pfs.fuse.protocol import SetAttr

ATTR = Attr(
    ino=0x1122334455667788,
    mode=stat.S_IFREG | 0o644,
    size=5,
    mtime_ns=2_000_000_003,
    ctime_ns=4_000_000_005,
    atime_ns=6_000_000_007,
    uid=10,
    gid=11,
    nlink=2,
    blocks=8,
)

u32 = st.integers(0, 2**32 - 1)
u64 = st.integers(0, 2**64 - 1)
times = st.integers(-(2**33) * protocol.NANO, 2**40 * protocol.NANO)
attrs = st.builds(
    Attr,
    ino=u64,
    mode=st.integers(0, 0o177777),
    size=u64,
    mtime_ns=times,
    ctime_ns=times,
    atime_ns=times,
    uid=u32,
    gid=u32,
    nlink=u32,
    blocks=u64,
)
names = st.binary(min_size=1, max_size=255).filter(lambda name: b"\0" not in name and b"/" not in name)


@pytest.mark.parametrize(
    ("layout", "size"),
    [
        (protocol.IN_HEADER, 40),
        (protocol.OUT_HEADER, 16),
        (protocol.INIT_OUT, 64),
        (protocol.ATTR_OUT, 104),
        (protocol.ENTRY_OUT, 128),
        (protocol.OPEN_OUT, 16),
        (protocol.STATFS_OUT, 80),
        (protocol.SETATTR_IN, 88),
        (protocol.READ_IN, 40),
        (protocol.WRITE_IN, 40),
        (protocol.RELEASE_IN, 24),
        (protocol.FALLOCATE_IN, 32),
        (protocol.DIRENT, 24),
        (protocol.BACKING_MAP, 16),
        (protocol.DELETE_OUT, 24),
    ],
)
def test_layouts_have_the_kernels_size(layout: struct.Struct, size: int) -> None:
    assert layout.size == size


def test_a_request_header_golden() -> None:
    raw = (
        bytes.fromhex("2f000000010000000200000000000000010000000000000003000000040000000500000000000000") + b"abcdef\0"
    )
    header = protocol.read_header(raw)
    assert header == (47, 1, 2, 1, 3, 4, 5, 0, 0)
    assert protocol.one_name(bytearray(raw), 40, 47) == "abcdef"


def test_an_entry_golden() -> None:
    packed = protocol.pack_entry(Entry(7, ATTR, 1.5, 60.0))
    assert packed.hex() == (
        "07000000000000000000000000000000"  # node, generation
        "01000000000000003c000000000000000065cd1d00000000"  # lives 1.5 s, its attributes 60 s
        "887766554433221105000000000000000800000000000000"  # ino, size, blocks
        "060000000000000002000000000000000400000000000000"  # atime, mtime, ctime
        "070000000300000005000000"
        "a4810000020000000a0000000b000000"  # mode, nlink, uid, gid
        "000000000010000000000000"  # rdev, block size
    )  # fmt: skip


def test_a_directory_entry_golden() -> None:
    assert protocol.pack_dirent(9, 3, stat.S_IFDIR | 0o755, b"abc").hex() == (
        "0900000000000000030000000000000003000000040000006162630000000000"
    )  # fmt: skip


def test_answers_and_notifications_golden() -> None:
    assert protocol.pack_error(5, 2).hex() == "10000000feffffff0500000000000000"
    assert protocol.pack_resend().hex() == "10000000070000000000000000000000"
    assert protocol.pack_inval_inode(3, -1, 0)[16:] == struct.pack("<Qqq", 3, -1, 0)
    assert protocol.pack_inval_entry(1, "né", expire=True)[16:] == struct.pack("<QII", 1, 3, 1) + "né".encode() + b"\0"
    assert protocol.pack_delete(1, 2, "x")[16:] == struct.pack("<QQII", 1, 2, 1, 0) + b"x\0"


@given(attrs, st.floats(0, 1e9))
def test_attributes_come_back(attr: Attr, ttl: float) -> None:
    packed = protocol.pack_attr(attr, ttl)
    (seconds, nanos, _, ino, size, blocks, *rest) = struct.unpack("<QII3Q3q10I", packed)
    assert seconds + nanos / 1e9 == pytest.approx(ttl, abs=1e-6)
    assert (ino, size, blocks) == (attr.ino, attr.size, attr.blocks)
    got_times = [rest[i] * protocol.NANO + rest[i + 3] for i in range(3)]
    assert got_times == [attr.atime_ns, attr.mtime_ns, attr.ctime_ns]
    assert tuple(rest[6:10]) == (attr.mode, attr.nlink, attr.uid, attr.gid)


@given(names)
def test_any_name_comes_back(raw: bytes) -> None:
    name = protocol.decode_name(raw)
    assert protocol.encode_name(name) == raw
    buffer = bytearray(b"????" + raw + b"\0" + b"left from an earlier request\0")
    assert protocol.one_name(buffer, 4, 4 + len(raw) + 1) == name


@given(names, names)
def test_two_names_are_told_apart(first: bytes, second: bytes) -> None:
    buffer = bytearray(first + b"\0" + second + b"\0" + b"older\0")
    end = len(first) + len(second) + 2
    assert protocol.two_names(buffer, 0, end) == (protocol.decode_name(first), protocol.decode_name(second))


@given(names, u64, u64)
def test_directory_entries_are_padded_to_eight(raw: bytes, ino: int, cookie: int) -> None:
    packed = protocol.pack_dirent(ino, cookie, stat.S_IFREG, raw)
    assert len(packed) == protocol.dirent_size(raw)
    assert len(packed) % 8 == 0
    assert struct.unpack_from("<QQII", packed) == (ino, cookie, len(raw), 8)
    assert packed[24 : 24 + len(raw)] == raw


def setattr_bytes(valid: int, **fields: int) -> bytes:
    order = [
        "valid",
        "pad",
        "fh",
        "size",
        "owner",
        "atime",
        "mtime",
        "ctime",
        "atime_ns",
        "mtime_ns",
        "ctime_ns",
        "mode",
        "unused",
        "uid",
        "gid",
        "unused2",
    ]
    return protocol.SETATTR_IN.pack(*[valid if name == "valid" else fields.get(name, 0) for name in order])


NOW = 123


@pytest.mark.parametrize(
    ("raw", "wish", "handle"),
    [
        (setattr_bytes(0, mode=0o777, size=4), Wish(), None),
        (setattr_bytes(SetAttr.MODE, mode=0o100600), Wish(mode=0o100600), None),
        (setattr_bytes(SetAttr.SIZE | SetAttr.FH, size=9, fh=4), Wish(size=9), 4),
        (setattr_bytes(SetAttr.UID | SetAttr.GID, uid=1, gid=2), Wish(uid=1, gid=2), None),
        (setattr_bytes(SetAttr.MTIME, mtime=2, mtime_ns=5), Wish(mtime_ns=2_000_000_005), None),
        (setattr_bytes(SetAttr.ATIME, atime=2**64 - 1, atime_ns=5), Wish(atime_ns=-999_999_995), None),
        (setattr_bytes(SetAttr.MTIME | SetAttr.MTIME_NOW, mtime=2), Wish(mtime_ns=NOW), None),
        (setattr_bytes(SetAttr.ATIME_NOW, atime=2), Wish(atime_ns=NOW), None),
    ],
)
def test_wishes_are_read(raw: bytes, wish: Wish, handle: int | None) -> None:
    assert protocol.read_wish(raw, 0, NOW) == (wish, handle)
