"""How files are opened: which of the kernel's ways, and what happens when two opens want different ones."""

from __future__ import annotations

import errno
import os

import pytest

from paddleflow.pfs.attrs import FileRange, OpenMode
from tests.pfs.vfs.conftest import MakeBench
from tests.pfs.vfs.driver import CALLER, STORE, Bench, VfsDriver

MIB = 1 << 20


def mode_of(driver: VfsDriver, fd: int) -> OpenMode:
    return driver.fds[fd].mode


def test_a_small_file_is_fetched_and_passed_through(bench: Bench) -> None:
    bench.driver.put("f", b"content")
    bench.cache.evict(STORE, "")
    with bench.driver.reading("f") as fd:
        assert mode_of(bench.driver, fd) is OpenMode.PASSTHROUGH
        assert bench.driver.pread(fd, 100, 0) == b"content"


def test_what_was_written_is_passed_through_at_once(bench: Bench) -> None:
    bench.driver.put("f", b"content")
    with bench.driver.reading("f") as fd:
        assert mode_of(bench.driver, fd) is OpenMode.PASSTHROUGH


def test_an_empty_file(bench: Bench) -> None:
    bench.driver.put("f", b"")
    assert bench.driver.get("f") == b""


def test_a_large_file_is_read_through_us_until_it_is_whole(make_bench: MakeBench) -> None:
    bench = make_bench("flat")
    driver = bench.driver
    content = os.urandom(5 * MIB)
    bench.store.put("f", content)
    with driver.reading("f") as fd:
        assert mode_of(driver, fd) is OpenMode.DIRECT
        read = b"".join(driver.pread(fd, 128 << 10, at) for at in range(0, 5 * MIB, 128 << 10))
        assert read == content
        assert driver.pread(fd, 100, 5 * MIB - 10) == content[-10:]
        assert driver.pread(fd, 100, 5 * MIB) == b""
        # It is whole now. It is also still open, perhaps mapped: the two ways must not meet on one node.
        version = driver.vfs._nodes.get(driver.fds[fd].node).known
        assert version is not None
        assert version.version is not None
        driver.call(lambda: bench.backstage.fetch(version.version, 0, -1))
        with driver.reading("f") as second:
            assert mode_of(driver, second) is OpenMode.PASSTHROUGH
            assert driver.fds[second].node != driver.fds[fd].node
            assert driver.pread(fd, 10, 0) == driver.pread(second, 10, 0) == content[:10]
    with driver.reading("f") as fd:
        assert mode_of(driver, fd) is OpenMode.PASSTHROUGH


def test_a_writable_mount_without_passthrough_keeps_no_pages(make_bench: MakeBench) -> None:
    bench = make_bench("flat", passthrough=False)
    bench.driver.put("f", b"content")
    with bench.driver.reading("f") as fd:
        assert mode_of(bench.driver, fd) is OpenMode.DIRECT


def test_a_read_only_one_keeps_them_while_the_version_is_the_same(make_bench: MakeBench) -> None:
    bench = make_bench("flat", passthrough=False, read_only=True)
    driver = bench.driver
    bench.store.put("f", b"content")
    node, _ = driver.walk("f")

    def opened() -> tuple[OpenMode, bool]:
        answer = driver.call(lambda: driver.vfs.open(node, os.O_RDONLY, CALLER))
        driver.call(lambda: driver.vfs.release(node, answer.handle))
        return answer.mode, answer.keep_pages

    opened()
    assert opened() == (OpenMode.CACHED, True)
    bench.store.put("f", b"another")
    bench.clock.now += 100
    assert opened() == (OpenMode.CACHED, False)
    assert opened() == (OpenMode.CACHED, True)
    data = driver.call(lambda: driver.vfs.read(node, 0, 0, 100))
    assert isinstance(data, FileRange)
    assert os.pread(data.fd, data.size, data.start) == b"another"


def test_readers_and_a_writer_of_one_mount_without_passthrough_share_one_node(make_bench: MakeBench) -> None:
    bench = make_bench("flat", passthrough=False)
    driver = bench.driver
    driver.put("f", b"content")
    with driver.reading("f") as fd:
        writer = driver.open("f", os.O_RDWR)
        assert driver.fds[writer].node == driver.fds[fd].node
        driver.pwrite(writer, b"CON", 0)
        assert driver.pread(fd, 100, 0) == b"CONtent"
        driver.close(writer)
        assert driver.pread(fd, 100, 0) == b"CONtent"


def test_a_writer_gets_a_node_of_its_own_while_somebody_reads(bench: Bench) -> None:
    driver = bench.driver
    driver.put("f", b"content")
    with driver.reading("f") as fd:
        old = driver.fds[fd].node
        with pytest.raises(OSError) as refused:
            driver.call(lambda: driver.vfs.open(old, os.O_RDWR, CALLER))
        assert refused.value.errno == errno.ESTALE, "the kernel looks the name up again when it reads this"
        writer = driver.open("f", os.O_RDWR)
        assert driver.fds[writer].node != old
        driver.pwrite(writer, b"CON", 0)
        assert driver.pread(fd, 100, 0) == b"content", "it keeps what it opened"
        with driver.reading("f") as late:
            assert driver.pread(late, 100, 0) == b"CONtent"
        driver.close(writer)
        assert driver.pread(fd, 100, 0) == b"content"
    assert driver.get("f") == b"CONtent"


def test_truncating_by_name_while_somebody_reads(bench: Bench) -> None:
    driver = bench.driver
    driver.put("f", b"content")
    with driver.reading("f") as fd:
        driver.truncate("f", 3)
        assert driver.pread(fd, 100, 0) == b"content"
    assert driver.get("f") == b"con"


def test_a_version_that_changed_in_the_store(bench: Bench) -> None:
    driver, other = bench.driver, bench.another()
    driver.put("f", b"first")
    with driver.reading("f") as fd:
        other.put("f", b"second one")
        bench.clock.now += 100
        assert driver.get("f") == b"second one"
        assert driver.pread(fd, 100, 0) == b"first"
        assert driver.fstat(fd).size == 5
    other.vfs.close()


def test_an_old_node_is_not_opened_again(bench: Bench) -> None:
    """The kernel may still have the old number under the name for a while."""
    driver = bench.driver
    driver.put("f", b"content")
    with driver.reading("f") as fd:
        old = driver.fds[fd].node
        driver.close(driver.open("f", os.O_RDWR))
        with pytest.raises(OSError) as refused:
            driver.call(lambda: driver.vfs.open(old, os.O_RDONLY, CALLER))
        assert refused.value.errno == errno.ESTALE


def test_what_is_deleted_can_be_opened_again_through_its_handle(bench: Bench) -> None:
    driver = bench.driver
    driver.put("f", b"content")
    with driver.reading("f") as fd:
        node = driver.fds[fd].node
        driver.unlink("f")
        again = driver.call(lambda: driver.vfs.open(node, os.O_RDONLY, CALLER))
        assert again.backing == driver.fds[fd].path
        driver.call(lambda: driver.vfs.release(node, again.handle))


def test_after_a_death_a_node_is_opened_as_the_kernel_has_it(bench: Bench) -> None:
    driver = bench.driver
    driver.put("f", b"content")
    with driver.reading("f") as fd:
        bench.crash()
        with driver.reading("f") as same:
            assert driver.fds[same].node == driver.fds[fd].node
        bench.cache.evict(STORE, "")
        with driver.reading("f") as fresh:
            assert driver.pread(fresh, 100, 0) == b"content"


def test_after_a_death_a_large_file_is_read_on_in_its_version(make_bench: MakeBench) -> None:
    bench = make_bench("flat")
    driver = bench.driver
    first, second = os.urandom(5 * MIB), os.urandom(5 * MIB)
    bench.store.put("f", first)
    with driver.reading("f") as fd:
        assert driver.pread(fd, 100, 0) == first[:100]
        bench.crash()
        assert driver.pread(fd, 100, 1000) == first[1000:1100]
        bench.store.put("f", second)
        bench.cache.evict(STORE, "")
        with pytest.raises(OSError) as refused:
            driver.pread(fd, 100, 3 * MIB)
        assert refused.value.errno == errno.ESTALE, "an error, never bytes of two versions"


def test_a_large_file_renamed_while_it_is_read(make_bench: MakeBench) -> None:
    bench = make_bench("flat")
    driver = bench.driver
    content = os.urandom(5 * MIB)
    bench.store.put("f", content)
    with driver.reading("f") as fd:
        driver.rename("f", "g")
        assert driver.pread(fd, 100, 4 * MIB) == content[4 * MIB : 4 * MIB + 100]


def test_what_the_kernel_refuses_to_pass_through_is_read_through_us(make_bench: MakeBench) -> None:
    bench = make_bench("flat")
    driver = bench.driver
    driver.put("f", b"content")
    node, _ = driver.walk("f")
    opened = driver.call(lambda: driver.vfs.open(node, os.O_RDONLY, CALLER))
    assert opened.mode is OpenMode.PASSTHROUGH
    driver.vfs.not_passed_through(node, opened.handle)
    second = driver.call(lambda: driver.vfs.open(node, os.O_RDONLY, CALLER))
    assert second.mode is OpenMode.DIRECT
    data = driver.call(lambda: driver.vfs.read(node, second.handle, 0, 100))
    assert os.pread(data.fd, data.size, data.start) == b"content"


def test_reading_without_opening(make_bench: MakeBench) -> None:
    """A data-set mount: the kernel opens files without asking."""
    bench = make_bench("flat", passthrough=False, read_only=True)
    driver = bench.driver
    bench.store.put("f", b"content")
    node, _ = driver.walk("f")
    data = driver.call(lambda: driver.vfs.read(node, 0, 0, 100))
    assert os.pread(data.fd, data.size, data.start) == b"content"
    bench.store.put("f", b"another")
    bench.cache.evict(STORE, "")
    bench.clock.now += 100
    data = driver.call(lambda: driver.vfs.read(node, 0, 0, 100))
    assert os.pread(data.fd, data.size, data.start) == b"another"
    assert ("node", node) in bench.kernel.told
