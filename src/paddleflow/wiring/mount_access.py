"""A mount's leave: fetched with a token, kept fresh, given back; and what the mount reports meanwhile.

The server hands the plan out encrypted for the token it was asked with. Opened, it is credentials: it goes no further
than the processes of the mount.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from paddleflow.adapters.identity import open_sealed_plan
from paddleflow.pfs.cache import CacheUsage
from paddleflow.pfs.plan import MountPlan
from paddleflow.sdk.client import Client
from paddleflow.sdk.mounts import MountDesk, MountTicket
from paddleflow.wiring.stores import StorePlan

_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True, kw_only=True)
class Renewal:
    """Stores and leave as they are from now on."""

    stores: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)
    access: Mapping[str, Any] = field(default_factory=dict, repr=False)
    refusal: str = ""
    """Why there is none: the right to use the filesystem was taken away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Granted:
    """What the server said of a mount."""

    fs_id: str
    read_only: bool
    stores: tuple[StorePlan, ...] = field(repr=False)
    cache: Mapping[str, Any]
    """The filesystem's cache configuration; empty: it has none."""
    access: Mapping[str, Any] = field(repr=False)


def this_node() -> str:
    return socket.gethostname()


def ask_leave(
    client: Client,
    fs_name: str,
    *,
    username: str | None,
    read_only: bool,
    snapshot: str | None,
    mountpoint: str | None = None,
) -> Granted:
    """As the user of ``client``; what is granted is for one filesystem and a quarter of an hour at a time."""
    _, ticket = client.open_mount(
        fs_name, username, read_only=read_only, snapshot=snapshot, node=this_node(), mountpoint=mountpoint
    )
    return exchange(client.mount_desk, ticket, client.address)


def exchange(desk: MountDesk, ticket: MountTicket, address: str) -> Granted:
    answer = desk.exchange(ticket.token)
    plan = json.loads(open_sealed_plan(ticket.token, answer.sealed))
    return Granted(
        fs_id=plan["fsID"],
        read_only=bool(plan["readOnly"]),
        stores=stores_of(plan),
        cache=plan.get("cache") or {},
        access=access_of(plan, answer.token, answer.expires_at, address),
    )


def access_of(plan: Mapping[str, Any], token: str, expires_at: str, address: str) -> dict[str, Any]:
    """What a mount needs to renew its leave."""
    return {
        "address": address,
        "token": token,
        "expires_at": expires_at,
        "mount_id": plan["mountID"],
        "fs_id": plan["fsID"],
    }


def stores_of(plan: Mapping[str, Any]) -> tuple[StorePlan, ...]:
    snapshot = plan.get("snapshot")
    if snapshot:
        content = snapshot["contentPath"] if snapshot["kind"] == "copy" else snapshot["subPath"]
        return (_store("", plan["storage"], manifest=snapshot["manifestPath"], content=content.strip("/")),)
    links = [_store(link["fsPath"].strip("/"), link["storage"]) for link in plan["links"]]
    return (_store("", plan["storage"]), *links)


def _store(path: str, storage: Mapping[str, Any], *, manifest: str = "", content: str = "") -> StorePlan:
    return StorePlan(
        path=path,
        type=storage["type"],
        address=storage["serverAddress"],
        root=storage["subPath"],
        properties=storage["properties"],
        manifest=manifest,
        content=content,
    )


def renew(plan: MountPlan, desk: MountDesk) -> Renewal:
    """Stores and a token for the time after: links and credentials may have changed since."""
    access = plan.access
    ticket = MountTicket(
        mount_id=access["mount_id"],
        fs_id=access["fs_id"],
        token=access["token"],
        expires_at=access["expires_at"],
    )
    granted = exchange(desk, ticket, access["address"])
    return Renewal(stores=tuple(store.to_json() for store in granted.stores), access=granted.access)


def desk_of(access: Mapping[str, Any]) -> MountDesk:
    """Where this leave is renewed; it needs no user and no password."""
    where = urlsplit(access["address"])
    return MountDesk.at(f"{where.scheme}://{where.hostname}", where.port or _PORTS[where.scheme])


def give_back(access: Mapping[str, Any]) -> None:
    """So that nobody waits for it to run out."""
    desk = desk_of(access)
    try:
        desk.give_back(access["token"])
    finally:
        desk.close()


def report(plan: MountPlan, desk: MountDesk, usage: CacheUsage, counters: Mapping[str, int]) -> None:
    """What this node holds of the filesystem, and how often the cache served."""
    identities = {StorePlan(**store).identity for store in plan.stores}
    held = [usage.stores[identity] for identity in identities if identity in usage.stores]
    desk.report(
        plan.access["token"],
        {
            "node": this_node(),
            "mounts": [
                {
                    "fsID": plan.access["fs_id"],
                    "mountID": plan.access["mount_id"],
                    "bytes": sum(one.bytes for one in held),
                    "files": sum(one.files for one in held),
                    "hits": counters.get("hits", 0),
                    "misses": counters.get("misses", 0),
                    "hitBytes": counters.get("hit_bytes", 0),
                    "missBytes": counters.get("miss_bytes", 0),
                }
            ],
        },
    )
