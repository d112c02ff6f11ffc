"""What is believed, for how long, and what the kernel is told when it turns out to be wrong."""

from __future__ import annotations

import os
from typing import Any

import pytest

from paddleflow.domain.errors import Unavailable
from paddleflow.pfs.attrs import ROOT_NODE
from tests.pfs.vfs.conftest import MakeBench
from tests.pfs.vfs.driver import CALLER, Bench
from tests.pfs.vfs.flat import FlatStore
from tests.pfs.vfs.slow import FailingBackstage, Running, SlowBackstage


def counting(make_bench: MakeBench, **options: Any) -> tuple[Bench, FailingBackstage]:
    bench = make_bench("flat", **options)
    bench.driver.vfs.close()
    bench.backstage = backstage = FailingBackstage(bench.backstage)
    bench.begin(is_successor=False)
    return bench, backstage


def test_attributes_are_believed_for_a_while(make_bench: MakeBench) -> None:
    bench, backstage = counting(make_bench, meta_ttl=5.0)
    bench.store.put("f", b"1")
    assert bench.driver.stat("f").size == 1
    bench.store.put("f", b"22")
    asked = backstage.count("stat")
    bench.clock.now += 4.9
    assert bench.driver.stat("f").size == 1
    assert backstage.count("stat") == asked
    bench.clock.now += 0.2
    assert bench.driver.stat("f").size == 2
    node, _ = bench.driver.walk("f")
    assert ("node", node) in bench.kernel.told


def test_the_kernel_believes_no_longer_than_we_do(make_bench: MakeBench) -> None:
    bench, _ = counting(make_bench, meta_ttl=5.0)
    bench.store.put("f", b"1")
    vfs = bench.driver.vfs
    first = bench.driver.call(lambda: vfs.lookup(ROOT_NODE, "f", CALLER))
    bench.clock.now += 3
    second = bench.driver.call(lambda: vfs.lookup(ROOT_NODE, "f", CALLER))
    assert first.attr_ttl == pytest.approx(5.0)
    assert second.attr_ttl == second.entry_ttl == pytest.approx(2.0)


def test_without_a_ttl_every_open_asks(make_bench: MakeBench) -> None:
    bench, _ = counting(make_bench, meta_ttl=0.0)
    bench.store.put("f", b"1")
    assert bench.driver.get("f") == b"1"
    bench.store.put("f", b"22")
    assert bench.driver.get("f") == b"22"


def test_opening_asks_when_what_is_known_is_old(make_bench: MakeBench) -> None:
    """Close-to-open, also when the kernel did not look the name up again."""
    bench, _ = counting(make_bench)
    bench.store.put("f", b"1")
    node, _ = bench.driver.walk("f")
    bench.store.put("f", b"22")
    bench.clock.now += 10
    opened = bench.driver.call(lambda: bench.driver.vfs.open(node, os.O_RDONLY, CALLER))
    with open(opened.backing, "rb") as file:
        assert file.read() == b"22"


def test_absence_is_believed_for_a_while(make_bench: MakeBench) -> None:
    bench, backstage = counting(make_bench, negative_ttl=1.0)
    vfs = bench.driver.vfs
    absent = bench.driver.call(lambda: vfs.lookup(ROOT_NODE, "f", CALLER))
    assert (absent.node, absent.entry_ttl) == (0, pytest.approx(1.0))
    bench.store.put("f", b"1")
    asked = backstage.count("stat")
    assert bench.driver.call(lambda: vfs.lookup(ROOT_NODE, "f", CALLER)).node == 0
    assert backstage.count("stat") == asked
    bench.clock.now += 1.1
    assert bench.driver.stat("f").size == 1


def test_absence_can_be_asked_for_every_time(make_bench: MakeBench) -> None:
    bench, _ = counting(make_bench, negative_ttl=0.0, meta_ttl=0.0)
    with pytest.raises(OSError, match="ENOENT"):
        bench.driver.stat("f")
    bench.store.put("f", b"1")
    assert bench.driver.stat("f").size == 1


def test_making_a_name_ends_its_absence(bench: Bench) -> None:
    with pytest.raises(FileNotFoundError):
        bench.driver.stat("f")
    bench.driver.put("f", b"x")
    assert bench.driver.stat("f").size == 1
    bench.driver.unlink("f")
    with pytest.raises(FileNotFoundError):
        bench.driver.stat("f")
    bench.driver.mkdir("f")
    assert bench.driver.listdir("f") == []


def test_a_listing_answers_for_every_name(make_bench: MakeBench) -> None:
    bench, backstage = counting(make_bench)
    for number in range(50):
        bench.store.put(f"d/{number}", b"x")
    bench.driver.listdir("d")
    asked = backstage.count("stat")
    for number in range(50):
        assert bench.driver.stat(f"d/{number}").size == 1
    with pytest.raises(FileNotFoundError):
        bench.driver.stat("d/absent")
    assert backstage.count("stat") == asked
    bench.driver.put("d/new", b"xx")
    bench.driver.unlink("d/1")
    assert bench.driver.stat("d/new").size == 2
    with pytest.raises(FileNotFoundError):
        bench.driver.stat("d/1")
    assert len(bench.driver.listdir("d")) == 50
    assert backstage.count("list") == 1


def test_many_questions_about_one_directory_make_a_listing(make_bench: MakeBench) -> None:
    bench, backstage = counting(make_bench)
    for number in range(100):
        bench.store.put(f"d/{number}", b"x")
    for number in range(100):
        bench.driver.stat(f"d/{number}")
    assert backstage.count("stat") < 15
    assert backstage.count("list") == 1


def test_a_listing_nobody_asked_for_may_fail(make_bench: MakeBench) -> None:
    bench, backstage = counting(make_bench)
    for number in range(30):
        bench.store.put(f"d/{number}", b"x")
    backstage.failures["list"] = [Unavailable("no answer")]
    for number in range(30):
        assert bench.driver.stat(f"d/{number}").size == 1


def test_what_vanished_elsewhere(make_bench: MakeBench) -> None:
    bench, _ = counting(make_bench)
    bench.store.put("d/f", b"x")
    with bench.driver.reading("d/f") as fd:
        parent, _ = bench.driver.walk("d")
        bench.store.delete("d/f")
        bench.store.put("d/g", b"x")
        bench.clock.now += 100
        with pytest.raises(FileNotFoundError):
            bench.driver.stat("d/f")
        assert ("entry", parent, "f") in bench.kernel.told
        assert bench.driver.pread(fd, 10, 0) == b"x"
        assert bench.driver.fstat(fd).size == 1


def test_a_file_that_became_a_directory_elsewhere(make_bench: MakeBench) -> None:
    bench, _ = counting(make_bench)
    bench.store.put("x", b"file")
    before, _ = bench.driver.walk("x")
    bench.store.delete("x")
    bench.store.put("x/y", b"inside")
    bench.clock.now += 100
    assert bench.driver.get("x/y") == b"inside"
    assert bench.driver.walk("x")[0] != before


def test_a_store_that_does_not_answer_is_an_error_and_no_absence(make_bench: MakeBench) -> None:
    bench, backstage = counting(make_bench)
    bench.store.put("f", b"x")
    backstage.failures["stat"] = [Unavailable("no answer")]
    with pytest.raises(OSError, match="no answer"):
        bench.driver.call(lambda: bench.driver.vfs.lookup(ROOT_NODE, "f", CALLER))
    assert bench.driver.stat("f").size == 1


def test_a_huge_directory_shows_at_once(make_bench: MakeBench) -> None:
    """The first page is answered while the store is still listing, and the whole never lies in memory."""
    bench = make_bench("flat")
    bench.store = FlatStore(page=1000)
    bench.driver.vfs.close()
    count = 120_000

    class Endless:
        """100,000 names and more, a page at a time, counted."""

        pages = 0

        def __getattr__(self, name: str) -> Any:
            return getattr(bench.backstage, name)

        async def list(self, path: str, cursor: int = 0) -> Any:
            from paddleflow.pfs.backstage import Found, ObjectVersion, Page
            from paddleflow.ports.objects import ObjectEntry

            self.pages += 1
            until = min(cursor + 1000, count)
            entries = [
                Found(
                    ObjectEntry(key=f"{number:06}", size=1, version="v"),
                    ObjectVersion("s", f"{number:06}", "v", 1),
                    FlatStore.traits,
                )
                for number in range(cursor, until)
            ]
            return Page(entries, is_last=until == count)

    endless = Endless()
    inner, bench.backstage = bench.backstage, endless
    Endless.__getattr__ = lambda _, name: getattr(inner, name)  # type: ignore[method-assign]
    vfs = bench.begin(is_successor=False)
    handle = bench.driver.call(lambda: vfs.opendir(ROOT_NODE))
    first = bench.driver.call(lambda: vfs.readdir(ROOT_NODE, handle, 0, True))
    assert first[0].name == "000000"
    assert endless.pages == 1
    seen = len(first)
    most = 0
    while page := bench.driver.call(lambda: vfs.readdir(ROOT_NODE, handle, seen, True)):  # noqa: B023
        assert page[0].name == f"{seen:06}"
        seen += len(page)
        most = max(most, len(vfs._directories._open[handle].items))
    assert seen == count
    assert most < 25_000
    again = bench.driver.call(lambda: vfs.readdir(ROOT_NODE, handle, 5, True))
    assert again[0].name == "000005", "seeking back reads it anew"
    vfs.close()
    vfs = bench.begin(is_successor=True)
    later = bench.driver.call(lambda: vfs.readdir(ROOT_NODE, handle, 70_000, True))
    assert later[0].name == "070000", "a successor goes on where its predecessor was"


def test_changes_while_a_directory_is_read(make_bench: MakeBench) -> None:
    bench = make_bench("flat")
    for number in range(6):
        bench.store.put(f"d/{number}", b"x")
    bench.driver.vfs.close()
    bench.store._page = 2
    bench.backstage = slow = SlowBackstage(bench.backstage)
    vfs = bench.begin(is_successor=False)
    node, _ = bench.driver.walk("d")
    handle = bench.driver.call(lambda: vfs.opendir(node))
    slow.slow, slow.looks_first = {"list"}, True
    reading = Running(vfs.readdir(node, handle, 0, True))
    bench.driver.unlink("d/0")
    bench.driver.unlink("d/5")
    bench.driver.put("d/new", b"x")
    slow.answer()
    names = [item.name for item in reading.result()]
    while True:
        reading = Running(vfs.readdir(node, handle, len(names), True))
        slow.answer_all()
        if not reading.result():
            break
        names += [item.name for item in reading.result()]
    assert sorted(names) == ["1", "2", "3", "4", "new"]
    slow.slow.clear()
    assert bench.driver.listdir("d") == ["1", "2", "3", "4", "new"]


def test_a_directory_is_as_old_as_its_last_change_of_names(make_bench: MakeBench) -> None:
    bench = make_bench("flat")
    driver = bench.driver
    bench.store.put("d/f", b"x")  # a directory without a time of its own
    before = driver.modified("d")
    bench.clock.now += 1
    driver.put("d/f", b"xx")
    driver.chmod("d/f", 0o600)
    assert driver.modified("d") == before
    driver.put("d/g", b"x")
    assert driver.modified("d") > before


def test_remembering_entries_counts_as_looking_up(bench: Bench) -> None:
    driver = bench.driver
    driver.put("f", b"content")
    driver.forget_all()
    item = driver.items(ROOT_NODE)[0]
    entry = driver.vfs.remember(ROOT_NODE, item)
    assert entry.attr.size == 7
    assert driver.vfs._nodes.get(entry.node).lookups == 1
    driver.vfs.forget(entry.node, 1)
    assert driver.vfs._nodes.find(entry.node) is None
