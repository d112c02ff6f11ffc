"""Operations that meet while they wait for the store. The test gives the answers, in the order that hurts."""

from __future__ import annotations

import errno
import os
import stat
from dataclasses import replace
from typing import Any

import pytest

from paddleflow.pfs.attrs import ROOT_NODE, Wish
from paddleflow.pfs.errnos import FsError
from tests.pfs.vfs.conftest import MakeBench
from tests.pfs.vfs.driver import CALLER, Bench
from tests.pfs.vfs.slow import Running, SlowBackstage


@pytest.fixture(params=["flat", "memory"])
def slowly(request: pytest.FixtureRequest, make_bench: MakeBench) -> tuple[Bench, SlowBackstage]:
    bench = make_bench(request.param)
    bench.driver.vfs.close()
    bench.backstage = slow = SlowBackstage(bench.backstage)
    bench.begin(is_successor=False)
    return bench, slow


Slowly = tuple[Bench, SlowBackstage]


def lookup(bench: Bench, name: str) -> Running:
    return Running(bench.driver.vfs.lookup(ROOT_NODE, name, CALLER))


def test_two_lookups_ask_once_and_get_one_node(slowly: Slowly) -> None:
    bench, slow = slowly
    bench.driver.put("f", b"x")
    bench.remount()
    bench.driver.walk("")
    slow.slow = {"stat"}
    first, second = lookup(bench, "f"), lookup(bench, "f")
    assert len(slow.asked) == 1
    slow.answer_all()
    assert first.result().node == second.result().node
    assert bench.driver.vfs._nodes.get(first.result().node).lookups == 2


def test_an_answer_overtaken_by_unlink_is_not_believed(slowly: Slowly) -> None:
    bench, slow = slowly
    bench.driver.put("f", b"x")
    bench.clock.now += 100
    bench.driver.walk("")
    slow.slow, slow.looks_first = {"stat"}, True
    looking = lookup(bench, "f")
    assert len(slow.asked) == 1
    slow.slow = set()
    bench.driver.listdir("")  # from here on nobody else need ask
    bench.driver.unlink("f")
    slow.answer_all()
    assert looking.result().node == 0


def test_an_answer_overtaken_by_create_is_not_believed(slowly: Slowly) -> None:
    bench, slow = slowly
    bench.driver.walk("")
    slow.slow, slow.looks_first = {"stat"}, True
    looking = lookup(bench, "f")
    slow.slow = set()
    bench.driver.listdir("")
    bench.driver.put("f", b"x")
    slow.answer_all()
    assert looking.result().attr.size == 1


def test_who_asks_after_a_change_does_not_get_an_answer_from_before(slowly: Slowly) -> None:
    bench, slow = slowly
    bench.driver.put("f", b"x")
    bench.clock.now += 100
    bench.driver.walk("")
    slow.slow, slow.looks_first = {"stat"}, True
    early = lookup(bench, "f")
    slow.slow = set()
    bench.driver.listdir("")
    bench.driver.put("f", b"longer")
    bench.clock.now += 100
    slow.slow = {"stat"}
    late = lookup(bench, "f")
    assert len(slow.asked) == 2
    slow.answer_all()
    assert late.result().attr.size == early.result().attr.size == 6


def test_create_racing_create(slowly: Slowly) -> None:
    bench, slow = slowly
    bench.driver.walk("")
    slow.slow = {"stat"}
    vfs = bench.driver.vfs
    both = [Running(vfs.create(ROOT_NODE, "f", 0o644, os.O_RDWR | os.O_EXCL, CALLER)) for _ in range(2)]
    slow.answer_all()
    errors = [running.error for running in both if running.error is not None]
    assert len(errors) == 1
    assert isinstance(errors[0], OSError)
    assert errors[0].errno in {errno.EEXIST, errno.ESTALE}


def test_mkdir_racing_mkdir_elsewhere(slowly: Slowly) -> None:
    bench, slow = slowly
    bench.driver.walk("")
    slow.slow = {"make_directory"}
    making = Running(bench.driver.vfs.mkdir(ROOT_NODE, "d", stat.S_IFDIR | 0o755, CALLER))
    bench.store.make_directory("d")
    slow.answer_all()
    assert making.error is not None
    assert bench.driver.listdir("d") == [], "and now everybody sees it"


def write_and_flush(bench: Bench, slow: SlowBackstage, name: str = "f") -> tuple[int, Running]:
    driver = bench.driver
    fd = driver.open(name, os.O_RDWR | os.O_CREAT)
    driver.pwrite(fd, b"content", 0)
    slow.slow = {"put"}
    held = driver.fds[fd]
    return fd, Running(driver.vfs.flush(held.node, held.handle))


def test_unlink_waits_for_an_upload_and_leaves_nothing(slowly: Slowly) -> None:
    bench, slow = slowly
    fd, flushing = write_and_flush(bench, slow)
    deleting = Running(bench.driver.vfs.unlink(ROOT_NODE, "f", CALLER))
    assert not deleting.is_done
    slow.answer_all()
    flushing.result()
    deleting.result()
    slow.slow = set()
    bench.driver.close(fd)
    with pytest.raises(Exception, match="f"):
        bench.store.stat("f")


def test_rename_waits_for_an_upload(slowly: Slowly) -> None:
    bench, slow = slowly
    fd, flushing = write_and_flush(bench, slow)
    renaming = Running(bench.driver.vfs.rename(ROOT_NODE, "f", ROOT_NODE, "g", 0, CALLER))
    assert not renaming.is_done
    slow.answer_all()
    flushing.result()
    renaming.result()
    slow.slow = set()
    bench.driver.close(fd)
    assert bench.driver.listdir("") == ["g"]
    assert bench.store.read("g", 0, 100) == b"content"


def replace_in_the_store(bench: Bench, name: str, content: bytes) -> None:
    """And this mount has seen it: whoever had the old one open keeps it, the name has another node."""
    other = bench.another()
    other.put(name, content)
    other.vfs.close()
    bench.clock.now += 100
    lookup(bench, name).result()


def test_a_name_replaced_while_rename_waits_is_renamed_as_it_is_then(slowly: Slowly) -> None:
    bench, slow = slowly
    bench.driver.put("g", b"old")
    with bench.driver.reading("g"):
        fd, flushing = write_and_flush(bench, slow)
        renaming = Running(bench.driver.vfs.rename(ROOT_NODE, "g", ROOT_NODE, "f", 0, CALLER))
        assert not renaming.is_done, "f is being uploaded"
        slow.slow = set()
        replace_in_the_store(bench, "g", b"newer")
        slow.answer_all()
        flushing.result()
        renaming.result()
        bench.driver.close(fd)
    assert bench.driver.listdir("") == ["f"]
    assert bench.driver.get("f") == b"newer"


def test_a_name_replaced_while_unlink_waits_is_deleted_all_the_same(make_bench: MakeBench) -> None:
    bench = make_bench("directory")
    bench.driver.vfs.close()
    bench.backstage = slow = SlowBackstage(bench.backstage)
    bench.begin(is_successor=False)
    bench.driver.put("f", b"old")
    node, _ = bench.driver.walk("f")
    with bench.driver.reading("f"):
        slow.slow = {"set_modes"}
        changing = Running(bench.driver.vfs.setattr(node, None, Wish(mode=0o600), CALLER))
        deleting = Running(bench.driver.vfs.unlink(ROOT_NODE, "f", CALLER))
        assert not deleting.is_done, "its mode is being changed"
        slow.slow = set()
        replace_in_the_store(bench, "f", b"newer")
        slow.answer_all()
        changing.result()
        deleting.result()
    assert list(bench.store.list("")) == []
    assert bench.driver.listdir("") == []


def test_rename_of_a_directory_waits_for_uploads_below(slowly: Slowly) -> None:
    bench, slow = slowly
    bench.driver.mkdir("d")
    fd, flushing = write_and_flush(bench, slow, "d/f")
    renaming = Running(bench.driver.vfs.rename(ROOT_NODE, "d", ROOT_NODE, "e", 0, CALLER))
    assert not renaming.is_done
    slow.answer_all()
    flushing.result()
    renaming.result()
    slow.slow = set()
    bench.driver.pwrite(fd, b"CON", 0)
    bench.driver.close(fd)
    assert bench.driver.listdir("") == ["e"]
    assert bench.store.read("e/f", 0, 100) == b"CONtent"


def test_writing_while_it_uploads_uploads_again(slowly: Slowly) -> None:
    bench, slow = slowly
    fd, flushing = write_and_flush(bench, slow)
    slow.answer_all()
    flushing.result()
    held = bench.driver.fds[fd]
    bench.driver.pwrite(fd, b"first", 0)
    slow.looks_first = True
    syncing = Running(bench.driver.vfs.fsync(held.node, held.handle, False))
    bench.driver.pwrite(fd, b"later", 0)  # after the worker has read the file
    slow.answer_all()
    syncing.result()
    slow.slow, slow.looks_first = set(), False
    bench.driver.close(fd)
    assert bench.store.read("f", 0, 5) == b"later"


def test_two_syncs_upload_one_after_the_other(slowly: Slowly) -> None:
    bench, slow = slowly
    fd, flushing = write_and_flush(bench, slow)
    held = bench.driver.fds[fd]
    second = Running(bench.driver.vfs.fsync(held.node, held.handle, False))
    assert len(slow.asked) == 1
    slow.answer()
    flushing.result()
    second.result()
    assert slow.asked == [], "there was nothing left to upload"


@pytest.mark.parametrize("how", ["create", "retry"])
def test_a_node_is_kept_while_it_is_opened_for_a_kernel_that_does_not_know_it(slowly: Slowly, how: str) -> None:
    """Another thread looks it up and forgets it meanwhile."""
    bench, slow = slowly
    vfs = bench.driver.vfs
    bench.driver.put("f", b"content")
    bench.cache.evict("0123456789abcdef", "")
    bench.driver.forget_all()
    slow.slow = {"fetch"}
    if how == "retry":
        vfs._retries.expect(FsError(errno.ESTALE), CALLER.pid, vfs._nodes.root, "f", os.O_RDONLY)
        opening = lookup(bench, "f")
    else:
        opening = Running(vfs.create(ROOT_NODE, "f", 0o644, os.O_RDONLY, CALLER))
    assert not opening.is_done
    other = Running(vfs.lookup(ROOT_NODE, "f", replace(CALLER, pid=CALLER.pid + 1)))
    vfs.forget(other.result().node, 1)
    slow.answer_all()
    entry = opening.result() if how == "retry" else opening.result()[0]
    assert entry.node == other.result().node
    assert vfs._nodes.get(entry.node).pins == 1, "open"


def test_opening_for_writing_twice_copies_once(slowly: Slowly) -> None:
    bench, slow = slowly
    bench.driver.put("f", b"content")
    bench.cache.evict("0123456789abcdef", "")
    node, _ = bench.driver.walk("f")
    slow.slow = {"fetch"}
    both = [Running(bench.driver.vfs.open(node, os.O_RDWR, CALLER)) for _ in range(2)]
    slow.answer_all()
    assert both[0].result().backing == both[1].result().backing


def test_a_reader_that_comes_while_a_writer_copies(slowly: Slowly) -> None:
    """Whoever is first has the node; the other looks the name up again."""
    bench, slow = slowly
    bench.driver.put("f", b"content")
    node, _ = bench.driver.walk("f")
    slow.slow = {"fetch"}
    writing = Running(bench.driver.vfs.open(node, os.O_RDWR, CALLER))
    reading = Running(bench.driver.vfs.open(node, os.O_RDONLY, CALLER))
    assert reading.is_done, "it is in the cache"
    slow.answer_all()
    assert isinstance(writing.error, OSError)
    assert writing.error.errno == errno.ESTALE
    slow.slow = set()
    fd = bench.driver.open("f", os.O_RDWR)
    assert bench.driver.fds[fd].node != node


def test_an_object_replaced_while_it_is_fetched(slowly: Slowly) -> None:
    bench, slow = slowly
    bench.driver.put("f", b"first")
    bench.cache.evict("0123456789abcdef", "")
    node, _ = bench.driver.walk("f")
    slow.slow = {"fetch"}
    opening = Running(bench.driver.vfs.open(node, os.O_RDONLY, CALLER))
    other = bench.another()
    slow.slow = set()
    other.put("f", b"second")
    slow.answer_all()
    opened: Any = opening.result()
    with open(opened.backing, "rb") as file:
        assert file.read() == b"second"
    other.vfs.close()


def test_removing_a_directory_in_which_a_file_is_being_made(slowly: Slowly) -> None:
    bench, slow = slowly
    bench.driver.mkdir("d")
    fd = bench.driver.open("d/f", os.O_RDWR | os.O_CREAT)
    with pytest.raises(OSError) as refused:
        bench.driver.rmdir("d")
    assert refused.value.errno == errno.ENOTEMPTY
    bench.driver.close(fd)
    assert bench.driver.listdir("d") == ["f"]
    assert slow.asked == []
