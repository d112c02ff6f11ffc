"""What single calls do and which errors they give: each case runs on a plain directory and in a mount, on a store that
holds everything and on object storage, and must come out the same. What the page on semantics says is different, is
listed as different."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import mmap
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.pfs.mounted.places import Place
from tests.pfs.pages import examples_in, run_example
from tests.pfs.test_semantics_page import PAGE

pytestmark = pytest.mark.timeout(300)

Case = Callable[[Path], Any]
CASES: dict[str, Case] = {}
LONG = "n" * 255


def case(do: Case) -> Case:
    CASES[do.__name__.removeprefix("_")] = do
    return do


def opening(name: str, flags: int) -> Case:
    """``file`` has content, ``dir`` is a directory with ``inner`` in it, ``absent`` is not there."""

    def do(at: Path) -> Any:
        fd = os.open(at / name, flags, 0o640)
        try:
            return os.fstat(fd).st_size, stat.S_IMODE(os.fstat(fd).st_mode)
        finally:
            os.close(fd)

    return do


for subject in ("file", "dir", "absent", "file/below", "absent/below", "dir/inner", "dir/../file", LONG, f"{LONG}n"):
    for label, flags in {
        "read": os.O_RDONLY,
        "write": os.O_WRONLY,
        "create": os.O_RDWR | os.O_CREAT,
        "exclusive": os.O_WRONLY | os.O_CREAT | os.O_EXCL,
        "truncate": os.O_WRONLY | os.O_TRUNC,
        "read-truncate": os.O_RDONLY | os.O_TRUNC,
        "append": os.O_WRONLY | os.O_APPEND | os.O_CREAT,
        "directory": os.O_RDONLY | os.O_DIRECTORY,
        "path": os.O_PATH,
    }.items():
        CASES[f"open {label} {subject if len(subject) < 99 else len(subject)}"] = opening(subject, flags)

TWO_NAMES: dict[str, Callable[[str, str], None]] = {
    "rename": os.rename,
    "link to it": lambda old, new: os.symlink(os.path.basename(old), new),
}


def with_two(act: Callable[[str, str], None], old: str, new: str) -> Case:
    return lambda at: act(f"{at}/{old}", f"{at}/{new}")


def with_one(act: Callable[[str], Any], name: str) -> Case:
    return lambda at: act(f"{at}/{name}")


OLD = ("file", "dir", "empty", "absent", "file/below", ".")
NEW = ("file", "other", "dir", "empty", "dir/inner", "dir/new", "absent/new", "file/new", f"{LONG}n", ".")
for call, act in TWO_NAMES.items():
    for old in OLD:
        for new in NEW:
            CASES[f"{call} {old} {new[:20]}"] = with_two(act, old, new)

ONE_NAME: dict[str, Callable[[str], Any]] = {
    "mkdir": os.mkdir,
    "rmdir": os.rmdir,
    "unlink": os.unlink,
    "readlink": os.readlink,
    "truncate to 3": lambda path: os.truncate(path, 3),
    "truncate to 99": lambda path: os.truncate(path, 99),
    "truncate to -1": lambda path: os.truncate(path, -1),
    "chmod": lambda path: os.chmod(path, 0o711),
    "chown": lambda path: os.chown(path, 7, 8),
    "utimens": lambda path: os.utime(path, ns=(10**18, 10**18 + 5)),
    "listdir": lambda path: sorted(os.listdir(path)),
    "access": lambda path: os.access(path, os.R_OK | os.W_OK | os.X_OK),
    "stat": lambda path: os.lstat(path).st_mode,
    "getxattr": lambda path: os.getxattr(path, "user.absent"),
}
NAMES = ("file", "dir", "empty", "absent", "dir/inner", "file/below", f"{LONG}n", "a" * 100 + "/b", "dir/.", ".")
for call, one in ONE_NAME.items():
    for name in NAMES:
        CASES[f"{call} {name[:20]} {len(name)}"] = with_one(one, name)


@case
def _too_many_links(at: Path) -> Any:
    os.symlink("loop", at / "loop")
    return (at / "loop").read_bytes()


@case
def _link_is_not_followed(at: Path) -> Any:
    os.symlink("file", at / "way")
    return os.open(at / "way", os.O_RDONLY | os.O_NOFOLLOW)


@case
def _link_leads_to_a_file(at: Path) -> Any:
    os.symlink("dir", at / "way")
    os.symlink("way/inner", at / "further")
    return (at / "further").read_bytes(), os.lstat(at / "way").st_size, os.readlink(at / "further")


@case
def _link_with_a_long_target(at: Path) -> Any:
    os.symlink("t" * 4000, at / "way")
    return len(os.readlink(at / "way"))


@case
def _a_path_that_is_too_long(at: Path) -> Any:
    return os.stat(f"{at}/" + "d/" * 2100)


@case
def _writing_to_what_is_open_for_reading(at: Path) -> Any:
    fd = os.open(at / "file", os.O_RDONLY)
    try:
        return os.write(fd, b"x")
    finally:
        os.close(fd)


@case
def _reading_what_is_open_for_writing(at: Path) -> Any:
    fd = os.open(at / "file", os.O_WRONLY)
    try:
        return os.read(fd, 1)
    finally:
        os.close(fd)


@case
def _reading_a_directory(at: Path) -> Any:
    fd = os.open(at / "dir", os.O_RDONLY)
    try:
        return os.read(fd, 1)
    finally:
        os.close(fd)


@case
def _a_hole_reads_as_zeros(at: Path) -> Any:
    with open(at / "new", "w+b") as file:
        file.seek(100_000)
        file.write(b"end")
        file.seek(0)
        content = file.read()
    return content == (at / "new").read_bytes(), len(content), content.count(0)


@case
def _seeking_to_data_and_holes(at: Path) -> Any:
    with open(at / "file", "rb") as file:
        return file.seek(0, os.SEEK_DATA), file.seek(0, os.SEEK_HOLE)


@case
def _appending_goes_to_the_end(at: Path) -> Any:
    one, two = (os.open(at / "file", os.O_WRONLY | os.O_APPEND) for _ in range(2))
    for turn in range(4):
        os.write(one if turn % 2 else two, b"%d" % turn)
    os.close(one)
    os.close(two)
    return (at / "file").read_bytes()


@case
def _what_is_deleted_while_open(at: Path) -> Any:
    with open(at / "file", "r+b") as file:
        os.unlink(at / "file")
        before = file.read()
        file.write(b" more")
        file.flush()
        file.seek(0)
        return before, file.read(), os.fstat(file.fileno()).st_nlink, (at / "file").exists()


@case
def _what_is_replaced_while_open(at: Path) -> Any:
    (at / "other").write_bytes(b"another")
    with open(at / "file", "rb") as file:
        os.rename(at / "other", at / "file")
        return file.read(), (at / "file").read_bytes(), (at / "other").exists()


@case
def _what_is_renamed_while_written(at: Path) -> Any:
    with open(at / "new", "wb") as file:
        file.write(b"one")
        file.flush()
        os.rename(at / "new", at / "dir" / "moved")
        file.write(b"two")
    return (at / "dir" / "moved").read_bytes(), (at / "new").exists()


@case
def _its_directory_is_renamed_while_written(at: Path) -> Any:
    with open(at / "dir" / "new", "wb") as file:
        file.write(b"one")
        file.flush()
        os.rename(at / "dir", at / "moved")
        file.write(b"two")
    return (at / "moved" / "new").read_bytes(), sorted(os.listdir(at / "moved"))


@case
def _a_directory_into_itself(at: Path) -> Any:
    os.rename(at / "dir", at / "dir" / "below")


@case
def _a_directory_with_a_file_being_made_is_not_empty(at: Path) -> Any:
    with open(at / "empty" / "new", "wb"):
        os.rmdir(at / "empty")


@case
def _a_working_directory_that_is_gone(at: Path) -> Any:
    fd = os.open(at / "empty", os.O_RDONLY)
    os.rmdir(at / "empty")
    try:
        return os.open("new", os.O_CREAT | os.O_WRONLY, dir_fd=fd)
    finally:
        os.close(fd)


@case
def _mapped_memory_is_written(at: Path) -> Any:
    with open(at / "file", "r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        mapped[:4] = b"MMAP"
        mapped.flush()
    return (at / "file").read_bytes()


@case
def _mapped_memory_after_the_file_was_closed(at: Path) -> Any:
    with open(at / "file", "r+b") as file:
        mapped = mmap.mmap(file.fileno(), 0)
    mapped[:4] = b"LATE"
    mapped.close()
    return (at / "file").read_bytes()


@case
def _locks_keep_others_out(at: Path) -> Any:
    with open(at / "file", "rb") as one, open(at / "file", "rb") as two:
        fcntl.flock(one, fcntl.LOCK_EX)
        fcntl.flock(two, fcntl.LOCK_EX | fcntl.LOCK_NB)


@case
def _room_is_made(at: Path) -> Any:
    with open(at / "file", "r+b") as file:
        os.posix_fallocate(file.fileno(), 0, 5000)
        return os.fstat(file.fileno()).st_size


@case
def _bytes_that_are_no_text_in_a_name(at: Path) -> Any:
    (at / os.fsdecode(b"caf\xe9")).mkdir()
    return sorted(os.listdir(os.fsencode(at)))


@case
def _names_that_need_care(at: Path) -> Any:
    names = ["a b", "a%20b", "a+b", "ü", "a\nb", "#", "?x=1", "a\\b", "~", "-", "…", "a'b\"c"]
    for name in names:
        (at / "dir" / name).write_text(name)
    return {name: (at / "dir" / name).read_text() for name in os.listdir(at / "dir") if name != "inner"}


@case
def _times_are_shown_as_set(at: Path) -> Any:
    os.utime(at / "file", ns=(1_234_567_890_123_456_789, 1_134_567_890_987_654_321))
    return os.stat(at / "file").st_mtime_ns


@case
def _writing_moves_the_time(at: Path) -> Any:
    os.utime(at / "file", (1, 1))
    with open(at / "file", "ab") as file:
        file.write(b"x")
    return os.stat(at / "file").st_mtime > 1_000_000


@case
def _noreplace(at: Path) -> Any:
    return renameat2(at / "file", at / "dir", 1)


def renameat2(old: Path, new: Path, flags: int) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(-100, os.fsencode(old), -100, os.fsencode(new), flags):
        raise OSError(ctypes.get_errno(), "renameat2")
    return 0


def new_in(parent: Path) -> Path:
    folder = parent / str(len(os.listdir(parent)))
    folder.mkdir()
    return folder


class Ground:
    """Folders with the same few files in them. One that a case left as it was, is used again."""

    def __init__(self, fresh: Callable[[], Path]) -> None:
        self._fresh = fresh
        self._at: Path | None = None
        self._as_made: list[Any] = []

    def try_out(self, do: Case) -> tuple[Any, list[Any]]:
        if self._at is None:
            self._at = self._fresh()
            furnish(self._at)
            self._as_made = shown(self._at)
        came, after = outcome(do, self._at)
        if after != self._as_made:
            self._at = None
        return came, after


def furnish(at: Path) -> None:
    (at / "file").write_bytes(b"content of the file")
    (at / "dir").mkdir()
    (at / "dir" / "inner").write_bytes(b"inner")
    (at / "empty").mkdir()


def outcome(do: Case, at: Path) -> tuple[Any, list[Any]]:
    """What came of it, and what is there afterwards."""
    try:
        came: Any = do(at)
    except OSError as error:
        came = errno.errorcode[error.errno or 0]
    return came, shown(at)


def shown(at: Path) -> list[Any]:
    found: list[Any] = []
    for folder, directories, files in os.walk(at):
        for name in sorted(directories + files):
            path = Path(folder, name)
            status = path.lstat()
            looks: tuple[Any, ...] = (str(path.relative_to(at)), status.st_mode, status.st_uid, status.st_gid)
            if stat.S_ISREG(status.st_mode):
                looks += (path.read_bytes(),)
            found.append(looks)
    return sorted(found)


NEED_LINKS = ("link to it", "too_many_links", "link_")
NOT_IN_OBJECTS = ("bytes_that_are_no_text_in_a_name", "getxattr")


def is_for(name: str, place: Place) -> bool:
    return place.holds_links or not (name.startswith(NEED_LINKS + NOT_IN_OBJECTS))


def test_every_call_does_what_it_does_on_a_disk(place: Place, tmp_path: Path) -> None:
    different: list[str] = []
    disk, mount = Ground(lambda: new_in(tmp_path)), Ground(place.fresh)
    for name, do in CASES.items():
        if not is_for(name, place):
            continue
        expected, got = disk.try_out(do), mount.try_out(do)
        if got != expected:
            different.append(f"{name}: {got} instead of {expected}")
    assert not different, "\n".join(different)


REFUSED: dict[str, tuple[Case, str]] = {
    "hard link": (lambda at: os.link(at / "file", at / "hard"), "EPERM"),
    "pipe": (lambda at: os.mkfifo(at / "pipe"), "EPERM"),
    "device": (lambda at: os.mknod(at / "null", stat.S_IFCHR | 0o666, os.makedev(1, 3)), "EPERM"),
    "exchange": (lambda at: renameat2(at / "file", at / "dir", 2), "EINVAL"),
}
REFUSED_BY_OBJECTS: dict[str, tuple[Case, str]] = {
    "symbolic link": (lambda at: os.symlink("file", at / "way"), "ENOTSUP"),
    "attribute": (lambda at: os.setxattr(at / "file", "user.a", b"1"), "ENOTSUP"),
    "attribute read": (lambda at: os.getxattr(at / "file", "user.a"), "ENOTSUP"),
}


def test_what_no_store_can_keep_is_refused(place: Place) -> None:
    refused = REFUSED if place.holds_links else REFUSED | REFUSED_BY_OBJECTS
    ground = Ground(place.fresh)
    came = {name: ground.try_out(do) for name, (do, _) in refused.items()}
    assert {name: each[0] for name, each in came.items()} == {name: wanted for name, (_, wanted) in refused.items()}
    assert len({str(each[1]) for each in came.values()}) == 1, "something was left behind"


def test_extended_attributes_are_held(on_local: Place) -> None:
    at = on_local.fresh()
    (at / "file").write_bytes(b"x")
    os.setxattr(at / "file", "user.colour", b"red")
    with pytest.raises(FileExistsError):
        os.setxattr(at / "file", "user.colour", b"blue", os.XATTR_CREATE)
    assert os.listxattr(at / "file") == ["user.colour"]
    with open(at / "file", "ab") as file:
        file.write(b"y")
    assert os.getxattr(at / "file", "user.colour") == b"red"
    os.removexattr(at / "file", "user.colour")
    assert os.listxattr(at / "file") == []


def test_object_storage_does_what_the_page_says(on_s3: Place) -> None:
    at = on_s3.fresh()
    for example in examples_in(PAGE.read_text()):
        if "ln -s" not in example.command:
            assert run_example(example, at) == example.output, example.command


def test_the_cases_can_fail(tmp_path: Path) -> None:
    ground = Ground(lambda: new_in(tmp_path))
    assert len(CASES) > 250
    assert ground.try_out(CASES["noreplace"]) != ground.try_out(CASES["unlink file 4"])
