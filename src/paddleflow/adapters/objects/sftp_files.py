"""What is done with files of an SFTP server over one session: looking, reading, replacing. Paths are bytes.

Owns how a file's version is made and kept changing (see ``sftp``). Knows nothing of keys, of retrying, or of our errors
for what the server refuses.
"""

from __future__ import annotations

import contextlib
import os
import stat
import struct
from collections.abc import Callable, Sequence

from paddleflow.adapters.objects.keys import hidden_name
from paddleflow.adapters.objects.sftp_wire import (
    Attributes,
    Broken,
    Flag,
    Kind,
    Refused,
    SftpSession,
    Status,
    pack,
    text,
)
from paddleflow.domain.errors import DiskFull, Invalid, Stale
from paddleflow.ports.objects import ObjectEntry

Fill = Callable[[SftpSession, bytes], None]
"""Write a file's content by its handle."""

_FULL = 1024 * 1024
"""Free bytes below which a write that failed without a reason failed for want of room."""
_FUTURE_S = 60
"""A file dated further ahead than this was dated so by somebody; a new content does not follow it there."""


def find(session: SftpSession, path: bytes) -> Attributes | None:
    """Links are not followed."""
    try:
        return look(session, path)
    except Refused as refused:
        if refused.status == Status.NO_SUCH_FILE:
            return None
        raise


def look(session: SftpSession, path: bytes) -> Attributes:
    return session.call(Kind.LSTAT, text(path), expect=Kind.ATTRS).attributes()


def version_of(found: Attributes) -> str:
    return f"{found.mtime or 0}-{found.size or 0}"


def is_directory(found: Attributes) -> bool:
    return stat.S_ISDIR(found.mode or 0)


def is_link(found: Attributes) -> bool:
    return stat.S_ISLNK(found.mode or 0)


def room(session: SftpSession, path: bytes) -> tuple[int, int] | None:
    """All and free, in bytes, where the server tells."""
    if b"statvfs@openssh.com" not in session.extensions:
        return None
    reply = session.extended(b"statvfs@openssh.com", text(path), expect=Kind.EXTENDED_REPLY)
    _, unit, blocks, _, available = (reply.long() for _ in range(5))
    return unit * blocks, unit * available


def is_full(session: SftpSession, path: bytes) -> bool:
    """SFTP has no word for a full disk, so the server is asked for its free space."""
    found = room(session, path)
    return found is not None and found[1] < _FULL


def describe(session: SftpSession, found: Sequence[tuple[str, bytes, Attributes]]) -> list[ObjectEntry]:
    """Entries for keys, paths and what was found there; the targets of links are asked for together."""
    asked = {key: session.send(Kind.READLINK, text(path)) for key, path, attributes in found if is_link(attributes)}
    entries = []
    for key, _, attributes in found:
        target = None
        if key in asked:
            try:
                reply = session.receive(asked[key], Kind.NAME)
            except Refused:
                # Taken away since the directory was listed.
                continue
            reply.number()
            target = os.fsdecode(reply.text())
        entries.append(_entry(key, attributes, target))
    return entries


def _entry(key: str, found: Attributes, target: str | None) -> ObjectEntry:
    return ObjectEntry(
        key=key,
        is_directory=is_directory(found),
        size=0 if is_directory(found) else found.size or 0,
        modified_ns=(found.mtime or 0) * 1_000_000_000,
        version="" if is_directory(found) else version_of(found),
        mode=None if found.mode is None else stat.S_IMODE(found.mode),
        uid=found.uid,
        gid=found.gid,
        link_target=target,
    )


def read_file(session: SftpSession, path: bytes, start: int, size: int, version: str) -> bytes | None:
    """None: it was changed meanwhile, and the bytes are not to be trusted."""
    looked = look(session, path)
    if not stat.S_ISREG(looked.mode or stat.S_IFREG):
        raise Invalid(f"{_shown(path)} is not a file")
    if version and version_of(looked) != version:
        raise Stale(f"{_shown(path)} is another version by now")
    flags = struct.pack(">I", Flag.READ)
    handle = session.call(Kind.OPEN, text(path), flags, pack(Attributes()), expect=Kind.HANDLE).text()
    try:
        # Asked for together: the file that was opened may already be another one than the one that was looked at.
        opened = session.send(Kind.FSTAT, text(handle))
        content = session.read(handle, start, max(0, min(size, (looked.size or 0) - start)))
        began = session.receive(opened, Kind.ATTRS).attributes()
        ended = session.call(Kind.FSTAT, text(handle), expect=Kind.ATTRS).attributes()
    finally:
        _close(session, handle)
    return content if version_of(looked) == version_of(began) == version_of(ended) else None


def _close(session: SftpSession, handle: bytes) -> None:
    """A connection that broke has closed all its files."""
    if not session.is_broken:
        session.call(Kind.CLOSE, text(handle))


def _shown(path: bytes) -> str:
    return repr(os.fsdecode(path))


def put_file(session: SftpSession, path: bytes, size: int, fill: Fill, mode: int | None) -> Attributes:
    """Written under a hidden name beside it, made durable, moved over it."""
    old = find(session, path)
    if old is not None and is_directory(old):
        raise Invalid(f"{_shown(path)} is a directory")
    hidden = os.path.dirname(path) + b"/" + hidden_name().encode()
    flags = struct.pack(">I", Flag.WRITE | Flag.CREATE | Flag.EXCLUSIVE)
    handle = session.call(Kind.OPEN, text(hidden), flags, pack(Attributes(mode=0o600)), expect=Kind.HANDLE).text()
    try:
        try:
            fill(session, handle)
            written = _dress(session, handle, size, old, mode)
        finally:
            _close(session, handle)
        move(session, hidden, path)
    except BaseException as error:
        # Asked now, while what was written so far still takes its room.
        has_no_room = isinstance(error, Refused) and error.status == Status.FAILURE and is_full(session, hidden)
        # What cannot be taken away now is hidden, and goes with its directory.
        with contextlib.suppress(Refused, Broken):
            session.call(Kind.REMOVE, text(hidden))
        if has_no_room:
            raise DiskFull(f"there is no room for {_shown(path)}") from error
        raise
    return written


def _dress(session: SftpSession, handle: bytes, size: int, old: Attributes | None, mode: int | None) -> Attributes:
    """The permissions and the owner of the one it replaces, a later time, and onto the disk with it."""
    made = session.call(Kind.FSTAT, text(handle), expect=Kind.ATTRS).attributes()
    if made.size != size:
        raise Broken(f"the SFTP server holds {made.size} bytes of a file of {size}")
    keeps = old if old is not None and not is_link(old) else None
    if mode is None:
        mode = 0o644 if keeps is None or keeps.mode is None else stat.S_IMODE(keeps.mode)
    if keeps is not None and (keeps.uid, keeps.gid) != (made.uid, made.gid):
        # Only a superuser gives files away. The content matters more than whose it is.
        with contextlib.suppress(Refused):
            session.call(Kind.FSETSTAT, text(handle), pack(Attributes(uid=keeps.uid, gid=keeps.gid)))
    mtime = later_than(made.mtime or 0, old)
    wish = Attributes(mode=mode, atime=made.atime or mtime, mtime=mtime)
    session.call(Kind.FSETSTAT, text(handle), pack(wish))
    if b"fsync@openssh.com" in session.extensions:
        session.extended(b"fsync@openssh.com", text(handle))
    return session.call(Kind.FSTAT, text(handle), expect=Kind.ATTRS).attributes()


def later_than(mtime: int, old: Attributes | None) -> int:
    """The time of a new content, such that no older content of this name had it."""
    before = 0 if old is None else old.mtime or 0
    return before + 1 if mtime <= before <= mtime + _FUTURE_S else mtime


def move(session: SftpSession, source: bytes, target: bytes) -> None:
    """At once, over whatever file is there. A server that cannot do that refuses where something is."""
    if b"posix-rename@openssh.com" in session.extensions:
        session.extended(b"posix-rename@openssh.com", text(source), text(target))
    else:
        session.call(Kind.RENAME, text(source), text(target))


def date_apart(session: SftpSession, source: bytes, moved: Attributes, replaced: Attributes | None) -> None:
    """A file that is about to replace another one of the same second, or a little younger, is dated after that one."""
    mtime = later_than(moved.mtime or 0, replaced)
    if mtime == moved.mtime or is_directory(moved) or is_link(moved):
        return
    session.call(Kind.SETSTAT, text(source), pack(Attributes(atime=moved.atime or mtime, mtime=mtime)))


def _slicer(content: bytes) -> Callable[[int, int], bytes]:
    return lambda at, length: content[at : at + length]


def copier(source: bytes, size: int, piece: int) -> Fill:
    """Fills a file with the content of another one; inside the server, where it knows how."""

    def fill(session: SftpSession, handle: bytes) -> None:
        flags = struct.pack(">I", Flag.READ)
        origin = session.call(Kind.OPEN, text(source), flags, pack(Attributes()), expect=Kind.HANDLE).text()
        try:
            if b"copy-data" in session.extensions:
                whole = struct.pack(">QQ", 0, size)
                session.extended(b"copy-data", text(origin), whole, text(handle), struct.pack(">Q", 0))
                return
            for start in range(0, size, piece):
                content = session.read(origin, start, min(piece, size - start))
                session.write(handle, len(content), _slicer(content), start=start)
        finally:
            _close(session, origin)

    return fill
