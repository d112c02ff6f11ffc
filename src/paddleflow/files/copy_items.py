"""What a copy consists of: the files, directories and links below its source, each with the place it goes to."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from paddleflow.files.errors import InvalidFile, MissingFile
from paddleflow.files.paths import Place, key_of, shown
from paddleflow.files.tree import listed

if TYPE_CHECKING:
    from paddleflow.pfs.backstage import Found, ObjectVersion
    from paddleflow.pfs.stagehand import Stagehand


@dataclass(frozen=True, slots=True)
class Item:
    source: Place
    target: Place
    size: int = 0
    is_directory: bool = False
    link_target: str | None = None
    mode: int | None = None
    version: ObjectVersion | None = None
    """Of a file on a filesystem."""

    @classmethod
    def of(cls, found: Found, source: Place, target: Place) -> Item:
        entry = found.entry
        return cls(
            source,
            target,
            size=entry.size,
            is_directory=entry.is_directory,
            link_target=entry.link_target,
            mode=entry.mode,
            version=found.version,
        )

    @property
    def content(self) -> ObjectVersion:
        if self.version is None:
            raise InvalidFile("InvalidPath", f"{self.source} has no content")
        return self.version


def look_local(source: Place) -> Item:
    """The source itself; a symbolic link that is named is followed, as ``cp`` does."""
    try:
        found = os.stat(source.path)
    except FileNotFoundError as error:
        raise MissingFile("NoSuchFile", f"{source.path} is not there") from error
    return _local_item(source, source, found)


def local_items(top: Item, *, holds_links: bool) -> Iterator[Item]:
    """The tree below, directories before what is in them. Where links cannot be held, the file behind one is copied."""
    yield top
    if not top.is_directory:
        return
    with os.scandir(top.source.path) as found:
        below = sorted(found, key=lambda one: one.name)
    for one in below:
        source, target = Place("", one.path), top.target.below(one.name)
        if one.is_symlink() and (holds_links or not one.is_file()):
            yield Item(source, target, link_target=os.readlink(one.path))
        elif one.is_dir(follow_symlinks=False):
            yield from local_items(Item(source, target, is_directory=True), holds_links=holds_links)
        else:
            yield _local_item(source, target, one.stat())


def _local_item(source: Place, target: Place, found: os.stat_result) -> Item:
    if stat.S_ISDIR(found.st_mode):
        return Item(source, target, is_directory=True)
    if not stat.S_ISREG(found.st_mode):
        raise InvalidFile("InvalidPath", f"{source.path} is neither a file nor a directory; leave it out")
    return Item(source, target, size=found.st_size, mode=stat.S_IMODE(found.st_mode))


def remote_items(stagehand: Stagehand, top: Item) -> Iterator[Item]:
    yield top
    if not top.is_directory:
        return
    for one in listed(stagehand, key_of(top.source.path)):
        name = one.entry.key.rpartition("/")[2]
        item = Item.of(one, Place(top.source.fsname, shown(one.entry.key)), top.target.below(name))
        if item.is_directory:
            yield from remote_items(stagehand, item)
        else:
            yield item
