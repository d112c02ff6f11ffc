"""Which filesystems this process has open: one each, opened on first use, given back at the end.

A process that was forked off (a DataLoader worker) opens its own: connections and threads do not survive a fork. What
the parent had open is left alone here, not even closed, because closing would tell the storage something on the
parent's behalf, or wait for threads that are not there.
"""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import TYPE_CHECKING, Protocol

from paddleflow.domain.errors import PaddleFlowError, Unavailable
from paddleflow.files.errors import named_filesystem, told_as_file_errors

if TYPE_CHECKING:
    from paddleflow.pfs.cache import Cache
    from paddleflow.pfs.options import MountOptions
    from paddleflow.pfs.routes import Routes
    from paddleflow.pfs.stagehand import Stagehand
    from paddleflow.sdk.client import Client

_AHEAD_THREADS = 4


class OpenedFilesystem(Protocol):
    """What ``wiring.storage.open_filesystem`` gives."""

    @property
    def routes(self) -> Routes: ...
    @property
    def cache(self) -> Cache: ...
    @property
    def stagehand(self) -> Stagehand: ...
    @property
    def options(self) -> MountOptions: ...

    def close(self) -> None: ...


class OpenFilesystems:
    """By name, for one user, at one moment (now, or a snapshot). Safe to share between threads."""

    def __init__(self, open_one: Callable[[str], OpenedFilesystem]) -> None:
        self._open_one = open_one
        self._opened: dict[str, OpenedFilesystem] = {}
        self._lock = threading.Lock()
        self._ahead: ThreadPoolExecutor | None = None
        self._at_end = weakref.finalize(self, _close_all, self._opened)
        _ALIVE.add(self)

    def get(self, fsname: str) -> OpenedFilesystem:
        with self._lock:
            found = self._opened.get(fsname)
            if found is None:
                with told_as_file_errors(fsname), named_filesystem(fsname):
                    found = self._opened[fsname] = self._open_one(fsname)
            return found

    @property
    def ahead(self) -> ThreadPoolExecutor:
        """Threads that read ahead of whoever reads."""
        with self._lock:
            if self._ahead is None:
                self._ahead = ThreadPoolExecutor(_AHEAD_THREADS, thread_name_prefix="paddleflow-ahead")
            return self._ahead

    def close(self) -> None:
        with self._lock:
            ahead, self._ahead = self._ahead, None
            opened = list(self._opened.values())
            self._opened.clear()
        if ahead is not None:
            ahead.shutdown(cancel_futures=True)
        for one in opened:
            one.close()

    def leave_to_parent(self) -> object:
        """In a forked process: what was open, which is the parent's."""
        theirs = (self._ahead, dict(self._opened))
        self._ahead = None
        self._opened.clear()
        self._lock = threading.Lock()
        return theirs


def _close_all(opened: dict[str, OpenedFilesystem]) -> None:
    for one in opened.values():
        # At the end of the program, or of the object: a server that is gone already forgets us by itself.
        with contextlib.suppress(PaddleFlowError, OSError, RuntimeError):
            one.close()


_ALIVE: weakref.WeakSet[OpenFilesystems] = weakref.WeakSet()
_LEFT_TO_PARENT: list[object] = []


def _after_fork() -> None:
    _LEFT_TO_PARENT.extend([one.leave_to_parent() for one in list(_ALIVE)])


os.register_at_fork(after_in_child=_after_fork)


def opener(client: Client, username: str | None, snapshot: str | None) -> Callable[[str], OpenedFilesystem]:
    """Opens filesystems as this user may: the server gives leave to use the storage, and is told of its end."""

    def open_one(fsname: str) -> OpenedFilesystem:
        with libraries():
            found: OpenedFilesystem = import_module("paddleflow.wiring.storage").open_filesystem(
                client, fsname, username=username, read_only=snapshot is not None, snapshot=snapshot
            )
        return found

    return open_one


@contextlib.contextmanager
def libraries() -> Iterator[None]:
    """Those of the storages may not be installed beside a light client; each is loaded when its storage is opened."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.startswith("paddleflow"):
            raise
        raise Unavailable(
            f"files need {error.name}, which is not installed; install it with: pip install 'paddleflow[fs]'",
            code="FilesNotInstalled",
        ) from error
