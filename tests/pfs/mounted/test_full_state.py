"""The disk of a mount's state fills up: the mount goes on, its fronts take over from each other, nothing is lost."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from tests.pfs.mounted.places import local_store
from tests.pfs.mounts import mounted
from tests.small_disk import fill, small_disk

pytestmark = pytest.mark.timeout(300)


@pytest.mark.parametrize("passthrough", [True, False])
def test_takeovers_without_room(tmp_path: Path, passthrough: bool) -> None:
    store = tmp_path / "store"
    store.mkdir()
    for name in ("read", "written", "replaced"):
        (store / name).write_bytes(b"content")
    with (
        small_disk(tmp_path / "state", "2m") as state,
        mounted(tmp_path, local_store(tmp_path), passthrough=passthrough) as mount,
        open(mount.path / "read", "rb", buffering=0) as reading,
        open(mount.path / "written", "r+b", buffering=0) as writing,
    ):
        (mount.path / "replaced").stat()
        hog = fill(state)
        for _ in range(3):
            mount.kill_front()
            assert os.pread(reading.fileno(), 100, 0) == b"content"
            assert (mount.path / "replaced").stat().st_size == 7
        with pytest.raises(OSError, match="No space") as refused:
            for number in range(10_000):
                (mount.path / f"new{number}").mkdir()
        assert refused.value.errno == errno.ENOSPC
        hog.unlink()
        writing.write(b"C")
        writing.close()
        (mount.path / "replaced").write_bytes(b"new")
        mount.kill_front()
        assert (store / "written").read_bytes() == b"Content"
        assert (store / "replaced").read_bytes() == b"new"
        assert os.pread(reading.fileno(), 100, 0) == b"content"
