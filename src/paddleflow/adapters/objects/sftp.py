"""Files of an SFTP server: a directory there is the store's root.

Modes, owners, times and symbolic links are the server's own. An object is written beside its place under a hidden name
and moved over it at once. Reads look at the file's times and size before and after, on the open file.

**What a version is worth here.** SFTP tells times in whole seconds and has no file numbers, so a version is the second
and the size. Our own writes and renames see to it that the version changes: a file that replaces another one is dated
later than it, by a second if need be. Two things stay hidden: a change by somebody else, in place, of the same size and
within the same second; and a file deleted and made again by two different programs within one second, of equal size.

The server follows links on the way to a file, and SFTP has no word against it. So the way is resolved first and must
not have led through one; a link put there in the very moment in between is not seen.
"""

from __future__ import annotations

import functools
import os
import stat
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from paddleflow.adapters.objects import sftp_files
from paddleflow.adapters.objects.keys import (
    check_key,
    check_object_key,
    check_range,
    is_below,
    is_hidden,
    join_key,
    parent_of,
)
from paddleflow.adapters.objects.retry import Retry
from paddleflow.adapters.objects.sftp_pool import SftpPool
from paddleflow.adapters.objects.sftp_wire import Attributes, Broken, Kind, Refused, SftpSession, Status, pack, text
from paddleflow.adapters.objects.source import read_exactly
from paddleflow.adapters.objects.ssh import SshLimits, Trust, connect, parse_login
from paddleflow.domain.errors import (
    Denied,
    Duplicate,
    InUse,
    Invalid,
    NotFound,
    PaddleFlowError,
    Stale,
    Unavailable,
)
from paddleflow.ports.objects import ObjectEntry, Traits, Usage

T = TypeVar("T")

_PAGE = 1000
_PIECE = 4 * 1024 * 1024
_SETTLED_READS = 10
_WAYS = 10_000
_WAY_KNOWN_S = 2.0
"""For how long a directory's way counts as free of links."""


@dataclass(frozen=True, slots=True)
class _MayHaveHappened:
    """The connection broke under a call that must not be made twice."""

    error: Broken


def open_sftp(
    address: str,
    root: str,
    properties: Mapping[str, str],
    *,
    trust: Trust | None = None,
    limits: SshLimits | None = None,
    retry: Retry | None = None,
) -> SftpStore:
    """``address`` is host:port, ``root`` a directory of the server, absolute whether or not it begins with a slash."""
    login = parse_login(address, properties)
    pool = SftpPool(functools.partial(connect, login, trust or Trust(), limits or SshLimits()))
    return SftpStore(pool, "/" + root.strip("/"), name=f"sftp://{login.place}", retry=retry)


class SftpStore:
    """``ports.objects.ObjectStore``."""

    traits = Traits(
        real_directories=True,
        atomic_rename=True,
        holds_modes=True,
        holds_links=True,
        holds_xattrs=False,
        checked_reads=False,
    )

    def __init__(self, pool: SftpPool, root: str, *, name: str, retry: Retry | None = None) -> None:
        self._pool = pool
        self._root = os.fsencode(root.rstrip("/"))
        self._name = name
        self._retry = retry or Retry()
        self._ways: dict[str, float] = {}
        self._ways_lock = threading.Lock()

    def check(self) -> None:
        """The errors of logging in come from the connection; what is left is the root."""
        try:
            root = self.stat("")
        except NotFound as error:
            shown = os.fsdecode(self._root) or "/"
            raise NotFound(f"there is no directory [{shown}] on {self._name}: make it, or correct the path") from error
        if not root.is_directory:
            raise Invalid(f"[{os.fsdecode(self._root)}] on {self._name} is not a directory")

    def stat(self, key: str) -> ObjectEntry:
        check_key(key)
        return self._again(key, lambda session: self._stat(session, key))

    def list(self, key: str) -> Iterator[Sequence[ObjectEntry]]:
        """A directory is fetched whole before its first page is handed out: so a connection that breaks can be made up
        for, and none is held while the pages are used."""
        entries = self._again(check_key(key), lambda session: self._list(session, key))
        for start in range(0, len(entries), _PAGE):
            yield entries[start : start + _PAGE]

    def walk(self, key: str) -> Iterator[Sequence[ObjectEntry]]:
        waiting = [key]
        while waiting:
            directory = waiting.pop()
            try:
                for page in self.list(directory):
                    waiting.extend(entry.key for entry in page if entry.is_directory)
                    yield page
            except (NotFound, Invalid):
                # Below the top, somebody took it away, or put a file there, since its parent was listed.
                if directory == key:
                    raise

    def read(self, key: str, start: int, size: int, *, version: str = "") -> bytes:
        check_key(key)
        check_range(start, size)
        for _ in range(_SETTLED_READS):
            content = self._again(key, lambda session: self._read(session, key, start, size, version))
            if content is not None:
                return content
            if version:
                raise Stale(f"{key!r} was changed while it was read")
        raise Unavailable(f"{key!r} is changed all the time while it is read")

    def write(self, key: str, source: int, size: int, *, mode: int | None = None) -> ObjectEntry:
        check_object_key(key)

        def fill(session: SftpSession, handle: bytes) -> None:
            session.write(handle, size, lambda at, length: read_exactly(source, at, length))

        return self._again(key, lambda session: self._put(session, key, size, fill, mode))

    def delete(self, key: str) -> None:
        check_object_key(key)

        def act(session: SftpSession) -> None:
            path = self._path(session, key)
            try:
                session.call(Kind.REMOVE, text(path))
            except Refused:
                if self._stat(session, key).is_directory:
                    raise Invalid(f"{key!r} is a directory") from None
                raise

        self._once(key, act)

    def make_directory(self, key: str, *, mode: int | None = None) -> None:
        if not check_key(key):
            raise Duplicate("the root of a store is there already")

        def act(session: SftpSession) -> None:
            path = self._path(session, key)
            try:
                session.call(Kind.MKDIR, text(path), pack(Attributes(mode=0o777 if mode is None else mode)))
            except Refused as refused:
                if refused.status != Status.NO_SUCH_FILE and sftp_files.find(session, path) is not None:
                    raise Duplicate(f"{key!r} is there already") from refused
                raise
            if mode is not None:
                # The server took its umask away from it.
                session.call(Kind.SETSTAT, text(path), pack(Attributes(mode=mode)))

        self._once(key, act)

    def remove_directory(self, key: str) -> None:
        check_object_key(key)

        def act(session: SftpSession) -> None:
            path = self._path(session, key)
            try:
                session.call(Kind.RMDIR, text(path))
            except Refused:
                if not self._stat(session, key).is_directory:
                    raise Invalid(f"{key!r} is not a directory") from None
                self._sweep(session, key, path)
                session.call(Kind.RMDIR, text(path))

        self._once(key, act)
        self._forget_ways()

    def rename(self, source: str, target: str) -> None:
        check_object_key(source)
        if check_object_key(target) != source and is_below(target, source):
            raise Invalid(f"{source!r} cannot be moved into itself")
        self._once(source, lambda session: self._rename(session, source, target))
        self._forget_ways()

    def copy(self, source: str, target: str) -> ObjectEntry:
        check_object_key(source), check_object_key(target)
        return self._again(source, lambda session: self._copy(session, source, target))

    def set_modes(
        self,
        key: str,
        *,
        mode: int | None = None,
        uid: int | None = None,
        gid: int | None = None,
        modified_ns: int | None = None,
    ) -> None:
        check_key(key)

        def act(session: SftpSession) -> None:
            path = self._path(session, key)
            now = session.call(Kind.LSTAT, text(path), expect=Kind.ATTRS).attributes()
            mtime = None if modified_ns is None else modified_ns // 1_000_000_000
            owns = uid is not None or gid is not None
            wish = Attributes(
                mode=mode,
                uid=(now.uid if uid is None else uid) if owns else None,
                gid=(now.gid if gid is None else gid) if owns else None,
                atime=None if mtime is None else now.atime or 0,
                mtime=mtime,
            )
            if not stat.S_ISLNK(now.mode or 0):
                session.call(Kind.SETSTAT, text(path), pack(wish))
            elif b"lsetstat@openssh.com" in session.extensions:
                session.extended(b"lsetstat@openssh.com", text(path), pack(wish))
            else:
                raise Invalid(f"{key!r} is a link, and this server changes only what links lead to")

        if modified_ns is not None and not 0 <= modified_ns // 1_000_000_000 < 1 << 32:
            raise Invalid("SFTP holds times from 1970 to 2106 only")
        self._again(key, act)

    def make_link(self, key: str, target: str) -> None:
        check_object_key(key)

        def act(session: SftpSession) -> None:
            path = self._path(session, key)
            try:
                # OpenSSH has the two the other way round than the protocol, and everybody follows OpenSSH.
                session.call(Kind.SYMLINK, text(os.fsencode(target)), text(path))
            except Refused as refused:
                if refused.status != Status.NO_SUCH_FILE and sftp_files.find(session, path) is not None:
                    raise Duplicate(f"{key!r} is there already") from refused
                raise

        self._once(key, act)

    def xattrs(self, key: str) -> Mapping[str, bytes]:
        raise _no_xattrs(key)

    def set_xattr(self, key: str, name: str, value: bytes) -> None:
        raise _no_xattrs(key)

    def remove_xattr(self, key: str, name: str) -> None:
        raise _no_xattrs(key)

    def usage(self) -> Usage | None:
        return self._again("", self._usage)

    def close(self) -> None:
        self._pool.close()

    # With a session in hand.

    def _stat(self, session: SftpSession, key: str) -> ObjectEntry:
        path = self._path(session, key)
        # The root was chosen by whoever made the filesystem, and may itself be a link.
        kind = Kind.LSTAT if key else Kind.STAT
        found = session.call(kind, text(path), expect=Kind.ATTRS).attributes()
        described = sftp_files.describe(session, [(key, path, found)])
        if not described:
            raise NotFound(f"{key!r} is not there")
        return described[0]

    def _list(self, session: SftpSession, key: str) -> Sequence[ObjectEntry]:
        path = self._path(session, key)
        if not self._stat(session, key).is_directory:
            raise Invalid(f"{key!r} is not a directory")
        held = [(join_key(key, os.fsdecode(name)), path + b"/" + name, found) for name, found in session.names(path)]
        return sftp_files.describe(session, [item for item in held if not is_hidden(item[0])])

    def _usage(self, session: SftpSession) -> Usage | None:
        found = sftp_files.room(session, self._root or b"/")
        return None if found is None else Usage(total=found[0], free=found[1])

    def _read(self, session: SftpSession, key: str, start: int, size: int, version: str) -> bytes | None:
        if not key:
            raise Invalid("the root is a directory")
        return sftp_files.read_file(session, self._path(session, key), start, size, version)

    def _put(self, session: SftpSession, key: str, size: int, fill: sftp_files.Fill, mode: int | None) -> ObjectEntry:
        path = self._path(session, key)
        written = sftp_files.put_file(session, path, size, fill, mode)
        return sftp_files.describe(session, [(key, path, written)])[0]

    def _copy(self, session: SftpSession, source: str, target: str) -> ObjectEntry:
        path = self._path(session, source)
        found = sftp_files.look(session, path)
        if not stat.S_ISREG(found.mode or 0):
            raise Invalid(f"{source!r} is not a file")
        size = found.size or 0
        return self._put(session, target, size, sftp_files.copier(path, size, _PIECE), None)

    def _rename(self, session: SftpSession, source: str, target: str) -> None:
        old, new = self._path(session, source), self._path(session, target)
        moved = sftp_files.look(session, old)
        if source == target:
            return
        replaced = sftp_files.find(session, new)
        if replaced is not None and sftp_files.is_directory(moved) != sftp_files.is_directory(replaced):
            raise Invalid(f"{target!r} is there, and only one of the two is a directory")
        sftp_files.date_apart(session, old, moved, replaced)
        try:
            sftp_files.move(session, old, new)
        except Refused as refused:
            if replaced is None or not sftp_files.is_directory(replaced) or refused.status != Status.FAILURE:
                raise
            self._sweep(session, target, new)
            sftp_files.move(session, old, new)

    def _sweep(self, session: SftpSession, key: str, path: bytes) -> None:
        """Out of a directory that shows nothing: what writers that died have left in it."""
        names = [name for name, _ in session.names(path)]
        if not all(is_hidden(os.fsdecode(name)) for name in names):
            raise InUse(f"{key!r} is not empty")
        for name in names:
            session.call(Kind.REMOVE, text(path + b"/" + name))

    # Ways.

    def _path(self, session: SftpSession, key: str) -> bytes:
        """Where a key is on the server, once it is sure that no link is on the way there."""
        if parent := parent_of(key):
            self._check_way(session, parent)
        return self._root + b"/" + os.fsencode(key) if key else self._root or b"/"

    def _check_way(self, session: SftpSession, directory: str) -> None:
        now = time.monotonic()
        with self._ways_lock:
            if now - self._ways.get(directory, -_WAY_KNOWN_S) < _WAY_KNOWN_S:
                return
        root = _resolved(session, self._root or b"/").rstrip(b"/")
        if _resolved(session, self._root + b"/" + os.fsencode(directory)) != root + b"/" + os.fsencode(directory):
            raise NotFound(f"the way to {directory!r} leads through a link, which is not followed")
        with self._ways_lock:
            if len(self._ways) >= _WAYS:
                self._ways.clear()
            self._ways[directory] = now

    def _forget_ways(self) -> None:
        with self._ways_lock:
            self._ways.clear()

    # Trying, and trying again.

    def _again(self, key: str, act: Callable[[SftpSession], T]) -> T:
        """For what may be done twice."""

        def attempt() -> T:
            with self._in_our_words(key), self._pool.use() as session:
                return act(session)

        return self._retry.run(attempt)

    def _once(self, key: str, act: Callable[[SftpSession], T]) -> T:
        """For what may not: only reaching the server is tried again."""

        def attempt() -> T | _MayHaveHappened:
            with self._pool.use() as session:
                try:
                    return act(session)
                except Broken as error:
                    return _MayHaveHappened(error)

        with self._in_our_words(key):
            done = self._retry.run(attempt)
            if isinstance(done, _MayHaveHappened):
                raise Unavailable(f"{done.error.message}; {key!r} may have been changed") from done.error
            return done

    @contextmanager
    def _in_our_words(self, key: str) -> Iterator[None]:
        try:
            yield
        except Refused as refused:
            raise self._translated(refused, key) from refused

    def _translated(self, refused: Refused, key: str) -> PaddleFlowError:
        told = f"{self._name} says: {refused.told}"
        match refused.status:
            case Status.NO_SUCH_FILE:
                return NotFound(f"{key!r} is not there")
            case Status.PERMISSION_DENIED:
                return Denied(f"the account has no right to use {key!r} ({told})")
            case Status.BAD_MESSAGE:
                return Invalid(f"{key!r} cannot be used there; is a name too long? ({told})")
            case Status.UNSUPPORTED:
                return Invalid(f"{key!r}: the server cannot do this ({told})")
        return Unavailable(f"{key!r} cannot be used ({told})")


def _resolved(session: SftpSession, path: bytes) -> bytes:
    reply = session.call(Kind.REALPATH, text(path), expect=Kind.NAME)
    reply.number()
    return reply.text()


def _no_xattrs(key: str) -> Invalid:
    check_key(key)
    return Invalid("SFTP has no extended attributes")
