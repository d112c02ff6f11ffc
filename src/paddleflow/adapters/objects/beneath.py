"""Ways to what is below a directory that no link leads out of, and what the system says of it.

Each part of a key is opened by itself, relative to the descriptor of the part before, and never through a link.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from paddleflow.domain.errors import (
    Denied,
    DiskFull,
    Duplicate,
    InUse,
    Invalid,
    NotFound,
    PaddleFlowError,
    Unavailable,
)
from paddleflow.ports.objects import ObjectEntry

PASS = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
"""To go through a directory: not even the right to list it is needed."""
LIST = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
LOOK = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

_ERRORS: dict[int | None, tuple[type[PaddleFlowError], str]] = {
    errno.ENOENT: (NotFound, "it is not there"),
    errno.ENOTDIR: (NotFound, "it, or something on the way to it, is not a directory"),
    errno.EEXIST: (Duplicate, "it is there already"),
    errno.ENOTEMPTY: (InUse, "it is not empty"),
    errno.EBUSY: (InUse, "it is in use"),
    errno.EACCES: (Denied, "no permission"),
    errno.EPERM: (Denied, "not permitted"),
    errno.EROFS: (Denied, "the filesystem is read-only"),
    errno.ENOSPC: (DiskFull, "the disk is full"),
    errno.EDQUOT: (DiskFull, "the quota is used up"),
    errno.EISDIR: (Invalid, "it is a directory"),
    errno.ELOOP: (Invalid, "it is a link, which is not followed"),
    errno.ENAMETOOLONG: (Invalid, "the name is too long"),
    errno.EINVAL: (Invalid, "the system refuses it"),
    errno.EILSEQ: (Invalid, "the filesystem cannot hold such a name"),
    errno.EFBIG: (Invalid, "it is too large for the filesystem"),
    errno.E2BIG: (Invalid, "the attribute is too large"),
    errno.ENOTSUP: (Invalid, "the filesystem cannot do this"),
}


@contextmanager
def told(what: str) -> Iterator[None]:
    """An error of the system, as one of the domain."""
    try:
        yield
    except OSError as error:
        kind, sentence = _ERRORS.get(error.errno, (Unavailable, f"the system says: {error.strerror}"))
        raise kind(f"{what}: {sentence}") from error


def open_below(directory: str, key: str, flags: int) -> int:
    """A directory, by its key; ``flags`` are for it alone, what is before it is only passed through."""
    with told(directory):
        # The root itself may be a link: whoever set the filesystem up chose it.
        fd = os.open(directory, (PASS if key else flags) & ~os.O_NOFOLLOW)
    parts = key.split("/") if key else []
    for number, part in enumerate(parts, 1):
        is_last = number == len(parts)
        try:
            with told(key):
                deeper = os.open(part, flags if is_last else PASS, dir_fd=fd)
        except NotFound as error:
            if is_last and find(fd, part) is not None:
                raise Invalid(f"{key} is not a directory") from error
            raise
        finally:
            os.close(fd)
        fd = deeper
    return fd


@contextmanager
def opened(name: str, flags: int, directory_fd: int) -> Iterator[int]:
    fd = os.open(name, flags, dir_fd=directory_fd)
    try:
        yield fd
    finally:
        os.close(fd)


def find(directory_fd: int, name: str) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=directory_fd, follow_symlinks=False)
    except FileNotFoundError:
        return None


def describe(key: str, found: os.stat_result, read_target: Callable[[], str]) -> ObjectEntry:
    is_directory, is_link = stat.S_ISDIR(found.st_mode), stat.S_ISLNK(found.st_mode)
    if not (is_directory or is_link or stat.S_ISREG(found.st_mode)):
        raise NotFound(f"{key} is neither file nor directory nor link")
    return ObjectEntry(
        key=key,
        is_directory=is_directory,
        size=0 if is_directory else found.st_size,
        modified_ns=found.st_mtime_ns,
        version="" if is_directory else version_of(found),
        mode=stat.S_IMODE(found.st_mode),
        uid=found.st_uid,
        gid=found.st_gid,
        link_target=read_target() if is_link else None,
    )


def version_of(found: os.stat_result) -> str:
    return f"{found.st_mtime_ns:x}-{found.st_size:x}-{found.st_ino:x}"


def read_upto(fd: int, start: int, size: int) -> bytes:
    """These bytes, or fewer where the file ends. A whole answer in one call is the rule; signals and odd filesystems
    are why it is not relied on."""
    size = max(0, min(size, os.fstat(fd).st_size - start))
    content = os.pread(fd, size, start) if size else b""
    while content and len(content) < size:
        more = os.pread(fd, size - len(content), start + len(content))
        if not more:
            break
        content += more
    return content


def attributes(fd: int) -> dict[str, bytes]:
    """The extended attributes that users may set; links have none."""
    if stat.S_ISLNK(os.fstat(fd).st_mode):
        return {}
    itself = magic_path(fd)
    try:
        names = os.listxattr(itself)
    except OSError as error:
        if error.errno == errno.ENOTSUP:
            return {}  # a filesystem without them holds none
        raise
    return {name: os.getxattr(itself, name) for name in names if name.startswith("user.")}


def magic_path(fd: int) -> str:
    """A path that leads to what this descriptor is of, whatever has become of its name."""
    return f"/proc/self/fd/{fd}"
