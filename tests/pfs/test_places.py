"""Where a mount may be, and where what it keeps may lie: nowhere that needs the mount itself, and nowhere that another
user can change."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from paddleflow.domain.errors import Denied, Invalid
from paddleflow.pfs.mounting import check_places, end_mount, is_held, own_directory, place_of, start_mount, state_dir_of
from paddleflow.wiring.mount import MountRequest, plan_of
from paddleflow.wiring.mount_access import Granted
from paddleflow.wiring.stores import StorePlan
from tests.pfs.mounts import break_mount, mounted, why_no_mounts
from tests.waiting import wait_for

needs_mounts = pytest.mark.skipif(bool(why_no_mounts()), reason=why_no_mounts())
NOBODY = 65534


def test_a_place_has_one_name(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "above").symlink_to(tmp_path)
    (tmp_path / "link2").symlink_to("above/link")
    (tmp_path / "round").symlink_to("round")
    for name in ("real", "link", "link2", "above/real", "above/link", "real/../link"):
        assert place_of(str(tmp_path / name)) == str(tmp_path / "real")
        assert state_dir_of("/b", str(tmp_path / name)) == state_dir_of("/b", str(tmp_path / "real"))
    place_of(str(tmp_path / "round"))
    assert place_of(str(tmp_path / "missing")) == str(tmp_path / "missing")


def test_what_a_mount_keeps_does_not_lie_in_it(tmp_path: Path) -> None:
    point = tmp_path / "mnt"
    point.mkdir()
    (tmp_path / "way-in").symlink_to("mnt")
    for inside in (point, point / "cache", point / "deep" / "cache", tmp_path / "way-in" / "cache"):
        with pytest.raises(Invalid, match="itself"):
            check_places(str(point), [str(inside)])
    check_places(str(point), [str(tmp_path / "mnt-cache")])


def test_a_directory_of_ours_is_made_for_us_alone(tmp_path: Path) -> None:
    own_directory(str(tmp_path / "deep" / "cache"))
    assert (tmp_path / "deep" / "cache").stat().st_mode & 0o777 == 0o700
    (tmp_path / "elsewhere").symlink_to("deep")
    own_directory(str(tmp_path / "elsewhere"))
    (tmp_path / "file").touch()
    with pytest.raises(Denied, match="cannot be made"):
        own_directory(str(tmp_path / "file" / "cache"))


@pytest.mark.parametrize("mode", [0o777, 0o757])
def test_a_directory_that_others_can_change_is_refused(tmp_path: Path, mode: int) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(mode)
    with pytest.raises(Denied, match="another user"):
        own_directory(str(tmp_path / "open"))
    (tmp_path / "open").chmod(mode | 0o1000)
    own_directory(str(tmp_path / "open"))  # what is in it can be replaced by nobody but us


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make something that belongs to another user")
def test_a_directory_or_link_of_another_user_is_refused(tmp_path: Path) -> None:
    """Whoever was in /dev/shm first would read what we cache, and choose what we read."""
    foreign, link = tmp_path / "foreign", tmp_path / "link"
    foreign.mkdir(mode=0o700)
    os.chown(foreign, NOBODY, NOBODY)
    (tmp_path / "mine").mkdir(mode=0o700)
    link.symlink_to("mine")
    os.chown(link, NOBODY, NOBODY, follow_symlinks=False)
    for place in (foreign, link):
        with pytest.raises(Denied, match="another user"):
            own_directory(str(place))


@needs_mounts
def test_mounts_and_their_caches_do_not_lie_in_other_mounts(tmp_path: Path) -> None:
    (tmp_path / "files" / "inner").mkdir(parents=True)
    with mounted(tmp_path / "outer", StorePlan(type="local", root=str(tmp_path / "files"))) as outer:
        (tmp_path / "way-in").symlink_to(outer.path)
        for inside in (outer.path / "inner", tmp_path / "way-in" / "inner"):
            with pytest.raises(Invalid, match="inside another mount"):
                check_places(str(inside), [])
            with pytest.raises(Invalid, match="local directory"):
                check_places(str(tmp_path / "elsewhere"), [str(inside / "cache")])


@needs_mounts
def test_a_mount_at_a_symbolic_link_ends_by_either_name(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "a").write_text("content")
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    base = str(tmp_path / "state")
    granted = Granted(
        fs_id="tested",
        read_only=False,
        stores=(StorePlan(type="local", root=str(tmp_path / "files")),),
        cache={},
        access={},
    )
    request = MountRequest(cache_dir=str(tmp_path / "cache"))
    for start, end in (("link", "real"), ("real", "link")):
        try:
            start_mount(plan_of(granted, str(tmp_path / start), request, base))
            assert (tmp_path / "link" / "a").read_text() == "content"
            assert is_held(base, str(tmp_path / end))
            end_mount(base, str(tmp_path / end))
        except BaseException:
            break_mount(tmp_path / "real")
            raise
        assert not os.path.ismount(tmp_path / "real")
        wait_for(lambda: not is_held(base, str(tmp_path / "real")))


def test_a_mount_with_its_cache_inside_is_refused_before_anything_is_started(tmp_path: Path) -> None:
    (tmp_path / "mnt").mkdir()
    granted = Granted(
        fs_id="tested", read_only=False, stores=(StorePlan(type="local", root="/x"),), cache={}, access={}
    )
    plan = plan_of(granted, str(tmp_path / "mnt"), MountRequest(cache_dir=str(tmp_path / "mnt" / "c")), str(tmp_path))
    with pytest.raises(Invalid, match="cacheDir"):
        start_mount(plan)
    assert not (tmp_path / "mnt" / "c").exists()
