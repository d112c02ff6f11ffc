"""Writing: whole or not at all, in every mode."""

from __future__ import annotations

import gc
import io
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from paddleflow.adapters.objects.memory import MemoryStore
from paddleflow.domain.errors import Duplicate, NotFound, Stale, Unavailable
from paddleflow.files import Files
from tests.files.conftest import Storage, Writes

MIB = 1 << 20


@pytest.fixture(autouse=True)
def staging(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where files are staged; empty again after every test."""
    place = tmp_path / "staging"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    yield place
    assert list(place.iterdir()) == []


@pytest.mark.parametrize(
    ("mode", "start", "written", "ends"),
    [
        ("wb", None, b"new", b"new"),
        ("wb", b"old content", b"new", b"new"),
        ("wb", b"old content", b"", b""),
        ("xb", None, b"new", b"new"),
        ("ab", None, b"new", b"new"),
        ("ab", b"old", b"new", b"oldnew"),
        ("r+b", b"old content", b"new", b"new content"),
        ("w+b", b"old content", b"new", b"new"),
        ("a+b", b"old", b"new", b"oldnew"),
    ],
)
def test_modes(files: Files, write: Writes, mode: str, start: bytes | None, written: bytes, ends: bytes) -> None:
    if start is not None:
        write("/d/f", start)
    with files.open("data", "/d/f", mode) as file:
        assert file.write(written) == len(written)
        assert files.exists("data", "/d/f") == (start is not None), "nothing is seen before the close"
    assert files.cat("data", "/d/f") == ends


def test_large_and_random_writes_are_as_on_a_local_file(files: Files, write: Writes, tmp_path: Path) -> None:
    write("/f", bytes(range(256)) * 4096)
    local = tmp_path / "local"
    local.write_bytes(bytes(range(256)) * 4096)

    def change(file: Any) -> None:
        file.seek(3 * MIB)
        file.write(b"far")
        file.seek(10)
        assert file.read(3) == bytes([10, 11, 12])
        file.write(b"near")
        file.truncate(2 * MIB)
        file.seek(-2, os.SEEK_END)
        file.write(b"end!")

    with files.open("data", "/f", "r+b") as file:
        change(file)
    with local.open("r+b") as file:
        change(file)
    assert files.cat("data", "/f") == local.read_bytes()


def test_an_error_in_the_block_leaves_the_file_as_it_was(files: Files, write: Writes) -> None:
    write("/f", b"old")
    for mode in ("wb", "w", "ab", "r+b"):
        with pytest.raises(ZeroDivisionError), files.open("data", "/f", mode) as file:
            file.write("half" if mode == "w" else b"half")
            file.flush()
            raise ZeroDivisionError
    with pytest.raises(KeyboardInterrupt), files.open("data", "/new", "xb"):
        raise KeyboardInterrupt
    assert files.cat("data", "/f") == b"old"
    assert not files.exists("data", "/new")


@pytest.mark.parametrize("mode", ["wb", "w", "w+b"])
def test_a_forgotten_file_is_not_half_written(files: Files, mode: str) -> None:
    file = files.open("data", "/f", mode)
    file.write("half" if mode == "w" else b"half")
    del file
    gc.collect()
    assert not files.exists("data", "/f")


def test_exclusive_means_new(files: Files, write: Writes) -> None:
    write("/f", b"old")
    with pytest.raises(FileExistsError) as caught:
        files.open("data", "/f", "x")
    assert isinstance(caught.value, Duplicate)
    with pytest.raises(FileExistsError, match="meanwhile"), files.open("data", "/g", "xb") as file:
        file.write(b"mine")
        write("/g", b"theirs")
        file.close()
    assert files.cat("data", "/g") == b"theirs"


def test_what_somebody_else_changed_is_not_written_over_by_an_append(files: Files, write: Writes) -> None:
    write("/f", b"old")
    with pytest.raises(OSError, match="changed by somebody else") as caught, files.open("data", "/f", "ab") as file:
        file.write(b"mine")
        write("/f", b"theirs")
    assert isinstance(caught.value, Stale)
    assert files.cat("data", "/f") == b"theirs"


def test_a_disk_that_is_full_before_the_end(files: Files, write: Writes) -> None:
    write("/f", b"old")
    file = files.open("data", "/f", "wb")
    file.write(b"x" * 100)

    class Full(io.FileIO):
        def write(self, data: Any) -> int:
            raise OSError(28, "No space left on device")

    file.raw._file.close()
    file.raw._file = Full(file.raw._path, "r+b")
    with pytest.raises(OSError, match="No space"):
        file.close()
    assert file.closed
    assert files.cat("data", "/f") == b"old"


def test_a_failing_upload_is_told_by_close(on_local: Storage) -> None:
    files = on_local.files()
    file = files.open("data", "/g", "wb")
    file.write(b"x")
    files.mkdir("data", "/g")
    with pytest.raises(OSError):
        file.close()
    assert files.stat("data", "/g").is_directory
    files.close()


def test_reading_what_must_be_there(files: Files) -> None:
    with pytest.raises(NotFound):
        files.open("data", "/none", "r+b")
    with pytest.raises(io.UnsupportedOperation), files.open("data", "/f", "wb") as file:
        file.read()


def test_a_forked_process_does_not_touch_what_its_parent_writes(on_local: Storage) -> None:
    files = on_local.files()
    file = files.open("data", "/f", "wb")
    file.write(b"before the fork, ")
    child = os.fork()
    if not child:
        refused = False
        try:
            file.write(b"child")
            file.flush()
        except OSError:
            refused = True
        file.__del__()
        os._exit(0 if refused and file.closed else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    file.write(b"after it")
    file.close()
    assert files.cat("data", "/f") == b"before the fork, after it"
    files.close()


class Unreadable(MemoryStore):
    """A storage that answers for names and not for content."""

    def read(self, key: str, start: int, size: int, *, version: str = "") -> bytes:
        raise Unavailable("it does not answer")


def test_a_start_that_fails_leaves_nothing(tmp_path: Path) -> None:
    storage = Storage(tmp_path / "cache", {"data": Unreadable()})
    files = storage.files()
    with files.open("data", "/f", "wb") as file:
        file.write(b"old")
    files.evict("data")
    with pytest.raises(OSError, match="does not answer"):
        files.open("data", "/f", "r+b")
    files.close()


def test_a_link_is_written_through(storage: Storage, files: Files, write: Writes) -> None:
    store = storage.stores["data"]
    if not store.traits.holds_links:
        pytest.skip("this storage holds no links")
    write("/d/real", b"old")
    store.make_link("link", "d/real")
    store.make_link("out", "/etc/hostname")
    store.make_link("loop", "loop")
    with files.open("data", "/link", "ab") as file:
        file.write(b"+new")
    assert files.cat("data", "/d/real") == b"old+new" == files.cat("data", "/link")
    assert files.stat("data", "/link").link_target == "d/real"
    for name in ("/out", "/loop"):
        with pytest.raises(FileNotFoundError, match="does not lead"):
            files.open("data", name)
