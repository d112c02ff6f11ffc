"""Archivist: has snapshots made, and what is left of deleted ones removed.

The work happens in worker threads, because a filesystem may be large and slow; they tell how far they are through an
inbox, and only the reactor's own thread hands that to the intake. Storage that does not answer is tried again at every
tick. A server that was killed finds what it had begun in the rows and does it again: making a snapshot twice is making
it once.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

from paddleflow.domain.commands import Command, ForgetSnapshot, ReportSnapshot
from paddleflow.domain.errors import Conflict, NotFound, PaddleFlowError, Unavailable
from paddleflow.domain.events import Event, EventKind
from paddleflow.domain.ids import SnapshotId
from paddleflow.domain.snapshots import Snapshot, SnapshotState
from paddleflow.domain.storages import Storage, opened
from paddleflow.domain.users import PLATFORM
from paddleflow.engine.intake import Intake
from paddleflow.engine.storage_desk import without_secrets
from paddleflow.ports.storages import Snapshots, SnapshotSize
from paddleflow.ports.store import Store

log = logging.getLogger(__name__)

_OPEN = frozenset({SnapshotState.CREATING, SnapshotState.DELETING})


class Archivist:
    name = "archivist"
    kinds = frozenset({EventKind.SNAPSHOT_REQUESTED, EventKind.SNAPSHOT_DELETING})

    def __init__(
        self,
        *,
        store: Store,
        intake: Intake,
        snapshots: Snapshots,
        unseal: Callable[[str], str],
        workers: Executor,
    ) -> None:
        self._store = store
        self._intake = intake
        self._snapshots = snapshots
        self._unseal = unseal
        self._workers = workers
        self.wake: Callable[[], None] = lambda: None
        """Called when a worker has something to tell; whoever runs the reactor's thread sets it."""
        self._told: deque[_Told] = deque()
        self._busy: dict[SnapshotId, SnapshotState] = {}
        """What workers are at, and what is wanted of each by now. Changed by the reactor's own thread alone."""
        self._is_abandoned = False

    def resync(self) -> None:
        self._take_up()

    def react(self, events: Sequence[Event]) -> None:
        self._take_up()

    def tick(self) -> None:
        self._hand_in()
        self._take_up()

    def abandon(self) -> None:
        """Nobody waits any more; what was begun is begun again by the next server."""
        self._is_abandoned = True

    def _take_up(self) -> None:
        with self._store.read() as view:
            waiting = view.snapshots.in_state(_OPEN)
            homes = {snapshot.fs_id: view.filesystems.find(snapshot.fs_id) for snapshot in waiting}
        for snapshot in waiting:
            home = homes[snapshot.fs_id]
            if home is None:
                continue  # it was deleted between the two questions, and the snapshot with it
            is_busy = snapshot.id in self._busy
            # One that is deleted while it is made is first left by its maker, who sees this.
            self._busy[snapshot.id] = snapshot.state
            if not is_busy:
                work = self._make if snapshot.state is SnapshotState.CREATING else self._remove
                self._workers.submit(work, home.storage, snapshot)
        self._hand_in()

    def _hand_in(self) -> None:
        while self._told:
            told = self._told.popleft()
            if told.is_over:
                self._busy.pop(told.snapshot_id, None)
            if told.command is None:
                continue
            try:
                self._intake.submit(told.command, PLATFORM)
            except (Conflict, NotFound):
                continue  # it was deleted meanwhile, and nobody wants to know

    # In a worker thread.

    def _make(self, storage: Storage, snapshot: Snapshot) -> None:
        def progress(size: SnapshotSize) -> bool:
            self._tell(snapshot, ReportSnapshot(id=snapshot.id, files=size.files, bytes=size.bytes), is_over=False)
            return not self._is_abandoned and self._busy.get(snapshot.id) is SnapshotState.CREATING

        properties = storage.properties
        try:
            storage = opened(storage, self._unseal)
            properties = storage.properties
            size = self._snapshots.make(storage, snapshot, progress)
        except Unavailable as error:
            log.warning("snapshot %s has to wait: %s", snapshot.id, without_secrets(error.message, properties))
            self._tell(snapshot, None)
        except PaddleFlowError as error:
            self._tell(snapshot, _failed(snapshot, without_secrets(error.message, properties)))
        except Exception as error:
            log.exception("snapshot %s met a defect of this product", snapshot.id)
            self._tell(snapshot, _failed(snapshot, f"internal error: {type(error).__name__}"))
        else:
            ready = ReportSnapshot(id=snapshot.id, files=size.files, bytes=size.bytes, state=SnapshotState.READY)
            self._tell(snapshot, ready)

    def _remove(self, storage: Storage, snapshot: Snapshot) -> None:
        done: Command | None = None
        try:
            self._snapshots.remove(opened(storage, self._unseal), snapshot)
            done = ForgetSnapshot(id=snapshot.id)
        except PaddleFlowError as error:
            log.warning("what is left of snapshot %s cannot be removed now: %s", snapshot.id, type(error).__name__)
        except Exception:
            log.exception("removing snapshot %s met a defect of this product", snapshot.id)
        self._tell(snapshot, done)

    def _tell(self, snapshot: Snapshot, command: Command | None, *, is_over: bool = True) -> None:
        """Without a command it is tried again, at the next tick and not at once: so nobody is woken."""
        self._told.append(_Told(snapshot_id=snapshot.id, command=command, is_over=is_over))
        if command is not None:
            self.wake()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Told:
    """By a worker."""

    snapshot_id: SnapshotId
    command: Command | None
    is_over: bool


def _failed(snapshot: Snapshot, why: str) -> ReportSnapshot:
    return ReportSnapshot(
        id=snapshot.id, files=snapshot.files, bytes=snapshot.bytes, state=SnapshotState.FAILED, message=why
    )
