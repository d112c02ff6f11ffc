"""Directories: listing, walking, making, removing. On paths without a slash in front, as the stores name them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from paddleflow.domain.errors import Duplicate, InUse, NotFound
from paddleflow.files.errors import RECURSIVELY, DirectoryNotEmpty, IsDirectory, NotDirectory
from paddleflow.files.paths import parent_of, shown
from paddleflow.sdk.file_access import FileEntry

if TYPE_CHECKING:
    from paddleflow.files.opened import OpenedFilesystem
    from paddleflow.pfs.backstage import Found
    from paddleflow.pfs.stagehand import Stagehand


def entry_of(found: Found) -> FileEntry:
    entry = found.entry
    return FileEntry(
        path=shown(entry.key),
        is_directory=entry.is_directory,
        size=entry.size,
        modified=entry.modified_ns / 1e9,
        mode=entry.mode,
        version=entry.version,
        link_target=entry.link_target,
    )


def listed(stagehand: Stagehand, key: str) -> Iterator[Found]:
    """What a directory holds directly, as the pages come."""
    cursor = 0
    while True:
        page = stagehand.list(key, cursor)
        yield from page.entries
        if page.is_last:
            return
        cursor += len(page.entries)


def entries(stagehand: Stagehand, key: str) -> list[FileEntry]:
    """By name; of a file, itself."""
    found = stagehand.stat(key)
    if not found.entry.is_directory:
        return [entry_of(found)]
    return sorted((entry_of(one) for one in listed(stagehand, key)), key=lambda entry: entry.path)


def walk(stagehand: Stagehand, key: str) -> Iterator[tuple[str, list[Found], list[Found]]]:
    """A directory's key, the directories in it, and everything else in it; the directory before what is below."""
    below = sorted(listed(stagehand, key), key=lambda one: one.entry.key)
    directories = [one for one in below if one.entry.is_directory]
    yield key, directories, [one for one in below if not one.entry.is_directory]
    for directory in directories:
        yield from walk(stagehand, directory.entry.key)


def make_directory(stagehand: Stagehand, key: str, *, parents: bool) -> None:
    if not parents:
        stagehand.make_directory(key)
        return
    missing = []
    while key:
        try:
            found = stagehand.stat(key)
        except NotFound:
            missing.append(key)
            key = parent_of(key)
            continue
        if not found.entry.is_directory:
            raise NotDirectory("NotADirectory", f"{shown(key)} is a file, so nothing can be below it")
        break
    for one in reversed(missing):
        # Somebody else may have made it just now, which is what was wanted.
        with contextlib.suppress(Duplicate):
            stagehand.make_directory(one)


def remove(opened: OpenedFilesystem, key: str, *, recursive: bool) -> None:
    """A file or a link; with ``recursive`` a directory and all below it. Another storage that is linked in is not
    emptied by the way: it has to be unlinked first."""
    stagehand = opened.stagehand
    found = stagehand.stat(key)
    if not found.entry.is_directory:
        stagehand.delete(key)
        return
    if not recursive:
        raise IsDirectory("IsADirectory", f"{shown(key)} is a directory; {RECURSIVELY}")
    if opened.routes.leads_to_link(key):
        raise DirectoryNotEmpty("LinkedStorage", f"another storage is linked at or below {shown(key)}; unlink it first")
    for directory, _, files in reversed(list(walk(stagehand, key))):
        for one in files:
            # Somebody else removing the same tree is no reason to fail.
            with contextlib.suppress(NotFound):
                stagehand.delete(one.entry.key)
        if directory:
            _remove_emptied(stagehand, directory)


def _remove_emptied(stagehand: Stagehand, directory: str) -> None:
    try:
        stagehand.remove_directory(directory)
    except NotFound:
        pass  # a directory of object storage is gone with the last object in it
    except InUse as error:
        raise DirectoryNotEmpty("DirectoryNotEmpty", f"something was put into {shown(directory)} meanwhile") from error
