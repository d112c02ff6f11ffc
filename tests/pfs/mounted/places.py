"""What the tests of this folder share: places to work in, and content that says which version it is."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from pathlib import Path

from paddleflow.wiring.stores import StorePlan
from tests.pfs.mounts import RealMount


@dataclass
class Place:
    """A shared mount, and folders in it that nobody else uses."""

    mount: RealMount
    holds_links: bool
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    def fresh(self) -> Path:
        folder = self.mount.path / f"t{next(self._numbers)}"
        folder.mkdir()
        return folder


def local_store(where: Path, name: str = "store", path: str = "") -> StorePlan:
    (where / name).mkdir(exist_ok=True)
    return StorePlan(type="local", root=str(where / name), path=path)


def stamped(number: int, size: int) -> bytes:
    """Content of which every part says to which version it belongs, and how long it is."""
    line = b"%016d %016d\n" % (number, size)
    return (line * (size // len(line) + 1))[:size]


def is_whole(content: bytes) -> bool:
    if not content:
        return True
    number, size = content[:33].split()
    return content == stamped(int(number), int(size))
