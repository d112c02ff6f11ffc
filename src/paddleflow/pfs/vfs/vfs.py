"""Vfs: every file operation of a mount, put together from its parts. It knows nothing of FUSE and nothing of stores."""

from __future__ import annotations

import errno
import os
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import TypeVar

from paddleflow.domain.errors import Stale
from paddleflow.pfs.attrs import Attr, Caller, DirectoryItem, Entry, FileRange, Opened, OpenMode, Wish
from paddleflow.pfs.backstage import Backstage, ObjectVersion
from paddleflow.pfs.errnos import FsError, errno_of
from paddleflow.pfs.journal import Answer, Journal
from paddleflow.pfs.nodes import Node, Nodes
from paddleflow.pfs.options import MountOptions
from paddleflow.pfs.staging import Staging
from paddleflow.pfs.vfs.attributes import Attributes
from paddleflow.pfs.vfs.directories import Directories
from paddleflow.pfs.vfs.mounted import Aside, CachedContent, Mounted, on_the_spot
from paddleflow.pfs.vfs.names import Names, check_name
from paddleflow.pfs.vfs.open_retries import OpenRetries
from paddleflow.pfs.vfs.reading import Reading
from paddleflow.pfs.vfs.tree import Kernel, Tree
from paddleflow.pfs.vfs.writing import Writing

T = TypeVar("T")

_GENERATION_SHIFT = 40
"""Handles of one process are below the next one's: 2^40 opens each, and twenty-two bits of processes."""
_ABSENT = Attr(0, 0, 0, 0, 0, 0, 0, 0)


class SilentKernel:
    """No kernel to tell anything."""

    def inval_node(self, node: int) -> None:
        """Nothing keeps it."""

    def inval_entry(self, parent: int, name: str) -> None:
        """Nothing keeps it."""


class Vfs:
    """``generation``: how many processes served this mount before, with this same ``state_dir``. The kernel knows nodes
    and handles that they gave.

    ``clashes(node, path, is_writable)``: the kernel has this node open, since before this process, with another backing
    file than this one (with any, when the path is empty). ``aside`` does what blocks. Start ``catch_up`` once at the
    beginning, and now and then: it uploads what closing could not.
    """

    request: tuple[int, bool] = (0, False)

    def __init__(
        self,
        backstage: Backstage,
        state_dir: str,
        options: MountOptions,
        *,
        clock: Callable[[], float],
        find: Callable[[ObjectVersion], CachedContent | None],
        kernel: Kernel | None = None,
        generation: int = 0,
        clashes: Callable[[int, str, bool], bool] = lambda _node, _path, _is_writable: False,
        aside: Aside = on_the_spot,
    ) -> None:
        self._options = options
        self._is_read_only = options.read_only or options.dataset
        is_successor = generation > 0
        os.makedirs(state_dir, mode=0o700, exist_ok=True)
        if not is_successor:
            _forget_older_mounts(state_dir)
        nodes = self._nodes = Nodes(f"{state_dir}/nodes", is_successor=is_successor)
        self._journal = Journal(f"{state_dir}/journal", is_successor=is_successor)
        self._tree = Tree(nodes, backstage, options, clock, kernel or SilentKernel())
        nodes.on_drop = self._tree.dropped
        self._mounted = Mounted(
            nodes=nodes,
            tree=self._tree,
            backstage=backstage,
            staging=Staging(state_dir),
            options=options,
            find=find,
            clashes=clashes,
            aside=aside,
            files={},
            next_handle=(generation + 1) << _GENERATION_SHIFT,
        )
        self._directories = Directories(self._mounted)
        self._reading = Reading(self._mounted)
        self._writing = Writing(self._mounted, self._reading)
        self._attributes = Attributes(self._mounted, self._writing)
        self._names = Names(self._mounted, self._directories, self._reading, self._writing)
        self._retries = OpenRetries(f"{state_dir}/retries", self._mounted, self._writing, self._open)
        self._tree.inherit()
        self._writing.inherit(is_successor)
        self._retries.inherit(is_successor)

    async def catch_up(self) -> int:
        """Upload what is closed and not in the store yet; how many files still are not."""
        self._retries.expire()
        return await self._writing.catch_up()

    async def finish(self) -> int:
        """Nothing can be open any more: upload all that is not in the store; how many files are left to the next."""
        self._writing.close_handles()
        return await self._writing.catch_up()

    @property
    def unsaved(self) -> int:
        """Files whose content the store does not have yet."""
        return self._writing.unsaved

    def counters(self) -> dict[str, int]:
        """What was served, and from where, since this process began."""
        return asdict(self._mounted.served) | {"unsaved": self.unsaved}

    def doubt_everything(self) -> None:
        """Believe nothing that was heard before: another store may answer from now on."""
        self._tree.doubt_everything()

    def close(self) -> None:
        """Give back descriptors. What is staged stays for the next mount."""
        self._reading.close()
        self._writing.close()
        self._nodes.close()
        self._journal.close()

    # -- names ------------------------------------------------------------------------------------------------------

    async def lookup(self, parent: int, name: str, caller: Caller) -> Entry:
        above = self._nodes.get(parent)
        check_name(name)
        if not above.is_linked and above.parent is not None:
            raise FsError(errno.ESTALE)  # a directory that is gone: what is there now is another
        node = await self._retries.look_up(caller.pid, above, name) or await self._tree.find(above, name)
        if node is not None:
            return self._entry(node)
        ttl = self._tree.negative_ttl(above, name)
        if not ttl:
            raise FsError(errno.ENOENT)
        return Entry(0, _ABSENT, ttl, 0.0)

    def forget(self, node: int, count: int) -> None:
        self._nodes.forget(node, count)

    async def create(self, parent: int, name: str, mode: int, flags: int, caller: Caller) -> tuple[Entry, Opened]:
        unique, _ = self.request
        above = self._changeable(parent)
        made: list[Opened] = []

        async def act(tolerant: bool) -> Node:
            try:
                node, opened = await self._names.create((above, name), mode, flags, caller, unique, tolerant)
            except (FsError, Stale) as error:
                self._retries.expect(error, caller.pid, above, name, flags)
                raise
            made.append(opened)
            return node

        node = await self._once("create", f"{parent} {name}", act, lambda: made[0].handle)
        return self._entry(node), made[0] if made else self._opened_before(node, unique)

    async def mknod(self, parent: int, name: str, mode: int, caller: Caller) -> Entry:
        above = self._changeable(parent)
        return self._entry(
            await self._once(
                "mknod", f"{parent} {name}", lambda tolerant: self._names.mknod((above, name), mode, caller, tolerant)
            )
        )

    async def mkdir(self, parent: int, name: str, mode: int, caller: Caller) -> Entry:
        above = self._changeable(parent)
        return self._entry(
            await self._once(
                "mkdir", f"{parent} {name}", lambda tolerant: self._names.mkdir((above, name), mode, caller, tolerant)
            )
        )

    async def symlink(self, parent: int, name: str, target: str, caller: Caller) -> Entry:
        above = self._changeable(parent)
        return self._entry(
            await self._once(
                "symlink",
                f"{parent} {name}",
                lambda tolerant: self._names.symlink((above, name), target, caller, tolerant),
            )
        )

    async def unlink(self, parent: int, name: str, caller: Caller) -> None:
        above = self._changeable(parent)
        await self._once("unlink", f"{parent} {name}", lambda tolerant: self._names.unlink(above, name, tolerant))

    async def rmdir(self, parent: int, name: str, caller: Caller) -> None:
        above = self._changeable(parent)
        await self._once("rmdir", f"{parent} {name}", lambda tolerant: self._names.rmdir(above, name, tolerant))

    async def rename(self, parent: int, name: str, new_parent: int, new_name: str, flags: int, caller: Caller) -> None:
        old = (self._changeable(parent), name)
        new = (self._changeable(new_parent), new_name)
        what = f"{parent} {new_parent} {name}/{new_name}"
        await self._once("rename", what, lambda tolerant: self._names.rename(old, new, flags, tolerant))

    async def link(self, node: int, new_parent: int, new_name: str) -> Entry:
        """No store has one object under two names."""
        raise FsError(errno.EROFS if self._is_read_only else errno.EPERM)

    async def readlink(self, node: int) -> str:
        here = self._nodes.get(node)
        await self._tree.refresh(here)
        if here.known is None or here.known.entry.link_target is None:
            raise FsError(errno.EINVAL)
        return here.known.entry.link_target

    # -- attributes -------------------------------------------------------------------------------------------------

    async def getattr(self, node: int, handle: int | None) -> tuple[Attr, float]:
        here = self._nodes.get(node)
        attr = await self._attributes.get(here)
        return attr, self._tree.ttl(here)

    async def setattr(self, node: int, handle: int | None, wish: Wish, caller: Caller) -> tuple[Attr, float]:
        here = self._changeable(node)
        attr = await self._attributes.set(here, wish)
        return attr, self._tree.ttl(here)

    async def access(self, node: int, mask: int, caller: Caller) -> None:
        """The kernel compares modes and owners itself; left is what this mount forbids to everybody."""
        if mask & os.W_OK and self._is_read_only:
            raise FsError(errno.EROFS)

    async def statfs(self, node: int) -> tuple[int, int, int, int, int, int, int, int]:
        return await self._attributes.room(self._nodes.get(node))

    async def getxattr(self, node: int, name: str) -> bytes:
        return await self._attributes.get_xattr(self._nodes.get(node), name)

    async def listxattr(self, node: int) -> Sequence[str]:
        return await self._attributes.list_xattrs(self._nodes.get(node))

    async def setxattr(self, node: int, name: str, value: bytes, flags: int) -> None:
        await self._attributes.set_xattr(self._changeable(node), name, value, flags)

    async def removexattr(self, node: int, name: str) -> None:
        await self._attributes.remove_xattr(self._changeable(node), name)

    # -- files ------------------------------------------------------------------------------------------------------

    async def open(self, node: int, flags: int, caller: Caller) -> Opened:
        here = self._nodes.get(node)
        unique, is_resent = self.request
        if is_resent and self._was_opened(here, unique):
            return self._opened_before(here, unique)
        ready = self._retries.take(caller.pid, here, flags, unique)
        if ready is not None:
            return ready
        try:
            return await self._open(here, flags, unique)
        except (FsError, Stale) as error:
            self._retries.expect(error, caller.pid, here.parent, here.name, flags)
            raise

    async def _open(self, node: Node, flags: int, unique: int) -> Opened:
        if flags & os.O_ACCMODE == os.O_RDONLY and not flags & os.O_TRUNC:
            return await self._reading.open(node, unique)
        self._changeable(node.id)
        return await self._writing.open(node, flags, unique)

    def not_passed_through(self, node: int, handle: int) -> None:
        here = self._nodes.get(node)
        file = self._mounted.file(here)
        file.is_refused = True
        file.mode, file.backing = OpenMode.DIRECT, ""

    async def read(self, node: int, handle: int, start: int, size: int) -> bytes | FileRange:
        return await self._reading.read(self._nodes.get(node), handle, start, size)

    async def write(self, node: int, handle: int, start: int, data: memoryview) -> int:
        return self._writing.write(self._nodes.get(node), start, data)

    async def flush(self, node: int, handle: int) -> None:
        await self._writing.flush(self._nodes.get(node), handle)

    async def fsync(self, node: int, handle: int, data_only: bool) -> None:
        """In the store, whatever the mount's options say."""
        await self._writing.upload(self._nodes.get(node))

    async def release(self, node: int, handle: int) -> None:
        here = self._nodes.find(node)
        if here is not None:
            await self._writing.release(here, handle)

    async def fallocate(self, node: int, handle: int, mode: int, start: int, size: int) -> None:
        self._writing.allocate(self._changeable(node), mode, start, size)

    # -- directories ------------------------------------------------------------------------------------------------

    async def opendir(self, node: int) -> int:
        return await self._directories.opendir(self._nodes.get(node))

    async def readdir(self, node: int, handle: int, offset: int, plus: bool) -> Sequence[DirectoryItem]:
        return await self._directories.readdir(self._nodes.get(node), handle, offset)

    def remember(self, parent: int, item: DirectoryItem) -> Entry:
        return self._directories.remember(self._nodes.get(parent), item)

    async def releasedir(self, node: int, handle: int) -> None:
        self._directories.releasedir(handle)

    # -- what all of them need --------------------------------------------------------------------------------------

    def _changeable(self, node: int) -> Node:
        if self._is_read_only:
            raise FsError(errno.EROFS)
        return self._nodes.get(node)

    def _entry(self, node: Node) -> Entry:
        node.lookups += 1
        ttl = self._tree.ttl(node)
        # A node that a retried open holds may have lost its name meanwhile.
        return Entry(node.id, self._mounted.attr(node), ttl if node.is_linked else 0.0, ttl)

    def _was_opened(self, node: Node, unique: int) -> bool:
        return any(request == unique for request, _ in self._nodes.opens.get(node.id, {}).values())

    def _opened_before(self, node: Node, unique: int) -> Opened:
        """The answer that a predecessor did not live to give."""
        file = self._mounted.file(node)
        assert file.mode is not None
        for handle, (request, _) in self._nodes.opens.get(node.id, {}).items():
            if request == unique:
                return Opened(handle, file.mode, file.backing, False, file.handles[handle].is_writable)
        raise FsError(errno.ESTALE)

    async def _once(
        self,
        what: str,
        which: str,
        act: Callable[[bool], Awaitable[Node | None]],
        handle: Callable[[], int] = lambda: 0,
    ) -> Node:
        """Do a change once, however often the kernel asks for it. The node is the root's for changes that make none."""
        unique, is_resent = self.request
        answer = self._journal.answer_of(unique) if is_resent else None
        if answer is not None:
            if answer.errno:
                raise FsError(answer.errno)
            return self._nodes.get(answer.node) if answer.node else self._nodes.root
        tolerant = is_resent and self._journal.was_begun(unique)
        if unique:
            self._journal.begin(unique, f"{what} {which}")
        try:
            node = await act(tolerant)
        except Exception as error:
            if unique:
                self._journal.done(unique, Answer(errno=errno_of(error)))
            raise
        if unique:
            self._journal.done(unique, Answer(0, 0 if node is None else node.id, handle()))
        return self._nodes.root if node is None else node


def _forget_older_mounts(state_dir: str) -> None:
    """Runs before anything else: a successor of this process must not take an older mount's logs for its predecessor's.
    Otherwise files that nobody has open would wait for a close instead of being uploaded."""
    for name in ("nodes", "journal", "retries"):
        with suppress(FileNotFoundError):
            os.unlink(f"{state_dir}/{name}")
