"""Mounts: who reads and writes a filesystem through a mount now, what they report of their caches, and for how long
they are believed.

A mount is let in by a token of its own that lives for a quarter of an hour and is renewed before it ends; the row here
says that the mount exists and when it was last seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from paddleflow.domain.ids import FilesystemId, MountId, NodeName, SnapshotId, UserName

TOKEN_LIFE = timedelta(minutes=15)
SEEN_WITHIN = 2 * TOKEN_LIFE
"""A mount that was not seen for so long is gone."""
REPORT_LIFE = timedelta(minutes=10)
"""So long a report of a cache guides where jobs go."""
REPORT_KEPT = timedelta(days=1)
"""So long it is shown."""
MOST_PREFIXES = 100
"""Places of a filesystem a report may name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    id: MountId
    fs_id: FilesystemId
    user: UserName
    """Who mounted it; the owner of the filesystem, root, or somebody with a grant."""
    node: str = ""
    mountpoint: str = ""
    read_only: bool = False
    snapshot: SnapshotId | None = None
    created_at: datetime
    seen_at: datetime
    seq: int = 0
    version: int = 0

    def is_live(self, now: datetime) -> bool:
        return now - self.seen_at <= SEEN_WITHIN


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheReport:
    """What one mount says of the cache of its node. Counters count from the beginning of that mount."""

    fs_id: FilesystemId
    node: NodeName
    mount_id: MountId
    cached_bytes: int = 0
    """Of this filesystem, on this node: mounts that share a cache report the same bytes."""
    cached_files: int = 0
    total_bytes: int = 0
    """Of the filesystem, as far as the mount has seen it; 0: it cannot tell."""
    hits: int = 0
    misses: int = 0
    hit_bytes: int = 0
    miss_bytes: int = 0
    prefixes: Mapping[str, int] = field(default_factory=dict)
    """Cached bytes below some paths."""
    reported_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCache:
    """The cache of one filesystem on one node, from all that its mounts report."""

    node: NodeName
    cached_bytes: int
    cached_files: int
    total_bytes: int
    hits: int
    misses: int
    hit_bytes: int
    miss_bytes: int
    prefixes: Mapping[str, int]
    reported_at: datetime

    @property
    def hit_ratio(self) -> float | None:
        """Of bytes read, the part that came from the cache; None: nothing was read."""
        read = self.hit_bytes + self.miss_bytes
        return self.hit_bytes / read if read else None


def by_node(reports: tuple[CacheReport, ...]) -> tuple[NodeCache, ...]:
    """One row for each node, by name. What mounts share is not counted twice: of the bytes the newest report counts,
    of the counters all do."""
    nodes: dict[NodeName, list[CacheReport]] = {}
    for report in reports:
        nodes.setdefault(report.node, []).append(report)
    return tuple(_together(node, each) for node, each in sorted(nodes.items()))


def _together(node: NodeName, reports: list[CacheReport]) -> NodeCache:
    newest = max(reports, key=lambda report: (report.reported_at, report.mount_id))
    return NodeCache(
        node=node,
        cached_bytes=newest.cached_bytes,
        cached_files=newest.cached_files,
        total_bytes=newest.total_bytes,
        hits=sum(report.hits for report in reports),
        misses=sum(report.misses for report in reports),
        hit_bytes=sum(report.hit_bytes for report in reports),
        miss_bytes=sum(report.miss_bytes for report in reports),
        prefixes=newest.prefixes,
        reported_at=newest.reported_at,
    )
