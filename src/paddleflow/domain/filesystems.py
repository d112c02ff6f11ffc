"""Filesystems: stored data with a name, owned by a user."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from paddleflow.domain.ids import FilesystemId, UserName


@dataclass(frozen=True, slots=True, kw_only=True)
class Filesystem:
    id: FilesystemId
    name: str
    owner: UserName
    type: str
    server_address: str = ""
    sub_path: str = ""
    """For type ``local``: the absolute directory on the host."""
    properties: Mapping[str, str] = field(default_factory=dict)
    independent_mount_process: bool = False
    created_at: datetime
    updated_at: datetime
    seq: int = 0
    version: int = 0
