"""The plan of a mount: all that its processes need to know, handed from one to the next as JSON over descriptors.

It carries credentials, so it never stands in arguments, the environment, a file or a log.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from paddleflow.pfs.cache.space import Level
from paddleflow.pfs.options import MountOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class MountPlan:
    name: str
    """The filesystem's id; what ``df`` shows."""
    mountpoint: str
    state_dir: str
    options: MountOptions = field(default_factory=MountOptions)
    levels: tuple[Level, ...] = ()
    stores: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)
    """What the workers' program needs to open the store of the root, and those of links. Nothing else looks inside."""
    access: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """Where this mount renews its leave and reports; empty: it needs none."""
    front_argv: tuple[str, ...] = ()
    worker_argv: tuple[str, ...] = ()
    """The number of a descriptor is appended."""
    workers: int = 2
    threads: int = 16
    """Of each worker."""
    heartbeat_s: float = 15.0

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> MountPlan:
        known = {name: data[name] for name in cls.__dataclass_fields__ if name in data}
        known |= {
            "options": MountOptions(**data.get("options", {})),
            "levels": tuple(Level(**level) for level in data.get("levels", ())),
            "stores": tuple(data.get("stores", ())),
            "front_argv": tuple(data.get("front_argv", ())),
            "worker_argv": tuple(data.get("worker_argv", ())),
        }
        return cls(**known)

    def renewed(self, stores: tuple[Mapping[str, Any], ...], access: Mapping[str, Any]) -> MountPlan:
        return replace(self, stores=stores, access=access)
