"""Snapshots: how a filesystem, or a directory of it, was at one moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from paddleflow.sdk.filesystems import fs_path
from paddleflow.sdk.session import Session, present, require, segment


@dataclass(frozen=True)
class SnapshotInfo:
    snapshot_id: str
    name: str
    fs_name: str
    sub_path: str
    kind: str
    """``manifest``: the names and versions of the files; ``copy``: the files too."""
    state: str
    """``creating``, ``ready`` or ``failed``."""
    files: int
    bytes: int
    create_time: str
    message: str = ""
    """Why it failed."""

    @classmethod
    def from_wire(cls, data: Mapping[str, Any]) -> SnapshotInfo:
        return cls(
            snapshot_id=data["snapshotID"],
            name=data.get("name", ""),
            fs_name=data.get("fsName", ""),
            sub_path=data.get("subPath", ""),
            kind=data.get("kind", ""),
            state=data.get("state", ""),
            files=data.get("files", 0),
            bytes=data.get("bytes", 0),
            create_time=data.get("createTime", ""),
            message=data.get("message") or "",
        )


class SnapshotCalls(Session):
    """What the client can do with snapshots."""

    def create_snapshot(
        self,
        fsname: str,
        name: str | None = None,
        sub_path: str | None = None,
        *,
        copy: bool = False,
        username: str | None = None,
    ) -> tuple[bool, str]:
        """Begin a snapshot; its id. It is ``creating`` at first; ``show_snapshot`` tells when it is ``ready``.

        A manifest is cheap and holds for as long as the storage keeps the versions it names; ``copy`` keeps the files
        themselves.
        """
        body = present(name=name, subPath=sub_path, copy=copy or None, username=username)
        return True, str(self._create(f"{fs_path('/fs', fsname)}/snapshot", body)["snapshotID"])

    def list_snapshots(
        self, fsname: str, username: str | None = None, maxsize: int = 100
    ) -> tuple[bool, list[SnapshotInfo]]:
        data = self._get(f"{fs_path('/fs', fsname)}/snapshot", {"username": username, "maxKeys": maxsize})
        return True, [SnapshotInfo.from_wire(one) for one in data["snapshotList"]]

    def show_snapshot(self, fsname: str, snapshot_id: str, username: str | None = None) -> tuple[bool, SnapshotInfo]:
        return True, SnapshotInfo.from_wire(self._get(_snapshot_path(fsname, snapshot_id), {"username": username}))

    def delete_snapshot(self, fsname: str, snapshot_id: str, username: str | None = None) -> tuple[bool, None]:
        self._delete(_snapshot_path(fsname, snapshot_id), {"username": username})
        return True, None


def _snapshot_path(fsname: str, snapshot_id: str) -> str:
    return f"{fs_path('/fs', fsname)}/snapshot/{segment(require(snapshot_id, 'InvalidSnapshot', 'snapshot_id'))}"
