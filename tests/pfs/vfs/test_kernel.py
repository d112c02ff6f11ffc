"""What the kernel itself makes of it: the same rules in a real mount, where breaking one is EIO in a program."""

from __future__ import annotations

import errno
import mmap
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddleflow.wiring.stores import StorePlan
from tests.pfs.mounts import RealMount, mounted, why_no_mounts
from tests.pfs.operations import (
    Append,
    Close,
    FStat,
    FSync,
    FTruncate,
    ListDir,
    MkDir,
    Op,
    Open,
    Read,
    RealDirectory,
    Rename,
    Stat,
    Truncate,
    Unlink,
    Write,
    apply,
    close_all,
    tree_of,
)

pytestmark = [pytest.mark.timeout(300), pytest.mark.skipif(bool(why_no_mounts()), reason=why_no_mounts())]

MIB = 1 << 20


@pytest.fixture(params=[True, False], ids=["passthrough", "without"])
def mount(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RealMount]:
    (tmp_path / "store").mkdir()
    plan = StorePlan(type="local", root=str(tmp_path / "store"))
    with mounted(tmp_path, plan, passthrough=request.param, meta_ttl=0.0) as made:
        yield made


def store(mount: RealMount) -> Path:
    return mount.path.parent / "store"


def test_a_writer_comes_while_somebody_reads(mount: RealMount) -> None:
    path = mount.path / "f"
    path.write_bytes(b"content")
    with path.open("rb", buffering=0) as reader:
        assert reader.read(3) == b"con"
        with path.open("r+b", buffering=0) as writer:
            writer.write(b"CON")
            assert path.read_bytes() == b"CONtent"
        os.truncate(path, 4)
        assert reader.read(1) == b"t"
    assert path.read_bytes() == (store(mount) / "f").read_bytes() == b"CONt"


def test_the_store_changes_while_somebody_reads(mount: RealMount) -> None:
    path = mount.path / "f"
    path.write_bytes(b"first")
    with path.open("rb", buffering=0) as reader:
        (store(mount) / "new").write_bytes(b"second one")
        (store(mount) / "new").rename(store(mount) / "f")
        assert path.read_bytes() == b"second one"
        assert reader.read() == b"first"


def test_a_large_file_is_mapped_while_others_open_it(mount: RealMount) -> None:
    """Mapped while it is not whole yet; then it is whole, and others get it passed through."""
    content = os.urandom(6 * MIB)
    (store(mount) / "f").write_bytes(content)
    path = mount.path / "f"
    with path.open("rb") as first, mmap.mmap(first.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        assert mapped[:100] == content[:100]
        for _ in range(5):
            assert path.read_bytes() == content
        assert mapped[-100:] == content[-100:]
        with path.open("rb") as second, mmap.mmap(second.fileno(), 0, access=mmap.ACCESS_READ) as other:
            assert other[3 * MIB : 3 * MIB + 10] == content[3 * MIB : 3 * MIB + 10]


def test_writing_through_memory(mount: RealMount) -> None:
    path = mount.path / "f"
    path.write_bytes(b"a" * 8192)
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        mapped[:5] = b"first"
        file.close()
        assert (store(mount) / "f").read_bytes()[:5] == b"first"
        mapped[:5] = b"later"
    # The last mapping is gone: the kernel tells us in its own time.
    fd = os.open(path, os.O_RDWR)
    os.fsync(fd)
    os.close(fd)
    assert path.read_bytes()[:5] == b"later"


def test_two_programs_append(mount: RealMount) -> None:
    path = mount.path / "log"
    fds = [os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT) for _ in range(2)]
    for number in range(10):
        os.write(fds[number % 2], f"{number}\n".encode())
    for fd in fds:
        os.close(fd)
    assert (store(mount) / "log").read_text() == "".join(f"{number}\n" for number in range(10))


def test_deleted_while_open(mount: RealMount) -> None:
    path = mount.path / "f"
    fd = os.open(path, os.O_RDWR | os.O_CREAT)
    os.write(fd, b"scratch")
    path.unlink()
    mount.kill_front()
    assert os.pread(fd, 100, 0) == b"scratch"
    assert os.fstat(fd).st_size == 7
    again = os.open(f"/proc/self/fd/{fd}", os.O_RDONLY)
    assert os.read(again, 100) == b"scratch"
    os.close(again)
    os.close(fd)
    assert list(store(mount).iterdir()) == []


def test_modes_owners_and_links(mount: RealMount) -> None:
    path = mount.path / "f"
    fd = os.open(path, os.O_WRONLY | os.O_CREAT, 0o751)
    os.fchmod(fd, 0o740)
    os.close(fd)
    os.chown(path, 1234, 2345)
    os.utime(path, ns=(10**18, 10**18))
    os.symlink("f", mount.path / "l")
    held = os.lstat(store(mount) / "f")
    assert (stat.S_IMODE(held.st_mode), held.st_uid, held.st_gid, held.st_mtime_ns) == (0o740, 1234, 2345, 10**18)
    assert os.readlink(store(mount) / "l") == "f"
    with pytest.raises(OSError) as refused:
        os.link(path, mount.path / "hard")
    assert refused.value.errno == errno.EPERM


SCRIPT: list[Op] = [
    MkDir("d"),
    Open(0, "a", os.O_RDWR | os.O_CREAT),
    Write(0, 0, b"0123456789"),
    FStat(0),
    Rename("a", "d/b"),
    Write(0, 5, b"abc"),
    Read(0, 0, 100),
    Stat("d/b"),
    Stat("a"),
    FTruncate(0, 7),
    FSync(0),
    Open(1, "d/b", os.O_RDWR),
    Write(1, 3, b"XY"),
    Read(0, 0, 100),
    Close(0),
    Read(1, 0, 100),
    Unlink("d/b"),
    Read(1, 0, 100),
    FStat(1),
    Open(2, "d/b", os.O_RDWR | os.O_CREAT | os.O_EXCL),
    Write(2, 0, b"new"),
    Close(1),
    Close(2),
    Open(0, "d/b", os.O_WRONLY | os.O_APPEND),
    Append(0, b" and more"),
    Close(0),
    Truncate("d/b", 5),
    ListDir("d"),
    Stat("d/b"),
    Rename("d", "e"),
    ListDir(""),
    Rename("e", "e/x"),
    MkDir("d"),
    Rename("e", "d"),
    ListDir("d"),
]


def test_one_story_as_on_a_plain_directory(mount: RealMount, tmp_path: Path) -> None:
    os.umask(0o022)
    (tmp_path / "plain").mkdir()
    plain, real = RealDirectory(str(tmp_path / "plain")), RealDirectory(str(mount.path))
    plain_places: dict[int, int] = {}
    places: dict[int, int] = {}
    for number, op in enumerate(SCRIPT):
        assert apply(real, op, places) == apply(plain, op, plain_places), (number, op)
        if number % 9 == 8:
            mount.kill_front()
    close_all(real, places)
    close_all(plain, plain_places)
    assert tree_of(real) == tree_of(plain)
