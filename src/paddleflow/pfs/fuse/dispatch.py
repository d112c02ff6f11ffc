"""One function for each request of the kernel: reads its arguments, asks the vfs, packs the answer.

Arguments are read from the shared buffer before the first ``await``, because afterwards it holds another request. What
a function returns is the body of the answer; an error is raised and becomes a number elsewhere. Requests that are not
in ``table`` are answered "not implemented", which the kernel remembers and does by itself or refuses: LSEEK and
COPY_FILE_RANGE (it copies through reads and writes), FSYNCDIR (a name is in the store before its creation is answered),
locks (kept by the kernel), POLL, BMAP, TMPFILE, STATX.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Coroutine
from typing import Any, Final

from paddleflow.pfs.attrs import Caller, Entry, FileRange, Opened, OpenMode
from paddleflow.pfs.fuse import protocol
from paddleflow.pfs.fuse.negotiation import Negotiated
from paddleflow.pfs.fuse.operations import FileOperations
from paddleflow.pfs.fuse.passthrough import Backings, NoBackings
from paddleflow.pfs.fuse.protocol import HEADER_IN, Opcode, OpenFlag, one_name, two_names

PASSED_THROUGH: Final = 1 << 62
"""In a handle as the kernel has it: this open counts as one of its backing file. It stands in the handle because a
front that takes over knows nothing of the opens before it."""
HANDLE: Final = PASSED_THROUGH - 1
CALLERS: Final = 1024

Answer = bytes | FileRange
Handler = Callable[["Request"], Coroutine[Any, Any, Answer]]


class Request:
    __slots__ = ("end", "gid", "is_abandoned", "node", "opcode", "pid", "uid", "unique")

    def __init__(self, header: tuple[int, ...]) -> None:
        self.end, self.opcode, self.unique, self.node, self.uid, self.gid, self.pid, _, _ = header
        self.is_abandoned = False
        """Its caller was told that it was interrupted: nobody wants the result, and what it holds must be let go."""


class Dispatch:
    def __init__(self, vfs: FileOperations, negotiated: Negotiated, backings: Backings | NoBackings) -> None:
        self.buffer = bytearray(negotiated.max_write + protocol.MIN_READ_BUFFER)
        self._vfs = vfs
        self._backings = backings
        self._callers: dict[tuple[int, int, int, int], Caller] = {}
        self.table = self._make_table(negotiated)

    def _make_table(self, negotiated: Negotiated) -> list[Handler | None]:
        by_opcode: dict[int, Handler] = {
            Opcode.LOOKUP: self._lookup,
            Opcode.GETATTR: self._getattr,
            Opcode.SETATTR: self._setattr,
            Opcode.READLINK: self._readlink,
            Opcode.SYMLINK: self._symlink,
            Opcode.MKNOD: self._mknod,
            Opcode.MKDIR: self._mkdir,
            Opcode.UNLINK: self._unlink,
            Opcode.RMDIR: self._rmdir,
            Opcode.RENAME: self._rename,
            Opcode.RENAME2: self._rename2,
            Opcode.LINK: self._link,
            Opcode.OPEN: self._open,
            Opcode.CREATE: self._create,
            Opcode.READ: self._read,
            Opcode.WRITE: self._write,
            Opcode.FLUSH: self._flush,
            Opcode.FSYNC: self._fsync,
            Opcode.RELEASE: self._release,
            Opcode.OPENDIR: self._opendir,
            Opcode.READDIR: self._readdir,
            Opcode.READDIRPLUS: self._readdirplus,
            Opcode.RELEASEDIR: self._releasedir,
            Opcode.STATFS: self._statfs,
            Opcode.GETXATTR: self._getxattr,
            Opcode.SETXATTR: self._setxattr,
            Opcode.LISTXATTR: self._listxattr,
            Opcode.REMOVEXATTR: self._removexattr,
            Opcode.ACCESS: self._access,
            Opcode.FALLOCATE: self._fallocate,
        }
        if negotiated.dataset:
            # "Not implemented" is how the kernel learns that it need not ask before opening anything.
            del by_opcode[Opcode.OPEN], by_opcode[Opcode.OPENDIR]
        return [by_opcode.get(opcode) for opcode in range(protocol.OPCODES)]

    def _caller(self, request: Request, umask: int = 0) -> Caller:
        key = (request.uid, request.gid, request.pid, umask)
        caller = self._callers.get(key)
        if caller is None:
            if len(self._callers) >= CALLERS:
                self._callers.clear()
            caller = self._callers[key] = Caller(request.uid, request.gid, request.pid, umask)
        return caller

    def _mark(self, request: Request) -> None:
        """Tell the vfs which request this is: it may have been sent before."""
        self._vfs.request = (request.unique & ~protocol.RESENT, request.unique >= protocol.RESENT)

    def _entry(self, request: Request, entry: Entry) -> bytes:
        if not entry.node:
            return protocol.pack_absence(entry.entry_ttl)
        if request.is_abandoned:
            self._vfs.forget(entry.node, 1)
        return protocol.pack_entry(entry)

    # Names

    async def _lookup(self, request: Request) -> Answer:
        name = one_name(self.buffer, HEADER_IN, request.end)
        return self._entry(request, await self._vfs.lookup(request.node, name, self._caller(request)))

    async def _symlink(self, request: Request) -> Answer:
        name, target = two_names(self.buffer, HEADER_IN, request.end)
        self._mark(request)
        return self._entry(request, await self._vfs.symlink(request.node, name, target, self._caller(request)))

    async def _mknod(self, request: Request) -> Answer:
        mode, _, umask, _ = protocol.MKNOD_IN.unpack_from(self.buffer, HEADER_IN)
        name = one_name(self.buffer, HEADER_IN + protocol.MKNOD_IN.size, request.end)
        self._mark(request)
        return self._entry(request, await self._vfs.mknod(request.node, name, mode, self._caller(request, umask)))

    async def _mkdir(self, request: Request) -> Answer:
        mode, umask = protocol.TWO_WORDS.unpack_from(self.buffer, HEADER_IN)
        name = one_name(self.buffer, HEADER_IN + protocol.TWO_WORDS.size, request.end)
        self._mark(request)
        return self._entry(request, await self._vfs.mkdir(request.node, name, mode, self._caller(request, umask)))

    async def _unlink(self, request: Request) -> Answer:
        self._mark(request)
        name = one_name(self.buffer, HEADER_IN, request.end)
        await self._vfs.unlink(request.node, name, self._caller(request))
        return b""

    async def _rmdir(self, request: Request) -> Answer:
        self._mark(request)
        name = one_name(self.buffer, HEADER_IN, request.end)
        await self._vfs.rmdir(request.node, name, self._caller(request))
        return b""

    async def _rename(self, request: Request) -> Answer:
        (new_parent,) = protocol.NODE.unpack_from(self.buffer, HEADER_IN)
        name, new_name = two_names(self.buffer, HEADER_IN + protocol.NODE.size, request.end)
        self._mark(request)
        await self._vfs.rename(request.node, name, new_parent, new_name, 0, self._caller(request))
        return b""

    async def _rename2(self, request: Request) -> Answer:
        new_parent, flags, _ = protocol.RENAME2_IN.unpack_from(self.buffer, HEADER_IN)
        name, new_name = two_names(self.buffer, HEADER_IN + protocol.RENAME2_IN.size, request.end)
        self._mark(request)
        await self._vfs.rename(request.node, name, new_parent, new_name, flags, self._caller(request))
        return b""

    async def _link(self, request: Request) -> Answer:
        (node,) = protocol.NODE.unpack_from(self.buffer, HEADER_IN)
        name = one_name(self.buffer, HEADER_IN + protocol.NODE.size, request.end)
        self._mark(request)
        return self._entry(request, await self._vfs.link(node, request.node, name))

    # Attributes

    async def _getattr(self, request: Request) -> Answer:
        flags, _, fh = protocol.GETATTR_IN.unpack_from(self.buffer, HEADER_IN)
        attr, ttl = await self._vfs.getattr(request.node, fh & HANDLE if flags & protocol.GETATTR_FH else None)
        return protocol.pack_attr(attr, ttl)

    async def _setattr(self, request: Request) -> Answer:
        wish, fh = protocol.read_wish(self.buffer, HEADER_IN, time.time_ns())
        self._mark(request)
        handle = None if fh is None else fh & HANDLE
        attr, ttl = await self._vfs.setattr(request.node, handle, wish, self._caller(request))
        return protocol.pack_attr(attr, ttl)

    async def _readlink(self, request: Request) -> Answer:
        return protocol.encode_name(await self._vfs.readlink(request.node))

    async def _access(self, request: Request) -> Answer:
        mask, _ = protocol.TWO_WORDS.unpack_from(self.buffer, HEADER_IN)
        await self._vfs.access(request.node, mask, self._caller(request))
        return b""

    async def _statfs(self, request: Request) -> Answer:
        return protocol.pack_statfs(await self._vfs.statfs(request.node))

    async def _getxattr(self, request: Request) -> Answer:
        room, _ = protocol.TWO_WORDS.unpack_from(self.buffer, HEADER_IN)
        name = one_name(self.buffer, HEADER_IN + protocol.TWO_WORDS.size, request.end)
        return _within(await self._vfs.getxattr(request.node, name), room)

    async def _listxattr(self, request: Request) -> Answer:
        room, _ = protocol.TWO_WORDS.unpack_from(self.buffer, HEADER_IN)
        names = await self._vfs.listxattr(request.node)
        return _within(b"".join(protocol.encode_name(name) + b"\0" for name in names), room)

    async def _setxattr(self, request: Request) -> Answer:
        size, flags = protocol.TWO_WORDS.unpack_from(self.buffer, HEADER_IN)
        start = HEADER_IN + protocol.TWO_WORDS.size
        name = one_name(self.buffer, start, request.end)
        value = bytes(self.buffer[request.end - size : request.end])
        self._mark(request)
        await self._vfs.setxattr(request.node, name, value, flags)
        return b""

    async def _removexattr(self, request: Request) -> Answer:
        name = one_name(self.buffer, HEADER_IN, request.end)
        self._mark(request)
        await self._vfs.removexattr(request.node, name)
        return b""

    # Files

    async def _open(self, request: Request) -> Answer:
        flags, _ = protocol.TWO_WORDS.unpack_from(self.buffer, HEADER_IN)
        self._mark(request)
        opened = await self._vfs.open(request.node, flags, self._caller(request))
        return await self._opened(request, request.node, opened, flags)

    async def _create(self, request: Request) -> Answer:
        flags, mode, umask, _ = protocol.CREATE_IN.unpack_from(self.buffer, HEADER_IN)
        name = one_name(self.buffer, HEADER_IN + protocol.CREATE_IN.size, request.end)
        self._mark(request)
        entry, opened = await self._vfs.create(request.node, name, mode, flags, self._caller(request, umask))
        return self._entry(request, entry) + await self._opened(request, entry.node, opened, flags)

    async def _opened(self, request: Request, node: int, opened: Opened, flags: int) -> bytes:
        if request.is_abandoned:
            await self._vfs.release(node, opened.handle)
            return b""
        answer = 0 if opened.needs_flush else OpenFlag.NOFLUSH
        if opened.mode is OpenMode.CACHED:
            return protocol.pack_opened(opened.handle, answer | (OpenFlag.KEEP_CACHE if opened.keep_pages else 0))
        if opened.mode is OpenMode.PASSTHROUGH:
            is_writable = flags & os.O_ACCMODE != os.O_RDONLY
            unique = request.unique & ~protocol.RESENT
            try:
                backing = self._backings.acquire(node, opened.backing, is_writable, unique)
            except OSError as error:
                if error.errno == errno.EBUSY:
                    # Open with another file: only a new node can be opened with this one, so look the name up again.
                    await self._vfs.release(node, opened.handle)
                    raise OSError(errno.ESTALE, os.strerror(errno.ESTALE)) from error
                self._vfs.not_passed_through(node, opened.handle)
            else:
                return protocol.pack_opened(opened.handle | PASSED_THROUGH, answer | OpenFlag.PASSTHROUGH, backing)
        return protocol.pack_opened(opened.handle, answer | OpenFlag.DIRECT_IO)

    async def _read(self, request: Request) -> Answer:
        fh, start, size, _, _, _, _ = protocol.READ_IN.unpack_from(self.buffer, HEADER_IN)
        return await self._vfs.read(request.node, fh & HANDLE, start, size)

    async def _write(self, request: Request) -> Answer:
        fh, start, size, _, _, _, _ = protocol.WRITE_IN.unpack_from(self.buffer, HEADER_IN)
        data = memoryview(self.buffer)[protocol.WRITE_HEADERS : protocol.WRITE_HEADERS + size]
        self._mark(request)
        return protocol.WRITE_OUT.pack(await self._vfs.write(request.node, fh & HANDLE, start, data), 0)

    async def _flush(self, request: Request) -> Answer:
        fh, _, _, _ = protocol.FLUSH_IN.unpack_from(self.buffer, HEADER_IN)
        self._mark(request)
        await self._vfs.flush(request.node, fh & HANDLE)
        return b""

    async def _fsync(self, request: Request) -> Answer:
        fh, flags, _ = protocol.FSYNC_IN.unpack_from(self.buffer, HEADER_IN)
        self._mark(request)
        await self._vfs.fsync(request.node, fh & HANDLE, bool(flags & protocol.FSYNC_DATA_ONLY))
        return b""

    async def _release(self, request: Request) -> Answer:
        fh, _, _, _ = protocol.RELEASE_IN.unpack_from(self.buffer, HEADER_IN)
        self._mark(request)
        if fh & PASSED_THROUGH:
            self._backings.release(request.node, request.unique & ~protocol.RESENT)
        await self._vfs.release(request.node, fh & HANDLE)
        return b""

    async def _fallocate(self, request: Request) -> Answer:
        fh, start, size, mode, _ = protocol.FALLOCATE_IN.unpack_from(self.buffer, HEADER_IN)
        self._mark(request)
        await self._vfs.fallocate(request.node, fh & HANDLE, mode, start, size)
        return b""

    # Directories

    async def _opendir(self, request: Request) -> Answer:
        handle = await self._vfs.opendir(request.node)
        if request.is_abandoned:
            await self._vfs.releasedir(request.node, handle)
        return protocol.pack_opened(handle, 0)

    async def _releasedir(self, request: Request) -> Answer:
        fh, _, _, _ = protocol.RELEASE_IN.unpack_from(self.buffer, HEADER_IN)
        await self._vfs.releasedir(request.node, fh)
        return b""

    async def _readdir(self, request: Request) -> Answer:
        fh, offset, room, _, _, _, _ = protocol.READ_IN.unpack_from(self.buffer, HEADER_IN)
        parts = await self._dots(request.node, offset, plus=False)
        room -= sum(map(len, parts))
        first = max(0, offset - 2)
        pack = protocol.pack_dirent
        for cookie, item in enumerate(await self._vfs.readdir(request.node, fh, first, False), first + 3):
            part = pack(item.attr.ino, cookie, item.attr.mode, protocol.encode_name(item.name))
            room -= len(part)
            if room < 0:
                break
            parts.append(part)
        return b"".join(parts)

    async def _readdirplus(self, request: Request) -> Answer:
        fh, offset, room, _, _, _, _ = protocol.READ_IN.unpack_from(self.buffer, HEADER_IN)
        parts = await self._dots(request.node, offset, plus=True)
        room -= sum(map(len, parts))
        first = max(0, offset - 2)
        vfs = self._vfs
        items = await vfs.readdir(request.node, fh, first, True)
        if request.is_abandoned:
            return b""
        for cookie, item in enumerate(items, first + 3):
            name = protocol.encode_name(item.name)
            room -= protocol.ENTRY_OUT.size + protocol.dirent_size(name)
            if room < 0:
                break
            # Only what really goes to the kernel may be counted as looked up.
            parts.append(protocol.pack_entry(vfs.remember(request.node, item)))
            parts.append(protocol.pack_dirent(item.attr.ino, cookie, item.attr.mode, name))
        return b"".join(parts)

    async def _dots(self, node: int, offset: int, *, plus: bool) -> list[bytes]:
        """``.`` and ``..`` come first; the kernel knows them by itself, so they are no lookup."""
        if offset >= 2:
            return []
        attr, _ = await self._vfs.getattr(node, None)
        head = protocol.NO_ENTRY if plus else b""
        dots = ((attr.ino, 1, b"."), (protocol.UNKNOWN_INO, 2, b".."))[offset:]
        return [head + protocol.pack_dirent(ino, cookie, attr.mode, name) for ino, cookie, name in dots]


def _within(value: bytes, room: int) -> bytes:
    """An extended attribute, or how much room it would take when the caller has brought none."""
    if not room:
        return protocol.GETXATTR_OUT.pack(len(value), 0)
    if len(value) > room:
        raise OSError(errno.ERANGE, os.strerror(errno.ERANGE))
    return value
