"""One object version in the cache: a sparse data file and its sidecar, as one process sees them.

Who may believe what, without reading the bytes and summing them up:

* Everybody believes the stamp: while the data file looks as it did when all checksums held, every byte is right. Such
  an entry may be handed to the kernel.
* Of an entry that is not stamped, ``has`` believes only records sealed after this CachedFile was opened. Those were
  written by a worker that had the bytes in its hands at that moment. Older ones may have been followed by anything (a
  bit flipped, a machine that lost power), so ``has`` says no, a worker is asked, and ``check`` reads the chunk,
  compares and seals the record anew. So every chunk is checked once for each process that reads it, and none that
  serves reads sums up bytes itself.
* ``read`` believes nothing: it sums up what it returns.

What is odd (a short data file, a missing one, a chunk that does not sum up) ends with the entry dropped and Stale
raised, and the caller fetches again. Wrong bytes are not among the outcomes. OSErrors do not leave either: what cannot
be read is odd, what cannot be written is DiskFull.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import NoReturn, Protocol

from paddleflow.domain.errors import DiskFull, Stale
from paddleflow.pfs.backstage import ObjectVersion
from paddleflow.pfs.cache.descriptors import Descriptors
from paddleflow.pfs.cache.layout import (
    RECORD,
    STAMP_SIZE,
    Header,
    Stamp,
    blocks,
    checksum,
    is_sealed,
    now_ns,
    pack_record,
    pack_stamp,
    parse_stamp,
    stamp_matches,
    stamp_of,
)

TOUCH_EVERY_S = 60.0
_RECORDS_AT_ONCE = 4096
_WRITE_AT_ONCE = 128 << 10
"""A filesystem takes pages as large as the write. Very large ones come from memory that nobody has used lately, which
in a virtual machine may not even be there yet: in pieces of this size the same bytes cost less than half."""
_STAMP_TRIES = 3
_ABSENT = (0, 0, 0)


class Keeper(Protocol):
    """The directory an entry lies in."""

    def reserve(self, size: int) -> None:
        """DiskFull when there is no room for so many more bytes, nor can be made."""
        ...

    def give_back(self, size: int) -> None:
        """What was reserved and not used."""
        ...

    def drop(self, entry: CachedFile) -> None: ...


class CachedFile:
    """Safe to use from several threads."""

    __slots__ = (
        "__weakref__",
        "_files",
        "_first_gap",
        "_is_whole",
        "_keeper",
        "_known",
        "_opened_at",
        "_used_at",
        "chunk_size",
        "header",
        "path",
        "sidecar_path",
        "size",
        "stamp",
        "version",
    )

    def __init__(
        self,
        keeper: Keeper,
        header: Header,
        places: tuple[str, str],
        sidecar: int,
        status: os.stat_result,
        stamp: Stamp | None,
    ) -> None:
        """``status`` and descriptor of the sidecar; -1 when it is not kept open."""
        self.version: ObjectVersion = header.version
        self.size = header.version.size
        self.chunk_size = header.chunk_size
        self.sidecar_path, self.path = places
        self.header = header
        self.stamp = stamp
        self._opened_at = now_ns()
        self._keeper = keeper
        self._files = Descriptors(header, places, sidecar)
        self._known: set[int] = set()
        self._is_whole = False
        self._first_gap = 0
        self._used_at = status.st_mtime

    @property
    def fd(self) -> int:
        """Of the data file, for reading; open until ``close``. Stale when it was evicted before it was ever opened."""
        with self._files.use():
            try:
                return self._files.reading()
            except OSError as error:
                self._drop(f"its content cannot be opened ({error.strerror})", error)

    @property
    def is_open(self) -> bool:
        """It holds descriptors: evicting it frees nothing before it is closed."""
        return self._files.is_open

    def is_verified(self) -> bool:
        """Every byte is there and right: the data file is as it was when all checksums held. A system call or two."""
        stamp = self.stamp or self._read_stamp()
        self._is_whole = stamp is not None and stamp_matches(self.path, stamp)
        self.stamp = stamp if self._is_whole else None
        return self._is_whole

    def has(self, start: int, size: int) -> bool:
        """These bytes may be read from ``fd`` as they are. Sees what other processes have stored since. Stale when they
        are not there and never will be, because the entry was evicted: look for it again."""
        if self._is_whole or (self.stamp is not None and self.is_verified()):
            return True
        wanted = self._chunks(start, size)
        if all(index in self._known for index in wanted):
            return True
        self._look(wanted)
        if all(index in self._known for index in wanted):
            return True
        if not self.is_in_place():
            raise Stale(f"the cached copy of {self.version.key!r} was evicted")
        return False

    def missing(self, start: int, size: int) -> list[tuple[int, int]]:
        """What of these bytes ``has`` would not vouch for, as runs of whole chunks."""
        if self.has(start, size):
            return []
        runs: list[tuple[int, int]] = []
        for index in self._chunks(start, size):
            if index in self._known:
                continue
            begin = index * self.chunk_size
            length = self._chunk_length(index)
            if runs and sum(runs[-1]) == begin:
                runs[-1] = (runs[-1][0], runs[-1][1] + length)
            else:
                runs.append((begin, length))
        return runs

    def check(self, start: int, size: int) -> None:
        """Sum up those chunks of a range that have a record nobody vouches for, and seal what is right. What is wrong
        stays missing; storing it again repairs it."""
        for begin, length in self.missing(start, size):
            for index in self._chunks(begin, length):
                record = self._records(index, index + 1)[0]
                if record == _ABSENT:
                    continue
                sealed_at = now_ns()
                if checksum(self._pread(index)) == record[0]:
                    self._write_sidecar(pack_record(index, record[0], sealed_at), self._record_at(index))
                    self._known.add(index)

    def reserve(self, size: int) -> None:
        """Room for bytes that are about to be fetched: DiskFull is better heard before than after. Whoever does not
        store them then says ``give_back``."""
        self._keeper.reserve(blocks(size))

    def give_back(self, size: int) -> None:
        self._keeper.give_back(blocks(size))

    def store(self, start: int, data: bytes | memoryview, *, is_reserved: bool = False) -> None:
        """Keep bytes of this version: whole chunks, of which only the file's last may be short. The bytes are written
        before the record that vouches for them; an error in between leaves nothing behind that counts."""
        view = memoryview(data)
        wanted = self._chunks(start, len(view))
        if start % self.chunk_size or start + len(view) != min(wanted.stop * self.chunk_size, self.size):
            raise ValueError("only whole chunks can be stored")
        if not is_reserved:
            self.reserve(len(view))
        sealed_at = now_ns()
        records = bytearray()
        for index in wanted:
            at = index * self.chunk_size - start
            records += pack_record(index, checksum(view[at : at + self.chunk_size]), sealed_at)
        with self._files.use():
            write_all(self._files.writing(), view, start)
        self._write_sidecar(bytes(records), self._record_at(wanted.start))
        self._known.update(wanted)

    def read(self, start: int, size: int) -> bytes:
        """These bytes (fewer at the end of the file), summed up on the way. Stale when they are not there or not right;
        in the second case the entry is gone."""
        end = min(start + size, self.size)
        if start >= end:
            return b""
        wanted = self._chunks(start, end - start)
        records = self._records(wanted.start, wanted.stop)
        pieces = []
        for index, record in zip(wanted, records, strict=True):
            if record == _ABSENT:
                raise Stale(f"bytes {start} to {end} of {self.version.key!r} are not in the cache")
            piece = self._pread(index)
            if checksum(piece) != record[0]:
                self._drop("a chunk does not have its checksum")
            pieces.append(piece)
        first = wanted.start * self.chunk_size
        whole = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        return whole if start == first and len(whole) == end - start else whole[start - first : end - first]

    def is_complete(self) -> bool:
        """Every chunk has a record. Whether each is right, ``verify`` tells."""
        if self._is_whole or self.stamp is not None:
            return True
        last = self.header.chunks - 1
        if self._first_gap <= last and self._records(last, last + 1)[0] == _ABSENT:
            return False  # most files are read from the beginning: their end tells soonest
        while self._first_gap < self.header.chunks:
            until = min(self._first_gap + _RECORDS_AT_ONCE, self.header.chunks)
            for record in self._records(self._first_gap, until):
                if record == _ABSENT:
                    return False
                self._first_gap += 1
        return True

    def verify(self) -> bool:
        """Sum up the whole file and stamp it. False when it is not complete, or is written to meanwhile; a file with a
        wrong chunk is dropped, and False."""
        if self.is_verified():
            return True
        try:
            for _ in range(_STAMP_TRIES):
                with self._files.use():
                    before = stamp_of(os.fstat(self._files.reading()))
                    if not self._all_right():
                        return False
                    after = stamp_of(os.fstat(self._files.reading()))
                if before == after:
                    self._write_sidecar(pack_stamp(after), self.header.size)
                    self.stamp = after
                    return self.is_verified()
        except (Stale, DiskFull):
            pass  # dropped while we looked, or there is no room for a stamp: right or not, nobody can vouch for it
        return False

    def touch(self) -> None:
        """Say that it is used, so that others are evicted before it; at most once a minute."""
        now = time.time()
        if 0 <= now - self._used_at < TOUCH_EVERY_S:
            return
        self._used_at = now
        with suppress(OSError):  # evicted, or a directory we may only read: nothing depends on it
            os.utime(self.sidecar_path)

    def holds_its_place(self) -> bool:
        """It was not evicted: who looks for this version now finds this entry."""
        try:
            with self._files.use():
                return os.stat(self.sidecar_path).st_ino == os.fstat(self._files.sidecar()).st_ino
        except (OSError, Stale):
            return False  # whatever is in its place, it is not this entry

    def is_in_place(self) -> bool:
        """It holds its place, and its data file is there."""
        try:
            return self.holds_its_place() and os.stat(self.path).st_size == self.size
        except OSError:
            return False

    def close(self) -> None:
        self._files.close()

    def __enter__(self) -> CachedFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _all_right(self) -> bool:
        buffer = memoryview(bytearray(min(self.chunk_size, self.size)))
        fd = self._files.reading()
        for begin in range(0, self.header.chunks, _RECORDS_AT_ONCE):
            records = self._records(begin, min(begin + _RECORDS_AT_ONCE, self.header.chunks))
            for index, record in enumerate(records, begin):
                piece = buffer[: self._chunk_length(index)]
                if record == _ABSENT:
                    return False
                if not _is_read(fd, piece, index * self.chunk_size) or checksum(piece) != record[0]:
                    self._drop("a chunk does not have its checksum")
        return True

    def _look(self, wanted: range) -> None:
        for index, record in zip(wanted, self._records(wanted.start, wanted.stop), strict=True):
            if index not in self._known and is_sealed(index, record, self._opened_at):
                self._known.add(index)

    def _chunks(self, start: int, size: int) -> range:
        first, end = start // self.chunk_size, min(start + size, self.size)
        return range(first, -(-end // self.chunk_size) if end > start else first)

    def _chunk_length(self, index: int) -> int:
        return min(self.chunk_size, self.size - index * self.chunk_size)

    def _record_at(self, index: int) -> int:
        return self.header.records_at + index * RECORD.size

    def _records(self, first: int, stop: int) -> list[tuple[int, int, int]]:
        wanted = (stop - first) * RECORD.size
        raw = self._pread_sidecar(wanted, self._record_at(first))
        if len(raw) != wanted:
            self._drop("its sidecar is cut off")
        return list(RECORD.iter_unpack(raw))

    def _read_stamp(self) -> Stamp | None:
        try:
            return parse_stamp(self._pread_sidecar(STAMP_SIZE, self.header.size))
        except Stale:
            return None  # evicted: nobody will stamp it any more

    def _pread_sidecar(self, size: int, at: int) -> bytes:
        try:
            with self._files.use():
                return os.pread(self._files.sidecar(), size, at)
        except OSError as error:
            self._drop(f"its sidecar cannot be read ({error.strerror})", error)

    def _write_sidecar(self, data: bytes, at: int) -> None:
        with self._files.use():
            fd = self._files.sidecar()
            write_all(fd, memoryview(data), at)

    def _pread(self, index: int) -> bytes:
        length = self._chunk_length(index)
        try:
            with self._files.use():
                piece = os.pread(self._files.reading(), length, index * self.chunk_size)
        except OSError as error:
            self._drop(f"its content cannot be read ({error.strerror})", error)
        if len(piece) != length:
            self._drop("its content is cut off")
        return piece

    def _drop(self, why: str, error: OSError | None = None) -> NoReturn:
        self._is_whole = False
        self.stamp = None
        self._keeper.drop(self)
        raise Stale(f"the cached copy of {self.version.key!r} was dropped: {why}") from error


def write_all(fd: int, view: memoryview, at: int) -> None:
    """DiskFull for whatever keeps bytes from being written: a full disk, a quota, a disk that fails."""
    try:
        while view:
            written = os.pwrite(fd, view[:_WRITE_AT_ONCE], at)
            view = view[written:]
            at += written
    except OSError as error:
        raise DiskFull(f"the cache cannot take more: {error.strerror}") from error


def _is_read(fd: int, view: memoryview, at: int) -> bool:
    """The whole view was filled. What a failing disk does not give is missing, like what was cut off."""
    done = 0
    try:
        while done < len(view):
            got = os.preadv(fd, [view[done:]], at + done)
            if not got:
                return False
            done += got
    except OSError:
        return False
    return True
