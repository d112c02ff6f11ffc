"""How the mounts of a filesystem cache, and what of it lies on which node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from paddleflow.sdk.errors import InvalidError
from paddleflow.sdk.filesystems import fs_path
from paddleflow.sdk.session import Session, require

CACHE_OPTIONS = (
    "cacheDir",
    "quota",
    "metaDriver",
    "blockSize",
    "debug",
    "cleanCache",
    "resource",
    "nodeTaintToleration",
    "extraConfig",
)


@dataclass(frozen=True)
class CacheConfigInfo:
    fsname: str
    username: str
    cachedir: str
    metadriver: str
    blocksize: int
    quota: int = 0
    """Bytes; 0 is the node's own limit."""
    extra: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def from_wire(cls, data: Mapping[str, Any]) -> CacheConfigInfo:
        return cls(
            fsname=data.get("fsName", ""),
            username=data.get("username", ""),
            cachedir=data.get("cacheDir", ""),
            metadriver=data.get("metaDriver", ""),
            blocksize=data.get("blockSize", 0),
            quota=data.get("quota") or 0,
            extra=data.get("extraConfig") or {},
        )


@dataclass(frozen=True)
class CacheStats:
    """What one node has told of its cache of a filesystem."""

    node: str
    bytes: int
    files: int
    hits: int
    misses: int
    hit_bytes: int
    miss_bytes: int
    updated: str

    @property
    def hit_ratio(self) -> float | None:
        """Bytes served from the cache of all bytes served; None before anything was read."""
        total = self.hit_bytes + self.miss_bytes
        return self.hit_bytes / total if total else None

    @classmethod
    def from_wire(cls, data: Mapping[str, Any]) -> CacheStats:
        return cls(
            node=data.get("node", ""),
            bytes=data.get("bytes", 0),
            files=data.get("files", 0),
            hits=data.get("hits", 0),
            misses=data.get("misses", 0),
            hit_bytes=data.get("hitBytes", 0),
            miss_bytes=data.get("missBytes", 0),
            updated=data.get("updateTime") or "",
        )


class FsCacheCalls(Session):
    """What the client can do with cache configurations, and with what nodes tell of their caches."""

    def create_cache(
        self, fsname: str, options: Mapping[str, Any] | None = None, username: str | None = None
    ) -> tuple[bool, None]:
        """``options`` are cacheDir, metaDriver, blockSize and the like; what is not given is the node's own."""
        body = {"fsName": require(fsname, "InvalidFSName", "fsname"), **_options(options or {})}
        self._create("/fsCache", body | ({"username": username} if username else {}))
        return True, None

    def update_fs_cache(self, fsname: str, params: Mapping[str, Any], username: str | None = None) -> tuple[bool, None]:
        """Change what is given."""
        body = _options(params) | ({"username": username} if username else {})
        self._put(fs_path("/fsCache", fsname), body)
        return True, None

    def get_fs_cache(self, fsname: str, username: str | None = None) -> tuple[bool, CacheConfigInfo]:
        return True, CacheConfigInfo.from_wire(self._get(fs_path("/fsCache", fsname), {"username": username}))

    def delete_fs_cache(self, fsname: str, username: str | None = None) -> tuple[bool, None]:
        self._delete(fs_path("/fsCache", fsname), {"username": username})
        return True, None

    def fs_cache_stats(self, fsname: str, username: str | None = None) -> tuple[bool, list[CacheStats]]:
        """What of the filesystem is cached on which node, and how often it was found there."""
        data = self._get(fs_path("/fsCache/stats", fsname), {"username": username})
        return True, [CacheStats.from_wire(one) for one in data["nodes"]]


def _options(given: Mapping[str, Any]) -> dict[str, Any]:
    """As the server wants them. Scripts hand over texts, as they were typed; numbers and switches among them become
    what they mean."""
    unknown = sorted(set(given) - set(CACHE_OPTIONS))
    if unknown:
        raise InvalidError(
            "InvalidArguments", f"options[{unknown[0]}] is unknown; there are {', '.join(CACHE_OPTIONS)}"
        )
    return {name: _meant(name, value) for name, value in given.items()}


def _meant(name: str, value: Any) -> Any:
    if name in ("blockSize", "quota"):
        try:
            return int(str(value))
        except ValueError as error:
            raise _wrong(name, value, "a whole number") from error
    if name in ("debug", "cleanCache"):
        if str(value).lower() not in ("true", "false"):
            raise _wrong(name, value, "true or false")
        return str(value).lower() == "true"
    return value


def _wrong(name: str, value: object, wanted: str) -> InvalidError:
    return InvalidError("InvalidArguments", f"options[{name}] should be {wanted}, not {value!r}")
