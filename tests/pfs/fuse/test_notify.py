"""The kernel forgets what it is told to forget."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import pytest

from tests.pfs.fuse.mounting import ToyMount, toy_mount
from tests.waiting import wait_for

pytestmark = pytest.mark.usefixtures("as_root")

FOREVER = {"ttl": 3600.0, "negative_ttl": 3600.0}


def ask(mount: ToyMount, path: str, what: str) -> None:
    assert os.getxattr(path, f"user.invalidate.{what}") == b"asked"


def absent(mount: ToyMount) -> list[str]:
    """Names that appeared, and the kernel believes that they are not there, as it was told it may. It may also forget
    any name at any moment: if it has forgotten all of these, there are others."""
    numbers = itertools.count()

    def believed() -> list[str]:
        names = [f"name{next(numbers)}" for _ in range(20)]
        if any(os.path.exists(mount.path(name)) for name in names):
            pytest.fail("they are not there yet")
        for name in names:
            Path(mount.root, name).touch()
        return [name for name in names if not os.path.exists(mount.path(name))]

    return wait_for(believed)


def test_an_absent_name_that_appeared(tmp_path: Path) -> None:
    with toy_mount(tmp_path, front=FOREVER) as mount:
        for name in absent(mount):
            ask(mount, mount.mountpoint, f"entry.{name}")
            wait_for(Path(mount.path(name)).exists)


def test_attributes_and_content_that_changed(tmp_path: Path) -> None:
    numbers = itertools.count()
    with toy_mount(tmp_path, read_only=True, front={**FOREVER, "mode": "CACHED"}) as mount:

        def kept() -> str | None:
            """A file whose pages are kept, as most are: the kernel may need the memory."""
            name = f"file{next(numbers)}"
            Path(mount.root, name).write_bytes(b"old")
            if Path(mount.path(name)).read_bytes() != b"old":
                pytest.fail("it has other bytes")
            Path(mount.root, name).write_bytes(b"newer")
            return name if Path(mount.path(name)).read_bytes() == b"old" else None

        path = mount.path(wait_for(kept))
        ask(mount, path, "node")
        wait_for(lambda: Path(path).read_bytes() == b"newer")
        assert os.stat(path).st_size == 5


def test_a_name_that_went(tmp_path: Path) -> None:
    with toy_mount(tmp_path, front=FOREVER) as mount:
        Path(mount.root, "file").touch()
        assert os.path.exists(mount.path("file"))
        os.unlink(Path(mount.root, "file"))
        ask(mount, mount.mountpoint, "deleted.file")
        wait_for(lambda: not os.path.exists(mount.path("file")))


def test_every_name_at_once(tmp_path: Path) -> None:
    with toy_mount(tmp_path, front=FOREVER) as mount:
        names = absent(mount)
        ask(mount, mount.mountpoint, "everything")
        wait_for(lambda: os.path.exists(mount.path(names[0])))
        assert all(os.path.exists(mount.path(name)) for name in names)


def test_what_the_kernel_does_not_know_is_no_error(tmp_path: Path) -> None:
    with toy_mount(tmp_path, front=FOREVER) as mount:
        ask(mount, mount.mountpoint, "unknown")
        ask(mount, mount.mountpoint, "entry.unknown")
        name, *_ = absent(mount)
        ask(mount, mount.mountpoint, f"entry.{name}")
        wait_for(Path(mount.path(name)).exists)
        assert "notification" not in Path(mount.log).read_text()
