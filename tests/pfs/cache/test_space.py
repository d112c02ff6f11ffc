"""Limits, floors, full disks, and what dead processes leave behind."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddleflow.domain.errors import Denied, DiskFull, Invalid, Unavailable
from paddleflow.pfs.cache import Cache, Level, shelf, space
from paddleflow.pfs.cache.eviction import FILLING_GRACE_S
from tests.pfs.cache.kit import CHUNK, PLENTY, cache, chunk, content, data_files, sidecars, version
from tests.small_disk import fill, small_disk

MIB = 1 << 20


def used(directory: Path) -> int:
    return sum(path.stat().st_blocks * 512 for path in (*data_files(directory), *sidecars(directory)))


def age(directory: Path, seconds: float) -> None:
    """As if nothing in there had been used for so long."""
    for path in sidecars(directory):
        then = path.stat().st_mtime - seconds
        os.utime(path, (then, then))


def test_the_limit_holds_while_many_files_come(tmp_path: Path) -> None:
    limit = 40 * CHUNK
    kept = cache(tmp_path, limit)
    for number in range(60):
        of = version(f"file-{number}", size=3 * CHUNK)
        kept.fill(of, content(of)).close()
        assert used(tmp_path) <= limit
    assert used(tmp_path) > limit // 2, "it is a cache, not a sieve"
    last = kept.find(version("file-59", size=3 * CHUNK))
    assert last is not None and last.is_verified()
    assert kept.find(version("file-0", size=3 * CHUNK)) is None


def test_the_least_recently_used_goes_first(tmp_path: Path) -> None:
    kept = cache(tmp_path, 10 * CHUNK)
    old, new = version("old", size=2 * CHUNK), version("new", size=2 * CHUNK)
    kept.fill(old, content(old)).close()
    kept.fill(new, content(new)).close()
    age(tmp_path, 1000)
    found = kept.find(old)
    assert found is not None
    found.touch()
    found.close()
    more = version("more", size=4 * CHUNK)
    kept.fill(more, content(more)).close()
    assert kept.find(new) is None and kept.find(old) is not None and kept.find(more) is not None


def test_what_is_larger_than_the_limit_is_refused_and_nothing_leaves_for_it(tmp_path: Path) -> None:
    kept = cache(tmp_path, 10 * CHUNK)
    small = version("small", size=CHUNK)
    kept.fill(small, content(small)).close()
    large = version("large", size=11 * CHUNK)
    for attempt in (lambda: kept.open(large), lambda: kept.fill(large, content(large))):
        with pytest.raises(DiskFull, match="more than"):
            attempt()
    assert kept.find(small) is not None


def test_two_that_are_being_filled_do_not_evict_each_other(tmp_path: Path) -> None:
    kept = cache(tmp_path, 10 * CHUNK)
    one, two = version("one", size=8 * CHUNK), version("two", size=8 * CHUNK)
    first, second = kept.open(one), kept.open(two)
    for index in range(4):
        first.store(index * CHUNK, chunk(one, index))
    stored = 0
    with pytest.raises(DiskFull, match="full"):
        for index in range(8):
            second.store(index * CHUNK, chunk(two, index))
            stored += 1
    assert stored >= 2
    assert first.is_in_place() and first.has(0, 4 * CHUNK) and second.has(0, stored * CHUNK)
    assert used(tmp_path) <= 10 * CHUNK
    first.close()
    second.close()
    age(tmp_path, FILLING_GRACE_S + 1)
    whole = version("whole", size=6 * CHUNK)
    shelf_of(kept)._rests_until = 0.0
    kept.fill(whole, content(whole)).close()
    assert kept.find(whole) is not None, "abandoned beginnings are evicted"


def shelf_of(kept: Cache) -> shelf.Shelf:
    return kept._shelves[0]


def test_the_account_is_counted_anew_when_it_is_lost_or_damaged(tmp_path: Path) -> None:
    kept = cache(tmp_path, 40 * CHUNK)
    for number in range(8):
        of = version(f"{number}", size=3 * CHUNK)
        kept.fill(of, content(of)).close()
    account = tmp_path / "pfcache1" / "account"
    for harm in (account.unlink, lambda: account.write_bytes(b"x" * 24), lambda: account.write_bytes(b"")):
        harm()
        for number in range(20):
            of = version(f"more-{number}", size=3 * CHUNK)
            kept.fill(of, content(of)).close()
            assert used(tmp_path) <= 40 * CHUNK


@pytest.mark.parametrize("lock", ["account", "trim.lock"])
def test_a_process_that_was_stopped_holds_nobody_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lock: str) -> None:
    monkeypatch.setattr(space, "PATIENCE_S", 0.05)
    monkeypatch.setattr(shelf, "TRIM_PATIENCE_S", 0.05)
    kept = cache(tmp_path, 10 * CHUNK)
    there, more = version("there", size=6 * CHUNK), version("more", size=6 * CHUNK)
    kept.fill(there, content(there)).close()
    with space.locked(str(tmp_path / "pfcache1" / lock), 1.0):
        with pytest.raises(DiskFull):
            kept.fill(more, content(more))
        found = kept.find(there)
        assert found is not None and found.is_verified() and found.read(0, there.size) == content(there)
        if lock == "trim.lock":
            assert kept.trim() == 0
            for look in (lambda: kept.evict(there.store), kept.usage, kept.inventory):
                with pytest.raises(Unavailable, match="another process"):
                    look()
    shelf_of(kept)._rests_until = 0.0
    assert kept.fill(more, content(more)).is_verified()


def test_what_was_deleted_by_hand_is_room_again(tmp_path: Path) -> None:
    kept = cache(tmp_path, 20 * CHUNK)
    of = version(size=15 * CHUNK)
    kept.fill(of, content(of)).close()
    for path in (*data_files(tmp_path), *sidecars(tmp_path)):
        path.unlink()
    other = version("other", size=15 * CHUNK)
    kept.fill(other, content(other)).close()
    assert kept.usage().files == 1


def test_a_part_of_the_disk_stays_free(tmp_path: Path) -> None:
    """The floor is above what the disk has free: nothing may be added, and what is there is trimmed away."""
    of = version()
    cache(tmp_path).fill(of, content(of)).close()
    floored = Cache([Level(str(tmp_path), PLENTY, free_floor=0.999999)], chunk_size=CHUNK)
    with pytest.raises(DiskFull):
        floored.fill(version("more"), content(version("more")))
    assert floored.find(of) is None, "it made what room it could"
    cache(tmp_path).fill(of, content(of)).close()
    assert floored.trim() > 0
    assert floored.find(of) is None


def test_usage_tells_what_is_there(tmp_path: Path) -> None:
    kept = cache(tmp_path)
    assert (kept.usage().files, kept.usage().bytes) == (0, 0)
    for store in ("a" * 16, "b" * 16):
        for number in range(3):
            of = version(f"d/{number}", size=CHUNK, store=store)
            kept.fill(of, content(of)).close()
    begun = version("begun", size=5 * CHUNK, store="b" * 16)
    kept.open(begun).close()
    usage = kept.usage()
    assert usage.files == 7 and usage.bytes == used(tmp_path) and usage.limit == PLENTY
    assert usage.stores["a" * 16].files == 3 and usage.stores["b" * 16].files == 4
    assert sum(store.bytes for store in usage.stores.values()) == usage.bytes
    held = {one.version: one.is_complete for one in kept.inventory()}
    assert held[begun] is False and sum(held.values()) == 6


def test_usage_may_be_a_little_old(tmp_path: Path) -> None:
    kept = cache(tmp_path)
    assert kept.usage(max_age_s=1000).files == 0
    kept.fill(version(), content(version())).close()
    assert kept.usage(max_age_s=1000).files == 0
    assert kept.usage().files == 1 and kept.usage(max_age_s=1000).files == 1


def test_evicting_takes_an_object_or_all_below_a_directory(tmp_path: Path) -> None:
    kept = cache(tmp_path)
    keys = ["a", "a/b", "a/b/c", "a/bc", "ab", "other"]
    there = [version(key, size=10) for key in keys] + [version("a/b", "v2", size=10), version("a", store="x" * 16)]

    def fill() -> None:
        for of in there:
            kept.fill(of, content(of)).close()

    def left(store: str = "s" * 16) -> set[str]:
        return {one.version.key for one in kept.inventory() if one.version.store == store}

    fill()
    assert kept.evict("s" * 16, "a/b") > 0
    assert left() == {"a", "a/bc", "ab", "other"}
    assert kept.evict("s" * 16, "a/b") == 0
    fill()
    kept.evict("s" * 16, "a")
    assert left() == {"ab", "other"}
    kept.evict("s" * 16)
    assert left() == set() and left("x" * 16) == {"a"}


def test_orphans_are_swept_when_they_are_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = cache(tmp_path)
    of = version()
    kept.fill(of, content(of)).close()
    root = tmp_path / "pfcache1"
    orphans = [root / "data" / "ab" / ("c" * 30), root / "new" / "x", root / "gone" / "y"]
    for orphan in orphans:
        orphan.parent.mkdir(exist_ok=True)
        orphan.write_bytes(b"z" * 10_000)
    kept.trim()
    assert all(orphan.exists() for orphan in orphans), "somebody may be about to use them"
    monkeypatch.setattr(shelf, "ORPHAN_AGE_S", -1.0)
    kept.trim()
    assert all(orphan.exists() for orphan in orphans), "it was looked through a moment ago"
    monkeypatch.setattr(shelf, "SURVEY_EVERY_S", 0.0)
    kept.trim()
    assert not any(orphan.exists() for orphan in orphans)
    found = kept.find(of)
    assert found is not None and found.is_verified()


def test_a_sidecar_without_its_data_is_swept(tmp_path: Path) -> None:
    kept = cache(tmp_path)
    for number in range(3):
        of = version(f"{number}")
        kept.fill(of, content(of)).close()
    data_files(tmp_path)[0].unlink()
    sidecars(tmp_path)[-1].write_bytes(b"garbage")
    cache(tmp_path).trim()
    assert 1 <= len(sidecars(tmp_path)) <= 2
    assert kept.usage().files == len(sidecars(tmp_path))


def test_a_directory_that_vanishes_is_made_again(tmp_path: Path) -> None:
    kept = cache(tmp_path / "cache")
    of = version()
    entry = kept.fill(of, content(of))
    subprocess.run(["rm", "-rf", tmp_path / "cache"], check=True)
    assert not entry.is_verified() and kept.find(of) is None and kept.trim() == 0
    assert kept.fill(of, content(of)).is_verified()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk") as place:
        yield place


def test_a_disk_that_is_full(disk: Path) -> None:
    """The limit is beyond the disk: the kernel says no, nothing wrong is kept, and what is there stays readable."""
    kept = cache(disk)
    of = version("first", size=10 * CHUNK)
    kept.fill(of, content(of)).close()
    ballast = fill(disk)
    large = version("large", size=100 * CHUNK)
    for attempt in (lambda: kept.open(large).store(0, content(large)), lambda: kept.fill(large, content(large))):
        with pytest.raises(DiskFull):
            attempt()
    found = kept.find(large)
    assert found is None or (not found.is_complete() and not found.has(0, 1))
    kept.trim()
    ballast.unlink()
    shelf_of(kept)._rests_until = 0.0
    assert kept.fill(large, content(large)).is_verified()
    again = kept.fill(of, content(of))
    assert Path(again.path).read_bytes() == content(of)


def test_a_disk_that_fills_in_the_middle_of_a_chunk(disk: Path) -> None:
    kept = Cache([Level(str(disk), PLENTY, free_floor=0.0)], chunk_size=64 * CHUNK)
    of = version(size=300 * CHUNK)
    entry = kept.open(of)
    stored = 0
    with pytest.raises(DiskFull):
        for start in range(0, of.size, 64 * CHUNK):
            entry.store(start, content(of)[start : start + 64 * CHUNK])
            stored = start + 64 * CHUNK
    assert 0 < stored < of.size
    assert entry.has(0, stored) and entry.read(0, stored) == content(of)[:stored]
    assert entry.missing(0, of.size) == [(stored, of.size - stored)]


def test_small_files_lie_in_memory_while_it_has_room(tmp_path: Path) -> None:
    memory, disk = tmp_path / "memory", tmp_path / "disk"
    levels = [Level(str(memory), 10 * CHUNK, 0.0, is_memory=True), Level(str(disk), PLENTY, 0.0)]
    kept = Cache(levels, chunk_size=CHUNK)
    for number in range(6):
        of = version(f"{number}", size=2 * CHUNK)
        kept.fill(of, content(of)).close()
    assert len(data_files(memory)) == 3 and len(data_files(disk)) == 3
    assert used(memory) <= 10 * CHUNK
    for number in range(6):
        found = kept.find(version(f"{number}", size=2 * CHUNK))
        assert found is not None and found.is_verified()
    large = version("large", size=5 * MIB)
    assert str(disk) in kept.open(large).path
    assert kept.usage().files == 7 and kept.usage().limit == PLENTY + 10 * CHUNK
    assert kept.evict("s" * 16) > 0 and kept.usage().files == 0


def test_memory_alone_evicts(tmp_path: Path) -> None:
    kept = Cache([Level(str(tmp_path), 10 * CHUNK, 0.0, is_memory=True)], chunk_size=CHUNK)
    for number in range(10):
        of = version(f"{number}", size=2 * CHUNK)
        kept.fill(of, content(of)).close()
    assert kept.find(version("9", size=2 * CHUNK)) is not None and used(tmp_path) <= 10 * CHUNK


def test_it_refuses_what_makes_no_sense(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="directory"):
        Cache([])
    for chunk_size in (0, -4096, 1000):
        with pytest.raises(Invalid, match="4096"):
            Cache([Level(str(tmp_path), 1)], chunk_size=chunk_size)


def test_what_others_can_write_to_is_not_believed(tmp_path: Path) -> None:
    kept = cache(tmp_path)
    kept.fill(version(), content(version())).close()
    root = tmp_path / "pfcache1"
    assert root.stat().st_mode & 0o777 == 0o700 and data_files(tmp_path)[0].stat().st_mode & 0o777 == 0o600
    root.chmod(0o777)
    with pytest.raises(Denied, match="another user"):
        cache(tmp_path)
    root.chmod(0o700)
    if not os.geteuid():
        os.chown(root, 65534, 65534)
        with pytest.raises(Denied, match="another user"):
            cache(tmp_path)


def test_a_directory_that_cannot_be_written(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a directory")
    kept = cache(blocked)
    assert kept.find(version()) is None
    with pytest.raises(DiskFull, match="cannot take"):
        kept.open(version())
    assert kept.usage().files == 0 and kept.trim() == 0 and kept.evict("x") == 0
