"""A front for tests: shows a plain directory, and keeps what a successor needs in files.

Started by the holder as a program. The first request for a name like ``held-mkdir-1`` (the word is the operation) is
done and not answered: a successor does that, to whom it is sent again, or this front when it is told to let go. So a
test can be sure of what is under way. That, the counts of requests and more are extended attributes of the root.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from paddleflow.pfs.attrs import Attr, Caller, DirectoryItem, Entry, FileRange, Opened, OpenMode, Wish
from paddleflow.pfs.errnos import FsError
from paddleflow.pfs.fuse.holding import HolderLink
from paddleflow.pfs.fuse.loop import Loop
from paddleflow.pfs.fuse.notify import Notifier
from paddleflow.pfs.fuse.operations import FileOperations
from paddleflow.pfs.fuse.passthrough import Backings, NoBackings
from paddleflow.pfs.fuse.session import Session
from paddleflow.pfs.later import Later

log = logging.getLogger(__name__)

GONE = "/gone"


class Mirror(FileOperations):
    def __init__(self, plan: dict[str, Any]) -> None:
        self.request = (0, False)
        self.session: Session | None = None
        self.notifier: Notifier | None = None
        self._root = plan["root"]
        self._mode = OpenMode[plan.get("mode", "PASSTHROUGH")]
        self._ttl = plan.get("ttl", 0.0)
        self._negative_ttl = plan.get("negative_ttl", 0.0)
        self._page = plan.get("page", 100)
        self._held: dict[str, Later[None]] | None = {}
        """What waits to be let go; None: everything was."""
        self._held_log = os.open(f"{plan['state']}/held", os.O_RDWR | os.O_CREAT | os.O_APPEND)
        self._log = os.open(f"{plan['state']}/nodes", os.O_RDWR | os.O_CREAT | os.O_APPEND)
        self._journal = os.open(f"{plan['state']}/journal", os.O_RDWR | os.O_CREAT | os.O_APPEND)
        self._paths = {1: ""}
        self._nodes = {"": 1}
        for line in os.pread(self._log, 1 << 30, 0).splitlines():
            node, path = json.loads(line)
            self._nodes.pop(self._paths.get(node, "?"), None)
            self._paths[node] = path
            if path != GONE:
                self._nodes[path] = node
        self._handles: dict[int, int] = {}
        self._by_node: dict[int, int] = {}
        self._next_handle = os.getpid() << 20
        self.lookups: dict[int, int] = {}
        self.refused: list[int] = []

    # How things are found

    def _path(self, node: int) -> str:
        return f"{self._root}/{self._paths[node]}"

    def _child(self, parent: int, name: str) -> str:
        return f"{self._paths[parent]}/{name}".lstrip("/")

    def _node(self, path: str) -> int:
        node = self._nodes.get(path)
        if node is None:
            node = max(self._paths) + 1
            self._note(node, path)
        self.lookups[node] = self.lookups.get(node, 0) + 1
        return node

    def _note(self, node: int, path: str) -> None:
        os.write(self._log, json.dumps([node, path]).encode() + b"\n")
        self._paths[node] = path
        self._nodes[path] = node

    def _forget_name(self, path: str) -> None:
        node = self._nodes.pop(path, None)
        if node is not None:
            os.write(self._log, json.dumps([node, GONE]).encode() + b"\n")

    def _attr(self, path: str) -> Attr:
        status = os.lstat(path)
        return Attr(
            ino=status.st_ino,
            mode=status.st_mode,
            size=status.st_size,
            mtime_ns=status.st_mtime_ns,
            ctime_ns=status.st_ctime_ns,
            atime_ns=status.st_atime_ns,
            uid=status.st_uid,
            gid=status.st_gid,
            nlink=status.st_nlink,
            blocks=status.st_blocks,
        )

    def _entry(self, path: str) -> Entry:
        attr = self._attr(f"{self._root}/{path}")
        return Entry(self._node(path), attr, self._ttl, self._ttl)

    async def _hold(self, operation: str, path: str) -> None:
        name = os.path.basename(path)
        if not name.startswith(f"held-{operation}") or self._held is None:
            return
        if name.encode() not in os.pread(self._held_log, 1 << 30, 0).splitlines():
            os.write(self._held_log, name.encode() + b"\n")
            self._held[name] = Later()
            await self._held[name]

    def _let_go(self) -> None:
        held, self._held = self._held or {}, None
        for later in held.values():
            later.succeed(None)

    def _handle(self, path: str, flags: int) -> int:
        self._next_handle += 1
        self._handles[self._next_handle] = os.open(path, flags & ~(os.O_CREAT | os.O_EXCL))
        return self._next_handle

    # Names

    async def lookup(self, parent: int, name: str, caller: Caller) -> Entry:
        path = self._child(parent, name)
        await self._hold("lookup", name)
        try:
            return self._entry(path)
        except FileNotFoundError:
            if self._negative_ttl:
                return Entry(0, self._attr(self._root), self._negative_ttl, 0.0)
            raise

    def forget(self, node: int, count: int) -> None:
        self.lookups[node] = max(0, self.lookups.get(node, 0) - count)

    async def symlink(self, parent: int, name: str, target: str, caller: Caller) -> Entry:
        os.symlink(target, f"{self._root}/{self._child(parent, name)}")
        return self._entry(self._child(parent, name))

    async def mknod(self, parent: int, name: str, mode: int, caller: Caller) -> Entry:
        os.mknod(f"{self._root}/{self._child(parent, name)}", mode)
        return self._entry(self._child(parent, name))

    async def mkdir(self, parent: int, name: str, mode: int, caller: Caller) -> Entry:
        unique, is_resent = self.request
        path = self._child(parent, name)
        began = is_resent and f"begin {unique}".encode() in os.pread(self._journal, 1 << 30, 0).splitlines()
        os.write(self._journal, f"begin {unique}\n".encode())
        try:
            os.mkdir(f"{self._root}/{path}", mode)
        except FileExistsError:
            if not began:
                raise
        await self._hold("mkdir", name)
        return self._entry(path)

    async def unlink(self, parent: int, name: str, caller: Caller) -> None:
        os.unlink(f"{self._root}/{self._child(parent, name)}")
        self._forget_name(self._child(parent, name))

    async def rmdir(self, parent: int, name: str, caller: Caller) -> None:
        os.rmdir(f"{self._root}/{self._child(parent, name)}")
        self._forget_name(self._child(parent, name))

    async def rename(self, parent: int, name: str, new_parent: int, new_name: str, flags: int, caller: Caller) -> None:
        source, target = self._child(parent, name), self._child(new_parent, new_name)
        if flags:
            raise FsError(errno.EINVAL)
        os.rename(f"{self._root}/{source}", f"{self._root}/{target}")
        self._forget_name(target)
        node = self._nodes.pop(source, None)
        if node is not None:
            self._note(node, target)

    async def link(self, node: int, new_parent: int, new_name: str) -> Entry:
        raise FsError(errno.EPERM)

    # Attributes

    async def getattr(self, node: int, handle: int | None) -> tuple[Attr, float]:
        return self._attr(self._path(node)), self._ttl

    async def setattr(self, node: int, handle: int | None, wish: Wish, caller: Caller) -> tuple[Attr, float]:
        path = self._path(node)
        if wish.mode is not None:
            os.chmod(path, wish.mode & 0o7777)
        if wish.uid is not None or wish.gid is not None:
            os.chown(path, -1 if wish.uid is None else wish.uid, -1 if wish.gid is None else wish.gid)
        if wish.size is not None:
            os.truncate(path, wish.size)
        if wish.mtime_ns is not None or wish.atime_ns is not None:
            was = os.stat(path)
            atime = was.st_atime_ns if wish.atime_ns is None else wish.atime_ns
            mtime = was.st_mtime_ns if wish.mtime_ns is None else wish.mtime_ns
            os.utime(path, ns=(atime, mtime))
        return self._attr(path), self._ttl

    async def readlink(self, node: int) -> str:
        return os.readlink(self._path(node))

    async def access(self, node: int, mask: int, caller: Caller) -> None: ...

    async def statfs(self, node: int) -> tuple[int, int, int, int, int, int, int, int]:
        return (1000, 900, 800, 70, 60, 4096, 255, 4096)

    async def getxattr(self, node: int, name: str) -> bytes:
        if name == "user.counts":
            assert self.session is not None
            return json.dumps(self.session.counts).encode()
        if name == "user.refused":
            return json.dumps(self.refused).encode()
        if name == "user.lookups":
            return json.dumps(sum(self.lookups.values())).encode()
        if name == "user.held":
            return json.dumps(list(self._held or ())).encode()
        if name == "user.let_go":
            self._let_go()
            return b"done"
        if name.startswith("user.invalidate."):
            self._invalidate(node, name.removeprefix("user.invalidate."))
            return b"asked"
        return os.getxattr(self._path(node), name)

    def _invalidate(self, node: int, what: str) -> None:
        assert self.notifier is not None
        kind, _, name = what.partition(".")
        if kind == "node":
            self.notifier.inval_node(node)
        elif kind == "entry":
            self.notifier.inval_entry(node, name)
        elif kind == "unknown":
            self.notifier.inval_node(1 << 40)
        elif kind == "deleted":
            self.notifier.deleted(node, self._nodes[self._child(node, name)], name)
        else:
            self.notifier.inval_every_entry()

    async def setxattr(self, node: int, name: str, value: bytes, flags: int) -> None:
        os.setxattr(self._path(node), name, value, flags)

    async def listxattr(self, node: int) -> Sequence[str]:
        return os.listxattr(self._path(node))

    async def removexattr(self, node: int, name: str) -> None:
        os.removexattr(self._path(node), name)

    # Files

    async def open(self, node: int, flags: int, caller: Caller) -> Opened:
        path = self._path(node)
        await self._hold("open", path)
        return self._opened(path, flags)

    async def create(self, parent: int, name: str, mode: int, flags: int, caller: Caller) -> tuple[Entry, Opened]:
        path = f"{self._root}/{self._child(parent, name)}"
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
        return self._entry(self._child(parent, name)), self._opened(path, flags)

    def _opened(self, path: str, flags: int) -> Opened:
        handle = self._handle(path, flags)
        is_writing = bool(flags & os.O_ACCMODE)
        keeps = self._mode is OpenMode.CACHED and not is_writing
        return Opened(handle, self._mode, path, keep_pages=keeps, needs_flush=is_writing)

    def not_passed_through(self, node: int, handle: int) -> None:
        self.refused.append(node)

    async def read(self, node: int, handle: int, start: int, size: int) -> bytes | FileRange:
        path = self._path(node)
        fd = self._handles.get(handle)
        if path.endswith(".bytes"):
            return self._bytes(path, start, size)
        if fd is None:  # of a predecessor, or of a mount that opens without asking
            fd = self._by_node.setdefault(node, -1)
            if fd < 0:
                fd = self._by_node[node] = os.open(path, os.O_RDONLY)
        return FileRange(fd, start, size)

    def _bytes(self, path: str, start: int, size: int) -> bytes:
        return Path(path).read_bytes()[start : start + size]

    async def write(self, node: int, handle: int, start: int, data: memoryview) -> int:
        path = self._path(node)
        await self._hold("write", path)
        fd = os.open(path, os.O_RDWR)
        try:
            return os.pwrite(fd, data, start)
        finally:
            os.close(fd)

    async def flush(self, node: int, handle: int) -> None: ...

    async def fsync(self, node: int, handle: int, data_only: bool) -> None: ...

    async def release(self, node: int, handle: int) -> None:
        fd = self._handles.pop(handle, None)
        if fd is not None:
            os.close(fd)

    async def fallocate(self, node: int, handle: int, mode: int, start: int, size: int) -> None:
        if mode:
            raise FsError(errno.EOPNOTSUPP)
        fd = os.open(self._path(node), os.O_RDWR)
        os.posix_fallocate(fd, start, size)
        os.close(fd)

    # Directories

    async def opendir(self, node: int) -> int:
        return 7

    async def readdir(self, node: int, handle: int, offset: int, plus: bool) -> Sequence[DirectoryItem]:
        path = self._path(node)
        names = sorted(os.listdir(path))[offset : offset + self._page]
        return [DirectoryItem(name, self._attr(f"{path}/{name}")) for name in names]

    def remember(self, parent: int, item: DirectoryItem) -> Entry:
        return Entry(self._node(self._child(parent, item.name)), item.attr, self._ttl, self._ttl)

    async def releasedir(self, node: int, handle: int) -> None:
        assert handle in (0, 7)


def renew(link: HolderLink, plan: dict[str, Any]) -> None:
    link.renew_plan(plan)
    log.info("the plan was renewed")


def main() -> int:
    logging.basicConfig(level=logging.INFO)
    link = HolderLink.inherit()
    welcome = link.welcome
    plan = dict(welcome.plan)
    if plan.get("fails"):
        link.failed(plan["fails"])
        return 1
    with open(f"{plan['state']}/front.pid.new", "w") as file:
        file.write(f"{os.getpid()} {welcome.generation} {json.dumps(plan.get('secret'))}")
    os.replace(f"{plan['state']}/front.pid.new", f"{plan['state']}/front.pid")
    if plan.get("unprivileged"):
        os.setresgid(65534, 65534, 65534)
        os.setresuid(65534, 65534, 65534)
    loop = Loop(poll=plan.get("poll", True))
    vfs = Mirror(plan)
    vfs.notifier = Notifier(welcome.fuse_fd)
    backings = Backings(link, welcome.table_fd) if welcome.negotiated.passthrough else NoBackings()
    session = Session(welcome.fuse_fd, vfs, welcome.negotiated, backings, loop, loop.stop)
    vfs.session = session
    loop.attend(session)
    loop.add(link.fileno(), lambda: None if link.receive() else loop.remove(link.fileno()))
    signal.signal(signal.SIGTERM, lambda *_: loop.stop())
    signal.signal(signal.SIGUSR1, lambda *_: link.unmount(lazy=False))
    signal.signal(signal.SIGUSR2, lambda *_: renew(link, plan | {"secret": "newer"}))
    link.unmount_failed = log.error
    if welcome.generation:
        session.resume()
    link.serving()
    loop.run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
