"""The words of the kernel's protocol: numbers, layouts, and how to read and write them. It does nothing else.

Version 7.45 of the protocol, little endian, 64 bit; every layout is padded to eight bytes by the kernel's own rule, so
the same numbers hold on every machine we run on. Requests are unpacked at an offset of the read buffer, because copying
them first would cost more than reading them. Names are text in which a byte that is no UTF-8 is a surrogate.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum, IntFlag
from stat import S_IFMT
from struct import Struct
from typing import Final, NamedTuple

from paddleflow.pfs.attrs import Attr, Entry, Wish

MAJOR: Final = 7
MINOR: Final = 45
RESENT: Final = 1 << 63
"""Set in a request's number when the kernel sends it again because the one who had read it is gone."""
MIN_READ_BUFFER: Final = 8192
UNKNOWN_INO: Final = 0xFFFFFFFF
NANO: Final = 1_000_000_000


class Opcode(IntEnum):
    LOOKUP = 1
    FORGET = 2
    GETATTR = 3
    SETATTR = 4
    READLINK = 5
    SYMLINK = 6
    MKNOD = 8
    MKDIR = 9
    UNLINK = 10
    RMDIR = 11
    RENAME = 12
    LINK = 13
    OPEN = 14
    READ = 15
    WRITE = 16
    STATFS = 17
    RELEASE = 18
    FSYNC = 20
    SETXATTR = 21
    GETXATTR = 22
    LISTXATTR = 23
    REMOVEXATTR = 24
    FLUSH = 25
    INIT = 26
    OPENDIR = 27
    READDIR = 28
    RELEASEDIR = 29
    FSYNCDIR = 30
    GETLK = 31
    SETLK = 32
    SETLKW = 33
    ACCESS = 34
    CREATE = 35
    INTERRUPT = 36
    BMAP = 37
    DESTROY = 38
    IOCTL = 39
    POLL = 40
    NOTIFY_REPLY = 41
    BATCH_FORGET = 42
    FALLOCATE = 43
    READDIRPLUS = 44
    RENAME2 = 45
    LSEEK = 46
    COPY_FILE_RANGE = 47
    SETUPMAPPING = 48
    REMOVEMAPPING = 49
    SYNCFS = 50
    TMPFILE = 51
    STATX = 52
    COPY_FILE_RANGE_64 = 53


OPCODES: Final = 64
"""One more than any number above, and then some: the size of a table that is indexed by opcode."""


class InitFlag(IntFlag):
    ASYNC_READ = 1 << 0
    ATOMIC_O_TRUNC = 1 << 3
    BIG_WRITES = 1 << 5
    DO_READDIRPLUS = 1 << 13
    READDIRPLUS_AUTO = 1 << 14
    WRITEBACK_CACHE = 1 << 16
    NO_OPEN_SUPPORT = 1 << 17
    PARALLEL_DIROPS = 1 << 18
    MAX_PAGES = 1 << 22
    CACHE_SYMLINKS = 1 << 23
    NO_OPENDIR_SUPPORT = 1 << 24
    EXPLICIT_INVAL_DATA = 1 << 25
    HANDLE_KILLPRIV_V2 = 1 << 28
    INIT_EXT = 1 << 30
    HAS_EXPIRE_ONLY = 1 << 35
    DIRECT_IO_ALLOW_MMAP = 1 << 36
    PASSTHROUGH = 1 << 37
    HAS_RESEND = 1 << 39


class OpenFlag:
    """What the answer to an open tells the kernel about it. Plain numbers: enums cost a microsecond a piece here."""

    DIRECT_IO: Final = 1 << 0
    KEEP_CACHE: Final = 1 << 1
    NOFLUSH: Final = 1 << 5
    PASSTHROUGH: Final = 1 << 7


class SetAttr:
    """Which fields of a SETATTR are meant."""

    MODE: Final = 1 << 0
    UID: Final = 1 << 1
    GID: Final = 1 << 2
    SIZE: Final = 1 << 3
    ATIME: Final = 1 << 4
    MTIME: Final = 1 << 5
    FH: Final = 1 << 6
    ATIME_NOW: Final = 1 << 7
    MTIME_NOW: Final = 1 << 8


class Notify(IntEnum):
    INVAL_INODE = 2
    INVAL_ENTRY = 3
    DELETE = 6
    RESEND = 7
    INC_EPOCH = 8


EXPIRE_ONLY: Final = 1
GETATTR_FH: Final = 1
FSYNC_DATA_ONLY: Final = 1

IOC_BACKING_OPEN: Final = 0x4010E501
IOC_BACKING_CLOSE: Final = 0x4004E502

IN_HEADER: Final = Struct("<IIQQIIIHH")
OUT_HEADER: Final = Struct("<IiQ")
HEADER_IN: Final = IN_HEADER.size
HEADER_OUT: Final = OUT_HEADER.size

INIT_IN: Final = Struct("<IIIII")
INIT_IN_OLD: Final = Struct("<IIII")
INIT_OUT: Final = Struct("<IIIIHHIIHHIIH22x")
ATTR_OUT: Final = Struct("<QII3Q3q10I")
ENTRY_OUT: Final = Struct("<QQQQII3Q3q10I")
OPEN_OUT: Final = Struct("<QIi")
STATFS_OUT: Final = Struct("<5Q4I24x")
WRITE_OUT: Final = Struct("<II")
GETXATTR_OUT: Final = Struct("<II")
DIRENT: Final = Struct("<QQII")
BACKING_MAP: Final = Struct("<iIQ")

NODE: Final = Struct("<Q")
"""The whole of a FORGET (a count), of the fixed part of LINK and RENAME (another node), of an INTERRUPT (a request)."""
FORGET_ONE: Final = Struct("<QQ")
TWO_WORDS: Final = Struct("<II")
"""OPEN (flags), MKDIR (mode, umask), ACCESS (mask), GETXATTR and LISTXATTR (room), SETXATTR (size, flags),
BATCH_FORGET (count)."""
GETATTR_IN: Final = Struct("<IIQ")
SETATTR_IN: Final = Struct("<IIQQQQQQIIIIIIII")
MKNOD_IN: Final = Struct("<IIII")
CREATE_IN: Final = Struct("<IIII")
RENAME2_IN: Final = Struct("<QII")
READ_IN: Final = Struct("<QQIIQII")
WRITE_IN: Final = Struct("<QQIIQII")
RELEASE_IN: Final = Struct("<QIIQ")
FLUSH_IN: Final = Struct("<QIIQ")
FSYNC_IN: Final = Struct("<QII")
FALLOCATE_IN: Final = Struct("<QQQII")

INVAL_INODE_OUT: Final = Struct("<Qqq")
INVAL_ENTRY_OUT: Final = Struct("<QII")
DELETE_OUT: Final = Struct("<QQII")

WRITE_HEADERS: Final = HEADER_IN + WRITE_IN.size


class Header(NamedTuple):
    """Whatever a request is, it begins with this."""

    length: int
    opcode: int
    unique: int
    node: int
    uid: int
    gid: int
    pid: int
    extensions: int
    padding: int


def read_header(buffer: bytes | bytearray | memoryview) -> Header:
    return Header._make(IN_HEADER.unpack_from(buffer))


def decode_name(raw: bytes | bytearray) -> str:
    return raw.decode("utf-8", "surrogateescape")


def encode_name(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")


def one_name(buffer: bytearray, start: int, end: int) -> str:
    """A name that ends with a NUL and the request."""
    return buffer[start : buffer.index(0, start, end)].decode("utf-8", "surrogateescape")


def two_names(buffer: bytearray, start: int, end: int) -> tuple[str, str]:
    middle = buffer.index(0, start, end)
    return one_name(buffer, start, middle + 1), one_name(buffer, middle + 1, end)


_split_times: dict[float, tuple[int, int]] = {}
"""A mount has two or three times to live, and packs them a hundred thousand times a second."""


def split_time(seconds: float) -> tuple[int, int]:
    """Seconds and nanoseconds."""
    known = _split_times.get(seconds)
    if known is None:
        whole = int(seconds)
        known = whole, int((seconds - whole) * NANO)
        if len(_split_times) < 64:
            _split_times[seconds] = known
    return known


def pack_answer(unique: int, body: bytes) -> bytes:
    return OUT_HEADER.pack(HEADER_OUT + len(body), 0, unique) + body


def pack_error(unique: int, errno: int) -> bytes:
    return OUT_HEADER.pack(HEADER_OUT, -errno, unique)


def pack_notification(code: int, body: bytes) -> bytes:
    return OUT_HEADER.pack(HEADER_OUT + len(body), code, 0) + body


BLOCK_SIZE: Final = 4096
"""``st_blksize``: what ``cp`` and ``cat`` take as a hint for how much to move at once."""


def attr_words(attr: Attr) -> tuple[int, ...]:
    atime, atime_ns = divmod(attr.atime_ns, NANO)
    mtime, mtime_ns = divmod(attr.mtime_ns, NANO)
    ctime, ctime_ns = divmod(attr.ctime_ns, NANO)
    times = (atime, mtime, ctime, atime_ns, mtime_ns, ctime_ns)
    return (attr.ino, attr.size, attr.blocks, *times, attr.mode, attr.nlink, attr.uid, attr.gid, 0, BLOCK_SIZE, 0)


def pack_attr(attr: Attr, ttl: float) -> bytes:
    whole, rest = split_time(ttl)
    return ATTR_OUT.pack(whole, rest, 0, *attr_words(attr))


def pack_entry(entry: Entry) -> bytes:
    """Generation 0: numbers of nodes are never used twice."""
    name_s, name_ns = split_time(entry.entry_ttl)
    attr_s, attr_ns = split_time(entry.attr_ttl)
    return ENTRY_OUT.pack(entry.node, 0, name_s, attr_s, name_ns, attr_ns, *attr_words(entry.attr))


NO_ENTRY: Final = bytes(ENTRY_OUT.size)
"""In a listing: this name is not to be remembered (``.`` and ``..``)."""


def pack_absence(ttl: float) -> bytes:
    """No such name, and how long that may be believed."""
    whole, rest = split_time(ttl)
    return ENTRY_OUT.pack(0, 0, whole, 0, rest, 0, *(0,) * 16)


def pack_opened(handle: int, flags: int, backing: int = 0) -> bytes:
    return OPEN_OUT.pack(handle, flags, backing)


def dirent_size(name: bytes) -> int:
    return (DIRENT.size + len(name) + 7) & ~7


def pack_dirent(ino: int, cookie: int, mode: int, name: bytes) -> bytes:
    """``cookie`` is where a listing goes on after this one."""
    size = DIRENT.size + len(name)
    return DIRENT.pack(ino, cookie, len(name), S_IFMT(mode) >> 12) + name + bytes(-size & 7)


def pack_statfs(numbers: Sequence[int]) -> bytes:
    """blocks, bfree, bavail, files, ffree, bsize, namelen, frsize."""
    return STATFS_OUT.pack(*numbers, 0)


def read_wish(buffer: bytes | bytearray | memoryview, start: int, now_ns: int) -> tuple[Wish, int | None]:
    """What a SETATTR wants, and through which open file. Times before 1970 are negative."""
    (valid, _, fh, size, _, atime, mtime, _, atime_ns, mtime_ns, _, mode, _, uid, gid, _) = SETATTR_IN.unpack_from(
        buffer, start
    )
    wish = Wish(
        mode=mode if valid & SetAttr.MODE else None,
        uid=uid if valid & SetAttr.UID else None,
        gid=gid if valid & SetAttr.GID else None,
        size=size if valid & SetAttr.SIZE else None,
        atime_ns=_wished_time(bool(valid & SetAttr.ATIME), bool(valid & SetAttr.ATIME_NOW), (atime, atime_ns), now_ns),
        mtime_ns=_wished_time(bool(valid & SetAttr.MTIME), bool(valid & SetAttr.MTIME_NOW), (mtime, mtime_ns), now_ns),
    )
    return wish, fh if valid & SetAttr.FH else None


def _wished_time(is_meant: bool, is_now: bool, time: tuple[int, int], now_ns: int) -> int | None:
    if is_now:
        return now_ns
    if not is_meant:
        return None
    seconds = time[0] - (1 << 64) if time[0] >> 63 else time[0]
    return seconds * NANO + time[1]


def pack_inval_inode(node: int, start: int, size: int) -> bytes:
    """``start`` -1: the attributes alone. ``size`` 0: to the end."""
    return pack_notification(Notify.INVAL_INODE, INVAL_INODE_OUT.pack(node, start, size))


def pack_inval_entry(parent: int, name: str, *, expire: bool) -> bytes:
    raw = encode_name(name)
    flags = EXPIRE_ONLY if expire else 0
    return pack_notification(Notify.INVAL_ENTRY, INVAL_ENTRY_OUT.pack(parent, len(raw), flags) + raw + b"\0")


def pack_delete(parent: int, child: int, name: str) -> bytes:
    raw = encode_name(name)
    return pack_notification(Notify.DELETE, DELETE_OUT.pack(parent, child, len(raw), 0) + raw + b"\0")


def pack_resend() -> bytes:
    return pack_notification(Notify.RESEND, b"")


def pack_new_epoch() -> bytes:
    return pack_notification(Notify.INC_EPOCH, b"")
