"""Whether this machine lets us mount."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def as_root() -> None:
    if os.geteuid() != 0 or not Path("/dev/fuse").exists():
        pytest.skip("mounting without help needs root and /dev/fuse")


@pytest.fixture
def open_path() -> Iterator[Path]:
    """A temporary directory that other users can get to."""
    with tempfile.TemporaryDirectory(prefix="pfs-test-", ignore_cleanup_errors=True) as name:
        os.chmod(name, 0o755)
        yield Path(name)
