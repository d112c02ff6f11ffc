"""Each call's errors, on every kind of store: the ones a local filesystem gives."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable

import pytest

from paddleflow.domain.errors import (
    Conflict,
    Denied,
    DiskFull,
    Duplicate,
    InUse,
    Invalid,
    NotFound,
    Stale,
    Unavailable,
)
from paddleflow.pfs.attrs import ROOT_NODE, Caller, Wish
from paddleflow.pfs.errnos import CROSS_STORE, NOT_HELD, FsError, errno_of
from tests.pfs.vfs.conftest import MakeBench
from tests.pfs.vfs.driver import CALLER, Bench, VfsDriver

LONG = "n" * 256


@pytest.mark.parametrize(
    ("error", "number"),
    [
        (NotFound("x"), errno.ENOENT),
        (Duplicate("x"), errno.EEXIST),
        (Denied("x"), errno.EACCES),
        (InUse("x"), errno.ENOTEMPTY),
        (Stale("x"), errno.ESTALE),
        (DiskFull("x"), errno.ENOSPC),
        (Unavailable("x"), errno.EIO),
        (Invalid("x"), errno.EINVAL),
        (Invalid("x", code=CROSS_STORE), errno.EXDEV),
        (Invalid("x", code=NOT_HELD), errno.ENOTSUP),
        (Conflict("x"), errno.EIO),
        (FsError(errno.EROFS), errno.EROFS),
        (OSError(errno.ENOSPC, "x"), errno.ENOSPC),
        (OSError("no number"), errno.EIO),
        (KeyError("x"), errno.EIO),
    ],
)
def test_the_table(error: BaseException, number: int) -> None:
    assert errno_of(error) == number


def prepare(driver: VfsDriver) -> None:
    driver.mkdir("d")
    driver.put("d/f", b"in d")
    driver.mkdir("empty")
    driver.put("f", b"content")


CASES: dict[str, tuple[Callable[[VfsDriver], object], int]] = {
    "open absent": (lambda d: d.open("x", os.O_RDONLY), errno.ENOENT),
    "open below a file": (lambda d: d.open("f/x", os.O_RDONLY), errno.ENOTDIR),
    "open below nothing": (lambda d: d.open("x/y", os.O_RDWR | os.O_CREAT), errno.ENOENT),
    "open exclusively what is there": (lambda d: d.open("f", os.O_RDWR | os.O_CREAT | os.O_EXCL), errno.EEXIST),
    "open a directory for writing": (lambda d: d.open("d", os.O_RDWR), errno.EISDIR),
    "create a long name": (lambda d: d.open(LONG, os.O_RDWR | os.O_CREAT), errno.ENAMETOOLONG),
    "look up a long name": (lambda d: d.stat(LONG), errno.ENAMETOOLONG),
    "mkdir of what is there": (lambda d: d.mkdir("d"), errno.EEXIST),
    "mkdir of a file's name": (lambda d: d.mkdir("f"), errno.EEXIST),
    "mkdir below nothing": (lambda d: d.mkdir("x/y"), errno.ENOENT),
    "mkdir below a file": (lambda d: d.mkdir("f/y"), errno.ENOTDIR),
    "mkdir of a long name": (lambda d: d.mkdir(LONG), errno.ENAMETOOLONG),
    "rmdir of nothing": (lambda d: d.rmdir("x"), errno.ENOENT),
    "rmdir of a file": (lambda d: d.rmdir("f"), errno.ENOTDIR),
    "rmdir of what is not empty": (lambda d: d.rmdir("d"), errno.ENOTEMPTY),
    "unlink of nothing": (lambda d: d.unlink("x"), errno.ENOENT),
    "unlink of a directory": (lambda d: d.unlink("d"), errno.EISDIR),
    "rename of nothing": (lambda d: d.rename("x", "y"), errno.ENOENT),
    "rename to below nothing": (lambda d: d.rename("f", "x/y"), errno.ENOENT),
    "rename to below a file": (lambda d: d.rename("d/f", "f/y"), errno.ENOTDIR),
    "rename of a file over a directory": (lambda d: d.rename("f", "empty"), errno.EISDIR),
    "rename of a directory over a file": (lambda d: d.rename("d", "f"), errno.ENOTDIR),
    "rename over a full directory": (lambda d: d.rename("empty", "d"), errno.ENOTEMPTY),
    "rename into itself": (lambda d: d.rename("d", "d/x"), errno.EINVAL),
    "rename to a long name": (lambda d: d.rename("f", LONG), errno.ENAMETOOLONG),
    "rename without replacing": (lambda d: d.rename("f", "d/f", 1), errno.EEXIST),
    "exchange": (lambda d: d.rename("f", "d/f", 2), errno.EINVAL),
    "readlink of a file": (lambda d: d.readlink("f"), errno.EINVAL),
    "truncate a directory": (lambda d: d.truncate("d", 0), errno.EISDIR),
    "truncate nothing": (lambda d: d.truncate("x", 0), errno.ENOENT),
    "list a file": (lambda d: d.listdir("f"), errno.ENOTDIR),
    "list nothing": (lambda d: d.listdir("x"), errno.ENOENT),
    "chmod of nothing": (lambda d: d.chmod("x", 0o600), errno.ENOENT),
    "hard link": (lambda d: d.call(lambda: d.vfs.link(d.walk("f")[0], ROOT_NODE, "l")), errno.EPERM),
    "a device": (lambda d: d.call(lambda: d.vfs.mknod(ROOT_NODE, "n", stat.S_IFCHR | 0o600, CALLER)), errno.EPERM),
    "a pipe": (lambda d: d.call(lambda: d.vfs.mknod(ROOT_NODE, "n", stat.S_IFIFO | 0o600, CALLER)), errno.EPERM),
    "a node nobody gave": (lambda d: d.call(lambda: d.vfs.getattr(4711, None)), errno.ESTALE),
}


@pytest.mark.parametrize("case", CASES)
def test_errors(bench: Bench, case: str) -> None:
    work, number = CASES[case]
    prepare(bench.driver)
    with pytest.raises(OSError) as refused:
        work(bench.driver)
    assert errno.errorcode[refused.value.errno or 0] == errno.errorcode[number]
    assert bench.driver.listdir("") == ["d", "empty", "f"]
    assert bench.driver.get("d/f") == b"in d"


VFS_CASES: dict[str, tuple[Callable[[VfsDriver], object], int]] = {
    "unlink of a directory": (lambda d: d.vfs.unlink(ROOT_NODE, "d", CALLER), errno.EISDIR),
    "rmdir of a file": (lambda d: d.vfs.rmdir(ROOT_NODE, "f", CALLER), errno.ENOTDIR),
    "rename into itself": (
        lambda d: d.vfs.rename(ROOT_NODE, "d", d.walk("d")[0], "x", 0, CALLER),
        errno.EINVAL,
    ),
    "rename of nothing": (lambda d: d.vfs.rename(ROOT_NODE, "x", ROOT_NODE, "y", 0, CALLER), errno.ENOENT),
    "create exclusively": (
        lambda d: d.vfs.create(ROOT_NODE, "f", 0o644, os.O_RDWR | os.O_EXCL, CALLER),
        errno.EEXIST,
    ),
    "open a directory": (lambda d: d.vfs.open(d.walk("d")[0], os.O_RDONLY, CALLER), errno.EISDIR),
    "truncate a directory": (lambda d: d.vfs.setattr(d.walk("d")[0], None, Wish(size=0), CALLER), errno.EISDIR),
    "write to what is not open": (
        lambda d: d.vfs.write(d.walk("f")[0], 0, 0, memoryview(b"x")),
        errno.EBADF,
    ),
}


@pytest.mark.parametrize("case", VFS_CASES)
def test_errors_that_the_kernel_finds_first(bench: Bench, case: str) -> None:
    """Another program may stand in for the kernel: the vfs relies on no check but its own."""
    work, number = VFS_CASES[case]
    prepare(bench.driver)
    with pytest.raises(OSError) as refused:
        bench.driver.call(lambda: work(bench.driver))  # type: ignore[arg-type, return-value]
    assert errno.errorcode[refused.value.errno or 0] == errno.errorcode[number]


READ_ONLY: dict[str, Callable[[VfsDriver], object]] = {
    "create": lambda d: d.open("x", os.O_RDWR | os.O_CREAT),
    "open for writing": lambda d: d.open("f", os.O_RDWR),
    "open truncating": lambda d: d.open("f", os.O_RDONLY | os.O_TRUNC),
    "mkdir": lambda d: d.mkdir("x"),
    "rmdir": lambda d: d.rmdir("empty"),
    "unlink": lambda d: d.unlink("f"),
    "rename": lambda d: d.rename("f", "g"),
    "chmod": lambda d: d.chmod("f", 0o600),
    "utime": lambda d: d.utime("f", 1),
    "truncate": lambda d: d.truncate("f", 0),
    "access": lambda d: d.call(lambda: d.vfs.access(d.walk("f")[0], os.W_OK, CALLER)),
    "setxattr": lambda d: d.call(lambda: d.vfs.setxattr(d.walk("f")[0], "user.a", b"", 0)),
    "link": lambda d: d.call(lambda: d.vfs.link(d.walk("f")[0], ROOT_NODE, "l")),
}


@pytest.mark.parametrize("case", READ_ONLY)
@pytest.mark.parametrize("option", ["read_only", "dataset"])
def test_read_only(make_bench: MakeBench, case: str, option: str) -> None:
    bench = make_bench("memory")
    prepare(bench.driver)
    bench.options = type(bench.options)(**{option: True})
    bench.remount()
    with pytest.raises(OSError) as refused:
        READ_ONLY[case](bench.driver)
    assert refused.value.errno == errno.EROFS
    assert bench.driver.get("f") == b"content"


def test_what_a_flat_store_cannot_hold(make_bench: MakeBench) -> None:
    driver = make_bench("flat").driver
    driver.put("f", b"x")
    node, _ = driver.walk("f")
    refusals: list[Callable[[], object]] = [
        lambda: driver.symlink("target", "l"),
        lambda: driver.call(lambda: driver.vfs.setxattr(node, "user.a", b"1", 0)),
        lambda: driver.call(lambda: driver.vfs.getxattr(node, "user.a")),
        lambda: driver.call(lambda: driver.vfs.removexattr(node, "user.a")),
    ]
    for refused_work in refusals:
        with pytest.raises(OSError) as refused:
            refused_work()
        assert refused.value.errno == errno.ENOTSUP
    assert driver.call(lambda: driver.vfs.listxattr(node)) == []


def test_what_a_flat_store_does_not_hold_is_remembered_here(make_bench: MakeBench) -> None:
    """So that tar, git and rsync work; after a new mount nobody pretends."""
    bench = make_bench("flat", uid=1, gid=2, file_mode=0o640, dir_mode=0o750)
    driver = bench.driver
    driver.put("f", b"x")
    driver.chmod("f", 0o755)
    driver.utime("f", 10**18)
    driver.call(lambda: driver.vfs.setattr(driver.walk("f")[0], None, Wish(uid=7, gid=8), CALLER))
    attr = driver.attr("f")
    assert (stat.S_IMODE(attr.mode), attr.uid, attr.gid, attr.mtime_ns) == (0o755, 7, 8, 10**18)
    bench.remount()
    attr = driver.attr("f")
    assert (stat.S_IMODE(attr.mode), attr.uid, attr.gid) == (0o640, 1, 2)
    assert attr.mtime_ns != 10**18


@pytest.mark.parametrize("kind", ["directory", "memory"])
def test_what_other_stores_hold(make_bench: MakeBench, kind: str) -> None:
    bench = make_bench(kind)
    driver = bench.driver
    driver.put("f", b"x")
    driver.chmod("f", 0o751)
    driver.utime("f", 1_234_567_890_000_000_000)
    driver.symlink("some where", "l")
    driver.mkdir("d", 0o700)
    node, _ = driver.walk("f")
    driver.call(lambda: driver.vfs.setxattr(node, "user.a", b"1", 0))
    bench.remount()
    attr = driver.attr("f")
    assert (stat.S_IMODE(attr.mode), attr.mtime_ns) == (0o751, 1_234_567_890_000_000_000)
    assert driver.readlink("l") == "some where"
    assert stat.S_IMODE(driver.attr("d").mode) == 0o700
    driver.put("f", b"other content")
    node, _ = driver.walk("f")
    assert driver.call(lambda: driver.vfs.getxattr(node, "user.a")) == b"1", "writing keeps attributes"
    assert stat.S_IMODE(driver.attr("f").mode) == 0o751
    driver.call(lambda: driver.vfs.removexattr(node, "user.a"))
    with pytest.raises(OSError) as refused:
        driver.call(lambda: driver.vfs.getxattr(node, "user.a"))
    assert refused.value.errno == errno.ENODATA


def test_xattr_flags(make_bench: MakeBench) -> None:
    driver = make_bench("memory").driver
    fd = driver.open("f", os.O_RDWR | os.O_CREAT)
    node, _ = driver.walk("f")
    with pytest.raises(OSError) as refused:
        driver.call(lambda: driver.vfs.setxattr(node, "user.a", b"1", os.XATTR_REPLACE))
    assert refused.value.errno == errno.ENODATA
    driver.call(lambda: driver.vfs.setxattr(node, "user.a", b"1", os.XATTR_CREATE))
    with pytest.raises(OSError) as refused:
        driver.call(lambda: driver.vfs.setxattr(node, "user.a", b"2", os.XATTR_CREATE))
    assert refused.value.errno == errno.EEXIST
    assert driver.call(lambda: driver.vfs.listxattr(node)) == ["user.a"]
    driver.close(fd)


def test_cp_p_sets_times_before_it_closes(bench: Bench) -> None:
    driver = bench.driver
    fd = driver.open("f", os.O_WRONLY | os.O_CREAT)
    driver.pwrite(fd, b"content", 0)
    node = driver.fds[fd].node
    when = 1_111_111_111_000_000_000
    driver.call(lambda: driver.vfs.setattr(node, driver.fds[fd].handle, Wish(mtime_ns=when, atime_ns=when), CALLER))
    driver.close(fd)
    assert driver.attr("f").mtime_ns == when
    assert driver.get("f") == b"content"
    if driver.holds_modes:
        bench.remount()
        assert driver.attr("f").mtime_ns == when


def test_files_belong_to_who_made_them(make_bench: MakeBench) -> None:
    if os.geteuid():
        pytest.skip("only root may give files away")
    bench = make_bench("directory")
    driver = bench.driver
    somebody = Caller(1234, 2345, 1)
    entry = driver.call(lambda: driver.vfs.mkdir(ROOT_NODE, "d", stat.S_IFDIR | 0o755, somebody))
    assert (entry.attr.uid, entry.attr.gid) == (1234, 2345)
    entry, opened = driver.call(lambda: driver.vfs.create(ROOT_NODE, "f", 0o644, os.O_WRONLY, somebody))
    driver.call(lambda: driver.vfs.flush(entry.node, opened.handle))
    driver.call(lambda: driver.vfs.release(entry.node, opened.handle))
    bench.remount()
    assert (driver.attr("f").uid, driver.attr("f").gid) == (1234, 2345)


def test_mknod_makes_an_empty_file_in_the_store(bench: Bench) -> None:
    driver = bench.driver
    driver.call(lambda: driver.vfs.mknod(ROOT_NODE, "f", stat.S_IFREG | 0o644, CALLER))
    assert bench.store.stat("f").size == 0
    assert driver.get("f") == b""


def test_statfs(make_bench: MakeBench) -> None:
    for kind in ("flat", "directory"):
        driver = make_bench(kind).driver
        blocks, free, available, files, left, size, name_max, fragment = driver.call(lambda: driver.vfs.statfs(1))  # noqa: B023
        assert blocks >= free >= available > 0
        assert size == fragment == 4096
        assert name_max == 255
        assert files >= left > 0


def test_a_directory_does_not_vanish_with_its_last_file(make_bench: MakeBench) -> None:
    """On a flat store it exists only through the names in it, until somebody here takes the last one away."""
    bench = make_bench("flat")
    bench.store.put("d/f", b"x")
    bench.driver.unlink("d/f")
    bench.clock.now += 100
    assert bench.driver.listdir("d") == []
    bench.driver.put("d/g", b"y")
    bench.driver.rename("d/g", "g")
    bench.clock.now += 100
    assert bench.driver.listdir("d") == []
    bench.driver.rmdir("d")
    assert bench.driver.listdir("") == ["g"]


def test_inode_numbers_of_listings_are_those_of_stat(bench: Bench) -> None:
    driver = bench.driver
    prepare(driver)
    fd = driver.open("d/new", os.O_RDWR | os.O_CREAT)
    for path in ("", "d"):
        node, _ = driver.walk(path)
        for item in driver.items(node):
            below = f"{path}/{item.name}" if path else item.name
            assert item.attr.ino == driver.attr(below).ino, below
    driver.close(fd)


def test_two_files_never_look_like_one(bench: Bench) -> None:
    """``mv`` and ``cp`` refuse to touch files whose inode numbers are equal."""
    driver = bench.driver
    driver.put("tmp", b"1")
    driver.rename("tmp", "f")
    driver.put("tmp", b"2")
    assert driver.attr("tmp").ino != driver.attr("f").ino
