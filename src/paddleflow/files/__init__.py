"""Files of a filesystem from Python, without a mount: ``client.fs`` and fsspec's ``paddleflow://``.

Reads come from the same cache directory that mounts use. Nothing here speaks FUSE, and nothing here knows a storage:
``wiring.storage`` opens them.
"""

from __future__ import annotations

from paddleflow.files.access import Files

__all__ = ["Files"]
