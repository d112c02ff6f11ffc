"""Filesystems: stored data that jobs mount."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from paddleflow.sdk.session import Session, present, require, segment


@dataclass(frozen=True)
class FSInfo:
    name: str
    owner: str
    fstype: str
    server_adddress: str
    """Spelt with three d's because existing scripts read it so; ``server_address`` is the same."""
    subpath: str
    properties: dict[str, str] = field(default_factory=dict)

    @property
    def server_address(self) -> str:
        return self.server_adddress

    @classmethod
    def from_wire(cls, data: Mapping[str, Any]) -> FSInfo:
        return cls(
            name=data["name"],
            owner=data.get("username", ""),
            fstype=data.get("type", ""),
            server_adddress=data.get("serverAddress", ""),
            subpath=data.get("subPath", ""),
            properties=data.get("properties") or {},
        )


class FilesystemCalls(Session):
    """What the client can do with filesystems."""

    def add_fs(
        self, fsname: str, url: str, username: str | None = None, properties: Mapping[str, str] | None = None
    ) -> tuple[bool, None]:
        body = present(
            name=require(fsname, "InvalidFSName", "fsname"),
            url=require(url, "InvalidURL", "url"),
            username=username,
            properties=properties,
        )
        self._create("/fs", body)
        return True, None

    def show_fs(self, fsname: str, username: str | None = None) -> tuple[bool, list[FSInfo]]:
        return True, [FSInfo.from_wire(self._get(_fs_path(fsname), {"username": username}))]

    def list_fs(self, username: str | None = None, maxsize: int = 100) -> tuple[bool, list[FSInfo]]:
        data = self._get("/fs", {"username": username, "maxKeys": maxsize})
        return True, [FSInfo.from_wire(fs) for fs in data["fsList"]]

    def delete_fs(self, fsname: str, username: str | None = None) -> tuple[bool, None]:
        self._delete(_fs_path(fsname), {"username": username})
        return True, None


def _fs_path(fsname: str) -> str:
    return f"/fs/{segment(require(fsname, 'InvalidFSName', 'fsname'))}"
