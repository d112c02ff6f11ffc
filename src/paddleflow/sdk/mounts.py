"""The right to use the storage behind a filesystem: short-lived tokens, handed to mounts and to ``client.fs``.

A token is for one filesystem and one way of using it. Showing it to the server gives the plan of the mount, sealed with
the token's own secret, and a token for the time after. Whoever holds one needs no user and no password, so a mount
keeps neither.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from paddleflow.sdk.session import Session, present, require, segment
from paddleflow.sdk.transport import Transport

MOUNT_TOKEN_HEADER = "x-pf-mount-token"  # noqa: S105 - the name of a header


@dataclass(frozen=True)
class MountTicket:
    """Leave to mount."""

    mount_id: str
    fs_id: str
    token: str = field(repr=False)
    expires_at: str


@dataclass(frozen=True)
class MountAccess:
    """What a token opens: the sealed plan, and the token to come with next time."""

    sealed: str = field(repr=False)
    token: str = field(repr=False)
    expires_at: str


@dataclass(frozen=True)
class MountInfo:
    """A mount that is alive, as the server last heard of it."""

    mount_id: str
    fs_name: str
    username: str
    node: str
    mountpoint: str
    read_only: bool
    snapshot: str
    """Of which it is a mount; empty: of the filesystem as it is."""
    since: str
    last_seen: str

    @classmethod
    def from_wire(cls, data: Mapping[str, Any]) -> MountInfo:
        return cls(
            mount_id=data["mountID"],
            fs_name=data.get("fsName", ""),
            username=data.get("username", ""),
            node=data.get("node", ""),
            mountpoint=data.get("mountpoint", ""),
            read_only=data.get("readOnly", False),
            snapshot=data.get("snapshot", ""),
            since=data.get("since", ""),
            last_seen=data.get("lastSeen", ""),
        )


class MountDesk:
    """What a mount asks the server itself, with its token alone."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    @classmethod
    def at(cls, host: str, port: int) -> MountDesk:
        return cls(Transport(host, port))

    def exchange(self, token: str) -> MountAccess:
        """The plan, and a token that lives on; to be asked again before ``expires_at``."""
        data = self._transport.call("POST", "/fsMount/access", headers=_shown(token), repeatable=True)
        return MountAccess(sealed=data["sealed"], token=data["token"], expires_at=data.get("expiresAt", ""))

    def report(self, token: str, report: Mapping[str, Any]) -> None:
        """Tell what is cached here and how often it served; the newest report of a node counts."""
        self._transport.call("POST", "/fsCache/report", body=dict(report), headers=_shown(token), repeatable=True)

    def give_back(self, token: str) -> None:
        """The mount is gone; its token is refused from now on."""
        self._transport.call("DELETE", "/fsMount", headers=_shown(token), repeatable=True)

    def close(self) -> None:
        self._transport.close()


class MountCalls(Session):
    """What the client can do with mounts: ask leave, look, give back."""

    def open_mount(
        self,
        fsname: str,
        username: str | None = None,
        *,
        read_only: bool = False,
        snapshot: str | None = None,
        node: str | None = None,
        mountpoint: str | None = None,
    ) -> tuple[bool, MountTicket]:
        """Leave to use the storage of a filesystem for a few minutes; ``mount_desk`` renews it."""
        body = present(
            fsName=require(fsname, "InvalidFSName", "fsname"),
            username=username,
            readOnly=read_only or None,
            snapshot=snapshot,
            node=node,
            mountpoint=mountpoint,
        )
        data = self._create("/fsMount", body)
        ticket = MountTicket(
            mount_id=data["mountID"], fs_id=data["fsID"], token=data["token"], expires_at=data.get("expiresAt", "")
        )
        return True, ticket

    def close_mount(self, mount_id: str) -> tuple[bool, None]:
        """End a mount's leave from outside: its token is refused from now on."""
        self._delete(f"/fsMount/{segment(require(mount_id, 'InvalidMountID', 'mount_id'))}")
        return True, None

    def list_mounts(self, fsname: str, username: str | None = None) -> tuple[bool, list[MountInfo]]:
        """Where a filesystem is mounted now."""
        params = {"fsName": require(fsname, "InvalidFSName", "fsname"), "username": username}
        return True, [MountInfo.from_wire(one) for one in self._get("/fsMount", params)["mountList"]]

    @property
    def mount_desk(self) -> MountDesk:
        """Calls that need a mount's token and no log-in, over this client's connections."""
        return MountDesk(self._transport)


def _shown(token: str) -> dict[str, str]:
    return {MOUNT_TOKEN_HEADER: require(token, "InvalidMountToken", "token")}
