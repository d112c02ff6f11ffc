"""Random operations through a real mount and on a plain directory: the same answers, the same errors, the same tree,
while the front is killed again and again."""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st

from paddleflow.adapters.objects.keys import HIDDEN
from paddleflow.wiring.stores import StorePlan
from tests.pfs.mounted.places import local_store
from tests.pfs.mounts import RealMount, mounted
from tests.pfs.operations import (
    ChMod,
    FStat,
    Op,
    Open,
    Read,
    RealDirectory,
    Symlink,
    Truncate,
    UTime,
    apply,
    close_all,
    described,
    operations,
    tree_of,
)

pytestmark = pytest.mark.timeout(600)

EXAMPLES = int(os.environ.get("PADDLEFLOW_MOUNT_EXAMPLES", "0"))
WAYS: dict[str, dict[str, Any]] = {
    "passed through": {},
    "through us": {"passthrough": False, "meta_ttl": 0.0},
    "write back": {"write_back": True},
}


class Compared:
    """One example: a folder of the mount and a plain one. ``os`` on the plain one is right by definition."""

    def __init__(self, mount: RealMount, plain: Path, number: int, *, holds_links: bool) -> None:
        self._mount = mount
        for parent in (plain, mount.path):
            (parent / str(number)).mkdir()
        self.real, self.seen = RealDirectory(str(plain / str(number))), RealDirectory(f"{mount.path}/{number}")
        self._holds_links = holds_links
        self.real_places: dict[int, int] = {}
        self.places: dict[int, int] = {}
        self._readers: set[int] = set()
        self._left_behind: set[int] = set()

    def do(self, step: Op | None) -> None:
        if step is None:
            note("kill the front")
            self._mount.kill_front()
            return
        if isinstance(step, Symlink) and not self._holds_links:
            return
        note(described(step))
        self._note_left_behind(step)
        expected = apply(self.real, step, self.real_places)
        got = apply(self.seen, step, self.places)
        if isinstance(step, Open):
            self._note_opened(step, expected[0] == "ok")
        if not (isinstance(step, Read | FStat) and step.place in self._left_behind):
            assert got == expected, described(step)

    def _note_opened(self, step: Open, worked: bool) -> None:
        for places in (self._readers, self._left_behind):
            places.discard(step.place)
        if worked and step.flags & os.O_ACCMODE == os.O_RDONLY:
            self._readers.add(step.place)

    def _note_left_behind(self, step: Op) -> None:
        """The one difference there is: who had a file open for reading before somebody changed it, keeps what it
        opened (the page on semantics says so)."""
        if isinstance(step, Open) and step.flags & os.O_ACCMODE == os.O_RDONLY:
            return
        if not isinstance(step, Open | Truncate | ChMod | UTime):
            return
        try:
            changed = os.stat(self.real._at(step.path)).st_ino
        except OSError:
            return
        for place in self._readers & self.real_places.keys():
            if os.fstat(self.real_places[place]).st_ino == changed:
                self._left_behind.add(place)

    def finish(self) -> None:
        close_all(self.real, self.real_places)
        close_all(self.seen, self.places)
        assert tree_of(self.seen) == tree_of(self.real)

    def give_up(self) -> None:
        for fd in [*self.real_places.values(), *self.places.values()]:
            os.close(fd)


@st.composite
def one_step(draw: st.DrawFn) -> Op | None:
    return None if draw(st.integers(0, 59)) == 59 else draw(operations())


def compare(mount: RealMount, plain: Path, examples: int, *, holds_links: bool) -> None:
    plain.mkdir()
    numbers = itertools.count()

    @settings(
        max_examples=EXAMPLES or examples,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink] if EXAMPLES else [Phase.generate],
    )
    @given(st.lists(one_step(), min_size=30, max_size=70))
    def check(script: list[Op | None]) -> None:
        compared = Compared(mount, plain, next(numbers), holds_links=holds_links)
        try:
            for step in script:
                compared.do(step)
            compared.finish()
        finally:
            compared.give_up()

    check()


@pytest.mark.parametrize("way", WAYS)
def test_on_a_local_store(tmp_path: Path, way: str) -> None:
    with mounted(tmp_path, local_store(tmp_path), **WAYS[way]) as mount:
        compare(mount, tmp_path / "plain", 4, holds_links=True)
    stored = tree_of(RealDirectory(str(tmp_path / "store")))
    # A process that died while it wrote leaves a name that no mount shows.
    shown = {path: what for path, what in stored.items() if HIDDEN not in path}
    assert shown == tree_of(RealDirectory(str(tmp_path / "plain")))
    assert os.listdir(tmp_path / "state" / "staging") == []


@pytest.mark.parametrize("way", WAYS)
def test_on_object_storage(tmp_path: Path, bucket: StorePlan, way: str) -> None:
    with mounted(tmp_path, bucket, **WAYS[way]) as mount:
        compare(mount, tmp_path / "plain", 2, holds_links=False)
    with mounted(tmp_path, bucket) as mount:
        kept, plain = RealDirectory(str(mount.path)), RealDirectory(str(tmp_path / "plain"))
        kept.holds_modes = plain.holds_modes = False
        assert tree_of(kept) == tree_of(plain)
    assert os.listdir(tmp_path / "state" / "staging") == []


def test_the_comparison_can_fail(tmp_path: Path) -> None:
    with mounted(tmp_path, local_store(tmp_path)) as mount:
        (tmp_path / "plain").mkdir()
        compared = Compared(mount, tmp_path / "plain", 0, holds_links=True)
        (tmp_path / "plain" / "0" / "only here").mkdir()
        with pytest.raises(AssertionError):
            compared.finish()
