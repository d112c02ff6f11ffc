"""A name that is replaced between LOOKUP and OPEN, each time the kernel tries: the program's open succeeds."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from dataclasses import replace

import pytest

from paddleflow.pfs.attrs import ROOT_NODE
from paddleflow.pfs.vfs.mounted import AHEAD
from tests.pfs.vfs.conftest import MakeBench
from tests.pfs.vfs.driver import CALLER, Bench, VfsDriver

VERSIONS = [bytes([letter]) * 10_000 for letter in b"abcdefgh"]


class Intruder:
    """Another program of this machine: it replaces a name whenever it is called."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.driver = VfsDriver(bench.driver.vfs)
        self.driver.caller = replace(CALLER, pid=CALLER.pid + 1)
        self.turns = itertools.count(1)
        self.opened: list[int] = []

    def renames_over(self) -> None:
        self.driver.put("fresh", VERSIONS[next(self.turns)])
        self.driver.rename("fresh", "f")

    def deletes_and_makes(self) -> None:
        self.driver.unlink("f")
        self.driver.put("f", VERSIONS[next(self.turns)])

    def replaces_in_the_store_under_readers(self) -> None:
        self.opened.append(self.driver.open("f", os.O_RDONLY))
        elsewhere = self.bench.another()
        elsewhere.put("f", VERSIONS[next(self.turns)])
        elsewhere.vfs.close()
        self.bench.clock.now += 100

    def opens_it_for_reading(self) -> None:
        """A file that is passed through to readers from the cache cannot be opened for writing by the same node."""
        next(self.turns)
        self.opened.append(self.driver.open("f", os.O_RDONLY))

    def leave(self) -> None:
        for fd in self.opened:
            self.driver.close(fd)


ACTS: list[Callable[[Intruder], None]] = [
    Intruder.renames_over,
    Intruder.deletes_and_makes,
    Intruder.replaces_in_the_store_under_readers,
    Intruder.opens_it_for_reading,
]
FLAGS = [os.O_RDONLY, os.O_RDWR, os.O_WRONLY | os.O_APPEND, os.O_RDWR | os.O_CREAT, os.O_WRONLY | os.O_TRUNC]


@pytest.mark.parametrize("passthrough", [True, False], ids=["passthrough", "without"])
@pytest.mark.parametrize("flags", FLAGS)
@pytest.mark.parametrize("act", ACTS, ids=lambda act: act.__name__)
def test_a_name_replaced_at_each_try(
    make_bench: MakeBench, act: Callable[[Intruder], None], flags: int, passthrough: bool
) -> None:
    bench = make_bench("flat", passthrough=passthrough)
    driver, intruder = bench.driver, Intruder(bench)
    driver.put("f", VERSIONS[0])
    driver.between_lookup_and_open = lambda: act(intruder)
    fd = driver.open("f", flags)
    tries = next(intruder.turns) - 1
    driver.between_lookup_and_open = lambda: None
    if flags & os.O_ACCMODE != os.O_WRONLY:
        assert driver.pread(fd, 1 << 20, 0) in VERSIONS[: tries + 1]
    if flags & os.O_ACCMODE != os.O_RDONLY:
        assert driver.pwrite(fd, b"written", 0) == 7
    driver.close(fd)
    intruder.leave()
    assert driver.listdir("") == ["f"]
    assert bench.driver.vfs._mounted.files == {}, "everything is closed"


@pytest.mark.parametrize("passthrough", [True, False], ids=["passthrough", "without"])
@pytest.mark.parametrize("flags", FLAGS)
@pytest.mark.parametrize("moment", ["before_retry", "between_lookups", "between_lookup_and_open"])
def test_a_front_that_dies_during_a_retry(make_bench: MakeBench, moment: str, flags: int, passthrough: bool) -> None:
    bench = make_bench("flat", passthrough=passthrough)
    driver, intruder = bench.driver, Intruder(bench)
    driver.put("f", VERSIONS[0])
    happened: list[str] = []

    def die() -> None:
        bench.crash()
        intruder.driver.vfs = driver.vfs

    def between() -> None:
        happened.append("between")
        if moment == "between_lookup_and_open" and len(happened) == 2:
            die()
        intruder.renames_over()

    driver.between_lookup_and_open = between
    if moment != "between_lookup_and_open":
        setattr(driver, moment, die)
    fd = driver.open("f", flags)
    assert len(happened) == 2, "the open was tried again"
    if flags & os.O_ACCMODE != os.O_WRONLY:
        assert driver.pread(fd, 1 << 20, 0) == VERSIONS[1]
    if flags & os.O_ACCMODE != os.O_RDONLY:
        assert driver.pwrite(fd, b"written", 0) == 7
    driver.close(fd)
    driver.between_lookup_and_open = driver.between_lookups = driver.before_retry = lambda: None
    assert driver.get("f") == VERSIONS[2], "what was written went to the file that had the name at the open"
    assert driver.vfs._mounted.files == {}, "everything is closed"
    assert not os.path.exists(f"{bench.folder}/state/retries")


def test_a_name_that_is_absent_for_a_moment_while_a_front_dies(make_bench: MakeBench) -> None:
    """The retry's LOOKUP found nothing, and its answer never came: the successor is asked again."""
    bench = make_bench("flat")
    driver, intruder = bench.driver, Intruder(bench)
    driver.put("f", VERSIONS[0])
    driver.between_lookup_and_open = intruder.renames_over

    def look_in_vain_and_die() -> None:
        intruder.driver.unlink("f")
        assert driver._find(ROOT_NODE, "f") is None
        bench.crash()
        intruder.driver.vfs = driver.vfs
        intruder.renames_over()

    driver.before_retry = look_in_vain_and_die
    with driver.reading("f") as fd:
        driver.between_lookup_and_open = lambda: None
        assert driver.pread(fd, 1 << 20, 0) == VERSIONS[2]
    assert driver.vfs._mounted.files == {}


def test_a_handle_opened_ahead_that_no_retry_knows_of_is_closed_by_the_successor(make_bench: MakeBench) -> None:
    bench = make_bench("flat")
    bench.driver.put("f", VERSIONS[0])
    node = bench.driver.vfs._nodes.get(bench.driver.walk("f")[0])
    bench.driver.call(lambda: bench.driver.vfs._open(node, os.O_RDWR, AHEAD))
    bench.crash()
    assert bench.driver.vfs._mounted.files == {}
    assert bench.driver.get("f") == VERSIONS[0]


def test_what_is_opened_after_a_retry_is_opened_as_usual(make_bench: MakeBench) -> None:
    bench = make_bench("flat")
    intruder = Intruder(bench)
    bench.driver.put("f", VERSIONS[0])
    bench.driver.between_lookup_and_open = intruder.renames_over
    retried = bench.driver.open("f", os.O_RDONLY)
    bench.driver.between_lookup_and_open = lambda: None
    intruder.renames_over()
    with bench.driver.reading("f") as fd:
        assert bench.driver.pread(fd, 1 << 20, 0) == VERSIONS[3]
    assert bench.driver.pread(retried, 1 << 20, 0) == VERSIONS[1], "what it was when the kernel looked again"
    bench.driver.close(retried)


class Killed(Exception):
    """The program, between LOOKUP and OPEN."""


@pytest.fixture
def given_up(make_bench: MakeBench) -> tuple[Bench, Intruder]:
    """A retry of which only LOOKUP came, with the file open for writing."""
    bench = make_bench("flat")
    intruder = Intruder(bench)
    bench.driver.put("f", VERSIONS[0])
    moments = iter([False, True])

    def intrude() -> None:
        if next(moments):
            raise Killed
        intruder.renames_over()

    bench.driver.between_lookup_and_open = intrude
    with pytest.raises(Killed):
        bench.driver.open("f", os.O_RDWR)
    bench.driver.between_lookup_and_open = lambda: None
    assert bench.driver.vfs._mounted.files != {}, "it is open ahead"
    return bench, intruder


def test_a_retry_that_was_given_up_is_closed_by_what_the_thread_does_next(given_up: tuple[Bench, Intruder]) -> None:
    bench, intruder = given_up
    intruder.renames_over()
    bench.driver.put("another", b"x")
    assert bench.driver.vfs._mounted.files == {}
    assert bench.driver.get("f") == VERSIONS[2]


def test_a_later_open_of_the_thread_gets_what_is_there_then(given_up: tuple[Bench, Intruder]) -> None:
    bench, intruder = given_up
    intruder.renames_over()
    assert bench.driver.get("f") == VERSIONS[2], "other flags"
    assert bench.driver.vfs._mounted.files == {}


def test_a_retry_of_a_dead_thread_is_closed_after_a_while(given_up: tuple[Bench, Intruder]) -> None:
    bench, _ = given_up
    bench.clock.now += 3600
    bench.driver.call(bench.driver.vfs.catch_up)
    assert bench.driver.vfs._mounted.files == {}
    assert bench.store.read("f", 0, 1 << 20) == VERSIONS[1]


def test_a_retry_survives_the_front(given_up: tuple[Bench, Intruder]) -> None:
    bench, _ = given_up
    bench.crash()
    assert bench.driver.get("f") == VERSIONS[1]
    assert bench.driver.vfs._mounted.files == {}


def test_permission_may_be_refused_after_lookup_so_nothing_is_truncated_before_open(make_bench: MakeBench) -> None:
    bench = make_bench("flat")
    intruder = Intruder(bench)
    bench.driver.put("f", VERSIONS[0])
    moments = iter([False, True])

    def intrude() -> None:
        if next(moments):
            raise PermissionError
        intruder.renames_over()

    bench.driver.between_lookup_and_open = intrude
    with pytest.raises(PermissionError):
        bench.driver.open("f", os.O_WRONLY | os.O_TRUNC)
    bench.driver.between_lookup_and_open = lambda: None
    assert bench.driver.get("f") == VERSIONS[1]
