"""One cached version: who may believe what, and what happens to damaged files."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddleflow.domain.errors import Invalid, NotFound, Stale
from paddleflow.pfs.cache import Cache, CachedFile, layout, stamp_matches
from tests.pfs.cache.kit import CHUNK, cache, chunk, content, damage, data_files, flip, sidecars, version
from tests.waiting import wait_for


def filled(directory: Path) -> CachedFile:
    of = version()
    entry = cache(directory).open(of)
    entry.store(0, content(of))
    assert entry.verify()
    return entry


def test_chunks_come_one_by_one_and_it_ends_verified(tmp_path: Path) -> None:
    of = version()
    entry = cache(tmp_path).open(of)
    assert entry.missing(0, of.size) == [(0, of.size)]
    assert not entry.has(0, 1) and not entry.is_complete() and not entry.is_verified() and not entry.verify()
    entry.store(CHUNK, chunk(of, 1))
    assert entry.has(CHUNK, CHUNK) and entry.has(CHUNK + 5, 10) and not entry.has(CHUNK - 1, 2)
    assert entry.missing(0, of.size) == [(0, CHUNK), (2 * CHUNK, CHUNK + 100)]
    assert entry.missing(CHUNK + 1, CHUNK) == [(2 * CHUNK, CHUNK)]
    assert os.pread(entry.fd, CHUNK, CHUNK) == chunk(of, 1) == entry.read(CHUNK, CHUNK)
    entry.store(2 * CHUNK, content(of)[2 * CHUNK :])
    assert not entry.is_complete()
    entry.store(0, chunk(of, 0))
    assert entry.is_complete() and not entry.is_verified()
    assert entry.verify() and entry.is_verified()
    assert entry.missing(0, of.size) == [] and entry.has(0, of.size)
    assert Path(entry.path).read_bytes() == content(of)
    assert entry.stamp is not None and stamp_matches(entry.path, entry.stamp)


def test_reads_end_where_the_file_does(tmp_path: Path) -> None:
    entry = filled(tmp_path)
    whole = content(entry.version)
    for start, size in [(0, 10**9), (5, 7), (CHUNK - 1, 2), (len(whole) - 1, 10), (len(whole), 1), (10**9, 5), (3, 0)]:
        assert entry.read(start, size) == whole[start : start + size]
        assert entry.has(start, size)


@given(st.integers(0, 5 * CHUNK), st.integers(0, 5 * CHUNK), st.sets(st.integers(0, 3)))
def test_missing_is_exactly_what_was_not_stored(
    tmp_path_factory: pytest.TempPathFactory, start: int, size: int, stored: set[int]
) -> None:
    of = version()
    with cache(tmp_path_factory.mktemp("missing")).open(of) as entry:
        for index in stored:
            entry.store(index * CHUNK, chunk(of, index))
        absent = {at for begin, length in entry.missing(start, size) for at in range(begin, begin + length)}
        wanted = {at // CHUNK for at in range(start, min(start + size, of.size))}
        assert {at // CHUNK for at in absent} == wanted - stored
        assert entry.has(start, size) == (not absent)
        assert all(begin % CHUNK == 0 for begin, _ in entry.missing(start, size))


def test_an_empty_object_is_complete_at_once(tmp_path: Path) -> None:
    of = version(size=0)
    entry = cache(tmp_path).open(of)
    assert entry.is_complete() and entry.is_verified() and entry.read(0, 10) == b"" and entry.missing(0, 10) == []
    assert Path(entry.path).read_bytes() == b""


@pytest.mark.parametrize(
    ("start", "size"), [(1, CHUNK), (0, 10), (CHUNK, CHUNK + 1), (3 * CHUNK, 101), (3 * CHUNK, 99)]
)
def test_only_whole_chunks_are_stored(tmp_path: Path, start: int, size: int) -> None:
    entry = cache(tmp_path).open(version())
    with pytest.raises(ValueError, match="whole chunks"):
        entry.store(start, bytes(size))
    assert entry.missing(0, entry.size) == [(0, entry.size)]


def test_others_see_what_is_stored_after_they_looked(tmp_path: Path) -> None:
    """The front opens an entry, a worker fills it."""
    of = version()
    worker = cache(tmp_path).open(of)
    front = cache(tmp_path).find(of)
    assert front is not None and not front.has(0, 1)
    worker.store(0, chunk(of, 0))
    assert front.has(0, CHUNK) and os.pread(front.fd, CHUNK, 0) == chunk(of, 0)
    assert not front.has(0, CHUNK + 1)
    worker.store(CHUNK, content(of)[CHUNK:])
    assert front.is_complete() and not front.is_verified()
    assert worker.verify()
    assert front.is_verified()


def test_what_was_there_before_is_checked_before_it_counts(tmp_path: Path) -> None:
    of = version()
    with cache(tmp_path).open(of) as entry:
        entry.store(0, chunk(of, 0) + chunk(of, 1))
    [data] = data_files(tmp_path)
    flip(data, CHUNK + 7)
    later = cache(tmp_path).find(of)
    assert later is not None and not later.has(0, 1)
    worker = cache(tmp_path).find(of)
    assert worker is not None
    worker.check(0, of.size)
    assert later.has(0, CHUNK), "checked and right"
    assert not later.has(CHUNK, 1), "checked and wrong"
    worker.store(CHUNK, chunk(of, 1))
    assert later.has(0, 2 * CHUNK) and os.pread(later.fd, 2 * CHUNK, 0) == content(of)[: 2 * CHUNK]


def test_another_boot_believes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = filled(tmp_path)
    of = entry.version
    reboot(monkeypatch)
    later = cache(tmp_path).find(of)
    assert later is not None and not later.is_verified() and not later.has(0, 1) and later.is_complete()
    assert later.verify() and later.is_verified()
    fresh = cache(tmp_path).find(of)
    assert fresh is not None and fresh.is_verified()


def reboot(monkeypatch: pytest.MonkeyPatch) -> None:
    boot = os.urandom(16)
    monkeypatch.setattr(layout, "boot_id", lambda: boot)
    monkeypatch.setattr(layout, "_boot_seed", lambda: int.from_bytes(boot[:8], "little"))


def test_a_flipped_bit_ends_the_stamp_and_then_the_entry(tmp_path: Path) -> None:
    entry = filled(tmp_path)
    of = entry.version
    flip(Path(entry.path), 2 * CHUNK + 1)
    assert not entry.is_verified()
    assert entry.read(0, CHUNK) == chunk(of, 0), "the other chunks are as they were"
    with pytest.raises(Stale, match="dropped"):
        entry.read(2 * CHUNK, 1)
    assert cache(tmp_path).find(of) is None
    assert not entry.verify()


def test_verifying_drops_what_is_wrong(tmp_path: Path) -> None:
    entry = filled(tmp_path)
    flip(Path(entry.path), 5)
    other = cache(tmp_path)
    found = other.find(entry.version)
    assert found is not None and not found.is_verified() and not found.verify()
    assert other.find(entry.version) is None
    assert data_files(tmp_path) == [] and sidecars(tmp_path) == []


def truncate(path: Path) -> None:
    damage(path, lambda fd: os.ftruncate(fd, os.fstat(fd).st_size // 2))


def extend(path: Path) -> None:
    damage(path, lambda fd: os.ftruncate(fd, os.fstat(fd).st_size + 1))


def garbage(path: Path) -> None:
    damage(path, lambda fd: os.pwrite(fd, os.urandom(os.fstat(fd).st_size), 0))


def zeros(path: Path) -> None:
    damage(path, lambda fd: os.pwrite(fd, bytes(os.fstat(fd).st_size), 0))


@pytest.mark.parametrize("harm", [truncate, extend, garbage, zeros, Path.unlink])
@pytest.mark.parametrize("which", [data_files, sidecars])
@pytest.mark.parametrize("is_whole", [True, False])
def test_a_damaged_entry_is_never_believed(
    tmp_path: Path, harm: Callable[[Path], None], which: Callable[[Path], list[Path]], is_whole: bool
) -> None:
    of = version()
    with cache(tmp_path).open(of) as entry:
        entry.store(0, content(of) if is_whole else chunk(of, 0))
        entry.verify()
        harm(which(tmp_path)[0])
        still_says(entry)
    found = cache(tmp_path).find(of)
    if found is not None:
        found.check(0, of.size)
        still_says(found)
        found.close()
    again = cache(tmp_path)
    with again.open(of) as entry:
        for start, size in entry.missing(0, of.size):
            entry.store(start, content(of)[start : start + size])
        assert entry.verify()
        assert Path(entry.path).read_bytes() == content(of)


def still_says(entry: CachedFile) -> None:
    """Right bytes or Stale."""
    whole = content(entry.version)
    for start in range(0, entry.size, CHUNK):
        try:
            assert entry.read(start, CHUNK) == whole[start : start + CHUNK]
        except Stale:
            continue
    if entry.is_verified():
        assert Path(entry.path).read_bytes() == whole


def test_a_sidecar_of_another_object_in_its_place(tmp_path: Path) -> None:
    one, two = version("one"), version("two")
    kept = cache(tmp_path)
    kept.fill(one, content(one)).close()
    kept.fill(two, content(two)).close()
    place = tmp_path / "pfcache1" / "entries"
    os.replace(place / layout.name_of(two), place / layout.name_of(one))
    assert kept.find(one) is None and kept.find(two) is None


def test_a_whole_object_at_once(tmp_path: Path) -> None:
    of = version()
    kept = cache(tmp_path)
    with pytest.raises(Invalid, match="bytes"):
        kept.fill(of, b"short")
    entry = kept.fill(of, content(of))
    assert entry.is_verified() and entry.read(0, of.size) == content(of)
    assert kept.fill(of, content(of)).path == entry.path, "who comes second uses the first one's"
    assert len(data_files(tmp_path)) == 1


def test_what_is_whole_replaces_what_is_not(tmp_path: Path) -> None:
    of = version()
    kept = cache(tmp_path)
    begun = kept.open(of)
    begun.store(0, chunk(of, 0))
    reading = begun.fd
    whole = kept.fill(of, content(of))
    assert whole.is_verified() and whole.path != begun.path
    assert not begun.is_in_place() and whole.is_in_place()
    assert os.pread(reading, CHUNK, 0) == chunk(of, 0), "who had it open reads on"


def test_a_local_file_is_adopted_as_a_copy(tmp_path: Path) -> None:
    of = version()
    mine = tmp_path / "mine"
    mine.write_bytes(content(of))
    kept = cache(tmp_path / "cache")
    entry = kept.adopt(of, str(mine))
    mine.write_bytes(b"something else")
    assert entry.is_verified() and Path(entry.path).read_bytes() == content(of)
    with pytest.raises(NotFound):
        kept.adopt(version("none"), str(tmp_path / "none"))
    with pytest.raises(Invalid, match="bytes"):
        kept.adopt(version("other"), str(mine))


def test_closing_waits_for_who_is_reading(tmp_path: Path) -> None:
    """No thread may read or write through a number that was given to another file meanwhile."""
    of = version()
    entry = cache(tmp_path).fill(of, content(of))
    wrong: list[bytes] = []
    stop = threading.Event()

    def read_on() -> None:
        while not stop.is_set():
            try:
                piece = entry.read(0, CHUNK)
            except Stale:
                return
            if piece != chunk(of, 0):
                wrong.append(piece)

    readers = [threading.Thread(target=read_on) for _ in range(3)]
    for reader in readers:
        reader.start()
    entry.close()
    others = [os.open("/dev/zero", os.O_RDONLY) for _ in range(5)]
    try:
        wait_for(lambda: not any(reader.is_alive() for reader in readers), "the readers hear that it is closed")
    finally:
        stop.set()
        for reader in readers:
            reader.join()
        for fd in others:
            os.close(fd)
    assert not wrong
    with pytest.raises(Stale, match="closed"):
        _ = entry.fd


def test_descriptors_are_given_back(tmp_path: Path) -> None:
    of = version()
    kept = cache(tmp_path)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        with kept.open(of) as entry:
            entry.store(0, chunk(of, 0))
            entry.check(0, of.size)
            _ = entry.fd
        forgotten = kept.find(of)
        assert forgotten is not None and forgotten.fd > 0
        del forgotten
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_touch_is_seen_and_not_repeated(tmp_path: Path) -> None:
    of = filled(tmp_path).version
    [sidecar] = sidecars(tmp_path)
    os.utime(sidecar, (1000, 1000))
    for expected in [True, False]:
        entry = cache(tmp_path).find(of)
        assert entry is not None
        before = sidecar.stat().st_mtime_ns
        entry.touch()
        entry.touch()
        assert (sidecar.stat().st_mtime_ns != before) == expected
        assert entry.is_verified(), "the data file is as it was"


def test_what_was_evicted_does_not_grow(tmp_path: Path) -> None:
    of = version()
    kept = cache(tmp_path)
    entry = kept.open(of)
    entry.store(0, chunk(of, 0))
    kept.evict(of.store)
    assert entry.has(0, CHUNK)
    with pytest.raises(Stale, match="evicted"):
        entry.has(0, CHUNK + 1)


def test_an_entry_of_another_chunk_size_is_used_as_it_is(tmp_path: Path) -> None:
    of = version()
    filled(tmp_path)
    other = Cache([cache(tmp_path)._shelves[0].level], chunk_size=8 * CHUNK).find(of)
    assert other is not None and other.is_verified() and other.chunk_size == CHUNK
    assert other.read(0, of.size) == content(of)
