"""The storages of users as the server itself reaches them: to see whether one answers, and for snapshots.

Object stores are loaded when the first one is needed: most servers start with local directories alone.
"""

from __future__ import annotations

from paddleflow.domain.snapshots import Snapshot
from paddleflow.domain.storages import Storage
from paddleflow.ports.objects import ObjectStore
from paddleflow.ports.storages import Progress, Snapshots, SnapshotSize


class OpenedStorages:
    """``ports.storages.Storages`` and ``ports.storages.Snapshots`` over the object stores."""

    def check(self, storage: Storage) -> None:
        """Somebody waits for the answer, and others for their turn: it is asked twice at most."""
        from paddleflow.adapters.objects import open_store
        from paddleflow.adapters.objects.retry import Patience, Retry

        once_more = Retry(patience=Patience(attempts=2, deadline_s=5.0))
        store = open_store(storage.type, storage.server_address, storage.sub_path, storage.properties, retry=once_more)
        try:
            store.check()
        finally:
            store.close()

    def make(self, storage: Storage, snapshot: Snapshot, progress: Progress) -> SnapshotSize:
        return _snapshots().make(storage, snapshot, progress)

    def remove(self, storage: Storage, snapshot: Snapshot) -> None:
        _snapshots().remove(storage, snapshot)


def _opened(storage: Storage) -> ObjectStore:
    from paddleflow.wiring.stores import open_storage

    return open_storage(storage)


def _snapshots() -> Snapshots:
    from paddleflow.adapters.objects.snapshots import StoredSnapshots

    return StoredSnapshots(_opened)
