"""Digests of the contents of files, computed for as long as somebody wants them, and remembered.

A file is known by its identity, size and times, but not while it is so young that a change would not show in them.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections import OrderedDict
from collections.abc import Callable

from paddleflow.domain.errors import Unavailable
from paddleflow.ports.files import Wanted

_CHUNK = 1024 * 1024
_REMEMBERED = 65_536
_YOUNG_NS = 2_000_000_000
"""The coarsest clock a filesystem stamps its files with ticks every two seconds."""


def digest_file(fd: int, is_wanted: Wanted) -> bytes:
    """A file may be so large that whoever asked has gone before its end is reached."""
    whole = hashlib.sha256()
    while chunk := os.read(fd, _CHUNK):
        whole.update(chunk)
        if not is_wanted():
            raise Unavailable("nobody wants the digest any more")
    return whole.digest()


class RememberedDigests:
    """Digests of files that have not changed since, the least recently used forgotten first."""

    def __init__(self, now_ns: Callable[[], int]) -> None:
        self._now_ns = now_ns
        self._known: OrderedDict[tuple[int, ...], bytes] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, found: os.stat_result) -> bytes | None:
        key = _identity_of_content(found)
        with self._lock:
            digest = self._known.get(key)
            if digest is not None:
                self._known.move_to_end(key)
            return digest

    def remember(self, began: os.stat_result, ended: os.stat_result, digest: bytes) -> None:
        """Unless it changed while it was read, or is so young that the next change might leave the same times."""
        key = _identity_of_content(began)
        if key != _identity_of_content(ended) or self._now_ns() - max(began.st_mtime_ns, began.st_ctime_ns) < _YOUNG_NS:
            return
        with self._lock:
            self._known[key] = digest
            while len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)


def _identity_of_content(found: os.stat_result) -> tuple[int, ...]:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
