"""The kernel's part, played in this process: walks paths, counts lookups, keeps handles, retries on ESTALE.

``VfsDriver`` has the calls of ``os`` and makes of each what Linux makes of it. It also holds the vfs to the kernel's
rule that would otherwise show only as EIO in a real mount: one node, one mode, one backing file at a time.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from paddleflow.adapters.objects.directory import DirectoryStore
from paddleflow.pfs.attrs import ROOT_NODE, Attr, Caller, DirectoryItem, FileRange, Opened, OpenMode, Wish
from paddleflow.pfs.cache import Cache, Level
from paddleflow.pfs.errnos import errno_of
from paddleflow.pfs.later import run
from paddleflow.pfs.options import MountOptions
from paddleflow.pfs.routes import Routes
from paddleflow.pfs.stagehand import DirectBackstage, Stagehand
from paddleflow.pfs.vfs import Vfs
from tests.pfs.operations import Look

T = TypeVar("T")

CALLER = Caller(os.geteuid(), os.getegid(), os.getpid())
STORE = "0123456789abcdef"


class Clock:
    """Time that passes when told."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


class Kernel:
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []

    def inval_node(self, node: int) -> None:
        self.told.append(("node", node))

    def inval_entry(self, parent: int, name: str) -> None:
        self.told.append(("entry", parent, name))


@dataclass
class Fd:
    node: int
    handle: int
    mode: OpenMode
    path: str
    """Of the backing file."""
    backing: int
    flags: int


class VfsDriver:
    def __init__(self, vfs: Vfs, *, holds_links: bool = True, holds_modes: bool = True) -> None:
        self.vfs = vfs
        self.holds_links = holds_links
        self.holds_modes = holds_modes
        self.fds: dict[int, Fd] = {}
        self._next_fd = 3
        self._unique = 2
        self._counts: dict[int, int] = {}
        self._dentries: dict[tuple[int, str], int] = {}
        self._is_retry = False
        self.caller = CALLER
        self.before_retry: Callable[[], None] = lambda: None
        self.between_lookups: Callable[[], None] = lambda: None
        self.between_lookup_and_open: Callable[[], None] = lambda: None

    # -- the kernel's side of it ------------------------------------------------------------------------------------

    def call(self, operation: Callable[[], Any], *, resent: int = 0) -> Any:
        """One request, answered."""
        self._unique += 2
        self.vfs.request = (resent or self._unique, bool(resent))
        try:
            return run(operation())
        except OSError:
            raise
        except Exception as error:
            raise OSError(errno_of(error), str(error)) from error

    def clashes(self, node: int, path: str, is_writable: bool) -> bool:
        held = {fd.path for fd in self.fds.values() if fd.node == node and fd.mode is OpenMode.PASSTHROUGH}
        return bool(held) and held != {path}

    def lookup(self, parent: int, name: str) -> tuple[int, Attr]:
        entry = self.call(lambda: self.vfs.lookup(parent, name, self.caller))
        if self._is_retry and entry.node and self._dentries.get((parent, name), entry.node) != entry.node:
            # This lookup was to confirm the node that the kernel knew. It does not, so the name is looked up anew:
            # three times in all when another thread was there first, and its node is not confirmed either.
            for _ in range(2):
                self.vfs.forget(entry.node, 1)
                self.between_lookups()
                entry = self.call(lambda: self.vfs.lookup(parent, name, self.caller))
        if not entry.node:
            raise OSError(errno.ENOENT, name)
        self._dentries[parent, name] = entry.node
        self._count(entry.node)
        return entry.node, entry.attr

    def _count(self, node: int) -> None:
        self._counts[node] = self._counts.get(node, 0) + 1

    def forget_all(self) -> None:
        """Memory is short: every inode that is not open goes."""
        held = {fd.node for fd in self.fds.values()}
        for node in [node for node in self._counts if node not in held]:
            self.vfs.forget(node, self._counts.pop(node))

    def walk(self, path: str) -> tuple[int, Attr]:
        node = ROOT_NODE
        attr, _ = self.call(lambda: self.vfs.getattr(ROOT_NODE, None))
        for name in [name for name in path.split("/") if name]:
            if stat.S_ISLNK(attr.mode):
                raise OSError(errno.ENOENT, path)  # links lead nowhere here
            if not stat.S_ISDIR(attr.mode):
                raise OSError(errno.ENOTDIR, path)
            node, attr = self.lookup(node, name)
        return node, attr

    def parent(self, path: str) -> tuple[int, str]:
        above, _, name = path.rpartition("/")
        node, attr = self.walk(above)
        if stat.S_ISLNK(attr.mode):
            raise OSError(errno.ENOENT, path)
        if not stat.S_ISDIR(attr.mode):
            raise OSError(errno.ENOTDIR, path)
        return node, name

    def _find(self, parent: int, name: str) -> tuple[int, Attr] | None:
        try:
            return self.lookup(parent, name)
        except OSError as error:
            if error.errno == errno.ENOENT:
                return None
            raise

    def retrying(self, work: Callable[[], T]) -> T:
        """Once more on ESTALE, as Linux does with paths; a second one would reach the program."""
        try:
            return work()
        except OSError as error:
            if error.errno != errno.ESTALE:
                raise
        self._is_retry = True
        self.before_retry()
        try:
            return work()
        finally:
            self._is_retry = False

    # -- what programs call -----------------------------------------------------------------------------------------

    def open(self, path: str, flags: int, mode: int = 0o644) -> int:
        return self.retrying(lambda: self._open(path, flags, mode))

    def _open(self, path: str, flags: int, mode: int) -> int:
        parent, name = self.parent(path)
        if not name:
            raise OSError(errno.EISDIR, path)
        found = self._find(parent, name)
        if found is None:
            if not flags & os.O_CREAT:
                raise OSError(errno.ENOENT, path)
            entry, opened = self.call(lambda: self.vfs.create(parent, name, stat.S_IFREG | mode, flags, self.caller))
            self._count(entry.node)
            return self._opened(entry.node, opened, flags)
        node, attr = found
        if flags & os.O_CREAT and flags & os.O_EXCL:
            raise OSError(errno.EEXIST, path)
        if stat.S_ISLNK(attr.mode):
            raise OSError(errno.ELOOP, path)
        if stat.S_ISDIR(attr.mode):
            if flags & (os.O_ACCMODE | os.O_CREAT | os.O_TRUNC):
                raise OSError(errno.EISDIR, path)
            return self._keep(Fd(node, 0, OpenMode.CACHED, "", -1, flags | os.O_DIRECTORY))
        self.between_lookup_and_open()
        opened = self.call(lambda: self.vfs.open(node, flags & ~(os.O_CREAT | os.O_EXCL), self.caller))
        return self._opened(node, opened, flags)

    def _opened(self, node: int, opened: Opened, flags: int) -> int:
        for other in self.fds.values():
            if other.node == node and not other.flags & os.O_DIRECTORY:
                assert (other.mode, other.path) == (opened.mode, opened.backing), "the kernel would say EIO"
        backing = -1
        if opened.mode is OpenMode.PASSTHROUGH:
            backing = os.open(opened.backing, (flags & (os.O_ACCMODE | os.O_APPEND)) | os.O_CLOEXEC)
        return self._keep(Fd(node, opened.handle, opened.mode, opened.backing, backing, flags))

    def _keep(self, fd: Fd) -> int:
        self._next_fd += 1
        self.fds[self._next_fd] = fd
        return self._next_fd

    def close(self, fd: int) -> None:
        held = self.fds.pop(fd)
        if held.flags & os.O_DIRECTORY:
            return
        try:
            self.call(lambda: self.vfs.flush(held.node, held.handle))
        finally:
            if held.backing >= 0:
                os.close(held.backing)
            self.call(lambda: self.vfs.release(held.node, held.handle))

    def pread(self, fd: int, size: int, start: int) -> bytes:
        held = self.fds[fd]
        if held.flags & os.O_ACCMODE == os.O_WRONLY:
            raise OSError(errno.EBADF, "not open for reading")
        if held.flags & os.O_DIRECTORY:
            raise OSError(errno.EISDIR, "a directory")
        if held.mode is OpenMode.PASSTHROUGH:
            return os.pread(held.backing, size, start)
        data = self.call(lambda: self.vfs.read(held.node, held.handle, start, size))
        return os.pread(data.fd, data.size, data.start) if isinstance(data, FileRange) else data

    def pwrite(self, fd: int, data: bytes, start: int) -> int:
        held = self.fds[fd]
        if held.flags & os.O_ACCMODE == os.O_RDONLY:
            raise OSError(errno.EBADF, "not open for writing")
        if held.mode is OpenMode.PASSTHROUGH:
            return os.pwrite(held.backing, data, start)
        written: int = self.call(lambda: self.vfs.write(held.node, held.handle, start, memoryview(data)))
        return written

    def write(self, fd: int, data: bytes) -> int:
        """Where the file ends: for files opened to append."""
        held = self.fds[fd]
        assert held.flags & os.O_APPEND
        if held.mode is OpenMode.PASSTHROUGH:
            return os.write(held.backing, data)
        attr, _ = self.call(lambda: self.vfs.getattr(held.node, held.handle))
        return self.pwrite(fd, data, attr.size)

    def ftruncate(self, fd: int, size: int) -> None:
        held = self.fds[fd]
        if held.flags & os.O_ACCMODE == os.O_RDONLY:
            raise OSError(errno.EINVAL, "not open for writing")
        self.call(lambda: self.vfs.setattr(held.node, held.handle, Wish(size=size), self.caller))

    def fsync(self, fd: int) -> None:
        held = self.fds[fd]
        if not held.flags & os.O_DIRECTORY:
            self.call(lambda: self.vfs.fsync(held.node, held.handle, False))

    def fstat(self, fd: int) -> Look:
        held = self.fds[fd]
        attr, _ = self.call(lambda: self.vfs.getattr(held.node, held.handle))
        return look(attr)

    def stat(self, path: str) -> Look:
        return look(self.retrying(lambda: self.walk(path))[1])

    def attr(self, path: str) -> Attr:
        return self.walk(path)[1]

    def modified(self, path: str) -> int:
        return self.attr(path).mtime_ns

    def _set(self, path: str, wish: Wish) -> None:
        def work() -> None:
            node, attr = self.walk(path)
            if stat.S_ISLNK(attr.mode):
                raise OSError(errno.ENOENT, path)
            if wish.size is not None and stat.S_ISDIR(attr.mode):
                raise OSError(errno.EISDIR, path)
            self.call(lambda: self.vfs.setattr(node, None, wish, self.caller))

        self.retrying(work)

    def truncate(self, path: str, size: int) -> None:
        self._set(path, Wish(size=size))

    def chmod(self, path: str, mode: int) -> None:
        self._set(path, Wish(mode=mode))

    def utime(self, path: str, modified_ns: int) -> None:
        self._set(path, Wish(atime_ns=modified_ns, mtime_ns=modified_ns))

    def listdir(self, path: str) -> list[str]:
        node, attr = self.walk(path)
        if stat.S_ISLNK(attr.mode):
            raise OSError(errno.ENOENT, path)
        if not stat.S_ISDIR(attr.mode):
            raise OSError(errno.ENOTDIR, path)
        return sorted(item.name for item in self.items(node))

    def items(self, node: int) -> list[DirectoryItem]:
        handle = self.call(lambda: self.vfs.opendir(node))
        found: list[DirectoryItem] = []
        while page := self.call(lambda: self.vfs.readdir(node, handle, len(found), True)):  # noqa: B023
            found += page
        self.call(lambda: self.vfs.releasedir(node, handle))
        return found

    def mkdir(self, path: str, mode: int = 0o755) -> None:
        parent, name = self.parent(path)
        if self._find(parent, name) is not None:
            raise OSError(errno.EEXIST, path)
        entry = self.call(lambda: self.vfs.mkdir(parent, name, stat.S_IFDIR | mode, self.caller))
        self._count(entry.node)

    def rmdir(self, path: str) -> None:
        parent, name = self.parent(path)
        _, attr = self.lookup(parent, name)
        if not stat.S_ISDIR(attr.mode):
            raise OSError(errno.ENOTDIR, path)
        self.call(lambda: self.vfs.rmdir(parent, name, self.caller))

    def unlink(self, path: str) -> None:
        parent, name = self.parent(path)
        _, attr = self.lookup(parent, name)
        if stat.S_ISDIR(attr.mode):
            raise OSError(errno.EISDIR, path)
        self.call(lambda: self.vfs.unlink(parent, name, self.caller))

    def rename(self, old: str, new: str, flags: int = 0) -> None:
        self.retrying(lambda: self._rename(old, new, flags))

    def _rename(self, old: str, new: str, flags: int) -> None:
        parent, name = self.parent(old)
        new_parent, new_name = self.parent(new)
        _, attr = self.lookup(parent, name)
        if f"{new}/".startswith(f"{old}/") and new != old:
            raise OSError(errno.EINVAL if stat.S_ISDIR(attr.mode) else errno.ENOTDIR, new)
        if f"{old}/".startswith(f"{new}/") and new != old:
            raise OSError(errno.ENOTEMPTY, new)
        self._find(new_parent, new_name)
        self.call(lambda: self.vfs.rename(parent, name, new_parent, new_name, flags, self.caller))

    def symlink(self, target: str, path: str) -> None:
        parent, name = self.parent(path)
        if self._find(parent, name) is not None:
            raise OSError(errno.EEXIST, path)
        entry = self.call(lambda: self.vfs.symlink(parent, name, target, self.caller))
        self._count(entry.node)

    def readlink(self, path: str) -> str:
        node, attr = self.walk(path)
        if not stat.S_ISLNK(attr.mode):
            raise OSError(errno.EINVAL, path)
        target: str = self.call(lambda: self.vfs.readlink(node))
        return target

    # -- whole files ------------------------------------------------------------------------------------------------

    def put(self, path: str, content: bytes) -> None:
        fd = self.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        self.pwrite(fd, content, 0)
        self.close(fd)

    def get(self, path: str) -> bytes:
        with self.reading(path) as fd:
            return self.pread(fd, 1 << 30, 0)

    @contextmanager
    def reading(self, path: str) -> Iterator[int]:
        fd = self.open(path, os.O_RDONLY)
        try:
            yield fd
        finally:
            self.close(fd)


def look(attr: Attr) -> Look:
    size = 0 if stat.S_ISDIR(attr.mode) else attr.size
    mode = 0 if stat.S_ISLNK(attr.mode) else stat.S_IMODE(attr.mode)
    return Look(stat.S_IFMT(attr.mode), mode, size)


class Bench:
    """A store, a cache, a state directory, and as many lives of a vfs on them as a test wants."""

    def __init__(self, folder: str, store: Any, options: MountOptions | None = None) -> None:
        self.folder = folder
        self.store = store
        self.options = options or MountOptions()
        self.clock = Clock()
        self.kernel = Kernel()
        self.generation = 0
        self.cache = Cache([Level(f"{folder}/cache", 1 << 30, free_floor=0.0)])
        self.stagehand = Stagehand(Routes(store, STORE), self.cache, threads=2)
        self.backstage: Any = DirectBackstage(self.stagehand)
        traits = store.traits
        self.driver = VfsDriver(None, holds_links=traits.holds_links, holds_modes=traits.holds_modes)  # type: ignore[arg-type]
        self.begin(is_successor=False)

    def begin(self, *, is_successor: bool) -> Vfs:
        self.generation = self.generation + 1 if is_successor else 0
        self.driver.vfs = Vfs(
            self.backstage,
            f"{self.folder}/state",
            self.options,
            clock=self.clock,
            find=self.cache.find,
            kernel=self.kernel,
            generation=self.generation,
            clashes=self.driver.clashes,
        )
        return self.driver.vfs

    def crash(self) -> None:
        """The process is gone, as after kill -9; the kernel and its open files are not."""
        for records in (self.driver.vfs._nodes._log, self.driver.vfs._journal._log):
            records._waiting.clear()  # what was not written is gone
        self.driver.vfs.close()  # gives descriptors back, which is what death does too
        self.begin(is_successor=True)
        self.driver.call(self.driver.vfs.catch_up)

    def remount(self) -> None:
        """Unmounted, nothing open, and mounted again."""
        for fd in list(self.driver.fds):
            self.driver.close(fd)
        self.driver.vfs.close()
        self.driver._counts.clear()
        self.begin(is_successor=False)
        self.driver.call(self.driver.vfs.catch_up)

    def another(self) -> VfsDriver:
        """The same filesystem mounted somewhere else."""
        vfs = Vfs(self.backstage, f"{self.folder}/elsewhere", self.options, clock=self.clock, find=self.cache.find)
        traits = self.store.traits
        return VfsDriver(vfs, holds_links=traits.holds_links, holds_modes=traits.holds_modes)

    def close(self) -> None:
        for fd in self.driver.fds.values():
            if fd.backing >= 0:
                os.close(fd.backing)
        self.driver.fds.clear()
        self.driver.vfs.close()
        self.stagehand.close()


def directory_store(folder: str) -> DirectoryStore:
    os.makedirs(f"{folder}/store")
    return DirectoryStore(f"{folder}/store")
