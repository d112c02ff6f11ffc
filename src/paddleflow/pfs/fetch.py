"""From the store into the cache: what is missing, once, in pieces of the right size, side by side.

However many threads want a chunk, one of them brings it (other processes may bring it too: they write the same bytes).
A small object is one request and appears in the cache complete. Of a large one, missing chunks next to each other
become requests of up to 8 MiB, in parallel, as far as the memory pool goes. Each names the version: when the store has
another by now, Stale comes out and nothing was kept. When the cache cannot take it, the answer says so; no error.

Nothing is believed that lies in the cache: a chunk that is there is summed up before it counts (see ``cache.entry``).
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

from paddleflow.domain.errors import DiskFull, PaddleFlowError, Stale
from paddleflow.pfs.backstage import Cached, ObjectVersion
from paddleflow.pfs.cache import Cache, CachedFile
from paddleflow.pfs.memory import MemoryPool
from paddleflow.ports.objects import ObjectStore

MIB = 1 << 20
LARGEST_REQUEST = 8 * MIB
SMALL = 4 * MIB
"""Up to here an object comes whole, whatever part of it was asked for."""
NOT_CACHED = Cached("", is_complete=False)
_ROUNDS = 4
_WHOLE = -1
_VERIFYING = -2
"""Beside the numbers of chunks, what else only one thread does at a time."""


@dataclass(slots=True)
class Tally:
    """What was done since the start, for the mount's statistics."""

    requests: int = 0
    bytes: int = 0
    checked: int = 0
    """Bytes that were in the cache already and summed up."""
    refused: int = 0
    """Times the cache could not take it."""


class Fetcher:
    def __init__(self, cache: Cache, pool: MemoryPool, *, threads: int = 16) -> None:
        self._cache = cache
        self._pool = pool
        self._request = min(LARGEST_REQUEST, pool.limit) // cache.chunk_size * cache.chunk_size
        if not self._request:
            raise ValueError(f"the memory pool of {pool.limit} bytes is smaller than one chunk")
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="fetch")
        self._lock = threading.Lock()
        self._claims: dict[tuple[ObjectVersion, int], Future[None]] = {}
        self.tally = Tally()

    def ensure(self, store: ObjectStore, version: ObjectVersion, start: int, size: int) -> Cached:
        """These bytes in the cache, whole chunks around them; ``size`` -1: all of it, verified."""
        try:
            if version.size <= min(SMALL, self._request):
                return self._small(store, version)
            return self._large(store, version, start, size)
        except DiskFull:
            with self._lock:
                self.tally.refused += 1
            return NOT_CACHED

    def close(self) -> None:
        self._threads.shutdown(cancel_futures=True)

    def _small(self, store: ObjectStore, version: ObjectVersion) -> Cached:
        for _ in range(_ROUNDS):
            claims, others = self._claim(version, [_WHOLE])
            with claims:
                if claims.held:
                    # Looked for only now: whoever held it until a moment ago may have brought it.
                    return self._whole(version) or self._bring_small(store, version)
            _wait_for(others)
            if cached := self._whole(version):
                return cached  # without a claim: the many who waited do not wait for each other as well
        # Whoever had a claim failed. Why is for the store to say: who is told "not cached" believes it has the version.
        return self._bring_small(store, version)

    def _whole(self, version: ObjectVersion) -> Cached | None:
        found = self._cache.find(version)
        if found is None:
            return None
        with found:
            if not found.verify():
                return None
            found.touch()
            return Cached(found.path, is_complete=True)

    def _bring_small(self, store: ObjectStore, version: ObjectVersion) -> Cached:
        with self._pool.borrow(version.size):
            content = self._read(store, version, 0, version.size) if version.size else b""
            with self._cache.fill(version, content) as filled:
                return Cached(filled.path, is_complete=True)

    def _large(self, store: ObjectStore, version: ObjectVersion, start: int, size: int) -> Cached:
        is_all = size < 0
        if is_all:
            start, size = 0, version.size
        for _ in range(_ROUNDS):
            with self._cache.open(version) as entry:
                if entry.is_verified():
                    entry.touch()
                    return Cached(entry.path, is_complete=True)
                try:
                    self._bring(store, entry, start, size)
                    is_complete = entry.is_complete() and self._verify(entry)
                except Stale:
                    if entry.is_in_place():
                        raise  # the store's word, not that of an entry that was evicted under our hands
                    continue
                if entry.is_in_place() and (is_complete or not is_all):
                    return Cached(entry.path, is_complete)
        return NOT_CACHED

    def _verify(self, entry: CachedFile) -> bool:
        """Several threads bring the last chunks of a file at about the same time; one sums it up."""
        claims, others = self._claim(entry.version, [_VERIFYING])
        with claims:
            if claims.held:
                return entry.verify()
        _wait_for(others)
        return entry.is_verified()

    def _bring(self, store: ObjectStore, entry: CachedFile, start: int, size: int) -> None:
        for _ in range(_ROUNDS):
            missing = entry.missing(start, size)
            if not missing:
                return
            step = entry.chunk_size
            wanted = [at // step for begin, length in missing for at in range(begin, begin + length, step)]
            claims, others = self._claim(entry.version, wanted)
            with claims:
                if claims.held:
                    self._bring_mine(store, entry, claims)
            _wait_for(others)
        raise DiskFull("what is stored in the cache does not stay there")

    def _bring_mine(self, store: ObjectStore, entry: CachedFile, claims: _Claims) -> None:
        step = entry.chunk_size
        mine = sorted(claims.held)
        for index in mine:
            entry.check(index * step, step)
        absent = [run for index in mine for run in entry.missing(index * step, step)]
        checked = set(mine) - {start // step for start, _ in absent}
        claims.done(checked)
        with self._lock:
            self.tally.checked += len(checked) * step
        requests = _joined(absent, self._request)
        if len(requests) == 1:
            self._bring_run(store, entry, claims, *requests[0])
            return
        running = [self._threads.submit(self._bring_run, store, entry, claims, *run) for run in requests]
        try:
            for future in running:
                future.result()
        except BaseException:
            for future in running:
                future.cancel()
            wait(running)
            raise

    def _bring_run(self, store: ObjectStore, entry: CachedFile, claims: _Claims, start: int, size: int) -> None:
        with self._pool.borrow(size):
            entry.reserve(size)
            try:
                content = self._read(store, entry.version, start, size)
            except BaseException:
                entry.give_back(size)
                raise
            entry.store(start, content, is_reserved=True)
        step = entry.chunk_size
        claims.done(range(start // step, -(-(start + size) // step)))

    def _read(self, store: ObjectStore, version: ObjectVersion, start: int, size: int) -> bytes:
        content = store.read(version.key, start, size, version=version.version)
        if len(content) != size:
            raise Stale(f"{version.key!r} gave {len(content)} bytes from {start} where its version has {size}")
        with self._lock:
            self.tally.requests += 1
            self.tally.bytes += size
        return content

    def _claim(self, version: ObjectVersion, wanted: Iterable[int]) -> tuple[_Claims, list[Future[None]]]:
        """What of this is now ours to do, and what to wait for until the rest is done."""
        claims = _Claims(self._claims, self._lock, version)
        return claims, claims.take(wanted)


class _Claims:
    """Chunks that one thread brings while others wait for them. They are given back one by one as they are there, and
    all that are left however it ends: whoever waits hears how."""

    def __init__(
        self, table: dict[tuple[ObjectVersion, int], Future[None]], lock: threading.Lock, version: ObjectVersion
    ) -> None:
        self._table = table
        self._lock = lock
        self._version = version
        self.held: set[int] = set()

    def take(self, wanted: Iterable[int]) -> list[Future[None]]:
        """Hold what nobody else holds; the others' to wait for."""
        others: list[Future[None]] = []
        with self._lock:
            for index in wanted:
                claim = self._table.get((self._version, index))
                if claim is not None:
                    others.append(claim)
                else:
                    self._table[self._version, index] = Future()
                    self.held.add(index)
        return others

    def done(self, these: Iterable[int], error: BaseException | None = None) -> None:
        with self._lock:
            mine = self.held.intersection(these)
            self.held -= mine
            claims = [self._table.pop((self._version, index)) for index in mine]
        for claim in claims:
            if error is None:
                claim.set_result(None)
            else:
                claim.set_exception(error)

    def __enter__(self) -> _Claims:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.done(set(self.held), error)


def _wait_for(others: Iterable[Future[None]]) -> None:
    """What went wrong for who brought it goes wrong for us, except what was wrong only with their copy in the cache."""
    for future in others:
        try:
            future.result()
        except (Stale, DiskFull):
            continue  # we look again, and find out for ourselves
        except PaddleFlowError as error:
            raise type(error)(error.message, code=error.code, details=error.details) from error


def _joined(runs: list[tuple[int, int]], largest: int) -> list[tuple[int, int]]:
    """Runs next to each other as one, none larger than a request."""
    joined: list[tuple[int, int]] = []
    for start, size in runs:
        if joined and sum(joined[-1]) == start and joined[-1][1] + size <= largest:
            joined[-1] = (joined[-1][0], joined[-1][1] + size)
        else:
            joined.append((start, size))
    return joined
