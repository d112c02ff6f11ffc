"""The disk of a mount's state is full: what is refused is refused whole, and what was open or is known goes on."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.objects.contract import listed
from tests.pfs.vfs.conftest import MakeBench
from tests.pfs.vfs.driver import Bench
from tests.small_disk import fill, small_disk


@pytest.fixture
def full(make_bench: MakeBench, tmp_path: Path) -> Iterator[tuple[Bench, Path]]:
    """A bench that has served ``known``, on a disk that is full since; and what fills it."""
    with small_disk(tmp_path / "0" / "state") as state:
        bench = make_bench("memory")
        bench.driver.put("known", b"content")
        bench.driver.put("other", b"content")
        bench.crash()  # its logs are short now
        for name in ("known", "other"):
            bench.driver.stat(name)
        hog = fill(state)
        exhaust(bench)
        yield bench, hog


def exhaust(bench: Bench) -> None:
    """The pages that the logs have already are full as well: of records that mean nothing."""
    nodes, journal = bench.driver.vfs._nodes._log, bench.driver.vfs._journal._log
    for log, record in ((nodes, "x 0"), (journal, "b 0 ")):
        with pytest.raises(OSError, match="No space"):
            while True:
                log.append(record)


def refused(bench: Bench, act: str, *arguments: object) -> int | None:
    with pytest.raises(OSError) as error:
        getattr(bench.driver, act)(*arguments)
    return error.value.errno


@pytest.mark.parametrize("flags", [os.O_WRONLY, os.O_RDWR | os.O_TRUNC])
def test_an_open_that_is_refused_changes_nothing(full: tuple[Bench, Path], flags: int) -> None:
    bench, hog = full
    assert refused(bench, "open", "known", flags) == errno.ENOSPC
    assert bench.driver.call(bench.driver.vfs.catch_up) == 0
    assert bench.store.read("known", 0, 100) == b"content"
    assert os.listdir(f"{bench.folder}/state/staging") == []
    hog.unlink()
    bench.driver.put("known", b"new")
    assert bench.store.read("known", 0, 100) == b"new"


@pytest.mark.parametrize(
    "change",
    [("put", "new", b"x"), ("mkdir", "new"), ("unlink", "known"), ("rename", "known", "new")],
    ids=lambda change: change[0],
)
def test_a_change_that_is_refused_has_not_happened(full: tuple[Bench, Path], change: tuple[Any, ...]) -> None:
    bench, hog = full
    assert refused(bench, *change) == errno.ENOSPC
    assert bench.driver.call(bench.driver.vfs.catch_up) == 0
    assert sorted(listed(bench.store)) == ["known", "other"]
    hog.unlink()
    getattr(bench.driver, change[0])(*change[1:])
    bench.crash()
    names = {"put": "known new other", "mkdir": "known new other", "unlink": "other", "rename": "new other"}
    assert bench.driver.listdir("") == names[change[0]].split()


def test_what_is_open_survives_the_process(full: tuple[Bench, Path]) -> None:
    bench, hog = full
    hog.unlink()
    reading = bench.driver.open("known", os.O_RDONLY)
    writing = bench.driver.open("other", os.O_RDWR)
    gone = bench.driver.open("gone", os.O_RDWR | os.O_CREAT)
    bench.driver.unlink("gone")
    fill(hog.parent)
    exhaust(bench)
    for _ in range(3):
        bench.crash()
        assert bench.driver.pread(reading, 100, 0) == b"content"
        assert bench.driver.stat("known").size == 7
    handles = {fd.handle for fd in bench.driver.fds.values()}
    bench.driver.close(reading)  # the record of it waits for room
    hog.unlink()
    bench.driver.pwrite(writing, b"C", 0)
    bench.driver.pwrite(gone, b"x", 0)
    again = bench.driver.open("known", os.O_RDONLY)
    assert bench.driver.fds[again].handle not in handles, "handles of all processes are different"
    bench.driver.close(gone)
    bench.driver.close(writing)
    bench.crash()
    assert bench.store.read("other", 0, 100) == b"Content"
    assert bench.driver.listdir("") == ["known", "other"]
    assert os.listdir(f"{bench.folder}/state/staging") == []
