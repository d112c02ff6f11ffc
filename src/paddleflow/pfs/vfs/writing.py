"""Writing: a whole local copy for each file that is written, and its upload when it is closed or synced.

Until the upload the staged file is the truth for everybody on this mount and nobody elsewhere; with the upload the rest
of the world sees all of it at once. An upload that fails is told to whoever closes or syncs; the content stays staged,
and is tried again at the next sync, by ``catch_up``, by a successor and by the next mount.

Each file uploads one at a time, and nothing renames or deletes a file while it uploads.
"""

from __future__ import annotations

import ctypes
import errno
import logging
import os
from typing import Final

from paddleflow.domain.errors import Denied, Invalid, NotFound, PaddleFlowError, Stale
from paddleflow.pfs.attrs import Caller, Opened
from paddleflow.pfs.backstage import Found, ObjectVersion
from paddleflow.pfs.errnos import FsError
from paddleflow.pfs.later import start
from paddleflow.pfs.nodes import Node
from paddleflow.pfs.readahead import Pattern
from paddleflow.pfs.staging import Staged, copy_content
from paddleflow.pfs.vfs.held import owner_to_set
from paddleflow.pfs.vfs.mounted import Handle, Mounted, OpenFile
from paddleflow.pfs.vfs.reading import Reading
from paddleflow.pfs.vfs.turns import Turn

_log = logging.getLogger(__name__)

_TRIES: Final = 4
_COPY_INLINE: Final = 256 << 10
"""Copying more than this would keep other requests waiting."""
_COMPARED_AT_ONCE: Final = 8 << 20
_libc = ctypes.CDLL(None, use_errno=True)


class Writing:
    def __init__(self, mounted: Mounted, reading: Reading) -> None:
        self._mounted = mounted
        self._reading = reading
        self._left_behind: list[Staged] = []
        """Dirty files of an earlier mount that are not in the store yet."""
        self._catching_up = Turn()

    # -- opening ----------------------------------------------------------------------------------------------------

    async def open(self, node: Node, flags: int, unique: int) -> Opened:
        staged, is_fresh = await self.stage(node, keep=not flags & os.O_TRUNC)
        try:
            opened = self._mounted.grant(node, _writer(flags), self._reading.through(node), staged.data, unique)
        except OSError:
            if is_fresh:
                self._take_back(node)  # else an open that failed would upload what it emptied
            raise
        if flags & os.O_TRUNC:
            self.empty(node)
        return opened

    def create(self, node: Node, mode: int | None, caller: Caller, flags: int, unique: int) -> Opened:
        """A new file, here alone until its first upload. ``mode`` None: the store does not hold such a thing."""
        uid, gid = owner_to_set(caller) if mode is not None else (None, None)
        staged = self._take(node, Staged(data=self._room(), node=node.id, path="", mode=mode, uid=uid, gid=gid))
        try:
            return self._mounted.grant(node, _writer(flags), self._reading.through(node), staged.data, unique)
        except OSError:
            self._take_back(node)
            raise

    async def stage(self, node: Node, *, keep: bool) -> tuple[Staged, bool]:
        """Give a file local content of its own, unless it has: a copy of what it shows, or nothing. And whether it had
        none."""
        for _ in range(_TRIES):
            await self._reading.refresh_for_open(node)
            file = self._mounted.file(node)
            try:
                async with file.turn:
                    if file.staged is not None:
                        return file.staged, False
                    if node.known is None or node.known.version is None:
                        continue
                    self._refuse_if_read(node, file)
                    staged = await self._copy(node, file, node.known.version, keep=keep)
                    if staged is not None:
                        return staged, True
            finally:
                self._mounted.settle(file)
        raise Stale(f"{self._mounted.nodes.path(node)} kept changing while it was opened")

    def _refuse_if_read(self, node: Node, file: OpenFile) -> None:
        """It is open on a file of the cache, which must never be written: the writer gets another node."""
        is_open_elsewhere = node.is_inherited and self._mounted.clashes(node.id, "", True)
        if self._mounted.options.passthrough and (file.handles or is_open_elsewhere):
            raise self._mounted.another_node(node)

    async def _copy(self, node: Node, file: OpenFile, version: ObjectVersion, *, keep: bool) -> Staged | None:
        """None when it became another version, or is being read, while we waited."""
        data = self._room()
        staged = self._like(node, data, version)
        try:
            if keep and version.size and not await self._fill(node, version, data):
                os.unlink(data)
                return None
            if file.handles:
                self._refuse_if_read(node, file)
        except BaseException:
            os.unlink(data)
            raise
        if keep:
            modified = self._mounted.tree.attr(node).mtime_ns
            os.utime(data, ns=(modified, modified))
            staged.uploaded = (modified, version.size)
        return self._take(node, staged)

    def _like(self, node: Node, data: str, version: ObjectVersion) -> Staged:
        """With the looks of the file as it is: a successor cannot ask anybody before the next upload."""
        assert node.known is not None
        held = node.known.entry
        return Staged(
            data=data, node=node.id, path="", base=version, is_stored=True, mode=held.mode, uid=held.uid, gid=held.gid
        )

    async def _fill(self, node: Node, version: ObjectVersion, data: str) -> bool:
        cached = await self._reading.fetch_whole(node, version)
        if cached is None:
            return False
        if not cached.is_complete:
            return await self._fill_past_cache(version, data)
        try:
            if version.size <= _COPY_INLINE:
                copy_content(cached.path, data, version.size)
            else:
                await self._mounted.aside(lambda: copy_content(cached.path, data, version.size))
        except Stale:
            return False  # evicted between fetching and copying
        return node.known is not None and node.known.version == version

    async def _fill_past_cache(self, version: ObjectVersion, data: str) -> bool:
        """The cache is full: straight from the store, a piece at a time."""
        fd = os.open(data, os.O_WRONLY | os.O_CLOEXEC)
        try:
            for begin in range(0, version.size, 8 << 20):
                piece = await self._mounted.backstage.read(version, begin, min(8 << 20, version.size - begin))
                os.pwrite(fd, piece, begin)
        except (Stale, NotFound):
            return False
        finally:
            os.close(fd)
        return True

    def _room(self) -> str:
        return self._mounted.staging.room()

    def _take(self, node: Node, staged: Staged) -> Staged:
        staged.path = self._mounted.nodes.path(node)
        try:
            self._mounted.staging.save(staged)
        except OSError:
            self._mounted.staging.discard(staged)
            raise
        self._mounted.file(node).staged = staged
        self._mounted.file(node).version = None
        node.is_staged = True
        node.pins += 1
        return staged

    def _take_back(self, node: Node) -> None:
        """Staged for an open that failed; unless somebody else has it open by now."""
        file = self._mounted.file(node)
        if not file.handles:
            self._discard(file)
            self._mounted.settle(file)

    # -- changing ---------------------------------------------------------------------------------------------------

    def write(self, node: Node, start_at: int, data: memoryview) -> int:
        staged = self._need_staged(node)
        done = 0
        while done < len(data):
            done += os.pwrite(staged.descriptor(), data[done:], start_at + done)
        staged.uploaded = None
        return done

    async def truncate(self, node: Node, size: int) -> None:
        staged = self._mounted.staged(node)
        if staged is None:
            staged, _ = await self.stage(node, keep=size > 0)
        self._cut(staged, size)
        file = self._mounted.file(node)
        if not any(handle.is_writable for handle in file.handles.values()):
            await self.upload(node)  # no close will follow that could tell of an error
            self.unstage(file)

    def allocate(self, node: Node, mode: int, start_at: int, size: int) -> None:
        staged = self._need_staged(node)
        arguments = ctypes.c_int(mode), ctypes.c_int64(start_at), ctypes.c_int64(size)
        if _libc.fallocate(staged.descriptor(), *arguments):
            number = ctypes.get_errno()
            raise FsError(errno.ENOTSUP if number == errno.ENOSYS else number)
        staged.uploaded = None

    def _need_staged(self, node: Node) -> Staged:
        staged = self._mounted.staged(node)
        if staged is None:
            raise FsError(errno.EBADF)
        return staged

    def empty(self, node: Node) -> None:
        self._cut(self._need_staged(node), 0)

    def _cut(self, staged: Staged, size: int) -> None:
        os.ftruncate(staged.descriptor(), size)
        staged.uploaded = None

    # -- uploading --------------------------------------------------------------------------------------------------

    async def flush(self, node: Node, number: int) -> None:
        """A handle is closed, perhaps not for the last time."""
        file = self._mounted.files.get(node.id)
        if file is None or file.staged is None or file.staged.is_orphan:
            return
        handle = file.handles.get(number)
        if handle is not None and not handle.is_writable:
            return
        if not self._mounted.options.write_back:
            await self.upload(node)
        elif file.staged.is_dirty():
            staged = file.staged
            await self._mounted.aside(lambda: self._mounted.staging.save(staged, is_lasting=True))

    async def release(self, node: Node, number: int) -> None:
        """The handle is gone, with all memory that was mapped through it. Nobody hears of an error any more, so it is
        logged; the content stays staged and is tried again."""
        file = self._mounted.ungrant(node, number)
        if file is None or file.handles:
            return
        if file.staged is not None and file.staged.is_orphan:
            self._discard(file)
        elif file.staged is not None:
            if self._mounted.options.write_back:
                start(self._upload_and_unstage(file), _ended)
                return
            await self._upload_and_unstage(file)
        self._mounted.settle(file)

    async def _upload_and_unstage(self, file: OpenFile) -> None:
        try:
            await self.upload(file.node)
        except (PaddleFlowError, OSError) as error:
            _log.error("%s is not in the store yet: %s", self._mounted.nodes.path(file.node), error)
        self.unstage(file)

    async def upload(self, node: Node) -> None:
        """Make the store have what is staged; nothing to do when it has."""
        file = self._mounted.files.get(node.id)
        if file is None or file.staged is None:
            return
        async with file.turn:
            staged = file.staged
            if staged is None or staged.is_orphan or not staged.is_dirty():
                return
            if any(handle.may_map for handle in file.handles.values()):
                # Writes through memory show in the file's time only after its pages were written out once.
                await self._mounted.aside(lambda: os.fdatasync(staged.descriptor()))
            sealed = staged.seal()
            is_time_set, staged.is_time_set = staged.is_time_set, False
            try:
                found = await self._put(node, staged, sealed[0] if is_time_set else None)
            except BaseException:
                staged.is_time_set = is_time_set
                raise
            staged.base, staged.is_stored, staged.uploaded = found.version, True, sealed
            self._mounted.staging.save(staged)
            self._keep_time(node, found, sealed[0])
            self._mounted.tree.uploaded(node, found)

    async def _put(self, node: Node, staged: Staged, modified_ns: int | None) -> Found:
        backstage, path = self._mounted.backstage, self._mounted.nodes.path(node)
        before = node.known.entry if node.known is not None else None
        traits = await self._mounted.tree.traits(node)
        mode, uid, gid = staged.mode, staged.uid, staged.gid
        if before is not None and traits.holds_modes:
            mode = before.mode if mode is None else mode
            uid = before.uid if uid is None else uid
            gid = before.gid if gid is None else gid
        xattrs = await backstage.xattrs(path) if before is not None and traits.holds_xattrs else {}
        found = await backstage.put(path, staged.data, mode=mode if traits.holds_modes else None)
        if not traits.holds_modes:
            return found
        for name, value in xattrs.items():
            await backstage.set_xattr(path, name, value)
        wrong_owner = (uid not in {None, found.entry.uid}) or (gid not in {None, found.entry.gid})
        if not wrong_owner and modified_ns is None:
            return found
        try:
            await backstage.set_modes(path, uid=uid, gid=gid, modified_ns=modified_ns)
        except (Denied, Invalid) as error:
            # Content is safe and complete; only root may give files away, and not every server lets times be set.
            _log.warning("owner or time of %s could not be set: %s", path, error)
        return await backstage.stat(path)

    def _keep_time(self, node: Node, found: Found, modified_ns: int) -> None:
        """A store that holds no times stamps the upload; to programs here the file keeps the time it was written."""
        if not found.traits.holds_modes:
            chosen = self._mounted.tree.chosen_for(node)
            chosen.modified_ns, chosen.version = modified_ns, found.entry.version
            self._mounted.tree.choose(node, chosen)

    def unstage(self, file: OpenFile) -> None:
        """The store has it and nobody has it open: from here on it is an ordinary file again."""
        staged = file.staged
        if staged is None or file.handles or file.turn.is_taken or staged.is_dirty() or not file.node.is_linked:
            return
        self._discard(file)
        self._mounted.settle(file)

    def _discard(self, file: OpenFile) -> None:
        assert file.staged is not None
        self._mounted.staging.discard(file.staged)
        file.staged = None
        file.node.is_staged = False
        file.node.pins -= 1

    def orphan(self, node: Node) -> None:
        """Its name was taken away: it is never uploaded, and goes with its last handle."""
        file = self._mounted.files.get(node.id)
        if file is None or file.staged is None:
            return
        if file.handles:
            file.staged.is_orphan = True
            self._mounted.staging.save(file.staged)
        else:
            self._discard(file)
            self._mounted.settle(file)

    # -- after a death ----------------------------------------------------------------------------------------------

    def inherit(self, is_successor: bool) -> None:
        """What earlier processes left staged: a successor goes on with it; a new mount uploads or sets it aside."""
        for staged in list(self._mounted.staging.load()):
            node = self._mounted.nodes.find(staged.node) if is_successor else None
            if node is None:
                if staged.is_orphan or not staged.is_dirty():
                    self._mounted.staging.discard(staged)
                else:
                    self._left_behind.append(staged)
                continue
            self._mounted.file(node).staged = staged
            node.is_staged = True
            node.pins += 1
        for number in list(self._mounted.nodes.opens):
            self._mounted.inherit(self._mounted.nodes.get(number))
        for file in list(self._mounted.files.values()):
            if file.staged is not None and file.staged.is_orphan and not file.handles:
                self._discard(file)

    async def catch_up(self) -> int:
        """Upload whatever is staged, closed and not in the store yet; how many files still are not."""
        async with self._catching_up:
            waiting = [file for file in self._mounted.files.values() if file.staged is not None and not file.handles]
            for file in waiting:
                await self._upload_and_unstage(file)
            for staged in list(self._left_behind):
                try:
                    await self._bring_in(staged)
                except PaddleFlowError as error:
                    _log.error("%s of an earlier mount is not in the store yet: %s", staged.path, error)
                else:
                    self._left_behind.remove(staged)
            return self.unsaved

    def close_handles(self) -> None:
        """The mount is gone, so nothing is open: a close that was under way then is never asked for."""
        for file in list(self._mounted.files.values()):
            for number in list(file.handles):
                self._mounted.ungrant(file.node, number)
            if file.staged is not None and file.staged.is_orphan:
                self._discard(file)

    @property
    def unsaved(self) -> int:
        files = self._mounted.files.values()
        return len(self._left_behind) + sum(
            1 for file in files if file.staged is not None and not file.handles and not file.staged.is_orphan
        )

    def close(self) -> None:
        for file in self._mounted.files.values():
            if file.staged is not None and file.staged.fd >= 0:
                os.close(file.staged.fd)
                file.staged.fd = -1

    async def _bring_in(self, staged: Staged) -> None:
        backstage = self._mounted.backstage
        try:
            now = (await backstage.stat(staged.path)).version
        except NotFound:
            now = None
        if now != (staged.base if staged.is_stored else None):
            if now is not None and await self._is_in_store(now, staged):
                self._mounted.staging.discard(staged)  # uploaded, and nobody lived to hear of it
                return
            kept = self._mounted.staging.set_aside(staged)
            _log.error("%s changed in the store since it was written here; what was written is %s", staged.path, kept)
            return
        await backstage.put(staged.path, staged.data, mode=staged.mode)
        self._mounted.staging.discard(staged)

    async def _is_in_store(self, version: ObjectVersion, staged: Staged) -> bool:
        if version.size != staged.stat().st_size:
            return False
        for begin in range(0, version.size, _COMPARED_AT_ONCE):
            size = min(_COMPARED_AT_ONCE, version.size - begin)
            if await self._mounted.backstage.read(version, begin, size) != os.pread(staged.descriptor(), size, begin):
                return False
        return True


def _writer(flags: int) -> Handle:
    """Also for a file made and opened for reading: somebody has to hear whether it could be made."""
    may_map = flags & os.O_ACCMODE == os.O_RDWR
    return Handle(is_writable=True, may_map=may_map, pattern=Pattern())


def _ended(_: None, error: BaseException | None) -> None:
    if error is not None:
        _log.error("an upload in the background ended badly", exc_info=error)
