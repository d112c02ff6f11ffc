"""The cache: bytes of object versions in local files, shared by every mount and program on the machine.

Each version of an object is one sparse data file, so that a complete one can be handed to the kernel, beside a sidecar
that says which chunks are there and what they sum up to. Processes that share a directory do not talk to each other:
every step is one the kernel does at once, and each may die after any of them. ``layout`` has the formats, ``entry`` who
may believe what, ``shelf`` how entries come and go, ``space`` the limits, ``eviction`` who leaves,
``stock`` what is there.

What it refuses: to change the content of a version, to serve bytes it cannot vouch for, to grow beyond its limit.
"""

from __future__ import annotations

from paddleflow.pfs.cache.entry import CachedFile
from paddleflow.pfs.cache.layout import Stamp, stamp_matches
from paddleflow.pfs.cache.levels import Cache, CacheUsage, Snapshot, StoreUsage
from paddleflow.pfs.cache.space import Level
from paddleflow.pfs.cache.stock import Held

__all__ = [
    "Cache",
    "CacheUsage",
    "CachedFile",
    "Held",
    "Level",
    "Snapshot",
    "Stamp",
    "StoreUsage",
    "stamp_matches",
]
