"""The mounts that jobs of this machine share: one for each filesystem, started on demand, found after a restart."""

from __future__ import annotations

import json
import logging
import threading
import time
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from paddleflow.domain.errors import Invalid, NotFound, PaddleFlowError, Unavailable
from paddleflow.domain.ids import FilesystemId
from paddleflow.pfs import control
from paddleflow.pfs.fuse import device
from paddleflow.pfs.mounting import end_mount, is_held, start_mount, state_dir_of
from paddleflow.ports.mounts import Ask, Leave
from paddleflow.wiring.mount import MountRequest, plan_of
from paddleflow.wiring.mount_access import Granted, access_of, give_back, stores_of

_log = logging.getLogger(__name__)
_RELEASED_WITHIN_S = 15.0


@dataclass(slots=True)
class _Mount:
    path: str
    starting: Future[None] | None = None
    ending: Future[None] | None = None
    idle_since: float | None = field(default_factory=time.monotonic)


class MachineMounts:
    """Implements ``NodeMounts`` with real mounts below the state directory."""

    def __init__(self, state_dir: Path, *, request: MountRequest, idle_s: float) -> None:
        """Mounts are made as ``request`` says; one that no job needs is kept for ``idle_s``."""
        self._base = str(state_dir / "mounts")
        self._points = state_dir / "mnt"
        self._request = request
        self._idle_s = idle_s
        self._mounts: dict[FilesystemId, _Mount] = {}
        self._pool = ThreadPoolExecutor(4, thread_name_prefix="mount")
        self._lock = threading.Lock()
        self._address = ""

    def use_server(self, address: str) -> None:
        self._address = address

    def path(self, fs_id: FilesystemId, ask: Ask) -> str:
        with self._lock:
            mount = self._mounts.setdefault(fs_id, _Mount(str(self._points / fs_id)))
            mount.idle_since = None
            if mount.ending is not None and not mount.ending.done():
                raise Unavailable(f"fs[{fs_id}] is being unmounted")
            if mount.starting is None or mount.ending is not None:
                mount.ending = None
                mount.starting = self._pool.submit(self._start, mount.path, ask)
            elif mount.starting.done() and not mount.starting.exception() and not is_held(self._base, mount.path):
                mount.starting = self._pool.submit(self._start, mount.path, ask)  # somebody killed all of it
            if not mount.starting.done():
                raise Unavailable(f"fs[{fs_id}] is being mounted")
            error = mount.starting.exception()
            if error is None:
                return mount.path
            del self._mounts[fs_id]
        # Whatever it was, it is this job's end and no other's: they wait for the same thread.
        if isinstance(error, PaddleFlowError):
            raise Invalid(f"fs[{fs_id}] could not be mounted on this node: {error.message}") from error
        _log.error("mounting fs[%s] met a defect of this product", fs_id, exc_info=error)
        raise Invalid(f"fs[{fs_id}] could not be mounted on this node: {type(error).__name__}") from error

    def keep(self, wanted: frozenset[FilesystemId]) -> None:
        now = time.monotonic()
        with self._lock:
            for fs_id in self._left_behind() | self._mounts.keys():
                mount = self._mounts.setdefault(fs_id, _Mount(str(self._points / fs_id)))
                if fs_id in wanted:
                    mount.idle_since = None
                elif mount.idle_since is None:
                    mount.idle_since = now
                elif now - mount.idle_since > self._idle_s and (mount.ending is None or mount.ending.done()):
                    mount.idle_since = now
                    mount.ending = self._pool.submit(self._end, mount.path)

    def release(self, fs_id: FilesystemId) -> bool:
        with self._lock:
            left = fs_id in self._left_behind()
            mount = _Mount(str(self._points / fs_id)) if left else self._mounts.get(fs_id)
            if mount is None or mount.idle_since is None:
                return False
            self._mounts[fs_id] = mount
            if mount.ending is None or mount.ending.done():
                mount.ending = self._pool.submit(self._end, mount.path)
            ending = mount.ending
        try:
            ending.result(_RELEASED_WITHIN_S)
        except (TimeoutError, CancelledError):
            return False
        return not is_held(self._base, mount.path)

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _left_behind(self) -> set[FilesystemId]:
        """Mounts of a server before us that nobody has asked for yet."""
        try:
            return {FilesystemId(point.name) for point in self._points.iterdir()} - self._mounts.keys()
        except FileNotFoundError:
            return set()

    def _start(self, path: str, ask: Ask) -> None:
        self._points.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(FileExistsError):  # and whoever served it may be gone, so it is not looked at
            Path(path).mkdir(mode=0o700)
        granted = _granted(ask(path), self._address)
        try:
            if is_held(self._base, path):
                # A server before us left it, and may have listened elsewhere.
                request = {"do": "access", "access": dict(granted.access)}
                for _ in control.ask(state_dir_of(self._base, path), request):
                    pass
                return
            if device.is_mounted(path):
                device.detach_broken(path)
            start_mount(plan_of(granted, path, self._configured(granted), self._base))
        except BaseException:
            self._give_back(granted)
            raise

    def _give_back(self, granted: Granted) -> None:
        """There is no mount, and nobody may take it for one."""
        try:
            if granted.access:
                give_back(granted.access)
        except PaddleFlowError as error:  # it runs out by itself, and the reason why nothing was mounted matters more
            _log.warning("the leave to mount fs[%s] was not given back: %s", granted.fs_id, error.message)

    def _configured(self, granted: Granted) -> MountRequest:
        """The filesystem's own cache configuration goes before this machine's."""
        given = granted.cache
        return replace(
            self._request,
            cache_dir=str(given.get("cacheDir") or self._request.cache_dir),
            cache_size=int(given.get("quota") or self._request.cache_size),
        )

    def _end(self, path: str) -> None:
        try:
            end_mount(self._base, path)
        except NotFound:
            pass  # it is gone already
        except PaddleFlowError as error:
            _log.warning("%s stays mounted: %s", path, error.message)
            return
        try:
            Path(path).rmdir()
        except OSError as error:
            _log.warning("%s was unmounted and stays: %s", path, error.strerror)


def _granted(leave: Leave, address: str) -> Granted:
    plan = json.loads(leave.plan)
    return Granted(
        fs_id=plan["fsID"],
        read_only=bool(plan["readOnly"]),
        stores=stores_of(plan),
        cache=plan.get("cache") or {},
        access=access_of(plan, leave.token, leave.expires_at.isoformat(), address) if address else {},
    )
