"""Pure: how places are written and what they are in the store."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from paddleflow.files.errors import InvalidFile

_PLACE = re.compile(r"([A-Za-z0-9_-]{1,63}):(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Place:
    """A file or directory on a filesystem, or, with an empty ``fsname``, on this machine."""

    fsname: str
    path: str
    """On a filesystem: from its root, with a slash in front and none at the end."""
    is_directory_wanted: bool = False
    """Written with a slash at the end: it is a directory, or has to become one."""

    @property
    def is_local(self) -> bool:
        return not self.fsname

    @property
    def name(self) -> str:
        return os.path.basename(self.path.rstrip("/"))

    def below(self, *names: str) -> Place:
        joined = "/".join([self.path.rstrip("/"), *names])
        return Place(self.fsname, joined if joined.startswith("/") or self.is_local else f"/{joined}")

    def __str__(self) -> str:
        return self.path if self.is_local else f"{self.fsname}:{self.path}"


def place_of(written: str | os.PathLike[str]) -> Place:
    """``FSNAME:/path`` is on a filesystem; everything else is on this machine. ``./a:b`` is a local file ``a:b``."""
    text = os.fspath(written)
    found = _PLACE.fullmatch(text)
    if found is None:
        if not text:
            raise InvalidFile("InvalidPath", "a path should not be empty; write FSNAME:/path or a path of this machine")
        return Place("", text.rstrip("/") or "/", text.endswith("/"))
    return Place(found[1], shown(key_of(found[2])), found[2] in ("", "/") or found[2].endswith("/"))


def remote_place(written: str | os.PathLike[str]) -> Place:
    place = place_of(written)
    if place.is_local:
        raise InvalidFile("InvalidPath", f"{place} should be written FSNAME:/path, e.g. data:/{place.name}")
    return place


def key_of(path: str) -> str:
    """A path as the store's key: no slash at either end, no empty part. Leaving the filesystem is refused."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise InvalidFile("InvalidPath", f"path[{path}] should not have .. in it; write it from the root")
    if "\0" in path:
        raise InvalidFile("InvalidPath", "a path cannot have a zero byte in it")
    return "/".join(parts)


def shown(key: str) -> str:
    """A key as people write it."""
    return f"/{key}"


def parent_of(key: str) -> str:
    return key.rpartition("/")[0]


def is_within(key: str, above: str) -> bool:
    """Whether a key is another or lies below it."""
    return not above or key == above or key.startswith(f"{above}/")
