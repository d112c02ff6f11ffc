"""What must not be done twice: the record itself, and requests that come again after a death at every point."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from paddleflow.pfs.attrs import ROOT_NODE
from paddleflow.pfs.journal import Answer, Journal
from tests.pfs.vfs.conftest import MakeBench
from tests.pfs.vfs.driver import CALLER, Bench


def test_what_was_begun_and_done_is_known_afterwards(tmp_path: Path) -> None:
    path = str(tmp_path / "journal")
    first = Journal(path, is_successor=False)
    first.begin(2, "mkdir 1 with\nodd \udcff name")
    first.begin(4, "unlink 1 x")
    first.done(4, Answer(errno.ENOENT, 0, 0))
    first.begin(6, "create 1 y")
    first.done(6, Answer(0, 12, 99))
    second = Journal(path, is_successor=True)
    assert second.was_begun(2)
    assert second.answer_of(2) is None
    assert second.answer_of(4) == Answer(errno.ENOENT)
    assert second.answer_of(6) == Answer(0, 12, 99)
    assert not second.was_begun(8)
    assert not Journal(path, is_successor=False).was_begun(2), "a fresh mount has other requests"


def test_it_stays_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paddleflow.pfs.journal._REWRITE_AFTER", 200)
    monkeypatch.setattr("paddleflow.pfs.journal._KEPT", 10)
    path = str(tmp_path / "journal")
    journal = Journal(path, is_successor=False)
    journal.begin(1, "an old one, still running")
    for unique in range(2, 4000, 2):
        journal.begin(unique, "mkdir")
        journal.done(unique, Answer())
    assert os.path.getsize(path) < 10_000
    again = Journal(path, is_successor=True)
    assert again.was_begun(1)
    assert again.answer_of(3998) == Answer()


class Died(BaseException):
    """The process ended here."""


class DyingBackstage:
    """Does what it is asked, and dies before or after a given call."""

    def __init__(self, inner: Any, method: str, *, after: bool) -> None:
        self._inner = inner
        self._method = method
        self._after = after

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._inner, name)
        if name != self._method:
            return real

        async def dying(*arguments: Any, **named: Any) -> Any:
            if self._after:
                await real(*arguments, **named)
            raise Died

        return dying


def die_during(bench: Bench, method: str, after: bool, work: Any) -> None:
    """A request is running when the process dies; its successor begins."""
    whole = bench.backstage
    bench.backstage = DyingBackstage(whole, method, after=after)
    bench.driver.vfs.close()
    bench.begin(is_successor=True)
    bench.driver.vfs.request = (1000, False)
    with pytest.raises(Died):
        work().send(None)
    bench.driver.vfs.close()
    bench.backstage = whole
    bench.begin(is_successor=True)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("kind", ["memory", "flat"])
class TestComesAgain:
    def test_mkdir(self, make_bench: MakeBench, kind: str, after: bool) -> None:
        bench = make_bench(kind)

        def work() -> Any:
            return bench.driver.vfs.mkdir(ROOT_NODE, "d", stat.S_IFDIR | 0o755, CALLER)

        die_during(bench, "make_directory", after, work)
        entry = bench.driver.call(work, resent=1000)
        assert stat.S_ISDIR(entry.attr.mode)
        assert bench.driver.listdir("") == ["d"]
        again = bench.driver.call(work, resent=1000)
        assert again.node == entry.node, "the answer of then"

    def test_unlink(self, make_bench: MakeBench, kind: str, after: bool) -> None:
        bench = make_bench(kind)
        bench.driver.put("f", b"x")

        def work() -> Any:
            return bench.driver.vfs.unlink(ROOT_NODE, "f", CALLER)

        die_during(bench, "delete", after, work)
        bench.driver.call(work, resent=1000)
        assert bench.driver.listdir("") == []
        bench.driver.call(work, resent=1000)
        with pytest.raises(OSError) as refused:
            bench.driver.call(work)
        assert refused.value.errno == errno.ENOENT

    def test_rmdir(self, make_bench: MakeBench, kind: str, after: bool) -> None:
        bench = make_bench(kind)
        bench.driver.mkdir("d")

        def work() -> Any:
            return bench.driver.vfs.rmdir(ROOT_NODE, "d", CALLER)

        die_during(bench, "remove_directory", after, work)
        bench.driver.call(work, resent=1000)
        assert bench.driver.listdir("") == []

    def test_rename(self, make_bench: MakeBench, kind: str, after: bool) -> None:
        bench = make_bench(kind)
        bench.driver.put("old", b"content")
        fd = bench.driver.open("old", os.O_RDONLY)

        def work() -> Any:
            return bench.driver.vfs.rename(ROOT_NODE, "old", ROOT_NODE, "new", 0, CALLER)

        die_during(bench, "rename", after, work)
        bench.driver.call(work, resent=1000)
        assert bench.driver.listdir("") == ["new"]
        assert bench.driver.get("new") == b"content"
        assert bench.driver.pread(fd, 100, 0) == b"content"

    def test_rename_of_a_directory(self, make_bench: MakeBench, kind: str, after: bool) -> None:
        bench = make_bench(kind)
        bench.driver.mkdir("d")
        bench.driver.put("d/f", b"content")

        def work() -> Any:
            return bench.driver.vfs.rename(ROOT_NODE, "d", ROOT_NODE, "e", 0, CALLER)

        die_during(bench, "rename", after, work)
        bench.driver.call(work, resent=1000)
        assert bench.driver.listdir("") == ["e"]
        assert bench.driver.get("e/f") == b"content"


def test_an_error_is_repeated_too(make_bench: MakeBench) -> None:
    bench = make_bench("memory")
    bench.driver.put("f", b"x")

    def work() -> Any:
        return bench.driver.vfs.mkdir(ROOT_NODE, "f", 0o755, CALLER)

    bench.driver.vfs.request = (500, False)
    with pytest.raises(OSError) as refused:
        work().send(None)
    assert refused.value.errno == errno.EEXIST
    bench.driver.unlink("f")
    bench.crash()
    with pytest.raises(OSError) as refused:
        bench.driver.call(work, resent=500)
    assert refused.value.errno == errno.EEXIST
    bench.driver.call(work)


def test_create_that_was_done_gives_the_same_handle(make_bench: MakeBench) -> None:
    bench = make_bench("memory")
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL

    def work() -> Any:
        return bench.driver.vfs.create(ROOT_NODE, "f", stat.S_IFREG | 0o600, flags, CALLER)

    bench.driver.vfs.request = (700, False)
    with pytest.raises(StopIteration) as ended:
        work().send(None)
    entry, opened = ended.value.value
    bench.crash()
    again, reopened = bench.driver.call(work, resent=700)
    assert (again.node, reopened.handle, reopened.backing) == (entry.node, opened.handle, opened.backing)
    bench.driver.call(lambda: bench.driver.vfs.release(entry.node, opened.handle))
    assert os.listdir(f"{bench.folder}/state/staging") == [], "one open, one close"


def test_create_that_was_only_begun(make_bench: MakeBench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = make_bench("memory")
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL

    def work() -> Any:
        return bench.driver.vfs.create(ROOT_NODE, "f", stat.S_IFREG | 0o600, flags, CALLER)

    def die(*_: object) -> None:
        raise Died

    with monkeypatch.context() as patched:
        patched.setattr("paddleflow.pfs.journal.Journal.done", die)
        bench.driver.vfs.request = (800, False)
        with pytest.raises(Died):
            work().send(None)
    bench.crash()
    entry, opened = bench.driver.call(work, resent=800)
    bench.driver.call(lambda: bench.driver.vfs.write(entry.node, opened.handle, 0, memoryview(b"x")))
    bench.driver.call(lambda: bench.driver.vfs.flush(entry.node, opened.handle))
    assert bench.driver.get("f") == b"x"


def test_open_for_writing_that_comes_again_is_counted_once(make_bench: MakeBench) -> None:
    bench = make_bench("memory")
    bench.driver.put("f", b"x")
    node, _ = bench.driver.walk("f")

    def work() -> Any:
        return bench.driver.vfs.open(node, os.O_RDWR, CALLER)

    bench.driver.vfs.request = (900, False)
    with pytest.raises(StopIteration) as ended:
        work().send(None)
    bench.crash()
    again = bench.driver.call(work, resent=900)
    assert again.handle == ended.value.value.handle
    bench.driver.call(lambda: bench.driver.vfs.release(node, again.handle))
    assert os.listdir(f"{bench.folder}/state/staging") == []
