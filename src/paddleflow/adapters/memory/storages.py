"""Storages that are only written about: for stories, where no network is."""

from __future__ import annotations

from paddleflow.domain.errors import PaddleFlowError
from paddleflow.domain.ids import SnapshotId
from paddleflow.domain.snapshots import Snapshot
from paddleflow.domain.storages import Storage
from paddleflow.ports.storages import Progress, SnapshotSize


class RecordedStorages:
    """``ports.storages.Storages`` and ``ports.storages.Snapshots`` in one, which do as the story says."""

    def __init__(self) -> None:
        self.checked: list[Storage] = []
        self.made: dict[SnapshotId, Storage] = {}
        """Snapshots that are there."""
        self.size = SnapshotSize(files=3, bytes=300)
        """Of every snapshot."""
        self.failure: PaddleFlowError | None = None
        """What every call meets from now on."""

    def check(self, storage: Storage) -> None:
        self.checked.append(storage)
        self._meet_failure()

    def make(self, storage: Storage, snapshot: Snapshot, progress: Progress) -> SnapshotSize:
        progress(SnapshotSize(files=1, bytes=100))
        self._meet_failure()
        self.made[snapshot.id] = storage
        return self.size

    def remove(self, storage: Storage, snapshot: Snapshot) -> None:
        self._meet_failure()
        self.made.pop(snapshot.id, None)

    def _meet_failure(self) -> None:
        if self.failure is not None:
            raise self.failure
