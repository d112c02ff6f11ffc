"""The first word between the kernel and us: what it offers, what we take, and what that makes of the mount.

It is said once in the life of a mount. A front that takes over never hears it, so the outcome is a plain value that
travels as JSON. Whether the kernel may read cached files by itself (passthrough) is not believed but tried: it depends
on the kernel, on our privileges and on the filesystem below the cache.

Left alone on purpose: the kernel's write-back cache (it excludes passthrough), locks (without a word from us the kernel
keeps POSIX locks and flock itself, per machine), ACLs, and a time limit on requests (the kernel's way of enforcing it
is to break the mount).
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import select
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from paddleflow.domain.errors import Unavailable
from paddleflow.pfs.fuse import protocol
from paddleflow.pfs.fuse.protocol import InitFlag, Opcode

MAX_PAGES = 256
MAX_WRITE = MAX_PAGES * 4096
MAX_BACKGROUND = 64
CONGESTION = 48
OLDEST_MINOR = 31
"""Linux 5.4. Older kernels know neither large requests nor explicit invalidation, and nobody supports them any more."""
INIT_DEADLINE_S = 30.0

ALWAYS_WANTED = (
    InitFlag.ASYNC_READ
    | InitFlag.ATOMIC_O_TRUNC
    | InitFlag.BIG_WRITES
    | InitFlag.DO_READDIRPLUS
    | InitFlag.READDIRPLUS_AUTO
    | InitFlag.PARALLEL_DIROPS
    | InitFlag.MAX_PAGES
    | InitFlag.CACHE_SYMLINKS
    | InitFlag.EXPLICIT_INVAL_DATA
    | InitFlag.HANDLE_KILLPRIV_V2
    | InitFlag.INIT_EXT
    | InitFlag.HAS_EXPIRE_ONLY
    | InitFlag.DIRECT_IO_ALLOW_MMAP
    | InitFlag.HAS_RESEND
)
"""KILLPRIV_V2 looks unneeded on a mount without set-uid, but without it the kernel asks for an extended attribute
before every single write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What the mount is to be. ``dataset``: the kernel opens files and directories without asking us."""

    dataset: bool = False
    passthrough: bool = True
    stack_depth: int = 1
    """How many stacked filesystems may lie below a backing file: 2 allows a cache on overlayfs, and then forbids using
    the mount as a layer of another overlayfs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Negotiated:
    minor: int
    flags: int
    max_write: int = MAX_WRITE
    dataset: bool = False
    passthrough: bool = False
    passthrough_why: str = ""
    """Why there is none; a sentence without its full stop."""
    stack_depth: int = 1

    @property
    def resend(self) -> bool:
        """A request that a dead front had read is sent again. Without (before Linux 6.9) its caller waits for ever, so
        such a caller must be killed by hand, or the mount taken down."""
        return bool(self.flags & InitFlag.HAS_RESEND)

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Negotiated:
        return cls(**json.loads(text))


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What the kernel said."""

    unique: int
    major: int
    minor: int
    max_readahead: int
    flags: int


def read_offer(request: bytes) -> Offer:
    header = protocol.read_header(request)
    if header.opcode != Opcode.INIT:
        raise Unavailable(f"the kernel began with request {header.opcode} where it should have introduced itself")
    start = protocol.HEADER_IN
    if header.length >= start + protocol.INIT_IN.size:
        major, minor, readahead, low, high = protocol.INIT_IN.unpack_from(request, start)
    else:
        major, minor, readahead, low = protocol.INIT_IN_OLD.unpack_from(request, start)
        high = 0
    flags = low | (high << 32 if low & InitFlag.INIT_EXT else 0)
    return Offer(unique=header.unique, major=major, minor=minor, max_readahead=readahead, flags=flags)


def choose(offer: Offer, wanted: Wanted) -> Negotiated:
    """What we take of an offer. Pure."""
    if offer.major != protocol.MAJOR or offer.minor < OLDEST_MINOR:
        raise Unavailable(
            f"this kernel speaks version {offer.major}.{offer.minor} of the FUSE protocol; "
            f"{protocol.MAJOR}.{OLDEST_MINOR} (Linux 5.4) or newer is needed"
        )
    wish = ALWAYS_WANTED
    why = ""
    if wanted.dataset:
        wish |= InitFlag.NO_OPEN_SUPPORT | InitFlag.NO_OPENDIR_SUPPORT
        why = "a data set mount keeps pages instead, which is faster for many small files"
    elif not wanted.passthrough:
        why = "it was turned off"
    elif offer.flags & InitFlag.PASSTHROUGH:
        wish |= InitFlag.PASSTHROUGH
    else:
        why = "this kernel has none (Linux 6.9 or newer, built with FUSE_PASSTHROUGH, is needed)"
    taken = int(offer.flags & wish)
    return Negotiated(
        minor=min(offer.minor, protocol.MINOR),
        flags=taken,
        dataset=wanted.dataset,
        passthrough=bool(taken & InitFlag.PASSTHROUGH),
        passthrough_why=why,
        stack_depth=wanted.stack_depth,
    )


def pack_reply(offer: Offer, chosen: Negotiated) -> bytes:
    body = protocol.INIT_OUT.pack(
        protocol.MAJOR,
        chosen.minor,
        max(offer.max_readahead, chosen.max_write),
        chosen.flags & 0xFFFFFFFF,
        MAX_BACKGROUND,
        CONGESTION,
        chosen.max_write,
        1,
        MAX_PAGES,
        0,
        chosen.flags >> 32,
        chosen.stack_depth if chosen.flags & InitFlag.PASSTHROUGH else 0,
        0,
    )
    return protocol.pack_answer(offer.unique, body)


def negotiate(fuse_fd: int, wanted: Wanted, backing_dirs: Sequence[str]) -> Negotiated:
    """Answer the kernel's first request and try passthrough on each directory that will hold backing files.

    ``Stacked`` when it would work with ``stack_depth`` 2: that cannot be said a second time, so mount anew."""
    ready = select.poll()
    ready.register(fuse_fd, select.POLLIN)
    if not ready.poll(INIT_DEADLINE_S * 1000):
        raise Unavailable(f"the kernel did not introduce itself within {INIT_DEADLINE_S:g} s of the mount")
    offer = read_offer(os.read(fuse_fd, MAX_WRITE + protocol.WRITE_HEADERS))
    chosen = choose(offer, wanted)
    os.write(fuse_fd, pack_reply(offer, chosen))
    if not chosen.passthrough:
        return chosen
    for directory in backing_dirs:
        why = try_backing(fuse_fd, directory, chosen.stack_depth)
        if why:
            return replace(chosen, passthrough=False, passthrough_why=why)
    return chosen


class Stacked(Exception):
    """The cache lies on a stacked filesystem, which a mount of stack depth 2 could pass through."""


def try_backing(fuse_fd: int, directory: str, stack_depth: int) -> str:
    """Register a file of this directory with the kernel, and take it back; the answer is what hinders, or nothing."""
    try:
        path = f"{directory}/.passthrough-{os.getpid()}"
        trial = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.unlink(path)
            close_backing(fuse_fd, open_backing(fuse_fd, trial))
        finally:
            os.close(trial)
    except OSError as error:
        if error.errno == errno.ELOOP and stack_depth == 1:
            raise Stacked(directory) from error
        reasons = {
            errno.EPERM: "it needs root (CAP_SYS_ADMIN outside of any user namespace)",
            errno.ELOOP: f"{directory} lies on a stack of filesystems that is too high",
            errno.EOPNOTSUPP: f"the filesystem of {directory} cannot be read by the kernel for us",
        }
        return reasons.get(error.errno or 0, f"trying it in {directory} failed: {error.strerror or error}")
    return ""


def open_backing(fuse_fd: int, fd: int) -> int:
    """The number under which the kernel knows this open file from now on, for the whole connection."""
    # With immutable bytes, ioctl would give back the buffer instead of the number.
    return int(fcntl.ioctl(fuse_fd, protocol.IOC_BACKING_OPEN, bytearray(protocol.BACKING_MAP.pack(fd, 0, 0)), True))


def close_backing(fuse_fd: int, backing: int) -> None:
    fcntl.ioctl(fuse_fd, protocol.IOC_BACKING_CLOSE, bytearray(backing.to_bytes(4, "little")), True)
