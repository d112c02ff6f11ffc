"""Reading directories: page by page as the store sends them, so that a huge one begins to show at once.

What a handle has read stays where it is in the sequence, whatever changes meanwhile. Files that exist only here, not
uploaded yet, come at the end. A successor that never gave the handle reads the directory anew and skips as many entries
as were asked for before.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from paddleflow.domain.errors import Invalid, PaddleFlowError
from paddleflow.pfs.attrs import DirectoryItem, Entry
from paddleflow.pfs.backstage import Found
from paddleflow.pfs.errnos import FsError
from paddleflow.pfs.later import start
from paddleflow.pfs.nodes import Node
from paddleflow.pfs.vfs.beliefs import Listing
from paddleflow.pfs.vfs.mounted import Mounted

_log = logging.getLogger(__name__)

HUGE: Final = 100_000
"""Entries from which on a directory is not kept as a whole."""
_AT_ONCE: Final = 512
"""Entries made ready in one go; a request takes a few hundred at most."""
_KEPT_BEHIND: Final = 20_000
"""Entries kept behind the reader of a directory; seeking back further reads it anew."""


@dataclass(frozen=True, slots=True)
class ListedItem(DirectoryItem):
    found: Found | None = None
    """None: it is staged here."""
    at: float = 0.0


class Pages:
    """One reading of a directory in the store, from the first page to the last; then it is believed as a whole."""

    def __init__(self, mounted: Mounted, node: Node) -> None:
        self._mounted = mounted
        self._node = node
        self.begun_at = mounted.tree.clock()
        self.listing = Listing()
        self._believed = mounted.tree.directory(node)
        self._believed.reading.append(self.listing)
        self._cursor = 0
        self.is_last = False
        self._is_kept = False

    def begin_at(self, listing: Listing, at: float) -> list[tuple[str, Found]]:
        """Nothing need be read: this is fresh."""
        self.close()
        self.listing, self.begun_at = listing, at
        self.is_last = self._is_kept = True
        return list(listing.names.items())

    def now(self, name: str, listed: Found) -> Found | None:
        """What a name that was listed is by now, after what was changed here since."""
        if name in self.listing.changed:
            return self.listing.changed[name]
        return self.listing.names.get(name) if self._is_kept else listed

    def added(self, seen: set[str]) -> list[tuple[str, Found]]:
        """What came into the store from here after its page was read."""
        names = self.listing.names if self._is_kept else self.listing.changed
        return [(name, found) for name, found in names.items() if found is not None and name not in seen]

    async def next(self) -> list[tuple[str, Found]]:
        try:
            page = await self._mounted.backstage.list(self._mounted.nodes.path(self._node), self._cursor)
        except BaseException:
            self.close()
            raise
        self._cursor += len(page.entries)
        named = [(found.entry.key.rpartition("/")[2], found) for found in page.entries]
        if self._cursor > HUGE:
            self._believed.is_huge = True
            self.listing.names.clear()
        else:
            self.listing.names.update(named)
        if page.is_last:
            self.is_last = True
            self.close()
            if self._cursor <= HUGE:
                self._believed.is_huge = False
                self._is_kept = True
                self._mounted.tree.keep(self._node, self.listing, self.begun_at)
        return named

    def close(self) -> None:
        """Nothing of it is believed unless it came to its end."""
        if self.listing in self._believed.reading:
            self._believed.reading.remove(self.listing)


class _OpenDirectory:
    __slots__ = ("base", "is_finished", "items", "node", "pages", "seen", "waiting")

    def __init__(self, node: Node) -> None:
        self.node = node
        self.items: list[ListedItem] = []
        self.base = 0
        """Which entry of the directory ``items`` begins with."""
        self.waiting: list[tuple[str, Found]] = []
        """Not made into items yet, last first."""
        self.pages: Pages | None = None
        self.seen: set[str] = set()
        self.is_finished = False

    @property
    def end(self) -> int:
        return self.base + len(self.items)


class Directories:
    def __init__(self, mounted: Mounted) -> None:
        self._mounted = mounted
        self._open: dict[int, _OpenDirectory] = {}
        mounted.tree.list_beside = self._list_beside

    async def opendir(self, node: Node) -> int:
        handle = self._mounted.new_handle()
        self._open[handle] = _OpenDirectory(node)
        return handle

    def releasedir(self, handle: int) -> None:
        opened = self._open.pop(handle, None)
        if opened is not None and opened.pages is not None:
            opened.pages.close()

    async def readdir(self, node: Node, handle: int, offset: int) -> Sequence[ListedItem]:
        opened = self._open.get(handle)
        if opened is None or opened.node is not node:
            # Without a handle of ours (no-open mode, or a predecessor's) the reading lasts as long as it goes forward.
            opened = self._open[handle] = _OpenDirectory(node)
        if offset < opened.base or (not offset and opened.end):
            self.releasedir(handle)
            opened = self._open[handle] = _OpenDirectory(node)
        while opened.end <= offset and not opened.is_finished:
            await self._more(opened)
        if opened.is_finished and opened.end <= offset and handle == 0:
            self.releasedir(handle)
        behind = offset - opened.base - _KEPT_BEHIND
        if behind > 0:
            del opened.items[:behind]
            opened.base += behind
        return opened.items[offset - opened.base :]

    def remember(self, parent: Node, item: DirectoryItem) -> Entry:
        tree = self._mounted.tree
        child = parent.children.get(item.name)
        if child is None or not child.is_staged:
            assert isinstance(item, ListedItem)
            assert item.found is not None
            child = tree.learned(parent, item.name, item.found, item.at)
        child.lookups += 1
        ttl = tree.ttl(child)
        return Entry(child.id, self._mounted.attr(child), ttl, ttl)

    async def is_empty(self, node: Node) -> bool:
        """Neither the store nor this mount has anything in it."""
        if any(child.is_staged for child in node.children.values()):
            return False
        listing = self._mounted.tree.fresh_listing(node)
        if listing is not None:
            return not listing.names
        pages = Pages(self._mounted, node)
        found: list[tuple[str, Found]] = []
        while not found and not pages.is_last:
            found = [each for each in await pages.next() if pages.listing.changed.get(each[0], each[1]) is not None]
        pages.close()
        return not found and not any(child.is_staged for child in node.children.values())

    async def _more(self, opened: _OpenDirectory) -> None:
        if opened.waiting:
            self._make_items(opened)
            return
        node, tree = opened.node, self._mounted.tree
        if opened.pages is None:
            listing = tree.fresh_listing(node)
            opened.pages = Pages(self._mounted, node)
            if listing is not None:
                opened.waiting = opened.pages.begin_at(listing, tree.directory(node).listing_at)[::-1]
                return
        if opened.pages.is_last:
            opened.waiting = opened.pages.added(opened.seen)
            if not opened.waiting:
                opened.is_finished = True
                self._add_staged(opened)
            return
        pages = opened.pages
        try:
            named = await pages.next()
        except Invalid as error:
            raise FsError(errno.ENOTDIR) from error
        opened.waiting = [*reversed(named), *opened.waiting]

    def _make_items(self, opened: _OpenDirectory) -> None:
        assert opened.pages is not None
        node, nodes, tree = opened.node, self._mounted.nodes, self._mounted.tree
        at = opened.pages.begun_at
        for _ in range(min(_AT_ONCE, len(opened.waiting))):
            name, listed = opened.waiting.pop()
            found = opened.pages.now(name, listed)
            child = node.children.get(name)
            opened.seen.add(name)
            if child is not None and child.is_staged:
                opened.items.append(ListedItem(name, self._mounted.attr(child), 0, None, at))
            elif found is not None:
                ino = nodes.ino_for(node, name) if child is None else child.ino
                opened.items.append(ListedItem(name, tree.attr_of(found, ino, child), 0, found, at))

    def _add_staged(self, opened: _OpenDirectory) -> None:
        at = self._mounted.tree.clock()
        for name, child in opened.node.children.items():
            if child.is_staged and name not in opened.seen:
                opened.items.append(ListedItem(name, self._mounted.attr(child), 0, None, at))

    def _list_beside(self, node: Node) -> None:
        def ended(_: None, error: BaseException | None) -> None:
            if error is not None:
                # Nobody waits for this listing: each question about a name gets an answer of its own.
                level = logging.DEBUG if isinstance(error, PaddleFlowError) else logging.ERROR
                _log.log(level, "a directory could not be listed", exc_info=error)

        start(self._read_whole(node), ended)

    async def _read_whole(self, node: Node) -> None:
        pages = Pages(self._mounted, node)
        while not pages.is_last and not self._mounted.tree.directory(node).is_huge:
            await pages.next()
        pages.close()
