"""Attributes: asking for them, setting them, extended ones, and how much room there is."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from paddleflow.domain.errors import NotFound
from paddleflow.pfs.attrs import Attr, Wish
from paddleflow.pfs.errnos import FsError
from paddleflow.pfs.nodes import Node
from paddleflow.pfs.staging import Staged
from paddleflow.pfs.vfs.held import Chosen
from paddleflow.pfs.vfs.mounted import Mounted
from paddleflow.pfs.vfs.writing import Writing

_BLOCK: Final = 4096
_ENDLESS: Final = 1 << 50
"""What object storage shows as its size, in bytes: nobody knows one."""
_NAME_MAX: Final = 255
_MANY: Final = 1 << 32


class Attributes:
    def __init__(self, mounted: Mounted, writing: Writing) -> None:
        self._mounted = mounted
        self._writing = writing

    async def get(self, node: Node) -> Attr:
        await self._mounted.tree.refresh(node)
        return self._mounted.attr(node)

    async def set(self, node: Node, wish: Wish) -> Attr:
        await self._mounted.tree.refresh(node)
        if wish.size is not None:
            if not stat.S_ISREG(self._mounted.attr(node).mode):
                raise FsError(errno.EISDIR if self._mounted.attr(node).is_directory else errno.EINVAL)
            await self._writing.truncate(node, wish.size)
            await self._mounted.tree.refresh(node)
        rest = replace(wish, size=None)
        if rest != Wish():
            await self._set_rest(node, rest)
        return self._mounted.attr(node)

    async def _set_rest(self, node: Node, wish: Wish) -> None:
        """Modes, owner, times: to the store where it holds them, else remembered here."""
        tree = self._mounted.tree
        traits = await tree.traits(node)
        staged = self._mounted.staged(node)
        if not traits.holds_modes or not node.is_linked:
            self._remember(node, staged, wish)
            return
        if staged is not None:
            self._stage_wish(staged, wish)
            if not staged.is_stored:
                return
        if wish.mode is not None or wish.uid is not None or wish.gid is not None or wish.mtime_ns is not None:
            await self._set_in_store(node, staged, wish)

    async def _set_in_store(self, node: Node, staged: Staged | None, wish: Wish) -> None:
        path = self._mounted.nodes.path(node)
        mode = None if wish.mode is None else stat.S_IMODE(wish.mode)
        # A staged file brings its time along when it is uploaded; setting it before would make a version of its own.
        modified = wish.mtime_ns if staged is None else None
        if mode is None and wish.uid is None and wish.gid is None and modified is None:
            return
        async with self._mounted.file(node).turn:
            await self._mounted.backstage.set_modes(path, mode=mode, uid=wish.uid, gid=wish.gid, modified_ns=modified)
            found = await self._mounted.backstage.stat(path)
            if staged is not None:
                staged.base = found.version
                self._mounted.staging.save(staged)
            if node.parent is None:
                node.known, node.known_at, node.attr = found, self._mounted.tree.clock(), None
            elif node.is_linked and path == self._mounted.nodes.path(node):
                self._mounted.tree.directory(node).touched_ns = 0
                node.attr = None
                self._mounted.tree.uploaded(node, found)
        self._mounted.settle(self._mounted.file(node))

    def _stage_wish(self, staged: Staged, wish: Wish) -> None:
        if wish.mode is not None:
            staged.mode = stat.S_IMODE(wish.mode)
        staged.uid = staged.uid if wish.uid is None else wish.uid
        staged.gid = staged.gid if wish.gid is None else wish.gid
        if wish.mtime_ns is not None or wish.atime_ns is not None:
            staged.set_times(wish.atime_ns, wish.mtime_ns)
            if wish.mtime_ns is not None and staged.uploaded is not None:
                staged.uploaded = None  # the store is to have this time, which goes with an upload
        self._mounted.staging.save(staged)

    def _remember(self, node: Node, staged: Staged | None, wish: Wish) -> None:
        chosen = self._mounted.tree.chosen_for(node)
        if wish.mode is not None:
            chosen.mode = stat.S_IMODE(wish.mode)
        chosen.uid = chosen.uid if wish.uid is None else wish.uid
        chosen.gid = chosen.gid if wish.gid is None else wish.gid
        if staged is None:
            self._remember_times(node, chosen, wish)
        elif wish.mtime_ns is not None or wish.atime_ns is not None:
            staged.set_times(wish.atime_ns, wish.mtime_ns)
            self._mounted.staging.save(staged)
        self._mounted.tree.choose(node, chosen)

    def _remember_times(self, node: Node, chosen: Chosen, wish: Wish) -> None:
        if wish.mtime_ns is None and wish.atime_ns is None:
            return
        version = "" if node.known is None else node.known.entry.version
        if chosen.version != version:
            chosen.modified_ns = chosen.accessed_ns = None
            chosen.version = version
        chosen.modified_ns = chosen.modified_ns if wish.mtime_ns is None else wish.mtime_ns
        chosen.accessed_ns = chosen.accessed_ns if wish.atime_ns is None else wish.atime_ns
        if wish.mtime_ns is not None:
            self._mounted.tree.directory(node).touched_ns = 0

    async def room(self, node: Node) -> tuple[int, int, int, int, int, int, int, int]:
        """blocks, bfree, bavail, files, ffree, bsize, namelen, frsize."""
        usage = await self._mounted.backstage.usage(self._mounted.nodes.path(node))
        total, free = (_ENDLESS, _ENDLESS) if usage is None else (usage.total, usage.free)
        blocks, left = total // _BLOCK, free // _BLOCK
        return blocks, left, left, _MANY, _MANY, _BLOCK, _NAME_MAX, _BLOCK

    async def get_xattr(self, node: Node, name: str) -> bytes:
        try:
            return (await self._xattrs(node))[name]
        except KeyError:
            raise FsError(errno.ENODATA) from None

    async def list_xattrs(self, node: Node) -> Sequence[str]:
        traits = await self._mounted.tree.traits(node)
        return list(await self._xattrs(node)) if traits.holds_xattrs else []

    async def set_xattr(self, node: Node, name: str, value: bytes, flags: int) -> None:
        held = await self._xattrs(node)
        if flags & os.XATTR_CREATE and name in held:
            raise FsError(errno.EEXIST)
        if flags & os.XATTR_REPLACE and name not in held:
            raise FsError(errno.ENODATA)
        await self._writing.upload(node)  # a new file must be there before anything can be attached to it
        await self._mounted.backstage.set_xattr(self._mounted.nodes.path(node), name, value)

    async def remove_xattr(self, node: Node, name: str) -> None:
        if name not in await self._xattrs(node):
            raise FsError(errno.ENODATA)
        try:
            await self._mounted.backstage.remove_xattr(self._mounted.nodes.path(node), name)
        except NotFound as error:
            raise FsError(errno.ENODATA) from error

    async def _xattrs(self, node: Node) -> dict[str, bytes]:
        if not (await self._mounted.tree.traits(node)).holds_xattrs:
            raise FsError(errno.ENOTSUP)
        staged = self._mounted.staged(node)
        if not node.is_linked or (staged is not None and not staged.is_stored):
            return {}
        return dict(await self._mounted.backstage.xattrs(self._mounted.nodes.path(node)))
