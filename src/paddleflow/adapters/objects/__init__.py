"""Object stores behind ``ports.objects.ObjectStore``: S3 and its likes, HDFS, SFTP, a directory, memory.

The only door of the SSH library and of everything else that is needed to reach storage. Each type's module is loaded
when a store of it is opened, so that a mount of one kind does not pay for the others.

To add one: a file with the store, a branch in ``open_store`` and ``_names``, a subclass of the contract suite.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from paddleflow.domain.errors import invalid_field
from paddleflow.ports.objects import ObjectStore

if TYPE_CHECKING:
    from paddleflow.adapters.objects.retry import Retry

TYPES = ("local", "s3", "bos", "hdfs", "hdfsWithKerberos", "sftp", "memory")


def open_store(
    type: str, address: str, root: str, properties: Mapping[str, str], *, retry: Retry | None = None
) -> ObjectStore:
    """The store of a filesystem or link. ``address`` is the server (of ``s3`` and ``bos``: the bucket, unless it stands
    in the properties), ``root`` the path below which everything is. Nothing is reached yet: ``check()`` does that.
    ``retry``: how patient it is with a server; the default suits whoever reads and writes files."""
    match type:
        case "local":
            from paddleflow.adapters.objects.directory import DirectoryStore

            return DirectoryStore(_local_path(root))
        case "s3" | "bos":
            from paddleflow.adapters.objects.endpoints import open_s3

            return open_s3(type, address, root, properties, retry=retry)
        case "hdfs" | "hdfsWithKerberos":
            from paddleflow.adapters.objects.hdfs import open_hdfs

            return open_hdfs(address, root, properties, retry=retry)
        case "sftp":
            from paddleflow.adapters.objects.sftp import open_sftp

            return open_sftp(address, root, properties, retry=retry)
        case "memory":
            from paddleflow.adapters.objects.memory import MemoryStore

            return MemoryStore()
    raise invalid_field("type", f"there is no storage of type {type!r}: it is one of {', '.join(TYPES)}")


def store_identity(type: str, address: str, root: str, properties: Mapping[str, str]) -> str:
    """Names the storage itself: the same for every way of writing it down, and for every user of it. Nothing secret is
    in it. What a cache keeps of one storage serves all who mount it."""
    named = json.dumps(_names(type, address, root, properties), ensure_ascii=True)
    return hashlib.blake2b(named.encode(), digest_size=8).hexdigest()


def _names(type: str, address: str, root: str, properties: Mapping[str, str]) -> tuple[str, ...]:
    match type:
        case "local":
            return "local", os.path.realpath(_local_path(root))
        case "s3" | "bos":
            from paddleflow.adapters.objects.endpoints import read_endpoint

            endpoint = read_endpoint(type, address, properties)
            return "s3", endpoint.server, endpoint.place.bucket, root.strip("/")
        case "hdfs" | "hdfsWithKerberos":
            # Who really answers: one name node's files must never be taken for another's.
            answers = sorted((properties.get("webhdfs") or "").lower().split(","))
            return "hdfs", *sorted(address.lower().split(",")), *answers, root.strip("/")
        case "sftp":
            # Servers may show each user a root of its own.
            return "sftp", address.lower(), properties.get("user") or "", root.strip("/")
    return type, address, root


def _local_path(root: str) -> str:
    return "/" + root.strip("/")
