"""Every file operation, knowing nothing of FUSE.

``Vfs`` is the whole; below it ``tree`` believes and asks, ``directories`` lists, ``reading`` and ``writing`` move
content, ``names`` and ``attributes`` change what things are called and look like. ``mounted`` is what they share.
"""

from paddleflow.pfs.vfs.mounted import Aside, CachedContent, on_the_spot
from paddleflow.pfs.vfs.tree import Kernel
from paddleflow.pfs.vfs.vfs import SilentKernel, Vfs

__all__ = ["Aside", "CachedContent", "Kernel", "SilentKernel", "Vfs", "on_the_spot"]
