"""Filesystems: stored data with a name, which jobs, mounts and ``client.fs`` read.

Secrets go to the server once, when a filesystem is made. In answers they are ``******``; sending that back keeps the
secret that is stored.
"""

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
        self._create("/fs", _fs_body(fsname, url, username, properties))
        return True, None

    def update_fs(
        self, fsname: str, url: str, username: str | None = None, properties: Mapping[str, str] | None = None
    ) -> tuple[bool, None]:
        """Give a filesystem another place or other properties. A secret sent as ``******`` stays what it is."""
        self._put("/fs", _fs_body(fsname, url, username, properties))
        return True, None

    def show_fs(self, fsname: str, username: str | None = None) -> tuple[bool, list[FSInfo]]:
        return True, [FSInfo.from_wire(self._get(fs_path("/fs", fsname), {"username": username}))]

    def list_fs(self, username: str | None = None, maxsize: int = 100) -> tuple[bool, list[FSInfo]]:
        data = self._get("/fs", {"username": username, "maxKeys": maxsize})
        return True, [FSInfo.from_wire(fs) for fs in data["fsList"]]

    def delete_fs(self, fsname: str, username: str | None = None) -> tuple[bool, None]:
        """Forget a filesystem; the data stays where it is."""
        self._delete(fs_path("/fs", fsname), {"username": username})
        return True, None


def fs_path(above: str, fsname: str) -> str:
    """The path of what belongs to one filesystem."""
    return f"{above}/{segment(require(fsname, 'InvalidFSName', 'fsname'))}"


def _fs_body(fsname: str, url: str, username: str | None, properties: Mapping[str, str] | None) -> dict[str, object]:
    return present(
        name=require(fsname, "InvalidFSName", "fsname"),
        url=require(url, "InvalidURL", "url"),
        username=username,
        properties=properties,
    )
