"""What a successor makes of nodes and handles that it never gave."""

from __future__ import annotations

import errno
import os

import pytest

from tests.pfs.vfs.conftest import MakeBench
from tests.pfs.vfs.driver import CALLER, Bench


def test_a_node_that_nobody_asked_about_since_and_that_is_gone(make_bench: MakeBench) -> None:
    bench = make_bench("memory", small_file=0)
    bench.driver.put("a", b"content")
    fd = bench.driver.open("a", os.O_RDONLY)
    node = bench.driver.fds[fd].node
    bench.crash()
    bench.store.delete("a")
    with pytest.raises(FileNotFoundError):
        bench.driver.walk("a")
    with pytest.raises(OSError) as caught:
        bench.driver.call(lambda: bench.driver.vfs.open(node, os.O_RDONLY, CALLER))
    assert caught.value.errno == errno.ESTALE, "the kernel looks the name up again"


def test_a_handle_that_was_closed_just_before_is_not_waited_for(bench: Bench) -> None:
    bench.driver.put("a", b"content")
    fd = bench.driver.open("a", os.O_RDWR)
    bench.driver.pwrite(fd, b"C", 0)
    bench.driver.close(fd)
    bench.crash()
    bench.driver.truncate("a", 3)
    assert bench.store.read("a", 0, 10) == b"Con"


def test_an_upload_that_nobody_lived_to_hear_of_is_no_conflict(bench: Bench) -> None:
    bench.driver.put("a", b"first")
    fd = bench.driver.open("a", os.O_RDWR)
    bench.driver.pwrite(fd, b"other", 0)
    with open(f"{bench.folder}/same", "w+b") as same:
        same.write(b"other")
        same.flush()
        bench.store.write("a", same.fileno(), 5)
    bench.driver.vfs.close()
    bench.begin(is_successor=False)
    assert bench.driver.call(bench.driver.vfs.catch_up) == 0
    assert bench.store.read("a", 0, 10) == b"other"
    assert not os.path.exists(f"{bench.folder}/state/conflicts")
    assert os.listdir(f"{bench.folder}/state/staging") == []
    bench.driver.fds.clear()


def test_what_is_open_when_the_mount_goes_is_uploaded(bench: Bench) -> None:
    bench.driver.put("deleted", b"x")
    for name in ("a", "deleted"):
        fd = bench.driver.open(name, os.O_RDWR | os.O_CREAT)
        bench.driver.pwrite(fd, b"written", 0)
    bench.driver.unlink("deleted")
    assert bench.driver.call(bench.driver.vfs.finish) == 0
    assert bench.store.read("a", 0, 10) == b"written"
    assert os.listdir(f"{bench.folder}/state/staging") == []


def test_a_new_mount_whose_first_process_dies_at_once_inherits_nothing_of_an_older_mount(
    make_bench: MakeBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = make_bench("memory")
    fd = bench.driver.open("f", os.O_WRONLY | os.O_CREAT)
    bench.driver.pwrite(fd, b"precious", 0)
    bench.driver.vfs.close()
    for held in bench.driver.fds.values():
        if held.backing >= 0:
            os.close(held.backing)
    bench.driver.fds.clear()  # the machine went down: no kernel remembers anything

    def die(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "no room for its logs")

    with monkeypatch.context() as patched:
        patched.setattr("paddleflow.pfs.vfs.vfs.Nodes", die)
        with pytest.raises(OSError, match="no room"):
            bench.begin(is_successor=False)
    bench.begin(is_successor=True)
    assert bench.driver.call(bench.driver.vfs.catch_up) == 0
    assert bench.store.read("f", 0, 100) == b"precious", "nobody has it open, so it is uploaded"
