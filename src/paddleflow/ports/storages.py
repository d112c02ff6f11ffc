"""Storages: reaching what a filesystem or a link stands for, as the platform itself needs to.

Both ports are given a ``Storage`` whose secrets are open; neither may put one into an error, a log or an answer. They
are called outside of any transaction and from several threads, and end by themselves when a storage does not answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from paddleflow.domain.snapshots import Snapshot
from paddleflow.domain.storages import Storage


class Storages(Protocol):
    def check(self, storage: Storage) -> None:
        """Reach it with these credentials and find its root, within about ten seconds. Any error of the domain that is
        raised says in a sentence which of these failed: no answer, not let in, no such root."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotSize:
    """What a snapshot holds so far, or in the end."""

    files: int
    bytes: int


Progress: TypeAlias = Callable[[SnapshotSize], bool]
"""Told now and then how far it has come; False: nobody wants it any more, raise Unavailable soon."""


class Snapshots(Protocol):
    def make(self, storage: Storage, snapshot: Snapshot, progress: Progress) -> SnapshotSize:
        """Write the manifest to ``snapshot.manifest_path`` on the storage (gzip of JSON lines: ``path``, ``size``,
        ``modified_ns``, ``version``, ``link``; directories have no size), and for a copy the files themselves below
        ``snapshot.content_path``. ``.paddleflow`` is left out. Made again after it was cut off, it ends as if it had
        been made once. Unavailable and DiskFull are tried again later, other errors are the snapshot's end."""
        ...

    def remove(self, storage: Storage, snapshot: Snapshot) -> None:
        """The manifest and what was copied; nothing there is no error."""
        ...
