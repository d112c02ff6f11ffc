"""Mounts of this node, for the jobs that run on it: one for each filesystem, shared by all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, TypeAlias

from paddleflow.domain.ids import FilesystemId, MountId


@dataclass(frozen=True, slots=True, kw_only=True)
class Leave:
    """That a filesystem may be mounted, until when, and what the mount needs for it."""

    mount_id: MountId
    token: str = field(repr=False)
    """The next one to ask with."""
    plan: str = field(repr=False)
    """JSON; it holds credentials."""
    expires_at: datetime


Ask: TypeAlias = Callable[[str], Leave]
"""Asks for leave to mount at a directory."""


class NodeMounts(Protocol):
    """Called from one thread, but for ``release``; never waits long."""

    def use_server(self, address: str) -> None:
        """Where mounts reach the platform, to renew their leave and to report."""
        ...

    def path(self, fs_id: FilesystemId, ask: Ask) -> str:
        """The directory where the filesystem is mounted. The first to ask makes it be mounted, and gets Unavailable
        until it is; Invalid says why it cannot be mounted on this node at all."""
        ...

    def keep(self, wanted: frozenset[FilesystemId]) -> None:
        """Only these are needed now. Others are unmounted when they were not needed for a while: the next job of a
        pipeline should find its data where it was."""
        ...

    def release(self, fs_id: FilesystemId) -> bool:
        """Unmount it now, if no job needs it; whether one that was there is gone. Waits for it, and may be called from
        any thread."""
        ...

    def close(self) -> None:
        """Forget them. They stay mounted: jobs go on without the platform, and the next one finds both."""
        ...
