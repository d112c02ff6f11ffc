"""A filesystem in use by a program without a mount: leave from the server, its stores, and the shared cache."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

from paddleflow.pfs.cache import Cache
from paddleflow.pfs.mounting import own_directory
from paddleflow.pfs.options import MountOptions
from paddleflow.pfs.routes import Routes
from paddleflow.pfs.stagehand import Stagehand
from paddleflow.sdk.client import Client
from paddleflow.wiring.mount_access import ask_leave, give_back
from paddleflow.wiring.stores import cache_levels, open_routes


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedFilesystem:
    """A filesystem in use by this process, without a mount."""

    routes: Routes
    cache: Cache
    stagehand: Stagehand
    options: MountOptions
    release: Callable[[], None]

    def close(self) -> None:
        self.stagehand.close()
        self.routes.close()
        self.release()


def open_filesystem(
    client: Client,
    fs_name: str,
    *,
    username: str | None = None,
    read_only: bool = False,
    snapshot: str | None = None,
) -> OpenedFilesystem:
    """Use a filesystem's storage as the user of ``client`` may, through the cache that mounts of this user share."""
    granted = ask_leave(client, fs_name, username=username, read_only=read_only, snapshot=snapshot)
    routes = open_routes(granted.stores)
    levels = cache_levels(str(granted.cache.get("cacheDir") or ""), int(granted.cache.get("quota") or 0))
    for level in levels:
        own_directory(level.directory)
    cache = Cache(levels)

    return OpenedFilesystem(
        routes=routes,
        cache=cache,
        stagehand=Stagehand(routes, cache),
        options=MountOptions(read_only=granted.read_only, uid=os.getuid(), gid=os.getgid()),
        release=lambda: give_back(granted.access),
    )
