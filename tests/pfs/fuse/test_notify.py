"""The kernel forgets what it is told to forget."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.pfs.fuse.mounting import ToyMount, toy_mount, wait_for

pytestmark = [pytest.mark.usefixtures("as_root"), pytest.mark.timeout(60)]

FOREVER = {"ttl": 3600.0, "negative_ttl": 3600.0}


def ask(mount: ToyMount, path: str, what: str) -> None:
    assert os.getxattr(path, f"user.invalidate.{what}") == b"asked"


def test_an_absent_name_that_appeared(tmp_path: Path) -> None:
    with toy_mount(tmp_path, front=FOREVER) as mount:
        assert not os.path.exists(mount.path("late"))
        Path(mount.root, "late").touch()
        assert not os.path.exists(mount.path("late")), "it was told that this may be believed"
        ask(mount, mount.mountpoint, "entry.late")
        wait_for(lambda: os.path.exists(mount.path("late")))


def test_attributes_and_content_that_changed(tmp_path: Path) -> None:
    with toy_mount(tmp_path, read_only=True, front={**FOREVER, "mode": "CACHED"}) as mount:
        Path(mount.root, "file").write_bytes(b"old")
        assert Path(mount.path("file")).read_bytes() == b"old"
        Path(mount.root, "file").write_bytes(b"newer")
        assert Path(mount.path("file")).read_bytes() == b"old", "its pages are kept"
        ask(mount, mount.path("file"), "node")
        wait_for(lambda: os.stat(mount.path("file")).st_size == 5)
        assert Path(mount.path("file")).read_bytes() == b"newer"


def test_a_name_that_went(tmp_path: Path) -> None:
    with toy_mount(tmp_path, front=FOREVER) as mount:
        Path(mount.root, "file").touch()
        assert os.path.exists(mount.path("file"))
        os.unlink(Path(mount.root, "file"))
        ask(mount, mount.mountpoint, "deleted.file")
        wait_for(lambda: not os.path.exists(mount.path("file")))


def test_every_name_at_once(tmp_path: Path) -> None:
    with toy_mount(tmp_path, front=FOREVER) as mount:
        names = [f"{number}" for number in range(20)]
        assert not any(os.path.exists(mount.path(name)) for name in names)
        for name in names:
            Path(mount.root, name).touch()
        ask(mount, mount.mountpoint, "everything")
        wait_for(lambda: os.path.exists(mount.path("0")))
        assert all(os.path.exists(mount.path(name)) for name in names)


def test_what_the_kernel_does_not_know_is_no_error(tmp_path: Path) -> None:
    with toy_mount(tmp_path, front=FOREVER) as mount:
        ask(mount, mount.mountpoint, "unknown")
        ask(mount, mount.mountpoint, "entry.unknown")
        Path(mount.root, "file").touch()
        assert not os.path.exists(mount.path("other"))
        Path(mount.root, "other").touch()
        ask(mount, mount.mountpoint, "entry.other")
        wait_for(lambda: os.path.exists(mount.path("other")))
        assert "notification" not in Path(mount.log).read_text()
