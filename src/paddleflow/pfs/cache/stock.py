"""Taking stock of a cache directory: what is there, what it takes, what is damaged, what nobody refers to any more.

Nothing is kept of what is shown: a cache of a million files is looked through in little memory. Data files are listed
before sidecars; one that is listed and that no sidecar names afterwards is either being made, or was left by a process
that died between two steps. The first are young.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from paddleflow.pfs.backstage import ObjectVersion
from paddleflow.pfs.cache.descriptors import open_sidecar
from paddleflow.pfs.cache.layout import data_place, parse_stamp, read_header


@dataclass(frozen=True, slots=True)
class Held:
    """An entry as it was found."""

    version: ObjectVersion
    bytes: int
    """Of data and sidecar, as the filesystem counts them."""
    is_complete: bool
    """Somebody has verified it since the machine was started."""
    last_used: float
    place: str
    """Of its sidecar."""


def survey(root: str, visit: Callable[[Held], None], discard: Callable[[str], object], orphan_age_s: float) -> int:
    """Show every entry, discard damaged ones and old orphans; the bytes that are left."""
    unclaimed = {path.encode()[-33:]: status.st_blocks * 512 for path, status in _files(os.path.join(root, "data"))}
    found = 0
    for place, status in _files(os.path.join(root, "entries")):
        one = _look(root, place, status, unclaimed)
        if one is None:
            discard(place)
        else:
            visit(one)
            found += one.bytes
    aside = [path for folder in ("new", "gone") for path, _ in _files(os.path.join(root, folder))]
    orphans = [os.path.join(root, "data", name.decode()) for name in unclaimed]
    return found + sum(_left_of(path, orphan_age_s) for path in [*orphans, *aside])


def _look(root: str, place: str, sidecar: os.stat_result, unclaimed: dict[bytes, int]) -> Held | None:
    fd = open_sidecar(place)
    if fd < 0:
        return None
    try:
        beginning, header = read_header(fd)
    finally:
        os.close(fd)
    if header is None:
        return None
    name = data_place(header.data_name)
    taken = unclaimed.pop(name.encode(), None)
    if taken is None:
        try:
            taken = os.stat(os.path.join(root, "data", name)).st_blocks * 512
        except FileNotFoundError:
            return None
    is_complete = parse_stamp(beginning, header.size) is not None
    return Held(header.version, taken + sidecar.st_blocks * 512, is_complete, sidecar.st_mtime, place)


def _left_of(path: str, orphan_age_s: float) -> int:
    """Delete a file that nobody refers to if it is old; else the bytes it takes."""
    try:
        status = os.stat(path)
        if time.time() - max(status.st_mtime, status.st_ctime) <= orphan_age_s:
            return status.st_blocks * 512
        os.unlink(path)
    except FileNotFoundError:
        pass  # whoever was making it is done
    return 0


def _files(folder: str) -> Iterator[tuple[str, os.stat_result]]:
    """All files below, each with its status; what vanishes meanwhile is left out."""
    try:
        inside = list(os.scandir(folder))
    except FileNotFoundError:
        return
    for entry in inside:
        if entry.is_dir(follow_symlinks=False):
            yield from _files(entry.path)
            continue
        try:
            yield entry.path, entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            continue
