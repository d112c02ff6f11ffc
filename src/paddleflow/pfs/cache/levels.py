"""The cache as its users see it: one or more directories, small files in memory first, large ones on disk."""

from __future__ import annotations

import errno
import fcntl
import os
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from paddleflow.domain.errors import DiskFull, Invalid, NotFound
from paddleflow.pfs.backstage import ObjectVersion
from paddleflow.pfs.cache.entry import CachedFile
from paddleflow.pfs.cache.layout import blocks, checksum
from paddleflow.pfs.cache.shelf import Draft, Shelf
from paddleflow.pfs.cache.space import Level
from paddleflow.pfs.cache.stock import Held

MIB = 1 << 20
SMALL = 4 * MIB
"""Files up to this size may lie in memory."""
_FICLONE = 0x40049409
_COPY_AT_ONCE = 64 * MIB


@dataclass(frozen=True, slots=True)
class StoreUsage:
    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class CacheUsage:
    files: int
    bytes: int
    """On disk and in memory together, as the filesystems count them."""
    limit: int
    stores: Mapping[str, StoreUsage]


class Snapshot:
    """A copy of a local file that nobody writes to, taken before it is known what version it will be: uploaded from
    here, its content in the cache and in the store are the same whatever happens to the original meanwhile."""

    def __init__(self, shelf: Shelf, draft: Draft, chunk_size: int) -> None:
        self._shelf = shelf
        self._draft: Draft | None = draft
        self._chunk_size = chunk_size
        self.size = draft.size

    @property
    def fd(self) -> int:
        assert self._draft is not None
        return self._draft.fd

    def publish(self, version: ObjectVersion) -> CachedFile:
        """It is this version: complete, and verified."""
        assert self._draft is not None
        if version.size != self.size:
            raise Invalid(f"{version.key!r} has {version.size} bytes, not {self.size}")
        draft, self._draft = self._draft, None
        try:
            starts = range(0, self.size, self._chunk_size)
            sums = [checksum(os.pread(draft.fd, self._chunk_size, start)) for start in starts]
        except OSError as error:
            self._shelf.discard(draft)
            raise DiskFull(f"the cache does not give back what it took: {error.strerror}") from error
        return self._shelf.publish(draft, version, sums)

    def discard(self) -> None:
        if self._draft is not None:
            draft, self._draft = self._draft, None
            self._shelf.discard(draft)


class Cache:
    """Safe to use from several threads, and any number of Caches, in any number of processes, may share directories."""

    def __init__(self, levels: Sequence[Level], *, chunk_size: int = MIB) -> None:
        if not levels:
            raise Invalid("a cache needs at least one directory")
        if chunk_size <= 0 or chunk_size % 4096:
            raise Invalid("the chunk size must be a multiple of 4096 bytes")
        self.chunk_size = chunk_size
        self._shelves = [Shelf(level, chunk_size) for level in levels]
        self._counting = threading.Lock()
        self._counted: tuple[float, CacheUsage | None] = (0.0, None)

    def find(self, version: ObjectVersion) -> CachedFile | None:
        """What there is of a version, perhaps not all of it. Takes microseconds and never waits."""
        for shelf in self._shelves:
            found = shelf.find(version)
            if found is not None:
                return found
        return None

    def open(self, version: ObjectVersion) -> CachedFile:
        """What there is of a version, or a new, empty entry. DiskFull when the cache cannot take it."""
        found = self.find(version)
        if found is not None:
            return found
        shelf, draft = self._draft(version.size, 0)
        return shelf.publish(draft, version, None if version.size else [])

    def fill(self, version: ObjectVersion, content: bytes) -> CachedFile:
        """Keep a whole object at once: complete and verified. DiskFull."""
        if len(content) != version.size:
            raise Invalid(f"{version.key!r} has {version.size} bytes, not {len(content)}")
        shelf, draft = self._draft(version.size, version.size, is_filled_at_once=True)
        try:
            draft.write(0, content)
        except DiskFull:
            shelf.discard(draft)
            raise
        view = memoryview(content)
        sums = [checksum(view[at : at + self.chunk_size]) for at in range(0, len(content), self.chunk_size)]
        return shelf.publish(draft, version, sums)

    def adopt(self, version: ObjectVersion, path: str) -> CachedFile:
        """Keep a copy of a local file that is this version. Nobody may write to it meanwhile. DiskFull."""
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise NotFound(f"{path} cannot be read: {error.strerror}") from error
        try:
            if os.fstat(fd).st_size != version.size:
                raise Invalid(f"{path} does not have the {version.size} bytes of {version.key!r}")
            snapshot = self.snapshot(fd, version.size)
        finally:
            os.close(fd)
        assert snapshot is not None
        return snapshot.publish(version)

    def snapshot(self, source: int, size: int, *, copy_up_to: int | None = None) -> Snapshot | None:
        """A private copy of the first ``size`` bytes of an open file. Shares the blocks where the filesystem can; where
        it cannot, files beyond ``copy_up_to`` are not worth copying: None. DiskFull."""
        is_worth_copying = copy_up_to is None or size <= copy_up_to
        shelf, draft = self._draft(size, size if is_worth_copying else 0)
        try:
            if not _shares_blocks(source, draft.fd, size):
                if not is_worth_copying:
                    shelf.discard(draft)
                    return None
                _copy(source, draft, size)
        except DiskFull:
            shelf.discard(draft)
            raise
        return Snapshot(shelf, draft, self.chunk_size)

    def evict(self, store: str, key: str = "") -> int:
        """Forget an object, or a directory of them, in all versions; the bytes that freed."""
        below = f"{key}/"

        def is_meant(version: ObjectVersion) -> bool:
            return version.store == store and (not key or version.key == key or version.key.startswith(below))

        return sum(shelf.evict(is_meant) for shelf in self._shelves)

    def trim(self) -> int:
        """Keep within limits and floors, sweep what dead processes left; the bytes that freed. To be called now and
        then: others fill the disk too."""
        return sum(shelf.trim() for shelf in self._shelves)

    def inventory(self) -> list[Held]:
        """Every entry, for reports."""
        held: list[Held] = []
        for shelf in self._shelves:
            shelf.take_stock(held.append)
        return held

    def usage(self, *, max_age_s: float = 0.0) -> CacheUsage:
        """What all directories hold, counted now, or so many seconds ago at most: counting looks at every file."""
        with self._counting:
            counted_at, usage = self._counted
            if usage is None or time.monotonic() - counted_at >= max_age_s:
                usage = self._count()
                self._counted = (time.monotonic(), usage)
            return usage

    def _count(self) -> CacheUsage:
        stores: dict[str, StoreUsage] = {}

        def visit(one: Held) -> None:
            before = stores.get(one.version.store, StoreUsage(0, 0))
            stores[one.version.store] = StoreUsage(before.files + 1, before.bytes + one.bytes)

        for shelf in self._shelves:
            shelf.take_stock(visit)
        return CacheUsage(
            sum(one.files for one in stores.values()),
            sum(one.bytes for one in stores.values()),
            sum(shelf.level.limit for shelf in self._shelves),
            stores,
        )

    def _draft(self, size: int, content: int, *, is_filled_at_once: bool = False) -> tuple[Shelf, Draft]:
        """In memory when it is small and memory has room; else where there is room, evicting if need be."""
        errors: list[DiskFull] = []
        for shelf in self._places(size):
            try:
                return shelf, shelf.draft(size, content, is_filled_at_once=is_filled_at_once)
            except DiskFull as error:
                errors.append(error)
        raise errors[-1] if errors else DiskFull(f"{size} bytes are more than any cache directory may hold")

    def _places(self, size: int) -> Iterable[Shelf]:
        fitting = [shelf for shelf in self._shelves if blocks(size) <= shelf.level.limit]
        memory = [shelf for shelf in fitting if shelf.level.is_memory and size <= SMALL]
        disk = [shelf for shelf in fitting if not shelf.level.is_memory]
        roomy = [shelf for shelf in memory if shelf.has_room(blocks(size))]
        return [*roomy, *disk, *(memory if not disk else ())]


def _shares_blocks(source: int, target: int, size: int) -> bool:
    """The filesystem made a copy that takes no space (btrfs, xfs)."""
    try:
        fcntl.ioctl(target, _FICLONE, source)
        os.ftruncate(target, size)
    except OSError:
        return False  # most filesystems cannot
    return True


def _copy(source: int, draft: Draft, size: int) -> None:
    done = 0
    while done < size:
        try:
            copied = os.copy_file_range(source, draft.fd, min(_COPY_AT_ONCE, size - done), done, done)
        except OSError as error:
            if error.errno not in {errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP}:
                raise DiskFull(f"the cache cannot take more: {error.strerror}") from error
            piece = os.pread(source, min(draft.size - done, MIB), done)
            draft.write(done, piece)
            copied = len(piece)
        if not copied:
            break  # it was cut shorter meanwhile: what is missing reads as zeros, and is uploaded so
        done += copied
