"""Stores of filesystems, kept open for as long as they are used: a few, the least recently used closed first.

A store is opened anew when its filesystem's row has changed; the old one is closed when the last call on it has ended.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from paddleflow.domain.filesystems import Filesystem
from paddleflow.domain.ids import FilesystemId
from paddleflow.ports.objects import ObjectStore

OpenStore = Callable[[Filesystem], ObjectStore]


@dataclass(slots=True)
class _Held:
    store: ObjectStore
    version: int
    users: int = 0
    is_retired: bool = False


class OpenStores:
    def __init__(self, open_store: OpenStore, *, most: int = 16) -> None:
        self._open_store = open_store
        self._most = most
        self._held: OrderedDict[FilesystemId, _Held] = OrderedDict()
        self._lock = threading.Lock()

    @contextmanager
    def use(self, fs: Filesystem) -> Iterator[ObjectStore]:
        held, given_up = self._take(fs)
        self._close(given_up)
        try:
            yield held.store
        finally:
            with self._lock:
                held.users -= 1
                is_last = held.is_retired and not held.users
            if is_last:
                held.store.close()

    def close(self) -> None:
        with self._lock:
            given_up = [self._retire(name) for name in list(self._held)]
        self._close(given_up)

    def _take(self, fs: Filesystem) -> tuple[_Held, list[_Held]]:
        """The store to use, and those that made room for it."""
        given_up: list[_Held] = []
        with self._lock:
            held = self._held.get(fs.id)
            if held is not None and held.version != fs.version:
                given_up.append(self._retire(fs.id))
                held = None
            if held is None:
                held = self._held[fs.id] = _Held(self._open_store(fs), fs.version)
            self._held.move_to_end(fs.id)
            held.users += 1
            while len(self._held) > self._most:
                given_up.append(self._retire(next(iter(self._held))))
        return held, given_up

    def _retire(self, name: FilesystemId) -> _Held:
        held = self._held.pop(name)
        held.is_retired = True
        return held

    def _close(self, given_up: list[_Held]) -> None:
        """Unless somebody is still at it, who will then do so."""
        for held in given_up:
            with self._lock:
                is_unused = not held.users
            if is_unused:
                held.store.close()
