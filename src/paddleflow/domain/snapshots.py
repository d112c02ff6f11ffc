"""Snapshots: a filesystem, or a part of it, as it was at a moment.

A *manifest* names every file with the version it had: cheap, and readable for as long as the storage still has those
versions; a file that changed since is an error when it is read, never other content. A *copy* also keeps the files.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from paddleflow.domain.filesystems import RESERVED
from paddleflow.domain.ids import FilesystemId, SnapshotId, UserName


class SnapshotKind(StrEnum):
    MANIFEST = "manifest"
    COPY = "copy"


class SnapshotState(StrEnum):
    CREATING = "creating"
    READY = "ready"
    FAILED = "failed"
    DELETING = "deleting"
    """Forgotten as soon as what is kept of it on the storage is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    id: SnapshotId
    fs_id: FilesystemId
    owner: UserName
    """Of the filesystem."""
    name: str = ""
    sub_path: str = ""
    """Relative to the filesystem's root; empty: all of it."""
    kind: SnapshotKind = SnapshotKind.MANIFEST
    state: SnapshotState = SnapshotState.CREATING
    files: int = 0
    """So far, while it is being made; the same for the bytes."""
    bytes: int = 0
    message: str = ""
    created_at: datetime
    updated_at: datetime
    seq: int = 0
    version: int = 0

    @property
    def manifest_path(self) -> str:
        """Where the manifest lies on the filesystem."""
        return f"{RESERVED}/snapshots/{self.id}.jsonl.gz"

    @property
    def content_path(self) -> str:
        """Below which a copy keeps its files."""
        return f"{RESERVED}/snapshots/{self.id}"
