"""Stores to try the cache with: a real one in memory, that counts, waits and fails when told to."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Callable

from paddleflow.adapters.objects.memory import MemoryStore
from paddleflow.ports.objects import ObjectEntry, ObjectStore

Read = tuple[str, int, int]


class WatchedStore(MemoryStore):
    """``before_read`` is called in the thread that reads, may wait or raise; ``spoil`` may change what was read."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: list[Read] = []
        self.before_read: Callable[[Read], None] = lambda _: None
        self.spoil: Callable[[bytes], bytes] = lambda data: data
        self._counting = threading.Lock()
        self.reading = 0
        self.most_reading = 0
        self.bytes_reading = 0
        self.most_bytes_reading = 0

    def read(self, key: str, start: int, size: int, *, version: str = "") -> bytes:
        with self._counting:
            self.reads.append((key, start, size))
            self.reading += 1
            self.bytes_reading += size
            self.most_reading = max(self.most_reading, self.reading)
            self.most_bytes_reading = max(self.most_bytes_reading, self.bytes_reading)
        try:
            self.before_read((key, start, size))
            return self.spoil(super().read(key, start, size, version=version))
        finally:
            with self._counting:
                self.reading -= 1
                self.bytes_reading -= size


def put(store: ObjectStore, key: str, content: bytes) -> ObjectEntry:
    with tempfile.TemporaryFile() as file:
        file.write(content)
        file.flush()
        return store.write(key, file.fileno(), len(content))


def random_bytes(size: int) -> bytes:
    return os.urandom(size)
