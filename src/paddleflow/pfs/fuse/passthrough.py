"""Which file the kernel reads by itself for which node.

A backing id belongs to the connection, not to a process: while a node is open under one id, an open under any other
fails. So the ids outlive whoever registered them. They stand, with the number of opens, in a table in shared memory
that the holder keeps and hands to every front. A change is one write into that memory, made before the kernel is
answered, and carries the number of the request that asked for it: a request that comes again is not counted again.

Ids of closed files are kept, because registering costs more than all the rest of an open; the least recently used go
first when there are too many. Not kept are ids of files that were open for writing: their path may soon name another
file. A path that is only read must always name the same bytes.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
from collections import OrderedDict
from hashlib import blake2b
from struct import Struct
from typing import Protocol

from paddleflow.pfs.fuse.holding import RECORD_SIZE

RECORD = Struct("<QQIiIIQQQ")
"""node, request, opens, backing id, flags, unused, digest of the path, device, inode"""
COUNTS = Struct("<QI")
COUNTS_AT = 8
"""The request and the opens stand side by side: they change together, in one copy."""
HIGH_WATER = Struct("<Q")
WRITABLE = 1


class Registrar(Protocol):
    """Who may tell the kernel of backing files: ourselves as root, else the holder for us."""

    def open_backing(self, fd: int) -> int: ...

    def close_backing(self, backing: int) -> None: ...


class Backing:
    __slots__ = ("backing", "close_when_idle", "digest", "file", "node", "opens", "path", "request", "slot", "writable")

    def __init__(self, node: int, slot: int, backing: int, digest: int, file: tuple[int, int]) -> None:
        self.node = node
        self.slot = slot
        self.backing = backing
        self.digest = digest
        self.file = file
        self.path = ""
        self.opens = 0
        self.request = 0
        self.writable = False
        self.close_when_idle = False


class Backings:
    """``acquire`` at every open, ``release`` at every close; both are given the request's number."""

    def __init__(self, registrar: Registrar, table_fd: int) -> None:
        self._registrar = registrar
        size = os.fstat(table_fd).st_size
        self._table = mmap.mmap(table_fd, size)
        self._limit = size // RECORD_SIZE - 1
        self._nodes: dict[int, Backing] = {}
        self._idle: OrderedDict[int, Backing] = OrderedDict()
        self._used = int(HIGH_WATER.unpack_from(self._table)[0])
        self._free: list[int] = []
        self._inherit()

    def __len__(self) -> int:
        return len(self._nodes)

    @property
    def opens(self) -> int:
        return sum(backing.opens for backing in self._nodes.values())

    def acquire(self, node: int, path: str, writable: bool, request: int) -> int:
        """The id under which to open this node. OSError EBUSY while it is open with another file, ENFILE when every id
        is in use, and whatever the kernel says."""
        held = self._nodes.get(node)
        if held is not None and not self._is_same(held, path, writable):
            if held.opens:
                raise OSError(errno.EBUSY, "this node is open with another backing file")
            self._close(held)
            held = None
        if held is None:
            held = self._register(node, path)
        if held.request != request or not held.opens:
            if not held.opens:
                self._idle.pop(node, None)
            if writable and not held.writable:
                held.writable = True
                self._write(held)
            held.opens += 1
            held.request = request
            self._write_counts(held)
        return held.backing

    def release(self, node: int, request: int) -> None:
        """One open less. Of a node that was never passed through there is nothing to do."""
        held = self._nodes.get(node)
        if held is None or held.request == request or not held.opens:
            return
        held.opens -= 1
        held.request = request
        self._write_counts(held)
        if not held.opens:
            if held.writable or held.close_when_idle:
                self._close(held)
            else:
                self._idle[node] = held

    def clashes(self, node: int, path: str, writable: bool) -> bool:
        """It is open with another file than this one; with any at all, when the path is empty."""
        held = self._nodes.get(node)
        return held is not None and held.opens > 0 and not (path and self._is_same(held, path, writable))

    def drop(self, node: int) -> None:
        """Its file is to go (evicted, or the kernel forgot the node): give the id back as soon as nobody has it
        open."""
        held = self._nodes.get(node)
        if held is None:
            return
        if held.opens:
            held.close_when_idle = True
        else:
            self._close(held)

    def sweep(self, count: int) -> int:
        """Look at the ``count`` least recently used ids and give back those whose file is gone: until then the space of
        an evicted file stays taken."""
        gone = []
        for node in list(self._idle)[:count]:
            held = self._idle[node]
            if os.path.exists(held.path):
                self._idle.move_to_end(node)
            else:
                gone.append(held)
        for held in gone:
            self._close(held)
        return len(gone)

    def _inherit(self) -> None:
        """Take over what a predecessor left: ids of open files stay, those of closed ones are given back, because the
        table does not know their path."""
        for slot in range(1, self._used + 1):
            node, request, opens, backing, flags, _, digest, device, inode = RECORD.unpack_from(
                self._table, slot * RECORD_SIZE
            )
            if not backing:
                self._free.append(slot)
                continue
            held = Backing(node, slot, backing, digest, (device, inode))
            held.opens, held.request, held.writable = opens, request, bool(flags & WRITABLE)
            self._nodes[node] = held
            if not opens:
                self._close(held)

    def _is_same(self, held: Backing, path: str, writable: bool) -> bool:
        if writable or held.writable:
            status = os.stat(path)
            if (status.st_dev, status.st_ino) != held.file:
                return False
            held.path = path
            return True
        if not held.path and held.digest == _digest(path):
            held.path = path
        return held.path == path

    def _register(self, node: int, path: str) -> Backing:
        slot = self._take_slot()
        try:
            # The kernel opens the file anew for each caller, with the caller's flags: reading is enough here.
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                status = os.fstat(fd)
                backing = self._registrar.open_backing(fd)
            finally:
                os.close(fd)
        except OSError:
            self._free.append(slot)
            raise
        held = Backing(node, slot, backing, _digest(path), (status.st_dev, status.st_ino))
        held.path = path
        self._write(held)
        self._nodes[node] = held
        return held

    def _take_slot(self) -> int:
        if not self._free:
            if self._used < self._limit:
                self._used += 1
                HIGH_WATER.pack_into(self._table, 0, self._used)
                return self._used
            if not self._idle:
                raise OSError(errno.ENFILE, "every backing id is in use")
            self._close(next(iter(self._idle.values())))
        return self._free.pop()

    def _close(self, held: Backing) -> None:
        del self._nodes[held.node]
        self._idle.pop(held.node, None)
        RECORD.pack_into(self._table, held.slot * RECORD_SIZE, *(0,) * 9)
        self._free.append(held.slot)
        # What the kernel no longer knows is as good as closed.
        with contextlib.suppress(OSError):
            self._registrar.close_backing(held.backing)

    def _write(self, held: Backing) -> None:
        flags = WRITABLE if held.writable else 0
        record = (held.node, held.request, held.opens, held.backing, flags, 0, held.digest, *held.file)
        RECORD.pack_into(self._table, held.slot * RECORD_SIZE, *record)

    def _write_counts(self, held: Backing) -> None:
        COUNTS.pack_into(self._table, held.slot * RECORD_SIZE + COUNTS_AT, held.request, held.opens)


class NoBackings:
    """Of a mount without passthrough."""

    opens = 0

    def __len__(self) -> int:
        return 0

    def acquire(self, node: int, path: str, writable: bool, request: int) -> int:
        raise OSError(errno.EOPNOTSUPP, "this mount has no passthrough")

    def release(self, node: int, request: int) -> None: ...

    def clashes(self, node: int, path: str, writable: bool) -> bool:
        return False

    def drop(self, node: int) -> None: ...

    def sweep(self, count: int) -> int:
        return 0


def _digest(path: str) -> int:
    return int.from_bytes(blake2b(os.fsencode(path), digest_size=8).digest(), "little")
