"""Reading: the same bytes as a local file gives, from the cache where they are, of one version always."""

from __future__ import annotations

import io
import os
import random
import threading
from pathlib import Path

import pytest

from paddleflow.domain.errors import Invalid, NotFound, Stale
from paddleflow.files import Files
from tests.files.conftest import Storage, Writes

MIB = 1 << 20
LARGE = 6 * MIB + 12345
"""More than is fetched whole at the open."""


def content_of(size: int, seed: int = 0) -> bytes:
    return random.Random(seed).randbytes(size)


def forget(storage: Storage) -> None:
    """Nothing is cached any more."""
    for one in storage.opened:
        one.cache.evict("store-data")


@pytest.mark.parametrize("size", [0, 1, 100_000, MIB, LARGE])
def test_what_was_written_is_read(storage: Storage, files: Files, write: Writes, size: int) -> None:
    content = content_of(size)
    write("/a/b", content)
    forget(storage)
    with files.open("data", "/a/b") as file:
        assert file.read() == content
        assert file.read() == b""
        assert file.tell() == size
    assert files.cat("data", "a/b") == content


def test_seeks_and_reads_agree_with_a_local_file(storage: Storage, files: Files, write: Writes) -> None:
    content = content_of(LARGE)
    write("/large", content)
    forget(storage)
    local = io.BytesIO(content)
    dice = random.Random(7)
    with files.open("data", "/large") as file:
        for _ in range(200):
            match dice.randrange(4):
                case 0:
                    at = dice.randrange(LARGE + 100)
                    assert file.seek(at) == local.seek(at)
                case 1:
                    back = -dice.randrange(LARGE)
                    assert file.seek(back, os.SEEK_END) == local.seek(back, os.SEEK_END)
                case 2:
                    size = dice.choice([1, 17, 4096, 300_000, 2 * MIB])
                    assert file.read(size) == local.read(size)
                case _:
                    buffer, other = bytearray(5000), bytearray(5000)
                    assert file.readinto(buffer) == local.readinto(other)
                    assert buffer == other
        with pytest.raises(ValueError):
            file.seek(-1)


def test_text(files: Files) -> None:
    with files.open("data", "/t", "w") as file:
        file.write("grüße\nzwei\n")
    with files.open("data", "/t", "r") as file:
        assert list(file) == ["grüße\n", "zwei\n"]
    assert files.cat("data", "/t") == "grüße\nzwei\n".encode()
    with files.open("data", "/t", "rt", encoding="latin-1") as file:
        assert file.read() == "grÃ¼Ã\x9fe\nzwei\n"


def test_a_second_read_does_not_ask_the_store(storage: Storage, files: Files, write: Writes) -> None:
    write("/large", content_of(LARGE))
    forget(storage)
    files.cat("data", "/large")
    fetcher = storage.opened[0].stagehand.fetcher
    before = fetcher.tally.requests
    assert files.cat("data", "/large") == content_of(LARGE)
    assert fetcher.tally.requests == before


def test_a_part_is_all_that_is_fetched(storage: Storage, files: Files, write: Writes) -> None:
    write("/large", content_of(LARGE))
    forget(storage)
    with files.open("data", "/large") as file:
        file.seek(5 * MIB + 7)
        assert file.read(10) == content_of(LARGE)[5 * MIB + 7 :][:10]
        files._filesystems.ahead.shutdown(wait=True)
        assert storage.opened[0].stagehand.fetcher.tally.bytes <= 3 * MIB


def test_reading_in_order_reads_ahead(storage: Storage, files: Files, write: Writes) -> None:
    write("/large", content_of(LARGE))
    forget(storage)
    with files.open("data", "/large") as file:
        file.read(1000)
        files._filesystems.ahead.shutdown(wait=True)
        assert storage.opened[0].stagehand.fetcher.tally.bytes >= 2 * MIB


@pytest.mark.parametrize("size", [1000, LARGE])
def test_a_version_that_is_cached_outlives_its_object(storage: Storage, files: Files, write: Writes, size: int) -> None:
    write("/a", content_of(size, 1))
    forget(storage)
    with files.open("data", "/a") as file:
        assert file.read() == content_of(size, 1)
        write("/a", content_of(size, 2))
        file.seek(0)
        assert file.read() == content_of(size, 1), "an open file is one version"
    assert files.cat("data", "/a") == content_of(size, 2), "a new open sees the new one"


def test_never_bytes_of_two_versions(storage: Storage, files: Files, write: Writes) -> None:
    write("/a", content_of(LARGE, 1))
    forget(storage)
    with files.open("data", "/a") as file:
        assert file.read(10) == content_of(LARGE, 1)[:10]
        forget(storage)
        write("/a", content_of(LARGE, 2))
        file.seek(5 * MIB)
        with pytest.raises((Stale, OSError)) as caught:
            file.read(10)
        assert caught.value.errno == 116  # type: ignore[union-attr]  # ESTALE


def test_a_full_cache_is_read_past(storage: Storage, write: Writes) -> None:
    write("/a", content_of(LARGE))
    forget(storage)
    poor = Storage(storage.cache_dir / "small", storage.stores, limit=1)
    files = poor.files()
    assert files.cat("data", "/a") == content_of(LARGE)
    with files.open("data", "/a") as file:
        file.seek(MIB)
        assert file.read(100) == content_of(LARGE)[MIB : MIB + 100]
    files.close()


def test_damage_in_the_cache_is_not_served(storage: Storage, files: Files, write: Writes) -> None:
    write("/a", content_of(LARGE))
    forget(storage)
    files.cat("data", "/a")
    files.close()
    damaged = 0
    for path in storage.cache_dir.rglob("*"):
        if path.is_file() and path.stat().st_size >= LARGE:
            with path.open("r+b") as file:
                file.seek(MIB)
                file.write(b"flipped")
            damaged += 1
    assert damaged == 1
    assert files.cat("data", "/a") == content_of(LARGE)


def test_a_data_file_cut_off_under_an_open_file(storage: Storage, files: Files, write: Writes) -> None:
    write("/a", content_of(LARGE))
    forget(storage)
    with files.open("data", "/a", "rb") as file:
        file.read()
        for path in storage.cache_dir.rglob("*"):
            if path.is_file() and path.stat().st_size >= LARGE:
                os.truncate(path, 10)
        file.seek(MIB)
        assert file.read(2 * MIB) == content_of(LARGE)[MIB : 3 * MIB]


def test_eviction_under_open_files(storage: Storage, files: Files, write: Writes) -> None:
    write("/a", content_of(LARGE))
    forget(storage)
    with files.open("data", "/a") as file:
        for at in range(0, LARGE, MIB):
            forget(storage)
            file.seek(at)
            assert file.read(1000) == content_of(LARGE)[at : at + 1000]


def test_many_threads_read_one_file(storage: Storage, files: Files, write: Writes) -> None:
    content = content_of(LARGE)
    write("/a", content)
    forget(storage)
    wrong: list[int] = []

    def read(seed: int) -> None:
        dice = random.Random(seed)
        with files.open("data", "/a") as file:
            for _ in range(30):
                at = dice.randrange(LARGE)
                file.seek(at)
                if file.read(3000) != content[at : at + 3000]:
                    wrong.append(at)

    threads = [threading.Thread(target=read, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_errors_are_pythons_and_ours(files: Files, write: Writes) -> None:
    write("/d/f", b"x")
    with pytest.raises(FileNotFoundError) as missing:
        files.open("data", "/d/none")
    assert isinstance(missing.value, NotFound)
    assert missing.value.errno == 2
    assert "data:/d/none" in missing.value.get_message()  # type: ignore[attr-defined]
    with pytest.raises(IsADirectoryError):
        files.open("data", "/d")
    with pytest.raises(IsADirectoryError):
        files.open("data", "/d", "w")
    with pytest.raises(Invalid, match=r"\.\."):
        files.open("data", "../etc/passwd")
    with pytest.raises(Invalid, match="mode"):
        files.open("data", "/d/f", "rw")
    with pytest.raises(Invalid, match="text"):
        files.open("data", "/d/f", "w", encoding="no-such-thing")
    with files.open("data", "/d/f") as file, pytest.raises(io.UnsupportedOperation):
        file.write(b"y")
    with pytest.raises(ValueError):
        file.read()


def test_close_gives_everything_back(storage: Storage, files: Files, write: Writes) -> None:
    write("/a", b"x")
    files.close()
    assert [one.closed for one in storage.opened] == [1]
    assert files.cat("data", "/a") == b"x", "it may be used again"
    assert len(storage.opened) == 2


def test_descriptors_are_not_leaked(files: Files, write: Writes) -> None:
    write("/a", content_of(1000))
    files.cat("data", "/a")
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(50):
        files.cat("data", "/a")
        files.open("data", "/a").close()
    assert len(list(Path("/proc/self/fd").iterdir())) <= before + 5
