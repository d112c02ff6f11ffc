"""The one table from errors to errno: what a failed file operation looks like to the program that asked for it.

``FsError`` is for what the filesystem itself finds out and has an errno for from the start (no directory, read-only);
everything else keeps the words of the domain until it meets this table.
"""

from __future__ import annotations

import errno

from paddleflow.domain.errors import (
    Denied,
    DiskFull,
    Duplicate,
    InUse,
    Invalid,
    NotFound,
    Stale,
    TooLarge,
    Unauthenticated,
    Unavailable,
)

CROSS_STORE = "CrossStore"
"""Code of the Invalid that says: these two paths lie in different stores. ``mv`` copies when it reads EXDEV."""

NOT_HELD = "NotHeld"
"""Code of the Invalid that says: this store cannot keep such a thing (links, attributes, owners)."""


class FsError(OSError):
    """An operation that ends with this errno. Cheap: each absent name is answered with one."""

    def __init__(self, number: int) -> None:
        super().__init__(number, errno.errorcode.get(number, str(number)))


_TABLE: tuple[tuple[type[BaseException], int], ...] = (
    (NotFound, errno.ENOENT),
    (Duplicate, errno.EEXIST),
    (Denied, errno.EACCES),
    (Unauthenticated, errno.EACCES),
    (InUse, errno.ENOTEMPTY),
    (Stale, errno.ESTALE),
    (DiskFull, errno.ENOSPC),
    (Unavailable, errno.EIO),
    (TooLarge, errno.EFBIG),
    (Invalid, errno.EINVAL),
)


def errno_of(error: BaseException) -> int:
    """EIO for what nobody foresaw: it is logged where it is answered, and a program is told no fairy tale."""
    if isinstance(error, OSError) and error.errno:
        return error.errno
    if isinstance(error, Invalid):
        if error.code == CROSS_STORE:
            return errno.EXDEV
        if error.code == NOT_HELD:
            return errno.ENOTSUP
    for kind, number in _TABLE:
        if isinstance(error, kind):
            return number
    return errno.EIO
