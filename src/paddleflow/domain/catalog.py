"""The catalogue: pipelines that are kept, and their versions."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from paddleflow.domain.ids import FilesystemId, PipelineId, UserName, VersionId


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    id: PipelineId
    name: str
    """One owner has one pipeline of a name."""
    description: str = ""
    owner: UserName
    versions_made: int = 0
    """Counts those deleted since, so that an id never means two versions."""
    created_at: datetime
    updated_at: datetime
    seq: int = 0
    version: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineVersion:
    pipeline_id: PipelineId
    id: VersionId
    fs_id: FilesystemId | None = None
    fs_name: str = ""
    yaml_path: str = ""
    text: str
    """As it was written."""
    digest: str
    owner: UserName
    created_at: datetime
    updated_at: datetime
    seq: int = 0
