"""Opening for reading, and reading what the kernel does not read by itself.

A version that is whole and verified in the cache is passed through: the kernel reads the cache's file and we are not
asked again. A small one that is not there is fetched inside the open. A large one is read through us, from the cache
file as far as it has come, with the next bytes asked for ahead of the reader; whoever opens it when it is whole gets
it passed through. What the cache has no room for is read past it.
"""

from __future__ import annotations

import errno
import logging
from collections import OrderedDict
from typing import Final, NamedTuple

from paddleflow.domain.errors import NotFound, PaddleFlowError, Stale
from paddleflow.pfs.attrs import FileRange, Opened, OpenMode
from paddleflow.pfs.backstage import Cached, ObjectVersion
from paddleflow.pfs.cache import Stamp, stamp_matches
from paddleflow.pfs.errnos import FsError
from paddleflow.pfs.later import start
from paddleflow.pfs.nodes import Node
from paddleflow.pfs.readahead import Pattern, advance, parts
from paddleflow.pfs.vfs.mounted import CachedContent, Handle, Mounted, OpenFile

_log = logging.getLogger(__name__)

_TRIES: Final = 4
"""Times that an object may change in the store while it is being opened or read, before its reader is told."""
_LOOKED_UP_AFTER_S: Final = 50.0
"""Then the cache itself is asked again, and so learns that the file is in use."""
_KEPT_OPEN: Final = 256
"""Cache files kept open for reading through us."""


class _Whole(NamedTuple):
    """A version that was found complete and verified. Its file is compared with the stamp at each use."""

    version: ObjectVersion
    path: str
    stamp: Stamp
    found_at: float

    def is_still(self, version: ObjectVersion, now: float) -> bool:
        is_recent = now - self.found_at < _LOOKED_UP_AFTER_S
        return is_recent and self.version == version and stamp_matches(self.path, self.stamp)


class Reading:
    def __init__(self, mounted: Mounted) -> None:
        self._mounted = mounted
        self._cached: OrderedDict[ObjectVersion, CachedContent] = OrderedDict()
        self._pressure = 0.0
        """As a worker last told it."""

    async def open(self, node: Node, unique: int) -> Opened:
        """Close-to-open: what the store has now, as far as anybody knew within ``meta_ttl``."""
        for _ in range(_TRIES):
            await self.refresh_for_open(node)
            staged = self._mounted.staged(node)
            if staged is not None:
                return self._mounted.grant(node, _reader(), self.through(node), staged.data, unique)
            version = self._version_of(node)
            backing = self._whole(node, version)
            was_cached = bool(backing)
            if not backing and 0 < version.size <= self._mounted.options.small_file:
                fetched = await self.fetch_whole(node, version)
                if fetched is None or self._is_overtaken(node, version):
                    continue
                backing = fetched.path if fetched.is_complete else ""
            mode = self.through(node) if backing else self._by_us()
            if mode is not OpenMode.PASSTHROUGH:
                self._let_go(version)  # what was checked for earlier readers is checked again for this one
            opened = self._mounted.grant(node, _reader(), mode, backing, unique)
            if mode is OpenMode.PASSTHROUGH:
                self._mounted.served.count(version.size, was_cached=was_cached)
            return opened
        raise Stale(f"{self._mounted.nodes.path(node)} kept changing while it was opened")

    async def read(self, node: Node, number: int, start_at: int, size: int) -> bytes | FileRange:
        file = self._mounted.files.get(node.id)
        if file is not None and file.staged is not None:
            return FileRange(file.staged.descriptor(), start_at, size)
        version = await self._version_to_read(node, file)
        for _ in range(_TRIES):
            if file is not None and file.staged is not None:
                return FileRange(file.staged.descriptor(), start_at, size)  # since we waited
            size = min(size, version.size - start_at)
            if size <= 0:
                return b""
            cached = self._content(version)
            self._count(file, number, cached, start_at, size)
            self._read_ahead(file, number, version, start_at, size, cached)
            try:
                if cached is not None and cached.has(start_at, size):
                    return FileRange(cached.fd, start_at, size)
                fetched = await self._mounted.backstage.fetch(version, start_at, size)
                self._pressure = fetched.pressure
                if not fetched.path:
                    return await self._mounted.backstage.read(version, start_at, size)
            except (Stale, NotFound):
                self._let_go(version)
                await self._find_again(node, file, version)
                version = await self._version_to_read(node, file)
        # The cache loses it faster than it is read.
        return await self._mounted.backstage.read(version, start_at, size)

    def close(self) -> None:
        while self._cached:
            self._cached.popitem()[1].close()

    async def refresh_for_open(self, node: Node) -> None:
        """Afterwards it is staged, or a file that is known."""
        if node.is_linked:
            await self._mounted.tree.refresh(node)
            if not node.is_linked:
                raise FsError(errno.ESTALE)  # another by now, or gone: the kernel looks the name up again
        else:
            self._refuse_detached(node)
        if node.is_staged:
            return
        if node.known is None:
            # Detached before anybody asked about it since a predecessor gave it: by name it is found anew.
            raise FsError(errno.ESTALE)
        if node.known.entry.is_directory:
            raise FsError(errno.EISDIR)
        if node.known.version is None:
            raise FsError(errno.ELOOP)

    def _refuse_detached(self, node: Node) -> None:
        """Its name leads elsewhere: whoever came by name looks it up again. What is deleted and still open may be
        opened once more, through /proc."""
        file = self._mounted.files.get(node.id)
        assert node.parent is not None
        if file is None or not file.handles or node.name in node.parent.children:
            raise FsError(errno.ESTALE)

    def _version_of(self, node: Node) -> ObjectVersion:
        assert node.known is not None
        assert node.known.version is not None
        return node.known.version

    def _is_overtaken(self, node: Node, version: ObjectVersion) -> bool:
        """While we waited it was staged here, or found to be another."""
        return node.is_staged or node.known is None or node.known.version != version

    def through(self, node: Node) -> OpenMode:
        file = self._mounted.files.get(node.id)
        is_refused = file is not None and file.is_refused
        return OpenMode.PASSTHROUGH if self._mounted.options.passthrough and not is_refused else self._by_us()

    def _by_us(self) -> OpenMode:
        # Where files are passed through, nothing else may keep pages: the two cannot be mixed. Where files are replaced
        # under their readers, pages and a size that the kernel keeps can be those of another version for a moment.
        options = self._mounted.options
        return OpenMode.DIRECT if options.passthrough or not options.read_only else OpenMode.CACHED

    def _whole(self, node: Node, version: ObjectVersion) -> str:
        """Path of the cache's file, when it may be handed to the kernel."""
        if not version.size:
            return ""
        now = self._mounted.tree.clock()
        before = node.whole
        if isinstance(before, _Whole) and before.is_still(version, now):
            return before.path
        node.whole = None
        cached = self._mounted.find(version)
        if cached is None:
            return ""
        try:
            if not cached.is_verified() or cached.stamp is None:
                return ""
            cached.touch()
            node.whole = _Whole(version, cached.path, cached.stamp, now)
            return cached.path
        finally:
            cached.close()

    async def fetch_whole(self, node: Node, version: ObjectVersion) -> Cached | None:
        """Into the cache with all of it; None when the store has another by now, which is known then."""
        try:
            return await self._mounted.backstage.fetch(version, 0, -1)
        except (Stale, NotFound):
            await self._mounted.tree.refresh(node, at_once=True)
            return None

    async def _version_to_read(self, node: Node, file: OpenFile | None) -> ObjectVersion:
        if file is not None and file.version is not None:
            return file.version
        # No open that we know of: a mount that does not ask before opening, or a predecessor's handle.
        await self._mounted.tree.refresh(node)
        if node.known is None or node.known.version is None:
            raise FsError(errno.EISDIR if node.known is not None and node.known.entry.is_directory else errno.ESTALE)
        return node.known.version

    def _content(self, version: ObjectVersion) -> CachedContent | None:
        cached = self._cached.get(version)
        if cached is not None:
            self._cached.move_to_end(version)
            return cached
        cached = self._mounted.find(version)
        if cached is not None:
            cached.touch()
            self._cached[version] = cached
            if len(self._cached) > _KEPT_OPEN:
                self._cached.popitem(last=False)[1].close()
        return cached

    def _let_go(self, version: ObjectVersion) -> None:
        cached = self._cached.pop(version, None)
        if cached is not None:
            cached.close()

    async def _find_again(self, node: Node, file: OpenFile | None, version: ObjectVersion) -> None:
        """The cache dropped it, or the store no longer has this version under this name. An open file keeps its
        version, but for one that was renamed here: there the same bytes have another name."""
        if file is None or file.version is None:
            await self._mounted.tree.refresh(node, at_once=True)
            return
        if file.is_moved and node.is_linked:
            await self._mounted.tree.refresh(node, at_once=True)
            found = None if node.known is None else node.known.version
            if found is not None and found.size == version.size and file.version == version:
                file.version, file.is_moved = found, False
                return
        # The cache may have dropped a damaged file while the store still has the version: ask once more.
        found_now = await self._mounted.backstage.stat(self._mounted.nodes.path(node)) if node.is_linked else None
        if found_now is None or found_now.version != version:
            raise Stale(f"{version.key} was replaced in the store while it was read")

    def _count(
        self, file: OpenFile | None, number: int, cached: CachedContent | None, start_at: int, size: int
    ) -> None:
        handle = None if file is None else file.handles.get(number)
        if handle is not None:
            start_at, size = self._mounted.served.new_part(handle.counted, start_at, size)
        if size:
            was_cached = cached is not None and cached.has(start_at, size)
            self._mounted.served.count(size, was_cached=was_cached)

    def _read_ahead(
        self,
        file: OpenFile | None,
        number: int,
        version: ObjectVersion,
        start_at: int,
        size: int,
        cached: CachedContent | None,
    ) -> None:
        handle = None if file is None else file.handles.get(number)
        if handle is None:
            return
        handle.pattern, (ahead, length) = advance(handle.pattern, start_at, size, version.size, self._pressure)
        if length:
            self._count(file, number, cached, ahead, length)
            for begin, part in parts(ahead, length):
                start(self._mounted.backstage.fetch(version, begin, part), self._ended_ahead)

    def _ended_ahead(self, fetched: Cached | None, error: BaseException | None) -> None:
        if fetched is not None:
            self._pressure = fetched.pressure
        elif error is not None:
            # Who reads these bytes asks for them again and gets the error, if there still is one.
            level = logging.DEBUG if isinstance(error, PaddleFlowError) else logging.ERROR
            _log.log(level, "reading ahead failed", exc_info=error)


def _reader() -> Handle:
    return Handle(is_writable=False, may_map=False, pattern=Pattern())
