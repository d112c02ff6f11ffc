"""Bringing files into the cache before they are needed, and taking them out again."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING

from paddleflow.domain.errors import NotFound, PaddleFlowError
from paddleflow.files.copying import Tally
from paddleflow.files.errors import InvalidFile, StorageUnavailable
from paddleflow.files.paths import key_of, shown
from paddleflow.files.tree import listed
from paddleflow.sdk.file_access import Progress, Transferred

if TYPE_CHECKING:
    from paddleflow.files.opened import OpenedFilesystem
    from paddleflow.pfs.backstage import Found, ObjectVersion
    from paddleflow.pfs.routes import Routes
    from paddleflow.pfs.stagehand import Stagehand

_AHEAD = 256


def warm(opened: OpenedFilesystem, paths: Sequence[str], *, parallel: int, progress: Progress) -> Transferred:
    """Files, and all below directories. What fails is told at the end, when everything else is there."""
    if parallel < 1:
        raise InvalidFile("InvalidArguments", f"parallel should be 1 or more, not {parallel}")
    tally = Tally(progress)
    failures: list[str] = []

    def bring(version: ObjectVersion, path: str) -> None:
        try:
            if not opened.stagehand.fetch(version, 0, -1).path:
                raise StorageUnavailable("CacheFull", "the cache has no room for it")
        except PaddleFlowError as error:
            failures.append(f"{path}: {error.message}")
        else:
            tally.add(path, files=1, size=version.size)

    running: set[Future[None]] = set()
    with ThreadPoolExecutor(parallel, thread_name_prefix="paddleflow-warm") as pool:
        try:
            for one in _files(opened.stagehand, paths):
                if one.version is None:
                    continue
                path = shown(one.entry.key)
                tally.add(path, found_files=1, found_bytes=one.version.size)
                running.add(pool.submit(bring, one.version, path))
                if len(running) >= _AHEAD:
                    _, running = wait(running, return_when=FIRST_COMPLETED)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    if failures:
        raise StorageUnavailable(
            "WarmupFailed", f"{len(failures)} of {tally.so_far.total_files} files are not cached; {failures[0]}"
        )
    return tally.so_far


def _files(stagehand: Stagehand, paths: Sequence[str]) -> Iterator[Found]:
    for path in paths:
        found = stagehand.stat(key_of(path))
        if found.entry.is_directory:
            yield from _below(stagehand, found.entry.key)
        else:
            yield found


def _below(stagehand: Stagehand, key: str) -> Iterator[Found]:
    for one in listed(stagehand, key):
        if one.entry.is_directory:
            # A directory that is removed while its neighbours are warmed is not missed.
            with contextlib.suppress(NotFound):
                yield from _below(stagehand, one.entry.key)
        else:
            yield one


def evict(opened: OpenedFilesystem, path: str) -> int:
    """Of the filesystem and of every storage linked below the path; the bytes that were freed."""
    key = key_of(path)
    here = opened.routes.where(key)
    return opened.cache.evict(here.identity, here.key) + sum(
        opened.cache.evict(opened.routes.where(link).identity, "") for link in _links_below(opened.routes, key)
    )


def _links_below(routes: Routes, key: str) -> Iterator[str]:
    for name in routes.names_in(key):
        below = f"{key}/{name}" if key else name
        if routes.where(below).above == below:
            yield below
        yield from _links_below(routes, below)
