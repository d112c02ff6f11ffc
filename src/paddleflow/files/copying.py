"""Copies between this machine and filesystems, several files at a time, each whole or not at all.

A copy to this machine is written under a temporary name beside its target and renamed when it is complete; a copy to a
filesystem is one upload. What is cached here is taken from the cache, what is not goes past it: copying a large tree
out once should not drive out what is read every day. Interrupted, it leaves whole files and no half ones.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from typing import TYPE_CHECKING

from paddleflow.domain.errors import NotFound
from paddleflow.files.contents import draft, pour, put, scratch
from paddleflow.files.copy_items import Item, local_items, look_local, remote_items
from paddleflow.files.errors import RECURSIVELY, InvalidFile, IsDirectory, NotDirectory, told_as_file_errors
from paddleflow.files.paths import Place, is_within, key_of
from paddleflow.files.tree import make_directory
from paddleflow.sdk.file_access import Progress, Transferred

if TYPE_CHECKING:
    from paddleflow.files.opened import OpenFilesystems

_AHEAD = 64
"""Files that are found before one of them is done: a tree of millions is not held in memory."""


class Stopped(Exception):
    """The copy has failed elsewhere, or was interrupted: what is under way need not be finished."""


class Tally:
    """What was done so far, counted from several threads and told to one listener."""

    def __init__(self, progress: Progress) -> None:
        self._lock = threading.Lock()
        self._progress = progress
        self.so_far = Transferred()

    def add(self, path: str, *, files: int = 0, size: int = 0, found_files: int = 0, found_bytes: int = 0) -> None:
        with self._lock:
            now = self.so_far
            self.so_far = Transferred(
                files=now.files + files,
                bytes=now.bytes + size,
                total_files=now.total_files + found_files,
                total_bytes=now.total_bytes + found_bytes,
                path=path,
            )
            self._progress(self.so_far)


class Copy:
    """One ``cp``."""

    def __init__(self, filesystems: OpenFilesystems, parallel: int, progress: Progress) -> None:
        if parallel < 1:
            raise InvalidFile("InvalidArguments", f"parallel should be 1 or more, not {parallel}")
        self._filesystems = filesystems
        self._parallel = parallel
        self._tally = Tally(progress)
        self._is_stopped = False

    def run(self, source: Place, target: Place, *, recursive: bool) -> Transferred:
        if source.is_local and target.is_local:
            raise InvalidFile("InvalidPath", f"neither {source} nor {target} is on a filesystem: write FSNAME:/path")
        top = self._top(source, target)
        if top.is_directory and not recursive:
            raise IsDirectory("IsADirectory", f"{source} is a directory; {RECURSIVELY}")
        if str(top.source) == str(top.target):
            raise InvalidFile("InvalidPath", f"{source} and {target} are the same")
        if top.is_directory and _lies_in(top.target, top.source):
            raise InvalidFile("InvalidPath", f"cannot copy {source} into itself, {top.target}")
        items = self._local_tree(top) if top.source.is_local else self._remote_tree(top)
        with ThreadPoolExecutor(self._parallel, thread_name_prefix="paddleflow-piece") as pieces:
            links = self._copy_files(items, pieces)
        for link in links:
            # Last: no file is ever written through a link that came with the same tree.
            with told_as_file_errors(str(link.target)):
                self._make_link(link)
        return self._tally.so_far

    def _top(self, source: Place, target: Place) -> Item:
        """What the source is, and what it will be called."""
        if source.is_local:
            first = look_local(source)
        else:
            with told_as_file_errors(str(source)):
                found = self._filesystems.get(source.fsname).stagehand.stat(key_of(source.path))
            first = Item.of(found, source, target)
        kind = self._kind_of(target)
        if kind == "file" and (first.is_directory or target.is_directory_wanted):
            raise NotDirectory("NotADirectory", f"{target} is a file, not a directory")
        into = kind == "directory" or (target.is_directory_wanted and not first.is_directory)
        return replace(first, target=target.below(source.name) if into and source.name else target)

    def _kind_of(self, place: Place) -> str:
        if place.is_local:
            return "directory" if os.path.isdir(place.path) else "file" if os.path.lexists(place.path) else ""
        try:
            with told_as_file_errors(str(place)):
                found = self._filesystems.get(place.fsname).stagehand.stat(key_of(place.path))
        except NotFound:
            return ""
        return "directory" if found.entry.is_directory else "file"

    def _local_tree(self, top: Item) -> Iterator[Item]:
        return local_items(top, holds_links=self._holds_links(top.target))

    def _remote_tree(self, top: Item) -> Iterator[Item]:
        return remote_items(self._filesystems.get(top.source.fsname).stagehand, top)

    def _copy_files(self, items: Iterator[Item], pieces: Executor) -> list[Item]:
        links: list[Item] = []
        running: set[Future[None]] = set()
        with ThreadPoolExecutor(self._parallel, thread_name_prefix="paddleflow-copy") as pool:
            try:
                for item in items:
                    if item.link_target is not None:
                        links.append(item)
                    elif item.is_directory:
                        with told_as_file_errors(str(item.target)):
                            self._make_directory(item.target)
                    else:
                        self._tally.add(str(item.source), found_files=1, found_bytes=item.size)
                        running.add(pool.submit(self._copy_one, item, pieces))
                        running = _settled(running) if len(running) >= _AHEAD else running
                while running:
                    running = _settled(running)
            except BaseException:
                self._is_stopped = True
                for one in running:
                    one.cancel()
                raise
        return links

    def _copy_one(self, item: Item, pieces: Executor) -> None:
        def told(size: int) -> None:
            if self._is_stopped:
                raise Stopped
            self._tally.add(str(item.source), size=size)

        with told_as_file_errors(str(item.source)):
            if item.source.is_local:
                self._put(item.target, item.source.path, item.mode)
                told(item.size)
            elif item.target.is_local:
                with draft(item.target.path) as (descriptor, name):
                    pour(self._filesystems.get(item.source.fsname), item.content, descriptor, told=told, pool=pieces)
                    if item.mode is not None:
                        os.fchmod(descriptor, item.mode)
                    os.replace(name, item.target.path)
            elif self._copy_inside(item):
                told(item.size)
            else:
                with scratch() as (descriptor, name):
                    pour(self._filesystems.get(item.source.fsname), item.content, descriptor, told=told, pool=pieces)
                    self._put(item.target, name, item.mode)
        self._tally.add(str(item.source), files=1)

    def _copy_inside(self, item: Item) -> bool:
        """Let the store copy it, if both ends lie in the same one."""
        if item.source.fsname != item.target.fsname:
            return False
        routes = self._filesystems.get(item.source.fsname).routes
        old, new = routes.where(key_of(item.source.path)), routes.where(key_of(item.target.path))
        if old.identity != new.identity:
            return False
        routes.refuse_link(key_of(item.target.path))
        try:
            old.store.copy(old.key, new.key)
        except NotFound:
            self._make_directory(Place(item.target.fsname, os.path.dirname(item.target.path)))
            old.store.copy(old.key, new.key)
        return True

    def _put(self, target: Place, staged: str, mode: int | None) -> None:
        opened = self._filesystems.get(target.fsname)
        holds_modes = opened.routes.where(key_of(target.path)).store.traits.holds_modes
        put(opened.stagehand, key_of(target.path), staged, mode=mode if holds_modes else None)

    def _holds_links(self, target: Place) -> bool:
        if target.is_local:
            return True
        return self._filesystems.get(target.fsname).routes.where(key_of(target.path)).store.traits.holds_links

    def _make_directory(self, target: Place) -> None:
        if target.is_local:
            os.makedirs(target.path, exist_ok=True)
        else:
            make_directory(self._filesystems.get(target.fsname).stagehand, key_of(target.path), parents=True)

    def _make_link(self, link: Item) -> None:
        assert link.link_target is not None
        if not self._holds_links(link.target):
            raise InvalidFile("NoLinks", f"it cannot hold the symbolic link {link.source}; everything else was copied")
        if link.target.is_local:
            with draft(link.target.path) as (_, name):
                os.unlink(name)
                os.symlink(link.link_target, name)
                os.replace(name, link.target.path)
        else:
            stagehand = self._filesystems.get(link.target.fsname).stagehand
            if self._kind_of(link.target) == "file":
                stagehand.delete(key_of(link.target.path))
            stagehand.make_link(key_of(link.target.path), link.link_target)


def _settled(running: set[Future[None]]) -> set[Future[None]]:
    """Wait for one at least; an error of it is raised here."""
    done, left = wait(running, return_when=FIRST_COMPLETED)
    for one in done:
        one.result()
    return left


def _lies_in(place: Place, above: Place) -> bool:
    if place.fsname != above.fsname:
        return False
    if not place.is_local:
        return is_within(key_of(place.path), key_of(above.path))
    top = os.path.realpath(above.path)
    return os.path.commonpath([os.path.realpath(place.path), top]) == top
