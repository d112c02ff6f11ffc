"""What is checked before a mount, and what is said when there can be none."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from paddleflow.domain.errors import Denied, InUse, Invalid, PaddleFlowError, Unavailable
from paddleflow.pfs.fuse import device
from paddleflow.pfs.fuse.device import Place
from tests.pfs.fuse.mounting import toy_mount


@pytest.mark.parametrize(
    ("prepare", "error", "says"),
    [
        (lambda _: None, Invalid, "does not exist"),
        (lambda path: path.write_text(""), Invalid, "not a directory"),
        (lambda path: (path.mkdir(), (path / "x").touch()), Invalid, "not empty"),
    ],
)
def test_a_place_that_will_not_do(tmp_path: Path, prepare, error: type[PaddleFlowError], says: str) -> None:  # type: ignore[no-untyped-def]
    prepare(tmp_path / "mnt")
    with pytest.raises(error, match=says) as refused:
        device.clear_place(str(tmp_path / "mnt"))
    assert "mountpoint" in str(refused.value)


def test_the_root_is_refused() -> None:
    with pytest.raises(Invalid, match="root directory"):
        device.clear_place("/../")


def test_a_file_handed_to_the_kernel_as_device(tmp_path: Path) -> None:
    place = Place(mountpoint=str(tmp_path), source="x")
    missing = OSError(errno.ENOENT, "none", device.DEVICE)
    assert isinstance(device._explain(place, missing, "mount(2)"), Unavailable)
    forbidden = device._explain(place, OSError(errno.EPERM, "no", str(tmp_path)), "mount(2), as root")
    assert isinstance(forbidden, Denied)
    assert "mount(2), as root" in forbidden.message


@pytest.mark.parametrize(
    ("said", "error", "says"),
    [
        (
            "fusermount3: option allow_other only allowed if 'user_allow_other' is set in /etc/fuse.conf",
            Denied,
            "user_allow_other",
        ),
        ("fusermount3: failed to open /dev/fuse: Permission denied", Denied, "0666"),
        ("fusermount3: fuse device not found, try 'modprobe fuse' first; /dev/fuse", Unavailable, "modprobe"),
        ("fusermount3: mount failed: Operation not permitted", Denied, "Operation not permitted"),
        ("", Denied, "no reason"),
    ],
)
def test_what_the_helper_said_becomes_a_sentence(said: str, error: type[PaddleFlowError], says: str) -> None:
    explained = device._explain_helper(Place(mountpoint="/mnt", source="x"), said)
    assert isinstance(explained, error)
    assert says in explained.message


@pytest.mark.usefixtures("as_root")
def test_a_working_mount_is_refused(tmp_path: Path) -> None:
    with toy_mount(tmp_path) as mount:
        assert device.is_mounted(mount.mountpoint)
        with pytest.raises(InUse, match="mount point already"):
            device.clear_place(mount.mountpoint)
        number = device.device_of(mount.mountpoint)
        assert number == os.stat(mount.mountpoint).st_dev
        assert Path(f"/sys/class/bdi/{os.major(number)}:{os.minor(number)}/read_ahead_kb").read_text().strip() == "1024"


@pytest.mark.usefixtures("as_root")
def test_what_a_dead_daemon_left_is_taken_away(tmp_path: Path) -> None:
    where = tmp_path / "mnt"
    where.mkdir()
    program = """
import os, sys
from paddleflow.pfs.fuse import device, negotiation
mounted = device.mount(device.Place(mountpoint=sys.argv[1], source="toy"))
negotiation.negotiate(mounted.fuse_fd, negotiation.Wanted(), [])
"""
    subprocess.run([sys.executable, "-c", program, str(where)], check=True)
    try:
        with pytest.raises(OSError) as broken:
            os.listdir(where)
        assert broken.value.errno == errno.ENOTCONN
        with toy_mount(tmp_path) as mount:
            assert os.listdir(mount.mountpoint) == []
    finally:
        subprocess.run(["umount", "-l", str(where)], check=False, capture_output=True)


@pytest.mark.usefixtures("as_root")
def test_a_mount_point_with_blanks_in_its_name(tmp_path: Path) -> None:
    where = tmp_path / "a b\tc"
    where.mkdir()
    with toy_mount(where) as mount:
        assert device.is_mounted(mount.mountpoint)
        assert device.device_of(mount.mountpoint) == os.stat(mount.mountpoint).st_dev


@pytest.mark.usefixtures("as_root")
def test_a_cache_on_a_stacked_filesystem_is_passed_through(tmp_path: Path) -> None:
    """As in a container, whose root is an overlay."""
    for name in ("lower", "upper", "work", "root"):
        (tmp_path / name).mkdir()
    layers = ",".join(f"{name}dir={tmp_path}/{name}" for name in ("lower", "upper", "work"))
    made = subprocess.run(
        ["mount", "-t", "overlay", "overlay", "-o", layers, str(tmp_path / "root")], check=False, capture_output=True
    )
    if made.returncode:
        pytest.skip("this kernel mounts no overlay here")
    try:
        with toy_mount(tmp_path) as mount:
            assert mount.outcome["passthrough"], mount.outcome
            Path(mount.root, "file").write_bytes(b"content")
            assert Path(mount.path("file")).read_bytes() == b"content"
            assert "READ" not in mount.counts()
    finally:
        subprocess.run(["umount", "-l", str(tmp_path / "root")], check=True)
