"""Whole files in and out of a filesystem: a version poured into a local file, a local file put in its place."""

from __future__ import annotations

import os
import secrets
import tempfile
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from typing import TYPE_CHECKING

from paddleflow.domain.errors import NotFound, Stale
from paddleflow.files.errors import InvalidFile, MissingFile
from paddleflow.files.paths import parent_of
from paddleflow.files.tree import make_directory

if TYPE_CHECKING:
    from paddleflow.files.opened import OpenedFilesystem
    from paddleflow.pfs.backstage import Found, ObjectVersion
    from paddleflow.pfs.cache import CachedFile
    from paddleflow.pfs.stagehand import Stagehand

PIECE = 8 << 20
_PIECES_AT_ONCE = 4


def pour(
    opened: OpenedFilesystem,
    version: ObjectVersion,
    descriptor: int,
    *,
    told: Callable[[int], None] = lambda _: None,
    pool: Executor | None = None,
) -> None:
    """Write a version into a file: from the cache what lies there, past the cache what does not.

    ``told`` hears of every piece, in the order of the file, and may raise to end it. With a ``pool`` several pieces are
    under way at once.
    """
    kept = opened.cache.find(version)

    def fetch(start: int) -> int:
        size = min(PIECE, version.size - start)
        data = _kept_piece(kept, start, size)
        if data is None:
            data = opened.stagehand.read(version, start, size)
        if len(data) != size:
            raise Stale(f"{version.key} has become shorter")
        _write_all(descriptor, data, start)
        return size

    try:
        starts = range(0, version.size, PIECE)
        if pool is None or len(starts) < 2:
            for start in starts:
                told(fetch(start))
        else:
            _side_by_side(pool, fetch, starts, told)
    finally:
        if kept is not None:
            kept.close()


def _side_by_side(pool: Executor, fetch: Callable[[int], int], starts: range, told: Callable[[int], None]) -> None:
    running: deque[Future[int]] = deque()
    try:
        for start in starts:
            running.append(pool.submit(fetch, start))
            if len(running) == _PIECES_AT_ONCE:
                told(running.popleft().result())
        while running:
            told(running.popleft().result())
    finally:
        # After a failure: nobody may write into a file that its owner closes and removes.
        for one in running:
            if not one.cancel():
                one.exception()


def _kept_piece(kept: CachedFile | None, start: int, size: int) -> bytes | None:
    if kept is None or not kept.has(start, size):
        return None
    try:
        return kept.read(start, size)
    except Stale:
        return None  # damaged, and dropped by the cache; the store still has it


def put(stagehand: Stagehand, key: str, staged: str, *, mode: int | None = None) -> Found:
    """Upload a file; the directories above it are made if they are missing."""
    if not key:
        raise InvalidFile("InvalidPath", "the root of a filesystem cannot be a file")
    try:
        return stagehand.put(key, staged, mode=mode)
    except NotFound:
        if not parent_of(key):
            raise
        make_directory(stagehand, parent_of(key), parents=True)
        return stagehand.put(key, staged, mode=mode)


@contextmanager
def draft(path: str) -> Iterator[tuple[int, str]]:
    """A new file beside ``path``, open for writing, and its name. Whoever renames it has made it; otherwise it goes."""
    folder = os.path.dirname(path) or "."
    if not os.path.isdir(folder):
        raise MissingFile("NoSuchDirectory", f"{folder} is no directory of this machine; make it first")
    name = os.path.join(folder, f".{os.path.basename(path)[:200]}.{secrets.token_hex(4)}")
    descriptor = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        yield descriptor, name
    finally:
        os.close(descriptor)
        if os.path.lexists(name):
            os.unlink(name)


@contextmanager
def scratch() -> Iterator[tuple[int, str]]:
    """A temporary file, open for writing, and its name."""
    descriptor, name = tempfile.mkstemp(prefix="paddleflow-", suffix=".part")
    try:
        yield descriptor, name
    finally:
        os.close(descriptor)
        os.unlink(name)


def _write_all(descriptor: int, data: bytes, start: int) -> None:
    view = memoryview(data)
    while view:
        written = os.pwrite(descriptor, view, start)
        view, start = view[written:], start + written
