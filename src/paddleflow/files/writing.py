"""A file opened for writing: a staged file on this machine that becomes the object when it is closed.

Nobody sees half of it. It is uploaded by ``close`` and by the end of a ``with`` block; a block that ends in an error, a
file that is forgotten, and a program that dies leave the object as it was. What is opened to be changed (``a``, ``r+``)
starts as a copy, and is refused at the end if somebody else has replaced the object meanwhile.
"""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Callable
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any

from paddleflow.files.errors import InvalidFile

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

Upload = Callable[[str], None]
"""Puts the staged file of this name where it belongs, or raises."""
BUFFER = 1 << 20


class StagedFile(io.RawIOBase):
    """The raw file below the buffers."""

    def __init__(self, name: str, mode: str, upload: Upload, fill: Callable[[int], None]) -> None:
        """``fill`` writes the content it starts with to a descriptor."""
        self.name = name
        self.mode = mode
        self._upload = upload
        self._is_wanted = True
        self._waits_for_commit = False
        self._owner = os.getpid()
        descriptor, self._path = tempfile.mkstemp(prefix="paddleflow-", suffix=".staged")
        self._file = io.FileIO(descriptor, "r+b")
        try:
            fill(descriptor)
            self._file.seek(0, os.SEEK_END if mode.startswith("a") else os.SEEK_SET)
        except BaseException:
            self._is_wanted = False
            self.close()
            raise

    def discard(self) -> None:
        """Leave the object as it was, whatever was written."""
        self._is_wanted = False
        if self._waits_for_commit:
            self._forget()

    def hold(self) -> None:
        """Do not upload at the close, but when ``commit`` says so (transactions of fsspec)."""
        self._waits_for_commit = True

    def commit(self) -> None:
        try:
            self._upload(self._path)
        finally:
            self._forget()

    def readable(self) -> bool:
        return "+" in self.mode

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        if not self.readable():
            raise io.UnsupportedOperation("not readable")
        return self._file.readinto(buffer)

    def write(self, data: ReadableBuffer, /) -> int:
        if not self._is_ours():
            if self._is_wanted:
                raise InvalidFile("InvalidMode", f"{self.name} was opened by another process; open it here")
            return memoryview(data).nbytes  # what was buffered at the fork is the parent's to write
        if self.mode.startswith("a"):
            self._file.seek(0, os.SEEK_END)
        return self._file.write(data)

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def truncate(self, size: int | None = None, /) -> int:
        return self._file.truncate(size)

    def fileno(self) -> int:
        return self._file.fileno()

    def close(self) -> None:
        if self.closed:
            return
        super().close()
        self._file.close()
        if not self._is_wanted:
            self._forget()
        elif self._is_ours() and not self._waits_for_commit:
            self.commit()

    def _forget(self) -> None:
        # A commit that failed has forgotten it already.
        if self._is_ours() and os.path.exists(self._path):
            os.unlink(self._path)

    def _is_ours(self) -> bool:
        """False in a process that was forked off: the staged file goes on being its parent's."""
        return os.getpid() == self._owner


class _Discards:
    """Leaves no half object behind: an error in the block, or being forgotten, throws away what was written."""

    def _staged(self) -> StagedFile:
        raise NotImplementedError

    def close(self) -> None:
        if self.closed:  # type: ignore[attr-defined]  # of the buffer beside it
            return
        try:
            self.flush()  # type: ignore[attr-defined]
        except BaseException:
            self._staged().discard()
            raise
        finally:
            super().close()  # type: ignore[misc]

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._staged().discard()
        self.close()

    def __del__(self) -> None:
        if not self.closed:  # type: ignore[attr-defined]
            self._staged().discard()
            self.close()


class WriteFile(_Discards, io.BufferedWriter):
    """What ``open`` gives for writing bytes."""

    def _staged(self) -> StagedFile:
        return self.raw  # type: ignore[return-value]  # it was made of one

    def discard(self) -> None:
        self._staged().discard()

    def commit(self) -> None:
        self._staged().commit()


class ChangeFile(_Discards, io.BufferedRandom):
    """The same with ``+``: for reading too."""

    def _staged(self) -> StagedFile:
        return self.raw  # type: ignore[return-value]  # it was made of one


class WriteText(_Discards, io.TextIOWrapper):
    """The same for text."""

    def _staged(self) -> StagedFile:
        below: Any = self.buffer
        staged: StagedFile = below.raw
        return staged


def buffered(staged: StagedFile) -> WriteFile | ChangeFile:
    return ChangeFile(staged, BUFFER) if staged.readable() else WriteFile(staged, BUFFER)


def as_text(binary: IO[bytes], mode: str, encoding: str | None, errors: str | None, newline: str | None) -> IO[Any]:
    """UTF-8 unless told otherwise: the content of a file should not depend on the machine that reads it."""
    kind = io.TextIOWrapper if mode.startswith("r") and "+" not in mode else WriteText
    return kind(binary, encoding=encoding or "utf-8", errors=errors, newline=newline)


def check_text(encoding: str | None, errors: str | None, newline: str | None) -> None:
    """Find out what cannot be before anything is staged for it."""
    try:
        io.TextIOWrapper(io.BytesIO(), encoding=encoding or "utf-8", errors=errors, newline=newline).write("")
    except (LookupError, ValueError, TypeError) as error:
        raise InvalidFile("InvalidMode", f"this file cannot be opened as text: {error}") from error


def check_mode(mode: str) -> tuple[str, bool]:
    """The mode without ``b`` and ``t``, and whether it is text."""
    bare = mode.replace("b", "", 1).replace("t", "", 1)
    if bare not in ("r", "w", "a", "x", "r+", "w+", "a+", "x+") or ("b" in mode and "t" in mode):
        raise InvalidFile("InvalidMode", f"mode[{mode}] should be r, w, a or x, with + to read and write, b or t")
    return bare, "b" not in mode
