"""Filesystems: stored data with a name, owned by a user; links, which show another storage inside one; and how the
mounts of one are told to cache.

Secrets among the properties of a row are sealed, always (``domain.storages``).
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from paddleflow.domain.errors import Duplicate, Invalid, PaddleFlowError, invalid_field
from paddleflow.domain.ids import FilesystemId, UserName
from paddleflow.domain.names import can_be_kept, check_text
from paddleflow.domain.resources import CPU, MEMORY, Resources
from paddleflow.domain.storages import Storage

META_DRIVERS = ("", "mem", "disk")
_MOST_CPU_MILLI = 2000
_MOST_MEMORY = 8 * 1024**3
_LARGEST = 2**63 - 1
_MOST_ENTRIES = 256
_LINK_PATH_LIMIT = 1024
"""Bytes: it is part of a key, and no database indexes long ones."""
RESERVED = ".paddleflow"
"""The platform's own directory on a filesystem: snapshots are kept below it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filesystem:
    id: FilesystemId
    name: str
    owner: UserName
    type: str
    server_address: str = ""
    sub_path: str = ""
    """For type ``local``: the absolute directory on the host."""
    properties: Mapping[str, str] = field(default_factory=dict)
    independent_mount_process: bool = False
    created_at: datetime
    updated_at: datetime
    seq: int = 0
    version: int = 0

    @property
    def storage(self) -> Storage:
        return Storage(
            type=self.type, server_address=self.server_address, sub_path=self.sub_path, properties=self.properties
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """Another storage, shown as a directory of a filesystem in every mount of it."""

    fs_id: FilesystemId
    fs_path: str
    """Absolute within the filesystem, never its root."""
    owner: UserName
    """Of the filesystem."""
    type: str
    server_address: str = ""
    sub_path: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)
    created_at: datetime
    updated_at: datetime
    seq: int = 0

    @property
    def storage(self) -> Storage:
        return Storage(
            type=self.type, server_address=self.server_address, sub_path=self.sub_path, properties=self.properties
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheConfig:
    """What the mounts of a filesystem are told about caching; what a mount is told itself goes before it."""

    fs_id: FilesystemId
    cache_dir: str = ""
    quota: int = 0
    """Bytes on a node's disk; 0: as the mount is set."""
    meta_driver: str = ""
    block_size: int = 0
    """Bytes; 0: as the mount is set."""
    debug: bool = False
    clean_cache: bool = False
    cpu_limit: str = ""
    memory_limit: str = ""
    node_taint_toleration: Mapping[str, str] = field(default_factory=dict)
    extra_config: Mapping[str, str] = field(default_factory=dict)
    created_at: datetime
    updated_at: datetime
    seq: int = 0
    version: int = 0


def check_link_path(path: str) -> str:
    """Absolute, normal, and neither the root nor the platform's own directory."""
    code = "InvalidArguments"
    check_text("fsPath", path, limit=_LINK_PATH_LIMIT, code=code)
    parts = path.split("/")
    if not path.startswith("/") or not can_be_kept(path):
        raise invalid_field("fsPath", f"[{path[:80]}] is not an absolute path within the filesystem", code=code)
    if ".." in parts or not path.strip("/"):
        raise invalid_field("fsPath", f"[{path[:80]}] may not be the root or contain '..'", code=code)
    normal = "/" + posixpath.normpath(path).lstrip("/")
    if len(normal.encode()) > _LINK_PATH_LIMIT:
        raise invalid_field("fsPath", f"it has more than {_LINK_PATH_LIMIT} bytes", code=code)
    if normal.split("/")[1] == RESERVED:
        raise invalid_field("fsPath", f"/{RESERVED} is the platform's own directory", code=code)
    return normal


def check_not_nested(path: str, taken: Iterable[str]) -> None:
    """No link is inside another, and no two are the same."""
    for other in taken:
        if path == other:
            raise Duplicate(f"fsPath[{path}] is a link already", code="LinkPathExist")
        if path.startswith(other + "/") or other.startswith(path + "/"):
            raise Invalid(
                f"fsPath[{path}] and the link at [{other}] would be one inside the other", code="LinkPathExist"
            )


def check_cache_config(config: CacheConfig) -> CacheConfig:
    """Names the field that breaks a rule."""
    if config.meta_driver not in META_DRIVERS:
        raise invalid_field("metaDriver", f"[{config.meta_driver[:80]}] is not one of mem, disk")
    for name, value in (("blockSize", config.block_size), ("quota", config.quota)):
        if not 0 <= value <= _LARGEST:
            raise invalid_field(name, f"{value} is not zero or above")
    _check_directory(config)
    _check_limit("resource.cpuLimit", CPU, config.cpu_limit, _MOST_CPU_MILLI, "2")
    _check_limit("resource.memoryLimit", MEMORY, config.memory_limit, _MOST_MEMORY, "8Gi")
    for name, given in (("nodeTaintToleration", config.node_taint_toleration), ("extraConfig", config.extra_config)):
        _check_entries(name, given)
    return config


def _check_directory(config: CacheConfig) -> None:
    directory = check_text("cacheDir", config.cache_dir, limit=4096)
    if directory and (not directory.startswith("/") or ".." in directory.split("/") or not can_be_kept(directory)):
        raise invalid_field("cacheDir", f"[{directory[:80]}] is not an absolute path")
    if not directory and config.meta_driver == "disk":
        raise invalid_field("cacheDir", "it is needed where metaDriver is disk")


def _check_limit(field_name: str, resource: str, text: str, most: int, shown: str) -> None:
    if not text:
        return
    try:
        units = Resources.parse({resource: text}).get(resource)
    except PaddleFlowError as error:
        raise invalid_field(field_name, error.message) from error
    if not 0 < units <= most:
        raise invalid_field(field_name, f"[{text[:80]}] is not above 0 and at most {shown}")


def _check_entries(field_name: str, given: Mapping[str, str]) -> None:
    if len(given) > _MOST_ENTRIES:
        raise invalid_field(field_name, f"it has {len(given)} entries, the limit is {_MOST_ENTRIES}")
    for key, value in given.items():
        if len(key) > 256 or not can_be_kept(key):
            raise invalid_field(field_name, "a key has more than 256 characters, or is no plain text")
        if len(value) > 4096 or not can_be_kept(value):
            raise invalid_field(f"{field_name}.{key[:80]}", "it has more than 4096 characters, or is no plain text")
