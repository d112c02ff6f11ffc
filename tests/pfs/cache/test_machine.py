"""Any order of filling, reading, evicting, damaging and rebooting, by three users of one directory: never wrong bytes,
never an error but the documented ones, and what was dropped can be had again."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from paddleflow.domain.errors import DiskFull, Stale
from paddleflow.pfs.backstage import ObjectVersion
from paddleflow.pfs.cache import Cache, CachedFile, layout
from tests.pfs.cache.kit import CHUNK, cache, content, damage, data_files, flip, sidecars, version

LIMIT = 24 * CHUNK
VERSIONS = [
    version("small", size=100),
    version("small", "v2", size=100),
    version("a/even", size=2 * CHUNK),
    version("a/odd", size=3 * CHUNK + 1),
    version("a/large", size=6 * CHUNK - 1),
    version("empty", size=0),
]
users = st.integers(0, 2)
versions = st.sampled_from(VERSIONS)
chunks = st.integers(0, 5)
unit = st.floats(0, 1, exclude_max=True)


class SharedCache(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="cache-"))
        self.users: list[Cache] = [cache(self.directory, LIMIT) for _ in range(3)]
        self.kept: list[CachedFile] = []
        self.boot = (layout.boot_id, layout._boot_seed)

    def teardown(self) -> None:
        for entry in self.kept:
            entry.close()
        layout.boot_id, layout._boot_seed = self.boot
        shutil.rmtree(self.directory)

    @rule(user=users, of=versions, index=chunks)
    def store(self, user: int, of: ObjectVersion, index: int) -> None:
        start = index * CHUNK
        if start >= of.size:
            return
        try:
            with self.users[user].open(of) as entry:
                entry.store(start, content(of)[start : start + CHUNK])
                assert entry.has(start, CHUNK)
                assert os.pread(entry.fd, CHUNK, start) == content(of)[start : start + CHUNK]
        except DiskFull:
            pass

    @rule(user=users, of=versions)
    def fill(self, user: int, of: ObjectVersion) -> None:
        try:
            with self.users[user].fill(of, content(of)) as entry:
                assert entry.is_verified()
                assert Path(entry.path).read_bytes() == content(of)
        except DiskFull:
            pass

    @rule(user=users, of=versions)
    def repair(self, user: int, of: ObjectVersion) -> None:
        """What a worker does: check what is there, bring the rest, verify."""
        try:
            with self.users[user].open(of) as entry:
                entry.check(0, of.size)
                for start, size in entry.missing(0, of.size):
                    entry.store(start, content(of)[start : start + size])
                assert entry.has(0, of.size) and entry.is_complete()
                assert os.pread(entry.fd, of.size, 0) == content(of)
                assert entry.verify()
        except (DiskFull, Stale):
            pass  # damage found on the way drops it

    @rule(user=users, of=versions, start=st.integers(0, 7 * CHUNK), size=st.integers(0, 7 * CHUNK))
    def read(self, user: int, of: ObjectVersion, start: int, size: int) -> None:
        entry = self.users[user].find(of)
        if entry is None:
            return
        with entry:
            whole = content(of)
            if entry.is_verified():
                assert Path(entry.path).read_bytes() == whole
                assert os.pread(entry.fd, size, start) == whole[start : start + size]
            try:
                assert entry.read(start, size) == whole[start : start + size]
                entry.check(start, size)
            except Stale:
                return
            if entry.has(start, size):
                assert os.pread(entry.fd, size, start) == whole[start : start + size]

    @rule(user=users, of=versions)
    def serve(self, user: int, of: ObjectVersion) -> None:
        """What a front does: look, and hand out what it may hand out as it is."""
        entry = self.users[user].find(of)
        if entry is None:
            return
        with entry:
            for start in range(0, of.size, CHUNK):
                try:
                    if entry.has(start, CHUNK):
                        assert os.pread(entry.fd, CHUNK, start) == content(of)[start : start + CHUNK]
                except Stale:
                    return

    @rule(user=users, of=versions)
    def verify(self, user: int, of: ObjectVersion) -> None:
        entry = self.users[user].find(of)
        if entry is None:
            return
        with entry:
            if entry.verify():
                assert Path(entry.path).read_bytes() == content(of)

    @rule(user=users, of=versions)
    def keep_open(self, user: int, of: ObjectVersion) -> None:
        entry = self.users[user].find(of)
        if entry is not None:
            self.kept.append(entry)

    @rule(of=versions, start=st.integers(0, 7 * CHUNK), size=st.integers(1, CHUNK))
    def read_kept(self, of: ObjectVersion, start: int, size: int) -> None:
        """Entries opened long ago: evicted, damaged, of another boot. Summed up, they are right or Stale."""
        for entry in self.kept:
            try:
                assert entry.read(start, size) == content(entry.version)[start : start + size]
            except Stale:
                continue

    @rule(user=users, of=versions)
    def evict(self, user: int, of: ObjectVersion) -> None:
        self.users[user].evict(of.store, of.key)
        assert self.users[user].find(of) is None

    @rule(user=users)
    def trim(self, user: int) -> None:
        self.users[user].trim()

    @rule(which=unit, where=unit)
    def flip_data(self, which: float, where: float) -> None:
        self._harm(data_files, which, lambda path: flip(path, int(where * path.stat().st_size)))

    @rule(which=unit, where=unit)
    def flip_sidecar(self, which: float, where: float) -> None:
        self._harm(sidecars, which, lambda path: flip(path, int(where * path.stat().st_size)))

    @rule(which=unit, where=unit, of_data=st.booleans())
    def resize(self, which: float, where: float, of_data: bool) -> None:
        def act(path: Path) -> None:
            size = int(where * 2 * path.stat().st_size)
            damage(path, lambda fd: os.ftruncate(fd, size))

        self._harm(data_files if of_data else sidecars, which, act)

    @rule(which=unit, of_data=st.booleans())
    def delete(self, which: float, of_data: bool) -> None:
        self._harm(data_files if of_data else sidecars, which, Path.unlink, smallest=0)

    @rule(which=unit, garbage=st.binary(min_size=1, max_size=300), where=unit)
    def scribble(self, which: float, garbage: bytes, where: float) -> None:
        def act(path: Path) -> None:
            at = int(where * path.stat().st_size)
            damage(path, lambda fd: os.pwrite(fd, garbage, at))

        self._harm(sidecars, which, act)

    @rule()
    def lose_the_account(self) -> None:
        (self.directory / "pfcache1" / "account").unlink(missing_ok=True)

    @rule(seed=st.binary(min_size=16, max_size=16))
    def reboot(self, seed: bytes) -> None:
        for entry in self.kept:
            entry.close()
        self.kept.clear()
        layout.boot_id = lambda: seed  # type: ignore[assignment]
        layout._boot_seed = lambda: int.from_bytes(seed[:8], "little")  # type: ignore[assignment]
        self.users = [cache(self.directory, LIMIT) for _ in range(3)]

    def _harm(
        self,
        among: Callable[[Path], list[Path]],
        which: float,
        act: Callable[[Path], object],
        smallest: int = 1,
    ) -> None:
        paths = [path for path in among(self.directory) if path.stat().st_size >= smallest]
        if paths:
            act(paths[int(which * len(paths))])

    @invariant()
    def within_its_limit(self) -> None:
        used = sum(path.stat().st_blocks * 512 for path in (*data_files(self.directory), *sidecars(self.directory)))
        # Sidecars and files that were enlarged or orphaned by damage are beyond what is counted in advance.
        assert used <= LIMIT + 8 * CHUNK


TestSharedCache = SharedCache.TestCase
TestSharedCache.settings = settings(max_examples=80, stateful_step_count=40)
