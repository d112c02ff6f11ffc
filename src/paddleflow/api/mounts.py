"""Mounts on the wire: how one is let in, and which there are."""

# ruff: noqa: N815  the names of the fields are the names on the wire

from __future__ import annotations

from typing_extensions import TypedDict

from paddleflow.api.caches import NodeCacheAnswer, node_cache_answer
from paddleflow.api.wire import WireRequest, local_time
from paddleflow.domain.commands import OpenMount
from paddleflow.domain.errors import invalid_field
from paddleflow.domain.filesystems import Filesystem
from paddleflow.domain.ids import FilesystemId, UserName, filesystem_id
from paddleflow.domain.mounts import Mount, NodeCache


class MountRequest(WireRequest):
    """``fsName`` of the user's own (or, for root, of ``username``), or ``fsID`` of one that was granted."""

    fsName: str = ""
    fsID: str = ""
    username: str = ""
    readOnly: bool = False
    node: str = ""
    mountpoint: str = ""
    snapshot: str = ""
    """Mount this snapshot, read-only."""

    def to_command(self, user: UserName) -> OpenMount:
        if bool(self.fsName) == bool(self.fsID):
            raise invalid_field("fsName", "give either fsName or fsID")
        owner = UserName(self.username) if self.username else user
        return OpenMount(
            fs_id=FilesystemId(self.fsID) if self.fsID else filesystem_id(owner, self.fsName),
            node=self.node,
            mountpoint=self.mountpoint,
            read_only=self.readOnly,
            snapshot=self.snapshot,
        )


class MountOpenedAnswer(TypedDict):
    mountID: str
    fsID: str
    token: str
    """For the header x-pf-mount-token; renewed by each access."""
    expiresAt: str


class MountAccessAnswer(TypedDict):
    sealed: str
    """The mount's plan, encrypted with the secret part of the token that was sent."""
    token: str
    expiresAt: str


class MountAnswer(TypedDict):
    mountID: str
    fsID: str
    fsName: str
    username: str
    """Who mounted it."""
    node: str
    mountpoint: str
    readOnly: bool
    snapshot: str
    since: str
    lastSeen: str
    lastReport: NodeCacheAnswer | None


class MountListAnswer(TypedDict):
    mountList: list[MountAnswer]


def mount_answer(filesystem: Filesystem, mount: Mount, cache: NodeCache | None) -> MountAnswer:
    return {
        "mountID": mount.id,
        "fsID": filesystem.id,
        "fsName": filesystem.name,
        "username": mount.user,
        "node": mount.node,
        "mountpoint": mount.mountpoint,
        "readOnly": mount.read_only,
        "snapshot": mount.snapshot or "",
        "since": local_time(mount.created_at),
        "lastSeen": local_time(mount.seen_at),
        "lastReport": None if cache is None else node_cache_answer(cache),
    }
