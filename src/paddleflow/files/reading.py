"""A file opened for reading: bytes of one version, out of the cache directory that mounts use too.

What is cached whole and verified is read from the cache's file directly. Of the rest the pieces that are read are
brought into the cache first, and, while somebody reads on, the pieces after them ahead of time. A file that cannot be
cached (the disk is full) is read past the cache. Should the object be replaced meanwhile, the reader keeps the version
it opened as far as the cache holds it, and gets FileChanged for the rest: never bytes of two versions.
"""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING

from paddleflow.files.errors import told_as_file_errors

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

    from paddleflow.files.ahead import Ahead
    from paddleflow.files.opened import OpenFilesystems
    from paddleflow.pfs.backstage import Cached, ObjectVersion
    from paddleflow.pfs.stagehand import Stagehand

BUFFER = 1 << 20
"""One piece of the cache, so that small reads of a file that is not cached whole ask once for each piece."""
_TRIES = 3
"""A data file may be evicted between hearing its name and opening it; then it is fetched again."""


class ObjectReader(io.RawIOBase):
    """One version of one object. It survives a fork: whoever reads on opens the storage anew."""

    def __init__(
        self, filesystems: OpenFilesystems, fsname: str, path: str, version: ObjectVersion, ahead: Ahead
    ) -> None:
        self.name = f"{fsname}:{path}"
        self.mode = "rb"
        self.version = version
        self.size = version.size
        self._filesystems = filesystems
        self._fsname = fsname
        self._ahead = ahead
        self._position = 0
        self._data_path = ""
        self._descriptor = -1
        self._is_whole = False

    def fetch_whole(self) -> None:
        """Bring all of it into the cache: for a file so small that one request is all it needs."""
        with told_as_file_errors(self.name):
            self._use(self._stagehand.fetch(self.version, 0, -1))

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        self._check_open()
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        self._check_open()
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self.size}.get(whence)
        if start is None:
            raise ValueError(f"whence should be 0, 1 or 2, not {whence}")
        if start + offset < 0:
            raise ValueError(f"cannot seek to {start + offset}, before the beginning")
        self._position = start + offset
        return self._position

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        self._check_open()
        view = memoryview(buffer).cast("B")
        wanted = min(len(view), self.size - self._position)
        if wanted <= 0:
            return 0
        with told_as_file_errors(self.name):
            self._fill(view[:wanted], self._position)
        self._position += wanted
        return wanted

    def readall(self) -> bytes:
        self._check_open()
        size = max(0, self.size - self._position)
        if self._position == 0 and size and not self._is_whole:
            self.fetch_whole()
        if self._is_whole:
            data = os.pread(self._descriptor, size, self._position)
            if len(data) == size:
                self._position += size
                return data
        rest = bytearray(size)  # not in one piece: too much for one call, or not cached
        self.readinto(rest)
        return bytes(rest)

    def close(self) -> None:
        if not self.closed and self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        super().close()

    @property
    def _stagehand(self) -> Stagehand:
        return self._filesystems.get(self._fsname).stagehand

    def _fill(self, view: memoryview, start: int) -> None:
        """Exactly these bytes, out of the cache's file or past the cache."""
        for _ in range(_TRIES):
            if not self._is_whole and not self._use(self._stagehand.fetch(self.version, start, len(view))):
                continue
            if self._descriptor < 0:
                break
            if _is_read(self._descriptor, view, start):
                if not self._is_whole:
                    self._ahead.after(start, len(view))
                return
            self._is_whole = False  # somebody cut the file off; the cache notices and fetches it again
        data = self._stagehand.read(self.version, start, len(view))
        view[:] = data

    def _use(self, cached: Cached) -> bool:
        """Read from this data file from now on; False when it has gone again already."""
        if cached.path != self._data_path:
            try:
                descriptor = os.open(cached.path, os.O_RDONLY | os.O_CLOEXEC) if cached.path else -1
            except FileNotFoundError:
                return False
            if self._descriptor >= 0:
                os.close(self._descriptor)
            self._descriptor, self._data_path = descriptor, cached.path
        self._is_whole = cached.is_complete and self._descriptor >= 0
        return True

    def _check_open(self) -> None:
        if self.closed:
            raise ValueError("I/O operation on closed file")


def _is_read(descriptor: int, view: memoryview, start: int) -> bool:
    """The whole view was filled; one call reads 2 GiB at most."""
    while view:
        got = os.preadv(descriptor, [view], start)
        if not got:
            return False
        view, start = view[got:], start + got
    return True


class ReadFile(io.BufferedReader):
    """What ``open`` gives for reading."""

    raw: ObjectReader

    @property
    def size(self) -> int:
        return self.raw.size

    @property
    def version(self) -> str:
        """Of the object that is read."""
        return self.raw.version.version
