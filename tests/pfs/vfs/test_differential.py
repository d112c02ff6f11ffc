"""Random operations on the vfs and on a plain directory: the same answers, the same errors, the same tree in the end,
whatever dies, is forgotten, or is mounted again in between."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from paddleflow.adapters.objects.memory import MemoryStore
from paddleflow.pfs.options import MountOptions
from tests.pfs.operations import (
    ChMod,
    FStat,
    Op,
    Read,
    RealDirectory,
    Rename,
    Symlink,
    Unlink,
    apply,
    close_all,
    described,
    operations,
    tree_of,
)
from tests.pfs.vfs.driver import STORE, Bench, directory_store
from tests.pfs.vfs.flat import FlatStore

STORES: dict[str, Callable[[str], Any]] = {
    "directory": directory_store,
    "memory": lambda _: MemoryStore(),
    "flat": lambda _: FlatStore(page=2),
}


@dataclass(frozen=True)
class Event:
    """Something that happens to the mount, and must change nothing that a program sees."""

    what: str


EVENTS = [Event("crash"), Event("forget"), Event("wait"), Event("lose cache"), Event("remount")]


class Compared:
    """``os`` on a plain directory is right by definition."""

    def __init__(self, folder: str, store: str, options: MountOptions) -> None:
        os.umask(0o022)
        os.mkdir(f"{folder}/real")
        self.folder = folder
        self.bench = Bench(folder, STORES[store](folder), options)
        self.real = RealDirectory(f"{folder}/real")
        self.real.holds_modes = self.bench.driver.holds_modes
        self.real_places: dict[int, int] = {}
        self.places: dict[int, int] = {}
        self._left_behind: set[int] = set()
        self._orphans: set[int] = set()

    def do(self, step: Op | Event) -> None:
        if isinstance(step, Event):
            note(step.what)
            self._happen(step.what)
            return
        if isinstance(step, Symlink) and not self.bench.driver.holds_links:
            return
        note(described(step))
        expected = apply(self.real, step, self.real_places)
        got = apply(self.bench.driver, step, self.places)
        if not (isinstance(step, Read | FStat) and self.places.get(step.place) in self._left_behind):
            assert got == expected, described(step)
        self._note_left_behind(step)

    def _happen(self, what: str) -> None:
        if what == "crash":
            self.bench.crash()
        elif what == "forget":
            self.bench.driver.forget_all()
        elif what == "wait":
            self.bench.clock.now += 3.0
        elif what == "lose cache":
            self.bench.cache.evict(STORE, "")
        else:
            self._close_all()
            self.bench.remount()
            self._compare_trees()

    def _note_left_behind(self, op: Op) -> None:
        """The one difference there is: a file that was open for reading before somebody opened it for writing keeps
        the content it had (the page on semantics says so)."""
        nodes = self.bench.driver.vfs._nodes
        detached = {fd for fd, held in self.bench.driver.fds.items() if not nodes.get(held.node).is_linked}
        if isinstance(op, Unlink | Rename):
            self._orphans |= detached - self._left_behind
        else:
            self._left_behind |= detached - self._orphans

    def _close_all(self) -> None:
        close_all(self.real, self.real_places)
        close_all(self.bench.driver, self.places)

    def _compare_trees(self) -> None:
        assert tree_of(self.bench.driver) == tree_of(self.real)

    def finish(self) -> None:
        self._close_all()
        self._compare_trees()
        self.bench.remount()
        self._compare_trees()
        assert os.listdir(f"{self.folder}/state/staging") == []


WAYS = {
    "passed through": MountOptions(),
    "through us": MountOptions(small_file=0, meta_ttl=0.0),
    "no passthrough": MountOptions(passthrough=False, negative_ttl=0.0),
    "write back": MountOptions(write_back=True),
}


@st.composite
def one_step(draw: st.DrawFn) -> Op | Event:
    return draw(st.sampled_from(EVENTS)) if draw(st.integers(0, 9)) == 9 else draw(operations())


steps = st.lists(one_step(), min_size=30, max_size=70)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("store", STORES)
@pytest.mark.timeout(600)
def test_the_same_as_a_plain_directory(store: str, way: str) -> None:
    @settings(
        max_examples=int(os.environ.get("PADDLEFLOW_VFS_EXAMPLES", "20")),
        suppress_health_check=list(HealthCheck),
    )
    @given(steps)
    def check(script: list[Op | Event]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            compared = Compared(folder, store, WAYS[way])
            try:
                for step in script:
                    compared.do(step)
                compared.finish()
            finally:
                compared.bench.close()
                for fd in compared.real_places.values():
                    os.close(fd)

    check()


def test_the_comparison_can_fail() -> None:
    with tempfile.TemporaryDirectory() as folder:
        compared = Compared(folder, "memory", MountOptions())
        os.mkdir(f"{folder}/real/only here")
        with pytest.raises(AssertionError):
            compared.finish()
        compared.bench.close()


def test_every_operation_can_be_described() -> None:
    assert described(ChMod("a", 0o600)) == "ChMod(path='a', mode=384)"
