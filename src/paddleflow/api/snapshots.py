"""Snapshots of filesystems on the wire."""

# ruff: noqa: N815  the names of the fields are the names on the wire

from __future__ import annotations

from pydantic import Field
from typing_extensions import TypedDict

from paddleflow.api.wire import PageAnswer, WireRequest, local_time
from paddleflow.domain.commands import CreateSnapshot
from paddleflow.domain.filesystems import Filesystem
from paddleflow.domain.snapshots import Snapshot


class SnapshotRequest(WireRequest):
    name: str = ""
    subPath: str = ""
    """Of the filesystem; empty: all of it."""
    with_content: bool = Field(default=False, alias="copy")
    """Keep the files too, and not only which versions there were."""
    username: str = ""

    def to_command(self, fs_name: str) -> CreateSnapshot:
        return CreateSnapshot(
            fs_name=fs_name, name=self.name, sub_path=self.subPath, copy=self.with_content, owner=self.username
        )


class SnapshotIdAnswer(TypedDict):
    snapshotID: str


class SnapshotAnswer(TypedDict):
    snapshotID: str
    fsName: str
    fsID: str
    username: str
    name: str
    subPath: str
    kind: str
    """``manifest``: which versions there were. ``copy``: the files too."""
    state: str
    files: int
    """So far, while it is being made; the same for the bytes."""
    bytes: int
    message: str
    createTime: str
    updateTime: str


class SnapshotListAnswer(PageAnswer):
    snapshotList: list[SnapshotAnswer]


def snapshot_answer(filesystem: Filesystem, snapshot: Snapshot) -> SnapshotAnswer:
    return {
        "snapshotID": snapshot.id,
        "fsName": filesystem.name,
        "fsID": filesystem.id,
        "username": filesystem.owner,
        "name": snapshot.name,
        "subPath": snapshot.sub_path,
        "kind": snapshot.kind,
        "state": snapshot.state,
        "files": snapshot.files,
        "bytes": snapshot.bytes,
        "message": snapshot.message,
        "createTime": local_time(snapshot.created_at),
        "updateTime": local_time(snapshot.updated_at),
    }
