"""A directory of this machine as an object store (type ``local``): everything it holds is native.

People and jobs work in such a directory at the same time. So no path is checked as text and then used: each part of a
key is opened by itself, relative to the descriptor of the one before and never through a link; a link is something to
be seen, not a way out. A file is written under a hidden name beside its target and takes its place in one step, and is
on the disk before that.

A version is made of time, size and inode. Our own writes always differ in it; a program that changes a file in place
and then sets the old time back is not noticed, which no reader of times could.

Pipes, sockets and devices are left out: they have no content to store.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

from paddleflow.adapters.objects.beneath import (
    LIST,
    LOOK,
    NEW,
    PASS,
    READ,
    attributes,
    describe,
    find,
    magic_path,
    open_below,
    opened,
    read_upto,
    told,
    version_of,
)
from paddleflow.adapters.objects.keys import (
    HIDDEN,
    check_key,
    check_object_key,
    check_range,
    hidden_name,
    is_below,
    join_key,
    name_of,
    parent_of,
)
from paddleflow.adapters.objects.source import read_exactly
from paddleflow.domain.errors import Duplicate, InUse, Invalid, NotFound, Stale
from paddleflow.ports.objects import ObjectEntry, Traits, Usage

_PAGE = 1000
_READ_TRIES = 5
_USER_ATTRIBUTES = "user."


class DirectoryStore:
    traits = Traits(
        real_directories=True,
        atomic_rename=True,
        holds_modes=True,
        holds_links=True,
        holds_xattrs=True,
        checked_reads=False,
    )

    def __init__(self, directory: str) -> None:
        self._directory = directory

    def check(self) -> None:
        with self._open_directory("") as fd, told(self._directory), os.scandir(fd) as found:
            next(found, None)

    def stat(self, key: str) -> ObjectEntry:
        with self._look(check_key(key)) as fd:
            return describe(key, os.fstat(fd), lambda: os.readlink("", dir_fd=fd))

    def list(self, key: str) -> Iterator[Sequence[ObjectEntry]]:
        with self._open_directory(check_key(key)) as fd:
            page: list[ObjectEntry] = []
            with told(key), os.scandir(fd) as found:
                for item in found:
                    entry = _listed(fd, item, key)
                    if entry is not None:
                        page.append(entry)
                    if len(page) == _PAGE:
                        yield page
                        page = []
            if page:
                yield page

    def walk(self, key: str) -> Iterator[Sequence[ObjectEntry]]:
        waiting = [check_key(key)]
        while waiting:
            directory = waiting.pop()
            try:
                for page in self.list(directory):
                    waiting += [entry.key for entry in page if entry.is_directory]
                    yield page
            except (NotFound, Invalid):
                if directory == key:
                    raise
                # It was removed, or became something else, while we were on our way to it.

    def read(self, key: str, start: int, size: int, *, version: str = "") -> bytes:
        check_range(start, size)
        with self._open_file(check_key(key)) as fd:
            for _ in range(_READ_TRIES):
                before = version_of(os.fstat(fd))
                if version and before != version:
                    break
                content = read_upto(fd, start, size)
                if version_of(os.fstat(fd)) == before:
                    return content
        raise Stale(f"{key} is another version by now, or is being changed in place")

    def write(self, key: str, source: int, size: int, *, mode: int | None = None) -> ObjectEntry:
        with self._parent(check_object_key(key)) as (parent, name):
            old = find(parent, name)
            if old is not None and stat.S_ISDIR(old.st_mode):
                raise Invalid(f"{key} is a directory")
            draft = hidden_name()
            keeps_mode = old is not None and stat.S_ISREG(old.st_mode)
            # A new file gets the permissions that every new file of this process gets.
            fd = os.open(draft, NEW, 0o666 if mode is None and not keeps_mode else 0o600, dir_fd=parent)
            try:
                _fill(fd, source, size)
                _dress(parent, name, fd, old, mode)
                os.fsync(fd)
                written = os.fstat(fd)
                os.replace(draft, name, src_dir_fd=parent, dst_dir_fd=parent)
            except BaseException:
                with suppress(FileNotFoundError):
                    os.unlink(draft, dir_fd=parent)
                raise
            finally:
                os.close(fd)
            return describe(key, written, str)

    def delete(self, key: str) -> None:
        with self._parent(check_object_key(key)) as (parent, name):
            os.unlink(name, dir_fd=parent)

    def make_directory(self, key: str, *, mode: int | None = None) -> None:
        if not check_key(key):
            raise Duplicate("the root is there already")
        with self._parent(key) as (parent, name):
            os.mkdir(name, 0o777 if mode is None else 0o700, dir_fd=parent)
            if mode is not None:
                with opened(name, LIST, parent) as fd:
                    os.fchmod(fd, mode & 0o7777)

    def remove_directory(self, key: str) -> None:
        with self._parent(check_object_key(key)) as (parent, name):
            try:
                os.rmdir(name, dir_fd=parent)
            except NotADirectoryError:
                raise Invalid(f"{key} is not a directory") from None
            except OSError as error:
                if error.errno != errno.ENOTEMPTY or not _clear_drafts(parent, name):
                    raise
                os.rmdir(name, dir_fd=parent)

    def rename(self, source: str, target: str) -> None:
        check_object_key(source)
        check_object_key(target)
        with self._parent(source) as (from_fd, from_name):
            moved = os.stat(from_name, dir_fd=from_fd, follow_symlinks=False)
            if source == target:
                return
            if is_below(target, source):
                raise Invalid(f"{source} cannot be moved into itself")
            if is_below(source, target):
                refusal = InUse if stat.S_ISDIR(moved.st_mode) else Invalid
                raise refusal(f"{target} is a directory with {source} in it")
            with self._parent(target) as (to_fd, to_name):
                try:
                    os.rename(from_name, to_name, src_dir_fd=from_fd, dst_dir_fd=to_fd)
                except (NotADirectoryError, IsADirectoryError):
                    raise Invalid(f"{target} is there, and only one of the two is a directory") from None
                except FileExistsError:
                    raise InUse(f"{target} is not empty") from None

    def copy(self, source: str, target: str) -> ObjectEntry:
        check_object_key(target)
        with self._open_file(check_object_key(source)) as fd:
            found = os.fstat(fd)
            return self.write(target, fd, found.st_size, mode=stat.S_IMODE(found.st_mode))

    def set_modes(
        self,
        key: str,
        *,
        mode: int | None = None,
        uid: int | None = None,
        gid: int | None = None,
        modified_ns: int | None = None,
    ) -> None:
        with self._look(check_key(key)) as fd:
            itself = magic_path(fd)
            if uid is not None or gid is not None:
                os.chown(itself, -1 if uid is None else uid, -1 if gid is None else gid)
            if mode is not None:
                if stat.S_ISLNK(os.fstat(fd).st_mode):
                    raise Invalid(f"{key} is a link, which has no permissions of its own")
                os.chmod(itself, mode & 0o7777)
            if modified_ns is not None:
                os.utime(itself, ns=(os.fstat(fd).st_atime_ns, modified_ns))

    def make_link(self, key: str, target: str) -> None:
        if not check_key(key):
            raise Duplicate("the root is there already")
        if not target or "\0" in target:
            raise Invalid("a link needs a target, without NUL characters")
        with self._parent(key) as (parent, name):
            os.symlink(target, name, dir_fd=parent)

    def xattrs(self, key: str) -> Mapping[str, bytes]:
        with self._look(check_key(key)) as fd:
            return attributes(fd)

    def set_xattr(self, key: str, name: str, value: bytes) -> None:
        check_key(key)
        if not name.startswith(_USER_ATTRIBUTES):
            raise Invalid(f"attribute {name!r}: only those that begin with user. are kept")
        with self._look(key) as fd:
            os.setxattr(magic_path(fd), name, value)

    def remove_xattr(self, key: str, name: str) -> None:
        with self._look(check_key(key)) as fd:
            if name not in attributes(fd):
                raise NotFound(f"{key} has no attribute {name}")
            os.removexattr(magic_path(fd), name)

    def usage(self) -> Usage | None:
        with self._open_directory("", PASS) as fd, told(self._directory):
            found = os.fstatvfs(fd)
            return Usage(total=found.f_frsize * found.f_blocks, free=found.f_frsize * found.f_bavail)

    def close(self) -> None:
        """Nothing is held between calls."""

    # Ways to a file

    @contextmanager
    def _open_directory(self, key: str, flags: int = LIST) -> Iterator[int]:
        fd = open_below(self._directory, key, flags)
        try:
            yield fd
        finally:
            os.close(fd)

    @contextmanager
    def _parent(self, key: str) -> Iterator[tuple[int, str]]:
        """Errors of what is done there are told as errors about this key."""
        try:
            fd = open_below(self._directory, parent_of(key), PASS)
        except Invalid:
            raise NotFound(f"{key} is not there: {parent_of(key)} is not a directory") from None
        try:
            with told(key):
                yield fd, name_of(key)
        finally:
            os.close(fd)

    @contextmanager
    def _look(self, key: str) -> Iterator[int]:
        """A descriptor of whatever it is, link or not, that only serves to ask about it."""
        if not key:
            with self._open_directory("", PASS) as fd, told(key):
                yield fd
            return
        with self._parent(key) as (parent, name), opened(name, LOOK, parent) as fd:
            kind = os.fstat(fd).st_mode
            if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind) or stat.S_ISLNK(kind)):
                raise NotFound(f"{key} is neither file nor directory nor link")
            yield fd

    @contextmanager
    def _open_file(self, key: str) -> Iterator[int]:
        if not key:
            raise Invalid("the root is a directory")
        with self._parent(key) as (parent, name), opened(name, READ, parent) as fd:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise Invalid(f"{key} is not a file")
            yield fd


def _listed(directory_fd: int, item: os.DirEntry[str], directory: str) -> ObjectEntry | None:
    if item.name.startswith(HIDDEN):
        return None
    try:
        found = item.stat(follow_symlinks=False)
        return describe(join_key(directory, item.name), found, lambda: os.readlink(item.name, dir_fd=directory_fd))
    except FileNotFoundError:
        return None  # it was removed between the listing and our look at it
    except NotFound:
        return None  # neither file nor directory nor link


def _fill(fd: int, source: int, size: int) -> None:
    done = 0
    while done < size:
        sent = os.sendfile(fd, source, done, size - done)
        if not sent:
            # Only to tell where it ended, in the words every store uses.
            read_exactly(source, done, 1)
        done += sent


def _dress(parent: int, name: str, fd: int, old: os.stat_result | None, mode: int | None) -> None:
    """What takes a file's place looks like it: permissions, owner, attributes; and has a time of its own."""
    if old is not None and stat.S_ISREG(old.st_mode):
        found = os.fstat(fd)
        if (found.st_uid, found.st_gid) != (old.st_uid, old.st_gid):
            # Only the superuser may give files away; then it belongs to whoever wrote it, as with any new file.
            with suppress(PermissionError):
                os.fchown(fd, old.st_uid, old.st_gid)
        os.fchmod(fd, stat.S_IMODE(old.st_mode) if mode is None else mode & 0o7777)
        with opened(name, LOOK, parent) as before:
            for attribute, value in attributes(before).items():
                os.setxattr(fd, attribute, value)
    elif mode is not None:
        os.fchmod(fd, mode & 0o7777)
    now = time.time_ns()
    os.utime(fd, ns=(now, now))


def _clear_drafts(parent: int, name: str) -> bool:
    """Remove what writers that died left in a directory; False when there is anything else."""
    with opened(name, LIST, parent) as fd:
        names = os.listdir(fd)
        if not all(name.startswith(HIDDEN) for name in names):
            return False
        for draft in names:
            with suppress(FileNotFoundError):
                os.unlink(draft, dir_fd=fd)
    return True
