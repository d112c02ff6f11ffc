"""Changing names: making, deleting and renaming files, directories and links.

The kernel lets one change at a time into a directory; answers of lookups and uploads of files that are being closed
come in between. So every change looks again at the tree after each wait, and holds the turns of the files it touches.
A change that is *tolerant* is one that a predecessor began: what it wanted and finds so, counts as done.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import AsyncExitStack, suppress
from typing import Final

from paddleflow.domain.errors import Denied, Duplicate, NotFound, PaddleFlowError
from paddleflow.pfs.attrs import Caller, Opened
from paddleflow.pfs.backstage import Found
from paddleflow.pfs.errnos import FsError
from paddleflow.pfs.nodes import Node
from paddleflow.pfs.vfs.directories import Directories
from paddleflow.pfs.vfs.held import chosen_at_birth, owner_to_set
from paddleflow.pfs.vfs.mounted import AHEAD, Mounted
from paddleflow.pfs.vfs.reading import Reading
from paddleflow.pfs.vfs.writing import Writing

_NAME_MAX: Final = 255
_NOREPLACE: Final = 1
_TRIES: Final = 16


class Names:
    def __init__(self, mounted: Mounted, directories: Directories, reading: Reading, writing: Writing) -> None:
        self._mounted = mounted
        self._directories = directories
        self._reading = reading
        self._writing = writing

    # -- making -----------------------------------------------------------------------------------------------------

    async def create(
        self, place: tuple[Node, str], mode: int, flags: int, caller: Caller, unique: int, tolerant: bool
    ) -> tuple[Node, Opened]:
        parent, name = place
        check_name(name)
        child = await self._mounted.tree.find(parent, name)
        if child is not None:
            if flags & os.O_EXCL and not (tolerant and self._is_unsaved(child)):
                raise FsError(errno.EEXIST)
            with self._mounted.nodes.pinned(child):
                if flags & (os.O_TRUNC | os.O_ACCMODE):
                    return child, await self._writing.open(child, flags, unique)
                return child, await self._reading.open(child, unique)
        self._refuse_gone(parent)
        traits = await self._mounted.tree.traits(parent)
        if name in parent.children:
            raise FsError(errno.ESTALE)  # made by somebody else while we asked: the kernel looks again
        node = self._mounted.nodes.add(parent, name)
        opened = self._writing.create(node, stat.S_IMODE(mode) if traits.holds_modes else None, caller, flags, unique)
        if not traits.holds_modes:
            self._mounted.tree.choose(node, chosen_at_birth(mode, caller))
        self._mounted.tree.changed_here(parent, name)
        return node, opened

    async def mknod(self, place: tuple[Node, str], mode: int, caller: Caller, tolerant: bool) -> Node:
        if stat.S_IFMT(mode) not in {0, stat.S_IFREG}:
            raise FsError(errno.EPERM)
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY
        node, opened = await self.create(place, mode, flags, caller, AHEAD, tolerant)
        try:
            await self._writing.upload(node)
        finally:
            await self._writing.release(node, opened.handle)
        return node

    async def mkdir(self, place: tuple[Node, str], mode: int, caller: Caller, tolerant: bool) -> Node:
        parent, name = place
        check_name(name)
        child = await self._mounted.tree.find(parent, name)
        if child is not None and not (tolerant and self._is_directory(child)):
            raise FsError(errno.EEXIST)
        self._refuse_gone(parent)
        path = self._mounted.tree.path_of(parent, name)
        traits = await self._mounted.tree.traits(parent)
        permissions = stat.S_IMODE(mode)
        try:
            await self._mounted.backstage.make_directory(path, mode=permissions if traits.holds_modes else None)
        except Duplicate:
            if not tolerant:
                # Made elsewhere since we looked: whoever asks now is to see it.
                self._mounted.tree.noted(parent, name, await self._mounted.backstage.stat(path))
                raise
        uid, gid = owner_to_set(caller)
        if traits.holds_modes and (uid is not None or gid is not None):
            await self._give_away(path, uid, gid)
        node = await self._note_made(parent, name, path)
        if not traits.holds_modes:
            self._mounted.tree.choose(node, chosen_at_birth(mode, caller))
        return node

    async def symlink(self, place: tuple[Node, str], target: str, caller: Caller, tolerant: bool) -> Node:
        parent, name = place
        check_name(name)
        if not (await self._mounted.tree.traits(parent)).holds_links:
            raise FsError(errno.ENOTSUP)
        child = await self._mounted.tree.find(parent, name)
        path = self._mounted.tree.path_of(parent, name)
        if child is not None:
            if tolerant and child.known is not None and child.known.entry.link_target == target:
                return child
            raise FsError(errno.EEXIST)
        self._refuse_gone(parent)
        await self._mounted.backstage.make_link(path, target)
        uid, gid = owner_to_set(caller)
        if uid is not None or gid is not None:
            await self._give_away(path, uid, gid)
        return await self._note_made(parent, name, path)

    async def _give_away(self, path: str, uid: int | None, gid: int | None) -> None:
        with suppress(Denied):  # only root may; else it belongs to whoever mounted
            await self._mounted.backstage.set_modes(path, uid=uid, gid=gid)

    async def _note_made(self, parent: Node, name: str, path: str) -> Node:
        found = await self._mounted.backstage.stat(path)
        self._mounted.tree.noted(parent, name, found)
        return parent.children[name]

    def _refuse_gone(self, parent: Node) -> None:
        if not parent.is_linked and parent.parent is not None:
            raise FsError(errno.ENOENT)

    def _is_unsaved(self, node: Node) -> bool:
        staged = self._mounted.staged(node)
        return staged is not None and not staged.is_stored

    def _is_directory(self, node: Node) -> bool:
        return node.known is not None and node.known.entry.is_directory

    # -- deleting ---------------------------------------------------------------------------------------------------

    async def unlink(self, parent: Node, name: str, tolerant: bool) -> None:
        for _ in range(_TRIES):
            node = await self._mounted.tree.find(parent, name)
            if node is None:
                if tolerant:
                    return
                raise FsError(errno.ENOENT)
            if self._is_directory(node):
                raise FsError(errno.EISDIR)
            if await self._unlink(parent, name, node):
                await self._keep_directory(parent)
                return
        raise FsError(errno.ESTALE)

    async def _unlink(self, parent: Node, name: str, node: Node) -> bool:
        """False: the name has another node since we waited for this one's turn."""
        file = self._mounted.file(node)
        try:
            async with file.turn:
                if parent.children.get(name) is not node:
                    return False
                if self._is_stored(node):
                    with suppress(NotFound):  # deleted elsewhere since we looked: gone, as was wanted
                        await self._mounted.backstage.delete(self._mounted.tree.path_of(parent, name))
                self._take_away(parent, name, node)
                return True
        finally:
            self._mounted.settle(file)

    async def rmdir(self, parent: Node, name: str, tolerant: bool) -> None:
        node = await self._mounted.tree.find(parent, name)
        if node is None:
            if tolerant:
                return
            raise FsError(errno.ENOENT)
        if not self._is_directory(node):
            raise FsError(errno.ENOTDIR)
        if any(child.is_staged for child in node.children.values()):
            raise FsError(errno.ENOTEMPTY)
        with suppress(NotFound):  # removed elsewhere, or by the process whose work this goes on with
            await self._mounted.backstage.remove_directory(self._mounted.tree.path_of(parent, name))
        self._take_away(parent, name, node)
        await self._keep_directory(parent)

    def _is_stored(self, node: Node) -> bool:
        staged = self._mounted.staged(node)
        return staged is None or staged.is_stored

    def _take_away(self, parent: Node, name: str, node: Node) -> None:
        if parent.children.get(name) is node:
            self._writing.orphan(node)
            self._mounted.tree.detach(node)
        self._mounted.tree.noted(parent, name, None)

    async def _keep_directory(self, parent: Node) -> None:
        """On a flat store a directory without a marker goes with the last name in it, which nobody asked for."""
        known = parent.known
        if parent.parent is None or known is None or known.traits.real_directories or known.entry.modified_ns:
            return
        listing = self._mounted.tree.fresh_listing(parent)
        if listing is not None and listing.names:
            return
        with suppress(Duplicate):  # it has other names in it, or a marker: all is well
            await self._mounted.backstage.make_directory(self._mounted.nodes.path(parent))

    # -- renaming ---------------------------------------------------------------------------------------------------

    async def rename(self, old: tuple[Node, str], new: tuple[Node, str], flags: int, tolerant: bool) -> None:
        check_name(new[1])
        if flags & ~_NOREPLACE:
            raise FsError(errno.EINVAL)
        for _ in range(_TRIES):
            if await self._rename(old, new, flags, tolerant):
                return
        raise FsError(errno.ESTALE)

    async def _rename(self, old: tuple[Node, str], new: tuple[Node, str], flags: int, tolerant: bool) -> bool:
        """False: one of the names has another node since we waited for the turns."""
        source = await self._mounted.tree.find(*old)
        target = await self._mounted.tree.find(*new)
        if source is None:
            if tolerant and target is not None:
                return True
            raise FsError(errno.ENOENT)
        if target is source:
            return True
        self._refuse_gone(new[0])
        if target is not None:
            if flags & _NOREPLACE and not tolerant:
                raise FsError(errno.EEXIST)
            await self._refuse_target(source, target)
        if self._is_directory(source) and new[0] in set(self._mounted.nodes.below(source)):
            raise FsError(errno.EINVAL)
        async with AsyncExitStack() as turns:
            await self._take_turns(turns, source, target)
            is_unchanged = old[0].children.get(old[1]) is source and new[0].children.get(new[1]) is target
            if is_unchanged:
                await self._move(source, old, target, new, tolerant)
        for node in (source, target):
            if node is not None and node.id in self._mounted.files:
                self._mounted.settle(self._mounted.files[node.id])
        if is_unchanged:
            await self._keep_directory(old[0])
        return is_unchanged

    async def _refuse_target(self, source: Node, target: Node) -> None:
        if self._is_directory(source):
            if not self._is_directory(target):
                raise FsError(errno.ENOTDIR)
            if not await self._directories.is_empty(target):
                raise FsError(errno.ENOTEMPTY)
        elif self._is_directory(target):
            raise FsError(errno.EISDIR)

    async def _take_turns(self, turns: AsyncExitStack, source: Node, target: Node | None) -> None:
        """Of every file below that could be uploading, until there is none we do not hold; in one order for all."""
        held: set[int] = set()
        while True:
            below = [node.id for node in self._mounted.nodes.below(source) if node.id in self._mounted.files]
            if target is not None and target.id in self._mounted.files:
                below.append(target.id)
            missing = sorted(set(below) - held)
            if not missing:
                return
            held.add(missing[0])
            await turns.enter_async_context(self._mounted.files[missing[0]].turn)

    async def _move(
        self, source: Node, old: tuple[Node, str], target: Node | None, new: tuple[Node, str], tolerant: bool
    ) -> None:
        nodes, tree = self._mounted.nodes, self._mounted.tree
        new_path = tree.path_of(*new)
        found: Found | None = None
        if self._is_stored(source):
            try:
                await self._mounted.backstage.rename(nodes.path(source), new_path)
            except NotFound:
                if not tolerant or target is None:
                    raise
        elif target is not None:
            found = target.known  # the store keeps it under this name until the new content is uploaded
        if target is not None:
            self._take_away(*new, target)
        nodes.move(source, *new)
        tree.noted(*old, None)
        tree.changed_here(*new)
        tree.moved(source)
        self._moved_files(source)
        if self._is_stored(source):
            await self._learn_moved(source, new, new_path)
        else:
            source.known = found
            staged = self._mounted.staged(source)
            if staged is not None and found is not None:
                staged.is_stored, staged.base = True, found.version
                self._mounted.staging.save(staged)

    def _moved_files(self, source: Node) -> None:
        for below in self._mounted.nodes.below(source):
            file = self._mounted.files.get(below.id)
            if file is not None:
                file.is_moved = True
                if file.staged is not None:
                    file.staged.path = self._mounted.nodes.path(below)
                    self._mounted.staging.save(file.staged)

    async def _learn_moved(self, source: Node, new: tuple[Node, str], path: str) -> None:
        try:
            found = await self._mounted.backstage.stat(path)
        except PaddleFlowError:
            # It is renamed; whoever asks next asks the store.
            source.known, source.attr = None, None
            self._mounted.tree.unlist(new[0])
            return
        if new[0].children.get(new[1]) is source:
            chosen = self._mounted.tree.chosen.get(source.id)
            if chosen is not None:
                chosen.version = found.entry.version
                self._mounted.tree.choose(source, chosen)
            staged = self._mounted.staged(source)
            if staged is not None:
                staged.base = found.version
                self._mounted.staging.save(staged)
            self._mounted.tree.uploaded(source, found)


def check_name(name: str) -> None:
    # Four bytes is the most a character takes: most names need no counting.
    if len(name) > _NAME_MAX // 4 and len(os.fsencode(name)) > _NAME_MAX:
        raise FsError(errno.ENAMETOOLONG)
