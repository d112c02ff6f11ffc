"""What is held where: which attributes the store keeps, which this mount only remembers, and how the two make one file.

A store that holds modes is asked to hold them. One that does not (object storage) shows the mount's defaults; what a
program sets there is remembered as long as this mount knows the file, so that ``tar``, ``git`` and ``cp -p`` work, and
is gone with the mount: nobody is told that it was kept. Links and extended attributes are refused where the store has
no place for them. Should such a store ever get a place for all this, it is this module that changes.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass

from paddleflow.pfs.attrs import Attr, Caller
from paddleflow.pfs.backstage import Found
from paddleflow.pfs.options import MountOptions
from paddleflow.pfs.staging import Staged

_DIRECTORY_SIZE = 4096


@dataclass(slots=True)
class Chosen:
    """Attributes that were set here and that the store does not hold."""

    mode: int | None = None
    uid: int | None = None
    gid: int | None = None
    modified_ns: int | None = None
    accessed_ns: int | None = None
    version: str = ""
    """The content whose times these are: another version has its own."""


def chosen_at_birth(mode: int, caller: Caller) -> Chosen:
    """What a new file or directory on a store that holds no modes looks like: as it was asked for."""
    return Chosen(mode=stat.S_IMODE(mode), uid=caller.uid, gid=caller.gid)


def owner_to_set(caller: Caller) -> tuple[int | None, int | None]:
    """What a store gives to us must go to whoever asked; nothing to do when that is ourselves."""
    uid = None if caller.uid == os.geteuid() else caller.uid
    gid = None if caller.gid == os.getegid() else caller.gid
    return uid, gid


def attr_of(found: Found, ino: int, options: MountOptions, chosen: Chosen | None, times: tuple[int, int]) -> Attr:
    """``times``: the first stands in where the store has none (a directory that is only a common beginning of names),
    the second is when something in this directory was last changed here."""
    entry = found.entry
    is_timed = entry.modified_ns or found.traits.holds_modes  # there, 1970 is a time like any other
    modified = max(entry.modified_ns if is_timed else times[0], times[1])
    accessed = modified
    mode, uid, gid = entry.mode, entry.uid, entry.gid
    if chosen is not None:
        mode, uid, gid = _first(chosen.mode, mode), _first(chosen.uid, uid), _first(chosen.gid, gid)
        if chosen.version == entry.version:
            modified = modified if chosen.modified_ns is None else chosen.modified_ns
            accessed = modified if chosen.accessed_ns is None else chosen.accessed_ns
    kind, size, usual = _kind(found, options)
    return Attr(
        ino=ino,
        mode=kind | (usual if mode is None else stat.S_IMODE(mode)),
        size=size,
        mtime_ns=modified,
        ctime_ns=modified,
        atime_ns=accessed,
        uid=options.uid if uid is None else uid,
        gid=options.gid if gid is None else gid,
        nlink=2 if entry.is_directory else 1,
        blocks=(size + 511) // 512,
    )


def staged_attr(staged: Staged, known: Found | None, ino: int, options: MountOptions, chosen: Chosen | None) -> Attr:
    """Of a file whose content is here: size and times are those of the local file."""
    now = staged.stat()
    entry = None if known is None else known.entry
    mode, uid, gid = staged.mode, staged.uid, staged.gid
    if chosen is not None:
        mode, uid, gid = _first(chosen.mode, mode), _first(chosen.uid, uid), _first(chosen.gid, gid)
    if entry is not None:
        mode, uid, gid = _first(mode, entry.mode), _first(uid, entry.uid), _first(gid, entry.gid)
    return Attr(
        ino=ino,
        mode=stat.S_IFREG | (options.file_mode if mode is None else stat.S_IMODE(mode)),
        size=now.st_size,
        mtime_ns=now.st_mtime_ns,
        ctime_ns=now.st_ctime_ns,
        atime_ns=now.st_atime_ns,
        uid=options.uid if uid is None else uid,
        gid=options.gid if gid is None else gid,
        blocks=now.st_blocks,
        nlink=0 if staged.is_orphan else 1,
    )


def _kind(found: Found, options: MountOptions) -> tuple[int, int, int]:
    """Kind, size, and the permission bits where nobody holds any."""
    entry = found.entry
    if entry.is_directory:
        return stat.S_IFDIR, _DIRECTORY_SIZE, options.dir_mode
    if entry.link_target is not None:
        # The length of its target, as everywhere; its permissions mean nothing.
        return stat.S_IFLNK, len(entry.link_target.encode("utf-8", "surrogateescape")), 0o777
    return stat.S_IFREG, entry.size, options.file_mode


def _first(chosen: int | None, held: int | None) -> int | None:
    return held if chosen is None else chosen
