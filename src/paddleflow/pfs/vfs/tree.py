"""The tree: what this mount believes about names and attributes, for how long, and how it asks.

Everything the store says is believed for ``meta_ttl`` seconds; that a name is absent, for ``negative_ttl``. A listing
that is fresh answers for every name of its directory, both ways. Several questions about one directory that has no
fresh listing make us list it, beside the questions.

Answers come late. Between asking and hearing, this mount itself may have changed what it asked about; such an answer is
thrown away and the question asked again, and a listing that was being read takes what was done meanwhile on top. What
is changed here goes through ``noted`` and its like, so there is one place that keeps all of this true.

Files with staged content are ours alone until they are uploaded: the store is not asked about them.
"""

from __future__ import annotations

import errno
from collections import OrderedDict
from collections.abc import Callable
from copy import copy
from typing import Final, Protocol

from paddleflow.domain.errors import Invalid, NotFound
from paddleflow.pfs.attrs import Attr
from paddleflow.pfs.backstage import Backstage, Found
from paddleflow.pfs.errnos import FsError
from paddleflow.pfs.later import Later, start
from paddleflow.pfs.nodes import Node, Nodes
from paddleflow.pfs.options import MountOptions
from paddleflow.pfs.vfs.beliefs import NEVER, Directory, Listing
from paddleflow.pfs.vfs.held import Chosen, attr_of
from paddleflow.pfs.vfs.keepsakes import chosen_in, found_in, keepsake_of, remark_of
from paddleflow.ports.objects import Traits

_ASKED_BEFORE_LISTING: Final = 8
_KEPT_ENTRIES: Final = 300_000
"""Of all listings together; the ones not used for longest go first."""
_KEPT_ABSENCES: Final = 10_000
_PATIENCE: Final = 16
"""Answers overtaken by changes of our own before the next one is believed anyway."""


class Kernel(Protocol):
    """What the kernel has to be told when something changed behind its back. Never waits."""

    def inval_node(self, node: int) -> None: ...

    def inval_entry(self, parent: int, name: str) -> None: ...


class Tree:
    def __init__(
        self, nodes: Nodes, backstage: Backstage, options: MountOptions, clock: Callable[[], float], kernel: Kernel
    ) -> None:
        self.nodes = nodes
        self.clock = clock
        self.chosen: dict[int, Chosen] = {}
        """By node: what was set here and the store does not hold."""
        self.list_beside: Callable[[Node], None] = lambda _: None
        """Called when single questions about a directory pile up."""
        self._backstage = backstage
        self._options = options
        self._kernel = kernel
        self._directories: dict[int, Directory] = {}
        self._listed: OrderedDict[int, int] = OrderedDict()
        self._kept = 0
        self._asking: dict[str, Later[Found]] = {}
        self._born_ns = int(clock() * 1e9)

    def directory(self, node: Node) -> Directory:
        believed = self._directories.get(node.id)
        if believed is None:
            believed = self._directories[node.id] = Directory()
        return believed

    def dropped(self, node: Node) -> None:
        """The node is gone: so is what was believed about it."""
        self.chosen.pop(node.id, None)
        self.unlist(node)
        self._directories.pop(node.id, None)

    def doubt_everything(self) -> None:
        """Ask again before anything is believed; what is open stays open."""
        for node in self.nodes.below(self.nodes.root):
            node.known_at = NEVER
        for believed in self._directories.values():
            believed.listing_at = NEVER
            believed.absent.clear()

    def path_of(self, parent: Node, name: str) -> str:
        above = self.nodes.path(parent)
        return f"{above}/{name}" if above else name

    def is_fresh(self, node: Node) -> bool:
        return self.clock() - node.known_at < self._options.meta_ttl

    def ttl(self, node: Node) -> float:
        """How long the kernel may believe what we say of it: as long as we do ourselves."""
        if node.is_staged:
            return self._options.meta_ttl
        return max(0.0, self._options.meta_ttl - (self.clock() - node.known_at))

    def negative_ttl(self, parent: Node, name: str) -> float:
        since = self.directory(parent).absent.get(name)
        return 0.0 if since is None else max(0.0, self._options.negative_ttl - (self.clock() - since))

    def attr(self, node: Node) -> Attr:
        """Of a node that is known and not staged."""
        if node.attr is None:
            assert node.known is not None
            node.attr = self.attr_of(node.known, node.ino, node)
        return node.attr

    def attr_of(self, found: Found, ino: int, node: Node | None) -> Attr:
        chosen, touched_ns = None, 0
        if node is not None:
            chosen = self.chosen.get(node.id)
            believed = self._directories.get(node.id)
            touched_ns = 0 if believed is None else believed.touched_ns
        return attr_of(found, ino, self._options, chosen, (self._born_ns, touched_ns))

    def chosen_for(self, node: Node) -> Chosen:
        """To be changed, and then chosen: what is remembered here of what the store does not hold."""
        return self.chosen.get(node.id) or Chosen()

    def choose(self, node: Node, chosen: Chosen) -> None:
        """Show this from now on; a successor does too."""
        node.attr = None
        self.chosen[node.id] = chosen
        self.nodes.note(node, remark_of(chosen))

    def inherit(self) -> None:
        """What a predecessor knew and nobody else can tell."""
        for node in self.nodes.detached():
            node.known = found_in(node.keepsake)
        for node in self.nodes.remarked():
            self.chosen[node.id] = chosen_in(node.remark)

    async def find(self, parent: Node, name: str) -> Node | None:
        """The node of a name, known and fresh, or staged; None when there is no such name."""
        asked_at, answer = NEVER, None
        for patience in range(_PATIENCE, -1, -1):
            child = parent.children.get(name)
            if child is not None and (child.is_staged or (child.known is not None and self.is_fresh(child))):
                return child
            listing = self.fresh_listing(parent)
            if listing is not None:
                return self._believe(parent, name, listing.names.get(name), self.directory(parent).listing_at)
            if self.negative_ttl(parent, name) > 0:
                return None
            changes, path = self.directory(parent).changes, self.path_of(parent, name)
            asked_at = self.clock()
            answer = await self._ask(path)
            is_overtaken = changes != self.directory(parent).changes or path != self.path_of(parent, name)
            if not is_overtaken or not patience:
                break
        self._count_question(parent)
        return self._believe(parent, name, answer, asked_at)

    async def refresh(self, node: Node, *, at_once: bool = False) -> None:
        """Make what is known of this very node fresh. NotFound when it is gone from the store; ESTALE when its name
        leads to another. One that was detached keeps what was known of it."""
        if node.is_staged or (not at_once and node.known is not None and self.is_fresh(node)):
            return
        if not node.is_linked:
            if node.known is None:
                raise FsError(errno.ESTALE)
            return
        if node.parent is None:
            asked_at = self.clock()
            self._set_known(node, await self._backstage.stat(""), asked_at)
            return
        if at_once:
            node.known_at = NEVER
            self.unlist(node.parent)
        is_open = node.open_version is not None
        found = await self.find(node.parent, node.name)
        if found is None and is_open and node.known is not None:
            return  # deleted elsewhere: who has it open keeps it
        if found is None:
            raise NotFound(f"{self.nodes.path(node)} is not there any more")
        if found is not node and node.known is None:
            raise FsError(errno.ESTALE)

    async def traits(self, node: Node) -> Traits:
        """Of the store that holds, or would hold, this node."""
        here = node
        while here.known is None and here.is_staged and here.parent is not None:
            here = here.parent
        if here.known is None:
            await self.refresh(here)
        assert here.known is not None
        return here.known.traits

    async def _ask(self, path: str) -> Found | None:
        """The store, once for all who want to know the same at the same time."""
        waiting = self._asking.get(path)
        if waiting is None:
            waiting = self._asking[path] = Later()
            answered = self._answering(path, waiting)
            start(self._backstage.stat(path), answered)
        try:
            return await waiting
        except NotFound:
            return None
        except Invalid:
            # The store says that what is above is a file, or that it cannot hold such a name: so it is not there.
            return None

    def _answering(self, path: str, waiting: Later[Found]) -> Callable[[Found | None, BaseException | None], None]:
        def answered(found: Found | None, error: BaseException | None) -> None:
            if self._asking.get(path) is waiting:
                del self._asking[path]
            if error is not None:
                waiting.fail(error)
            else:
                assert found is not None
                waiting.succeed(found)

        return answered

    def _count_question(self, parent: Node) -> None:
        believed, now = self.directory(parent), self.clock()
        if now - believed.asked_since >= self._options.meta_ttl:
            believed.asked, believed.asked_since = 0, now
        believed.asked += 1
        if believed.asked == _ASKED_BEFORE_LISTING and not believed.is_huge and self._options.meta_ttl > 0:
            self.list_beside(parent)

    def _believe(self, parent: Node, name: str, found: Found | None, at: float) -> Node | None:
        if found is None:
            return self._vanished(parent, name, at)
        return self.learned(parent, name, found, at)

    def learned(self, parent: Node, name: str, found: Found, at: float) -> Node:
        """The store said this of a name, or we know it because we did it."""
        child = parent.children.get(name)
        if child is not None and child.is_staged:
            return child
        if child is not None and child.known is not None and at < child.known_at:
            return child  # an older word, from a listing that took its time: what was heard since stands
        if child is not None and child.known is not None and _kind(child.known) != _kind(found):
            self.detach(child)
            self._kernel.inval_entry(parent.id, name)
            child = None
        if child is None:
            child = self.nodes.add(parent, name)
        elif child.open_version is not None and child.open_version != found.version:
            child = self.replaced(child)
            self._kernel.inval_entry(parent.id, name)
        self.directory(parent).absent.pop(name, None)
        self._set_known(child, found, at)
        return child

    def replaced(self, node: Node) -> Node:
        """A new node for the same file: what has the old one open keeps it, with the attributes it had."""
        fresh = self.nodes.replace(node, keepsake_of(node.known))
        chosen = self.chosen.get(node.id)
        if chosen is not None:
            self.choose(fresh, copy(chosen))
        return fresh

    def _set_known(self, node: Node, found: Found, at: float) -> None:
        before = node.known
        node.known, node.known_at = found, at
        if before is not None and before.entry == found.entry:
            return
        node.attr = None
        if before is not None and node.lookups and before.entry.version != found.entry.version:
            self._kernel.inval_node(node.id)

    def _vanished(self, parent: Node, name: str, at: float) -> Node | None:
        """The store has no such name."""
        child = parent.children.get(name)
        if child is not None:
            if any(below.is_staged for below in self.nodes.below(child)):
                return child  # gone from the store above a file that is being written here: keep the way to it
            self.detach(child)
            self._kernel.inval_entry(parent.id, name)
        self._note_absence(parent, name, at)
        return None

    def _note_absence(self, parent: Node, name: str, at: float) -> None:
        absent = self.directory(parent).absent
        if len(absent) >= _KEPT_ABSENCES:
            absent.clear()
        absent[name] = at

    def detach(self, node: Node) -> None:
        """Its name leads elsewhere from now on; its attributes go into the log, for a successor has nobody to ask."""
        for below in list(self.nodes.below(node)):
            if below is not node:
                self.nodes.detach(below, keepsake_of(below.known))
        self.nodes.detach(node, keepsake_of(node.known))

    def noted(self, parent: Node, name: str, found: Found | None, *, is_name_new: bool = True) -> None:
        """This mount itself made a name, changed it, or took it away. Overtakes every answer that is on its way."""
        self.changed_here(parent, name, is_name_new=is_name_new)
        believed = self.directory(parent)
        for listing in believed.reading:
            listing.changed[name] = found
        if believed.listing is not None:
            believed.listing.changed[name] = found
            believed.listing.finish()
        if found is None:
            self._note_absence(parent, name, self.clock())
        else:
            self.learned(parent, name, found, self.clock())

    def changed_here(self, parent: Node, name: str, *, is_name_new: bool = True) -> None:
        """Something about this name is different now, though perhaps not yet in the store. The time of its directory
        moves only with names, as everywhere: ``tar`` takes any other move for somebody else's."""
        believed = self.directory(parent)
        believed.changes += 1
        believed.absent.pop(name, None)
        if is_name_new:
            believed.touched_ns = int(self.clock() * 1e9)
            parent.attr = None
        self._asking.pop(self.path_of(parent, name), None)

    def uploaded(self, node: Node, found: Found) -> None:
        """The store has a staged file's content now."""
        assert node.parent is not None
        if node.is_staged:
            node.known, node.known_at, node.attr = found, self.clock(), None
        if node.is_linked:
            self.noted(node.parent, node.name, found, is_name_new=False)

    def moved(self, node: Node) -> None:
        """All below it has another path now, and perhaps other versions: what was known holds no longer."""
        self._asking.clear()
        for below in self.nodes.below(node):
            below.known_at = NEVER
            below.open_version = None  # the same bytes may have another name for a version now
            self.unlist(below)
            believed = self._directories.get(below.id)
            if believed is not None:
                believed.changes += 1
                believed.absent.clear()

    def fresh_listing(self, node: Node) -> Listing | None:
        believed = self._directories.get(node.id)
        if believed is None or believed.listing is None:
            return None
        if self.clock() - believed.listing_at >= self._options.meta_ttl:
            return None
        self._listed.move_to_end(node.id)
        return believed.listing

    def keep(self, node: Node, listing: Listing, at: float) -> None:
        """A listing was read to its end."""
        listing.finish()
        self.unlist(node)
        believed = self.directory(node)
        believed.listing, believed.listing_at = listing, at
        self._listed[node.id] = len(listing.names)
        self._kept += len(listing.names)
        while self._kept > _KEPT_ENTRIES and len(self._listed) > 1:
            self._unlist(next(iter(self._listed)))

    def unlist(self, node: Node) -> None:
        self._unlist(node.id)

    def _unlist(self, number: int) -> None:
        count = self._listed.pop(number, None)
        if count is not None:
            self._kept -= count
            believed = self._directories[number]
            believed.listing, believed.listing_at = None, NEVER


def _kind(found: Found) -> tuple[bool, bool]:
    return found.entry.is_directory, found.entry.link_target is not None
