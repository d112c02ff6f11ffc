"""Reading ahead of whoever reads a file in order, while it is not cached whole."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from paddleflow.domain.errors import PaddleFlowError
from paddleflow.pfs.readahead import Pattern, advance

if TYPE_CHECKING:
    from paddleflow.files.opened import OpenFilesystems
    from paddleflow.pfs.backstage import ObjectVersion


class Ahead:
    """For one open file."""

    def __init__(self, filesystems: OpenFilesystems, fsname: str, version: ObjectVersion) -> None:
        self._filesystems = filesystems
        self._fsname = fsname
        self._version = version
        self._pattern = Pattern()

    def after(self, start: int, size: int) -> None:
        """These bytes were read just now."""
        stagehand = self._filesystems.get(self._fsname).stagehand
        self._pattern, (begin, length) = advance(
            self._pattern, start, size, self._version.size, stagehand.pool.pressure
        )
        if length:
            self._filesystems.ahead.submit(self._bring, begin, length)

    def _bring(self, start: int, size: int) -> None:
        # It is only a guess: whoever reads there meets the same error, and is told.
        with suppress(PaddleFlowError):
            self._filesystems.get(self._fsname).stagehand.fetch(self._version, start, size)
