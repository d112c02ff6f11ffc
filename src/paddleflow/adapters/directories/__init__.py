"""Filesystems of type ``local``: directories of this host, which users write into while the platform works in them."""

from __future__ import annotations

from paddleflow.adapters.directories.files import DirectoryFiles

__all__ = ["DirectoryFiles"]
