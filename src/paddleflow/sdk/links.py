"""Links: another storage shown at a directory of a filesystem."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from paddleflow.sdk.errors import NotFoundError
from paddleflow.sdk.filesystems import fs_path
from paddleflow.sdk.session import Session, present, require


@dataclass(frozen=True)
class LinkInfo:
    name: str
    """Of the filesystem in which it is seen."""
    owner: str
    fstype: str
    fspath: str
    server_adddress: str
    """Spelt with three d's because existing scripts read it so; ``server_address`` is the same."""
    subpath: str
    properties: dict[str, str] = field(default_factory=dict)

    @property
    def server_address(self) -> str:
        return self.server_adddress

    @classmethod
    def from_wire(cls, data: Mapping[str, Any]) -> LinkInfo:
        return cls(
            name=data["fsName"],
            owner=data.get("username", ""),
            fstype=data.get("type", ""),
            fspath=data.get("fsPath", ""),
            server_adddress=data.get("serverAddress", ""),
            subpath=data.get("subPath", ""),
            properties=data.get("properties") or {},
        )


class LinkCalls(Session):
    """What the client can do with links."""

    def add_link(
        self,
        fsname: str,
        fspath: str,
        url: str,
        username: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> tuple[bool, None]:
        """Show the storage at ``url`` as the directory ``fspath`` of the filesystem, in every mount of it."""
        body = present(
            fsName=require(fsname, "InvalidFSName", "fsname"),
            fsPath=require(fspath, "InvalidFSPath", "fspath"),
            url=require(url, "InvalidURL", "url"),
            username=username,
            properties=properties,
        )
        self._create("/link", body)
        return True, None

    def delete_link(self, fsname: str, fspath: str, username: str | None = None) -> tuple[bool, None]:
        """Take a link away; what it showed stays where it is."""
        params = {"fsPath": require(fspath, "InvalidFSPath", "fspath"), "username": username}
        self._delete(fs_path("/link", fsname), params)
        return True, None

    def list_link(self, fsname: str, username: str | None = None, maxsize: int = 100) -> tuple[bool, list[LinkInfo]]:
        data = self._get(fs_path("/link", fsname), {"username": username, "maxKeys": maxsize})
        return True, [LinkInfo.from_wire(one) for one in data["linkList"]]

    def show_link(self, fsname: str, fspath: str, username: str | None = None) -> tuple[bool, list[LinkInfo]]:
        """A list of one."""
        params = {"fsPath": require(fspath, "InvalidFSPath", "fspath"), "username": username}
        found = [LinkInfo.from_wire(one) for one in self._get(fs_path("/link", fsname), params)["linkList"]]
        if not found:
            raise NotFoundError("LinkNotExist", f"fs[{fsname}] has no link at [{fspath}]")
        return True, found
