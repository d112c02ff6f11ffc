"""Writing: when the store has it, what happens when it has not, and what is left after a death."""

from __future__ import annotations

import errno
import json
import mmap
import os
from typing import Any

import pytest

from paddleflow.domain.errors import DiskFull, Unavailable
from paddleflow.pfs.attrs import OpenMode
from tests.pfs.vfs.conftest import MakeBench
from tests.pfs.vfs.driver import CALLER, Bench
from tests.pfs.vfs.slow import FailingBackstage


def failing(make_bench: MakeBench, kind: str = "flat", **options: Any) -> tuple[Bench, FailingBackstage]:
    bench = make_bench(kind, **options)
    bench.driver.vfs.close()
    bench.backstage = backstage = FailingBackstage(bench.backstage)
    bench.begin(is_successor=False)
    return bench, backstage


def staged_files(bench: Bench) -> list[str]:
    return sorted(name for name in os.listdir(f"{bench.folder}/state/staging") if name.endswith(".data"))


def test_the_world_sees_a_file_when_it_is_closed(bench: Bench) -> None:
    other = bench.another()
    driver = bench.driver
    fd = driver.open("f", os.O_WRONLY | os.O_CREAT)
    driver.pwrite(fd, b"half", 0)
    assert driver.stat("f").size == 4
    with pytest.raises(FileNotFoundError):
        other.stat("f")
    bench.clock.now += 100
    driver.close(fd)
    assert other.get("f") == b"half"
    other.vfs.close()


def test_sync_is_enough(bench: Bench) -> None:
    driver = bench.driver
    fd = driver.open("f", os.O_WRONLY | os.O_CREAT)
    driver.pwrite(fd, b"synced", 0)
    driver.fsync(fd)
    assert bench.store.read("f", 0, 100) == b"synced"
    driver.pwrite(fd, b"SYNCED", 0)
    driver.close(fd)
    assert bench.store.read("f", 0, 100) == b"SYNCED"


def test_what_was_not_changed_is_not_uploaded(make_bench: MakeBench) -> None:
    bench, backstage = failing(make_bench)
    bench.driver.put("f", b"content")
    assert backstage.count("put") == 1, "closing uploads once, not again when the handle goes"
    fd = bench.driver.open("f", os.O_RDWR)
    bench.driver.pread(fd, 10, 0)
    bench.driver.close(fd)
    assert backstage.count("put") == 1


def test_an_upload_that_fails_is_told_and_can_be_repeated(make_bench: MakeBench) -> None:
    bench, backstage = failing(make_bench)
    driver = bench.driver
    fd = driver.open("f", os.O_WRONLY | os.O_CREAT)
    driver.pwrite(fd, b"precious", 0)
    backstage.failures["put"] = [Unavailable("no answer")]
    with pytest.raises(OSError) as refused:
        driver.fsync(fd)
    assert refused.value.errno == errno.EIO
    driver.fsync(fd)
    assert bench.store.read("f", 0, 100) == b"precious"
    driver.close(fd)


def test_a_close_that_fails_loses_nothing(make_bench: MakeBench) -> None:
    bench, backstage = failing(make_bench)
    driver = bench.driver
    fd = driver.open("f", os.O_WRONLY | os.O_CREAT)
    driver.pwrite(fd, b"precious", 0)
    backstage.failures["put"] = [Unavailable("no answer")] * 2
    with pytest.raises(OSError) as refused:
        driver.close(fd)
    assert refused.value.errno == errno.EIO
    assert driver.vfs.unsaved == 1
    assert driver.stat("f").size == 8, "here it is as if it had been uploaded"
    backstage.failures["put"] = [Unavailable("no answer")]
    assert driver.get("f") == b"precious"
    assert driver.call(driver.vfs.catch_up) == 0
    assert bench.store.read("f", 0, 100) == b"precious"
    assert staged_files(bench) == []


def test_a_full_store_is_enospc(make_bench: MakeBench) -> None:
    bench, backstage = failing(make_bench)
    fd = bench.driver.open("f", os.O_WRONLY | os.O_CREAT)
    bench.driver.pwrite(fd, b"x", 0)
    backstage.failures["put"] = [DiskFull("no room")] * 2
    with pytest.raises(OSError) as refused:
        bench.driver.close(fd)
    assert refused.value.errno == errno.ENOSPC


def test_write_back_answers_before_the_upload(make_bench: MakeBench) -> None:
    bench, backstage = failing(make_bench, write_back=True)
    driver = bench.driver
    backstage.failures["put"] = [Unavailable("no answer")]
    driver.put("f", b"content")
    assert driver.vfs.unsaved == 1
    bench.crash()
    assert bench.store.read("f", 0, 100) == b"content"
    assert driver.vfs.unsaved == 0


def test_write_back_sync_still_waits(make_bench: MakeBench) -> None:
    bench, backstage = failing(make_bench, write_back=True)
    fd = bench.driver.open("f", os.O_WRONLY | os.O_CREAT)
    bench.driver.pwrite(fd, b"x", 0)
    backstage.failures["put"] = [Unavailable("no answer")]
    with pytest.raises(OSError) as refused:
        bench.driver.fsync(fd)
    assert refused.value.errno == errno.EIO


@pytest.mark.parametrize("passthrough", [True, False])
def test_open_files_go_on_after_a_death(make_bench: MakeBench, passthrough: bool) -> None:
    bench = make_bench("flat", passthrough=passthrough)
    driver = bench.driver
    driver.put("f", b"0123456789")
    fd = driver.open("f", os.O_RDWR)
    driver.pwrite(fd, b"abc", 0)
    bench.crash()
    assert driver.pread(fd, 100, 0) == b"abc3456789"
    driver.pwrite(fd, b"def", 3)
    bench.crash()
    assert driver.fstat(fd).size == 10
    driver.close(fd)
    assert bench.store.read("f", 0, 100) == b"abcdef6789"
    assert staged_files(bench) == []


def test_the_next_mount_uploads_what_a_machine_took_down(make_bench: MakeBench) -> None:
    bench = make_bench("flat")
    driver = bench.driver
    driver.put("changed", b"old")
    driver.put("clean", b"same")
    fds = [driver.open(name, os.O_RDWR | os.O_CREAT) for name in ("changed", "new", "clean", "deleted")]
    for fd in fds[:2]:
        driver.pwrite(fd, b"NEW", 0)
    driver.unlink("deleted")
    driver.vfs.close()
    bench.begin(is_successor=False)  # the machine was rebooted: no kernel remembers anything
    assert driver.call(driver.vfs.catch_up) == 0
    assert bench.store.read("changed", 0, 9) == b"NEW"
    assert bench.store.read("new", 0, 9) == b"NEW"
    assert "deleted" not in bench.store.objects
    assert staged_files(bench) == []


def test_what_changed_elsewhere_meanwhile_is_set_aside(make_bench: MakeBench) -> None:
    bench = make_bench("flat")
    driver = bench.driver
    driver.put("d", b"old")
    fd = driver.open("d", os.O_RDWR)
    driver.pwrite(fd, b"mine", 0)
    driver.vfs.close()
    bench.store.put("d", b"theirs")
    bench.begin(is_successor=False)
    assert driver.call(driver.vfs.catch_up) == 0
    assert bench.store.read("d", 0, 9) == b"theirs"
    (kept,) = os.listdir(f"{bench.folder}/state/conflicts")
    with open(f"{bench.folder}/state/conflicts/{kept}", "rb") as file:
        assert file.read() == b"mine"
    assert staged_files(bench) == []


def test_what_cannot_be_uploaded_yet_waits(make_bench: MakeBench) -> None:
    bench, backstage = failing(make_bench)
    fd = bench.driver.open("f", os.O_RDWR | os.O_CREAT)
    bench.driver.pwrite(fd, b"x", 0)
    bench.driver.vfs.close()
    bench.begin(is_successor=False)
    backstage.failures["stat"] = [Unavailable("no answer")]
    assert bench.driver.call(bench.driver.vfs.catch_up) == 1
    assert bench.driver.call(bench.driver.vfs.catch_up) == 0
    assert bench.store.read("f", 0, 9) == b"x"


def test_staged_files_without_their_other_half_are_nobodys(make_bench: MakeBench) -> None:
    bench = make_bench("flat")
    staging = f"{bench.folder}/state/staging"
    for name in ("1.data", "2.json", "3.json.x.new"):
        with open(f"{staging}/{name}", "w") as file:
            json.dump({}, file)
    bench.remount()
    assert os.listdir(staging) == []


def test_a_file_renamed_while_it_is_written_is_uploaded_under_its_new_name(bench: Bench) -> None:
    driver = bench.driver
    driver.mkdir("d")
    fd = driver.open("d/f", os.O_WRONLY | os.O_CREAT)
    driver.pwrite(fd, b"content", 0)
    driver.rename("d", "e")
    bench.crash()
    driver.rename("e/f", "e/g")
    driver.close(fd)
    assert driver.listdir("e") == ["g"]
    assert bench.store.read("e/g", 0, 100) == b"content"


def test_a_new_file_renamed_over_another_and_deleted(bench: Bench) -> None:
    """What the store has under the name goes too, although the new content was never there."""
    driver = bench.driver
    driver.put("target", b"old")
    fd = driver.open("new", os.O_WRONLY | os.O_CREAT)
    driver.rename("new", "target")
    driver.unlink("target")
    driver.close(fd)
    bench.remount()
    assert driver.listdir("") == []


def test_deleted_while_open(bench: Bench) -> None:
    driver = bench.driver
    driver.put("f", b"content")
    reading, writing = driver.open("f", os.O_RDONLY), None
    driver.unlink("f")
    assert driver.pread(reading, 100, 0) == b"content"
    writing = driver.open("g", os.O_RDWR | os.O_CREAT)
    driver.pwrite(writing, b"scratch", 0)
    driver.unlink("g")
    bench.crash()
    assert driver.pread(writing, 100, 0) == b"scratch"
    assert driver.fstat(writing).size == 7
    assert driver.fstat(reading).size == 7
    driver.close(writing)
    driver.close(reading)
    bench.remount()
    assert driver.listdir("") == []
    assert staged_files(bench) == []


def test_writing_through_memory(make_bench: MakeBench) -> None:
    """What is stored through a mapping after the file was closed is uploaded when the mapping goes."""
    bench = make_bench("flat")
    driver = bench.driver
    driver.put("f", b"a" * 8192)
    fd = driver.open("f", os.O_RDWR)
    held = driver.fds[fd]
    memory = mmap.mmap(held.backing, 8192)
    memory[:5] = b"first"
    driver.call(lambda: driver.vfs.flush(held.node, held.handle))
    assert bench.store.read("f", 0, 5) == b"first"
    memory[:5] = b"later"
    memory.close()
    driver.call(lambda: driver.vfs.release(held.node, held.handle))
    os.close(driver.fds.pop(fd).backing)
    assert bench.store.read("f", 0, 5) == b"later"


@pytest.mark.parametrize("passthrough", [True, False])
def test_appending(make_bench: MakeBench, passthrough: bool) -> None:
    bench = make_bench("flat", passthrough=passthrough)
    driver = bench.driver
    driver.put("log", b"one\n")
    first = driver.open("log", os.O_WRONLY | os.O_APPEND)
    second = driver.open("log", os.O_WRONLY | os.O_APPEND)
    driver.write(first, b"two\n")
    driver.write(second, b"three\n")
    driver.close(first)
    driver.close(second)
    assert bench.store.read("log", 0, 100) == b"one\ntwo\nthree\n"


def test_allocating(make_bench: MakeBench) -> None:
    bench = make_bench("flat")
    driver = bench.driver
    fd = driver.open("f", os.O_RDWR | os.O_CREAT)
    held = driver.fds[fd]
    driver.pwrite(fd, b"x" * 8192, 0)
    driver.call(lambda: driver.vfs.fallocate(held.node, held.handle, 0, 0, 20_000))
    assert driver.fstat(fd).size == 20_000
    driver.call(lambda: driver.vfs.fallocate(held.node, held.handle, 0x3, 0, 4096))
    assert driver.pread(fd, 4, 0) == b"\0\0\0\0"
    with pytest.raises(OSError):
        driver.call(lambda: driver.vfs.fallocate(held.node, held.handle, 0x1000, 0, 1))
    driver.close(fd)
    assert bench.store.stat("f").size == 20_000


def test_truncating_a_closed_file(bench: Bench) -> None:
    driver = bench.driver
    driver.put("f", b"0123456789")
    driver.truncate("f", 4)
    assert bench.store.read("f", 0, 100) == b"0123"
    driver.truncate("f", 6)
    assert bench.store.read("f", 0, 100) == b"0123\0\0"
    driver.truncate("f", 0)
    assert bench.store.read("f", 0, 100) == b""
    assert staged_files(bench) == []


def test_a_large_file_is_changed_in_the_middle(make_bench: MakeBench) -> None:
    """Copied beside the loop, and past a cache that cannot take it."""
    bench = make_bench("flat")
    content = os.urandom(5 << 20)
    bench.store.put("f", content)
    fd = bench.driver.open("f", os.O_RDWR)
    bench.driver.pwrite(fd, b"middle", 2 << 20)
    bench.driver.close(fd)
    assert bench.store.read("f", 0, 6 << 20) == content[: 2 << 20] + b"middle" + content[(2 << 20) + 6 :]


def test_a_full_cache_does_not_keep_anybody_from_reading_and_writing(make_bench: MakeBench) -> None:
    bench = make_bench("flat")

    class NoCache:
        def __getattr__(self, name: str) -> Any:
            return getattr(bench.backstage, name)

        async def fetch(self, version: object, start: int, size: int) -> Any:
            from paddleflow.pfs.backstage import Cached

            return Cached("", False)

    content = os.urandom(9 << 20)
    bench.store.put("f", content)
    driver = bench.driver
    driver.vfs._mounted.backstage = NoCache()
    fd = driver.open("f", os.O_RDONLY)
    assert driver.fds[fd].mode is OpenMode.DIRECT
    assert driver.pread(fd, 100, 8 << 20) == content[8 << 20 : (8 << 20) + 100]
    driver.close(fd)
    fd = driver.open("f", os.O_RDWR)
    driver.pwrite(fd, b"x", 0)
    driver.close(fd)
    assert bench.store.read("f", 0, 9 << 20) == b"x" + content[1:]


def test_set_size_through_a_handle_and_at_once_with_mode(bench: Bench) -> None:
    from paddleflow.pfs.attrs import Wish

    driver = bench.driver
    driver.put("f", b"0123456789")
    node, _ = driver.walk("f")
    attr, _ = driver.call(lambda: driver.vfs.setattr(node, None, Wish(size=3, mode=0o600), CALLER))
    assert attr.size == 3
    assert attr.mode & 0o777 == 0o600
