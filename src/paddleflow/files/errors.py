"""What goes wrong with a file, as Python programs expect it: NotFound is FileNotFoundError as well, and so on.

Each class is both of the client's tree and of Python's own, so that ``except FileNotFoundError`` and ``except
NotFound`` catch the same thing, and libraries that know nothing of us do what they do with a local file.
"""

from __future__ import annotations

import errno as numbers
from collections.abc import Iterator
from contextlib import contextmanager

from paddleflow.domain import errors as domain
from paddleflow.sdk.errors import (
    ConflictError,
    DeniedError,
    DuplicateError,
    InUseError,
    InvalidError,
    NotFoundError,
    PaddleFlowSDKException,
    UnavailableError,
    UnreachableError,
)

RECURSIVELY = "to take it with everything below, say so: -r, or recursive=True in Python"


class MissingFile(NotFoundError, FileNotFoundError):
    errno = numbers.ENOENT


class FileThere(DuplicateError, FileExistsError):
    errno = numbers.EEXIST


class FileDenied(DeniedError, PermissionError):
    errno = numbers.EACCES


class IsDirectory(InvalidError, IsADirectoryError):
    errno = numbers.EISDIR


class NotDirectory(InvalidError, NotADirectoryError):
    errno = numbers.ENOTDIR


class DirectoryNotEmpty(InUseError, OSError):
    errno = numbers.ENOTEMPTY


class FileChanged(ConflictError, domain.Stale, OSError):
    """It became another version while it was read or written."""

    errno = numbers.ESTALE


class FileBusy(ConflictError, OSError):
    errno = numbers.EBUSY


class NoSpace(UnavailableError, domain.DiskFull, OSError):
    errno = numbers.ENOSPC


class StorageUnavailable(UnavailableError, OSError):
    errno = numbers.EIO


class InvalidFile(InvalidError, OSError):
    errno = numbers.EINVAL


_TWINS: tuple[tuple[type[domain.PaddleFlowError], type[PaddleFlowSDKException]], ...] = (
    (domain.NotFound, MissingFile),
    (domain.Duplicate, FileThere),
    (domain.InUse, DirectoryNotEmpty),
    (domain.Stale, FileChanged),
    (domain.Conflict, FileBusy),
    (domain.Denied, FileDenied),
    (domain.DiskFull, NoSpace),
    (domain.Unavailable, StorageUnavailable),
    (domain.Invalid, InvalidFile),
)
"""The first that fits; an error that is not of this table is none of a file."""


@contextmanager
def told_as_file_errors(place: str) -> Iterator[None]:
    """Whatever a storage says becomes an error of this module that names the file."""
    try:
        yield
    except (OSError, UnreachableError):
        # Already one of them, or of this machine; a server that does not answer is told as everywhere.
        raise
    except domain.PaddleFlowError as error:
        twin = next((made for kind, made in _TWINS if isinstance(error, kind)), None)
        if twin is None:
            raise
        raise twin(error.code, located(place, error.message), getattr(error, "requestId", None)) from error


def located(place: str, message: str) -> str:
    """Say where. What begins with the key of the place, or of a directory above it, need not be told twice."""
    fsname, colon, path = place.partition(":/")
    first = message.partition(" ")[0].rstrip(":")
    if colon and first and f"{path}/".startswith(f"{first}/"):
        return f"{fsname}:/{message}"
    return f"{place}: {message}"


@contextmanager
def named_filesystem(fsname: str) -> Iterator[None]:
    """A server that has no such filesystem says so with an id; people know the name."""
    try:
        yield
    except domain.NotFound as error:
        raise MissingFile(
            error.code,
            f"there is no filesystem {fsname!r}; paddleflow fs list shows those there are",
            getattr(error, "requestId", None),
        ) from error
