"""The file that is being written to a store: read by position, so that parts of it can be read side by side."""

from __future__ import annotations

import os

from paddleflow.domain.errors import Unavailable


def read_exactly(source: int, start: int, size: int) -> bytes:
    """These bytes of the file. One that became shorter meanwhile is an error: half a file must not pass for one."""
    first = os.pread(source, size, start)
    if len(first) == size:
        return first
    content = bytearray(first)
    while len(content) < size:
        part = os.pread(source, size - len(content), start + len(content))
        if not part:
            raise Unavailable(f"the file to store ended at byte {start + len(content)}, before {start + size}")
        content += part
    return bytes(content)
