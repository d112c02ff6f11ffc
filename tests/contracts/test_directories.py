"""Files in directories of this host: the contract of Files, and what only a disk with other writers can do."""

from __future__ import annotations

import errno
import hashlib
import os
import pwd
import resource
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from paddleflow.adapters.directories import DirectoryFiles, digests
from paddleflow.domain.errors import DiskFull, Invalid, NotFound, PaddleFlowError, Unavailable
from paddleflow.domain.filesystems import Filesystem
from paddleflow.ports.files import Wanted
from tests.contracts import samples
from tests.contracts.files_contract import FilesContract, MakeDirectory, Write

DEEP = 2_000
DIGEST_FILE = "paddleflow.adapters.directories.files.digest_file"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    path = tmp_path / "root"
    path.mkdir()
    return path


@pytest.fixture
def fs(root: Path) -> Filesystem:
    return samples.filesystem(type="local", sub_path=str(root))


@pytest.fixture
def files() -> DirectoryFiles:
    return DirectoryFiles()


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """Something beside the root that must never be read or lost."""
    path = tmp_path / "secret"
    path.mkdir()
    (path / "file").write_bytes(b"secret")
    return path


@pytest.fixture
def full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A disk with room for no more than four names; where we may not mount one, the kernel's answer is played."""
    directory = tmp_path / "small"
    directory.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64k,nr_inodes=4,mode=0700", "tmpfs", str(directory)]
    if os.geteuid() == 0 and subprocess.run(command, capture_output=True, check=False).returncode == 0:
        yield directory
        subprocess.run(["umount", "-l", str(directory)], check=True)
        return

    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "mkdir", refuse)
    yield directory


@contextmanager
def as_an_ordinary_user(*own: Path) -> Iterator[None]:
    """Root may do everything, so what is forbidden shows only to somebody else, who is given these paths."""
    if os.geteuid() != 0:
        yield
        return
    nobody = pwd.getpwnam("nobody").pw_uid
    for path in own:
        os.chown(path, nobody, -1)
    os.seteuid(nobody)
    try:
        yield
    finally:
        os.seteuid(0)


def everything(files: DirectoryFiles, fs: Filesystem, path: str) -> list[Callable[[], object]]:
    """Every call of the port on one path, to be refused or not one by one."""
    return [
        lambda: files.read(fs, path, 100),
        lambda: files.read_range(fs, path, 0, 100),
        lambda: files.entry(fs, path),
        lambda: list(files.walk(fs, path)),
        lambda: files.digest(fs, path),
        lambda: files.make_way(fs, path),
        lambda: files.remove(fs, path),
    ]


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


class TestDirectoryFiles(FilesContract):
    @pytest.fixture
    def files(self) -> DirectoryFiles:
        return DirectoryFiles()

    @pytest.fixture
    def fs(self, root: Path) -> Filesystem:
        return samples.filesystem(type="local", sub_path=str(root))

    @pytest.fixture
    def write(self, root: Path) -> Write:
        def write(path: str, content: bytes) -> None:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(content)

        return write

    @pytest.fixture
    def make_directory(self, root: Path) -> MakeDirectory:
        return lambda path: (root / path).mkdir(parents=True)


# Links


def test_no_call_goes_through_a_link(files: DirectoryFiles, fs: Filesystem, root: Path, secret: Path) -> None:
    (root / "away").symlink_to(secret)
    (root / "inside").mkdir()
    (root / "here").symlink_to("inside")
    for path in ("away/file", "away/none/none", "here/x"):
        for call in everything(files, fs, path):
            with pytest.raises(Invalid):
                call()
    assert (secret / "file").read_bytes() == b"secret"
    assert sorted(os.listdir(secret)) == ["file"]


def test_a_link_is_not_read_but_seen_and_removed(
    files: DirectoryFiles, fs: Filesystem, root: Path, secret: Path
) -> None:
    (root / "to-file").symlink_to(secret / "file")
    (root / "to-directory").symlink_to(secret)
    for name in ("to-file", "to-directory"):
        with pytest.raises(Invalid, match="link"):
            files.read(fs, name, 100)
        with pytest.raises(Invalid, match="link"):
            files.read_range(fs, name, 0, 100)
        entry = files.entry(fs, name)
        assert (entry.is_link, entry.is_directory, entry.size) == (True, False, 0)
    assert [entry.path for entry in files.walk(fs, "")] == ["", "to-directory", "to-file"]
    files.remove(fs, "to-file")
    files.make_way(fs, "to-directory")
    assert os.listdir(root) == []
    assert (secret / "file").read_bytes() == b"secret"


def test_a_link_counts_as_the_text_it_holds(files: DirectoryFiles, fs: Filesystem, root: Path, secret: Path) -> None:
    for name in ("one", "two"):
        (root / name).mkdir()
        (root / name / "link").symlink_to(secret / "file")
    assert files.digest(fs, "one") == files.digest(fs, "two")
    before = files.digest(fs, "one"), files.digest(fs, "one/link")
    (secret / "file").write_bytes(b"changed")
    assert (files.digest(fs, "one"), files.digest(fs, "one/link")) == before
    (root / "two" / "link").unlink()
    (root / "two" / "link").write_bytes(str(secret / "file").encode())
    assert files.digest(fs, "two") != before[0], "a file with the text of a link is not that link"


def test_links_in_a_tree_are_removed_and_what_they_name_is_not(
    files: DirectoryFiles, fs: Filesystem, root: Path, secret: Path
) -> None:
    (root / "tree/sub").mkdir(parents=True)
    (root / "tree/sub/away").symlink_to(secret)
    (root / "tree/file").symlink_to(secret / "file")
    (root / "tree/up").symlink_to("..")
    (root / "kept").write_bytes(b"1")
    files.remove(fs, "tree")
    assert os.listdir(root) == ["kept"]
    assert (secret / "file").read_bytes() == b"secret"


def test_the_root_itself_may_be_a_link(files: DirectoryFiles, root: Path, tmp_path: Path) -> None:
    (root / "x").write_bytes(b"1")
    (tmp_path / "alias").symlink_to(root)
    fs = samples.filesystem(type="local", sub_path=str(tmp_path / "alias"))
    assert files.read(fs, "x", 10) == b"1"


# Others who write meanwhile


def test_a_directory_swapped_for_a_link_is_not_entered_by_a_walk(
    files: DirectoryFiles, fs: Filesystem, root: Path, secret: Path
) -> None:
    (root / "a/b").mkdir(parents=True)
    (root / "a/b/c").write_bytes(b"1")
    walk = files.walk(fs, "")
    assert [next(walk).path for _ in range(3)] == ["", "a", "a/b"]
    # It has been told of, and is about to be entered.
    (root / "a/b").rename(root / "old")
    (root / "a/b").symlink_to(secret)
    with pytest.raises(Unavailable, match="changed"):
        next(walk)


def test_a_directory_moved_away_while_a_walk_is_in_it_ends_the_walk(
    files: DirectoryFiles, fs: Filesystem, root: Path, secret: Path
) -> None:
    (root / "a/b").mkdir(parents=True)
    (root / "a/b/c").write_bytes(b"1")
    (root / "a/z").write_bytes(b"1")
    walk = files.walk(fs, "")
    assert [next(walk).path for _ in range(4)][-1] == "a/b/c"
    (root / "a/b").rename(secret / "b")
    with pytest.raises(Unavailable, match="changed"):
        list(walk)


@pytest.mark.parametrize("call", ["digest", "remove", "make_way"])
def test_a_directory_swapped_for_a_link_is_not_entered_by_the_others(
    files: DirectoryFiles,
    fs: Filesystem,
    root: Path,
    secret: Path,
    monkeypatch: pytest.MonkeyPatch,
    call: str,
) -> None:
    (root / "a/b").mkdir(parents=True)
    (root / "a/b/c").write_bytes(b"1")
    really_open = os.open

    def swap_and_open(path: Any, flags: int, *rest: Any, **named: Any) -> int:
        """The other one is faster: between looking at a directory and opening it there is a link in its place."""
        if path == "b":
            (root / "a/b").rename(root / "old")
            (root / "a/b").symlink_to(secret)
        return really_open(path, flags, *rest, **named)

    monkeypatch.setattr(os, "open", swap_and_open)
    with pytest.raises(Unavailable, match="changed"):
        getattr(files, call)(fs, "a")
    assert (secret / "file").read_bytes() == b"secret"
    assert (root / "old/c").exists()


def test_a_file_swapped_for_a_link_is_not_read(
    files: DirectoryFiles, fs: Filesystem, root: Path, secret: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    really_open = os.open

    def swap_and_open(path: Any, flags: int, *rest: Any, **named: Any) -> int:
        if path == "file":
            (root / "file").unlink(missing_ok=True)
            (root / "file").symlink_to(secret / "file")
        return really_open(path, flags, *rest, **named)

    monkeypatch.setattr(os, "open", swap_and_open)
    for call in everything(files, fs, "file")[:2] + everything(files, fs, "file")[4:5]:
        (root / "file").unlink(missing_ok=True)
        (root / "file").write_bytes(b"harmless")
        with pytest.raises(Invalid):
            call()


def test_a_tree_is_removed_while_somebody_writes_into_it_or_that_is_told(
    files: DirectoryFiles, fs: Filesystem, root: Path
) -> None:
    finished = threading.Event()

    def write() -> None:
        n = 0
        while not finished.is_set():
            n += 1
            try:
                (root / "tree/sub").mkdir(parents=True, exist_ok=True)
                (root / "tree/sub" / f"{n % 50}").write_bytes(b"1")
            except (FileNotFoundError, FileExistsError):
                # It was removed in between, as it should be; mkdir may see it exist and, looking again, gone.
                continue

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(30):
            try:
                files.remove(fs, "tree")
            except Unavailable as error:
                assert "tree" in error.message  # noqa: PT017
    finally:
        finished.set()
        writer.join()
    files.remove(fs, "tree")
    assert os.listdir(root) == []


# What is neither file nor directory


def test_pipes_and_sockets_are_refused_without_waiting(files: DirectoryFiles, fs: Filesystem, root: Path) -> None:
    (root / "d").mkdir()
    os.mkfifo(root / "d/pipe")
    for path in ("d/pipe", "d"):
        with pytest.raises(Invalid, match="neither a file nor a directory"):
            files.digest(fs, path)
    with pytest.raises(Invalid, match="neither a file nor a directory"):
        files.read(fs, "d/pipe", 10)
    assert [entry.path for entry in files.walk(fs, "d")] == ["d", "d/pipe"]
    files.remove(fs, "d")
    assert os.listdir(root) == []


def test_a_file_swapped_for_a_pipe_is_refused_without_waiting(
    files: DirectoryFiles, fs: Filesystem, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "file").write_bytes(b"1")
    really_open = os.open

    def swap_and_open(path: Any, flags: int, *rest: Any, **named: Any) -> int:
        if path == "file":
            (root / "file").unlink()
            os.mkfifo(root / "file")
        return really_open(path, flags, *rest, **named)

    monkeypatch.setattr(os, "open", swap_and_open)
    before = open_descriptors()
    with pytest.raises(Invalid, match="neither"):
        files.read(fs, "file", 10)
    assert open_descriptors() == before


def test_a_device_is_refused(files: DirectoryFiles) -> None:
    fs = samples.filesystem(type="local", sub_path="/dev")
    with pytest.raises(Invalid, match="neither"):
        files.read(fs, "zero", 10)


# Digests remembered


def test_a_digest_is_remembered_once_its_file_is_old_enough(
    fs: Filesystem, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[object] = []

    def counting(fd: int, is_wanted: Wanted) -> bytes:
        read.append(fd)
        return digests.digest_file(fd, is_wanted)

    monkeypatch.setattr(DIGEST_FILE, counting)
    (root / "file").write_bytes(b"1111")
    written = os.stat(root / "file").st_ctime_ns
    now = [written + 1_900_000_000]
    files = DirectoryFiles(now_ns=lambda: now[0])
    one = files.digest(fs, "file")
    assert files.digest(fs, "file") == one
    assert len(read) == 2, "a young file was remembered"
    now[0] = written - 5_000_000_000
    files.digest(fs, "file")
    files.digest(fs, "file")
    assert len(read) == 4, "a file from the future was remembered"
    now[0] = written + 2_000_000_000
    for _ in range(3):
        assert files.digest(fs, "file") == one
        files.digest(fs, "")
    assert len(read) == 5
    os.utime(root / "file", ns=(0, 0))
    assert files.digest(fs, "file") == one
    assert len(read) == 6, "a file with other times was not read again"


def test_a_file_that_changes_while_it_is_read_is_not_remembered(
    fs: Filesystem, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rewriting(fd: int, is_wanted: Wanted) -> bytes:
        digest = digests.digest_file(fd, is_wanted)
        (root / "file").write_bytes(b"22222")
        return digest

    (root / "file").write_bytes(b"1111")
    files = DirectoryFiles(now_ns=lambda: 2**62)
    with monkeypatch.context() as patch:
        patch.setattr(DIGEST_FILE, rewriting)
        files.digest(fs, "file")
    assert files.digest(fs, "file") == hashlib.sha256(b"22222").hexdigest()


def test_only_so_many_digests_are_remembered(fs: Filesystem, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digests, "_REMEMBERED", 3)
    files = DirectoryFiles(now_ns=lambda: 2**62)
    for n in range(10):
        (root / f"{n}").write_bytes(b"%d" % n)
    files.digest(fs, "")
    assert len(files._digests._known) == 3
    assert files.digest(fs, "0") == hashlib.sha256(b"0").hexdigest()


# Size


def test_ten_thousand_files(files: DirectoryFiles, fs: Filesystem, root: Path) -> None:
    for n in range(100):
        directory = root / f"many/{n:02}"
        directory.mkdir(parents=True)
        for m in range(100):
            (directory / f"{m:02}").write_bytes(b"%d" % m)
    before = open_descriptors()
    walked = [entry.path for entry in files.walk(fs, "many")]
    assert len(walked) == 10_101
    assert walked == sorted(walked)
    one = files.digest(fs, "many")
    assert files.digest(fs, "many/03") == files.digest(fs, "many/97")
    (root / "many/50/50").write_bytes(b"x")
    assert files.digest(fs, "many") != one
    files.remove(fs, "many")
    assert os.listdir(root) == []
    assert open_descriptors() == before


def test_a_very_deep_tree(files: DirectoryFiles, fs: Filesystem, root: Path) -> None:
    """Deeper than a path may be long, than the stack goes, and than descriptors may be open."""
    name = "directory"
    fd = os.open(root, os.O_PATH)
    for _ in range(DEEP):
        os.mkdir(name, dir_fd=fd)
        below = os.open(name, os.O_PATH, dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(os.open("leaf", os.O_CREAT | os.O_WRONLY, dir_fd=fd))
    os.close(fd)
    whole = "/".join([name] * DEEP)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 512), hard))
    try:
        assert sum(1 for _ in files.walk(fs, "")) == DEEP + 2
        one = files.digest(fs, name)
        assert files.read(fs, f"{whole}/leaf", 10) == b""
        files.make_way(fs, f"{whole}/out/put")
        assert files.entry(fs, f"{whole}/out").is_directory
        assert files.digest(fs, name) != one
        files.remove(fs, f"{whole}/out")
        assert files.digest(fs, name) == one
        files.remove(fs, name)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert os.listdir(root) == []


def test_a_walk_given_up_closes_what_it_opened(files: DirectoryFiles, fs: Filesystem, root: Path) -> None:
    (root / "a/b/c").mkdir(parents=True)
    before = open_descriptors()
    walk = files.walk(fs, "")
    next(walk)
    next(walk)
    next(walk)
    assert open_descriptors() > before
    del walk
    assert open_descriptors() == before
    for call in [*everything(files, fs, "none/x")[:5], *everything(files, fs, "a")[:2]]:
        with pytest.raises(PaddleFlowError):
            call()
    assert open_descriptors() == before


# Errors


def test_a_missing_root_is_unavailable_and_says_what_to_do(files: DirectoryFiles, fs: Filesystem, root: Path) -> None:
    root.rmdir()
    for call in everything(files, fs, "a/b"):
        with pytest.raises(Unavailable, match=r"\[data\].*make or mount"):
            call()
    assert not root.exists()
    root.write_bytes(b"a file")
    with pytest.raises(Unavailable):
        files.make_way(fs, "a")


@pytest.mark.parametrize("sub_path", ["", "relative", "a\0b", "/a\0b"])
def test_a_root_that_is_no_absolute_path_is_invalid(files: DirectoryFiles, sub_path: str) -> None:
    with pytest.raises(Invalid, match="absolute"):
        files.read(samples.filesystem(type="local", sub_path=sub_path), "x", 10)


def test_a_full_disk_is_told_as_such(files: DirectoryFiles, full_disk: Path) -> None:
    fs = samples.filesystem(type="local", sub_path=str(full_disk))
    with pytest.raises(DiskFull, match="a/b/c/d/e"):
        files.make_way(fs, "a/b/c/d/e")


def test_names_too_long_or_impossible_are_invalid(files: DirectoryFiles, fs: Filesystem) -> None:
    for path in ("n" * 300, "a\ud800"):
        with pytest.raises(Invalid):
            files.read(fs, path, 10)
        with pytest.raises(Invalid):
            files.make_way(fs, f"{path}/x")


def test_a_name_that_is_not_text_is_still_a_file(files: DirectoryFiles, fs: Filesystem, root: Path) -> None:
    (root / os.fsdecode(b"caf\xe9")).write_bytes(b"1")
    (entry,) = list(files.walk(fs, ""))[1:]
    assert files.read(fs, entry.path, 10) == b"1"
    assert files.digest(fs, "") != files.digest(fs, entry.path)
    files.remove(fs, entry.path)
    assert os.listdir(root) == []


@pytest.mark.parametrize(
    ("ns", "expected"),
    [(0, datetime(1970, 1, 1, tzinfo=UTC)), (-(10**9), datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC))],
)
def test_times_of_files(files: DirectoryFiles, fs: Filesystem, root: Path, ns: int, expected: datetime) -> None:
    (root / "x").write_bytes(b"")
    os.utime(root / "x", ns=(ns, ns))
    assert files.entry(fs, "x").modified_at == expected


def test_what_the_server_may_not_touch_is_named(files: DirectoryFiles) -> None:
    # Not below the directory of the test, which others may not enter.
    with tempfile.TemporaryDirectory(prefix="pf-directories-") as place:
        root = Path(place)
        fs = samples.filesystem(type="local", sub_path=place)
        (root / "a").mkdir()
        (root / "a/file").write_bytes(b"1")
        (root / "a/closed").mkdir(mode=0)
        (root / "a/hidden").write_bytes(b"1")
        (root / "a/hidden").chmod(0)
        with as_an_ordinary_user(root, root / "a", root / "a/closed"):
            (root / "a").chmod(0o555)
            with pytest.raises(Invalid, match=r"no right to use \[a/closed\] on filesystem \[data\]"):
                files.digest(fs, "")
            for path in ("a/closed/x", "a/hidden"):
                with pytest.raises(Invalid, match="no right"):
                    files.read(fs, path, 10)
            with pytest.raises(Invalid, match=r"\[a/file\]"):
                files.remove(fs, "a/file")
            with pytest.raises(Invalid, match="no right"):
                files.make_way(fs, "a/new/x")
            (root / "a").chmod(0o755)
            (root / "a/closed").chmod(0o755)


def test_nothing_is_not_found_by_its_path(files: DirectoryFiles, fs: Filesystem) -> None:
    with pytest.raises(NotFound) as caught:
        files.read(fs, "models/none", 10)
    assert caught.value.details == {"kind": "file", "id": "models/none"}


def test_a_name_that_is_no_text_can_be_told(files: DirectoryFiles, fs: Filesystem, root: Path) -> None:
    os.mkfifo(os.fsencode(root) + b"/pipe\xff")
    with pytest.raises(Invalid) as caught:
        files.digest(fs, "")
    assert r"[pipe\xff]" in caught.value.message
    with pytest.raises(NotFound, match=r"none\\xff"):
        files.entry(fs, os.fsdecode(b"none\xff"))


def test_directories_that_their_owner_has_locked_are_removed(files: DirectoryFiles, secret: Path) -> None:
    """Programs leave read-only trees behind; a deleted run must not stay for ever because of them."""
    with tempfile.TemporaryDirectory(prefix="pf-directories-") as place:
        root = Path(place)
        (root / "tree/hidden/inner").mkdir(parents=True)
        (root / "tree/hidden/inner/file").write_bytes(b"1")
        (root / "tree/out").symlink_to(secret.parent)
        tree = [root / "tree/hidden/inner", root / "tree/hidden", root / "tree"]
        with as_an_ordinary_user(root, *tree):
            for path, mode in zip(tree, (0o555, 0, 0o500), strict=True):
                path.chmod(mode)
            files.remove(samples.filesystem(type="local", sub_path=place), "tree")
            assert os.listdir(root) == []
    assert secret.exists()


def test_a_digest_that_nobody_wants_any_more_is_given_up(files: DirectoryFiles, fs: Filesystem, root: Path) -> None:
    (root / "d").mkdir()
    with (root / "d/huge").open("wb") as file:
        file.truncate(1 << 40)
    asked = 0

    def is_wanted() -> bool:
        nonlocal asked
        asked += 1
        return asked < 3

    before = open_descriptors()
    for path in ("d/huge", "d"):
        asked = 0
        with pytest.raises(Unavailable, match="nobody"):
            files.digest(fs, path, is_wanted)
        assert asked == 3
    assert open_descriptors() == before


def test_a_removal_that_nobody_wants_any_more_is_given_up_and_can_be_taken_up(
    files: DirectoryFiles, fs: Filesystem, root: Path
) -> None:
    for number in range(10):
        (root / "d" / str(number)).mkdir(parents=True)
    asked = 0

    def is_wanted() -> bool:
        nonlocal asked
        asked += 1
        return asked < 6

    with pytest.raises(Unavailable, match="in part"):
        files.remove(fs, "d", is_wanted)
    assert 0 < len(os.listdir(root / "d")) < 10
    files.remove(fs, "d")
    assert os.listdir(root) == []
