"""From the store into the cache: once, in the right pieces, within memory, and nothing half done."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paddleflow.domain.errors import NotFound, Stale, Unavailable
from paddleflow.pfs import fetch
from paddleflow.pfs.backstage import ObjectVersion
from paddleflow.pfs.cache import Cache, Level
from paddleflow.pfs.fetch import LARGEST_REQUEST, MIB, NOT_CACHED, SMALL, Fetcher, _joined
from paddleflow.pfs.memory import MemoryPool
from tests.pfs.cache.kit import PLENTY, data_files, flip
from tests.pfs.stores import WatchedStore, put
from tests.waiting import DEADLINE_S, wait_for

CHUNK = 64 * 1024
LARGE = SMALL + 5 * CHUNK + 17


class Kitchen:
    """A store, a cache and a fetcher between them."""

    def __init__(self, directory: Path, *, pool: int = 64 * MIB, limit: int = PLENTY) -> None:
        self.directory = directory
        self.store = WatchedStore()
        self.cache = Cache([Level(str(directory), limit, free_floor=0.0)], chunk_size=CHUNK)
        self.pool = MemoryPool(pool)
        self.fetcher = Fetcher(self.cache, self.pool, threads=8)

    def put(self, key: str, size: int) -> tuple[ObjectVersion, bytes]:
        content = os.urandom(size)
        entry = put(self.store, key, content)
        return ObjectVersion("s" * 16, key, entry.version, size), content

    def ensure(self, version: ObjectVersion, start: int = 0, size: int = -1) -> str:
        cached = self.fetcher.ensure(self.store, version, start, size)
        assert cached.path
        return cached.path


@pytest.fixture
def kitchen(tmp_path: Path) -> Iterator[Kitchen]:
    made = Kitchen(tmp_path)
    yield made
    made.fetcher.close()


@pytest.mark.parametrize("size", [1, 100, CHUNK, CHUNK + 1, SMALL])
def test_a_small_object_is_one_request_and_complete(kitchen: Kitchen, size: int) -> None:
    version, content = kitchen.put("small", size)
    for start, length in [(0, 1), (0, -1), (size - 1, 1)]:
        cached = kitchen.fetcher.ensure(kitchen.store, version, start, length)
        assert cached.is_complete and Path(cached.path).read_bytes() == content
    assert kitchen.store.reads == [("small", 0, size)]


def test_an_empty_object_is_no_request(kitchen: Kitchen) -> None:
    version, _ = kitchen.put("empty", 0)
    assert Path(kitchen.ensure(version)).read_bytes() == b""
    assert kitchen.store.reads == []


def test_a_part_of_a_large_object(kitchen: Kitchen) -> None:
    version, content = kitchen.put("large", LARGE)
    cached = kitchen.fetcher.ensure(kitchen.store, version, CHUNK + 5, CHUNK)
    assert not cached.is_complete
    assert kitchen.store.reads == [("large", CHUNK, 2 * CHUNK)]
    with open(cached.path, "rb") as file:
        assert os.pread(file.fileno(), CHUNK, CHUNK + 5) == content[CHUNK + 5 :][:CHUNK]
    again = kitchen.fetcher.ensure(kitchen.store, version, CHUNK, CHUNK)
    assert again.path == cached.path and len(kitchen.store.reads) == 1


def test_only_what_is_missing_is_asked_for(kitchen: Kitchen) -> None:
    version, content = kitchen.put("large", LARGE)
    kitchen.ensure(version, 2 * CHUNK, 1)
    kitchen.ensure(version, 4 * CHUNK, 1)
    kitchen.store.reads.clear()
    kitchen.ensure(version, 0, 6 * CHUNK)
    assert sorted(kitchen.store.reads) == [
        ("large", 0, 2 * CHUNK),
        ("large", 3 * CHUNK, CHUNK),
        ("large", 5 * CHUNK, CHUNK),
    ]
    assert Path(kitchen.ensure(version)).read_bytes() == content


def test_the_last_part_makes_it_complete(kitchen: Kitchen) -> None:
    version, content = kitchen.put("large", LARGE)
    half = LARGE // 2
    assert not kitchen.fetcher.ensure(kitchen.store, version, 0, half).is_complete
    cached = kitchen.fetcher.ensure(kitchen.store, version, half, LARGE)
    assert cached.is_complete and Path(cached.path).read_bytes() == content
    found = kitchen.cache.find(version)
    assert found is not None and found.is_verified()


def test_a_whole_object_comes_in_parallel_requests(kitchen: Kitchen) -> None:
    version, content = kitchen.put("large", 3 * LARGEST_REQUEST + 11)
    together = threading.Barrier(4)

    def meet(_: object) -> None:
        together.wait(DEADLINE_S)

    kitchen.store.before_read = meet
    cached = kitchen.fetcher.ensure(kitchen.store, version, 0, -1)
    assert cached.is_complete and Path(cached.path).read_bytes() == content
    assert sorted(size for _, _, size in kitchen.store.reads) == [11, *[LARGEST_REQUEST] * 3]


@pytest.mark.parametrize("size", [1000, LARGE])
def test_many_who_want_it_one_who_brings_it(kitchen: Kitchen, size: int) -> None:
    version, content = kitchen.put("wanted", size)
    arrived, go = threading.Event(), threading.Event()

    def wait(_: object) -> None:
        arrived.set()
        assert go.wait(DEADLINE_S)

    asking: list[int] = []

    def ask() -> str:
        asking.append(1)
        return kitchen.ensure(version, 0, 2 * CHUNK)

    kitchen.store.before_read = wait
    with ThreadPoolExecutor(8) as askers:
        first = askers.submit(ask)
        assert arrived.wait(DEADLINE_S)
        others = [askers.submit(ask) for _ in range(7)]
        wait_for(lambda: len(asking) == 8)
        go.set()
        paths = {one.result(DEADLINE_S) for one in [first, *others]}
    assert len(paths) == 1 and len(kitchen.store.reads) == 1
    with open(paths.pop(), "rb") as file:
        assert file.read(2 * CHUNK) == content[: 2 * CHUNK]


def test_who_wants_the_first_part_does_not_wait_for_the_last(kitchen: Kitchen) -> None:
    """A window of several requests is under way; one who waits for a chunk of the first goes on when that is there."""
    version, _ = kitchen.put("window", 3 * LARGEST_REQUEST)
    last = threading.Event()

    def hold_last(read: tuple[str, int, int]) -> None:
        if read[1]:
            assert last.wait(DEADLINE_S)

    kitchen.store.before_read = hold_last
    with ThreadPoolExecutor(2) as askers:
        window = askers.submit(kitchen.ensure, version, 0, -1)
        wait_for(lambda: len(kitchen.store.reads) == 3)
        part = askers.submit(kitchen.ensure, version, CHUNK, CHUNK)
        assert part.result(DEADLINE_S)
        assert not window.done()
        last.set()
        window.result(DEADLINE_S)
    assert len(kitchen.store.reads) == 3


def test_memory_is_never_exceeded(tmp_path: Path) -> None:
    kitchen = Kitchen(tmp_path, pool=2 * MIB)
    objects = [kitchen.put(f"{number}", SMALL + number * CHUNK) for number in range(1, 5)]
    objects += [kitchen.put(f"small-{number}", MIB) for number in range(4)]
    with ThreadPoolExecutor(8) as askers:
        paths = list(askers.map(lambda one: kitchen.ensure(one[0]), objects))
    for path, (_, content) in zip(paths, objects, strict=True):
        assert Path(path).read_bytes() == content
    assert kitchen.pool.peak <= 2 * MIB and kitchen.pool.used == 0
    assert kitchen.store.most_bytes_reading <= 2 * MIB
    kitchen.fetcher.close()


@pytest.mark.parametrize("size", [1000, LARGE])
@pytest.mark.parametrize("error", [Unavailable("no answer"), Stale("another by now"), NotFound("gone")])
def test_an_error_of_the_store_keeps_nothing(kitchen: Kitchen, size: int, error: Exception) -> None:
    version, content = kitchen.put("broken", size)

    def fail(_: object) -> None:
        raise error

    kitchen.store.before_read = fail
    with pytest.raises(type(error)):
        kitchen.fetcher.ensure(kitchen.store, version, 0, -1)
    found = kitchen.cache.find(version)
    assert found is None or found.missing(0, size) == [(0, size)]
    kitchen.store.before_read = lambda _: None
    assert Path(kitchen.ensure(version)).read_bytes() == content
    assert kitchen.pool.used == 0 and not kitchen.fetcher._claims


def test_who_waits_hears_of_the_error_too(kitchen: Kitchen) -> None:
    version, _ = kitchen.put("broken", 1000)
    arrived, go = threading.Event(), threading.Event()

    def fail(_: object) -> None:
        arrived.set()
        assert go.wait(DEADLINE_S)
        raise Unavailable("no answer", code="Odd", details={"x": 1})

    kitchen.store.before_read = fail
    with ThreadPoolExecutor(2) as askers:
        first = askers.submit(kitchen.ensure, version)
        assert arrived.wait(DEADLINE_S)
        second = askers.submit(kitchen.ensure, version)
        go.set()
        for one in (first, second):
            with pytest.raises(Unavailable) as caught:
                one.result(DEADLINE_S)
            assert caught.value.code == "Odd" and caught.value.details == {"x": 1}


def test_an_error_in_the_middle_keeps_what_was_whole(kitchen: Kitchen) -> None:
    version, content = kitchen.put("large", 3 * LARGEST_REQUEST)

    def fail_second(read: tuple[str, int, int]) -> None:
        if read[1] == LARGEST_REQUEST:
            raise Unavailable("reset")

    kitchen.store.before_read = fail_second
    with pytest.raises(Unavailable):
        kitchen.fetcher.ensure(kitchen.store, version, 0, -1)
    found = kitchen.cache.find(version)
    assert found is not None
    found.check(0, version.size)
    assert (LARGEST_REQUEST, LARGEST_REQUEST) in [
        (max(start, LARGEST_REQUEST), LARGEST_REQUEST) for start, _ in found.missing(0, version.size)
    ]
    assert not found.has(LARGEST_REQUEST, LARGEST_REQUEST)
    kitchen.store.before_read = lambda _: None
    assert Path(kitchen.ensure(version)).read_bytes() == content


@pytest.mark.parametrize("size", [1000, LARGE])
def test_a_short_answer_is_not_kept(kitchen: Kitchen, size: int) -> None:
    version, _ = kitchen.put("short", size)
    kitchen.store.spoil = lambda data: data[:-1]
    with pytest.raises(Stale, match="bytes"):
        kitchen.fetcher.ensure(kitchen.store, version, 0, -1)
    found = kitchen.cache.find(version)
    assert found is None or not found.has(0, 1)


def test_another_version_in_the_store(kitchen: Kitchen) -> None:
    old, _ = kitchen.put("changing", LARGE)
    kitchen.ensure(old, 0, CHUNK)
    new, content = kitchen.put("changing", LARGE)
    with pytest.raises(Stale):
        kitchen.fetcher.ensure(kitchen.store, old, 3 * CHUNK, CHUNK)
    assert kitchen.ensure(old, 0, CHUNK), "what was fetched of the old one is still there"
    assert Path(kitchen.ensure(new)).read_bytes() == content


def test_many_who_want_a_version_that_is_gone_all_hear_so(kitchen: Kitchen, monkeypatch: pytest.MonkeyPatch) -> None:
    """One asks the store while all others wait for it, then the next one: more of them than turns that one waits."""
    version, _ = kitchen.put("f", 100)
    put(kitchen.store, "f", b"another")
    left = set(range(12))
    reading: set[int] = set()
    waiting_for: dict[int, Future[None]] = {}
    real = fetch._wait_for

    def noted(others: list[Future[None]]) -> None:
        waiting_for[threading.get_ident()] = others[0]
        real(others)

    def ask(number: int) -> str:
        try:
            return str(kitchen.fetcher.ensure(kitchen.store, version, 0, -1))
        except Stale:
            return "gone"
        finally:
            reading.discard(threading.get_ident())
            left.discard(number)

    def read_when_all_others_wait(_: object) -> None:
        reading.add(threading.get_ident())
        (claim,) = kitchen.fetcher._claims.values() or [None]
        wait_for(lambda: list(waiting_for.values()).count(claim) + len(reading) >= len(left))

    monkeypatch.setattr(fetch, "_wait_for", noted)
    kitchen.store.before_read = read_when_all_others_wait
    with ThreadPoolExecutor(12) as askers:
        assert set(askers.map(ask, sorted(left))) == {"gone"}


def test_a_full_cache_is_no_error(tmp_path: Path) -> None:
    kitchen = Kitchen(tmp_path, limit=10 * CHUNK)
    version, _ = kitchen.put("large", LARGE)
    assert kitchen.fetcher.ensure(kitchen.store, version, 0, 10) == NOT_CACHED
    small, content = kitchen.put("small", 100)
    assert Path(kitchen.ensure(small)).read_bytes() == content
    assert kitchen.fetcher.tally.refused == 1
    kitchen.fetcher.close()


def test_a_cache_that_becomes_full_asks_the_store_for_nothing(tmp_path: Path) -> None:
    kitchen = Kitchen(tmp_path, limit=LARGE + 2 * CHUNK)
    one, content = kitchen.put("one", LARGE)
    two, _ = kitchen.put("two", LARGE)
    kitchen.ensure(one, 0, LARGE - CHUNK)
    kitchen.store.reads.clear()
    assert kitchen.fetcher.ensure(kitchen.store, two, 0, LARGE) == NOT_CACHED
    assert kitchen.store.reads == [], "the other is being filled, and may not be evicted yet"
    assert Path(kitchen.ensure(one)).read_bytes() == content
    kitchen.fetcher.close()


def test_what_was_reserved_for_nothing_is_given_back(kitchen: Kitchen) -> None:
    version, _ = kitchen.put("broken", LARGE)

    def fail(_: object) -> None:
        raise Unavailable("no answer")

    kitchen.store.before_read = fail
    for _ in range(3):
        with pytest.raises(Unavailable):
            kitchen.fetcher.ensure(kitchen.store, version, 0, CHUNK)
    count = kitchen.cache._shelves[0]._space.count()
    assert count is not None and count.used < CHUNK


@pytest.mark.parametrize("size", [3 * CHUNK, LARGE])
def test_a_flipped_bit_is_repaired(kitchen: Kitchen, size: int) -> None:
    version, content = kitchen.put("flipped", size)
    path = kitchen.ensure(version)
    flip(Path(path), 2 * CHUNK + 3)
    assert Path(kitchen.ensure(version)).read_bytes() == content
    found = kitchen.cache.find(version)
    assert found is not None and found.is_verified()


def test_a_flipped_bit_in_a_part_is_repaired(kitchen: Kitchen) -> None:
    version, content = kitchen.put("flipped", LARGE)
    path = kitchen.ensure(version, 0, 3 * CHUNK)
    flip(Path(path), CHUNK + 3)
    kitchen.store.reads.clear()
    path = kitchen.ensure(version, 0, 3 * CHUNK)
    with open(path, "rb") as file:
        assert file.read(3 * CHUNK) == content[: 3 * CHUNK]
    assert kitchen.store.reads == [("flipped", CHUNK, CHUNK)], "only the chunk that was damaged"


def evict(kitchen: Kitchen) -> None:
    kitchen.cache.evict("s" * 16)


def truncate(kitchen: Kitchen) -> None:
    for path in data_files(kitchen.directory):
        os.truncate(path, 5)


def delete(kitchen: Kitchen) -> None:
    for path in data_files(kitchen.directory):
        path.unlink()


@pytest.mark.parametrize("harm", [evict, truncate, delete])
def test_the_entry_is_harmed_while_it_is_filled(kitchen: Kitchen, harm: Callable[[Kitchen], None]) -> None:
    version, content = kitchen.put("large", 2 * LARGEST_REQUEST)
    done = threading.Event()

    def harm_once(read: tuple[str, int, int]) -> None:
        if read[1] and not done.is_set():
            done.set()
            harm(kitchen)

    kitchen.store.before_read = harm_once
    cached = kitchen.fetcher.ensure(kitchen.store, version, 0, -1)
    assert cached.is_complete and Path(cached.path).read_bytes() == content


def test_what_it_did_is_told(kitchen: Kitchen) -> None:
    version, _ = kitchen.put("large", LARGE)
    kitchen.ensure(version, 0, 2 * CHUNK)
    kitchen.ensure(version, 0, 3 * CHUNK)
    tally = kitchen.fetcher.tally
    assert (tally.requests, tally.bytes, tally.checked) == (2, 3 * CHUNK, 2 * CHUNK)


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 10)), max_size=20), st.integers(10, 40))
def test_runs_are_joined_up_to_a_request(pieces: list[tuple[int, int]], largest: int) -> None:
    runs, at = [], 0
    for gap, size in pieces:
        at += gap // 10
        runs.append((at, size))
        at += size
    joined = _joined(runs, largest)
    assert [x for start, size in joined for x in range(start, start + size)] == [
        x for start, size in runs for x in range(start, start + size)
    ]
    assert all(size <= largest for _, size in joined)


@settings(max_examples=25)
@given(st.lists(st.tuples(st.integers(0, LARGE), st.integers(0, 20 * CHUNK)), min_size=1, max_size=8))
def test_any_ranges_give_the_right_bytes(
    tmp_path_factory: pytest.TempPathFactory, ranges: list[tuple[int, int]]
) -> None:
    kitchen = Kitchen(tmp_path_factory.mktemp("ranges"))
    version, content = kitchen.put("large", LARGE)
    with ThreadPoolExecutor(4) as askers:
        paths = list(askers.map(lambda one: kitchen.ensure(version, *one), ranges))
    for path, (start, size) in zip(paths, ranges, strict=True):
        with open(path, "rb") as file:
            assert os.pread(file.fileno(), size, start) == content[start : start + size]
    brought = sorted((start, start + size) for _, start, size in kitchen.store.reads)
    assert all(one[1] <= two[0] for one, two in pairwise(brought)), "no byte twice"
    kitchen.fetcher.close()
