"""How a mount behaves: decided once, at mount, and handed from process to process as JSON."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class MountOptions:
    read_only: bool = False
    dataset: bool = False
    """Many small files that only change between epochs: the kernel opens files without asking (no passthrough, pages
    are kept), attributes live long. Implies read_only."""
    write_back: bool = False
    """Closing a file answers once its content is safe on this machine; the upload follows. fsync still waits."""
    allow_other: bool = False
    """Other users of this machine may use the mount."""
    meta_ttl: float = 5.0
    """Seconds for which names and attributes are believed without asking the store; 0: every open asks."""
    negative_ttl: float = 1.0
    """Seconds for which the absence of a name is believed."""
    uid: int = 0
    """Owner of everything on stores that hold no owner; the same for the next three."""
    gid: int = 0
    file_mode: int = 0o644
    dir_mode: int = 0o755
    small_file: int = 4 * MIB
    """Files up to this size are fetched whole when they are opened."""
    passthrough: bool = True
    """Let the kernel read cached files itself where it can. Turned off by what the mount finds out."""
