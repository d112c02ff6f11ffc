"""Every request of the kernel, made by real system calls on a real mount, in each way of reading."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import itertools
import mmap
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from paddleflow.pfs.fuse import device
from tests.pfs.fuse.mounting import ToyMount, toy_mount
from tests.pfs.programs import ended, start
from tests.waiting import wait_for

pytestmark = pytest.mark.usefixtures("as_root")

MODES = ("PASSTHROUGH", "DIRECT", "CACHED")
BIG = 3 * 1024 * 1024 + 17
MS_REMOUNT = 32


@pytest.fixture(params=MODES)
def mount(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ToyMount]:
    with toy_mount(tmp_path, front={"mode": request.param}) as mount:
        yield mount


@pytest.fixture
def passing(tmp_path: Path) -> Iterator[ToyMount]:
    with toy_mount(tmp_path) as mount:
        assert mount.outcome["passthrough"], mount.outcome
        yield mount


def content(size: int) -> bytes:
    return b"".join(number.to_bytes(8, "big") for number in range(size // 8 + 1))[:size]


def test_write_then_read(mount: ToyMount) -> None:
    Path(mount.path("file")).write_bytes(content(BIG))
    assert Path(mount.root, "file").read_bytes() == content(BIG)
    assert Path(mount.path("file")).read_bytes() == content(BIG)


def test_random_reads_and_writes(mount: ToyMount) -> None:
    Path(mount.root, "file").write_bytes(content(BIG))
    fd = os.open(mount.path("file"), os.O_RDWR)
    try:
        assert os.pread(fd, 100, 2_000_001) == content(BIG)[2_000_001:2_000_101]
        assert os.pread(fd, 100, BIG - 10) == content(BIG)[-10:]
        assert os.pread(fd, 100, BIG + 10) == b""
        assert os.pwrite(fd, b"here", 1_000_000) == 4
        os.fsync(fd)
        assert os.pread(fd, 4, 1_000_000) == b"here"
    finally:
        os.close(fd)
    assert Path(mount.root, "file").read_bytes()[1_000_000:1_000_004] == b"here"


def test_append(mount: ToyMount) -> None:
    Path(mount.root, "file").write_bytes(b"one")
    for word in (b"two", b"three"):
        fd = os.open(mount.path("file"), os.O_WRONLY | os.O_APPEND)
        os.write(fd, word)
        os.close(fd)
    assert Path(mount.root, "file").read_bytes() == b"onetwothree"


def test_opening_with_truncation_is_one_request(mount: ToyMount) -> None:
    Path(mount.root, "file").write_bytes(b"old content")
    os.close(os.open(mount.path("file"), os.O_WRONLY | os.O_TRUNC))
    assert os.stat(mount.path("file")).st_size == 0
    assert "SETATTR" not in mount.counts()


def test_mapping_for_reading(mount: ToyMount) -> None:
    Path(mount.root, "file").write_bytes(content(BIG))
    with (
        open(mount.path("file"), "rb") as file,
        mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ, flags=mmap.MAP_PRIVATE) as view,
    ):
        assert view[:] == content(BIG)


def test_bytes_given_instead_of_a_range(tmp_path: Path) -> None:
    with toy_mount(tmp_path, front={"mode": "DIRECT"}) as mount:
        Path(mount.root, "file.bytes").write_bytes(content(BIG))
        assert Path(mount.path("file.bytes")).read_bytes() == content(BIG)
        assert mount.counts()["READ"] > 1


def test_late_answers_do_not_mix_up_what_is_written(tmp_path: Path) -> None:
    """The bytes of a write that waits must not be overwritten by the next request."""
    names = [f"held-write-{number}" for number in range(8)]
    with ExitStack() as started, toy_mount(tmp_path, front={"mode": "DIRECT"}) as mount:
        for name in names:
            Path(mount.root, name).touch()
        program = "import os, sys; os.write(os.open(sys.argv[1], 1), sys.argv[1][-1].encode() * 50000)"
        writers = [start(started, program, mount.path(name)) for name in names]
        wait_for(lambda: sorted(mount.held()) == names)
        mount.let_go()
        assert [ended(writer) for writer in writers] == [0] * 8
        for name in names:
            assert Path(mount.root, name).read_bytes() == name[-1].encode() * 50000


def test_names(mount: ToyMount) -> None:
    os.mkdir(mount.path("dir"), 0o750)
    assert stat.S_IMODE(os.stat(mount.path("dir")).st_mode) == 0o750
    with pytest.raises(FileExistsError):
        os.mkdir(mount.path("dir"))
    Path(mount.path("dir/file")).touch()
    with pytest.raises(OSError, match="not empty"):
        os.rmdir(mount.path("dir"))
    os.rename(mount.path("dir/file"), mount.path("moved"))
    assert os.listdir(mount.path("dir")) == []
    os.rmdir(mount.path("dir"))
    os.unlink(mount.path("moved"))
    with pytest.raises(FileNotFoundError):
        os.stat(mount.path("moved"))
    with pytest.raises(FileNotFoundError):
        os.unlink(mount.path("moved"))
    assert os.listdir(mount.root) == []


def test_links_and_nodes(passing: ToyMount) -> None:
    os.symlink("target/é", passing.path("link"))
    assert os.readlink(passing.path("link")) == "target/é"
    os.mknod(passing.path("plain"), stat.S_IFREG | 0o640)
    assert stat.S_IMODE(os.stat(passing.path("plain")).st_mode) == 0o640
    with pytest.raises(PermissionError):
        os.link(passing.path("plain"), passing.path("hard"))


def test_a_rename_with_flags_arrives_with_them(passing: ToyMount) -> None:
    Path(passing.root, "a").touch()
    done = subprocess.run(["mv", "--no-clobber", passing.path("a"), passing.path("b")], check=False)
    assert done.returncode == 0
    assert passing.counts().get("RENAME2", 0) >= 1, "mv asks for a rename that replaces nothing"
    assert os.listdir(passing.root) == ["b"]


def test_names_that_are_no_text(passing: ToyMount) -> None:
    odd = os.fsdecode(b"\xff\xfe odd")
    Path(passing.path(odd)).write_text("x")
    assert os.listdir(passing.mountpoint) == [odd]
    assert os.listdir(os.fsencode(passing.root)) == [b"\xff\xfe odd"]


def test_attributes(mount: ToyMount) -> None:
    path = mount.path("file")
    Path(path).write_bytes(b"0123456789")
    os.chmod(path, 0o600)
    os.chown(path, 12, 34)
    os.truncate(path, 4)
    os.utime(path, ns=(1_000_000_001, -5_000_000_001))
    here, there = os.stat(path), os.stat(Path(mount.root, "file"))
    for field in ("st_mode", "st_uid", "st_gid", "st_size", "st_mtime_ns", "st_ino", "st_nlink"):
        assert getattr(here, field) == getattr(there, field), field
    assert here.st_mtime_ns == -5_000_000_001
    os.utime(path)
    assert os.stat(path).st_mtime_ns > 1_600_000_000 * 10**9


def test_truncating_an_open_file(mount: ToyMount) -> None:
    with open(mount.path("file"), "w+b") as file:
        file.write(b"0123456789")
        file.flush()
        file.truncate(3)
        assert os.fstat(file.fileno()).st_size == 3
        file.seek(0)
        assert file.read() == b"012"


def test_extended_attributes(passing: ToyMount) -> None:
    path = passing.path("file")
    Path(path).touch()
    os.setxattr(path, "user.one", b"1" * 1000)
    os.setxattr(path, "user.two", b"")
    assert os.getxattr(path, "user.one") == b"1" * 1000
    assert os.getxattr(path, "user.two") == b""
    assert sorted(os.listxattr(path)) == ["user.one", "user.two"]
    with pytest.raises(FileExistsError):
        os.setxattr(path, "user.one", b"", os.XATTR_CREATE)
    os.removexattr(path, "user.one")
    with pytest.raises(OSError, match="No data"):
        os.getxattr(path, "user.one")
    assert os.listxattr(path) == ["user.two"]


def test_space_and_preallocation(passing: ToyMount) -> None:
    space = os.statvfs(passing.mountpoint)
    assert (space.f_blocks, space.f_bfree, space.f_bavail, space.f_files, space.f_ffree) == (1000, 900, 800, 70, 60)
    assert (space.f_bsize, space.f_frsize, space.f_namemax) == (4096, 4096, 255)
    with open(passing.path("file"), "wb") as file:
        os.posix_fallocate(file.fileno(), 0, 10_000)
        assert os.fstat(file.fileno()).st_size == 10_000


def test_listing(mount: ToyMount) -> None:
    names = [f"name-{number:04}-{'x' * (number % 200)}" for number in range(1000)]
    for name in names:
        Path(mount.root, name).touch()
    assert sorted(os.listdir(mount.mountpoint)) == names
    with os.scandir(mount.mountpoint) as items:
        found = {item.name: (item.inode(), item.is_file()) for item in items}
    assert found == {name: (os.stat(Path(mount.root, name)).st_ino, True) for name in names}
    listed = subprocess.run(["ls", "-a", mount.mountpoint], capture_output=True, text=True, check=True).stdout.split()
    assert sorted(listed) == sorted([".", "..", *names])


def test_a_listing_with_attributes_spares_the_lookups(tmp_path: Path) -> None:
    """The kernel may forget a name it was told at any moment, but hardly ever most of them."""
    folders = itertools.count()
    with toy_mount(tmp_path, front={"ttl": 60.0}) as mount:

        def are_spared() -> bool:
            folder = f"folder{next(folders)}"
            Path(mount.root, folder).mkdir()
            for number in range(200):
                Path(mount.root, folder, f"{number}").write_bytes(b"x" * number)
            before = mount.counts()
            with os.scandir(mount.path(folder)) as items:
                sizes = {item.name: item.stat().st_size for item in items}
            after = mount.counts()
            if sizes != {f"{number}": number for number in range(200)}:
                pytest.fail(f"it lists {sizes}")
            if after.get("READDIRPLUS", 0) == before.get("READDIRPLUS", 0):
                pytest.fail("it was listed without attributes")
            return after["LOOKUP"] - before.get("LOOKUP", 0) < 100

        wait_for(are_spared)


def test_a_listing_can_be_resumed_anywhere(passing: ToyMount) -> None:
    for number in range(300):
        Path(passing.root, f"{number:03}").touch()
    program = """
import ctypes, sys
libc = ctypes.CDLL(None)
libc.opendir.restype = libc.readdir.restype = ctypes.c_void_p
libc.telldir.restype = ctypes.c_long
d = ctypes.c_void_p(libc.opendir(sys.argv[1].encode()))
def name():
    entry = libc.readdir(d)
    return ctypes.string_at(entry + 19).decode() if entry else None
for _ in range(150): name()
here = libc.telldir(d)
rest = []
while (n := name()) is not None: rest.append(n)
libc.seekdir(d, ctypes.c_long(here))
again = []
while (n := name()) is not None: again.append(n)
assert rest == again and len(rest) == 152, (len(rest), len(again))
"""
    subprocess.run([sys.executable, "-c", program, passing.mountpoint], check=True)


def test_absent_names_are_remembered_only_when_told(tmp_path: Path) -> None:
    """The kernel may forget what it remembers at any moment, but not always: then one of many names is asked for
    once."""
    names = (f"absent{number}" for number in itertools.count())
    with toy_mount(tmp_path, front={"negative_ttl": 60.0}) as mount:

        def is_remembered() -> bool:
            name, before = next(names), mount.counts().get("LOOKUP", 0)
            if any(os.path.exists(mount.path(name)) for _ in range(5)):
                pytest.fail("it is not there")
            return mount.counts()["LOOKUP"] - before == 1

        wait_for(is_remembered)
        Path(mount.path("absent0")).touch()
        assert os.path.exists(mount.path("absent0"))


def test_what_is_not_there_is_refused_once_and_done_by_the_kernel(passing: ToyMount) -> None:
    Path(passing.root, "file").write_bytes(content(BIG))
    with open(passing.path("file"), "r+b") as file, open(passing.path("copy"), "wb") as copy:
        assert not os.isatty(file.fileno())
        assert os.copy_file_range(file.fileno(), copy.fileno(), BIG) == BIG
        assert os.lseek(file.fileno(), 0, os.SEEK_HOLE) == BIG
        fcntl.flock(file, fcntl.LOCK_EX)
        fcntl.lockf(file, fcntl.LOCK_EX)
    directory = os.open(passing.mountpoint, os.O_RDONLY)
    os.fsync(directory)
    os.fsync(directory)
    os.close(directory)
    assert Path(passing.root, "copy").read_bytes() == content(BIG)
    counts = passing.counts()
    assert counts["FSYNCDIR"] == 1
    assert not {"SETLK", "SETLKW", "GETLK"} & counts.keys(), "locks are the kernel's"


def test_passthrough_reads_never_come_to_us(passing: ToyMount) -> None:
    Path(passing.root, "file").write_bytes(content(BIG))
    for _ in range(3):
        assert Path(passing.path("file")).read_bytes() == content(BIG)
    with open(passing.path("file"), "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as view:
        assert view[:] == content(BIG)
    fd = os.open(passing.path("file"), os.O_RDWR)
    os.pwrite(fd, b"there", 100)
    os.close(fd)
    counts = passing.counts()
    assert "READ" not in counts
    assert "WRITE" not in counts
    assert Path(passing.root, "file").read_bytes()[100:105] == b"there"


def test_writing_costs_no_question_about_attributes(tmp_path: Path) -> None:
    with toy_mount(tmp_path, front={"mode": "DIRECT"}) as mount:
        fd = os.open(mount.path("file"), os.O_RDWR | os.O_CREAT)
        for _ in range(50):
            os.write(fd, b"x")
        os.close(fd)
        counts = mount.counts()
        assert counts["WRITE"] == 50
        assert counts.get("GETXATTR", 0) < 10


def test_a_file_that_cannot_be_passed_through_is_read_by_us(tmp_path: Path) -> None:
    with toy_mount(tmp_path) as mount:
        os.mkfifo(Path(mount.root, "odd"))
        Path(mount.root, "file").write_bytes(b"content")
        assert Path(mount.path("file")).read_bytes() == b"content"
        assert mount.outcome["passthrough"]


def test_many_opens_share_one_backing_file(passing: ToyMount) -> None:
    Path(passing.root, "file").write_bytes(b"content")
    fds = [os.open(passing.path("file"), os.O_RDONLY) for _ in range(50)]
    assert {os.pread(fd, 7, 0) for fd in fds} == {b"content"}
    for fd in fds:
        os.close(fd)
    assert Path(passing.path("file")).read_bytes() == b"content"


def test_a_data_set_is_opened_without_a_word(tmp_path: Path) -> None:
    where = tmp_path / "root"
    where.mkdir()
    for number in range(50):
        (where / f"{number}").write_bytes(content(10_000 + number))
    with toy_mount(tmp_path, dataset=True, front={"ttl": 60.0}) as mount:
        assert mount.outcome["dataset"]
        assert not mount.outcome["passthrough"]

        def reads_of_an_epoch() -> int:
            before = mount.counts().get("READ", 0)
            for number in range(50):
                if Path(mount.path(f"{number}")).read_bytes() != content(10_000 + number):
                    pytest.fail(f"{number} has other bytes")
            return mount.counts()["READ"] - before

        assert reads_of_an_epoch() >= 50
        wait_for(lambda: reads_of_an_epoch() == 0, "the kernel keeps what was read, unless it needs the memory")
        assert len(os.listdir(mount.mountpoint)) == 50
        counts = mount.counts()
        assert counts["OPEN"] == 1, "the first is refused, and then the kernel knows"
        assert counts.get("OPENDIR", 0) <= 1
        assert "RELEASE" not in counts
        with pytest.raises(OSError, match="Read-only") as refused:
            Path(mount.path("new")).touch()
        assert refused.value.errno == errno.EROFS


def test_a_read_only_mount(tmp_path: Path) -> None:
    with toy_mount(tmp_path, read_only=True) as mount:
        Path(mount.root, "file").write_bytes(b"x")
        assert Path(mount.path("file")).read_bytes() == b"x"
        with pytest.raises(OSError, match="Read-only"):
            os.mkdir(mount.path("dir"))


def test_passthrough_can_be_turned_off(tmp_path: Path) -> None:
    with toy_mount(tmp_path, passthrough=False) as mount:
        assert not mount.outcome["passthrough"]
        assert "turned off" in mount.outcome["why"]
        Path(mount.root, "file").write_bytes(b"content")
        assert Path(mount.path("file")).read_bytes() == b"content"
        assert os.getxattr(mount.mountpoint, "user.refused") != b"[]", "the vfs was told"


def test_a_killed_caller_is_let_go(tmp_path: Path) -> None:
    """Even while the store does not answer."""
    with ExitStack() as started, toy_mount(tmp_path) as mount:
        waiting = start(started, "import os,sys; os.stat(sys.argv[1])", mount.path("held-lookup"))
        wait_for(mount.held)
        waiting.kill()
        assert ended(waiting) == -9
        assert mount.held(), "it was never answered"


def test_a_signal_with_a_handler_does_not_make_a_call_fail(tmp_path: Path) -> None:
    program = """
import ctypes, os, signal, sys
signal.signal(signal.SIGALRM, lambda *_: None)
signal.siginterrupt(signal.SIGALRM, True)
libc = ctypes.CDLL(None, use_errno=True)
fd = libc.open(sys.argv[1].encode(), 0)
assert fd >= 0, os.strerror(ctypes.get_errno())
assert os.read(fd, 10) == b"content"
"""
    with ExitStack() as started, toy_mount(tmp_path) as mount:
        Path(mount.root, "held-open").write_bytes(b"content")
        interrupted = start(started, program, mount.path("held-open"))
        wait_for(mount.held)
        interrupted.send_signal(signal.SIGALRM)
        wait_for(lambda: mount.counts().get("INTERRUPT", 0) >= 1)
        assert interrupted.poll() is None
        mount.let_go()
        assert ended(interrupted) == 0


def test_forgotten_nodes_can_be_looked_up_again(passing: ToyMount) -> None:
    for number in range(200):
        Path(passing.root, f"{number}").write_bytes(b"x")
    for number in range(200):
        assert Path(passing.path(f"{number}")).read_bytes() == b"x"
    forget_names(passing.mountpoint)
    wait_for(lambda: {"FORGET", "BATCH_FORGET"} & passing.counts().keys())
    wait_for(lambda: os.getxattr(passing.mountpoint, "user.lookups") == b"0", "as many are forgotten as were told")
    for number in range(200):
        assert Path(passing.path(f"{number}")).read_bytes() == b"x"


def forget_names(mountpoint: str) -> None:
    """Have the kernel forget what it knows of this mount, and no other: a remount does, also one that changes nothing.
    By the system call: ``mount -o remount`` looks for a program of the filesystem's first."""
    libc = ctypes.CDLL(None, use_errno=True)
    flags = ctypes.c_ulong(MS_REMOUNT | device.MS_NOSUID | device.MS_NODEV)
    if libc.mount(b"toy", os.fsencode(mountpoint), device.TYPE.encode(), flags, None):
        raise OSError(ctypes.get_errno(), "the mount was not remounted")
