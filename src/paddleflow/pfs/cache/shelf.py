"""One level of the cache: a directory of entries, its limit, and who leaves when it is full.

An entry comes into being in one step: its data file is made under a random name, its sidecar is written aside and
linked to its place, which fails if somebody was faster; then theirs is used. It goes in one step too: its sidecar is
renamed away, and only who holds the renamed one deletes the data file it names, so no two processes ever delete a pair
that does not belong together. A process that dies between two steps leaves files nobody refers to; they are swept once
they are old. Readers that have an evicted file open keep reading it.
"""

from __future__ import annotations

import os
import stat
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar
from weakref import WeakSet

from paddleflow.domain.errors import Denied, DiskFull, Unavailable
from paddleflow.pfs.backstage import ObjectVersion
from paddleflow.pfs.cache.descriptors import open_sidecar
from paddleflow.pfs.cache.entry import CachedFile, write_all
from paddleflow.pfs.cache.eviction import Candidate, choose
from paddleflow.pfs.cache.layout import (
    BLOCK,
    FORMAT,
    blocks,
    data_place,
    is_stamped,
    name_of,
    new_data_name,
    now_ns,
    pack_header,
    pack_record,
    pack_stamp,
    parse_stamp,
    read_header,
    stamp_of,
)
from paddleflow.pfs.cache.space import Level, Space, locked
from paddleflow.pfs.cache.stock import Held, survey

T = TypeVar("T")

ORPHAN_AGE_S = 600.0
TRIM_PATIENCE_S = 10.0
"""For another process that makes room: it may have many files to look at."""
SURVEY_EVERY_S = 600.0
"""How often the whole directory is looked at when there is no other reason to."""
_ROUNDS = 3
_REST_S = 1.0
"""After there was nothing to evict, nobody looks again for so long."""
_SLACK = 20
"""One part in so many of the limit is freed beyond what is needed, so that not every chunk means looking at all."""


@dataclass(slots=True)
class Draft:
    """Content that has no name yet: a data file only its maker knows."""

    name: str
    path: str
    fd: int
    size: int
    taken: int

    def write(self, at: int, data: bytes | memoryview) -> None:
        write_all(self.fd, memoryview(data), at)


class Shelf:
    def __init__(self, level: Level, chunk_size: int) -> None:
        self.level = level
        self._chunk_size = chunk_size
        self._root = os.path.join(level.directory, FORMAT)
        self._entries = os.path.join(self._root, "entries")
        self._data = os.path.join(self._root, "data")
        self._trim_lock = os.path.join(self._root, "trim.lock")
        self._space = Space(level, os.path.join(self._root, "account"))
        self._open: WeakSet[CachedFile] = WeakSet()
        self._lock = threading.Lock()
        self._making_room = threading.Lock()
        self._rests_until = 0.0
        self._surveyed_at = -SURVEY_EVERY_S
        self._refuse_strangers()

    def find(self, version: ObjectVersion) -> CachedFile | None:
        place = f"{self._entries}/{name_of(version)}"
        sidecar = open_sidecar(place)
        if sidecar < 0:
            return None
        try:
            entry = self._entry(version, place, sidecar)
        except OSError:
            entry = None  # a disk that does not give the sidecar back: as if it were damaged
        if entry is None:
            os.close(sidecar)
            self._discard(place)
            return None
        if not entry.is_open:
            os.close(sidecar)
        return self._opened(entry)

    def _opened(self, entry: CachedFile) -> CachedFile:
        if entry.is_open:
            with self._lock:
                self._open.add(entry)
        return entry

    def _entry(self, version: ObjectVersion, place: str, sidecar: int) -> CachedFile | None:
        """None when sidecar and data file do not make an entry of this version. What is verified needs its sidecar no
        more, and is not kept open."""
        beginning, header = read_header(sidecar)
        if header is None or header.version != version:
            return None
        path = f"{self._data}/{data_place(header.data_name)}"
        try:
            status = os.stat(path)
        except FileNotFoundError:
            return None
        stamp = parse_stamp(beginning, header.size)
        if stamp is not None and is_stamped(status, stamp):
            return CachedFile(self, header, (place, path), -1, os.fstat(sidecar), stamp)
        about = os.fstat(sidecar)
        if status.st_size != version.size or about.st_size < header.sidecar_size:
            return None
        return CachedFile(self, header, (place, path), sidecar, about, None)

    def draft(self, size: int, content: int, *, is_filled_at_once: bool = False) -> Draft:
        """A data file of ``size`` bytes, of which ``content`` are about to be written, or all at once. DiskFull."""
        taken = blocks(content) + BLOCK
        self.reserve(taken)
        name = new_data_name()
        path = f"{self._data}/{data_place(name)}"
        try:
            fd = self._made(lambda: os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), path)
            draft = Draft(name, path, fd, size, taken)
        except OSError as error:
            self.give_back(taken)
            raise self._full(error) from error
        if is_filled_at_once:
            return draft
        try:
            os.ftruncate(fd, size)
        except OSError as error:
            self.discard(draft)
            raise self._full(error) from error
        return draft

    def discard(self, draft: Draft) -> None:
        os.close(draft.fd)
        try:
            os.unlink(draft.path)
        except FileNotFoundError:
            return  # published and evicted already, and taken off the account then
        self.give_back(draft.taken)

    def publish(self, draft: Draft, version: ObjectVersion, sums: list[int] | None = None) -> CachedFile:
        """Give a draft its name. With checksums of all chunks it is complete, and replaces one that is not; without, it
        is empty and whoever was faster wins. The draft is used up. DiskFull."""
        aside = os.path.join(self._root, "new", draft.name)
        mine: CachedFile | None = None
        winner: CachedFile | None = None
        try:
            mine = self._write_aside(aside, draft, version, sums)
            winner = self._place(aside, mine, replaces_incomplete=sums is not None)
        except OSError as error:
            raise self._full(error) from error
        finally:
            with suppress(OSError):  # it was never made, or is swept later
                os.unlink(aside)
            if winner is not None and winner is mine:
                os.close(draft.fd)
            else:
                if mine is not None:
                    mine.close()
                self.discard(draft)
        if winner is None:
            raise DiskFull(f"others keep replacing the cached copy of {version.key!r}")
        return winner

    def _place(self, aside: str, mine: CachedFile, *, replaces_incomplete: bool) -> CachedFile | None:
        """Link a sidecar to its place. The entry that is there in the end: this one, or that of who was faster."""
        for _ in range(_ROUNDS):
            try:
                self._made(lambda: os.link(aside, mine.sidecar_path), mine.sidecar_path)
            except FileExistsError:
                found = self.find(mine.version)
                if found is not None and replaces_incomplete and not found.is_verified():
                    self.drop(found)
                    found.close()
                    continue
            else:
                return self._opened(mine)
            if found is not None:
                return found
        return None

    def _write_aside(self, aside: str, draft: Draft, version: ObjectVersion, sums: list[int] | None) -> CachedFile:
        """The entry as it will be once its sidecar is in its place: whoever wrote it need not read it again."""
        header, packed = pack_header(version, self._chunk_size, draft.name)
        places = (f"{self._entries}/{name_of(version)}", draft.path)
        fd = self._made(lambda: os.open(aside, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), aside)
        try:
            if sums is None:
                write_all(fd, memoryview(packed), 0)
                os.ftruncate(fd, header.sidecar_size)
                return CachedFile(self, header, places, fd, os.fstat(fd), None)
            sealed_at = now_ns()
            records = b"".join(pack_record(index, one, sealed_at) for index, one in enumerate(sums))
            stamp = stamp_of(os.fstat(draft.fd))
            write_all(fd, memoryview(packed + pack_stamp(stamp) + records), 0)
            entry = CachedFile(self, header, places, -1, os.fstat(fd), stamp)
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)
        return entry

    def reserve(self, size: int) -> None:
        try:
            if self._made(lambda: self._space.take(size), self._entries) or self._is_room_made(size):
                return
        except OSError as error:
            raise self._full(error) from error
        raise DiskFull(f"the cache at {self.level.directory} is full and nothing in it may be evicted now")

    def _is_room_made(self, size: int) -> bool:
        """Evict until so many bytes more fit, and take them. Of many threads that find it full one looks around."""
        with self._making_room:
            if self._space.take(size):
                return True
            if time.monotonic() < self._rests_until:
                return False
            with locked(self._trim_lock, TRIM_PATIENCE_S):
                if self._space.take(size):
                    return True  # another process has just made room
                self._evict_for(size)
            if self._space.take(size):
                return True
            self._rests_until = time.monotonic() + _REST_S
            return False

    def has_room(self, size: int) -> bool:
        """Without evicting anything."""
        try:
            return self._made(lambda: self._space.excess(size), self._entries) == 0
        except OSError:
            return False

    def trim(self) -> int:
        """Keep within limit and floor, and sweep now and then; the bytes that freed."""
        if time.monotonic() < self._surveyed_at + SURVEY_EVERY_S and self.has_room(0):
            return 0
        try:
            with locked(self._trim_lock, TRIM_PATIENCE_S):
                return self._evict_for(0)
        except OSError:
            return 0  # no such directory, or none of ours: nothing is held there

    def take_stock(self, visit: Callable[[Held], None]) -> None:
        """Show everything that is there. Unavailable while another process keeps the directory to itself."""
        try:
            with locked(self._trim_lock, TRIM_PATIENCE_S):
                self._survey(visit)
        except TimeoutError as error:
            raise Unavailable(
                f"the cache at {self.level.directory} is being looked through by another process"
            ) from error
        except OSError:
            return  # no such directory, or none of ours: nothing is held there

    def evict(self, unwanted: Callable[[ObjectVersion], bool]) -> int:
        """How many bytes that freed."""
        places: list[str] = []
        self.take_stock(lambda one: places.append(one.place) if unwanted(one.version) else None)
        return sum(self._discard(place) for place in places)

    def drop(self, entry: CachedFile) -> None:
        """Evict this entry, unless it is gone already. Another that has come into its place is left there."""
        if entry.holds_its_place():
            self._discard(entry.sidecar_path)

    def _evict_for(self, size: int) -> int:
        with self._lock:
            opened = {entry.sidecar_path for entry in self._open if entry.is_open}
        candidates: list[Candidate] = []

        def visit(one: Held) -> None:
            is_open_here = one.place in opened
            candidates.append(Candidate(one.place, one.bytes, one.last_used, not one.is_complete, is_open_here))

        self._survey(visit)
        excess = self._space.excess(size)
        slack = self.level.limit // _SLACK if excess else 0
        return sum(self._discard(one.name) for one in choose(candidates, excess + slack, time.time()))

    def _survey(self, visit: Callable[[Held], None]) -> None:
        """Look at everything and correct the account: whoever calls this holds the lock."""
        before = self._space.count()
        self._space.correct(survey(self._root, visit, self._discard, ORPHAN_AGE_S), before)
        self._surveyed_at = time.monotonic()

    def _discard(self, place: str) -> int:
        """Take an entry out and delete it; the bytes that frees. What was renamed away is nobody else's."""
        gone = os.path.join(self._root, "gone", new_data_name())
        freed = 0
        try:
            self._made(lambda: os.rename(place, gone), gone)
            fd = open_sidecar(gone)
            if fd >= 0:
                try:
                    _, header = read_header(fd)
                    freed += os.fstat(fd).st_blocks * 512
                finally:
                    os.close(fd)
                if header is not None:
                    path = f"{self._data}/{data_place(header.data_name)}"
                    freed += _size_of_deleted(path)
            os.unlink(gone)
        except OSError:
            return 0  # somebody else was faster, or it cannot be deleted: then it stays, counted
        self.give_back(freed)
        return freed

    def give_back(self, size: int) -> None:
        with suppress(OSError):  # the account then errs upwards, and the next survey corrects it
            self._space.give_back(size)

    def _made(self, act: Callable[[], T], path: str) -> T:
        """Do it; where that fails because a directory is not there yet, make the directory and do it again."""
        try:
            return act()
        except FileNotFoundError:
            self._make_directories(os.path.dirname(path))
            return act()

    def _make_directories(self, deepest: str) -> None:
        if os.path.dirname(deepest) in {self._entries, self._data}:
            # Nearly always it is one of the many that each take a part of the files, and all above it are there.
            with suppress(FileNotFoundError, FileExistsError):
                os.mkdir(deepest, 0o700)
                return
        os.makedirs(self.level.directory, mode=0o700, exist_ok=True)
        for folder in (self._root, *(os.path.join(self._root, one) for one in ("entries", "data", "new", "gone"))):
            os.makedirs(folder, mode=0o700, exist_ok=True)
        self._refuse_strangers()
        os.makedirs(deepest, mode=0o700, exist_ok=True)

    def _refuse_strangers(self) -> None:
        """Checksums tell damage, not malice: a directory that others can write to would let them choose our bytes."""
        try:
            status = os.stat(self._root)
        except OSError:
            return  # not there, or not for us: there is nothing to read in it, and writing will say so
        if status.st_uid not in {os.geteuid(), 0} or stat.S_IMODE(status.st_mode) & 0o022:
            raise Denied(f"the cache directory {self._root} can be changed by another user: choose one of your own")

    def _full(self, error: OSError) -> DiskFull:
        return DiskFull(f"the cache at {self.level.directory} cannot take more: {error.strerror}")


def _size_of_deleted(path: str) -> int:
    """Delete a file; the bytes it took, 0 when it was gone already."""
    try:
        taken = os.stat(path).st_blocks * 512
        os.unlink(path)
    except FileNotFoundError:
        return 0
    return taken
