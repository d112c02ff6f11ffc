"""Mounts that are only remembered: what jobs would find mounted, when the test says so."""

from __future__ import annotations

import json
from collections.abc import Callable

from paddleflow.domain.errors import Invalid, Unavailable
from paddleflow.domain.ids import FilesystemId
from paddleflow.ports.mounts import Ask, Leave


class MemoryMounts:
    """Implements ``NodeMounts``."""

    def __init__(self) -> None:
        self.is_slow = False
        """Mounts stay under way until this is False again."""
        self.refusal = ""
        """Why nothing can be mounted here."""
        self.leaves: dict[FilesystemId, Leave] = {}
        self.kept: frozenset[FilesystemId] = frozenset()
        self.released: list[FilesystemId] = []
        """What was asked to go."""
        self.let_go: Callable[[FilesystemId], bool] = lambda _: False
        """Whether it goes, and what happens then."""

    def use_server(self, address: str) -> None:
        """Nobody renews anything here."""

    def path(self, fs_id: FilesystemId, ask: Ask) -> str:
        if self.refusal:
            raise Invalid(f"fs[{fs_id}] could not be mounted on this node: {self.refusal}")
        if self.is_slow:
            raise Unavailable(f"fs[{fs_id}] is being mounted")
        if fs_id not in self.leaves:
            self.leaves[fs_id] = ask(f"/mnt/{fs_id}")
        return f"/mnt/{fs_id}"

    def keep(self, wanted: frozenset[FilesystemId]) -> None:
        self.kept = wanted
        for fs_id in self.leaves.keys() - wanted:
            del self.leaves[fs_id]

    def release(self, fs_id: FilesystemId) -> bool:
        """Nothing stays when nobody needs it, unless the test keeps it: then this is its end."""
        self.released.append(fs_id)
        return self.let_go(fs_id)

    def plan_of(self, fs_id: FilesystemId) -> dict[str, object]:
        """What the mount was told."""
        plan: dict[str, object] = json.loads(self.leaves[fs_id].plan)
        return plan

    def close(self) -> None:
        """There is nothing to let go of."""
