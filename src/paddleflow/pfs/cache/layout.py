"""What lies in a cache directory, byte by byte.

::

    <directory>/pfcache1/
        entries/<1 hex>/<31 hex>   sidecars, named after the object version they describe
        data/<1 hex>/<31 hex>      content, under random names that are never used again
        new/<random>               sidecars being written, before they are linked into place
        gone/<random>              sidecars being evicted, after they were taken out of place
        account, trim.lock         see ``space`` and ``shelf``

A sidecar is a header (whose bytes these are, how long, in which chunks, in which data file; sealed by a checksum), then
one stamp, then one record for each chunk. Everything is written once or replaced by an equal value; nothing is counted
up or switched bit by bit, so any number of processes may write side by side and die anywhere.

A record ``(checksum, sealed_at, seal)`` says: at that moment of this boot these bytes were in the data file. The seal
binds the three to the chunk and to the boot. A torn record, garbage, or one of an earlier boot (whose data a power
failure may have taken while its record survived) has no valid seal: it is a hint worth checking, no more.

A stamp says: when the data file looked like this (inode, size, times) every chunk had its checksum. Any write through
the filesystem changes the times, so comparing one ``stat`` with the stamp stands for reading the whole file again.
"""

from __future__ import annotations

import os
import secrets
import struct
import time
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

import xxhash

from paddleflow.pfs.backstage import ObjectVersion

FORMAT = "pfcache1"
MAGIC = b"PFCACHE1"
_FIXED = struct.Struct("<8sIIQ32sHHHHQ")
"""magic, header size, chunk size, object size, data file, lengths of store, key and version, nothing, checksum."""
_UNSEALED = _FIXED.size - 8
_STAMP = struct.Struct("<16sQQQQQ")
STAMP_SIZE = 64
RECORD = struct.Struct("<QQQ")
_SEALED = struct.Struct("<QQQ")
_LONGEST_KEY = 0xFFFF
_LONGEST_HEADER = _FIXED.size + 3 * _LONGEST_KEY + 16
FIRST_READ = 4096
"""Enough for header, stamp and the records of most files: a hit costs one read."""
BLOCK = 4096
"""What filesystems give space in."""


class Stamp(NamedTuple):
    boot: bytes
    ino: int
    size: int
    mtime_ns: int
    ctime_ns: int


class Header(NamedTuple):
    version: ObjectVersion
    chunk_size: int
    data_name: str
    size: int
    """Of the header itself; the stamp follows, then the records."""

    @property
    def chunks(self) -> int:
        return -(-self.version.size // self.chunk_size)

    @property
    def records_at(self) -> int:
        return self.size + STAMP_SIZE

    @property
    def sidecar_size(self) -> int:
        return self.records_at + self.chunks * RECORD.size


@lru_cache(maxsize=1)
def boot_id() -> bytes:
    """16 bytes that no other boot of this machine has. Where the kernel does not tell, every process is its own boot:
    it checks what others wrote before it believes them."""
    try:
        text = Path("/proc/sys/kernel/random/boot_id").read_text()
        return bytes.fromhex(text.strip().replace("-", ""))
    except (OSError, ValueError):
        return secrets.token_bytes(16)


@lru_cache(maxsize=1)
def _boot_seed() -> int:
    return int.from_bytes(boot_id()[:8], "little")


def now_ns() -> int:
    """Of this boot, never set back, the same in every process."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def checksum(content: bytes | bytearray | memoryview) -> int:
    return xxhash.xxh3_64_intdigest(content)


def _text(value: str) -> bytes:
    return value.encode("utf-8", "surrogatepass")


def name_of(version: ObjectVersion) -> str:
    """Of a sidecar, relative to ``entries``: the same in every process for the same version."""
    named = "\0".join((version.store, version.key, version.version, str(version.size)))
    digest = blake2b(_text(named), digest_size=16).hexdigest()
    return f"{digest[0]}/{digest[1:]}"


def new_data_name() -> str:
    return secrets.token_hex(16)


def data_place(data_name: str) -> str:
    """Of a data file, relative to ``data``."""
    return f"{data_name[0]}/{data_name[1:]}"


def pack_header(version: ObjectVersion, chunk_size: int, data_name: str) -> tuple[Header, bytes]:
    texts = [_text(version.store), _text(version.key), _text(version.version)]
    if max(map(len, texts)) > _LONGEST_KEY:
        raise ValueError("a key longer than 65,535 bytes cannot be cached")
    length = _FIXED.size + sum(map(len, texts))
    padding = -length % 16
    header = Header(version, chunk_size, data_name, length + padding)
    lengths = [len(text) for text in texts]
    fixed = _FIXED.pack(MAGIC, header.size, chunk_size, version.size, data_name.encode(), *lengths, 0, 0)
    rest = b"".join(texts) + bytes(padding)
    sealed = checksum(fixed[:_UNSEALED] + rest)
    return header, fixed[:_UNSEALED] + sealed.to_bytes(8, "little") + rest


def parse_header(raw: bytes) -> Header | None:
    """None for whatever is not a whole header of ours. ``raw`` may go on behind it."""
    if len(raw) < _FIXED.size:
        return None
    magic, length, chunk_size, size, data_name, store, key, version, _, sealed = _FIXED.unpack_from(raw)
    end_store = _FIXED.size + store
    end_key = end_store + key
    end = end_key + version
    if magic != MAGIC or not end <= length <= len(raw) or not chunk_size:
        return None
    if checksum(raw[:_UNSEALED] + raw[_FIXED.size : length]) != sealed:
        return None
    named = ObjectVersion(
        raw[_FIXED.size : end_store].decode("utf-8", "surrogatepass"),
        raw[end_store:end_key].decode("utf-8", "surrogatepass"),
        raw[end_key:end].decode("utf-8", "surrogatepass"),
        size,
    )
    return Header(named, chunk_size, data_name.decode(), length)


def read_header(sidecar: int) -> tuple[bytes, Header | None]:
    """The beginning of a sidecar, with its stamp, and what its header says; None when it is none."""
    beginning = os.pread(sidecar, FIRST_READ, 0)
    header = parse_header(beginning)
    if header is not None and header.records_at <= len(beginning):
        return beginning, header
    if len(beginning) < FIRST_READ:
        return beginning, None
    # A long key: there is more of it, but no more than this.
    beginning = os.pread(sidecar, _LONGEST_HEADER + STAMP_SIZE, 0)
    return beginning, parse_header(beginning)


def pack_stamp(stamp: Stamp) -> bytes:
    bare = _STAMP.pack(*stamp, 0)[:-8]
    return bare + checksum(bare).to_bytes(8, "little") + bytes(STAMP_SIZE - _STAMP.size)


def parse_stamp(raw: bytes, at: int = 0) -> Stamp | None:
    """None when there is none, or one of another boot."""
    if len(raw) < at + _STAMP.size:
        return None
    boot, ino, size, mtime_ns, ctime_ns, sealed = _STAMP.unpack_from(raw, at)
    if boot != boot_id() or checksum(raw[at : at + _STAMP.size - 8]) != sealed:
        return None
    return Stamp(boot, ino, size, mtime_ns, ctime_ns)


def stamp_of(status: os.stat_result) -> Stamp:
    return Stamp(boot_id(), status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def stamp_matches(path: str, stamp: Stamp) -> bool:
    """The file is still what it was when all its checksums held. One system call."""
    try:
        return is_stamped(os.stat(path), stamp)
    except OSError:
        return False  # evicted, or unreadable: either way it is not that file any more


def is_stamped(status: os.stat_result, stamp: Stamp) -> bool:
    """For a stamp of this boot."""
    return (
        status.st_ctime_ns == stamp.ctime_ns
        and status.st_mtime_ns == stamp.mtime_ns
        and status.st_ino == stamp.ino
        and status.st_size == stamp.size
    )


def pack_record(index: int, content_checksum: int, sealed_at: int) -> bytes:
    return RECORD.pack(content_checksum, sealed_at, _seal(index, content_checksum, sealed_at))


def is_sealed(index: int, record: tuple[int, int, int], since: int) -> bool:
    """Written whole, in this boot, after ``since``."""
    content_checksum, sealed_at, sealed = record
    return sealed_at > since and sealed == _seal(index, content_checksum, sealed_at)


def _seal(index: int, content_checksum: int, sealed_at: int) -> int:
    return xxhash.xxh3_64_intdigest(_SEALED.pack(index, content_checksum, sealed_at), _boot_seed())


def blocks(size: int) -> int:
    """The space that so many bytes take."""
    return -(-size // BLOCK) * BLOCK
